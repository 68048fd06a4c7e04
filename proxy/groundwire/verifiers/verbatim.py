"""Find a claim word for word in a source: as a whole clause that the source asserts, or as one that it denies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from groundwire.domain import Source
from groundwire.evidence.index import Context
from groundwire.text.folding import fold
from groundwire.text.words import NEGATORS

_MIN_CHARS = 12  # characters
_MAX_OCCURRENCES = 20  # maximum occurrences of a text in one source that are checked
_REACH = 400  # characters of a sentence on either side
_STYLE = " .,;:!?"

_SENTENCE_START = re.compile(r"[.!?…;:|{}\[\]]+[\"'”’)\]*_]*\s|\n[^\w\n]*\n|\n(?=\s*(?:[-*+•>|#]|\d{1,3}[.)]\s))|^")
_TITLE = re.compile(r"(?:^|\n)(?P<title>[^\n]{1,50})\n(?=\s*[A-Z\"“])")
_MARKS = " \t\r\n-*+•>#|_\"'“”‘’([{`:"
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]\s*")
_CITED = re.compile(r"(?:\s*(?:\[[^\[\]\n]{1,40}\]|【[^【】\n]{1,40}】|[\"'”’)*_`}\]]))+")
_JOINED = re.compile(r"(?:[,—–]|[,;]? ?\b(?:and|but|or|so|yet|while|whereas|then))\s*$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[ \t]*(?:$|\n(?!\s*(?-i:[a-z]))|[.!?…;:|\"”)—–]"
    r"|,(?!\s*(?:unless|if|except|only|but (?:not|only)|provided|until|when|where|as long as|though|although)\b)"
    r"|\s(?:and|but|or|while|whereas|so)\b(?! (?:not|only|never)))",
    re.IGNORECASE,
)
_QUALIFIERS = NEGATORS | frozenset(
    "if unless whether when whenever until before after although though because since provided assuming supposing "
    "suppose except instead rather unlike false untrue wrong unlikely impossible doubt doubts doubted deny denies "
    "denied rejected disputes disputed might may could would should must can perhaps possibly probably allegedly "
    "reportedly supposedly that say says said saying claim claims claimed state states stated believe believes "
    "believed think thinks thought suggest suggests suggested argue argues argued report reports reported according "
    "hope hopes hoped expect expects expected plan plans planned want wants wanted some most few many several half "
    "hardly barely rarely seldom almost nearly only either both every each all any".split()
)
"""Words that affect a following clause: it is not asserted, or not of everything."""

_DENYING = frozenset(
    "no not never none neither nor nobody without cannot false untrue wrong deny denies denied dispute disputes "
    "disputed reject rejects rejected refute refutes refuted".split()
)
_OPEN = frozenset("whether if unless only because until".split())  # the denial may not concern the clause after it
_TURN = re.compile(r"[,;—–]|\b(?:although|though|since|while|whereas|but|when|after|before|and|or)\b", re.IGNORECASE)
_STOP = re.compile(r"[.!?…]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def may_occur(text: str, context: Context) -> bool:
    """Return whether any source has a text, regardless of typography, case and what is around it."""
    return _needle(text) in context.folded_text


def find_verbatim(text: str, source: Source, context: Context) -> tuple[int, int] | None:
    """Return the span of `source.text` where `text` is a whole clause, regardless of typography and case; else None."""
    for start, end in _occurrences(text, source, context):
        if is_whole_clause(source.text, start, end):
            behind = _STOP.match(source.text, end)
            return start, behind.end() if behind else end
    return None


def find_denial(text: str, source: Source, context: Context) -> tuple[int, int] | None:
    """Return the first span where a source negates `text`: "No injuries have …", "It is not true that …"; else None."""
    for start, end in _occurrences(text, source, context):
        lead = _lead(source.text[max(0, start - _REACH) : start + 1])
        clause = _lowered_words(_TURN.split(lead)[-1])
        if sum(map(_denies, clause)) % 2 and _OPEN.isdisjoint(clause):
            return start, end
    return None


def _occurrences(text: str, source: Source, context: Context) -> Iterator[tuple[int, int]]:
    """Yield the occurrences of a text in a source, as spans of the original."""
    needle = _needle(text)
    if len(needle) < _MIN_CHARS:
        return
    folded = context.folded(source)
    place = folded.text.find(needle)
    for _ in range(_MAX_OCCURRENCES):
        if place < 0:
            return
        end = place + len(needle)
        if not (folded.text[place - 1 : place].isalnum() or folded.text[end : end + 1].isalnum()):
            yield folded.origin(place, end)
        place = folded.text.find(needle, place + 1)


@lru_cache(maxsize=64)
def _needle(text: str) -> str:
    return fold(text).text.strip(_STYLE)


def is_whole_clause(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` is a clause whose meaning the rest of its sentence does not change."""
    return _begins_clause(text[max(0, start - _REACH) : start + 1]) and _ends_clause(text[end : end + _REACH])


def _lead(before: str) -> str:
    """Return the part of the sentence before the last character of `before`, without titles and list marks."""
    lead = before[[found.end() for found in _SENTENCE_START.finditer(before, 0, len(before) - 1)][-1] :]
    lead = _TITLE.sub(lambda line: line.group() if _qualifies(line["title"]) else "", lead)[:-1].lstrip(_MARKS)
    return _ENUMERATOR.sub("", lead, count=1) if _ENUMERATOR.match(lead) else lead


def _begins_clause(before: str) -> bool:
    """Return whether a clause begins at the last character of `before`."""
    lead = _lead(before)
    if not lead.strip(_MARKS):
        return True
    return _JOINED.search(lead) is not None and not _qualifies(lead)


def _qualifies(lead: str) -> bool:
    return any(word in _QUALIFIERS or word.endswith("n't") for word in _lowered_words(lead))


def _lowered_words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def _denies(word: str) -> bool:
    return word in _DENYING or word.endswith("n't")


def _ends_clause(behind: str) -> bool:
    cited = _CITED.match(behind)
    return _CLAUSE_END.match(behind, cited.end() if cited else 0) is not None
