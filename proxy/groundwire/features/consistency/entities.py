"""Collect all statements about each name over time, for one subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundwire.features.consistency.compare import Earlier, Past
from groundwire.features.consistency.statement_context import Said
from groundwire.policy import Policy
from groundwire.text.words import CALENDAR, TITLES


@dataclass(frozen=True, slots=True)
class Mention:
    """One statement about an entity: the id of its exchange, the time (Unix seconds), and the text."""

    exchange: str
    at: float
    statement: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A name as last written, with all statements that mention it, oldest first."""

    name: str
    mentions: tuple[Mention, ...]


def entity_history(history: Sequence[Earlier], policy: Policy = Policy()) -> tuple[Entity, ...]:
    """Return every name in the earlier answers, most mentioned first. A short and a full name are separate entities."""
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
    """Return the names in a statement, each as a whole."""
    reading = said.reading
    names: dict[str, None] = {}
    for place, word in enumerate(reading.words):
        is_telling = word.lower not in TITLES and word.stem not in CALENDAR
        if reading.is_name(place) and is_telling and place not in reading.measured:
            run = reading.name_run(place)
            names[reading.text[reading.words[run[0]].start : reading.words[run[-1]].end]] = None
    return names
