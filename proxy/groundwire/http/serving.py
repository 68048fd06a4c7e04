"""Serve the current application, and reload the settings: build a new container and swap it in, or change nothing.

Active requests are answered with their original settings, and the previous container is closed after the last one. Only
`ProcessState` and `ProcessResources` are the same before and after; caches and counters of limits start anew.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.errors import ConfigError
from groundwire.http.app import ProcessState, build_app, traffic_limits
from groundwire.pipeline import policy_digest

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


_POLL_INTERVAL_S = 1.0
_SERVER_KEYS_AT_START = ("host", "port", "max_head", "read_timeout", "write_timeout", "keep_alive", "watch")
_SECTIONS_AT_START = ("store", "jobs", "webhook", "telemetry")  # of `ProcessResources`


class Reload:
    """Reload the settings with `load` and apply them to `serving`. One reload at a time."""

    def __init__(
        self,
        serving: Serving,
        state: ProcessState,
        load: Callable[[], Settings],
        environ: Mapping[str, str] = os.environ,
        on_change: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        self._serving = serving
        self._state = state
        self._load = load
        self._environ = environ
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Reload in the background, as on SIGHUP."""
        task = asyncio.get_running_loop().create_task(self.now())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def now(self) -> None:
        """Reload the settings. Errors are logged and shown by /readyz, and nothing changes."""
        async with self._lock:
            try:
                settings = await self._apply()
            except ConfigError as error:
                self._state.config = "invalid"
                log.error("config.invalid", problems=error.problems)
            except Exception:
                self._state.config = "failed"
                log.exception("config.failed")
            else:
                self._state.config = None
                self._state.admission.limits = traffic_limits(settings.server)
                self._on_change(settings)

    async def _apply(self) -> Settings:
        """Apply the new settings and return them. Raises ConfigError, and any error from starting the new
        components.
        """
        current = self._serving.container
        loaded = await asyncio.to_thread(self._load)
        settings, late = without_late_changes(loaded, current.settings)
        if late:
            log.warning("config.needs_restart", keys=late)
        container = await asyncio.to_thread(build_container, settings, self._environ, resources=current.resources)
        try:
            await self._serving.swap(build_app(settings, container, self._environ, self._state), container)
        except BaseException:
            await container.close()
            raise
        changed = changed_sections(settings, current.settings)
        log.info("config.loaded", changed=changed, config=policy_digest(settings.policy))
        return settings


def without_late_changes(loaded: Settings, current: Settings) -> tuple[Settings, list[str]]:
    """Return the loaded settings without changes that need a restart, and the keys of these changes."""
    server = {key: getattr(current.server, key) for key in _SERVER_KEYS_AT_START}
    late = [f"server.{key}" for key, value in server.items() if getattr(loaded.server, key) != value]
    sections: dict[str, Any] = {name: getattr(current, name) for name in _SECTIONS_AT_START}
    late += [name for name, section in sections.items() if getattr(loaded, name) != section]
    sections["server"] = loaded.server.model_copy(update=server)
    return loaded.model_copy(update=sections), late


def changed_sections(one: Settings, other: Settings) -> list[str]:
    """Return the names of the sections that differ."""
    return [name for name in Settings.model_fields if getattr(one, name) != getattr(other, name)]


def watch_file(
    file: Path, on_change: Callable[[], Coroutine[Any, Any, None]]
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a background task that calls `on_change` whenever the content of the file changes.

    It is read every second, because change notification is unreliable on container mounts and network file systems.
    """
    known = _content(file)

    async def watch() -> None:
        nonlocal known
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            content = await asyncio.to_thread(_content, file)
            if content is not None and content != known:
                known = content
                await on_change()

    return watch


def _content(file: Path) -> bytes | None:
    """Return the content of the file; None if it does not exist, as between two steps of an editor."""
    try:
        return file.read_bytes()
    except OSError:
        return None
