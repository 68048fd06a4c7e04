"""Check an installation: settings, upstreams, judge, stores and port. Each finding says what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from groundwire.backends.loading import load_judge
from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.domain import Claim, Source
from groundwire.errors import ConfigError, GroundwireError, RequestError
from groundwire.evidence.index import Context
from groundwire.gateway.forward import MAX_LIST, chunks_of, models_in, read
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.telemetry import configure_logs
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Call

Level = Literal["ok", "warning", "error"]

_TIMEOUT_S = 5.0
_STYLES: Mapping[Level, tuple[str, str]] = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "red")}
_PROBE = Source("s", "source", "The clinic opens at nine in the morning.")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `remedy` is empty when there is nothing to do."""

    part: str
    level: Level
    detail: str
    remedy: str = ""


def examine(load: Callable[[], Settings], file: Path | None, *, as_json: bool) -> int:
    """Run all checks and print their findings. Returns 1 if one is an error, else 0."""
    findings = asyncio.run(_collect(load, file))
    if as_json:
        print(json.dumps([asdict(each) for each in findings], indent=2))
    else:
        _print(findings)
    return int(any(each.level == "error" for each in findings))


async def _collect(load: Callable[[], Settings], file: Path | None) -> list[Finding]:
    try:
        settings = load()
        configure_logs(settings.telemetry.model_copy(update={"log_level": "critical"}))
        container = build_container(settings, os.environ, judge=Judge())  # `_judge` loads the model, once
    except ConfigError as error:
        remedy = f"Correct {file or 'the environment'}; groundwire config shows what is in effect."
        return [Finding("settings", "error", problem, remedy) for problem in error.problems]
    found = [Finding("settings", "ok", f"read from {file}" if file else "the defaults and the environment")]
    try:
        found.extend([each async for each in _checks(settings, container)])
    finally:
        with suppress(Exception):
            await container.close()
    return found


async def _checks(settings: Settings, container: Container) -> AsyncIterator[Finding]:
    for upstream in container.passage.router.upstreams:
        yield await _upstream(upstream)
    yield await asyncio.to_thread(_judge, settings)
    if container.history is None:
        yield Finding("store", "ok", "in memory", "Set store.url to keep answers for review.")
    else:
        remedy = "Is store.url right, and may its user create tables?"
        yield await _reach("store", container.history.check(), remedy)
    if container.shared is not None:
        ping = container.shared.ask(lambda client: client.ping())
        yield await _reach("redis", ping, "Is cache.redis_url right?")
    yield _port(settings)


async def _upstream(upstream: Upstream) -> Finding:
    """Ask a model server for its models."""
    part = f"upstream {upstream.name}"
    start = time.perf_counter()
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reply = await upstream.send(Call("GET", "/models", (), b""))
            async with aclosing(chunks_of(reply)) as chunks:
                body, _ = await read(chunks, MAX_LIST)
    except TimeoutError:
        return Finding(part, "error", f"no answer within {_TIMEOUT_S:g} s", "Is its base_url right, and is it running?")
    except RequestError as error:
        return Finding(part, "error", error.operator or str(error), "Is its base_url right, and is it running?")
    took = f"{(time.perf_counter() - start) * 1000:.0f} ms"
    if reply.status in (401, 403):
        remedy = f"Set upstreams.{upstream.name}.api_key_env, or let clients send their own keys."
        return Finding(part, "warning", f"refuses requests without a key (status {reply.status})", remedy)
    if reply.status != 200:
        return Finding(part, "warning", f"does not list its models (status {reply.status})")
    return Finding(part, "ok", f"{len(models_in(body))} models, {took}")


def _judge(settings: Settings) -> Finding:
    """Judge a sentence by the embedded model; a language model is only named, because its answers may cost money."""
    by = settings.judge.by
    if by == "off":
        remedy = "judge.by: encoder is far more often right."
        return Finding("judge", "warning", "off: words alone decide", remedy)
    start = time.perf_counter()
    try:
        judge = load_judge(settings.judge.encoder if settings.judge.is_language else settings.judge)
    except GroundwireError as error:
        return Finding("judge", "error", str(error), "Is the model's folder complete? judge.model: shipped needs none.")
    loaded = time.perf_counter() - start
    claim = Claim("c1", "The clinic opens at 9 am.", 0, 25, "statement")
    label = judge.one(claim, Context([_PROBE]), Policy()).verdict.label
    name = f"{by}, with the encoder as fallback" if settings.judge.is_language else settings.judge.model
    return Finding("judge", "ok", f"{name}: loaded in {loaded:.1f} s, a test claim is {label}")


async def _reach(part: str, check: Awaitable[Any], remedy: str) -> Finding:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await check
    except TimeoutError:
        return Finding(part, "error", f"no answer within {_TIMEOUT_S:g} s", remedy)
    except Exception as error:  # noqa: BLE001 - any error is the finding
        return Finding(part, "error", str(error) or type(error).__name__, remedy)
    return Finding(part, "ok", "reachable")


def _port(settings: Settings) -> Finding:
    server = settings.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    address = f"{server.host}:{server.port}"
    try:
        socket.create_server((server.host, server.port), family=family).close()
    except OSError as error:
        remedy = "Is Groundwire running already? Else set server.port."
        return Finding("port", "warning", f"{address}: {error.strerror or error}", remedy)
    return Finding("port", "ok", f"{address} is free")


def _print(findings: list[Finding]) -> None:
    console = Console()
    for each in findings:
        sign, style = _STYLES[each.level]
        console.print(f"[{style}]{sign}[/{style}] {each.part:<18}", end=" ")
        console.print(each.detail, markup=False, highlight=False)
        if each.remedy:
            console.print(f"{'':21}{each.remedy}", style="dim", markup=False, highlight=False)
