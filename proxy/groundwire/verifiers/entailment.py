"""Entailment: the interface of its models, and the verdicts on claims from their opinions, alone or with other signals.

Implementations of models are in `groundwire.backends`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from groundwire.domain import Citation, Claim, Label, Source, Unavailable, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.policy import Policy
from groundwire.text.quantities import find_quantities
from groundwire.text.words import Word, content_stems, words
from groundwire.verifiers.selection import Evidence, plain_text

State = Literal["ready", "loading", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim with its lead ("" for none) and the evidence to compare it with.

    A language model reads `sources` instead of `evidence`: the whole sources, or the parts closest to the claim.
    """

    claim: str
    lead: str
    evidence: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Entailment:
    """The probabilities (0–1) that the evidence supports a claim, and that it contradicts it.

    `doubted` are the phrases of the claim that the evidence does not state; empty if the model does not mark any.
    """

    supported: float
    contradicted: float = 0.0
    doubted: tuple[str, ...] = ()


Opinion = Entailment | Unavailable
"""A model's opinion on a claim, or the reason why there is none."""


class EntailmentModel(Protocol):
    """A model that compares claims with evidence. It may be called from any thread."""

    @property
    def state(self) -> State:
        """The state; only a model that is `ready` may be called."""

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order. Raises the model's errors."""


class NoModel:
    """A placeholder for a model that is switched off."""

    state: State = "off"

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Raise RuntimeError: there is no model to call."""
        raise RuntimeError("there is no entailment model")


_COMPUTED = ("derived", "converted", "rounded")
_MIN_PROBABILITY = 0.002


class Signals(NamedTuple):
    """Features of a claim and its evidence, each 0–1 except the log-odds.

    `model` is the model's log-odds of support. `coverage` is the share of the claim's content words in the evidence,
    `names` the share of its proper names that occur nowhere in the context. `words` is the log-odds of support by the
    lexical model, `vetoed` is 1 if a passage with nearly the same words contradicts the claim.

    `derived`, `absent` and `wrong` are flags from the numeric verdict, whose method is that of the claim's least
    certain number. `derived` is 1 if it is supported and that number was derived, converted or rounded, or is stated in
    a passage with all other words of the claim; `absent` if no passage about the claim has that number, `wrong` if the
    sources contradict it.
    """

    model: float
    coverage: float = 0.0
    names: float = 0.0
    derived: float = 0.0
    absent: float = 0.0
    wrong: float = 0.0
    words: float = 0.0
    vetoed: float = 0.0


class WordMatch(NamedTuple):
    """The result of the lexical model: the probability of support, and whether a veto contradicts the claim."""

    probability: float
    is_vetoed: bool = False


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, which is clipped to 0.002–0.998."""
    bounded = min(1 - _MIN_PROBABILITY, max(_MIN_PROBABILITY, probability))
    return math.log(bounded / (1 - bounded))


def measure_signals(
    claim: Claim, evidence: Evidence, context: Context, numeric: Verdict | None, support: float, by_words: WordMatch
) -> Signals:
    """Return the signals of a claim.

    `support` is the model's probability of support, `numeric` the verdict of the numeric verifier, if it gave one.
    """
    found = words(plain_text(claim.text))
    content = {word.stem for word in found if word.carries_meaning}
    stated = frozenset[str]().union(*(each.stems | each.heading_stems for each in evidence.passages))
    names = {word.stem for at, word in enumerate(found) if at and word.is_capital and not word.is_number}
    new = [each for each in names if not context.nearest([each], 1)]
    return Signals(
        model=log_odds(support),
        coverage=len(content & stated) / len(content) if content else 1.0,
        names=len(new) / len(names) if names else 0.0,
        derived=float(
            numeric is not None
            and numeric.label == "supported"
            and (numeric.method in _COMPUTED or is_stated_together(claim, numeric, context))
        ),
        absent=float(numeric is not None and numeric.method == "absent"),
        wrong=float(numeric is not None and numeric.label == "contradicted"),
        words=log_odds(by_words.probability),
        vetoed=float(by_words.is_vetoed),
    )


CERTAIN_SCORE = 0.04
"""The probability that such a claim is supported: 2 of 71 in the calibration sets, with a pseudo-count of one each."""


