"""One corrective retry for an answer that breaks its schema; the answer stays as it is and never waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from groundwire.backends.schema_process import SchemaProcess
from groundwire.dialects.request import Request
from groundwire.gateway.deferred import Heard
from groundwire.gateway.repeat import MAX_REPEATED, Repeat, Repeated
from groundwire.gateway.workers import Workers
from groundwire.pipeline import MAX_VIOLATIONS
from groundwire.report import Correction, Report, Violation
from groundwire.telemetry import Telemetry
from groundwire.upstream.router import Route
from groundwire.verifiers.schema import NO_JSON, read_evidence
from groundwire.wire import Call

_MAX_LISTED = 20  # violations in the message to the model
_AT_ONCE = 8
_VALIDATING_S = 2.0
_MESSAGE = (
    "Your answer does not have the form that was asked for:\n{violations}\n"
    "Reply with the whole answer once more in that form, and with nothing else. Do not change what it says."
)


@dataclass(frozen=True, slots=True)
class CorrectionSettings:
    """Correction of every answer that violates its schema (`enabled`), or of those whose requests ask for it.

    `timeout` is in seconds.
    """

    enabled: bool = False
    on_request: bool = True
    timeout: float = 60.0


class Corrector:
    """Requests corrections of answers that violate their schema, a bounded number at a time."""

    def __init__(
        self, settings: CorrectionSettings, telemetry: Telemetry, schemas: SchemaProcess, workers: Workers
    ) -> None:
        self.settings = settings
        self.telemetry = telemetry
        self.schemas = schemas
        self.workers = workers
        self.at_once = asyncio.Semaphore(_AT_ONCE)

    def begin(self, request: Request, route: Route, call: Call) -> Correcting | None:
        """Return the correction of the answer to a request sent as `call`; None if it is not wanted."""
        is_asked = request.options.corrective_retry
        if not (is_asked or self.settings.enabled):
            return None
        is_allowed = self.settings.enabled or self.settings.on_request
        refusal = "not_allowed" if not is_allowed else "too_large" if len(call.body) > MAX_REPEATED else ""
        return Correcting(self, Repeat(self.telemetry, request, route, call), refusal)


class Correcting:
    """The correction of one answer, which begins once its violations are known; a `refusal` is why there is none."""

    def __init__(self, parts: Corrector, repeat: Repeat, refusal: str) -> None:
        self._parts = parts
        self._repeat = repeat
        self._refusal = refusal

    def due(self, report: Report, heard: Heard) -> Correction | None:
        """Return the state of the correction before the model is asked; None if there is nothing to correct."""
        if not report.violations:
            return None
        if self._refusal:
            return Correction("failed", reason=self._refusal)
        if len(_texts(heard)) != 1:
            return Correction("failed", reason="several_choices")
        return Correction("pending")

    async def complete(self, report: Report, heard: Heard) -> Correction:
        """Ask for the correction and validate it. Raises nothing but cancellation."""
        try:
            async with asyncio.timeout(self._parts.settings.timeout), self._parts.at_once:
                said = await self._asked(_texts(heard)[0], report.violations or ())
            violations = None if said.reason else await self._violations(said.text)
        except TimeoutError:
            return Correction("failed", reason="timeout")
        except Exception:  # noqa: BLE001 - no fault of a correction may reach a report
            return Correction("failed", reason="error")
        return Correction(
            "failed" if said.reason else "complete",
            said.text or None,
            violations,
            said.prompt_tokens,
            said.completion_tokens,
            said.reason,
        )

    async def _asked(self, answer: str, violations: Sequence[Violation]) -> Repeated:
        dialect, message = self._repeat.request.dialect, _MESSAGE.format(violations=_listed(violations))
        body = dialect.continued(await self._repeat.body(), answer, message)
        return await self._repeat.ask(body, "correction")

    async def _violations(self, text: str) -> tuple[Violation, ...]:
        ask = self._repeat.request.ask
        found = await self._parts.workers.insist(_broken, text, ask.evidence_fields) if ask.evidence_fields else ()
        if ask.json_schema is not None:
            (result,) = await self._parts.schemas.validate([text], ask.json_schema, _VALIDATING_S)
            found = (*found, *result.violations)
        return tuple(dict.fromkeys(found))[:MAX_VIOLATIONS]


def _texts(heard: Heard) -> list[str]:
    return [choice.text for choice in heard.choices if choice.text]


def _broken(text: str, fields: Sequence[str]) -> tuple[Violation, ...]:
    try:
        return read_evidence(json.loads(text), fields)[1]
    except (ValueError, RecursionError):
        return (NO_JSON,)


def _listed(violations: Sequence[Violation]) -> str:
    """Return violations as lines for a model, the first of them where there are many."""
    lines = [
        f"- {each.field or 'the answer'}{'' if each.index is None else f'[{each.index}]'}: "
        f"expected {each.expected}, found {each.found}"
        for each in violations[:_MAX_LISTED]
    ]
    more = len(violations) - _MAX_LISTED
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])
