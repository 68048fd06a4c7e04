"""A report through the proxy is the one that the pure pipeline makes of the same exchange."""

import asyncio
import json
from typing import Any

import pytest

from bench.suites.case import read
from groundwire.container import Container
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import read_request
from groundwire.domain import Choice
from groundwire.pipeline import prepare, verify
from tests.gateway.exchanges import answered, essence, events, grounding_in, house, streaming, whole

EXAMPLES = [
    (row["document"], " ".join(each["text"] for each in row["sentences"][at : at + 12]))
    for row in read("everyday.jsonl")
    for at in range(0, len(row["sentences"]), 12)
]


def sent(document: str, **more: Any) -> dict[str, Any]:
    question = {"role": "user", "content": "What does it say?"}
    return {"model": "m", "messages": [{"role": "system", "content": document}, question], **more}


def through(serving: Container, request: dict[str, Any]) -> dict[str, Any]:
    """Return the report of the proxy."""

    async def work() -> dict[str, Any]:
        _, raw = await answered(serving, request)
        await serving.close()
        return grounding_in(raw)

    return without_config(essence(asyncio.run(work())))


def without_config(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the digest of the policy, which only a gateway has."""
    return {name: value for name, value in report.items() if name != "config"}


def pure(request: dict[str, Any], answer: str) -> dict[str, Any]:
    """Return the report of the pipeline."""
    read = read_request(CHAT, json.dumps(request).encode(), {})
    context = prepare(read.exchange()).context
    return without_config(essence(verify([Choice(0, answer, "stop")], context, ask=read.ask)))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_proxy_and_the_pipeline_report_the_same(streamed: bool) -> None:
    assert len(EXAMPLES) >= 20
    for document, answer in EXAMPLES:
        pieces = [answer[at : at + 30] for at in range(0, len(answer), 30)]
        request = sent(document, stream=streamed)
        model = streaming(events(pieces)) if streamed else whole(answer, usage={})
        found = through(house(model, grounding={"timeout": "60s"}), request)
        assert json.dumps(found) == json.dumps(pure(request, answer))
