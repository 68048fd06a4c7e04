"""Settings that change while it serves: read and tried first, then in force for all that comes, or not at all.

Requests in hand are answered under the settings that they came under. What lasts (stored and kept reports, verdicts,
jobs, telemetry) is handed from one house to the next.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import structlog

from proxy.config import Settings
from proxy.errors import ConfigError
from proxy.gateway.verify import policy_digest
from proxy.server.app import build_app
from proxy.server.serving import Serving
from proxy.server.standing import Standing, room_of
from proxy.wiring import House, build_house

log = structlog.get_logger("groundwire.config")

_LOOK_EVERY_S = 1.0
_AT_START = ("host", "port", "max_head", "read_timeout", "write_timeout", "keep_alive", "watch")  # of section server
_FOR_LIFE = ("store", "jobs", "webhook", "telemetry")  # sections whose parts last as long as the process


class Reload:
    """Reads the settings again, with `load`, and has `serving` follow them. One reading at a time."""

    def __init__(
        self,
        serving: Serving,
        standing: Standing,
        load: Callable[[], Settings],
        environ: Mapping[str, str] = os.environ,
        changed: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        self._serving = serving
        self._standing = standing
        self._load = load
        self._environ = environ
        self._changed = changed
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Has the settings read again beside everything else, as on SIGHUP."""
        task = asyncio.get_running_loop().create_task(self.now())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def now(self) -> None:
        """Reads the settings again. What is wrong with them is logged and shown by /readyz; then all stays as it is."""
        async with self._turn:
            try:
                settings = await self._followed()
            except ConfigError as error:
                self._standing.config = "invalid"
                log.error("config.invalid", problems=error.problems)
            except Exception:
                self._standing.config = "failed"
                log.exception("config.failed")
            else:
                self._standing.config = None
                self._standing.admission.room = room_of(settings.server)
                self._changed(settings)

    async def _followed(self) -> Settings:
        """The settings that are in force now. Raises ConfigError, and whatever keeps the new house from starting."""
        before = self._serving.house
        wanted = await asyncio.to_thread(self._load)
        settings, late = in_force(wanted, before.settings)
        if late:
            log.warning("config.needs_restart", keys=late)
        house = await asyncio.to_thread(build_house, settings, self._environ, before=before)
        try:
            await self._serving.follow(build_app(settings, house, self._environ, self._standing), house)
        except BaseException:
            await _demolished(house)
            raise
        sections = sections_that_differ(settings, before.settings)
        log.info("config.loaded", changed=sections, config=policy_digest(settings.policy))
        return settings


async def _demolished(house: House) -> None:
    house.renounce()
    await house.close()


def in_force(wanted: Settings, before: Settings) -> tuple[Settings, list[str]]:
    """The wanted settings, less what only a restart can change, and the keys of that."""
    server = {key: getattr(before.server, key) for key in _AT_START}
    late = [f"server.{key}" for key, value in server.items() if getattr(wanted.server, key) != value]
    sections: dict[str, Any] = {name: getattr(before, name) for name in _FOR_LIFE}
    late += [name for name, section in sections.items() if getattr(wanted, name) != section]
    sections["server"] = wanted.server.model_copy(update=server)
    return wanted.model_copy(update=sections), late


def sections_that_differ(one: Settings, other: Settings) -> list[str]:
    """The names of the sections that are not the same."""
    return [name for name in Settings.model_fields if getattr(one, name) != getattr(other, name)]


def watching(file: Path, changed: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Coroutine[Any, Any, None]]:
    """What runs beside the server to call `changed` whenever the file holds something else than it does now.

    It is read every second: what mounts of containers and network file systems would tell of a change is not certain.
    """
    seen = _content(file)

    async def watch() -> None:
        nonlocal seen
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            found = await asyncio.to_thread(_content, file)
            if found is not None and found != seen:
                seen = found
                await changed()

    return watch


def _content(file: Path) -> bytes | None:
    """What is in the file; None while there is none, as between two steps of an editor."""
    try:
        return file.read_bytes()
    except OSError:
        return None
