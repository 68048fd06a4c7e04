"""Estimate the minimum number of tokens of a prompt, to detect that a model server dropped part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import punctuation

from groundwire.domain import Message
from groundwire.report import PromptSize

_BREAKS = punctuation.replace("'", "").encode()  # newer tokenizers keep "don't" in one piece
_SPACED = bytes.maketrans(_BREAKS, b" " * len(_BREAKS))
_UNSPACED = re.compile(  # the scripts from Thai to Khmer, and from Chinese to Korean
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_PER_TOKEN = 6  # characters of these scripts; the measured maxima are 2.4 for text and 4.3 for a repeated word
_LETTERS = 4.5  # letters and digits per token; 99.9 % of texts have fewer with the newest tokenizers
_MARGIN = 0.9
_PIECE = 2**17  # characters counted in one step, during which the GIL is held
_NO_COUNT = 1  # reported by servers that read the whole prompt from a cache, or that do not count
_LEAST_MISSING = 100  # tokens; a truncation drops at least as many


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on the tokens of a prompt: `sure` holds for every tokenizer, `likely` for nearly every one."""

    sure: int = 0
    likely: int = 0


def prompt_size(reported: int | None, bounds: Bounds) -> PromptSize:
    """Compare a reported token count with the bounds of a prompt, and decide whether the prompt was truncated."""
    if reported is None or reported <= _NO_COUNT:
        return PromptSize(None, bounds.sure)
    least = max(bounds.sure, bounds.likely if _is_mark(reported) else 0)
    return PromptSize(reported, least, least - reported >= _LEAST_MISSING)


def _is_mark(reported: int) -> bool:
    """Return whether a token count is one that Ollama reports for a truncated prompt.

    These are its full context window, or half of it plus a few tokens it keeps. One count in 200 matches by chance.
    """
    return reported % 1024 == 0 or (reported > 512 and reported % 512 in (2, 3))


def bounds_of(messages: Sequence[Message]) -> Bounds:
    """Return the bounds of the prompt made of `messages`.

    Tokenizers split text at white space and, with few exceptions, at punctuation, so every run between is at least one
    token; in scripts without spaces, characters are counted. docs/truncation.md has the measurements.
    """
    stretches = letters = unspaced = 0
    for text in _surely_sent(messages):
        for at in range(0, len(text), _PIECE):
            piece = text[at : at + _PIECE]
            spaced = piece.encode("utf-8", "replace").translate(_SPACED)
            stretches += len(spaced.split()) - (at > 0)  # a run may be split between two steps
            letters += len(piece) - sum(map(spaced.count, (b" ", b"\n", b"\t", b"\r")))
            unspaced += 0 if piece.isascii() else sum(map(len, _UNSPACED.findall(piece)))
    return Bounds(int(_MARGIN * max(stretches, unspaced / _PER_TOKEN)), int(letters / _LETTERS))


def _surely_sent(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts that are part of the prompt unchanged: no files, and no reasoning in earlier answers."""
    for message in messages:
        for part in message.parts:
            if part.kind != "document":
                yield part.text.rpartition("</think>")[2] if message.role == "assistant" else part.text
