"""Reload of settings while serving: they are parsed and tried first, then applied to new requests, or not at all.

Active requests are answered with their original settings. Lasting parts (stored reports, verdicts, jobs, telemetry) are
handed to the new instance.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import structlog

from groundwire.config import Settings
from groundwire.container import House, build_house
from groundwire.errors import ConfigError
from groundwire.http.app import build_app
from groundwire.http.process_state import Standing, room_of
from groundwire.http.serving import Serving
from groundwire.pipeline import policy_digest

log = structlog.get_logger("groundwire.config")

_LOOK_EVERY_S = 1.0
_AT_START = (
    "host",
    "port",
    "max_head",
    "read_timeout",
    "write_timeout",
    "keep_alive",
    "watch",
)  # keys of section server
_FOR_LIFE = ("store", "jobs", "webhook", "telemetry")  # sections whose components live as long as the process


class Reload:
    """Reload the settings with `load` and apply them to `serving`. One reload at a time."""

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
        """Reload in the background, as on SIGHUP."""
        task = asyncio.get_running_loop().create_task(self.now())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def now(self) -> None:
        """Reload the settings. Errors are logged and shown by /readyz, and nothing changes."""
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
        """Apply the new settings and return them. Raises ConfigError, and any error from starting the new
        components.
        """
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
    """Return the new settings without changes that need a restart, and the keys of these changes."""
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
    """Return a background task that calls `changed` whenever the content of the file changes.

    It is read every second, because change notification is unreliable on container mounts and network file systems.
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
    """Return the content of the file; None if it does not exist, as between two steps of an editor."""
    try:
        return file.read_bytes()
    except OSError:
        return None
