"""Calibration: the share of true statements by tenths of their predicted probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """The statements in one tenth of probability: number, mean probability, share that is true."""

    n: int
    stated: float
    true: float


class Calibration:
    """Accumulate statements, as pairs of probability and truth; only sums are kept."""

    def __init__(self, pairs: Iterable[tuple[float, int]] = ()) -> None:
        self._counts = [0] * BINS
        self._stated = [0.0] * BINS
        self._true = [0] * BINS
        for probability, truth in pairs:
            self.add(probability, truth)

    def add(self, probability: float, truth: int) -> None:
        """Add a statement with its probability (0–1), and 1 if it is true, else 0."""
        at = min(BINS - 1, int(probability * BINS))
        self._counts[at] += 1
        self._stated[at] += probability
        self._true[at] += truth

    @property
    def n(self) -> int:
        """The number of statements."""
        return sum(self._counts)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """The tenths of probability that contain statements."""
        sums = zip(self._counts, self._stated, self._true, strict=True)
        return tuple(Bin(n, stated / n, true / n) for n, stated, true in sums if n)

    @property
    def error(self) -> float | None:
        """The expected calibration error, the mean distance of predicted and true shares; None without statements."""
        return sum(each.n * abs(each.stated - each.true) for each in self.bins) / self.n if self.n else None
