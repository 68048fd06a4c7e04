"""Calibrate the score of a verdict to the probability that the claim is supported.

The statement verifier's model returns probabilities directly. A negative verdict on numbers is less certain than its
check suggests: the number may have been misread, or occur elsewhere. Its probability was measured on labelled answers.
Supported verdicts keep their score, which is the quality of the match.
"""

from __future__ import annotations

from dataclasses import replace

from groundwire.domain import Verdict
from groundwire.verifiers.lexical import shipped


def calibrated(verdict: Verdict) -> Verdict:
    """Return the verdict; a negative one with the measured probability (0–1) that the claim is supported after all."""
    alarms = shipped().alarms.get(verdict.verifier, {})
    return replace(verdict, score=alarms[verdict.label]) if verdict.label in alarms else verdict
