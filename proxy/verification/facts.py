"""Values from a database as evidence for the numbers of a claim (FA1, FA2).

Each value is told as a sentence in a source of its own kind, so that it is read, bound and compared as any other number
is. What a database does not say makes no claim false: silence is never a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from proxy.types import Citation, Claim, Source, Verdict
from proxy.verification.alignment.lexicon import LIGHT_WORDS, REFERENTS, same_meaning
from proxy.verification.alignment.vetoes import inside
from proxy.verification.context.index import Context
from proxy.verification.numbers.grammar import find_quantities
from proxy.verification.words import content_stems, stem, words

_NO_FACT = "The database says nothing of it."
_GENERIC = frozenset(map(stem, "rate ratio number total amount value percentage level figure count".split()))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a database: of what, the number as it is written, in which unit and of which period ("": none)."""

    label: str
    value: str
    unit: str = ""
    period: str = ""


def facts_source(name: str, values: Iterable[Value]) -> Source | None:
    """What one query gave, a sentence for each value; None when it gave none."""
    text = "\n".join(map(_sentence, values))
    return Source(f"facts.{name}", "facts", text, title=name, labels=(name,)) if text else None


def settle(claim: Claim, verdicts: Sequence[Verdict], context: Context) -> tuple[Verdict, ...]:
    """The verdicts on a claim, without those that rest on a database that does not speak of what is claimed.

    A value contradicts only a claim that has all words which say what it is of; and where there is nothing but values
    to check against, what is not supported by one is not checked.
    """
    kinds = {source.kind for source in context.sources}
    if "facts" not in kinds:
        return tuple(verdicts)
    values = {source.id for source in context.sources if source.kind == "facts"}
    return tuple(_settled(claim, verdict, values, only_facts=len(kinds) == 1) for verdict in verdicts)


def _settled(claim: Claim, verdict: Verdict, values: set[str], *, only_facts: bool) -> Verdict:
    is_silent = only_facts and verdict.label == "unsupported"
    if verdict.label == "contradicted" and all(each.source in values for each in verdict.citations):
        is_silent = not any(_is_of(claim, each) for each in verdict.citations)
    if not is_silent:
        return verdict
    return replace(
        verdict, label="not_checked", score=0.0, method="no_fact", reason=_NO_FACT, citations=(), flags=(), validated=0
    )


def _is_of(claim: Claim, cited: Citation) -> bool:
    """Whether a claim has every word, in whatever wording, that says what a value is of."""
    read = words(cited.text)
    measured = inside(read, find_quantities(cited.text))
    naming = {word.stem for place, word in enumerate(read) if word.is_content and place not in measured}
    telling = naming - LIGHT_WORDS - REFERENTS
    told = content_stems(f"{claim.lead} {claim.text}")
    return all(not same_meaning(each).isdisjoint(told) for each in telling - _GENERIC or telling)


def _sentence(value: Value) -> str:
    """ "Occupancy rate in Q3 2024 is 93.5%." """
    unit = value.unit.strip()
    joint = "" if unit in ("%", "x", "°C", "°F") else " "
    amount = f"{unit}{value.value}" if unit in _SIGNS else f"{value.value}{joint}{unit}".rstrip()
    period = f" in {value.period}" if value.period else ""
    return f"{' '.join(value.label.split())}{' '.join(period.split(' '))} is {amount}."


_SIGNS = ("$", "€", "£", "¥", "₹")
