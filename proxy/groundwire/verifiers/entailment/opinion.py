"""Convert a language model's opinion on a claim to a verdict.

The model alone decides on the label. A rule that disagrees lowers the score and is named in the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from groundwire.domain import Claim, Label, Verdict
from groundwire.verifiers.entailment.evidence import Evidence
from groundwire.verifiers.entailment.model import Entailment
from groundwire.verifiers.entailment.verdict import explain

BARS: Mapping[str, float] = {"strict": 0.6, "balanced": 0.5, "lenient": 0.35}
"""Minimum probability of support at which a claim counts as supported, by policy."""

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
    label: Label = "supported" if score >= bar else "contradicted" if _is_contradicted(found) else "unsupported"
    objections = objections if label == "supported" else ()
    if objections:
        score = bar + (score - bar) * _DISAGREEMENT
    reason, citations = explain(label, claim, evidence, score, found.doubted)
    reason += "".join(f" The check of {each.rule} disagrees: {each.reason}" for each in objections)
    validated = int(label == "supported")
    return Verdict("statement", label, round(score, 4), "model", reason, citations, validated=validated)


def _is_contradicted(found: Entailment) -> bool:
    silent = max(0.0, 1.0 - found.supported - found.contradicted)
    return found.contradicted > silent
