"""Run the HTTP application with uvicorn, until a signal stops it.

Readiness fails first, then streams complete, then the server stops.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import structlog
import uvicorn
from starlette.types import ASGIApp

from groundwire.backends.loading import LoadingModel
from groundwire.config import Server as ServerSettings
from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.errors import GroundwireError, system_message
from groundwire.extras import require_extras
from groundwire.http.app import ProcessState, build_app
from groundwire.http.connection import Connection
from groundwire.http.serving import Reload, Serving, watch_file
from groundwire.telemetry import configure_logs

log = structlog.get_logger("groundwire.server")

_LOAD_S = 30.0  # maximum time that an agent waits for the model
_FLUSH_S = 1.0  # minimum time for finished answers to reach slow readers


class Server(uvicorn.Server):
    """uvicorn's server with a graceful shutdown on the first SIGTERM or SIGINT, and an immediate one on the
    second.

    By `settings` it accepts requests for `drain_delay`, and answers may continue for `drain`. `on_hangup` is called on
    SIGHUP.
    """

    def __init__(self, config: uvicorn.Config, state: ProcessState, settings: ServerSettings) -> None:
        super().__init__(config)
        self.settings = settings
        self.on_hangup: Callable[[], None] | None = None
        self._state = state
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
        if self.on_hangup is not None:
            loop.add_signal_handler(signal.SIGHUP, self._on_sighup, self.on_hangup)
        try:
            yield
        finally:
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(each)

    def _on_sighup(self, on_hangup: Callable[[], None]) -> None:
        """Handle SIGHUP, unless the terminal was closed: then exit."""
        if self._has_terminal and not os.isatty(0):
            os._exit(128 + signal.SIGHUP)
        on_hangup()

    def _on_stop_signal(self, number: signal.Signals) -> None:
        if self._stopping is not None:
            log.warning("server.forced_exit", requests=self._state.admission.active)
            os._exit(128 + number)
        self._stopping = asyncio.get_running_loop().create_task(self.stop())

    async def stop(self) -> None:
        """Reject new requests, wait for the active ones, and shut the server down."""
        admission, settings = self._state.admission, self.settings
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


_SWITCH_S = 0.001  # maximum time that a worker thread may block the event loop; Python's default is 5 ms
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_FILES = 2**16  # if the system sets no limit
_COLLECT_AFTER = (5_000, 5, 5)  # Python's 700, 10, 10 spends a twentieth of the time; 20, 20: once in 24,000 answers


def _is_not_about_unfinished_response(record: logging.LogRecord) -> bool:
    """Filter uvicorn's warnings about responses left unfinished because their upstream broke off; ours say why."""
    return "without completing response" not in record.getMessage()


def server(settings: Settings, load: Callable[[], Settings] | None = None, file: Path | None = None) -> Server:
    """Build the server for `settings` without starting it. Raises ConfigError when the components cannot be built.

    `load` reloads the settings; `file` contains them.
    """
    configure_logs(settings.telemetry)
    logging.getLogger("uvicorn.error").addFilter(_is_not_about_unfinished_response)
    sys.setswitchinterval(_SWITCH_S)
    state, container = ProcessState.initial(settings.server), build_container(settings)
    if container.telemetry.events is not None:
        configure_logs(settings.telemetry, container.telemetry)
    serving = Serving(build_app(settings, container, state=state), container)
    running = Server(uvicorn_config(serving, settings.server), state, settings.server)
    if load is not None:
        reload = Reload(serving, state, load, on_change=lambda changed: setattr(running, "settings", changed.server))
        running.on_hangup = reload.begin
        serving.background = watch_file(file, reload.now) if file and settings.server.watch else None
    return running


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
    running = server(settings, load, file)
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
