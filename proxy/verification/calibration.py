"""What the score of a verdict means: how likely the claim is supported, by the kind of verdict (CF1).

The statement verifier's model gives probabilities by itself. An alarm about numbers is certain of what it found and
says less of the claim: the number may have been read wrongly, or stand elsewhere. How often such alarms are wrong was
measured on labelled answers. What a verifier finds supported keeps its own score, which tells how good the match is,
and whether a quotation stands in a source is certain.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.types import Verdict
from proxy.verification.alignment.model import shipped


def calibrated(verdict: Verdict) -> Verdict:
    """The verdict; an alarm scores the probability (0–1) that the claim is supported all the same."""
    alarms = shipped().alarms.get(verdict.verifier, {})
    return replace(verdict, score=alarms[verdict.label]) if verdict.label in alarms else verdict
