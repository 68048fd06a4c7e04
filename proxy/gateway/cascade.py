"""The model's turn in the verification of one answer: claims that words leave open, and only those (IB5–IB7, RE1)."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from proxy.evidence.budgets import Cited, budgets
from proxy.evidence.estimator import Meter
from proxy.gateway.estimators import Asker, Estimators
from proxy.types import Budget, Claim, Judgement, Policy, StageUse, Unavailable
from proxy.verification.context.index import Context
from proxy.verification.entailment.evidence import plain_text
from proxy.verification.information.budget import measure
from proxy.verification.information.cascade import cited_evidence, is_undecided, joined

log = structlog.get_logger("groundwire.verification")

_DETERMINISTIC, _EMBEDDED = ("quote", "numeric"), ("statement",)


@dataclass(frozen=True, slots=True)
class ModelStage:
    """The last stage of the cascade, for all exchanges."""

    estimators: Estimators

    def begin(self, policy: Policy, asker: Asker) -> ModelTurn | None:
        """The turn of one exchange; None when no model is to be asked about answers."""
        return ModelTurn(self.estimators, policy, asker) if self.estimators.is_on("output_verification") else None


class ModelTurn:
    """What a model says about one answer. `used` tells what it has cost so far."""

    def __init__(self, estimators: Estimators, policy: Policy, asker: Asker) -> None:
        self._estimators = estimators
        self._policy = policy
        self._asker = asker
        self._meters: list[Meter] = []
        self._ahead: asyncio.Task[Sequence[Judgement]] | None = None
        self.used = StageUse("model", 0)

    def look_ahead(self, judgements: Sequence[Judgement], context: Context) -> None:
        """Has claims asked about that will probably stand in the answer, so that little is left at its end.

        Not of the model that is answering: that would only take longer over its answer.
        """
        if self._policy.model.backend != "self" and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.create_task(self.hear(judgements, context))

    async def hear(self, judgements: Sequence[Judgement], context: Context) -> list[Judgement]:
        """The judgements, those on undecided claims with what the model makes of them. It raises only cancellation."""
        start = time.perf_counter()
        places = [at for at, judgement in enumerate(judgements) if is_undecided(judgement, self._policy.model)]
        measured = await self._measured([judgements[at] for at in places], context)
        heard = list(judgements)
        for at, budget in zip(places, measured, strict=True):
            heard[at] = joined(judgements[at], budget, context, self._policy)
        self._count(len(places), (time.perf_counter() - start) * 1000)
        return heard

    async def _measured(self, judgements: Sequence[Judgement], context: Context) -> list[Budget]:
        if not judgements:
            return []
        asked = [_cited(each.claim, context) for each in judgements]
        try:
            opened = self._estimators.open("output_verification", self._asker)
            self._meters.append(opened.meter)
            threshold = self._policy.model.flag_threshold_bits
            return await budgets(asked, context.sources, opened.estimator, threshold)
        except Exception as error:  # noqa: BLE001 - no fault of this stage may cost the verdicts of those before it
            log.warning("model_stage.failed", error=type(error).__name__)
            return [measure(Unavailable("error"))] * len(judgements)

    def _count(self, claims: int, ms: float) -> None:
        """Counts the claims of this turn, and what all turns cost so far."""
        self.used = replace(
            self.used,
            claims=claims,
            calls=sum(meter.calls for meter in self._meters),
            prompt_tokens=sum(meter.prompt_tokens for meter in self._meters),
            completion_tokens=sum(meter.completion_tokens for meter in self._meters),
            ms=self.used.ms + ms,
        )

    def cancel(self) -> None:
        """Ends what is still being asked."""
        if self._ahead is not None:
            self._ahead.cancel()


def _cited(claim: Claim, context: Context) -> Cited:
    """A claim as it is asked about: its citation marks read, and then left out of its words."""
    return Cited(replace(claim, text=plain_text(claim.text)), *cited_evidence(claim, context))


class Stopwatch:
    """Adds up the time that verifiers take, by name."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] += time.perf_counter() - start

    def ms(self, names: Sequence[str]) -> float:
        """Return the time of these verifiers together, in milliseconds."""
        return 1000 * sum(self._seconds[name] for name in names)


def stages(judgements: Sequence[Judgement], stopwatch: Stopwatch, model: StageUse) -> tuple[StageUse, ...]:
    """How many claims came to each stage, and what it cost; verdicts from the cache took no time."""

    def judged_by(names: Sequence[str]) -> int:
        return sum(any(verdict.verifier in names for verdict in judgement.verdicts) for judgement in judgements)

    return (
        StageUse("deterministic", judged_by(_DETERMINISTIC), ms=stopwatch.ms(_DETERMINISTIC)),
        StageUse("embedded", judged_by(_EMBEDDED), ms=stopwatch.ms(_EMBEDDED)),
        model,
    )
