"""Run the HTTP application with uvicorn: start it, reload its settings, and stop it on a signal.

On shutdown readiness fails first, then streams complete, then the server stops.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import logging
import math
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from groundwire.backends.loading import LoadingModel
from groundwire.config import Server as ServerSettings
from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.errors import ConfigError, GroundwireError, system_message
from groundwire.extras import require_extras
from groundwire.http.app import ProcessState, build_app, traffic_limits
from groundwire.http.connection import Connection
from groundwire.http.endpoints import Admission
from groundwire.pipeline import policy_digest
from groundwire.telemetry import configure_logs

log = structlog.get_logger("groundwire.server")

_LOAD_S = 30.0  # maximum time that an agent waits for the model
_FLUSH_S = 1.0  # minimum time for finished answers to reach slow readers
_SWITCH_S = 0.001  # maximum time that a worker thread may block the event loop; Python's default is 5 ms
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_FILES = 2**16  # if the system sets no limit
_COLLECT_AFTER = (5_000, 5, 5)  # Python's 700, 10, 10 spends a twentieth of the time; 20, 20: once in 24,000 answers
_POLL_INTERVAL_S = 1.0
_SERVER_KEYS_AT_START = ("host", "port", "max_head", "read_timeout", "write_timeout", "keep_alive", "watch")
_SECTIONS_AT_START = ("store", "jobs", "webhook", "telemetry")  # of `ProcessResources`


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
    """An ASGI application that delegates to the current one; a reload of the settings replaces that.

    A reload builds a new container and swaps it in, or changes nothing. Active requests are answered with their
    original settings, and the previous container is closed after the last one. Only `ProcessState` and
    `ProcessResources` are the same before and after; caches and counters of limits start anew. `load` reads the
    settings; they are reloaded on SIGHUP and whenever the content of `file` changes.
    """

    def __init__(
        self,
        app: Starlette,
        container: Container,
        state: ProcessState,
        load: Callable[[], Settings],
        file: Path | None = None,
    ) -> None:
        self.state = state
        self._current = RunningApp(app, container)
        self._draining: dict[RunningApp, asyncio.Task[None]] = {}
        self._load = load
        self._file = file
        self._content = _content(file) if file else None
        self._lock = asyncio.Lock()
        self._reloads: set[asyncio.Task[None]] = set()

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._current.container.settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the current application, to its end even after a swap."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._current(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._current.start()
        except Exception:  # noqa: BLE001 - uvicorn logs any error and stops
            await send({"type": "lifespan.startup.failed", "message": traceback.format_exc()})
            return
        watching = asyncio.create_task(self._watch(self._file)) if self._file else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        for running in (*self._draining, self._current):
            await running.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _watch(self, file: Path) -> None:
        """Reload whenever the content of the file changes.

        It is read every second, because change notification is unreliable on container mounts and network file systems.
        """
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            content = await asyncio.to_thread(_content, file)
            if content is not None and content != self._content:
                self._content = content
                await self.reload()

    def begin_reload(self) -> None:
        """Reload in the background, as on SIGHUP."""
        task = asyncio.get_running_loop().create_task(self.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def reload(self) -> None:
        """Reload the settings, one reload at a time. Errors are logged and shown by /readyz, and nothing changes."""
        async with self._lock:
            try:
                await self._reload()
            except ConfigError as error:
                self.state.config = "invalid"
                log.error("config.invalid", problems=error.problems)
            except Exception:
                self.state.config = "failed"
                log.exception("config.failed")
            else:
                self.state.config = None
                self.state.admission.limits = traffic_limits(self.settings.server)

    async def _reload(self) -> None:
        """Swap in an application with the new settings, once its components have started. Raises any error in them."""
        previous = self._current
        before = previous.container.settings
        settings, late = _without_late_changes(await asyncio.to_thread(self._load), before)
        if late:
            log.warning("config.needs_restart", keys=late)
        resources = previous.container.resources
        container = await asyncio.to_thread(build_container, settings, resources=resources)
        try:
            running = RunningApp(build_app(settings, container, state=self.state), container)
            await running.start()
        except BaseException:
            await container.close()
            raise
        self._current = running
        self._draining[previous] = asyncio.create_task(previous.drain())
        self._draining[previous].add_done_callback(lambda _: self._draining.pop(previous))
        changed = [name for name in Settings.model_fields if getattr(settings, name) != getattr(before, name)]
        log.info("config.loaded", changed=changed, config=policy_digest(settings.policy))


def _without_late_changes(loaded: Settings, current: Settings) -> tuple[Settings, list[str]]:
    """Return the loaded settings without changes that need a restart, and the keys of these changes."""
    server = {key: getattr(current.server, key) for key in _SERVER_KEYS_AT_START}
    late = [f"server.{key}" for key, value in server.items() if getattr(loaded.server, key) != value]
    sections: dict[str, Any] = {name: getattr(current, name) for name in _SECTIONS_AT_START}
    late += [name for name, section in sections.items() if getattr(loaded, name) != section]
    sections["server"] = loaded.server.model_copy(update=server)
    return loaded.model_copy(update=sections), late


def _content(file: Path) -> bytes | None:
    """Return the content of the file; None if it does not exist, as between two steps of an editor."""
    try:
        return file.read_bytes()
    except OSError:
        return None


class Server(uvicorn.Server):
    """uvicorn's server with a graceful shutdown on the first SIGTERM or SIGINT, and an immediate one on the second.

    For `drain_delay` it accepts further requests, and answers may continue for `drain`. SIGHUP reloads the settings.
    """

    def __init__(self, config: uvicorn.Config, serving: Serving) -> None:
        super().__init__(config)
        self._serving = serving
        self._state = serving.state
        self._has_terminal = os.isatty(0)
        self._stopping: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving. uvicorn would raise them again at the end, and exit with an error."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self._on_stop_signal, each)
        loop.add_signal_handler(signal.SIGHUP, self._on_sighup)
        try:
            yield
        finally:
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(each)

    def _on_sighup(self) -> None:
        """Handle SIGHUP, unless the terminal was closed: then exit."""
        if self._has_terminal and not os.isatty(0):
            os._exit(128 + signal.SIGHUP)
        self._serving.begin_reload()

    def _on_stop_signal(self, number: signal.Signals) -> None:
        if self._stopping is not None:
            log.warning("server.forced_exit", requests=self._state.admission.active)
            os._exit(128 + number)
        self._stopping = asyncio.get_running_loop().create_task(self.stop())

    async def stop(self) -> None:
        """Reject new requests, wait for the active ones, and shut the server down."""
        admission, settings = self._state.admission, self._serving.settings.server
        self._state.is_draining = True
        log.info("server.draining", requests=admission.active, delay_s=settings.drain_delay, limit_s=settings.drain)
        await asyncio.sleep(settings.drain_delay)
        admission.close()
        until = asyncio.get_running_loop().time() + settings.drain
        try:
            async with asyncio.timeout_at(until):
                await admission.wait_until_idle()
        except TimeoutError:
            log.warning("server.cut_off", requests=admission.active)
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.cut_off()
        rest = max(_FLUSH_S, until - asyncio.get_running_loop().time())
        self.config.timeout_graceful_shutdown = round(rest + 0.5)
        self.should_exit = True


def _is_not_about_unfinished_response(record: logging.LogRecord) -> bool:
    """Filter uvicorn's warnings about responses left unfinished because their upstream broke off; ours say why."""
    return "without completing response" not in record.getMessage()


