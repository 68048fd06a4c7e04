"""An entailment model as users see it: by check and serve, from a folder, a hub and the hub's cache."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends.tiny_models import bert_folder, modernbert_folder
from tests.ports import free_port

SOURCE = (
    "The Harwick wind farm stands off the coast. Its operator, Norrin Energy, paid for the construction of a harbour."
)
OPEN = "The wind farm keeps local fishermen content."
LONG = (
    "The wind farm, of which people who know little about machinery speak with admiration whenever visitors come "
    "through the village in search of something extraordinary, keeps away from the questions of neighbours."
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
_MODEL = {"GROUNDWIRE_JUDGE__BY": "encoder"}
CHECK = ("check", "answer.txt", "farm.txt", "--json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answer.txt").write_text(OPEN)
    (tmp_path / "farm.txt").write_text(SOURCE)
    return tmp_path


def groundwire(folder: Path, *arguments: str, without: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process with `folder` as its home; `without` hides a library from it."""
    hidden = f"sys.modules[{without!r}] = None; " if without else ""
    command = [sys.executable, "-c", f"import sys; {hidden}from groundwire.cli import main; main()", *arguments]
    env = os.environ | {"HOME": str(folder), "HF_HOME": str(folder / "hf"), **_MODEL} | environ
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def claim_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["choices"][0]["claims"][0]


def test_check_reports_what_the_model_decides(folder: Path):
    sure = modernbert_folder(folder / "sure", lean=20.0)
    claim = claim_of(groundwire(folder, *CHECK, GROUNDWIRE_JUDGE__MODEL=str(sure)))
    assert (claim["label"], claim["verifier"], claim["method"]) == ("supported", "statement", "model")
    assert {citation["match"] for citation in claim["citations"]} == {"model"}
    unsure = modernbert_folder(folder / "unsure", lean=-20.0)
    claim = claim_of(groundwire(folder, *CHECK, GROUNDWIRE_JUDGE__MODEL=str(unsure)))
    assert (claim["label"], claim["method"]) == ("unsupported", "model")
    assert claim["reason"].startswith('Not stated in farm.txt: "The wind farm keeps local fishermen content".')


def test_check_prints_nothing_but_the_report_where_the_model_fails(folder: Path):
    claims_too_much = bert_folder(folder / "liar", max_position_embeddings=4096)
    (folder / "farm.txt").write_text(LONG)
    (folder / "answer.txt").write_text(LONG.replace("keeps", "stays"))
    done = groundwire(folder, *CHECK, GROUNDWIRE_JUDGE__MODEL=str(claims_too_much), GROUNDWIRE_JUDGE__MAX_TOKENS="4096")
    assert claim_of(done)["method"] != "model"
    assert json.loads(done.stdout)["degraded"] == [{"verifier": "judge", "reason": "error"}]
    assert "judge.failed" in done.stderr


@pytest.mark.parametrize("library", ["onnxruntime", "numpy"])
def test_a_missing_library_is_named_with_what_does_without_it(folder: Path, cross_encoder: Path, library: str):
    done = groundwire(folder, *CHECK, without=library, GROUNDWIRE_JUDGE__MODEL=str(cross_encoder))
    assert done.returncode == 2
    assert f"{library} is not installed; judge.by: off needs none" in done.stderr


@pytest.mark.parametrize("command", [CHECK, ("serve", "--port", "0")])
def test_the_tokenizers_of_other_models_need_the_extra_that_is_named(
    folder: Path, cross_encoder: Path, command: tuple[str, ...]
):
    done = groundwire(folder, *command, without="tokenizers", GROUNDWIRE_JUDGE__MODEL=str(cross_encoder))
    assert done.returncode == 2
    assert "judge.model: it needs pip install 'groundwire[hub]'" in done.stderr


