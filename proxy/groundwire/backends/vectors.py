"""Compare texts by static vectors of their word pieces, which finds passages that share no word with a claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groundwire.backends.pairs import WordPiece, load_wordpiece, readable
from groundwire.caches import BoundedCache
from groundwire.evidence.index import Context, Passage
from groundwire.verifiers.selection import plain_text

FILE = "vectors.npz"
_MAX_BYTES = 16 * 2**20  # of the vectors of recent sources
_SHORTEST = np.float32(1e-6)  # length of a vector, which is divided by it

Matrix = NDArray[np.float32]


class WordVectors:
    """The vectors of the word pieces of a tokenizer, in a folder with tokenizer.json and `FILE`.

    The vector of a text is the sum of those of its pieces, of length 1; rare pieces have long vectors. `FILE` has
    `rows`, whole numbers (pieces, size), and `scales`, the factor of each row. `training.vectors` writes it. The files
    are read at the first comparison, or by `load`. It may be called from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: BoundedCache[str, Matrix] = BoundedCache(_MAX_BYTES)

    def load(self) -> None:
        """Read the files. Raises OSError or ValueError when they cannot be."""
        self._table, self._tokenizer  # noqa: B018

    @cached_property
    def _table(self) -> tuple[NDArray[np.int8], Matrix]:
        with np.load(self._folder / FILE) as stored:
            return stored["rows"], stored["scales"]

    @cached_property
    def _tokenizer(self) -> WordPiece:
        return load_wordpiece(self._folder / "tokenizer.json")

    def similarities(self, text: str, context: Context) -> Sequence[float]:
        """Return the cosine similarity (−1 to 1) of a text to each passage of a context, in order."""
        vector = self._encode([text])[0]
        sources = groupby(context.passages, key=lambda each: id(each.source))
        return [near for _, passages in sources for near in (self._of_source(list(passages)) @ vector).tolist()]

    def _of_source(self, passages: Sequence[Passage]) -> Matrix:
        """Return the vectors of the passages of one source, from the cache if possible."""
        text = passages[0].source.text
        found = self._known.get(text)
        if found is None or len(found) != len(passages):  # a context may end within a source
            found = self._encode([plain_text(each.text) for each in passages])
            self._known.put(text, found, found.nbytes + len(text))
        return found

    def _encode(self, texts: Sequence[str]) -> Matrix:
        """Return the vector of each text, (texts, size); zeros for a text without pieces."""
        rows, scales = self._table
        found = np.zeros((len(texts), rows.shape[1]), np.float32)
        for at, text in enumerate(texts):
            if ids := self._tokenizer.ids(readable(text)):
                found[at] = scales[ids] @ rows[ids].astype(np.float32)
        lengths = np.sqrt((found * found).sum(axis=1, keepdims=True))
        vectors: Matrix = found / np.maximum(lengths, _SHORTEST)
        return vectors
