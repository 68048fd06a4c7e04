"""Calibrate scores to the probability that the claim is supported, by the kind of verdict.

The statement verifier's model returns probabilities directly. An alarm about numbers is less certain than its check:
the number may have been misread, or occur elsewhere. The share of wrong alarms was measured on labelled answers.
Supported verdicts keep their score, which is the quality of the match, and exact quotations are certain.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.types import Verdict
from proxy.verification.alignment.model import shipped


def calibrated(verdict: Verdict) -> Verdict:
    """The verdict; an alarm scores the probability (0–1) that the claim is supported all the same."""
    alarms = shipped().alarms.get(verdict.verifier, {})
    return replace(verdict, score=alarms[verdict.label]) if verdict.label in alarms else verdict
