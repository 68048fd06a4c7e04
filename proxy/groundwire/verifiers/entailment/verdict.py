"""Convert a model's opinion or an exact match to a verdict with a reason and citations."""

from __future__ import annotations

from groundwire.domain import Citation, Claim, Label, Source, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.policy import Policy
from groundwire.text.words import content_stems
from groundwire.verifiers.entailment.combination import Combination
from groundwire.verifiers.entailment.evidence import Evidence, plain_text
from groundwire.verifiers.entailment.model import Entailment
from groundwire.verifiers.entailment.signals import WordMatch, measure_signals

_CITED = 3
_QUOTED = 160  # characters of a passage in a reason
_CLOSE = 0.25  # minimum share of the claim's words in a passage that is shown for an unsupported claim
_PHRASES = 3


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
    least = max(_CLOSE if label == "unsupported" else 0.0, ranked[0][1] / 2) if ranked else 0.0
    shown = [each for each, share in ranked if share >= least]
    return _reason(label, ranked, doubted), tuple(each.cite(score, "model") for each in shown[:_CITED])


def exact_verdict(label: Label, citation: Citation, source: Source) -> Verdict:
    """Return the verdict on a claim that a source states or denies word for word."""
    if label == "supported":
        return Verdict("statement", label, 1.0, "exact", f"{source.name} says exactly this.", (citation,), validated=1)
    return Verdict("statement", label, 0.02, "exact", f'{source.name} denies "{citation.text}".', (citation,))


def _ranked(claim: Claim, evidence: Evidence) -> list[tuple[Passage, float]]:
    """Return each passage of the evidence with its share of the claim's words, the largest share first.

    The head of a table is left out: its rows repeat the names of their columns.
    """
    stems = content_stems(plain_text(claim.text))
    tables = {each.source.id for each in evidence.passages if each.is_row and ": " in each.text}
    shares = [
        (each, len(stems & (each.stems | each.heading_stems)) / len(stems) if stems else 0.0)
        for each in evidence.passages
        if not (each.is_row and ": " not in each.text and each.source.id in tables)
    ]
    return sorted(shares, key=lambda each: (-each[1], each[0].place))


def _reason(label: Label, ranked: list[tuple[Passage, float]], doubted: tuple[str, ...]) -> str:
    if not ranked:
        return "Not stated in any source."
    best, share = ranked[0]
    name, quoted = best.source.name, _quoted(best)
    phrases = ", ".join(f'"{each}"' for each in doubted[:_PHRASES])
    if label == "supported":
        return f"{name} supports it: {quoted}."
    if label == "contradicted":
        return f"{name} says otherwise: {quoted}." + (f" The answer says {phrases}." if phrases else "")
    if share < _CLOSE:
        return "Not stated in any source."
    return f"Not stated in {name}{f': {phrases}' if phrases else ''}. Closest: {quoted}."


def _quoted(passage: Passage) -> str:
    text = plain_text(passage.text)
    if len(text) > _QUOTED:
        text = text[:_QUOTED].rsplit(" ", 1)[0] + " …"
    return f'"{text.rstrip(".")}"'
