"""Reload of settings while serving: build a new container from them, swap it in, or leave everything as it was.

Active requests are answered with their original settings, and the previous container is closed after the last one. Only
`ProcessState` and `ProcessResources` are the same before and after; caches and counters of limits start anew.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import structlog

from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.errors import ConfigError
from groundwire.http.app import build_app
from groundwire.http.process_state import ProcessState, traffic_limits
from groundwire.http.serving import Serving
from groundwire.pipeline import policy_digest

log = structlog.get_logger("groundwire.config")

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
