"""ST4, RE3: an encoder takes part in what users see: by check and serve, from a folder, a hub and the hub's cache."""

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
from ports import free_port
from tiny_models import bert_folder, modernbert_folder

SOURCE = (
    "The Harwick wind farm stands off the coast. Its operator, Norrin Energy, paid for the construction of a harbour."
)
OPEN = "The wind farm keeps local fishermen content."
LONG = (
    "The wind farm, of which people who know little about machinery speak with admiration whenever visitors come "
    "through the village in search of something extraordinary, keeps away from the questions of neighbours."
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHECK = ("check", "answer.txt", "farm.txt", "--json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answer.txt").write_text(OPEN)
    (tmp_path / "farm.txt").write_text(SOURCE)
    return tmp_path


def groundwire(folder: Path, *arguments: str, without: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, whose home is `folder`; `without` a library, as if it was not installed."""
    hidden = f"sys.modules[{without!r}] = None; " if without else ""
    command = [sys.executable, "-c", f"import sys; {hidden}from proxy.cli import main; main()", *arguments]
    env = os.environ | {"HOME": str(folder), "HF_HOME": str(folder / "hf")} | environ
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def claim_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["choices"][0]["claims"][0]


def test_check_names_the_encoder_and_its_doubts(folder: Path):
    sure = modernbert_folder(folder / "sure", lean=20.0)
    claim = claim_of(groundwire(folder, *CHECK, GROUNDWIRE_ENCODER__MODEL=str(sure)))
    assert (claim["label"], claim["verifier"], claim["method"]) == ("supported", "statement", "encoder")
    assert "the encoder gives it 100%" in claim["reason"]
    assert {citation["match"] for citation in claim["citations"]} == {"model"}
    unsure = modernbert_folder(folder / "unsure", lean=-20.0)
    claim = claim_of(groundwire(folder, *CHECK, GROUNDWIRE_ENCODER__MODEL=str(unsure)))
    assert (claim["label"], claim["method"]) == ("unsupported", "encoder")
    assert 'The encoder gives it 0% and doubts "The wind farm keeps local fishermen content"' in claim["reason"]


def test_check_prints_nothing_but_the_report_where_the_encoder_fails(folder: Path):
    claims_too_much = bert_folder(folder / "liar", max_position_embeddings=4096)
    (folder / "farm.txt").write_text(LONG)
    environ = {"GROUNDWIRE_ENCODER__MODEL": str(claims_too_much), "GROUNDWIRE_ENCODER__MAX_TOKENS": "4096"}
    done = groundwire(folder, *CHECK, **environ)
    assert "The encoder failed" in claim_of(done)["reason"]
    assert json.loads(done.stdout)["degraded"] == [{"verifier": "encoder", "reason": "error"}]
    assert "encoder.failed" in done.stderr


def test_a_missing_library_is_told_with_what_installs_it(folder: Path, cross_encoder: Path):
    done = groundwire(folder, *CHECK, without="onnxruntime", GROUNDWIRE_ENCODER__MODEL=str(cross_encoder))
    assert done.returncode == 2
    assert "onnxruntime is not installed; pip install 'groundwire[encoder]'" in done.stderr


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers", "huggingface_hub", "numpy"])
def test_nothing_needs_an_encoders_libraries_without_one(folder: Path, library: str):
    assert claim_of(groundwire(folder, *CHECK, without=library))["method"] != "encoder"


class Hub(BaseHTTPRequestHandler):
    """What of the Hugging Face hub a download asks for: the files of one repository at one commit."""

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
    """The address of a hub with the model acme/judge, and what it was asked for."""
    handler = type("Hub", (Hub,), {"folder": bert_folder(tmp_path / "repository", file="onnx/model.onnx"), "asked": []})
    with serving(handler) as address:
        yield address, handler.asked


def test_a_model_of_the_hub_is_fetched_once_and_found_without_it(folder: Path, hub: tuple[str, list[str]]):
    address, asked = hub
    model = {"GROUNDWIRE_ENCODER__MODEL": "acme/judge", "GROUNDWIRE_ENCODER__REVISION": "v1", "HF_ENDPOINT": address}
    first = claim_of(groundwire(folder, *CHECK, **model))
    assert first["method"] == "encoder"
    files = [each for each in asked if "/resolve/" in each]
    assert files[0] == "HEAD /acme/judge/resolve/v1/config.json"
    assert all("v1/config.json" in each or COMMIT in each for each in files)  # one commit, whatever happens meanwhile
    before = len(asked)
    assert claim_of(groundwire(folder, *CHECK, HF_HUB_OFFLINE="1", **model)) == first
    assert len(asked) == before


@pytest.mark.parametrize(
    ("model", "revision", "offline"),
    [("acme/unknown", None, False), ("acme/judge", "v9", False), ("acme/judge", None, True)],
    ids=["unknown", "unknown revision", "offline and never fetched"],
)
def test_a_model_that_the_hub_does_not_give_is_told(
    folder: Path, hub: tuple[str, list[str]], model: str, revision: str | None, offline: bool
):
    environ = {"GROUNDWIRE_ENCODER__MODEL": model, "HF_ENDPOINT": hub[0]}
    environ |= {"GROUNDWIRE_ENCODER__REVISION": revision} if revision else {}
    environ |= {"HF_HUB_OFFLINE": "1"} if offline else {}
    done = groundwire(folder, *CHECK, **environ)
    assert done.returncode == 2
    assert f"encoder.model: {model} " in done.stderr
    assert "Traceback" not in done.stderr


class Upstream(BaseHTTPRequestHandler):
    """A model server that always says the same."""

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


def grounding(folder: Path, encoder: Mapping[str, Any], said: str = OPEN, source: str = SOURCE) -> dict[str, Any]:
    """What `groundwire serve` with these settings of its encoder makes of an answer."""
    request = {"model": "m", "messages": [{"role": "system", "content": source}, {"role": "user", "content": "Well?"}]}
    with serving(type("Upstream", (Upstream,), {"said": said})) as address:
        port = free_port()
        config = {"upstreams": {"up": {"base_url": f"{address}/v1"}}, "encoder": encoder, "server": {"port": port}}
        (folder / "config.yaml").write_text(json.dumps(config))
        command = [sys.executable, "-c", "from proxy.cli import main; main()", "serve"]
        log = (folder / "log").open("w+")
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            _wait_until_up(f"http://127.0.0.1:{port}/healthz", process, folder / "log")
            response = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=request, timeout=60)
        finally:
            process.kill()
            process.wait(timeout=60)
            log.close()
    found: dict[str, Any] = response.json()["grounding"]
    return found


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


def test_serve_reports_what_the_encoder_decided(folder: Path):
    sure = modernbert_folder(folder / "sure", lean=20.0)
    report = grounding(folder, {"model": str(sure)})
    claim = report["choices"][0]["claims"][0]
    assert (report["status"], report["degraded"]) == ("complete", [])
    assert (claim["label"], claim["verifier"], claim["method"]) == ("supported", "statement", "encoder")
    assert "the encoder gives it 100%" in claim["reason"]


def test_serve_answers_when_the_encoder_fails_and_says_so(folder: Path):
    claims_too_much = bert_folder(folder / "liar", max_position_embeddings=4096)
    report = grounding(folder, {"model": str(claims_too_much), "max_tokens": 4096}, source=LONG)
    claim = report["choices"][0]["claims"][0]
    assert report["degraded"] == [{"verifier": "encoder", "reason": "error"}]
    assert "verifier_degraded" in report["flags"]
    assert claim["label"] in ("supported", "unsupported")
    assert (claim["method"] != "encoder", claim["reason"].split(". ")[-1]) == (True, "The encoder failed (Fail).")
    assert "encoder.failed" in (folder / "log").read_text()


def test_serve_leaves_claims_past_the_encoders_time_to_the_words(folder: Path):
    sure = modernbert_folder(folder / "sure", lean=20.0)
    answer = f"{OPEN} The wind farm gives the coast cheap electricity."
    report = grounding(folder, {"model": str(sure), "budget": "0s"}, answer)
    assert [claim["method"] == "encoder" for claim in report["choices"][0]["claims"]] == [True, False]
    assert report["degraded"] == [{"verifier": "encoder", "reason": "timeout"}]
