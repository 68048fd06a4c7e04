"""Run the HTTP application with uvicorn until it is stopped."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import math
import os
import resource
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from groundwire.config import Server as ServerSettings
from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.extras import require_extras
from groundwire.http.app import build_app
from groundwire.http.connection import ConnectionLimits, connection_factory
from groundwire.http.drain import Drain, Server
from groundwire.http.process_state import new_process_state
from groundwire.http.reload import Reload, watch_file
from groundwire.http.serving import Serving
from groundwire.telemetry import configure_logs

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
    state, container = new_process_state(settings.server), build_container(settings)
    if container.telemetry.events is not None:
        configure_logs(settings.telemetry, container.telemetry)
    serving = Serving(build_app(settings, container, state=state), container)
    running = Server(uvicorn_config(serving, settings.server), state, _drain(settings))
    if load is not None:
        reload = Reload(serving, state, load, on_change=lambda changed: setattr(running, "drain", _drain(changed)))
        running.on_hangup = reload.begin
        serving.background = watch_file(file, reload.now) if file and settings.server.watch else None
    return running


def _drain(settings: Settings) -> Drain:
    return Drain(settings.server.drain_delay, settings.server.drain)


def uvicorn_config(app: ASGIApp, settings: ServerSettings) -> uvicorn.Config:
    """Return the configuration of uvicorn: connections with limits, no headers or access log of its making."""
    limits = ConnectionLimits(settings.max_head, settings.read_timeout, settings.write_timeout)
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=connection_factory(limits),
        ws="none",
        proxy_headers=False,  # client addresses come from addresses.py
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=math.ceil(settings.keep_alive),
    )


def run(load: Callable[[], Settings], file: Path | None = None) -> None:
    """Serve until SIGINT or SIGTERM; print the address on standard error. Raises OSError when it is taken.

    `load` reads the settings, from `file` if there is one; it is called again on reload.
    """
    return_freed_memory()
    settings = load()
    running = server(settings, load, file)
    family = socket.AF_INET6 if ":" in settings.server.host else socket.AF_INET
    listening = socket.create_server((settings.server.host, settings.server.port), backlog=2048, family=family)
    _detect_lost_clients(listening)
    _raise_file_limit()
    host, port = listening.getsockname()[:2]
    name, upstream = next(iter(settings.upstreams.items()))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    behind = upstream.base_url or upstream.litellm_model
    print(f"groundwire serves http://{address}/v1 in front of {name} ({behind})", file=sys.stderr)
    print(pages_line(settings, os.environ, address), file=sys.stderr)
    _tune_garbage_collection()
    running.run([listening])


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
