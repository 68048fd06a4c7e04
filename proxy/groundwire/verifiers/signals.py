"""Combine the opinion of an entailment model with the words, names and numbers of a claim in one probability.

Without a model, words, names and numbers are combined with the weights of `weights.json`, which
`groundwire calibrate` writes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from groundwire.domain import Claim, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.text.quantities import find_quantities
from groundwire.text.reading import Reading, read_claim
from groundwire.text.units import measured_part
from groundwire.text.words import Word, concept, root, words
from groundwire.verifiers.entailment import Entailment
from groundwire.verifiers.numbers.durations import find_frequencies
from groundwire.verifiers.selection import Evidence, plain_text
from groundwire.verifiers.vetoes import Veto, find_vetoes

_COMPUTED = ("derived", "converted", "rounded")
_MIN_PROBABILITY = 0.002
_MIN_VETO_SHARE = 0.5  # minimum share of a claim's words in a passage that may veto it
_MIN_FRAME = 0.75  # minimum share of the words that no veto is about


class Signals(NamedTuple):
    """Features of a claim and its evidence; shares and flags are 0–1.

    `model` is the model's log-odds of support, 0 without a model. `coverage` is the share of the claim's content words
    that the evidence has in any form or by a synonym, `wording` the share of its runs of three words (`coverage` if it
    has none), `names` is ln(1 + count) of its proper names that the evidence lacks. `vetoed` is 1 if a passage with
    nearly all of the claim's other words denies one of them, or has its opposite or another name in its place.

    `derived`, `absent` and `wrong` are flags from the numeric verdict, whose method is that of the claim's least
    certain number. `derived` is 1 if it is supported and a number was derived or that one converted or rounded, or if
    all are stated in a passage with all other words of the claim; `absent` if no passage about the claim has that
    number, `wrong` if the sources contradict it.
    """

    model: float
    coverage: float = 0.0
    wording: float = 0.0
    names: float = 0.0
    derived: float = 0.0
    absent: float = 0.0
    wrong: float = 0.0
    vetoed: float = 0.0


Objector = tuple[Veto, Passage]
"""A veto, and the passage that raises it."""


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, which is clipped to 0.002–0.998."""
    bounded = min(1 - _MIN_PROBABILITY, max(_MIN_PROBABILITY, probability))
    return math.log(bounded / (1 - bounded))


def measure_signals(
    claim: Claim, evidence: Evidence, context: Context, numeric: Verdict | None, found: Entailment | None
) -> tuple[Signals, Objector | None]:
    """Return the signals of a claim, and the veto against it with its passage, if there is one.

    `numeric` is the verdict of the numeric verifier, if it gave one; `found` is the model's opinion, None without one.
    """
    reading = read_claim(plain_text(claim.text))
    known = [known_places(reading, each) for each in evidence.passages]
    veto = _find_veto(reading, evidence.passages, known)
    stated = _stems(evidence.passages)
    new = sum(word.stem not in stated for at, word in enumerate(reading.words) if reading.is_name(at))
    coverage = len(set[int]().union(*known)) / len(reading.content) if reading.content else 1.0
    runs = _runs_of_three(reading.words)
    shared = runs & set[tuple[str, str, str]]().union(*(_runs_of_three(each.words) for each in evidence.passages))
    signals = Signals(
        model=log_odds(found.supported) if found else 0.0,
        coverage=coverage,
        wording=len(shared) / len(runs) if runs else coverage,
        names=math.log1p(new),
        derived=float(
            numeric is not None
            and numeric.label == "supported"
            and (numeric.method in _COMPUTED or is_stated_together(claim, numeric, context))
        ),
        absent=float(numeric is not None and numeric.method == "absent"),
        wrong=float(numeric is not None and numeric.label == "contradicted"),
        vetoed=float(veto is not None),
    )
    return signals, veto


def _find_veto(claim: Reading, passages: Sequence[Passage], known: Sequence[Set[int]]) -> Objector | None:
    """Return the veto of the passage that has most words of a claim, and that passage.

    `known` are the places of its content words that each passage has. None if there is no veto, or if a passage
    without one has as many words of the claim.
    """
    found: Objector | None = None
    most = agreeing = 0
    for passage, places in zip(passages, known, strict=True):
        if not places or len(places) < _MIN_VETO_SHARE * len(claim.content):
            continue
        vetoes = find_vetoes(claim, passage.reading)
        issue = {veto.place for veto in vetoes}
        rest = sum(at not in issue for at in claim.content)
        if not vetoes:
            agreeing = max(agreeing, len(places))
        elif len(places) > most and len(places - issue) >= _MIN_FRAME * rest:
            most, found = len(places), (vetoes[0], passage)
    return found if most > agreeing else None


def known_places(claim: Reading, passage: Passage) -> set[int]:
    """Return the places of the content words that a passage has by meaning or by root, or its heading as they are."""
    meanings, roots, heading = passage.reading.places, passage.reading.roots, passage.heading_stems
    return {
        at
        for at in claim.content
        if claim.concepts[at] in meanings or root(stem := claim.words[at].stem) in roots or stem in heading
    }


