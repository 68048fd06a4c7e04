"""The demo model behind the proxy, asked with real SDKs: `groundwire demo --port`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from groundwire.demo.model import EXAMPLES, MODEL, SCENARIOS
from groundwire.integrations import GroundingStream, grounding_of

HANDBOOK, _, TICKET = SCENARIOS
SYSTEM, QUESTION = (str(message["content"]) for message in HANDBOOK.messages)
TOOL = {"name": "get_ticket", "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}}}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    code = "from groundwire.cli import main; main()"
    command = [sys.executable, "-c", code, "demo", "--port", "0", "--pace", "0"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert demo.stdout
    try:
        line = demo.stdout.readline()
        assert "base_url at http://127.0.0.1:" in line
        yield line.split("base_url at ")[1].split(",")[0]
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
        demo.wait()
        demo.stdout.close()


def test_openai_gets_the_answer_or_the_call_of_a_tool(base_url: str) -> None:
    client = openai.OpenAI(base_url=base_url, api_key="none")
    messages: Any = list(TICKET.messages)
    tools: Any = [{"type": "function", "function": TOOL}]
    called = client.chat.completions.create(model=MODEL, messages=messages[:1], tools=tools).choices[0]
    assert called.finish_reason == "tool_calls"
    assert called.message.tool_calls
    assert called.message.tool_calls[0].function.arguments == '{"id": 48213}'  # type: ignore[union-attr]
    with client.chat.completions.stream(model=MODEL, messages=messages[:1], tools=tools) as stream:
        whole = stream.get_final_completion().choices[0]
    assert whole.message.tool_calls
    assert whole.message.tool_calls[0].function.name == "get_ticket"
    answered = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    assert answered.choices[0].message.content == TICKET.answer
    assert grounding_of(answered)["verdict"] == "partially_grounded"  # type: ignore[index]


def test_anthropic_gets_the_answer_or_the_call_of_a_tool(base_url: str) -> None:
    client = anthropic.Anthropic(base_url=base_url.removesuffix("/v1"), api_key="none")
    asked: Any = {
        "model": MODEL,
        "max_tokens": 500,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": QUESTION}],
    }
    whole = client.messages.create(**asked)
    assert whole.content[0].text == HANDBOOK.answer  # type: ignore[union-attr]
    assert grounding_of(whole)["verdict"] == "grounded"  # type: ignore[index]
    stream = GroundingStream[Any](client.messages.create(**asked, stream=True))
    assert "".join(event.delta.text for event in stream if event.type == "content_block_delta") == HANDBOOK.answer
    assert stream.grounding
    assert stream.grounding["verdict"] == "grounded"

    question = {"role": "user", "content": TICKET.messages[0]["content"]}
    tools: Any = [{"name": "get_ticket", "input_schema": TOOL["parameters"]}]
    with client.messages.stream(model=MODEL, max_tokens=500, messages=[question], tools=tools) as called:  # type: ignore[list-item]
        call: Any = called.get_final_message().content[0]
    assert (call.name, call.input) == ("get_ticket", {"id": 48213})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": TICKET.messages[2]["content"]}
    dialogue: Any = [question, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    answered = client.messages.create(model=MODEL, max_tokens=500, messages=dialogue, tools=tools)
    assert answered.content[0].text == TICKET.answer  # type: ignore[union-attr]
    assert grounding_of(answered)["verdict"] == "partially_grounded"  # type: ignore[index]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_model_answers_the_questions_of_the_documentation(page: str, base_url: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    known = [question for question in EXAMPLES if question in text]
    assert known
    for question in known:
        system = re.findall(r'(?:"role": "system", "content": |system=)["\'](.*)["\'][,}]', text)[0]
        messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        answer = openai.OpenAI(base_url=base_url, api_key="none").chat.completions.create(model="m", messages=messages)
        assert answer.choices[0].message.content == EXAMPLES[question]
        report = grounding_of(answer)
        assert report
        assert [claim["label"] for claim in report["choices"][0]["claims"]] == ["supported", "contradicted"]


def test_a_port_in_use_is_one_sentence(base_url: str) -> None:
    port = base_url.split(":")[2].split("/")[0]
    code = "from groundwire.cli import main; main()"
    command = [sys.executable, "-c", code, "demo", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"127.0.0.1:{port}: Address already in use. Is Groundwire running already? --port sets another.\n"
    )
