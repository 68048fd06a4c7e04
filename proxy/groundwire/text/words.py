"""Split a text into words with their offsets, and stem them so that inflections of one word compare equal."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from groundwire.caches import memo

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # scripts written without spaces: one character is one word
    r"|\d+(?:[.,]\d+)*"
    r"|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"
)

STOPWORDS = frozenset(
    "a an and are as at be been being but by can could did do does doing done for from had has have having he her "
    "hers him his how i if in into is it its itself just me might my of on or our ours own per shall she should "
    "so some such than that the their theirs them then there these they this those through to too up upon us very "
    "was we were what when where which while who whom whose why will with would you your yours also about both "
    "each other however therefore thus moreover furthermore additionally may must s t re ve ll d m".split()
)


NEGATORS = frozenset(
    "not no never none neither nor nobody nothing nowhere cannot without unable fail failed fails failing lacks "
    "lacked".split()
)


LONGEST_WORD = 64  # in characters; results for longer words are not cached


class Word(NamedTuple):
    """One word: its span in the text, the word as written and in lower case, its stem, and its properties.

    `is_content`: it is not a stop word; `is_number`: it starts with a digit; `is_negator`: it negates ("not", "never",
    "isn't"); `carries_meaning`: it is neither a stop word nor a negator; `is_capital`: it carries meaning and starts
    with a capital, for whatever reason.
    """

    start: int
    end: int
    text: str
    lower: str
    stem: str
    is_content: bool
    is_number: bool
    is_negator: bool
    carries_meaning: bool
    is_capital: bool


def words(text: str) -> tuple[Word, ...]:
    """Return the words of `text` in order, in linear time."""
    return tuple([_word((*match.span(), *_form_of(match.group()))) for match in _WORD.finditer(text)])


def _form_of(text: str) -> tuple[str, str, str, bool, bool, bool, bool, bool]:
    return _form(text) if len(text) <= LONGEST_WORD else _form.__wrapped__(text)


_word: Callable[[tuple[object, ...]], Word] = partial(tuple.__new__, Word)  # as `Word._make`, without its length check


@lru_cache(maxsize=2**15)
def _form(text: str) -> tuple[str, str, str, bool, bool, bool, bool, bool]:
    """Return the fields of `Word` from `text` on, which are the same for every occurrence of a word."""
    lower, stemmed = text.lower(), stem(text)
    plain, is_content = lower.replace("\u2019", "'"), stemmed not in STOPWORDS
    is_negator = plain in NEGATORS or plain.endswith("n't")
    tells = is_content and not is_negator
    return text, lower, stemmed, is_content, text[0].isdigit(), is_negator, tells, tells and text[0].isupper()


def content_stems(text: str) -> frozenset[str]:
    """Return the distinct stems of the content words of `text`."""
    return frozenset(map(stem, _WORD.findall(text))) - STOPWORDS


@memo(2**15, LONGEST_WORD)
def stem(word: str) -> str:
    """Return a light English stem: without case, possessive, plural, -ed, -ing, -ly and -ness.

    Numbers lose their commas. Words that differ in another ending keep different stems, such as "profit" and
    "profitable".
    """
    lower = word.casefold().replace("\u2019", "'").removesuffix("'s")
    if lower[:1].isdigit():
        return lower.replace(",", "")
    if lower in STOPWORDS or not lower.isascii():
        return lower
    if len(lower) <= 3:
        return lower
    for ending, replacement, least in _ENDINGS:
        if lower.endswith(ending) and len(lower) - len(ending) >= least:
            lower = lower[: len(lower) - len(ending)] + replacement
            break
    if len(lower) > 3 and lower[-1] == lower[-2] and lower[-1] in "bdgmnprt":
        lower = lower[:-1]  # stopped -> stop, planning -> plan
    return lower.removesuffix("e") if len(lower) > 3 else lower


_ENDINGS = (
    ("sses", "ss", 2),
    ("ies", "y", 2),
    ("ied", "y", 2),
    ("eed", "ee", 2),
    ("used", "use", 0),
    ("using", "use", 0),
    ("ingly", "", 3),
    ("edly", "", 3),
    ("ing", "", 3),
    ("ness", "", 4),
    ("ed", "", 3),
    ("ily", "y", 3),
    ("ly", "", 4),
    ("ss", "ss", 1),
    ("us", "us", 1),
    ("is", "is", 1),
    ("xes", "x", 2),
    ("ches", "ch", 2),
    ("shes", "sh", 2),
    ("s", "", 3),
)
