"""Verdicts on statements: word for word, by an entailment model, by words, by a language model; and their reasons."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from groundwire.domain import Citation, Claim, Label, Match, Verdict
from groundwire.evidence.index import Context, Passage, cite
from groundwire.policy import Policy
from groundwire.text.reading import read_claim
from groundwire.text.words import Word, words
from groundwire.verifiers.entailment import Entailment
from groundwire.verifiers.quotes import find_quotes
from groundwire.verifiers.selection import Evidence, plain_text, quoted
from groundwire.verifiers.signals import BARS, Combination, known_places, measure_signals, missing_words
from groundwire.verifiers.verbatim import find_denial, find_verbatim, may_occur

_VETOED_SCORE = 0.3
"""The maximum probability of support of a claim with a veto that no model has read."""
_MAX_CITED = 3
_MIN_SHARE = 0.25  # minimum share of the claim's words in a passage that is shown for an unsupported claim
_MAX_PHRASES = 3
_TITLE_WEIGHT = 0.25
_INK = re.compile(r"\S")
_ENDS_STATEMENT = re.compile(r"[.!?:;]\W{0,5}$")
_SHORT, _LENGTH_POWER = 6, 0.3
"""A passage of more words is discounted by this power of their number."""
_ATTRIBUTION = frozenset(
    "it the this as in according to document text passage source context article page excerpt notes states says reads "
    "mentions explains describes reports that".split()
)
"""Words that attribute a quotation to a source and state nothing else."""


def combined_verdict(
    claim: Claim,
    evidence: Evidence,
    found: Entailment | None,
    numeric: Verdict | None,
    context: Context,
    policy: Policy,
    combination: Combination,
) -> Verdict:
    """Return a verdict from the model's opinion, None without a model, combined with words, names and numbers.

    Without a model, a claim with a veto is contradicted.
    """
    signals, veto = measure_signals(claim, evidence, context, numeric, found)
    score = combination.probability(signals)
    if veto and not found:
        score = min(score, _VETOED_SCORE)
    label: Label = "supported"
    if score < combination.bars[policy.name]:
        is_contradicted = signals.wrong or (combination.is_contradicted(found) if found else veto is not None)
        label = "contradicted" if is_contradicted else "unsupported"
    match: Match = "model" if found else "words"
    doubted = found.doubted if found else missing_words(claim, evidence)
    missing = numeric.reason if numeric is not None and signals.absent else ""
    reason, cited = explain(label, claim, evidence, score, doubted, match, missing)
    if label != "supported" and numeric is not None and signals.wrong:
        reason, cited = numeric.reason, numeric.citations or cited
    elif label == "contradicted" and veto is not None and _is_at_issue(claim, veto[0].place, found):
        why, passage = veto
        reason = f"{why.reason[0].upper()}{why.reason[1:]}: {quoted(passage)}, in {passage.source.name}."
        cited = (passage.cite(score, match),)
    is_supported = label == "supported"
    return Verdict(
        "statement", label, round(score, 4), match, reason, cited, validated=int(is_supported), signals=tuple(signals)
    )


def _is_at_issue(claim: Claim, place: int, found: Entailment | None) -> bool:
    """Return whether the word at `place`, that of a veto, is in a phrase that the model doubts, if it doubts any."""
    if found is None or not found.doubted or place < 0:
        return True
    stem = read_claim(plain_text(claim.text)).words[place].stem
    return any(word.stem == stem for phrase in found.doubted for word in words(phrase))


def explain(
    label: Label,
    claim: Claim,
    evidence: Evidence,
    score: float,
    doubted: tuple[str, ...] = (),
    match: Match = "model",
    missing: str = "",
) -> tuple[str, tuple[Citation, ...]]:
    """Return the reason for a label, and citations of the passages closest to the claim.

    For an unsupported claim, `missing` says which of its numbers are not stated, if any, and passages with less than a
    quarter of its words are not cited.
    """
    ranked = _ranked(claim, evidence)
    least = max(_MIN_SHARE if label == "unsupported" else 0.0, ranked[0][1] / 2) if ranked else 0.0
    shown = [each for each, share in ranked if share >= least]
    return _reason(label, ranked, doubted, missing), tuple(each.cite(score, match) for each in shown[:_MAX_CITED])


def exact_verdict(claim: Claim, context: Context, *, denials: bool) -> Verdict | None:
    """Return the verdict on a claim that a source states word for word or, with `denials`, denies; else None."""
    wordings = [each for each in dict.fromkeys(_wordings(claim)) if may_occur(each, context)]
    for source in context.sources:
        for text in wordings:
            if place := find_verbatim(text, source, context):
                cited, reason = cite(source, *place, 1.0, "exact"), f"{source.name} says exactly this."
                return Verdict("statement", "supported", 1.0, "exact", reason, (cited,), validated=1)
    return denial(claim, context) if denials else None


def _wordings(claim: Claim) -> Iterator[str]:
    """Yield a claim as it is, without Markdown, and its quotation if the rest only attributes that to a source."""
    yield claim.text
    yield plain_text(claim.text)
    quotes = find_quotes(claim.text)
    if len(quotes) == 1:
        rest = f"{claim.text[: quotes[0].start]} {claim.text[quotes[0].end :]}"
        if all(word.lower in _ATTRIBUTION for word in words(rest)):
            yield quotes[0].text


def denial(claim: Claim, context: Context) -> Verdict | None:
    """Return the verdict on a claim that a source quotes in order to deny it; None if there is no such source."""
    text = plain_text(claim.text)
    if not may_occur(text, context):
        return None
    for source in context.sources:
        if place := find_denial(text, source, context):
            cited = cite(source, *place, 1.0, "exact")
            reason = f'{source.name} denies "{cited.text}".'
            return Verdict("statement", "contradicted", 0.02, "exact", reason, (cited,))
    return None


def _ranked(claim: Claim, evidence: Evidence) -> list[tuple[Passage, float]]:
    """Return each passage of the evidence with its share of the claim's content words, the closest passage first.

    Synonyms and words of the same root count, and the similarity of the passage. Words that few passages contain count
    more, and so do short passages; titles count less, since they name what the text is about and state little. The head
    of a table is left out: its rows repeat the names of their columns.
    """
    reading = read_claim(plain_text(claim.text))
    tables = {each.source.id for each in evidence.passages if each.is_row and ": " in each.text}
    similar = evidence.similarities or (0.0,) * len(evidence.passages)
    found = [
        (each, known_places(reading, each), max(0.0, similarity))
        for each, similarity in zip(evidence.passages, similar, strict=True)
        if not (each.is_row and ": " not in each.text and each.source.id in tables)
    ]
    counts = Counter(at for _, places, _ in found for at in places)

    def closeness(passage: Passage, places: set[int], similarity: float) -> float:
        discount: float = max(_SHORT, len(passage.words)) ** _LENGTH_POWER
        near = math.fsum(1 / counts[at] for at in places) / discount + similarity
        return near * _TITLE_WEIGHT if _is_title(passage) else near

    found.sort(key=lambda each: (-closeness(*each), each[0].place))
    return [(each, len(places) / len(reading.content) if reading.content else 0.0) for each, places, _ in found]


def _is_title(passage: Passage) -> bool:
    """Return whether a passage is a marked heading, or the first line of a longer source and no sentence."""
    text, around = passage.text, passage.source.text
    if passage.is_row or _ENDS_STATEMENT.search(text[-6:]):
        return False
    if text.startswith("#"):
        return True
    is_first = not _INK.search(around, 0, passage.start) and _INK.search(around, passage.end)
    return bool(is_first) and ": " not in text


def _reason(label: Label, ranked: list[tuple[Passage, float]], doubted: tuple[str, ...], missing: str) -> str:
    """Return the reason for a label: the closest passage, and the doubted phrases that have a word that it lacks."""
    if not ranked:
        return missing or "Not stated in any source."
    best, share = ranked[0]
    name, text = best.source.name, quoted(best)
    known = {word.stem for word in best.words}
    new = [each for each in doubted if any(_is_telling(word) and word.stem not in known for word in words(each))]
    phrases = ", ".join(f'"{each}"' for each in new[:_MAX_PHRASES])
    if label == "supported":
        return f"{name} supports it: {text}."
    if label == "contradicted":
        return f"{name} says otherwise: {text}." + (f" The answer says {phrases}." if phrases else "")
    if share < _MIN_SHARE:
        return missing or "Not stated in any source."
    missing = missing or (f"Not stated in {name}: {phrases}." if phrases else f"Not stated in {name}.")
    return f"{missing} Closest: {text}."


def _is_telling(word: Word) -> bool:
    return word.carries_meaning or word.is_negator or word.is_number


_DISAGREEMENT = 0.5  # factor on the distance of a score from the threshold if a rule disagrees


@dataclass(frozen=True, slots=True)
class Objection:
    """The label and the reason of an exact check, an objection if the model gives another label."""

    rule: Literal["numbers", "wording"]
    label: Label
    reason: str


def language_verdict(
    claim: Claim, evidence: Evidence, found: Entailment, objections: Sequence[Objection], policy_name: str
) -> Verdict:
    """Return the verdict of a language model.

    A claim that is not supported is labelled `contradicted` only if the model finds that likelier than the evidence not
    mentioning it. The distance of its score from the threshold is halved if an objection and the model differ on
    whether the claim is supported.
    """
    bar, score = BARS[policy_name], found.supported
    silent = max(0.0, 1.0 - score - found.contradicted)
    label: Label = "supported" if score >= bar else "contradicted" if found.contradicted > silent else "unsupported"
    if any((each.label == "supported") != (label == "supported") for each in objections):
        score = bar + (score - bar) * _DISAGREEMENT
    reason, citations = explain(label, claim, evidence, score, found.doubted)
    agreeing = {label} if label == "supported" else {label, "unsupported"}
    named = (each for each in objections if each.label not in agreeing)
    reason += "".join(f" The check of {each.rule} disagrees: {each.reason}" for each in named)
    validated = int(label == "supported")
    return Verdict("statement", label, round(score, 4), "model", reason, citations, validated=validated)
