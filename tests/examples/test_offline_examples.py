"""The examples run offline by their commands and print the expected output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LOW = "The ticket has low priority."


def run(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run an example in an empty folder and return its output."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "library"), [("rag_langchain", "langchain_openai"), ("rag_llama_index", "llama_index")]
)
def test_rag_prints_claims_with_the_documents_that_support_them(tmp_path: Path, name: str, library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    answer, *claims = run(tmp_path, str(EXAMPLES / f"{name}.py")).strip().split("\n\n")
    assert "20 days per calendar year [2]" in answer
    assert [claim.split(":")[0] for claim in claims] == ["supported"] * 3
    assert "Hotel costs are reimbursed by the company" in claims[2]


def test_the_agent_calls_its_tool_and_its_answer_is_checked_against_the_result(tmp_path: Path) -> None:
    called, answer, *claims = run(tmp_path, str(EXAMPLES / "tool_agent.py")).replace("\n\n", "\n").splitlines()
    assert called == "calls get_ticket(48213)"
    assert answer.startswith("Harbour Clinic")
    assert {f"unsupported: {LOW}", f"contradicted: {LOW}"} & set(claims)
    assert "unsupported: Engineering expects to ship a fix next week." in claims


def test_the_gate_passes_with_a_known_failure(tmp_path: Path) -> None:
    shown = run(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "-rx", str(EXAMPLES / "ci_gate"))
    assert "1 passed, 1 xfailed" in shown
    assert "a quotation is made up" in shown


@pytest.mark.parametrize(("allowed", "status"), [("0.7", 0), ("0.05", 1)])
def test_the_audit_fails_if_too_many_answers_are_flagged(tmp_path: Path, allowed: str, status: int) -> None:
    shown = run(tmp_path, str(EXAMPLES / "nightly_audit.py"), "--max-flagged", allowed, status=status)
    assert "2 of 3 answers are flagged (67%)" in shown
    assert "84.5 million euros" in (tmp_path / "audit/demo.html").read_text(encoding="utf-8")


def test_the_chat_page_streams_an_answer_with_its_report(tmp_path: Path) -> None:
    port = free_port()
    environ = {**os.environ, "PORT": str(port)} | {"GROUNDWIRE_URL": ""}
    command = [sys.executable, str(EXAMPLES / "streaming_chat/server.py")]
    server = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        assert f"http://127.0.0.1:{port}" in server.stdout.readline()
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, transport=httpx.HTTPTransport(retries=8))
        assert "Ask the handbook" in client.get("/").text
        question = "How long may I work from abroad, and what does the company pay for a hotel?"
        lines = client.post("/chat", json={"question": question}).text.splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert len(events) > 20
        assert events[-1]["grounding"]["verdict"] == "grounded"
        assert events[-1]["grounding"]["offset_unit"] == "utf16"
        assert lines[-2:] == ["data: [DONE]", ""] or lines[-1] == "data: [DONE]"
    finally:
        server.terminate()
        server.wait(60)
        if server.stdout:
            server.stdout.close()