def missing_words(claim: Claim, evidence: Evidence) -> tuple[str, ...]:
    """Return the content words of a claim that its evidence lacks, each once, in order."""
    stated, found = _stems(evidence.passages), words(plain_text(claim.text))
    return tuple(dict.fromkeys(word.text for word in found if word.carries_meaning and word.stem not in stated))


def _stems(passages: Iterable[Passage]) -> frozenset[str]:
    return frozenset[str]().union(*(each.stems | each.heading_stems for each in passages))


def _runs_of_three(text_words: Sequence[Word]) -> set[tuple[str, str, str]]:
    lowered = [word.lower for word in text_words]
    return set(zip(lowered, lowered[1:], lowered[2:], strict=False))


CERTAIN_SCORE = 0.02
"""The probability that such a claim is supported: 2 of 133 in the calibration sets, with a pseudo-count of one each."""


def is_certain(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether one number, its unit or its rate alone distinguishes a claim from a passage with another value.

    `verdict` is the numeric one.
    """
    if verdict.label != "contradicted" or verdict.method != "mismatch" or len(verdict.numbers) != 1:
        return False
    others = words(claim.text.replace(verdict.numbers[0].text, " "))
    return _are_cited(_stems_beside_numbers(claim) | {each.stem for each in others if each.is_number}, verdict, context)


def is_stated_together(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether a passage cited by a numeric verdict has all words of a claim outside its quantities, or synonyms.

    Content words and negators count, and a passage that denies anything states no claim without a negator: "approved
    but not paid" beside "paid".
    """
    stems = _stems_beside_numbers(claim)
    denies = read_claim(plain_text(claim.text)).denies
    cited = (context.passage_of(each) for each in verdict.citations)
    return any(_has_all(stems, each) for each in cited if each and (denies or not each.reading.denies))


def _are_cited(stems: Set[str], verdict: Verdict, context: Context) -> bool:
    """Return whether a passage that a verdict cites has all these words, or synonyms."""
    return any(_has_all(stems, each) for each in map(context.passage_of, verdict.citations) if each)


def _has_all(stems: Set[str], passage: Passage) -> bool:
    return set(map(concept, stems)) <= set(map(concept, passage.stems | passage.heading_stems))


def is_bare_number(claim: Claim) -> bool:
    """Return whether a claim has no content words and no negators outside its quantities."""
    return not _stems_beside_numbers(claim)


def _stems_beside_numbers(claim: Claim) -> set[str]:
    """Return the stems of content words and negators outside quantities and the periods of their rates.

    Negators count: without them, the claim is another one. So does what is measured, counted, or counted by.
    """
    text = claim.text
    quantities = find_quantities(text)
    spans = [(each.start, each.end) for each in quantities]
    spans += [(each.end + measured_part(each.rate), each.end + len(each.rate)) for each in quantities]
    spans += [(each.start, each.end) for each in find_frequencies(text)]
    counted = {each for quantity in quantities if quantity.rate for each in (*quantity.nouns, *quantity.each)}
    return counted | {
        word.stem
        for word in words(text)
        if (word.carries_meaning or word.is_negator)
        and not word.is_number
        and not any(start <= word.start < end for start, end in spans)
    }


_MODEL_ALONE = Signals(model=1.0)
BARS: Mapping[str, float] = {"strict": 0.6, "balanced": 0.5, "lenient": 0.35}
"""Minimum probability of support at which a claim counts as supported, by policy."""


@dataclass(frozen=True, slots=True)
class Combination:
    """Weights of a logistic regression over `Signals`, and its decision thresholds.

    `bars` holds, by policy, the minimum probability at which a claim counts as supported. A claim that is not supported
    is labelled `contradicted` if contradiction makes up at least the share `contradicted` of the probability against
    it. By default the model's probability is used alone, within the bounds of `log_odds`.
    """

    weights: Signals = _MODEL_ALONE
    bias: float = 0.0
    bars: Mapping[str, float] = field(default_factory=lambda: BARS)
    contradicted: float = 0.5

    def probability(self, signals: Signals) -> float:
        """Return the probability (0–1) that the claim is supported."""
        total = self.bias + sum(weight * value for weight, value in zip(self.weights, signals, strict=True))
        return 1 / (1 + math.exp(-total))

    def is_contradicted(self, found: Entailment) -> bool:
        """Return whether a claim that is not supported is contradicted rather than not mentioned."""
        against = 1.0 - found.supported
        return against > 0 and found.contradicted / against >= self.contradicted


@cache
def words_alone() -> Combination:
    """Return the combination for claims that no model has read, loaded once."""
    return read_combination(files("groundwire.verifiers").joinpath("weights.json").read_text(encoding="utf-8"))


def read_combination(text: str) -> Combination:
    """Parse a combination in the JSON that `groundwire calibrate` writes. Raises ValueError if it is malformed."""
    try:
        stored: Mapping[str, Any] = json.loads(text)
        weights = Signals(**stored["weights"])
        return Combination(weights, stored["bias"], {**BARS, **stored["bars"]}, stored["contradicted"])
    except (KeyError, TypeError) as error:
        raise ValueError("it holds no weights of a combination") from error
