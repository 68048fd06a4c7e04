"""Search in questions and answers, one meaning on both databases: all words occur, whatever their case and order.

Beside its words, every exchange is found by keys for its subject, session, model and flags. So a search that is
narrowed by them, and any list that is narrowed by two of them, reads no more than what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import ColumnElement, literal_column

SIMPLE: ColumnElement[Any] = literal_column("'simple'::regconfig")
"""PostgreSQL's way to take words as they are written, but for their case."""

_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u0331])+")  # FTS5 leaves combining accents within words
_INDEXED = 200_000  # characters of a text that PostgreSQL indexes; a tsvector holds 1 MB at most
_TERMS = 32  # of one search; more would only cost time


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for: each term is words that follow each other, all terms and all keys occur.

    With `of_question`, terms are looked for in questions only. There is at least one term or key.
    """

    terms: tuple[tuple[str, ...], ...] = ()
    keys: tuple[str, ...] = ()
    of_question: bool = False

    def as_fts5(self) -> str:
        """The search in the language of SQLite's FTS5; nothing in a term has a meaning of its own there."""
        columns = "question" if self.of_question else "{question answer}"
        words = (f'{columns} : "{" ".join(term)}"' for term in self.terms)
        return " AND ".join((*words, *(f'keys : "{key}"' for key in self.keys)))

    def as_tsquery(self) -> str:
        """The search in the language of PostgreSQL's to_tsquery; questions weigh A, answers B, keys C."""
        weights = "A" if self.of_question else "AB"
        words = (" <-> ".join(f"{word}:{weights}" for word in term) for term in self.terms)
        return " & ".join((*(f"({phrase})" for phrase in words), *(f"{key}:C" for key in self.keys)))


def search_for(text: str | None, keys: Iterable[str] = ()) -> Search | None:
    """A search for what a text asks for, or None when it asks for something and there is no word in it.

    Punctuation within a term ties its words together: 4.2 is found as it is written.
    """
    found = dict.fromkeys(tuple(_WORD.findall(term)) for term in (text or "").split())
    terms = tuple(words for words in found if words)[:_TERMS]
    return None if text and not terms else Search(terms, tuple(keys))


def narrowing(question: str, keys: Iterable[str] = ()) -> Iterator[Search]:
    """Searches for questions like this one, the narrowest first. Long words come first, as they tend to be rare.

    Any two of the words may be new, such as another year or name: no search asks for more than what is left.
    """
    words = sorted(words_of(question), key=lambda word: (-len(word), word))[:8]
    wanted = (words[start : start + count] for count in (8, 5, 3, 1) for start in range(3))
    for chosen in dict.fromkeys(tuple(each) for each in wanted if each):
        yield Search(tuple((word,) for word in chosen), tuple(keys), of_question=True)


def keys_of(exchange: Mapping[str, Any], flags: Iterable[str]) -> tuple[str, ...]:
    """The keys by which an exchange is found, from its row and its flags."""
    named = [(name, exchange[name]) for name in ("subject", "session", "model") if exchange[name]]
    return tuple(key(name, value) for name, value in (*named, *(("flag", flag) for flag in flags)))


def key(name: str, value: str) -> str:
    """The key of a subject, session, model or flag: a word that no text is likely to hold."""
    return "k" + blake2b(f"{name}={value}".encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def words_of(text: str) -> frozenset[str]:
    """The different words of a text, in folded case."""
    return frozenset(_WORD.findall(text.casefold()))


def indexed_words(text: str | None) -> str:
    """The words of a text as PostgreSQL's parser is given them, freed of all that it would read more into."""
    return " ".join(_WORD.findall((text or "")[:_INDEXED]))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """How many words two texts share (Dice's coefficient, 0–1)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
