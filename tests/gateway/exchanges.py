"""Exchanges for the gateway's tests: real judgement, a model server that is a function, and no sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import Request, read_options, read_request
from groundwire.domain import Choice, Claim, Exchange, Message, Part, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.judge import VERIFIERS, Judge, Verifier
from groundwire.offload import Workers
from groundwire.pipeline import AnswerSnapshot, Ask
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.storage.cache import VerdictCache
from groundwire.storage.memory import Reports
from groundwire.telemetry import Telemetry
from groundwire.wire import Call, Reply

FACTS = (
    "The sky is blue on a clear day. Acme earned $4.2 million in 2023. "
    "The Eiffel Tower was completed in 1889 and stands in Paris. "
    "The committee approved the budget without changes. Dr. Lee leads the research team in Oslo."
)
ANSWER = (
    "The sky is blue on a clear day. Acme earned $5.2 million in 2023. The Eiffel Tower stands in Paris. "
    "The committee rejected the budget. The moon is made of green cheese. Would you like to know more?"
)


def exchange(text: str = FACTS) -> Exchange:
    """An exchange with this text as its system prompt."""
    return Exchange((Message(0, "system", (Part(text),)),), temperature=0.0)


def sources(text: str = FACTS) -> Exchange:
    """An exchange with this text as an explicit source."""
    return Exchange(sources=(Source("s1", "source", text, labels=("1",)),))


def service(
    *,
    threads: int = 1,
    queue: int = 100,
    timeout: float = 30.0,
    entries: int = 1000,
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
    **options: Any,
) -> GroundingService:
    """The components of verification, with nothing cached."""
    cache, judge = VerdictCache(entries, 3600), Judge(verifiers=verifiers)
    options = {"policy": Policy(), "judge": judge, **options}
    return GroundingService(
        Workers(threads, queue), cache, Reports(100), telemetry=Telemetry(), timeout=timeout, **options
    )


@dataclass(frozen=True, slots=True)
class ExchangeRequest(Request):
    """A request that reads as the exchange returned by `load`."""

    load: Callable[[], Exchange] = Exchange
    checks: Ask = Ask()

    def exchange(self) -> Exchange:
        return self.load()

    @property
    def ask(self) -> Ask:
        return self.checks


def begin(
    parts: GroundingService,
    load: Callable[[], Exchange] | None = None,
    policy: Policy | None = None,
    ask: Ask = Ask(),
) -> GroundingSession:
    """Begin to verify an exchange."""
    options = read_options({}, {})
    read = ExchangeRequest(CHAT, b"{}", {}, "m", options, load=load or exchange, checks=ask)
    return GroundingSession.begin(replace(parts, policy=policy or parts.policy), read, "sync")


async def reported(session: GroundingSession, *choices: Choice, **options: Any) -> Report:
    """The report on an answer."""
    return (await session.verify(AnswerSnapshot(choices or (choice(),), **options))).report


def choice(text: str = ANSWER, finish: str | None = "stop") -> Choice:
    """One choice with `text`."""
    return Choice(0, text, finish)


def said(label: str = "supported") -> Verifier:
    """A verifier with a constant label."""

    def verify(claim: Claim, context: Context, policy: Policy) -> Verdict:
        return Verdict("statement", label, 1.0, "test", "It is said.")  # type: ignore[arg-type]

    return verify


def labels(report: Report) -> list[str]:
    """The label of every claim, in order."""
    return [judgement.verdict.label for each in report.choices for judgement in each.judgements]


def essence(report: Report | Mapping[str, Any]) -> dict[str, Any]:
    """A report as JSON values, without fields that differ between runs."""
    wire = dict(report.to_dict() if isinstance(report, Report) else report)
    for name in ("id", "timing_ms", "cache", "prompt"):
        wire.pop(name, None)
    return wire


# --- a complete container, with a function as the model server --------------------------------------------------------


def body(text: str = ANSWER, **more: Any) -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 9, "completion_tokens": 5}
    return json.dumps({"id": "a1", "model": "m-1", "choices": choices, "usage": usage, **more}).encode()


def events(pieces: Sequence[str], *, done: bool = True, finish: str | None = "stop") -> list[bytes]:
    """A streamed chat completion, event by event."""
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": piece}, None) for piece in pieces]
    deltas += [({}, finish)] if finish else []
    found = [
        {"id": "a1", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in found] + [b"data: [DONE]\n\n"] * done


class Streamed(httpx.AsyncByteStream):
    """A body in these chunks; an exception among them is raised."""

    def __init__(self, chunks: Sequence[bytes | Exception]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


Model = Callable[[httpx.Request], httpx.Response]


def whole(text: str = ANSWER, status: int = 200, **more: Any) -> Model:
    """A model server that answers with a body."""
    headers = {"content-type": "application/json"}
    raw = body(text, **more)
    return lambda _: httpx.Response(status, headers=headers, stream=Streamed([raw]))


def streaming(chunks: Sequence[bytes | Exception]) -> Model:
    """A model server that answers with a stream."""
    headers = {"content-type": "text/event-stream"}
    return lambda _: httpx.Response(200, headers=headers, stream=Streamed(chunks))


def house(
    model: Model,
    telemetry: Telemetry | None = None,
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
    environ: Mapping[str, str] | None = None,
    **sections: Any,
) -> Container:
    """A container with this model server; keywords are sections of the settings."""
    upstreams = {"up": {"base_url": "http://upstream.internal/v1"}}
    settings = Settings.model_validate({"upstreams": upstreams, "stream": {"tail_budget": "20s"}, **sections})
    transport = httpx.MockTransport(model)
    return build_container(
        settings, environ or {}, transport=transport, telemetry=telemetry, judge=Judge(verifiers=verifiers)
    )


def asked(text: str = FACTS, **more: Any) -> dict[str, Any]:
    """A request with this text as its system prompt."""
    messages = [{"role": "system", "content": text}, {"role": "user", "content": "What do you know?"}]
    return {"model": "m", "messages": messages, **more}


def call(request: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> Call:
    """The call that carries a request."""
    return Call("POST", "/chat/completions", headers, json.dumps(dict(request)).encode())


def request(**more: Any) -> Request:
    """A request as the gateway reads it."""
    return read_request(CHAT, json.dumps(asked(**more)).encode(), {})


async def answered(serving: Container, sent: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> tuple[Reply, bytes]:
    """The gateway's reply and its body."""
    reply = await serving.completions.complete(CHAT, call(sent, *headers))
    raw = reply.body if isinstance(reply.body, bytes) else b"".join([chunk async for chunk in reply.body])
    return reply, raw


def grounding_in(raw: bytes) -> dict[str, Any]:
    """The `grounding` of a body, or of the one event of a stream that carries it."""
    if not raw.startswith((b"data:", b":")):
        found = [json.loads(raw)]
    else:
        data = [line[6:] for line in raw.split(b"\n") if line.startswith(b"data: {")]
        found = [event for event in map(json.loads, data) if "grounding" in event]
    assert len(found) == 1, raw
    grounding: dict[str, Any] = found[0]["grounding"]
    return grounding
