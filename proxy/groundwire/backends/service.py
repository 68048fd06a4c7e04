"""A user's HTTP service as an estimator; docs/information-budget.md describes its contract."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from groundwire.backends.asking import Asking, Refused
from groundwire.backends.estimator import groups
from groundwire.domain import Claim, Estimate, Probability, Source, Unavailable

VERSION = 1


class ServiceEstimator:
    """Query a service that returns probabilities; see `Estimator`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the service's probability of one claim."""
        (estimate,) = await self._group([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the service's probabilities of several claims on one context, one call for each group, all
        concurrently.
        """
        asked = groups(claims, self._asking.limits.batch_size)
        found = await asyncio.gather(*(self._group(group, context) for group in asked))
        return [estimate for group in found for estimate in group]

    async def _group(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        answer = await self._asking.ask(await asyncio.to_thread(question, claims, context))
        if isinstance(answer, Unavailable):
            return [answer] * len(claims)
        if isinstance(answer, Refused):
            return [self._asking.failed(f"status {answer.status}")] * len(claims)
        return read(answer, len(claims))


def question(claims: Sequence[Claim], context: Sequence[Source]) -> Mapping[str, Any]:
    """Return the question to the service: the sources, and the claims with ids counted from "1"."""
    numbered = [_claim(claim, str(place)) for place, claim in enumerate(claims, start=1)]
    return {"version": VERSION, "context": [_source(each) for each in context], "claims": numbered}


def read(answer: Mapping[str, Any], count: int) -> tuple[Estimate, ...]:
    """Return the probabilities in an answer about `count` claims; an entry that is missing, repeated or invalid is
    unavailable.
    """
    listed = answer.get("estimates")
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return tuple(_estimate([each for each in entries if each.get("id") == str(n)]) for n in range(1, count + 1))


def _estimate(entries: Sequence[Mapping[str, Any]]) -> Estimate:
    if len(entries) != 1:
        return Unavailable("no_verdict" if not entries else "misaligned")
    value = entries[0].get("probability")
    bounds = (entries[0].get("lower", value), value, entries[0].get("upper", value))
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in bounds):
        return Unavailable("no_verdict")
    lower, value, upper = map(float, bounds)
    contradiction = entries[0].get("contradiction")
    is_number = isinstance(contradiction, int | float) and not isinstance(contradiction, bool)
    is_sound = contradiction is None or (is_number and 0.0 <= contradiction <= 1.0)
    if not (is_sound and 0.0 <= lower <= value <= upper <= 1.0):
        return Unavailable("no_verdict")
    return Probability(
        value, lower, upper, "service", contradiction=None if contradiction is None else float(contradiction)
    )


def _source(source: Source) -> Mapping[str, str]:
    return {"id": source.id, **({"title": source.title} if source.title else {}), "text": source.text}


def _claim(claim: Claim, id_: str) -> Mapping[str, str]:
    return {"id": id_, "claim": claim.text, **({"said_before": claim.lead} if claim.lead else {})}