def is_certain(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether nothing but a number distinguishes a claim from a passage that states another value.

    `verdict` is the numeric one. Units, months and number words have to occur in the passage too.
    """
    if verdict.label != "contradicted" or verdict.method != "mismatch":
        return False
    return _is_in_a_passage({word.stem for word in words(claim.text) if _is_content(word)}, verdict, context)


def is_stated_together(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether a passage cited by a numeric verdict has all content words of a claim outside its quantities."""
    spans = [(each.start, each.end) for each in find_quantities(claim.text)]
    outside = (word for word in words(claim.text) if not any(start <= word.start < end for start, end in spans))
    return _is_in_a_passage({word.stem for word in outside if _is_content(word)}, verdict, context)


def _is_content(word: Word) -> bool:
    return word.carries_meaning and not word.is_number


def _is_in_a_passage(stems: Set[str], verdict: Verdict, context: Context) -> bool:
    """Return whether a cited passage, with its headings, has all of the stems."""
    cited = map(context.passage_of, verdict.citations)
    return any(stems <= passage.stems | passage.heading_stems for passage in cited if passage)


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


def read_combination(text: str) -> Combination:
    """Parse a combination in the JSON that `groundwire calibrate` writes. Raises ValueError if it is malformed."""
    try:
        stored: Mapping[str, Any] = json.loads(text)
        weights = Signals(**stored["weights"])
        return Combination(weights, stored["bias"], {**BARS, **stored["bars"]}, stored["contradicted"])
    except (KeyError, TypeError) as error:
        raise ValueError("it holds no weights of a combination") from error


_MAX_CITED = 3
_MAX_QUOTED_CHARS = 160  # characters of a passage in a reason
_MIN_SHARE = 0.25  # minimum share of the claim's words in a passage that is shown for an unsupported claim
_MAX_PHRASES = 3


def model_verdict(
    claim: Claim,
    evidence: Evidence,
    found: Entailment,
    numeric: Verdict | None,
    by_words: WordMatch,
    context: Context,
    policy: Policy,
    combination: Combination,
) -> Verdict:
    """Return a verdict from the model's opinion combined with words, names and numbers."""
    signals = measure_signals(claim, evidence, context, numeric, found.supported, by_words)
    score = combination.probability(signals)
    label: Label = "supported"
    if score < combination.bars[policy.name]:
        label = "contradicted" if signals.wrong or combination.is_contradicted(found) else "unsupported"
    reason, cited = explain(label, claim, evidence, score, found.doubted)
    if label != "supported" and numeric is not None and (signals.wrong or signals.absent):
        reason, cited = numeric.reason, numeric.citations or cited
    is_supported = label == "supported"
    return Verdict(
        "statement", label, round(score, 4), "model", reason, cited, validated=int(is_supported), signals=tuple(signals)
    )


def explain(
    label: Label, claim: Claim, evidence: Evidence, score: float, doubted: tuple[str, ...] = ()
) -> tuple[str, tuple[Citation, ...]]:
    """Return the reason for a label, and citations of the passages closest to the claim.

    For an unsupported claim, passages with less than a quarter of its words are not cited.
    """
    ranked = _ranked(claim, evidence)
    least = max(_MIN_SHARE if label == "unsupported" else 0.0, ranked[0][1] / 2) if ranked else 0.0
    shown = [each for each, share in ranked if share >= least]
    return _reason(label, ranked, doubted), tuple(each.cite(score, "model") for each in shown[:_MAX_CITED])


def exact_verdict(label: Label, citation: Citation, source: Source) -> Verdict:
    """Return the verdict on a claim that a source states or denies word for word."""
    if label == "supported":
        return Verdict("statement", label, 1.0, "exact", f"{source.name} says exactly this.", (citation,), validated=1)
    return Verdict("statement", label, 0.02, "exact", f'{source.name} denies "{citation.text}".', (citation,))


def _ranked(claim: Claim, evidence: Evidence) -> list[tuple[Passage, float]]:
    """Return each passage of the evidence with its share of the claim's words, the closest passage first.

    Words that few passages contain count more. The head of a table is left out: its rows repeat the names of their
    columns.
    """
    stems = content_stems(plain_text(claim.text))
    tables = {each.source.id for each in evidence.passages if each.is_row and ": " in each.text}
    found = [
        (each, stems & (each.stems | each.heading_stems))
        for each in evidence.passages
        if not (each.is_row and ": " not in each.text and each.source.id in tables)
    ]
    counts = Counter(stem for _, shared in found for stem in shared)
    found.sort(key=lambda each: (-math.fsum(1 / counts[stem] for stem in each[1]), each[0].place))
    return [(each, len(shared) / len(stems) if stems else 0.0) for each, shared in found]


def _reason(label: Label, ranked: list[tuple[Passage, float]], doubted: tuple[str, ...]) -> str:
    if not ranked:
        return "Not stated in any source."
    best, share = ranked[0]
    name, quoted = best.source.name, _quoted(best)
    phrases = ", ".join(f'"{each}"' for each in doubted[:_MAX_PHRASES])
    if label == "supported":
        return f"{name} supports it: {quoted}."
    if label == "contradicted":
        return f"{name} says otherwise: {quoted}." + (f" The answer says {phrases}." if phrases else "")
    if share < _MIN_SHARE:
        return "Not stated in any source."
    return f"Not stated in {name}{f': {phrases}' if phrases else ''}. Closest: {quoted}."


def _quoted(passage: Passage) -> str:
    text = plain_text(passage.text)
    if len(text) > _MAX_QUOTED_CHARS:
        text = text[:_MAX_QUOTED_CHARS].rsplit(" ", 1)[0] + " …"
    return f'"{text.rstrip(".")}"'


_DISAGREEMENT = 0.5  # factor on the distance of a score from the threshold if a rule disagrees


@dataclass(frozen=True, slots=True)
class Objection:
    """A rule that disagrees with the model, and its reason."""

    rule: Literal["numbers", "wording"]
    reason: str


def language_verdict(
    claim: Claim, evidence: Evidence, found: Entailment, objections: Sequence[Objection], policy_name: str
) -> Verdict:
    """Return the verdict of a language model.

    A claim that is not supported is labelled `contradicted` only if the model finds that likelier than the evidence not
    mentioning it. Objections to a supported claim halve the distance of its score from the threshold.
    """
    bar, score = BARS[policy_name], found.supported
    silent = max(0.0, 1.0 - score - found.contradicted)
    label: Label = "supported" if score >= bar else "contradicted" if found.contradicted > silent else "unsupported"
    objections = objections if label == "supported" else ()
    if objections:
        score = bar + (score - bar) * _DISAGREEMENT
    reason, citations = explain(label, claim, evidence, score, found.doubted)
    reason += "".join(f" The check of {each.rule} disagrees: {each.reason}" for each in objections)
    validated = int(label == "supported")
    return Verdict("statement", label, round(score, 4), "model", reason, citations, validated=validated)
