"""Search questions and answers, with the same semantics on both databases: all words occur, in any case and order.

In addition to its words, every exchange is indexed by keys of its subject, session, model and flags. So a search
narrowed by one of them, and any list narrowed by two of them, reads only matching rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import ColumnElement, literal_column

SIMPLE: ColumnElement[Any] = literal_column("'simple'::regconfig")
"""PostgreSQL's configuration that only folds case."""

_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u0331])+")  # FTS5 keeps combining accents within words
_INDEXED = 200_000  # characters of a text that PostgreSQL indexes; a tsvector holds 1 MB at most
_TERMS = 32  # maximum terms of one search; more would only cost time


@dataclass(frozen=True, slots=True)
class Search:
    """A search: each term is a phrase of consecutive words; all terms and all keys must occur.

    With `of_question`, terms are searched in questions only. There is at least one term or key.
    """

    terms: tuple[tuple[str, ...], ...] = ()
    keys: tuple[str, ...] = ()
    of_question: bool = False

    def as_fts5(self) -> str:
        """Return the search as an FTS5 query of SQLite, with all terms quoted."""
        columns = "question" if self.of_question else "{question answer}"
        words = (f'{columns} : "{" ".join(term)}"' for term in self.terms)
        return " AND ".join((*words, *(f'keys : "{key}"' for key in self.keys)))

    def as_tsquery(self) -> str:
        """Return the search as a query for PostgreSQL's to_tsquery; questions have weight A, answers B, keys C."""
        weights = "A" if self.of_question else "AB"
        words = (" <-> ".join(f"{word}:{weights}" for word in term) for term in self.terms)
        return " & ".join((*(f"({phrase})" for phrase in words), *(f"{key}:C" for key in self.keys)))


def search_for(text: str | None, keys: Iterable[str] = ()) -> Search | None:
    """Parse a text into a search; None when the text contains no word.

    Punctuation within a term ties its words together: 4.2 is found as it is written.
    """
    found = dict.fromkeys(tuple(_WORD.findall(term)) for term in (text or "").split())
    terms = tuple(words for words in found if words)[:_TERMS]
    return None if text and not terms else Search(terms, tuple(keys))


def narrowing(question: str, keys: Iterable[str] = ()) -> Iterator[Search]:
    """Yield searches for similar questions, the narrowest first. Long words come first, as they tend to be rare.

    Any two of the words may be new, such as another year or name, so the last searches use few words.
    """
    words = sorted(words_of(question), key=lambda word: (-len(word), word))[:8]
    wanted = (words[start : start + count] for count in (8, 5, 3, 1) for start in range(3))
    for chosen in dict.fromkeys(tuple(each) for each in wanted if each):
        yield Search(tuple((word,) for word in chosen), tuple(keys), of_question=True)


def keys_of(exchange: Mapping[str, Any], flags: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of an exchange, from its row and its flags."""
    named = [(name, exchange[name]) for name in ("subject", "session", "model") if exchange[name]]
    return tuple(key(name, value) for name, value in (*named, *(("flag", flag) for flag in flags)))


def key(name: str, value: str) -> str:
    """Return the key of a subject, session, model or flag: a word that is unlikely to occur in texts."""
    return "k" + blake2b(f"{name}={value}".encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def words_of(text: str) -> frozenset[str]:
    """Return the set of words of a text, case-folded."""
    return frozenset(_WORD.findall(text.casefold()))


def indexed_words(text: str | None) -> str:
    """Return the words of a text, without punctuation that PostgreSQL's parser would interpret."""
    return " ".join(_WORD.findall((text or "")[:_INDEXED]))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the similarity of two sets of words (Dice's coefficient, 0–1)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
