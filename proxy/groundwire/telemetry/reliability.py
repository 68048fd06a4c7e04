"""Calibration: the share of true statements by tenths of their predicted probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """The statements in one tenth of probability: number, mean probability, share that is true."""

    n: int
    stated: float
    true: float


class Calibration:
    """Accumulate statements; only sums are kept."""

    __slots__ = ("_counts", "_stated", "_true")

    def __init__(self) -> None:
        self._counts = [0] * BINS
        self._stated = [0.0] * BINS
        self._true = [0] * BINS

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


def calibration(pairs: Iterable[tuple[float, int]]) -> Calibration:
    """Return the calibration of (probability, truth) pairs."""
    found = Calibration()
    for probability, truth in pairs:
        found.add(probability, truth)
    return found


def reliability(pairs: Sequence[tuple[float, int]]) -> tuple[Bin, ...]:
    """Return the (probability, truth) pairs by tenths of probability, without empty tenths."""
    return calibration(pairs).bins


def ece(pairs: Sequence[tuple[float, int]]) -> float | None:
    """Return the expected calibration error over ten equal bins; None without pairs."""
    return calibration(pairs).error
