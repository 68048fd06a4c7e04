"""Check an installation: settings, upstreams, judge, stores and port. Each finding says what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rich.console import Console

from groundwire.backends.loading import load_judge
from groundwire.config import Settings, load_settings
from groundwire.container import Container, build_container
from groundwire.domain import Claim, Source
from groundwire.errors import ConfigError, GroundwireError, MissingExtra, RequestError
from groundwire.evidence.index import Context
from groundwire.gateway.forward import MAX_LIST, chunks_of, models_in, read
from groundwire.http.app import build_app
from groundwire.http.run import listen
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.telemetry import configure_logs
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Call

if TYPE_CHECKING:
    from groundwire.storage.history.history import History

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


def examine(file: Path | None, *, as_json: bool) -> int:
    """Run all checks of a settings file and the environment, and print their findings.

    Returns 1 if one is an error, else 0.
    """
    if file and not file.exists():
        findings = [Finding("settings", "error", f"{file}: there is no such file", "Give another one with --config.")]
    else:
        findings = asyncio.run(_collect(file))
    if as_json:
        print(json.dumps([asdict(each) for each in findings], indent=2))
    else:
        _print(findings)
    return int(any(each.level == "error" for each in findings))


async def _collect(file: Path | None) -> list[Finding]:
    unknown: list[str] = []
    container = None
    try:
        settings = load_settings(file, os.environ, unknown.append)
        configure_logs(settings.telemetry.model_copy(update={"log_level": "critical"}))
        container = build_container(settings, os.environ, judge=Judge())  # `_judge` loads the model, once
        build_app(settings, container, os.environ)  # reads the keys
        read = Finding("settings", "ok", f"read from {file}" if file else "the defaults and the environment")
        checks = [each async for each in _checks(settings, container)]
        return [read, *_unknown(unknown), *checks]
    except ConfigError as error:
        is_missing = isinstance(error, MissingExtra)
        remedy = "Run that command, or remove the setting." if is_missing else f"Correct {file or 'the environment'}."
        problems = [Finding("settings", "error", problem, remedy) for problem in error.problems]
        return [*problems, *_unknown(unknown)]
    finally:
        if container is not None:
            with suppress(Exception):
                await container.close()


def _unknown(problems: Iterable[str]) -> Iterator[Finding]:
    for problem in problems:
        yield Finding("settings", "warning", problem, "Correct the variable, or unset it.")


async def _checks(settings: Settings, container: Container) -> AsyncIterator[Finding]:
    for upstream in container.passage.router.upstreams:
        yield await _upstream(upstream, settings.upstreams[upstream.name].base_url)
    yield await asyncio.to_thread(_judge, settings)
    if container.history is None:
        yield Finding("store", "ok", "in memory", "Set store.url to keep answers for review.")
    else:
        yield await _store(container.history, str(settings.store.url))
    if container.shared is not None:
        ping = container.shared.ask(lambda client: client.ping())
        yield await _reach("redis", ping, "Is cache.redis_url right?")
    yield _port(settings)


async def _upstream(upstream: Upstream, base_url: str | None) -> Finding:
    """Ask a model server for its models."""
    part = f"upstream {upstream.name}"
    remedy = f"Start it, or correct upstreams.{upstream.name}.base_url."
    start = time.perf_counter()
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reply = await upstream.send(Call("GET", "/models", (), b""))
            async with aclosing(chunks_of(reply)) as chunks:
                body, _ = await read(chunks, MAX_LIST)
    except TimeoutError:
        return Finding(part, "error", f"no answer within {_TIMEOUT_S:g} s", remedy)
    except RequestError as error:
        return Finding(part, "error", error.operator.removeprefix(f"upstream {upstream.name!r} at "), remedy)
    took = f"{(time.perf_counter() - start) * 1000:.0f} ms"
    if reply.status in (401, 403):
        remedy = f"Set upstreams.{upstream.name}.api_key_env, or let clients send their own keys."
        return Finding(part, "warning", f"refuses requests without a key (status {reply.status})", remedy)
    if reply.status != 200:
        is_bare = base_url is not None and not urlsplit(base_url).path.strip("/")
        remedy = f"Most need /v1: {base_url.rstrip('/')}/v1" if base_url and is_bare else f"Is {base_url} its base_url?"
        return Finding(part, "warning", f"does not list its models (status {reply.status})", remedy)
    count = len(models_in(body))
    return Finding(part, "ok", f"{count} model{'' if count == 1 else 's'}, {took}")


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


async def _store(history: History, url: str) -> Finding:
    """Ask the database; a file of SQLite, or its folder, must be writable if it exists."""
    remedy = "Is store.url right, and may its user create tables?"
    scheme, _, path = url.partition(":///")
    if scheme.startswith("sqlite"):
        file = Path(path.partition("?")[0])
        existing = next((each for each in (file, file.parent) if each.exists()), None)
        if existing is None:
            remedy = f"Create the folder {file.parent}, or correct store.url."
        elif not os.access(existing, os.W_OK):
            return Finding("store", "error", f"{existing} cannot be written", "Correct its permissions, or store.url.")
    return await _reach("store", history.check(), remedy)


async def _reach(part: str, check: Awaitable[Any], remedy: str) -> Finding:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await check
    except TimeoutError:
        return Finding(part, "error", f"no answer within {_TIMEOUT_S:g} s", remedy)
    except Exception as error:  # noqa: BLE001 - any error is the finding
        cause = error.__cause__ or error
        return Finding(part, "error", str(getattr(cause, "orig", cause)) or type(cause).__name__, remedy)
    return Finding(part, "ok", "reachable")


def _port(settings: Settings) -> Finding:
    host, port = settings.server.host, settings.server.port
    try:
        listen(host, port).close()
    except GroundwireError as error:
        detail, _, remedy = str(error).partition(". ")
        return Finding("port", "warning", detail, remedy or "Correct server.host or server.port.")
    return Finding("port", "ok", f"{host}:{port} is free")


def _print(findings: list[Finding]) -> None:
    console = Console()
    for each, following in zip(findings, [*findings[1:], None], strict=True):
        sign, style = _STYLES[each.level]
        console.print(f"[{style}]{sign}[/{style}] {each.part:<18}", end=" ")
        console.print(each.detail, markup=False, highlight=False, soft_wrap=True)
        if each.remedy and (following is None or following.remedy != each.remedy):
            console.print(f"{'':21}{each.remedy}", style="dim", markup=False, highlight=False, soft_wrap=True)
