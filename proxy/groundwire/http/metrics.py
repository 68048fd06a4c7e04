"""The endpoint from which Prometheus fetches metrics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from groundwire.config import Settings
from groundwire.errors import ConfigError
from groundwire.http.admin import read_keys, require_admin
from groundwire.http.endpoints import Handler
from groundwire.telemetry import INSTALL
from groundwire.telemetry.metrics import Metrics
from groundwire.upstream.http import header
from groundwire.wire import Call, Reply

_NOT_INSTALLED = Reply(
    501,
    ((b"content-type", b"text/plain; charset=utf-8"),),
    f"There are no metrics because prometheus-client is not installed: {INSTALL}\n".encode(),
)


def metrics_handler(metrics: Metrics | None, settings: Settings, environ: Mapping[str, str] = os.environ) -> Handler:
    """Return the handler of the metrics, for everybody or for admins. Raises ConfigError if no admin key exists.

    They are rendered in a thread, which takes some milliseconds. Without metrics the reply names the missing library.
    """

    async def answer(call: Call, _: Mapping[str, str]) -> Reply:
        if metrics is None:
            return _NOT_INSTALLED
        accept = (header(call.headers, b"accept") or b"").decode("latin-1")
        text, content_type = await asyncio.to_thread(metrics.registry.render, accept)
        return Reply(200, ((b"content-type", content_type.encode()),), text)

    if settings.telemetry.metrics_access == "open":
        return answer
    admin = settings.admin
    file = Path(admin.keys_file) if admin.keys_file else None
    keys = read_keys(admin.keys, file, environ.get(admin.key_env))
    if not keys.digests:
        raise ConfigError(["telemetry.metrics_access: admin: there is no admin key"])
    return require_admin(keys, lambda call, params, _: answer(call, params))
