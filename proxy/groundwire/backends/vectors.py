"""Compare texts by static vectors of their word pieces, which finds passages that share no word with a claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from groundwire.backends.pairs import WordPiece, load_wordpiece, readable
from groundwire.evidence.index import Context
from groundwire.verifiers.selection import plain_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

FILE = "vectors.npz"
_SHORTEST = 1e-6  # length of a vector, which is divided by it


class WordVectors:
    """The vectors of the word pieces of a tokenizer, in a folder with tokenizer.json and `FILE`.

    The vector of a text is the sum of those of its pieces, of length 1; rare pieces have long vectors. `FILE` has
    `rows`, whole numbers (pieces, size), and `scales`, the factor of each row. `training.vectors` writes it. Nothing is
    read, and numpy is not imported, before `load` or the first comparison. It may be called from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def load(self) -> None:
        """Read the files. Raises OSError or ValueError when they cannot be."""
        self._table, self._tokenizer  # noqa: B018

    @cached_property
    def _table(self) -> tuple[NDArray[np.int8], Matrix]:
        import numpy as np

        with np.load(self.path) as stored:
            return stored["rows"], stored["scales"]

    @cached_property
    def _tokenizer(self) -> WordPiece:
        return load_wordpiece(self.path.with_name("tokenizer.json"))

    def similarities(self, text: str, context: Context) -> Sequence[float]:
        """Return the cosine similarity (−1 to 1) of a text to each passage of a context, in order."""
        matrix = context.derived(self, lambda: self._encode([plain_text(each.text) for each in context.passages]))
        similar: list[float] = (matrix @ self._encode([plain_text(text)])[0]).tolist()
        return similar

    def _encode(self, texts: Sequence[str]) -> Matrix:
        """Return the vector of each text, (texts, size); zeros for a text without known pieces."""
        import numpy as np

        rows, scales = self._table
        found = np.zeros((len(texts), rows.shape[1]), np.float32)
        for at, text in enumerate(texts):
            if ids := self._tokenizer.ids(readable(text)):
                found[at] = scales[ids] @ rows[ids].astype(np.float32)
        lengths = np.sqrt((found * found).sum(axis=1, keepdims=True))
        vectors: Matrix = found / np.maximum(lengths, np.float32(_SHORTEST))
        return vectors
