"""Limits on start-up: the cost of importing, and the libraries that it never loads."""

import json
import subprocess
import sys

import pytest

HOUSE = """
import sys, json
from groundwire.config import Settings
from groundwire.http.app import build_app
from groundwire.container import build_container
settings = Settings(upstreams={"claude": {"dialect": "litellm", "litellm_model": "anthropic/*"}})
build_app(settings, build_container(settings, {}))
print(json.dumps(sorted(sys.modules)))
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=120, text=True).stdout


def test_an_app_with_a_litellm_upstream_is_built_without_litellm_and_redis() -> None:
    modules = json.loads(run(HOUSE))
    assert "groundwire.upstream.litellm" in modules
    assert [name for name in modules if name.partition(".")[0] in ("litellm", "openai", "redis")] == []


@pytest.mark.parametrize("name", ["litellm", "pydantic", "httpx", "aiohttp", "opentelemetry", "jsonschema_rs", "babel"])
def test_importing_the_package_brings_no_heavy_library(name: str) -> None:
    assert run(f"import sys, proxy; print({name!r} in sys.modules)").strip() == "False"


def test_judging_brings_no_library_of_the_edge() -> None:
    heavy = {"litellm", "pydantic", "httpx", "aiohttp", "starlette", "structlog", "opentelemetry", "asyncio"}
    modules = json.loads(run("import sys, json, groundwire.pipeline; print(json.dumps(list(sys.modules)))"))
    assert heavy & {name.partition(".")[0] for name in modules} == set()


def test_importing_the_package_loads_few_modules() -> None:
    assert int(run("import sys; before = len(sys.modules); import groundwire; print(len(sys.modules) - before)")) < 250