def test_the_missing_package_for_hub_downloads_is_named(folder: Path):
    done = groundwire(folder, *CHECK, without="huggingface_hub", GROUNDWIRE_JUDGE__MODEL="nli-deberta-v3-small")
    assert done.returncode == 2
    assert (
        "judge.model: cross-encoder/nli-deberta-v3-small is on the hub: it needs pip install 'groundwire[hub]'"
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_a_word_that_is_no_profile_is_refused_with_the_one_that_is_meant(folder: Path):
    done = groundwire(folder, *CHECK, GROUNDWIRE_JUDGE__MODEL="lettucedetect-bas")
    assert done.returncode == 2
    assert "lettucedetect-bas is no profile" in done.stderr
    assert "did you mean 'lettucedetect-base'?" in done.stderr


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers", "huggingface_hub", "numpy"])
def test_nothing_needs_a_models_libraries_without_one(folder: Path, library: str):
    claim = claim_of(groundwire(folder, *CHECK, without=library, GROUNDWIRE_JUDGE__BY="off"))
    assert claim["method"] != "model"


class Hub(BaseHTTPRequestHandler):
    """The part of the Hugging Face hub that a download uses: the files of one repository at one commit."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.asked.append(f"{self.command} {self.path}")
        repository, _, place = self.path.lstrip("/").partition("/resolve/")
        revision, _, name = place.partition("/")
        path = self.folder / name
        if repository != "acme/judge" or revision not in ("main", "v1", COMMIT):
            return self._refuse("RepoNotFound" if repository != "acme/judge" else "RevisionNotFound")
        if not path.is_file():
            return self._refuse("EntryNotFound")
        body = path.read_bytes()
        self.send_response(200)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hash(body):x}"', "Content-Length": str(len(body))}
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)
        return None

    def _refuse(self, code: str) -> None:
        self.send_response(404)
        for header, value in {"X-Error-Code": code, "X-Repo-Commit": COMMIT, "Content-Length": "0"}.items():
            self.send_header(header, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a hub with the model acme/judge, and the requests that it got."""
    handler = type("Hub", (Hub,), {"folder": bert_folder(tmp_path / "repository", file="onnx/model.onnx"), "asked": []})
    with serving(handler) as address:
        yield address, handler.asked


def test_a_model_of_the_hub_is_fetched_once_and_found_without_it(folder: Path, hub: tuple[str, list[str]]):
    address, asked = hub
    model = {"GROUNDWIRE_JUDGE__MODEL": "acme/judge", "GROUNDWIRE_JUDGE__REVISION": "v1", "HF_ENDPOINT": address}
    first = claim_of(groundwire(folder, *CHECK, **model))
    assert first["method"] == "model"
    files = [each for each in asked if "/resolve/" in each]
    assert files[0] == "HEAD /acme/judge/resolve/v1/config.json"
    assert all("v1/config.json" in each or COMMIT in each for each in files)  # one commit, even if the branch moves
    before = len(asked)
    assert claim_of(groundwire(folder, *CHECK, HF_HUB_OFFLINE="1", **model)) == first
    assert len(asked) == before


@pytest.mark.parametrize(
    ("model", "revision", "offline"),
    [("acme/unknown", None, False), ("acme/judge", "v9", False), ("acme/judge", None, True)],
    ids=["unknown", "unknown revision", "offline and never fetched"],
)
def test_a_model_that_the_hub_does_not_provide_is_reported(
    folder: Path, hub: tuple[str, list[str]], model: str, revision: str | None, offline: bool
):
    environ = {"GROUNDWIRE_JUDGE__MODEL": model, "HF_ENDPOINT": hub[0]}
    environ |= {"GROUNDWIRE_JUDGE__REVISION": revision} if revision else {}
    environ |= {"HF_HUB_OFFLINE": "1"} if offline else {}
    done = groundwire(folder, *CHECK, **environ)
    assert done.returncode == 2
    assert f"judge.model: {model} " in done.stderr
    assert "Traceback" not in done.stderr


class Upstream(BaseHTTPRequestHandler):
    """A model server that always gives the same answer."""

    said: str

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": self.said}, "finish_reason": "stop"}
        body = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def grounding(folder: Path, judge: Mapping[str, Any], said: str = OPEN, source: str = SOURCE) -> dict[str, Any]:
    """Return the report of `groundwire serve` with these judge settings on an answer, once the model has loaded."""
    request = {"model": "m", "messages": [{"role": "system", "content": source}, {"role": "user", "content": "Well?"}]}
    with serving(type("Upstream", (Upstream,), {"said": said})) as address:
        port = free_port()
        config = {"upstreams": {"up": {"base_url": f"{address}/v1"}}, "judge": judge, "server": {"port": port}}
        (folder / "config.yaml").write_text(json.dumps(config))
        command = [sys.executable, "-c", "from groundwire.cli import main; main()", "serve"]
        log = (folder / "log").open("w+")
        process = subprocess.Popen(command, cwd=folder, env=os.environ | _MODEL, stdout=log, stderr=log)
        try:
            _wait_until_up(f"http://127.0.0.1:{port}/healthz", process, folder / "log")
            found = _answered(f"http://127.0.0.1:{port}/v1/chat/completions", request)
        finally:
            process.kill()
            process.wait(timeout=60)
            log.close()
    return found


def _answered(url: str, request: dict[str, Any]) -> dict[str, Any]:
    """Request until the model is loaded; until then words decide, and the report shows it."""
    deadline = time.monotonic() + 100
    while True:
        found: dict[str, Any] = httpx.post(url, json=request, timeout=30).json()["grounding"]
        if {"verifier": "judge", "reason": "loading"} not in found["degraded"] or time.monotonic() > deadline:
            return found
        assert "verifier_degraded" in found["flags"]
        time.sleep(0.05)


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            httpx.get(url, timeout=5)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"not up after 100 s: {log.read_text()}")


def test_serve_reports_what_the_model_decides(folder: Path):
    sure = modernbert_folder(folder / "sure", lean=20.0)
    report = grounding(folder, {"model": str(sure)})
    claim = report["choices"][0]["claims"][0]
    assert (report["status"], report["degraded"]) == ("complete", [])
    assert (claim["label"], claim["verifier"], claim["method"]) == ("supported", "statement", "model")


def test_serve_answers_when_the_model_fails_and_reports_it(folder: Path):
    claims_too_much = bert_folder(folder / "liar", max_position_embeddings=4096)
    said = LONG.replace("keeps", "stays")
    report = grounding(folder, {"model": str(claims_too_much), "max_tokens": 4096}, said, source=LONG)
    claim = report["choices"][0]["claims"][0]
    assert report["degraded"] == [{"verifier": "judge", "reason": "error"}]
    assert "verifier_degraded" in report["flags"]
    assert claim["method"] != "model"
    assert "judge.failed" in (folder / "log").read_text()
