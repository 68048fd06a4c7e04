"""Runs the HTTP application with uvicorn until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys

import uvicorn

from proxy.config import Settings
from proxy.errors import ConfigError
from proxy.server.app import build_app
from proxy.telemetry import configure_logs
from proxy.wiring import build_house

_SWITCH_S = 0.001  # how long a worker thread may keep the event loop waiting; Python's default is 5 ms
_DRAIN_S = 30
_COLLECT_AFTER = (5_000, 20, 20)  # Python's 700, 10, 10 spends a twentieth of the time and stops all streams for 75 ms


class _Quiet(logging.Filter):
    """Drops uvicorn's complaint about responses that we left unfinished on purpose, as their upstream did."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "without completing response" not in record.getMessage()


def server(settings: Settings) -> uvicorn.Server:
    """The server for `settings`, not started yet. Raises ConfigError when the house cannot be built."""
    configure_logs(settings.telemetry)
    logging.getLogger("uvicorn.error").addFilter(_Quiet())
    sys.setswitchinterval(_SWITCH_S)
    config = uvicorn.Config(
        build_app(settings),
        host=settings.server.host,
        port=settings.server.port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    return uvicorn.Server(config)


def run(settings: Settings) -> None:
    """Serves until SIGINT or SIGTERM; says on standard error where. Raises OSError when the address is taken."""
    running = server(settings)
    family = socket.AF_INET6 if ":" in settings.server.host else socket.AF_INET
    listening = socket.create_server((settings.server.host, settings.server.port), backlog=2048, family=family)
    host, port = listening.getsockname()[:2]
    name, upstream = next(iter(settings.upstreams.items()))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    behind = upstream.base_url or upstream.litellm_model
    print(f"groundwire serves http://{address}/v1 in front of {name} ({behind})", file=sys.stderr)
    _spare_the_collector()
    running.run([listening])


def run_mcp(settings: Settings) -> None:
    """Serves agents over standard input and output until the input ends. Raises ConfigError without the extra `mcp`."""
    configure_logs(settings.telemetry)
    asyncio.run(_serve_mcp(settings))


async def _serve_mcp(settings: Settings) -> None:
    try:
        from proxy.server.mcp import mcp_server
    except ImportError as error:
        raise ConfigError(["the command needs groundwire[mcp], which is not installed"]) from error
    house = build_house(settings)
    await house.start()
    try:
        await mcp_server(house.checks).run_stdio_async()
    finally:
        await house.close()


def _spare_the_collector() -> None:
    """Has cycles looked for seldom, and never among what was there at the start; exchanges leave hardly any behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
