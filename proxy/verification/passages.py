"""Cuts the text of a source into the passages that are read on their own."""

from __future__ import annotations

from collections.abc import Iterator

from sentencex import get_sentence_boundaries


def cut(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields `(start, end, reading)` for each passage of `text`; `reading` is what a verifier sees there."""
    for boundary in get_sentence_boundaries("en", text):
        start, end = boundary["start_index"], boundary["end_index"]
        sentence = text[start:end]
        if stripped := sentence.strip():
            start += len(sentence) - len(sentence.lstrip())
            yield start, start + len(stripped), stripped
