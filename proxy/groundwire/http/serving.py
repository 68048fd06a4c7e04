"""Swap the application on reload; the previous one finishes its active requests."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from groundwire.container import House

log = structlog.get_logger("groundwire.server")


class Tenancy:
    """An application with its components, from their start until its last request has been answered."""

    def __init__(self, app: Starlette, house: House) -> None:
        self.app = app
        self.house = house
        self.requests = 0
        self._left = asyncio.Event()
        self._emptied = asyncio.Event()
        self._living: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start the components. Raises their errors."""
        started = asyncio.get_running_loop().create_future()
        self._living = asyncio.create_task(self._live(started))
        await started

    async def _live(self, started: asyncio.Future[None]) -> None:
        """Enter and leave the application's lifespan in one task, as its task groups require."""
        try:
            async with self.app.router.lifespan_context(self.app):
                started.set_result(None)
                await self._left.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    def gone(self) -> None:
        """Record that a request has been answered."""
        self.requests -= 1
        if not self.requests:
            self._emptied.set()

    async def retire(self) -> None:
        """Close the components once the last request has been answered."""
        while self.requests:
            self._emptied.clear()
            await self._emptied.wait()
        await self.end()

    async def end(self) -> None:
        """Close the components, even with active requests."""
        self._left.set()
        if self._living is not None:
            await self._living


class Serving:
    """An ASGI application that delegates to the current one. `beside` is a background task that runs while serving."""

    def __init__(self, app: Starlette, house: House) -> None:
        self.beside: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._now = Tenancy(app, house)
        self._earlier: dict[Tenancy, asyncio.Task[None]] = {}

    @property
    def house(self) -> House:
        """The current components."""
        return self._now.house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the current application, to its end even after a swap."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        tenancy = self._now
        tenancy.requests += 1
        try:
            await tenancy.app(scope, receive, send)
        finally:
            tenancy.gone()

    async def follow(self, app: Starlette, house: House) -> None:
        """Replace the application, once the new components have started. Raises their errors."""
        tenancy = Tenancy(app, house)
        await tenancy.begin()
        before, self._now = self._now, tenancy
        before.house.hand_over_to(house)
        self._earlier[before] = asyncio.create_task(self._retired(before))

    async def _retired(self, tenancy: Tenancy) -> None:
        try:
            await tenancy.retire()
        except Exception:
            log.exception("house.not_closed")
        finally:
            del self._earlier[tenancy]

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._now.begin()
        except Exception:  # noqa: BLE001 - whatever it is, uvicorn says it and stops
            await send({"type": "lifespan.startup.failed", "message": traceback.format_exc()})
            return
        beside = asyncio.create_task(self.beside()) if self.beside else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if beside is not None:
            beside.cancel()
            with suppress(asyncio.CancelledError):
                await beside
        for tenancy in (*self._earlier, self._now):
            await tenancy.end()
        await send({"type": "lifespan.shutdown.complete"})
