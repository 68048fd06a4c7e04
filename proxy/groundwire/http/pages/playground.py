"""The pages that need no store: a landing page, and a playground that checks an answer against pasted sources."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from groundwire.dialects.checks import AnswerCheck, read_answer_check
from groundwire.dialects.dialect import openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.request import Request
from groundwire.errors import RequestError
from groundwire.extras import install_command, is_installed
from groundwire.gateway.forward import chunks_of
from groundwire.http.exchange import Handler, error_reply
from groundwire.http.guard import Guard
from groundwire.http.pages.rendering import Rendering, Segment, Span, cut, form_fields
from groundwire.offload import offloaded
from groundwire.wire import Call, Chunks, Headers, Reply, header

MAX_FORM = 256 * 2**10
"""Maximum size of the form in bytes; longer texts belong into a request."""

PENDING_AFTER_S = 0.4
"""Seconds after which the page is begun without its result, which follows when it is ready."""

_RESULT = b"<!--result-->"  # where the result begins on the page; what users typed is escaped
_FIELDS = ("sources", "question", "answer", "model", "key", "action")
_RULE = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_TOO_LONG = f"The form takes at most {MAX_FORM // 1024} KiB. Longer texts can be sent to POST /v1/grounding/verify."
_OTHER_SITE = "This form was sent by another site, so it was not processed."
_NO_ANSWER = "Paste an answer to check, or choose a model and ask it."
_EXAMPLE = {
    "sources": "In 2023 revenue was $4.2 million. Profit fell to $700K, after a fire in the Lyon plant.\n---\n"
    "The board meets on the first Monday of each quarter. Minutes are published within ten days.",
    "question": "How did we do in 2023, and when does the board meet?",
    "answer": "Revenue was $4.2M in 2023. Profit rose to $900K. The board meets every month. Sales in Asia doubled.",
}


_NOT_INSTALLED = Reply(
    501,
    ((b"content-type", b"text/plain; charset=utf-8"),),
    f"Groundwire is running; /readyz lists degraded parts. Its pages need: {install_command('pages')}\n".encode(),
)


@dataclass(frozen=True, slots=True)
class Result:
    """An answer and the report on it; segments of the answer refer to claims by their position in `claims`."""

    answer: str
    report: Mapping[str, Any]
    segments: Sequence[Segment[int]] = ()
    claims: Sequence[Mapping[str, Any]] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def count(self, *labels: str) -> int:
        """Return the number of claims with one of these labels."""
        return sum(claim["label"] in labels for claim in self.claims)


@dataclass(frozen=True)
class Playground:
    """The handlers of the landing page and the playground. Templates are loaded with the first page.

    `verify` returns the report on an answer as JSON, `complete` the reply of a model to a chat request. `degraded`
    lists degraded parts and reasons. Without a guard no keys are needed.
    """

    verify: Callable[[AnswerCheck, Request], Awaitable[bytes]]
    complete: Callable[[Call], Awaitable[Reply]]
    degraded: Callable[[], Iterable[tuple[str, str]]]
    guard: Guard | None = None
    models: Sequence[str] = ()
    has_store: bool = False

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return path, method and handler of each page, and of the assets of all pages."""
        return (
            ("/", "GET", self.home),
            ("/playground", "GET", self.form),
            ("/playground", "POST", self.check),
            ("/assets/{name}", "GET", self.asset),
        )

    @cached_property
    def _rendering(self) -> Rendering:
        return Rendering()

    async def asset(self, _: Call, params: Mapping[str, str]) -> Reply:
        """Return a style sheet, script or picture."""
        if not is_installed("pages"):
            return _NOT_INSTALLED
        return self._rendering.asset(params["name"]) or Reply(404, ((b"content-type", b"text/plain"),), b"not found")

    async def home(self, call: Call, _: Mapping[str, str]) -> Reply:
        """Show whether the proxy works, and the one line that an application changes."""
        host = (header(call.headers, b"host") or b"127.0.0.1:8080").decode("latin-1")
        scheme = "https" if header(call.headers, b"x-forwarded-proto") == b"https" else "http"
        degraded = tuple(self.degraded())
        return self._page("home.html", 200, base_url=f"{scheme}://{host}/v1", degraded=degraded)

    async def form(self, call: Call, _: Mapping[str, str]) -> Reply:
        """Show the empty form, or the example."""
        filled = _EXAMPLE if "example" in call.target.partition("?")[2] else {}
        return self._show(filled)

    async def check(self, call: Call, _: Mapping[str, str]) -> Reply:
        """Check the answer of the form, or ask a model for one, and show the claims with their evidence."""
        if len(call.body) > MAX_FORM:
            return self._show({}, _TOO_LONG, 413)
        fields = await offloaded(form_fields, call.body)
        form = {name: fields.get(name, "") for name in _FIELDS}
        if (header(call.headers, b"sec-fetch-site") or b"same-origin") not in (b"same-origin", b"none"):
            return self._show({}, _OTHER_SITE, 403)
        asks = form["action"] == "ask" and bool(form["model"])
        if not asks and not form["answer"].strip():
            return self._show(form, _NO_ANSWER, 400)
        checking = asyncio.ensure_future(self._checked(form, call, asks=asks))
        try:
            await asyncio.wait({checking}, timeout=None if form["action"] == "json" else PENDING_AFTER_S)
        except asyncio.CancelledError:
            checking.cancel()
            raise
        if checking.done():
            return checking.result()
        begun = self._show({**form, "answer": ""} if asks else form, is_pending=True)
        return Reply(200, (*begun.headers, (b"x-accel-buffering", b"no")), _continued(begun, checking))

    async def _checked(self, form: Mapping[str, str], call: Call, *, asks: bool) -> Reply:
        """Return the page or the file with the report, or the page with the error."""
        try:
            key = ((b"authorization", f"Bearer {form['key'].strip()}".encode()),)
            with await self.guard.admit(key, call.address) if self.guard else nullcontext() as admitted:
                tenant = admitted.tenant if admitted else ""
                answer, report = await (self._ask(form, call, tenant) if asks else self._verify(form, tenant))
        except RequestError as error:
            return self._show(form, str(error), error_reply(error, openai_error).status)
        return await offloaded(self._present, {**form, "answer": answer}, report)

    def _present(self, form: Mapping[str, str], report: Mapping[str, Any]) -> Reply:
        """Return the report as a page or as JSON; for many claims this takes too long for the event loop."""
        if form["action"] == "json":
            headers: Headers = (
                (b"content-type", b"application/json"),
                (b"content-disposition", b'attachment; filename="grounding.json"'),
                (b"cache-control", b"no-store"),
            )
            return Reply(200, headers, json.dumps(report, indent=2, ensure_ascii=False).encode())
        return self._show(form, result=_result(form["answer"], report))

    async def _verify(self, form: Mapping[str, str], tenant: str) -> tuple[str, Mapping[str, Any]]:
        body = {"answer": form["answer"], "question": form["question"], "sources": _sources(form["sources"])}
        check, request = await offloaded(read_answer_check, dumps(body), {}, tenant)
        return form["answer"], await offloaded(json.loads, await self.verify(check, request))

    async def _ask(self, form: Mapping[str, str], call: Call, tenant: str) -> tuple[str, Mapping[str, Any]]:
        """Return the answer of a model to the question, and the report that came with it, or else a separate one."""
        documents = "\n".join(f'<doc id="{at}">{text}</doc>' for at, text in enumerate(_sources(form["sources"]), 1))
        system = f"Answer the question from these documents, and from nothing else.\n{documents}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": form["question"]}]
        headers: Headers = ((b"content-type", b"application/json"),)
        body = dumps({"model": form["model"], "messages": messages})
        reply = await self.complete(
            Call("POST", "/chat/completions", headers, body, tenant=tenant, address=call.address)
        )
        async with aclosing(chunks_of(reply)) as chunks:
            found = await offloaded(_object, b"".join([chunk async for chunk in chunks]))
        if reply.status != 200 or not found.get("choices"):
            error = found.get("error")
            message = error.get("message") if isinstance(error, dict) else None
            raise RequestError(f"The model server answered with status {reply.status}: {message or 'no reason given'}")
        content = found["choices"][0]["message"].get("content") or ""
        report = found.get("grounding") or {}
        if report.get("status") in ("complete", "partial"):
            return content, report
        return await self._verify({**form, "answer": content}, tenant)

    def _show(
        self,
        form: Mapping[str, str],
        problem: str = "",
        status: int = 200,
        result: Result | None = None,
        *,
        is_pending: bool = False,
    ) -> Reply:
        values = {"form": form, "problem": problem, "result": result, "is_pending": is_pending, "here": "playground"}
        return self._page("playground.html", status, **values)

    def _page(self, template: str, status: int, **values: Any) -> Reply:
        if not is_installed("pages"):
            return _NOT_INSTALLED
        return self._rendering.page(
            template,
            status,
            request=None,
            models=self.models,
            needs_key=self.guard is not None,
            has_store=self.has_store,
            **values,
        )


def _object(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a body, an empty one if it is anything else."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _continued(begun: Reply, checking: asyncio.Future[Reply]) -> Chunks:
    """Yield the page up to its result, and the rest once there is one."""
    assert isinstance(begun.body, bytes)  # noqa: S101 - see `Rendering.page`
    try:
        yield begun.body.partition(_RESULT)[0]
        shown = (await checking).body
        assert isinstance(shown, bytes)  # noqa: S101 - see `Rendering.page`
        yield shown.partition(_RESULT)[2]
    finally:
        checking.cancel()


def _sources(text: str) -> list[str]:
    """Split the sources of the form at lines of dashes."""
    return [part.strip() for part in _RULE.split(text) if part.strip()]


def _result(answer: str, report: Mapping[str, Any]) -> Result:
    claims = [claim for choice in report.get("choices", ()) for claim in choice["claims"]]
    spans = [Span(claim["start"], claim["end"], at) for at, claim in enumerate(claims) if "pointer" not in claim]
    names = {source["id"]: source.get("title") or source.get("label") or source["id"] for source in report["sources"]}
    return Result(answer, report, cut(answer, spans), claims, names)
