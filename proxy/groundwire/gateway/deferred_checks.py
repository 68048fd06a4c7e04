"""Checks of facts and traces that were cut short, completed by a job."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.domain import Cause, Judgement
from groundwire.gateway.deferred import CHECK, CHECK_PREFIX, Later, longest_wait

_CUT_SHORT: frozenset[Cause] = frozenset({"rate_limited", "unreachable", "overload", "timeout"})

Rendered = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckJob:
    """A check to be done again: of which `kind`, its body, and for which model and tenant.

    `kept` are the ids of the facts that the memory holds meanwhile, in the order of the check.
    """

    kind: str
    check: Rendered
    tenant: str = ""
    kept: tuple[str | None, ...] = ()
    origin: str | None = None

    def write(self) -> bytes:
        """Return the job as JSON."""
        return dumps({name: getattr(self, name) for name in ("kind", "check", "tenant", "kept", "origin")})

    @staticmethod
    def read(payload: bytes) -> CheckJob:
        """Restore the output of `write`."""
        found = loads(payload)
        return CheckJob(**{**found, "kept": tuple(found["kept"])})


def is_cut_short(judgements: Sequence[Judgement]) -> bool:
    """Return whether a claim was not measured for lack of capacity, time or a model."""
    budgets = (judgement.budget for judgement in judgements)
    return any(each.missing.cause in _CUT_SHORT for each in budgets if each and each.missing)


async def deferred(found: Rendered, judgements: Sequence[Judgement], job: CheckJob, later: Later | None) -> Rendered:
    """Return the result of a check, with the id of the job that completes it where it was cut short and can be left."""
    if later is None or not is_cut_short(judgements):
        return found
    id_ = CHECK_PREFIX + secrets.token_hex(12)
    if not await later.defer(CHECK, id_, job.write(), job.tenant, longest_wait(judgements)):
        return found
    left = {"id": id_, "status": "deferred", **found}
    later.reports.put(id_, dumps(left), job.tenant)
    return left
