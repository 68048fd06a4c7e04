"""Read what a language model answered about a claim, with the probabilities of its tokens where they are known."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate

from groundwire.backends.judge_prompts import Kind
from groundwire.domain import Unavailable
from groundwire.features.information_budget.logprobs import Reply, Token
from groundwire.verifiers.entailment import Entailment, Opinion

UNWEIGHED = 0.95
"""The probability of an answer where the server gives none: the share that chat models are right, roughly."""

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?\w+>")
_MARKUP = " \t\r\n*_`\"'“”‘’.,:;!?()[]{}<>-"
_LEAST_SEEN = 0.5  # the mass on known answers, below which token probabilities mean nothing

Words = Mapping[Kind, tuple[str, ...]]


def read_answer(reply: Reply, words: Words) -> Opinion:
    """Return the opinion in an answer; unavailable where it gives none, or more than one."""
    text = _THOUGHT.sub("", reply.text)
    found = _structured(text, words) or _find(text, words)
    if found is None:
        return Unavailable("no_verdict")
    kind, _, word = found
    masses = _masses(reply.tokens, word, words) if reply.tokens else None
    return _weighed(masses) if masses else _weighed(_unweighed(kind, words))


def _structured(text: str, words: Words) -> tuple[Kind, int, str] | None:
    """Return the verdict of an answer in JSON, under whatever key."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        answer = json.loads(text[start : end + 1])
    except ValueError:
        return None
    values = [value for value in answer.values() if isinstance(value, str)] if isinstance(answer, dict) else []
    found = [each for value in values if (each := _exactly(value, words))]
    return found[0] if len(found) == 1 else None


def _exactly(value: str, words: Words) -> tuple[Kind, int, str] | None:
    plain = value.strip(_MARKUP).lower().replace("_", " ")
    return next(((kind, 0, plain) for kind, known in words.items() if plain in known), None)


def _find(text: str, words: Words) -> tuple[Kind, int, str] | None:
    """Return the verdict that an answer begins with, else the only one that it holds: kind, place and word."""
    plain = _TAG.sub(lambda tag: " " * len(tag.group()), text).lower().replace("_", " ")
    names = {word: kind for kind, known in words.items() for word in known}
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in sorted(names, key=len, reverse=True)))
    found = [(names[each.group()], each.start(), each.group()) for each in pattern.finditer(plain)]
    if not found:
        return None
    if not plain[: found[0][1]].strip(_MARKUP):
        return found[0]
    return found[0] if len({kind for kind, *_ in found}) == 1 else None


def _unweighed(kind: Kind, words: Words) -> dict[Kind, float]:
    rest = (1.0 - UNWEIGHED) / max(1, len(words) - 1)
    return {each: UNWEIGHED if each == kind else rest for each in words}


def _weighed(masses: Mapping[Kind, float]) -> Entailment:
    total = sum(masses.values())
    return Entailment(masses.get("stated", 0.0) / total, masses.get("contradicted", 0.0) / total)


def _masses(tokens: Sequence[Token], word: str, words: Words) -> dict[Kind, float] | None:
    """Return the probabilities of the answers at the token with which the verdict begins; None where they are lost."""
    joined = "".join(_plain(token.text) for token in tokens).lower().replace("_", " ")
    thought = max((each.end() for each in _THOUGHT.finditer(joined)), default=0)
    place = joined.find(word, thought)
    if place < 0:
        return None
    ends = list(accumulate(len(_plain(token.text)) for token in tokens))
    at = next((index for index, end in enumerate(ends) if end > place), None)
    if at is None or _plain(tokens[at].text)[: place - (ends[at - 1] if at else 0)].strip(_MARKUP):
        return None
    masses = dict.fromkeys(words, 0.0)
    for text, probability in ((tokens[at].text, tokens[at].probability), *tokens[at].others):
        kind = _kind(text, words)
        if kind is not None:
            masses[kind] += probability
    return masses if sum(masses.values()) >= _LEAST_SEEN else None


def _kind(token: str, words: Words) -> Kind | None:
    """Return the only kind whose words a token can begin."""
    plain = _plain(token).strip(_MARKUP).lower()
    if not plain:
        return None
    kinds = {
        kind for kind, known in words.items() for word in known if word.startswith(plain) or plain.startswith(word)
    }
    first = {kind for kind, known in words.items() if known[0].startswith(plain)}
    return kinds.pop() if len(kinds) == 1 else first.pop() if len(first) == 1 else None


def _plain(token: str) -> str:
    """Return a token as text: SentencePiece and byte-level BPE write a space in front of a word as a letter."""
    return token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")