def _server(settings: Settings, load: Callable[[], Settings], file: Path | None) -> Server:
    """Build the server without starting it. Raises ConfigError when the components cannot be built."""
    configure_logs(settings.telemetry)
    logging.getLogger("uvicorn.error").addFilter(_is_not_about_unfinished_response)
    sys.setswitchinterval(_SWITCH_S)
    state = ProcessState(Admission(traffic_limits(settings.server)))
    container = build_container(settings)
    if container.telemetry.events is not None:
        configure_logs(settings.telemetry, container.telemetry)
    app = build_app(settings, container, state=state)
    serving = Serving(app, container, state, load, file if settings.server.watch else None)
    return Server(uvicorn_config(serving, settings.server), serving)


def uvicorn_config(app: ASGIApp, settings: ServerSettings) -> uvicorn.Config:
    """Return the configuration of uvicorn: connections with limits, no headers or access log of its making."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=cast(type[asyncio.Protocol], partial(Connection, settings=settings)),
        ws="none",
        proxy_headers=False,  # client addresses come from `forwarded_address`
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=math.ceil(settings.keep_alive),
    )


def run(load: Callable[[], Settings], file: Path | None = None) -> None:
    """Serve until SIGINT or SIGTERM; print the address on standard error. Raises GroundwireError when it is taken.

    `load` reads the settings, from `file` if there is one; it is called again on reload.
    """
    return_freed_memory()
    settings = load()
    running = _server(settings, load, file)
    listening = listen(settings.server.host, settings.server.port)
    _detect_lost_clients(listening)
    _raise_file_limit()
    host, port = listening.getsockname()[:2]
    name, upstream = next(iter(settings.upstreams.items()))
    address = f"{_in_url(host)}:{port}"
    behind = upstream.base_url or upstream.litellm_model
    print(f"groundwire serves http://{address}/v1 in front of {name} ({behind})", file=sys.stderr)
    print(pages_line(settings, os.environ, address), file=sys.stderr)
    _tune_garbage_collection()
    running.run([listening])


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address; port 0 is a free one. Raises GroundwireError when it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), backlog=2048, family=family)
    except OSError as error:
        in_use = ". Is Groundwire running already? --port sets another." if error.errno == errno.EADDRINUSE else ""
        raise GroundwireError(f"{_in_url(host)}:{port}: {system_message(error)}{in_use}") from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def pages_line(settings: Settings, environ: Mapping[str, str], address: str) -> str:
    """Return where the pages for reviews and quality are, or how to get them."""
    admin = settings.admin
    missing = [] if settings.store.url else ["GROUNDWIRE_STORE__URL=sqlite:///groundwire.db"]
    if not (admin.keys or admin.keys_file or environ.get(admin.key_env)):
        missing.append(f"{admin.key_env}, a key of 16 characters or more to sign in with")
    if missing:
        return f"no review and quality pages; to get them, set {' and '.join(missing)}"
    return f"review and quality pages: http://{address}/"


def run_mcp(settings: Settings) -> None:
    """Serve agents over standard input and output until the input ends. Raises ConfigError without the extra `mcp`."""
    configure_logs(settings.telemetry)
    asyncio.run(_serve_mcp(settings))


async def _serve_mcp(settings: Settings) -> None:
    require_extras(("groundwire mcp", "mcp"))
    from groundwire.http.mcp import mcp_server

    container = build_container(settings)
    await container.start()
    try:
        model = container.encoder.model
        if isinstance(model, LoadingModel):  # else the first claims of every agent are judged by words
            await asyncio.to_thread(model.wait, _LOAD_S)
        await mcp_server(container.checks).run_stdio_async()
    finally:
        await container.close()


def _detect_lost_clients(listening: socket.socket) -> None:
    """Enable TCP keep-alive after a minute of silence; accepted connections inherit it."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _raise_file_limit() -> None:
    """Raise the limit of open files to the maximum: shells often grant 1024, and each request takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else _FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def return_freed_memory() -> None:
    """Have glibc return large blocks to the system once they are freed, and use two heaps, not eight for each core.

    By default every thread keeps up to 64 MiB of the bodies that it has read. Other C libraries have no such switches,
    and whoever sets variables of glibc wants something else.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    for option, value in ((_M_ARENA_MAX, 2), (_M_MMAP_THRESHOLD, 2**18), (_M_TRIM_THRESHOLD, 2**20)):
        mallopt(option, value)


def _tune_garbage_collection() -> None:
    """Run the garbage collector rarely, and exclude start-up objects; exchanges that are aborted leave cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
