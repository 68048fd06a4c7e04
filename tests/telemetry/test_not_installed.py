"""A base install: neither OpenTelemetry nor prometheus-client can be imported, in separate processes."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("opentelemetry", "prometheus_client"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
EXCHANGE = """
import asyncio, json
from tests.telemetry.talks import ASKED, CALLER, CHAT, Model, run, serving
from groundwire.config import Telemetry
from groundwire.telemetry import configure_logs

configure_logs(Telemetry())
model = Model()

async def work():
    async with serving(model) as client:
        answers = [
            await client.post(CHAT, json=ASKED | {"stream": streamed}, headers={"traceparent": CALLER})
            for streamed in (False, True)
        ]
        return answers, await client.get("/metrics"), await client.get("/readyz")

answers, metrics, ready = run(work())
print(json.dumps({
    "answers": [each.text for each in answers],
    "traceparent": [request.headers["traceparent"] for request in model.requests],
    "metrics": [metrics.status_code, metrics.text],
    "ready": ready.status_code,
}))
"""
BUILD = """
from groundwire.config import Settings
from groundwire.container import build_container
build_container(Settings.model_validate({settings}), {environ})
print("built")
"""
INSTALL = "pip install 'groundwire[telemetry]'"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def in_base_install(code: str) -> subprocess.CompletedProcess[str]:
    """The outcome of a program in a process where neither library can be imported."""
    path = f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    command = [sys.executable, "-c", WITHOUT + path + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def built(settings: Mapping[str, object], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return in_base_install(BUILD.format(settings=dict(settings), environ=dict(environ)))


def test_answers_are_verified_and_traces_pass_and_metrics_name_the_missing_extra() -> None:
    done = in_base_install(EXCHANGE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all('"verdict":"partially_grounded"' in answer.replace(": ", ":") for answer in found["answers"])
    assert found["traceparent"] == [CALLER, CALLER]
    assert found["metrics"][0] == 501
    assert INSTALL in found["metrics"][1]
    assert found["ready"] == 200
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    requests = [line for line in lines if line["event"] == "request" and line["route"] == "/v1/chat/completions"]
    assert [(line["trace_id"], line["span_id"]) for line in requests] == [(CALLER[3:35], CALLER[36:52])] * 2


def test_a_collector_in_the_settings_is_an_error_that_names_the_extra() -> None:
    done = built({"telemetry": {"otlp_endpoint": "http://127.0.0.1:4318"}}, {})
    assert "built" not in done.stdout
    assert f"telemetry.otlp_endpoint: it needs {INSTALL}" in done.stderr


def test_a_collector_in_the_environment_is_a_warning_that_names_the_extra() -> None:
    """It may be meant for other programs on the machine."""
    done = built({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    assert done.stdout.strip().endswith("built"), done.stderr
    assert "telemetry.not_installed" in done.stdout + done.stderr
    assert INSTALL.replace("'", "") in (done.stdout + done.stderr).replace("'", "").replace('"', "")


@pytest.mark.parametrize(
    "module", ["groundwire", "groundwire.telemetry", "groundwire.telemetry.requests", "groundwire.cli"]
)
def test_it_can_be_imported(module: str) -> None:
    done = in_base_install(f"import {module}")
    assert done.returncode == 0, done.stderr
