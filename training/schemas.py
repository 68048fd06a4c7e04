"""Claim schemas: situations written by hand, with claims whose label holds for every form of the evidence.

A schema becomes pairs by drawing one value for each slot. `claims/README.md` describes the format.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LABELS = ("supported", "contradicted", "unsupported")
PARTS = {"held_out": range(0, 3), "development": range(3, 5), "training": range(5, 30)}
"""The buckets, of 30, of each part. Whole schemas are held out, by a hash of their first form of evidence."""

_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z_0-9]*)(~?)\}")
_LINE_START = re.compile(r"(?:^|(?<=\n))([a-z])")


Claim = tuple[str, str]
"""The label of a claim, and its text."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A situation: its slots with their values, forms of its evidence, and claims by label. `origin` is its file.

    Where claims are grouped by the fact that they are about, `facts` holds each fact's claims; facts are independent.
    """

    origin: str
    slots: Mapping[str, Sequence[str]]
    evidence: Sequence[str]
    claims: Sequence[Claim]
    facts: Sequence[Sequence[Claim]] = ()

    @property
    def bucket(self) -> int:
        """The bucket of 30 that decides which part the schema belongs to."""
        return zlib.crc32(self.evidence[0].encode()) % 30

    def draw(self, chance: random.Random) -> tuple[dict[str, str], dict[str, str]]:
        """Draw a value for every slot, and another value of each that has one."""
        values: dict[str, str] = {}
        others: dict[str, str] = {}
        for name, known in self.slots.items():
            values[name] = chance.choice(known)
            rest = [each for each in known if each != values[name]]
            others[name] = chance.choice(rest) if rest else values[name]
        return values, others


def read_schemas(folder: Path, part: str) -> Iterator[Schema]:
    """Yield the schemas of a part ("" for all) from every `.jsonl` and `.jsonl.gz` file of a folder."""
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        stored = path.read_bytes()
        text = (gzip.decompress(stored) if path.suffix == ".gz" else stored).decode()
        for line in text.split("\n"):
            schema = _schema(path.name.split(".")[0], line)
            if schema and (not part or schema.bucket in PARTS[part]):
                yield schema


def _schema(origin: str, line: str) -> Schema | None:
    """Read one line; None where it is not whole, as the last line of a file that is being written."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    slots = {name: values if isinstance(values, list) else [values] for name, values in found.get("slots", {}).items()}
    facts = [_claims(each) for each in found.get("facts", [])]
    claims = _claims(found) + [claim for fact in facts for claim in fact]
    return Schema(origin, slots, found["evidence"], claims, facts) if found.get("evidence") and claims else None


def _claims(found: Mapping[str, Sequence[str]]) -> list[Claim]:
    return [(label, text) for label in LABELS for text in found.get(label, [])]


def fill(text: str, values: Mapping[str, str], others: Mapping[str, str]) -> str:
    """Put values into the slots of a text, with a capital at the start of each line."""

    def value(slot: re.Match[str]) -> str:
        known = others if slot[2] else values
        return str(known.get(slot[1], slot[0]))

    return _LINE_START.sub(lambda letter: letter[1].upper(), _SLOT.sub(value, text))
