"""The examples of the pages for newcomers run, and the behaviour that troubleshooting.md describes is real."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from groundwire.cli import app
from groundwire.config import load_settings
from tests.edge.proxies import Proxy
from tests.edge.upstream import Received, Reply, Upstream, body_reply, chat_body
from tests.integrations.conftest import labels

ROOT = Path(__file__).parents[2]
NAMES = ("quickstart", "troubleshooting", "faq", "comparison", "settings", "cli")
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in NAMES}
TROUBLE = PAGES["troubleshooting"]

CONTEXT = "Acme Corp was founded in Oslo in 1998. Its revenue was $4.2 million in 2023."
ANSWER = "Acme Corp was founded in Oslo in 1998. Its revenue was $4.9 million in 2023."
QUESTION = "What is known about Acme Corp?"
MESSAGES = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": QUESTION}]


def blocks(language: str) -> list[Any]:
    found = [
        pytest.param(block, id=f"{name}-{number}")
        for name, page in PAGES.items()
        for number, block in enumerate(re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    ]
    assert found
    return found


@pytest.fixture
def answering(upstream: Upstream) -> Upstream:
    """Answer in the dialect of the request, half of it wrongly."""

    def reply(received: Received) -> Reply:
        if not received.path.endswith("/messages"):
            return body_reply(chat_body(ANSWER))
        content = [{"type": "text", "text": ANSWER}]
        usage = {"input_tokens": 30, "output_tokens": 20}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        return body_reply(json.dumps({**message, "content": content, "usage": usage}).encode())

    upstream.reply = reply
    return upstream


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", blocks("python"))
def test_a_python_example_prints_what_it_promises(example: str, answering: Upstream, proxy: Proxy) -> None:
    shown: list[str] = []
    names: dict[str, Any] = {"print": lambda *values: shown.extend(map(str, values))}
    exec(example.replace("http://127.0.0.1:8080", proxy.url), names)
    promised = re.findall(r"print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert promised
    assert shown == promised


@pytest.mark.parametrize("example", blocks("json"))
def test_a_json_example_has_values_of_a_real_report(example: str, answering: Upstream, proxy: Proxy) -> None:
    report = httpx.post(f"{proxy.base_url}/chat/completions", json={"model": "m", "messages": MESSAGES}).json()
    promised = json.loads(example)
    assert {key: report["grounding"][key] for key in promised} == promised


@pytest.mark.parametrize("example", blocks("yaml"))
def test_a_settings_example_can_be_used(example: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(example, encoding="utf-8")
    assert load_settings(tmp_path / "config.yaml", {}).upstreams


def commands(block: str) -> Iterator[list[str]]:
    """Yield the commands of a block, one for each line that is not within quotation marks."""
    lexer = shlex.shlex(re.sub(r"(?<=\s)# .*", "", block).replace("\\\n", " "), posix=True, punctuation_chars="\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    for is_break, words in groupby(lexer, key=lambda word: not word.strip("\n")):
        if not is_break:
            yield list(words)


@pytest.mark.parametrize("block", blocks("sh"))
def test_a_shell_example_can_be_run(block: str, answering: Upstream, proxy: Proxy) -> None:
    assert subprocess.run(["bash", "-n"], input=block, text=True, check=False, timeout=30).returncode == 0
    for name, *arguments in commands(block):
        RUN[name](arguments, proxy)


def _curl(arguments: list[str], proxy: Proxy) -> None:
    command = ["curl", *(each.replace("http://127.0.0.1:8080", proxy.url) for each in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    reply = json.loads(done.stdout)
    assert reply.get("grounding") or reply["error"]["code"] == "report_not_found"


def _groundwire(arguments: list[str], proxy: Proxy) -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands[arguments[0]]
    command.make_parser(command.context_class(command, info_name="groundwire")).parse_args(list(arguments[1:]))


def _pip(arguments: list[str], proxy: Proxy) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, *extras = re.findall(r"[\w-]+|\.(?=\[|$)", arguments[-1])
    assert arguments[0] == "install"
    assert name in (project["name"], ".")
    assert set(extras) <= set(project["optional-dependencies"])


RUN = {"curl": _curl, "groundwire": _groundwire, "pip": _pip}


# --- troubleshooting --------------------------------------------------------------------------------------------------


def ask(proxy: Proxy, messages: Any = MESSAGES, **body: Any) -> httpx.Response:
    return httpx.post(f"{proxy.base_url}/chat/completions", json={"model": "m", "messages": messages, **body})


def test_without_detail_the_headers_remain(answering: Upstream, proxy: Proxy) -> None:
    response = ask(proxy, grounding={"detail": "none"})
    assert "grounding" not in response.json()
    assert response.headers["x-grounding-id"]
    assert response.headers["x-grounding-status"] == "complete"


def test_switched_off_there_are_two_headers_and_no_id(answering: Upstream, proxy: Proxy) -> None:
    headers = ask(proxy, grounding={"mode": "off"}).headers
    assert {name for name in headers if name.startswith("x-grounding")} == {"x-grounding-status", "x-grounding-verdict"}
    assert (headers["x-grounding-status"], headers["x-grounding-verdict"]) == ("skipped", "not_checked")


def test_embeddings_are_not_verified(answering: Upstream, proxy: Proxy) -> None:
    response = httpx.post(f"{proxy.base_url}/embeddings", json={"model": "m", "input": "text"})
    assert "x-grounding-id" not in response.headers


def test_errors_of_the_model_server_pass(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = Reply((b'{"error": {"message": "no such model"}}',), status=404)
    response = ask(proxy)
    assert (response.status_code, response.json()) == (404, {"error": {"message": "no such model"}})


def test_async_is_pending_and_the_report_follows(answering: Upstream, proxy: Proxy) -> None:
    response = ask(proxy, grounding={"mode": "async"})
    assert response.json()["grounding"]["status"] == "pending"
    assert proxy.report(response.headers["x-grounding-id"])["status"] == "complete"


def test_an_unknown_report_is_404(proxy: Proxy) -> None:
    response = httpx.get(f"{proxy.base_url}/grounding/gw-000000000000000000000000")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "report_not_found")


def test_another_context_supports_nothing(answering: Upstream, proxy: Proxy) -> None:
    messages = [{"role": "system", "content": "The weather in Paris was mild. Trains ran late."}, MESSAGES[1]]
    assert labels(ask(proxy, messages).json()["grounding"]) == ["unsupported"] * 2


@pytest.mark.parametrize("role", ["assistant", None])
def test_earlier_answers_and_questions_are_no_sources(role: str | None, answering: Upstream, proxy: Proxy) -> None:
    messages = [{"role": role, "content": CONTEXT}, MESSAGES[1]] if role else MESSAGES[1:]
    report = ask(proxy, messages).json()["grounding"]
    assert (report["status"], report["verdict"], report["score"]) == ("skipped", "not_checked", None)
    reason = report["choices"][0]["claims"][0]["reason"]
    assert f'| `skipped`, "{reason}" |' in TROUBLE


def test_images_are_listed_in_the_warnings(answering: Upstream, proxy: Proxy) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [image, {"type": "text", "text": QUESTION}]}]
    (warning,) = ask(proxy, messages).json()["grounding"]["warnings"]
    (quoted,) = re.findall(r"`warnings` has `(.*?)`", TROUBLE)
    assert quoted in warning


def test_an_answer_without_claims_is_not_applicable(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello! How can I help you?"))
    report = ask(proxy).json()["grounding"]
    assert (report["status"], report["verdict"]) == ("complete", "not_applicable")
    assert [claim["skip_reason"] for claim in report["choices"][0]["claims"]] == ["greeting", "question"]


def test_a_misspelt_option_is_named(proxy: Proxy) -> None:
    response = ask(proxy, grounding={"modes": "async"})
    assert response.status_code == 400
    assert f"`{response.json()['error']['message']}`" in TROUBLE


def test_a_broken_connection_is_an_error_of_the_page(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = lambda received: 1 / 0  # type: ignore[assignment,return-value]
    response = ask(proxy)
    assert f"| {response.status_code} `{response.json()['error']['code']}` |" in TROUBLE


def test_the_pages_name_codes_of_the_proxy() -> None:
    codes = re.findall(r"^\| \d{3} (.*?) \|", TROUBLE, re.MULTILINE)
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "proxy/groundwire").rglob("*.py") if path.name != "cli.py"
    )
    assert codes
    assert [code for row in codes for code in re.findall(r"`(\w+)`", row) if f'"{code}"' not in source] == []


# --- comparison -------------------------------------------------------------------------------------------------------


def test_every_statement_of_the_comparison_has_its_source() -> None:
    page = PAGES["comparison"]
    body, sources = page.split("## Sources")
    marks = {"¹": 1, "²": 2, "³": 3, "⁴": 4, "⁵": 5, "⁶": 6, "⁷": 7, "⁸": 8, "⁹": 9, "¹⁰": 10}
    numbered = re.findall(r"^(\d+)\. .*https://", sources, re.MULTILINE)
    cited = {marks[mark] for mark in re.findall("¹⁰|[¹²³⁴-⁹]", body)}
    assert sorted(cited) == [int(number) for number in numbered]
