"""Split sentences into clauses that can be understood alone, only where the split is safe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from groundwire.text.sentences import kept_whole

_JOINT = re.compile(
    r"(?P<semicolon>;)\s+(?=\w)|,\s+(?=(?:and|but|while|whereas|yet|however|although|though),?\s)|\s(?=but\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LONGEST = 1200
_BRINGING = frozenset("that because since".split())
_FACT_WORDS = 4

_FINITE = frozenset(
    "is are was were has had will would can cannot could may might must should does did isn't aren't wasn't "
    "weren't hasn't hadn't won't wouldn't can't couldn't doesn't didn't it's he's she's they're rose fell grew "
    "became began came went made took gave got led won lost held kept left met paid put ran said saw sold sent "
    "set spent stood told wrote found founded fought bought brought built chose drew drove flew knew lay meant "
    "read sang sat sought spoke taught thought threw understood wore increased decreased declined dropped reached "
    "remained reported received released represents requires provides includes contains means makes takes gives "
    "becomes remains offers helps causes occurs begins ends lies shows states says notes adds explains describes "
    "uses allows refers consists works lives stands starts plays covers costs grows falls rises seems appears "
    "tends differs exceeded totaled totalled averaged announced launched opened closed joined moved died served "
    "played worked lived started ended continued created produced published signed named called used killed "
    "caused helped wanted needed stated claimed believed argued agreed decided refused accounted amounted "
    "expanded acquired developed introduced".split()
)
_SUBJECTS = frozenset(
    "it he she they we you i this these those there the a an its his her their our my your some many most several "
    "both each all another one two three four five six seven eight nine ten".split()
)
_DETERMINERS = frozenset("the a an its his her their our this these those".split())
_SUBORDINATE_LEFT = frozenset(
    "that if when whenever whether because unless since until before after although though either neither nor "
    "between once while said says believe believes think thinks claims claimed stated states suggests suggest "
    "according not only".split()
)
_SUBORDINATE_RIGHT = frozenset("that which who whom whose where".split())
_CLEARLY_FINITE = frozenset(
    "is are was were has had will would can cannot could may might must should did does fell rose grew began "
    "became went made took gave won lost came".split()
)
_NO_NOUNS = frozenset(
    "then also thus therefore later now still not only never often always soon again to in on at for with by from "
    "of as if when who which that whose what how why where so yet hence even just rather than instead be been "
    "have do get make take see".split()
)
_SAME_SUBJECT = frozenset(
    "rather only also instead not merely simply just do does did is are was were has have".split()
)
_NAME = re.compile(r"[A-Z\d$€£]")


def clauses(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the clauses of `sentence`, in order and covering every word; one span if no split is safe.

    A split is safe between two parts that each have a subject and a finite verb, if no word of the first (a "that", an
    "if", an "according to", a "not only") governs the second. The conjunction begins the second part.
    """
    start = 0
    for end, after, is_semicolon in _joints(sentence):
        left, right = sentence[start:end], sentence[after:]
        if _stands_alone(left, is_semicolon) and _opens_clause(right, is_semicolon):
            yield start, end
            start = after
    yield start, len(sentence)


def halves(sentence: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield each way to split the sentence in two before a conjunction or after a semicolon, safe or not."""
    for end, after, _is_semicolon in _joints(sentence):
        words = _WORD.findall(sentence[after : after + 80])
        if len(words) > 3 and words[1].lower() not in _SAME_SUBJECT:
            yield (0, end), (after, len(sentence))


def tells_a_fact(words: Sequence[str]) -> bool:
    """Return whether a "that", "because" or "since" begins a clause with a subject and a verb.

    "I love that it takes place at sea" expresses an opinion, but also asserts a fact. `words` are in lower case.
    """
    for place, word in enumerate(words):
        if word in _BRINGING and words[place + 1 : place + 2] and words[place + 1] in _SUBJECTS - {"i", "we", "you"}:
            return not _FINITE.isdisjoint(words[place + 2 : place + 8]) and len(words) - place > _FACT_WORDS
    return False


def _joints(sentence: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the places where clauses may meet: the end of the first, the start of the second, if at a semicolon."""
    if len(sentence) > _LONGEST or not ("," in sentence or ";" in sentence or " but " in sentence):
        return
    kept: list[tuple[int, int]] | None = None
    for joint in _JOINT.finditer(sentence):
        kept = kept_whole(sentence) if kept is None else kept
        if not any(low < joint.start() < high for low, high in kept):
            yield len(sentence[: joint.start()].rstrip()), joint.end(), joint["semicolon"] is not None


def _stands_alone(left: str, at_semicolon: bool) -> bool:
    words = [word.lower() for word in _WORD.findall(left)]
    if len(words) < 3 or (_FINITE.isdisjoint(words) and not any(_acts(words, at) for at in range(2, len(words)))):
        return False
    return at_semicolon or _SUBORDINATE_LEFT.isdisjoint(words)


def _opens_clause(right: str, at_semicolon: bool) -> bool:
    """Return whether the text after a joint begins with a subject and has a finite verb soon after it."""
    words = _WORD.findall(right[:160])
    if not at_semicolon or (words and words[0].lower() in ("and", "but", "while", "whereas", "yet", "however")):
        words = words[1:]
    if len(words) < 3:
        return False
    head = words[0].lower()
    if head not in _SUBJECTS and not _NAME.match(words[0]):
        verb = words[1].lower()
        finite = (
            verb in _CLEARLY_FINITE or words[2].lower() in _CLEARLY_FINITE or (at_semicolon and verb.endswith("ed"))
        )
        return finite and not _is_no_noun(head)
    told = [word.lower() for word in words]
    for place, word in enumerate(told[1:7], start=1):
        if word in _SUBORDINATE_RIGHT:
            return False
        if word in _FINITE or (place > 1 and _acts(told, place)):
            return True
    return head in ("it's", "he's", "she's", "they're")


def _acts(words: Sequence[str], place: int) -> bool:
    """Return whether a word is a past-tense verb with its object: "approved the plan", not "approved by the board"."""
    return words[place].endswith("ed") and words[place + 1 : place + 2] != [] and words[place + 1] in _DETERMINERS


def _is_no_noun(word: str) -> bool:
    return word in _FINITE or word in _NO_NOUNS or word.endswith(("ly", "ing", "ed"))
