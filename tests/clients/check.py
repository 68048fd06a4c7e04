"""Compare real clients directly and through the proxy: `make clients`.

Every script of this folder takes a base URL, uses its SDK as applications do, and prints the results as one line of
JSON. Both runs must agree; with the proxy, `grounding` may name the place of the report in the SDK. No model is needed:
a scripted model server answers.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import structlog

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.edge.ollama_like import OllamaLike  # noqa: E402  - of the edge tests
from tests.edge.proxies import serving  # noqa: E402
from tests.edge.shapes import (  # noqa: E402
    call_block,
    call_item,
    message,
    message_events,
    response,
    response_events,
    text_block,
    text_item,
)
from tests.edge.upstream import (  # noqa: E402
    Received,
    Reply,
    Upstream,
    as_json,
    body_reply,
    chat_body,
    chat_events,
    stream_reply,
    tool_call_events,
    tool_call_message,
    well_behaved,
)

LONGEST_S = 600


TEXT = "The sky is blue. Grass is red."


def answer(received: Received) -> Reply:
    """A tool call when tools are offered, JSON when a schema is given, else two sentences."""
    if received.path.startswith("/api/"):
        return OllamaLike(TEXT, thinking="They ask for a colour.")(received)
    for path, say in (("/responses", in_responses), ("/messages", in_messages), ("/count_tokens", counted)):
        if received.path.endswith(path):
            return say(received.json())
    if not received.path.endswith("/chat/completions"):
        return well_behaved(received)
    asked = received.json()
    has_result = any(message.get("role") == "tool" for message in asked["messages"])
    wants_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    if asked.get("tools") and not has_result:
        name = asked["tools"][0]["function"]["name"]
        arguments = json.dumps({"colour": "blue"})
        if asked.get("stream"):
            return stream_reply(tool_call_events(name, arguments, include_usage=wants_usage))
        return body_reply(chat_body("", message=tool_call_message(name, arguments), finish_reason="tool_calls"))
    text = '{"colour": "blue"}' if asked.get("response_format") else TEXT
    if asked.get("stream"):
        return stream_reply(chat_events(text, include_usage=wants_usage))
    return body_reply(chat_body(text))


def in_responses(asked: dict[str, Any]) -> Reply:
    """The same in OpenAI's Responses."""
    colour = '{"colour": "blue"}'
    text = colour if (asked.get("text") or {}).get("format") else TEXT
    item = call_item(colour) if asked.get("tools") else text_item(text)
    return stream_reply(response_events(item)) if asked.get("stream") else body_reply(as_json(response(item)))


def in_messages(asked: dict[str, Any]) -> Reply:
    """The same in Anthropic's Messages."""
    block, reason = (call_block(colour="blue"), "tool_use") if asked.get("tools") else (text_block(TEXT), "end_turn")
    if asked.get("stream"):
        return stream_reply(message_events(block, stop_reason=reason))
    return body_reply(as_json(message(block, stop_reason=reason)))


def counted(_: dict[str, Any]) -> Reply:
    """Return the number of tokens of a message."""
    return body_reply(b'{"input_tokens": 12}')


def run(command: list[str], base_url: str) -> dict[str, Any]:
    """Run a script; return the JSON in its last line."""
    done = subprocess.run([*command, base_url], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def check(name: str, command: list[str], direct: str, through: str) -> bool:
    """Run a script both ways; print and return the outcome."""
    try:
        expected, found = run(command, direct), run(command, through)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        print(f"✗ {name}: {error}")
        return False
    shown = found.pop("grounding", None)
    expected.pop("grounding", None)
    if found != expected:
        print(f"✗ {name}: {expected} became {found}")
        return False
    print(f"✓ {name}: {', '.join(found)} as without the proxy; report shown: {shown or 'by its id in the header'}")
    return True


def main(python: str, node_modules: Path) -> int:
    """Run the Python scripts with `python`, and those for Node next to its modules; return 1 when any failed."""
    commands = {each.stem.removeprefix("with_"): [python, str(each)] for each in sorted(HERE.glob("with_*.py"))}
    for script in sorted(node_modules.glob("with_*.mjs")):
        commands[f"{script.stem.removeprefix('with_')} (Node)"] = ["node", str(script)]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with Upstream() as upstream, tempfile.TemporaryDirectory() as folder:
        upstream.reply = answer
        config = {
            "upstreams": {"up": {"base_url": upstream.base_url, "ollama": "yes"}},
            "stream": {"tail_budget": "10s"},
        }
        with serving(config, Path(folder), {}) as proxy:
            went = [check(name, command, upstream.base_url, proxy.base_url) for name, command in commands.items()]
    return 0 if went and all(went) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
