"""The pages and the API over a real store, with exchanges that were really verified, and admins to visit them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from sqlalchemy import RowMapping, select
from starlette.applications import Starlette
from starlette.routing import Route

from groundwire.config import Admin, Telemetry
from groundwire.config.settings import Store
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Exchange, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.http.app import admin_routes
from groundwire.http.endpoints import Endpoint, EndpointContext
from groundwire.http.pages.playground import Playground
from groundwire.pipeline import verify
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Content, Entry
from groundwire.storage.history.history import History
from groundwire.storage.history.tables import AUDIT
from groundwire.storage.memory import Reports
from groundwire.telemetry import build_telemetry

KEYS = {"ann": "the-key-of-ann-1234", "ben": "the-key-of-ben-5678"}
SOURCE = "In 2023 revenue was $4.2 million. Profit fell to $700K. The board met in Oslo."
ANSWER = "Revenue was $4.2M in 2023. Profit rose to $900K. Nobody lives on the moon of Titan."
QUESTION = "How did we do in 2023?"


def exchange(
    id_: str = "gw-1",
    *,
    answer: str = ANSWER,
    source: str = SOURCE,
    title: str | None = None,
    question: str = QUESTION,
    model: str = "m-1",
    subject: str | None = None,
    at: float | None = None,
) -> Entry:
    """An exchange whose answer was verified against one source; two of the claims of the usual one are flagged."""
    choices = [Choice(0, answer, "stop")]
    given = Source("s1", "source", source, title=title)
    report = replace(verify(choices, Context(gather(Exchange(sources=(given,))))), id=id_)
    return Entry(at or time.time(), report, dumps(report.to_dict()), model, question, tuple(choices), subject)


@dataclass
class Site:
    """The application over a store, and the store."""

    app: Starlette
    history: History
    database: Database
    reports: Reports = field(default_factory=lambda: Reports(0))

    async def audited(self) -> Sequence[RowMapping]:
        """The entries of the audit log, newest first."""
        return await self.database.fetch(select(AUDIT).order_by(AUDIT.c.id.desc()))

    def client(self) -> httpx.AsyncClient:
        """A browser without a session."""
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://site", follow_redirects=False
        )

    def api(self, who: str = "ann") -> httpx.AsyncClient:
        """A program with the key of an admin."""
        client = self.client()
        client.headers["authorization"] = f"Bearer {KEYS[who]}"
        return client

    async def signed_in(self, who: str = "ann") -> httpx.AsyncClient:
        """A browser in which an admin has signed in."""
        browser = self.client()
        form = fields((await browser.get("/sign-in")).text)
        reply = await post(browser, "/sign-in", {**form, "key": KEYS[who]})
        assert reply.status_code == 303, reply.text
        return browser


def fields(page: str) -> dict[str, str]:
    """The hidden fields of the first form of a page."""
    found: dict[str, str] = {}
    for tag in page.partition("</form>")[0].split("<input ")[1:]:
        tag = tag.partition(">")[0]
        if 'type="hidden"' in tag:
            found[_attribute(tag, "name")] = unescape(_attribute(tag, "value"))
    return found


def _attribute(tag: str, name: str) -> str:
    return tag.partition(f'{name}="')[2].partition('"')[0]


async def post(browser: httpx.AsyncClient, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
    """Send a form as browsers do."""
    kind = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    return await browser.post(path, content=urlencode(form).encode(), headers={**kind, **headers})


@asynccontextmanager
async def site(
    folder: Path, *entries: Entry, content: Content = "full", session_s: float = 3600.0
) -> AsyncIterator[Site]:
    """A site over a new SQLite file that holds these exchanges."""
    database = Database(f"sqlite:///{folder}/history.db")
    await database.migrate()
    history = History(database, Store(content=content, interval=0.0))
    history.start()
    try:
        for entry in entries:
            history.record(entry)
        assert await history.writer.flush()
        reports = Reports(2**20)
        yield Site(application(history, session_s, reports), history, database, reports)
    finally:
        await history.close()


def application(history: History, session_s: float = 3600.0, reports: Reports | None = None) -> Starlette:
    """The paths of admins as a separate application."""
    context = EndpointContext(build_telemetry(Telemetry(log_level="error")), 2**20, 15.0)
    keys = {who: f"sha256:{sha256(key.encode()).hexdigest()}" for who, key in KEYS.items()}
    routes = admin_routes(
        history, reports or Reports(0), Admin(keys=keys, session=session_s), {}, secrets.token_bytes(32)
    )
    routes += Playground(verify=_unused, complete=_unused, degraded=tuple, has_store=True).routes()
    return Starlette(
        routes=[Route(path, Endpoint(context, path, handle), methods=[method]) for path, method, handle in routes]
    )


async def _unused(*_: Any) -> Any:
    raise AssertionError("no page for reviews verifies an answer")


Work = Callable[[Site], Coroutine[Any, Any, None]]


def visit(folder: Path, work: Work, *entries: Entry, **options: Any) -> None:
    """Run `work` on a site that holds these exchanges."""

    async def run() -> None:
        async with site(folder, *entries, **options) as here:
            await work(here)

    asyncio.run(run())
