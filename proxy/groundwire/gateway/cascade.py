"""The model stage of the cascade: claims that lexical checks leave open."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from groundwire.backends.budgets import Cited, budgets
from groundwire.backends.estimator import Meter
from groundwire.domain import Budget, Claim, Judgement, Unavailable
from groundwire.evidence.index import Context
from groundwire.features.information_budget.cascade import cited_evidence, is_undecided, joined
from groundwire.gateway.estimators import Asker, Estimators
from groundwire.gateway.judging import JudgeSession
from groundwire.policy import Policy
from groundwire.report import StageUse
from groundwire.scoring.budget import measure
from groundwire.verifiers.entailment.evidence import plain_text

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
    """The model's judgements on one answer. `used` is the cost so far."""

    def __init__(self, estimators: Estimators, policy: Policy, asker: Asker) -> None:
        self._estimators = estimators
        self._policy = policy
        self._asker = asker
        self._meters: list[Meter] = []
        self._ahead: asyncio.Task[Sequence[Judgement]] | None = None
        self.used = StageUse("model", 0)

    def look_ahead(self, judgements: Sequence[Judgement], context: Context) -> None:
        """Query the model early about claims that will probably be part of the answer, so that little is left at its
        end.

        Not done if the model that answers is the backend: that would delay its answer.
        """
        if self._policy.model.backend != "self" and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.create_task(self.hear(judgements, context))

    async def hear(self, judgements: Sequence[Judgement], context: Context) -> list[Judgement]:
        """Return the judgements, with those on undecided claims refined by the model. Raises only cancellation."""
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
        """Update the counts of this turn and of the total cost."""
        self.used = replace(
            self.used,
            claims=claims,
            calls=sum(meter.calls for meter in self._meters),
            prompt_tokens=sum(meter.prompt_tokens for meter in self._meters),
            completion_tokens=sum(meter.completion_tokens for meter in self._meters),
            ms=self.used.ms + ms,
        )

    def cancel(self) -> None:
        """Cancel pending queries."""
        if self._ahead is not None:
            self._ahead.cancel()


def _cited(claim: Claim, context: Context) -> Cited:
    """A claim as it is asked about: its citation marks read, and then left out of its words."""
    return Cited(replace(claim, text=plain_text(claim.text)), *cited_evidence(claim, context))


class Stopwatch:
    """Adds up the time of verifiers, by name."""

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


def stages(
    judgements: Sequence[Judgement], stopwatch: Stopwatch, judge: JudgeSession | None, model: StageUse | None
) -> tuple[StageUse, ...]:
    """Return the number of claims that reached each stage, and its cost; cached verdicts take no time.

    `judge` is the judging language model, `model` the last stage, each if there is one.
    """

    def judged_by(names: Sequence[str]) -> int:
        return sum(any(verdict.verifier in names for verdict in judgement.verdicts) for judgement in judgements)

    return (
        StageUse("deterministic", judged_by(_DETERMINISTIC), ms=stopwatch.ms(_DETERMINISTIC)),
        StageUse("embedded", judged_by(_EMBEDDED), ms=stopwatch.ms(_EMBEDDED)),
        *((judge.used,) if judge else ()),
        *((model,) if model else ()),
    )
