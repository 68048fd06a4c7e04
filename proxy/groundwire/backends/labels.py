"""Identify the labels of a classifier that mean "supported" or "contradicted"."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SUPPORTED = frozenset(
    "entailment entailed entails entail supported supports support supporting faithful grounded consistent factual "
    "nothallucinated nothallucination nonhallucinated".split()
)
_AGAINST = frozenset(
    "contradiction contradicted contradicts contradict neutral notentailment nonentailment notentailed refuted refutes "
    "refute notenoughinfo nei unsupported notsupported hallucination hallucinated inconsistent unfaithful ungrounded "
    "nonfactual baseless fabricated".split()
)
_GENERIC = re.compile(r"(?:label)?\d+")
_BEGINS_OR_CONTINUES = re.compile(r"[bi][-_](?=\w{2})")
_OUTSIDE = "o"  # outside any span that a token classifier marks


_CONTRADICTING = frozenset("contradiction contradicted contradicts contradict refuted refutes refute".split())


def contradicting(labels: Mapping[int, str]) -> frozenset[int]:
    """Return the indices of the labels that mean "contradicted"; none if a model has no such label."""
    return frozenset(place for place, label in labels.items() if _plain(label) in _CONTRADICTING)


def supporting(labels: Mapping[int, str], *, per_token: bool, named: str | None = None) -> frozenset[int]:
    """Return the indices of the labels that mean "supported"; their probabilities add up.

    `named` overrides the meaning of names. Two unnamed labels of a token classifier are read as in LettuceDetect: 0
    supported, 1 hallucinated. Raises ValueError when the meaning cannot be determined.
    """
    if named is not None:
        places = frozenset(place for place, label in labels.items() if _plain(label) == _plain(named))
    else:
        places = _by_name({place: _plain(label) for place, label in labels.items()}, per_token)
    if not places or len(places) == len(labels) > 1:
        listed = ", ".join(labels.values())
        raise ValueError(f"which of its labels ({listed}) means supported is for judge.supported_label to say")
    return places


def _by_name(labels: Mapping[int, str], per_token: bool) -> frozenset[int]:
    known = _SUPPORTED | {_OUTSIDE} if per_token else _SUPPORTED
    places = frozenset(place for place, label in labels.items() if label in known)
    if places or len(labels) != 2:
        return places
    if any(label in _AGAINST for label in labels.values()):
        return frozenset(place for place, label in labels.items() if label not in _AGAINST)
    if per_token and all(_GENERIC.fullmatch(label) for label in labels.values()):
        return frozenset({min(labels)})
    return frozenset()


def _plain(label: str) -> str:
    """Return a label in lower-case letters and digits only, without the prefix for the beginning or inside of a
    span.
    """
    return re.sub(r"[\W_]+", "", _BEGINS_OR_CONTINUES.sub("", label.strip().lower(), count=1))
