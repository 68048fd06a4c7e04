"""What was said of each name over time, for one subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.types import Policy
from proxy.verification.consistency.compare import Earlier, Past
from proxy.verification.consistency.said import Said
from proxy.verification.text.lexicon import CALENDAR, TITLES


@dataclass(frozen=True, slots=True)
class Mention:
    """One statement about an entity: in which exchange, at what time (Unix seconds), and in which words."""

    exchange: str
    at: float
    statement: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A name, as it was last written, with all that was said of it, oldest first."""

    name: str
    mentions: tuple[Mention, ...]


def entity_history(history: Sequence[Earlier], policy: Policy = Policy()) -> tuple[Entity, ...]:
    """Every name in the earlier answers of a subject, the most mentioned first; a short name counts for itself."""
    written: dict[str, str] = {}
    mentions: dict[str, dict[Mention, None]] = {}
    for said in Past(history, policy).statements:
        for name in _names(said):
            written.setdefault(name.casefold(), name)
            mentions.setdefault(name.casefold(), {})[Mention(said.exchange, said.at, said.claim.text)] = None
    entities = (
        Entity(written[key], tuple(sorted(found, key=lambda mention: mention.at))) for key, found in mentions.items()
    )
    return tuple(sorted(entities, key=lambda entity: (-len(entity.mentions), entity.name)))


def _names(said: Said) -> dict[str, None]:
    """The names in a statement, each as a whole."""
    reading = said.reading
    names: dict[str, None] = {}
    for place, word in enumerate(reading.words):
        is_telling = word.lower not in TITLES and word.stem not in CALENDAR
        if reading.is_name(place) and is_telling and place not in reading.measured:
            run = reading.name_run(place)
            names[reading.text[reading.words[run[0]].start : reading.words[run[-1]].end]] = None
    return names
