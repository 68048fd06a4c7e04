"""Scale words and suffixes of numbers, with their factors."""

from __future__ import annotations

SCALES = {"hundred": 1e2, "thousand": 1e3, "thousands": 1e3, "million": 1e6, "millions": 1e6, "billion": 1e9}
SCALES |= {"billions": 1e9, "trillion": 1e12, "trillions": 1e12, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7}
SCALES |= {"mn": 1e6, "mln": 1e6, "mio": 1e6, "bn": 1e9, "bln": 1e9, "tn": 1e12, "trn": 1e12, "dozen": 12.0}
SUFFIXES = {"k": 1e3, "m": 1e6, "mm": 1e6, "b": 1e9, "t": 1e12}
