"""Statements with a second opinion: an encoder is asked about the claims that words alone leave open (ST4).

Which model it is, and how it is run, is the business of `evidence/`. Here it is a function of two texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakKeyDictionary

from proxy.types import Claim, Policy, Verdict
from proxy.verification import statement
from proxy.verification.alignment.model import Blend
from proxy.verification.context.index import Context
from proxy.verification.judge import VERIFIERS, Verifier
from proxy.verification.statement import Alignment

_SHOWN = 3  # doubted phrases in a reason


@dataclass(frozen=True, slots=True)
class Opinion:
    """How likely the evidence supports the claim (0–1), and which phrases of it are doubted, where that is told."""

    support: float
    doubted: tuple[str, ...] = ()


Encoder = Callable[[str, str], Opinion]
"""What a claim's text and its evidence's text are given to. Raises TooLong, or whatever it fails with."""


class TooLong(ValueError):
    """The claim leaves no room for evidence in what the encoder reads at once."""


class Allowance:
    """The encoder's time for each exchange, which goes with its context and ends with it.

    Another claim is admitted while the dearest one so far would still fit, so that only a first claim can exceed it.
    """

    def __init__(self) -> None:
        self._used: WeakKeyDictionary[Context, tuple[float, float]] = WeakKeyDictionary()

    def admits(self, context: Context, budget: float) -> bool:
        """Whether one more claim fits into a budget, in seconds of the processor's time."""
        spent, dearest = self._used.get(context, (0.0, 0.0))
        return spent + dearest <= budget

    def charge(self, context: Context, seconds: float) -> None:
        """Counts what a claim took."""
        spent, dearest = self._used.get(context, (0.0, 0.0))
        self._used[context] = (spent + seconds, max(dearest, seconds))


def verifiers(encoder: Encoder, blend: Blend = Blend()) -> tuple[tuple[str, Verifier], ...]:
    """Every verifier there is, by name, the one of statements with an encoder behind it."""
    return tuple((name, verifier(encoder, blend) if name == "statement" else each) for name, each in VERIFIERS)


def verifier(encoder: Encoder, blend: Blend = Blend(), clock: Callable[[], float] = time.thread_time) -> Verifier:
    """`statement.verify` with an encoder, which decides together with the words where these leave a claim open.

    A claim that it has no time for, or fails on, keeps the verdict that the words give, marked as degraded (RE1).
    """
    allowance = Allowance()

    def verify(claim: Claim, context: Context, policy: Policy) -> Verdict | None:
        found = statement.assess(claim, context, policy)
        if found is None:
            return None
        alignment, worded = found[0], statement.decide(*found, policy)
        if not is_asked(alignment, worded, policy):
            return worded
        if not allowance.admits(context, policy.encoder.budget_s):
            return _unheard(worded, "timeout", "The encoder was not asked: its time for this answer was over.")
        start = clock()
        try:
            opinion = encoder(spoken(claim), evidence_of(alignment))
        except TooLong:
            return _unheard(worded, "too_long", "It is too long for the encoder.")
        except Exception as error:  # noqa: BLE001 - no fault of an encoder may cost a verdict
            return _unheard(worded, "error", f"The encoder failed ({type(error).__name__}).")
        finally:
            allowance.charge(context, clock() - start)
        return joined(alignment, worded, opinion, blend, policy)

    return verify


def is_asked(alignment: Alignment, worded: Verdict, policy: Policy) -> bool:
    """Whether words leave a claim open: no veto stands, no source says it verbatim, no name of it is new everywhere."""
    if not alignment.window or alignment.verbatim or worded.label == "contradicted":
        return False
    if worded.label == "unsupported" and alignment.missing_names:
        return False
    return policy.encoder.asked_from <= worded.score < policy.encoder.asked_below


def joined(alignment: Alignment, worded: Verdict, opinion: Opinion, blend: Blend, policy: Policy) -> Verdict:
    """The verdict of words and encoder together."""
    score = blend.probability(worded.score, opinion.support)
    label: Literal["supported", "unsupported"] = "supported" if score >= blend.bars[policy.name] else "unsupported"
    return replace(
        worded,
        label=label,
        score=round(score, 4),
        method="encoder",
        reason=_reason(alignment, worded, opinion, label),
        citations=statement.cite(alignment, score, "model"),
        validated=int(label == "supported"),
    )


def spoken(claim: Claim) -> str:
    """A claim as an encoder reads it: without markup, citations and line breaks."""
    return " ".join(statement.without_markup(claim.text).split())


def evidence_of(alignment: Alignment) -> str:
    """The passages that a claim is compared with, as one text in reading order, a line each."""
    passages = {passage.place: passage.text for passage in (*alignment.window, *alignment.second)}
    return "\n".join(passages[place] for place in sorted(passages))


def _reason(alignment: Alignment, worded: Verdict, opinion: Opinion, label: str) -> str:
    doubted = ", ".join(f'"{phrase}"' for phrase in opinion.doubted[:_SHOWN]) if label == "unsupported" else ""
    gives = f"the encoder gives it {opinion.support:.0%}" + (f" and doubts {doubted}" if doubted else "")
    if label == worded.label:
        return f"{worded.reason} {gives[0].upper()}{gives[1:]}."
    source = alignment.window[0].source
    return f"{source.name} {'says so' if label == 'supported' else 'does not say so'}: {gives}."


def _unheard(worded: Verdict, why: str, told: str) -> Verdict:
    return replace(worded, reason=f"{worded.reason} {told}", degraded=why)
