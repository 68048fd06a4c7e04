"""The test suites of openai-python and openai-node, each directly and through the proxy: `make client-suites`.

The suites are not part of this repository: OPENAI_PYTHON and OPENAI_NODE name folders that hold their sources, with the
OpenAPI document that they bring. Their mock server, steady, answers by that document. Each suite runs twice, first
against the mock server and then against the proxy in front of it; a test that fails only behind the proxy fails this.

    python tests/clients/suites.py FOLDER --python SOURCES --node SOURCES   FOLDER is where everything is installed
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.ports import free_port

STEADY = "@stdy/cli@0.22.1"
ARRAYS = [f"--validator-{part}-{shape}-format=brackets" for part in ("query", "form") for shape in ("array", "object")]
DOCUMENTS = ("api_reference/openapi.transformed.yml", "openapi.yml")
STARTS_WITHIN_S = 60.0

Outcomes = dict[str, str]
Suite = Callable[[Path, str, Path], Outcomes]


def run(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str], log: Path, check: bool = True) -> None:
    """Run a command; raise SystemExit with the end of its log when it fails."""
    with log.open("ab") as sink:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **environ}, stdout=sink, stderr=sink)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{log.read_text()[-2000:]}")


@contextmanager
def running(command: Sequence[str | Path], url: str, log: Path) -> Iterator[None]:
    """Run a server while the block runs; it is up when it answers."""
    with log.open("wb") as sink, subprocess.Popen(command, stdout=sink, stderr=sink) as process:
        try:
            _wait(process, url, log)
            yield
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{process.args} did not start:\n{log.read_text()[-2000:]}")


def run_python(sources: Path, base_url: str, folder: Path) -> Outcomes:
    """Run the tests of openai-python's resources; return the outcome of each."""
    uv = [Path(sys.executable).with_name("uv"), "--quiet"]
    environ = {"UV_PROJECT_ENVIRONMENT": str(folder / "python"), "TEST_API_BASE_URL": base_url}
    log, found = folder / "python.log", folder / "python.xml"
    run([*uv, "sync", "--locked", "--all-extras", "--python", sys.executable], sources, environ, log)
    pytest = [folder / "python/bin/python", "-m", "pytest", "-q", "tests/api_resources", "-n", "2"]
    run([*pytest, "-p", "no:cacheprovider", f"--junitxml={found}"], sources, environ, log, check=False)
    return read_junit(found)


def run_node(sources: Path, base_url: str, folder: Path) -> Outcomes:
    """Run the generated tests of openai-node; return the outcome of each."""
    log, copy = folder / "node.log", folder / "node"
    if not (copy / "node_modules").exists():
        shutil.copytree(sources, copy, ignore=shutil.ignore_patterns(".git", "node_modules"), dirs_exist_ok=True)
        run(["npm", "install", "--no-audit", "--no-fund", "--legacy-peer-deps", "--ignore-scripts"], copy, {}, log)
        run(["npm", "install", "--no-save", "--legacy-peer-deps", "--ignore-scripts", "jest-junit"], copy, {}, log)
    found = folder / "node.xml"
    found.unlink(missing_ok=True)
    environ = {
        "TEST_API_BASE_URL": base_url,
        "OPENAI_TEST_SUITE": "generated",
        "JEST_JUNIT_OUTPUT_FILE": str(found),
    }
    jest = ["node_modules/.bin/jest", "--runInBand", "--reporters=jest-junit"]
    run(jest, copy, environ, log, check=False)
    return read_junit(found)


def read_junit(file: Path) -> Outcomes:
    """Return the outcome of each test by name."""
    if not file.exists():
        raise SystemExit(f"the suite wrote no results; see {file.with_suffix('.log')}")
    outcomes = {}
    for case in ElementTree.parse(file).iter("testcase"):
        told = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcomes[f"{case.get('classname')} {case.get('name')}"] = min(told, default="passed")
    return outcomes


def compare(name: str, suite: Suite, sources: Path, folder: Path) -> list[str]:
    """Run a suite both ways; return the tests that fail only behind the proxy."""
    document = next((found for each in DOCUMENTS if (found := sources / each).exists()), None)
    if document is None:
        raise SystemExit(f"{sources} has none of {', '.join(DOCUMENTS)}: the mock server answers by that document")
    port, own = free_port(), free_port()
    mock = [folder / "steady/node_modules/.bin/steady", "--host", "127.0.0.1", "-p", str(port), *ARRAYS, document]
    with (
        tempfile.TemporaryDirectory() as temporary,
        running(mock, f"http://127.0.0.1:{port}/_x-steady/health", folder / "steady.log"),
    ):
        config = Path(temporary, "config.yaml")
        upstream = {"base_url": f"http://127.0.0.1:{port}", "models": ["*"]}
        config.write_text(yaml.safe_dump({"upstreams": {"mock": upstream}}), encoding="utf-8")
        serve = [Path(sys.executable).with_name("groundwire"), "serve", "--config", config, "--port", str(own)]
        with running(serve, f"http://127.0.0.1:{own}/healthz", folder / "proxy.log"):
            direct = suite(sources, f"http://127.0.0.1:{port}", folder)
            behind = suite(sources, f"http://127.0.0.1:{own}/v1", folder)
    failed = [each for each, outcome in behind.items() if outcome in ("failure", "error")]
    only = [each for each in failed if direct.get(each) == "passed"]
    print(
        f"{name}: {_passed(direct)} of {len(direct)} pass directly, {_passed(behind)} of {len(behind)} behind the proxy"
    )
    return [*only, *(f"{each} (missing)" for each in direct.keys() - behind.keys())]


def _passed(outcomes: Outcomes) -> int:
    return sum(outcome == "passed" for outcome in outcomes.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, help="sources of openai-python")
    parser.add_argument("--node", type=Path, help="sources of openai-node")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    suites = {"openai-python": (run_python, given.python), "openai-node": (run_node, given.node)}
    wanted = {name: (suite, sources.resolve()) for name, (suite, sources) in suites.items() if sources}
    if not wanted:
        raise SystemExit("name the sources of at least one suite: OPENAI_PYTHON=folder OPENAI_NODE=folder")
    run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder / "steady", STEADY],
        folder,
        {},
        folder / "npm.log",
    )
    failed = {name: compare(name, suite, sources, folder) for name, (suite, sources) in wanted.items()}
    for name, tests in failed.items():
        for test in tests:
            print(f"{name}: fails only behind the proxy: {test}")
    sys.exit(any(failed.values()))


if __name__ == "__main__":
    main()
