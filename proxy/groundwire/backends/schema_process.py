"""Validate answers against clients' JSON schemas in a separate process, which is killed when it takes too long.

A thread would not do: the library holds the GIL while it validates, and a schema of a few hundred bytes can keep it
busy for minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from groundwire.dialects.jsonbytes import dumps
from groundwire.report import Violation
from groundwire.verifiers import json_schema
from groundwire.verifiers.json_schema import HEADER
from groundwire.verifiers.schema import TOO_LONG_ANSWER, SchemaResult

log = structlog.get_logger("groundwire.schema")

DEFAULT_CPU_SECONDS = 0.2
MAX_SCHEMA_BYTES = 2**18
MAX_ANSWER_CHARS = 2**20
_MAX_REPLY_BYTES = 2**20  # a hundred violations of at most 800 characters, escaped, are far less
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_TOO_LONG = SchemaResult("not_checked", reason="validating the answer against the JSON schema takes too long")
_TOO_LARGE = SchemaResult(
    "not_checked", reason=f"the JSON schema is larger than {MAX_SCHEMA_BYTES // 2**10} KiB, or nested too deeply"
)
_BUSY = SchemaResult("not_checked", reason="there was no time to validate the answer against the JSON schema")
_NO_PROCESS = SchemaResult("not_checked", reason="the process that validates JSON schemas cannot be started")
_INVALID = SchemaResult("invalid", (Violation("", None, "the JSON schema", "another shape"),))


class SchemaProcess:
    """A process that validates one answer after another, started on first use. Used from one event loop.

    `cpu_seconds` is the processor time allowed for one answer.
    """

    def __init__(self, cpu_seconds: float = DEFAULT_CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def validate(self, texts: Sequence[str], schema: Mapping[str, Any], seconds: float) -> list[SchemaResult]:
        """Validate JSON texts against a schema, all of them within so many `seconds`.

        The texts after one that took too long are not checked either. Raises nothing but cancellation.
        """
        encoded_schema = await asyncio.to_thread(_encode_schema, schema)
        if encoded_schema is None:
            return [_TOO_LARGE] * len(texts)
        results: list[SchemaResult] = []
        unchecked = _BUSY
        try:
            async with asyncio.timeout(seconds), self._turn:
                unchecked = _TOO_LONG
                while len(results) < len(texts) and results[-1:] != [_TOO_LONG]:
                    results.append(await self._validated(encoded_schema, texts[len(results)]))
        except TimeoutError:
            pass
        return [*results, *[unchecked] * (len(texts) - len(results))]

    async def _validated(self, schema: bytes, text: str) -> SchemaResult:
        if len(text) > MAX_ANSWER_CHARS:
            return TOO_LONG_ANSWER
        result = None
        try:
            if self._process is None or self._process.returncode is not None:
                self._process = await self._start()
            result = await _validate_text(self._process, schema, text)
        except OSError as error:
            log.warning("schema.no_process", error=type(error).__name__)
            return _NO_PROCESS
        finally:
            if result in (None, _TOO_LONG, _INVALID):
                await self.aclose()
        return result

    async def _start(self) -> asyncio.subprocess.Process:
        """Start the process without the variables that hold secrets, and out of reach of a terminal's Ctrl-C."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            json_schema.__file__,
            str(self._cpu_seconds),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            start_new_session=True,
            limit=_MAX_REPLY_BYTES,
        )

    async def aclose(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())


def _encode_schema(schema: Mapping[str, Any]) -> bytes | None:
    """Return a schema as JSON, or None when it is too large or too deep."""
    try:
        encoded_schema = dumps(schema)
    except RecursionError:
        return None
    return encoded_schema if len(encoded_schema) <= MAX_SCHEMA_BYTES else None


async def _validate_text(process: asyncio.subprocess.Process, schema: bytes, text: str) -> SchemaResult:
    """Validate one text in the process, which ends when the answer takes too long."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    encoded = text.encode("utf-8", "surrogatepass")
    outcome = None
    try:
        process.stdin.write(HEADER.pack(len(schema), len(encoded)) + schema + encoded)
        await process.stdin.drain()
        outcome, reason = json.loads(await process.stdout.readline())
        rows = json.loads(await process.stdout.readline())
    except (OSError, ValueError):
        return _INVALID if outcome == "invalid" else _TOO_LONG
    return SchemaResult(outcome, tuple(Violation(*row) for row in rows), reason)
