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

from groundwire.container import Container

log = structlog.get_logger("groundwire.server")


class RunningApp:
    """An application and its container, from their start until the last request has been answered."""

    def __init__(self, app: Starlette, container: Container) -> None:
        self.container = container
        self._app = app
        self._requests = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_over = asyncio.Event()
        self._lifespan: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self._requests += 1
        self._is_idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._is_idle.set()

    async def start(self) -> None:
        """Start the components. Raises their errors."""
        started = asyncio.get_running_loop().create_future()
        self._lifespan = asyncio.create_task(self._live(started))
        await started

    async def _live(self, started: asyncio.Future[None]) -> None:
        """Enter and leave the application's lifespan in one task, as its task groups require."""
        try:
            async with self._app.router.lifespan_context(self._app):
                started.set_result(None)
                await self._is_over.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    async def drain(self) -> None:
        """Close the components once the last request has been answered."""
        self.container.stop_reporting()
        await self._is_idle.wait()
        try:
            await self.stop()
        except Exception:
            log.exception("app.close_failed")

    async def stop(self) -> None:
        """Close the components, even with active requests."""
        self._is_over.set()
        if self._lifespan is not None:
            await self._lifespan


class Serving:
    """An ASGI application that delegates to the current one; `background` is a task that runs while it serves."""

    def __init__(self, app: Starlette, container: Container) -> None:
        self.background: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._current = RunningApp(app, container)
        self._draining: dict[RunningApp, asyncio.Task[None]] = {}

    @property
    def container(self) -> Container:
        """The current components."""
        return self._current.container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the current application, to its end even after a swap."""
        if scope["type"] == "lifespan":
            await self._run(receive, send)
        else:
            await self._current(scope, receive, send)

    async def swap(self, app: Starlette, container: Container) -> None:
        """Replace the application, once the new components have started. Raises their errors."""
        running = RunningApp(app, container)
        await running.start()
        previous, self._current = self._current, running
        self._draining[previous] = asyncio.create_task(previous.drain())
        self._draining[previous].add_done_callback(lambda _: self._draining.pop(previous))

    async def _run(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._current.start()
        except Exception:  # noqa: BLE001 - uvicorn logs any error and stops
            await send({"type": "lifespan.startup.failed", "message": traceback.format_exc()})
            return
        background = asyncio.create_task(self.background()) if self.background else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if background is not None:
            background.cancel()
            with suppress(asyncio.CancelledError):
                await background
        for running in (*self._draining, self._current):
            await running.stop()
        await send({"type": "lifespan.shutdown.complete"})
