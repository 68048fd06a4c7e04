"""Audit a trace: judge step after step within a time limit, then derive the answer with a separate executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from groundwire.domain import Claim, Source, Unavailable
from groundwire.errors import Overload
from groundwire.features.trace import (
    Audit,
    AuditedStep,
    PostHoc,
    ask_derivation,
    audited,
    compare_derived,
    derive_by_words,
    premises,
    steps_of,
)
from groundwire.gateway.estimators import Asker
from groundwire.gateway.proving import Proof, Prover

log = structlog.get_logger("groundwire.trace")


class Executor(Protocol):
    """A model that finishes chains of reasoning."""

    async def complete(self, system: str, user: str) -> str | Unavailable:
        """Return the reply to a prompt; raises nothing but cancellation."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of reasoning as it was given; `answer` is None when there is none to derive."""

    steps: tuple[str, ...]
    context: tuple[Source, ...] = ()
    answer: str | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Auditor:
    """Audits traces. `timeout` is in seconds, for a whole trace; without an executor only words are compared."""

    prover: Prover
    timeout: float
    checks_post_hoc: bool = True
    open_executor: Callable[[Asker, float], Executor] | None = None

    async def audit(self, trace: Trace, asker: Asker) -> Audit:
        """Audit every step, and check whether the answer follows. Raises UnknownModel."""
        proof = self.prover.open("trace_auditing", asker, self.timeout)
        steps = await asyncio.to_thread(steps_of, trace.steps)
        executor = self.open_executor(asker, self.timeout) if self.open_executor else None
        found, post_hoc = await asyncio.gather(
            _audited(proof, steps, trace.context), self._post_hoc(trace, steps, executor)
        )
        return Audit(found, post_hoc)

    async def _post_hoc(self, trace: Trace, steps: Sequence[Claim], executor: Executor | None) -> PostHoc | None:
        if trace.answer is None or not self.checks_post_hoc:
            return None
        try:
            async with asyncio.timeout(self.timeout):
                if executor is None:
                    return await self._by_words(trace.answer, trace.question, steps)
                return await self._by_executor(trace.answer, trace.question, steps, executor)
        except TimeoutError:
            return PostHoc("unverifiable", "The time for deriving the answer was over.")
        except Overload:
            return PostHoc("unverifiable", "There was no room to derive it under the present load.")
        except Exception as error:  # noqa: BLE001 - no fault of an executor may reach who asks
            log.warning("derivation.failed", error=type(error).__name__)
            return PostHoc("unverifiable", "Deriving the answer failed.")

    async def _by_words(self, answer: str, question: str, steps: Sequence[Claim]) -> PostHoc:
        prover = self.prover
        return await prover.workers.run(derive_by_words, answer, question, steps, prover.policy, prover.judge)

    async def _by_executor(self, answer: str, question: str, steps: Sequence[Claim], executor: Executor) -> PostHoc:
        """Compare the executor's derivation with the answer; if it fails, compare words."""
        derived = await executor.complete(*ask_derivation(question, steps))
        if isinstance(derived, Unavailable):
            return await self._by_words(answer, question, steps)
        return await self.prover.workers.run(
            compare_derived, answer, derived, self.prover.policy, self.prover.judge, question
        )


async def _audited(proof: Proof, steps: Sequence[Claim], context: Sequence[Source]) -> tuple[AuditedStep, ...]:
    found: list[AuditedStep] = []
    for step in steps:
        found.append(audited(await proof.prove(step, premises(context, found))))
    return tuple(found)
