"""Decide which parts of an answer assert something, and how confidently.

A piece is skipped only if the answer itself declines to assert it. A modal alone ("may increase the risk") is a normal
way to state facts in medicine, law and science, so it lowers the stated confidence and leaves the piece checkable. So
does a hedge that is attributed ("The study suggests that …"), or that is in a side clause. The word lists are in
`phrases`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from groundwire.claims.abstentions import says_not_told
from groundwire.claims.certainty import PLAIN, confidence_of
from groundwire.claims.cited import find_marks
from groundwire.claims.clauses import tells_a_fact
from groundwire.claims.phrases import (
    AFTER_IMPERATIVE,
    ANSWERED,
    ANSWERING,
    ATTRIBUTIONS,
    BARE_ANSWERS,
    CONNECTIVES,
    DISCOURSE,
    EVALUATIONS,
    FAVOURITES,
    FUNCTION_WORDS,
    HEDGES,
    IMPERATIVES,
    INTERJECTIONS,
    NOTES,
    OFFERING,
    ONLY_IMPERATIVES,
    OPENINGS,
    SMALL_TALK,
    SOURCE_WORDS,
    telling_words,
)

SKIP_REASONS = {
    "question": "It asks.",
    "instruction": "It tells the reader what to do. One that is listed, holds a number or cites a source is checked.",
    "hedged": "The answer itself does not commit to it. Checked when the policy verifies hedged statements.",
    "greeting": "It greets, thanks, agrees, wishes well or keeps the conversation going.",
    "offer": "It offers further help.",
    "refusal": "It declines to answer, or says what the writer does not know.",
    "not_in_context": "It says that the context does not tell.",
    "opinion": "It voices a taste, a recommendation or a feeling of the writer.",
    "discourse": "It says of the answer or a source how it is made, and nothing that a source says.",
    "reasoning": "It is the model's own thinking, marked as such.",
    "code": "It is code or raw HTML.",
    "heading": "It is a heading, a label or the header of a table.",
    "lead_in": "It introduces what follows; the items below carry it as their lead.",
    "citation_only": "It only names sources.",
    "confidence": "It says how sure the answer is; the piece before it, or the record around it, takes that on.",
    "no_content": "It holds no content word of its own, such as a bare yes.",
    "not_a_quotation": "The evidence field holds no text; the report lists it as a violation.",
}
"""Every reason not to check a piece of an answer, with its explanation for the user."""


class Stance(NamedTuple):
    """The reason that a piece asserts nothing (a key of `SKIP_REASONS`, or None), and its stated confidence (0–1)."""

    skip: str | None
    confidence: float


_TAG_LENGTH = 40  # characters
_READ = 600  # characters of a piece that are read; they suffice to classify it
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,;:.()?!]")
_PARTED = re.compile(r" ?' ?(?=(?:s|m|re|ve|ll|d|t)\b)|(?<=\w) (?=n't\b)")  # "it 's", "it ' s", "do n't"
_LABEL = re.compile(r"\W*\*\*[^*\n]{1,60}+\*\*:?\s*")
_QUOTED = re.compile(r"\"[^\"]{1,200}+\"|“[^“”]{1,200}+”|(?<![\w'])'(?=[A-Z])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}+'(?!\w)")
_TELLING_QUESTION = re.compile(
    r"\W*(?:[\w ]{1,30}[,!] )?(?:did|do) you know,? (?:that )?"
    r"(?!who|what|where|when|why|how|if|whether|of|any|about)(?:[^\s?]+\s+){4}",
    re.IGNORECASE,
)
_TAG = re.compile(
    r",? *(?:(?:is|are|was|were|do|does|did|has|have|had|wo|would|ca|could|should)(?: ?n['’]t) "
    r"(?:it|he|she|they|there|we|you)(?: think| agree)?|right|correct|huh|no|eh) *\?[ *_)!]*$",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\W*(?:(?:so|and|but|well|ok|okay|oh|yes|yeah|no|hey|hi),? )*(?:who|what|where|when|why|how|which|whose|is|are|was"
    r"|were|do|does|did|has|have|had|can|could|will|would|should|may|might|am|you|we|i)\b",
    re.IGNORECASE,
)
_SIDE_CLAUSE = frozenset(
    "which who whom whose because although though while whereas since unless if that , ; : (".split()
)
_IMPERSONAL = frozenset("it it's there there's one perhaps maybe possibly probably presumably most".split())
_FINITE = frozenset("is are was were has have had will can may does did said says".split())
_SEQUENCE = frozenset("first next then finally once simply just gently carefully always".split())
_EMPTY = FUNCTION_WORDS | INTERJECTIONS
_TASTE = _EMPTY | EVALUATIONS
_TALK = _TASTE | SMALL_TALK
_ABOUT_ITSELF = _TASTE | DISCOURSE
_NOTING = frozenset(note.split()[0] for note in NOTES)
_HEDGING = telling_words(HEDGES) | {"might", "may"}
_POSSIBLE = re.compile(  # "might of" is a noun; "may vote" allows, and "may have guests" owns
    r"(?<!\bthe)(?<!\bits) might (?!of |and )(?:not )?[a-z]{2,} "
    r"| may (?:well |also |not )?have (?:been |become |fallen |grown |risen |gone |sold |lost |won |made |[a-z]{2,}ed )"
)
_FIRST_WORDS = frozenset(phrase.split()[0] for _reason, table in OPENINGS for phrase in table)

_FRAMING = frozenset("based according from given using per in".split())
_FRAME_WORDS = 12
_LEAD_IN_WORDS = 20
_BREAKING_OFF = frozenset("is are was were be include includes included including".split())
_ANNOUNCING = frozenset("here following below these steps ways tips follows summary".split())
_SOURCES_LIMIT = 4000
_FOOTNOTE = re.compile(r"\W{0,3}\[\^?\w{1,20}\]:")
_SOURCE_LIST = re.compile(r"\W{0,4}(?:sources?|references?|citations?|works cited)\W{0,4}:", re.IGNORECASE)
_ADDRESS = re.compile(r"\[[^\[\]]{0,200}\]\([^\s()]{0,400}\)|https?://[^\s<>]{1,500}|www\.[^\s<>]{1,500}")
_SOURCE_WORDS = frozenset("source sources reference references see and also citation citations from link links".split())


def stance(text: str) -> Stance:
    """Return whether and how confidently the answer asserts one sentence or clause."""
    if is_question(text):
        return Stance("question", PLAIN)
    text = text[:_READ]
    tokens = _tokens(text)
    opened = _opened(tokens)
    if says_not_told(opened):
        return Stance("not_in_context", PLAIN)
    if _QUOTED.search(text):  # a hedge or taste in quotation marks is somebody else's
        tokens = _tokens(_QUOTED.sub(" quoted ", text))
        opened = _opened(tokens)
    opened = _opened(_without_frame(opened))
    words = [token for token in tokens if token[0].isalnum()]
    padded = f" {' '.join(words)} "
    return Stance(_skip(text, tokens, opened, padded), confidence_of(text, words, padded))


def is_question(text: str) -> bool:
    """Return whether a sentence is a question.

    It ends in a question mark outside quotations, and is neither "Did you know that …" nor a statement with a tag ("It
    opened in 1990, didn't it?").
    """
    if not text.rstrip(" \t*_)]!").endswith(("?", "？", "؟")) or _TELLING_QUESTION.match(text):
        return False
    tag = _TAG.search(text, max(0, len(text) - _TAG_LENGTH))
    return tag is None or tag.start() == 0 or _ASKING.match(text) is not None


def is_lead_in(text: str) -> bool:
    """Return whether a sentence that ends in a colon only introduces the text after it.

    It does if it is short, contains a word such as "following", or ends in a verb such as "are" or "includes".
    """
    if not text.rstrip(" \t*_").endswith((":", "：")):
        return False
    words = _without_frame(_tokens(text[:_READ]))
    return len(words) <= _LEAD_IN_WORDS or not _ANNOUNCING.isdisjoint(words) or words[-2] in _BREAKING_OFF


def is_only_sources(text: str, bare: str) -> bool:
    """Return whether a sentence only names sources: marks, addresses, a footnote, a short list after "Sources:".

    `bare` is `text` with its citation marks replaced by spaces.
    """
    if _FOOTNOTE.match(text) or (len(text) <= 200 and _SOURCE_LIST.match(text)):
        return True
    if len(text) > _SOURCES_LIMIT or (bare is text and "http" not in text and "www." not in text):
        return False
    left = _TOKEN.findall(_ADDRESS.sub(" ", bare).lower())
    return _SOURCE_WORDS.issuperset(token for token in left if token[0].isalnum())


def _tokens(text: str) -> list[str]:
    """Return words and marks in lower case, contractions whole, without a bold label at the beginning of an item."""
    if "*" in text[:3] and (label := _LABEL.match(text)) and label.end() < len(text):
        text = text[label.end() :]
    text = text.lower().replace("’", "'")
    if " '" in text or " n't" in text:
        text = _PARTED.sub(lambda mark: mark.group().strip(), text)
    return _TOKEN.findall(text)


def _skip(text: str, tokens: list[str], opened: list[str], padded: str) -> str | None:
    words = padded.split()
    if not opened:
        return "greeting" if words and words[0] not in BARE_ANSWERS else "no_content"
    if opened[0] in _FIRST_WORDS and (reason := _opening(opened)):
        attributed = reason == "hedged" and opened[0] in _IMPERSONAL and _is_attributed(text, padded)
        return None if attributed or (reason == "opinion" and tells_a_fact(opened)) else reason
    if opened[0] == "if" and any(phrase in padded for phrase in OFFERING):
        return "offer"
    if _EMPTY.issuperset(words):
        return "no_content"
    if _TASTE.issuperset(words) or any(phrase in padded for phrase in FAVOURITES):
        return "opinion"
    if _TALK.issuperset(words):
        return "greeting"
    if _is_about_itself(words):
        return "discourse"
    if not _HEDGING.isdisjoint(words) and _is_hedged(tokens) and not _is_attributed(text, padded):
        return "hedged"
    return "instruction" if _is_imperative(opened) else None


def _opened(tokens: list[str]) -> list[str]:
    """Return the tokens after an opening without content: connectives, interjections, marks, "note that"."""
    place = 2 if tokens[:2] == ["of", "course"] else 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1 : place + 2]
        if token in INTERJECTIONS:
            if following and following[0][0].isalnum() and not _answers(token, following[0]):
                break  # "Hello Kitty", "True love"
        elif token not in CONNECTIVES and token[0].isalnum():
            break
        place += 1
    return _without_note(tokens[place:])


def _answers(word: str, following: str) -> bool:
    """Return whether an interjection can precede a sentence without a comma: "Yes he did", but "No man did"."""
    return word in ANSWERING or (word == "no" and following in ANSWERED)


def _without_frame(tokens: list[str]) -> list[str]:
    """Return the tokens after "Based on the given passages," and similar, which do not affect the stance."""
    if not tokens or tokens[0] not in _FRAMING or "," not in tokens[:_FRAME_WORDS]:
        return tokens
    comma = tokens.index(",")
    frame = tokens[:comma]
    is_frame = not SOURCE_WORDS.isdisjoint(frame) and _ABOUT_ITSELF.issuperset(w for w in frame if not w.isdigit())
    return tokens[comma + 1 :] if is_frame else tokens


def _without_note(tokens: list[str]) -> list[str]:
    """Return the tokens after "note that" and similar, which assert the rest of the sentence."""
    if not tokens or tokens[0] not in _NOTING:
        return tokens
    for note in NOTES:
        words = note.split()
        if tokens[: len(words)] == words and tokens[len(words) : len(words) + 1] in (["that"], [":"], [","]):
            return tokens[len(words) + 1 :]
    return tokens


def _opening(opened: list[str]) -> str | None:
    """Return the skip reason that the opening words of a piece give, if any."""
    plain = f" {' '.join(token for token in opened if token[0].isalnum())} "
    marked = f" {' '.join(opened).rstrip(' .!')} . "
    for reason, openings in OPENINGS:
        if plain.startswith(openings) or marked.startswith(openings):
            return reason
    return None


def _is_about_itself(words: list[str]) -> bool:
    """Return whether the piece is about the answer or its sources and has no word about their content."""
    if SOURCE_WORDS.isdisjoint(words):
        return False
    named = (word for before, word in pairwise(words) if word.isdigit() and before in SOURCE_WORDS)
    return _ABOUT_ITSELF.union(named).issuperset(words)


def _is_attributed(text: str, padded: str) -> bool:
    """Return whether the piece reports the statement of somebody else, or cites a source for it."""
    return any(name in padded for name in ATTRIBUTIONS) or next(find_marks(text), None) is not None


def _is_hedged(tokens: list[str]) -> bool:
    """Return whether the main clause is hedged: the text up to the first side clause after its fifth token."""
    end = next((place for place, token in enumerate(tokens) if place >= 5 and token in _SIDE_CLAUSE), len(tokens))
    main = f" {' '.join(token for token in tokens[:end] if token[0].isalnum())} "
    return any(hedge in main for hedge in HEDGES) or _POSSIBLE.search(main) is not None


def _is_imperative(opened: list[str]) -> bool:
    words = [token for token in opened[:8] if token[0].isalnum()]
    if words and words[0] in _SEQUENCE:
        words = words[1:]
    if len(words) < 2 or words[0] not in IMPERATIVES or words[1] in _FINITE:
        return False
    if words[1] in ("and", "or") and not _FINITE.isdisjoint(words[3:4]):
        return False  # "Wear and tear is insured"
    return words[0] in ONLY_IMPERATIVES or (words[1] in AFTER_IMPERATIVE and _FINITE.isdisjoint(words[1:3]))
