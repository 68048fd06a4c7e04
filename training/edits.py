"""Examples made from a supported one by changing what claim and evidence have in common.

A change in the claim alone or in the evidence alone makes the claim wrong; the same change in both leaves it right. So
neither a changed word nor an odd sentence predicts the label, and a model has to compare the two texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from groundwire.text.words import STOPWORDS
from training.example import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, Example, changed

_NEAR = 0.5  # share of the claim's words that its evidence has to have
_TRIES = 6  # kinds of change
_EXTENDED = 0.2  # share of the edited examples that get another last phrase
_REPLACED, _STATED = 0.6, 0.35  # shares of these whose own last phrase goes, and whose evidence has the phrase too
_SIDES = ("claim", "evidence", "both")
_ANY_WORD = re.compile(r"\w+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_PLAIN = re.compile(r"(?<![\w-])[a-z]{5,}(?![\w-])")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:]\d+)*(?!\w)")
_NAME = re.compile(r"(?<![.!?:] )(?<!^)(?<!\n)\b[A-Z][\w'&-]+(?: (?:of |the |de |van )?[A-Z][\w'&-]+)*")
_SENTENCE = re.compile(r"[^.!?\n]{20,}[.!?]")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|will|must|should|has|have|had|does|do|did|could|would|may)(?P<not> not)?(?= [a-z])"
)
_PHRASE = re.compile(r" (?:in|on|at|during|from|with|after|by|for|since|until) [^,.;:]{3,60}(?=\.$)")
_ENDINGS = "ing ed ly tion ment ity ness al ive ous ies ers er ance ence age ure es s".split()
_GROUPS = [
    group.split()
    for group in (
        "two three four five six seven eight nine ten eleven twelve",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "January February March April May June July August September October November December",
        "first second third fourth fifth last",
        "red blue green yellow white black grey brown orange",
        "north south east west",
        "morning afternoon evening night",
        "spring summer autumn winter",
        "hours days weeks months years minutes",
        "hour day week month year minute",
        "daily weekly monthly yearly quarterly",
        "once twice",
        "million billion thousand",
    )
]
_OPPOSITES = [
    pair.split("/")
    for pair in """
increase/decrease increases/decreases increased/decreased increasing/decreasing rise/fall rises/falls rose/fell
rising/falling raise/lower raised/lowered raises/lowers grew/shrank grow/shrink grows/shrinks growth/decline
higher/lower highest/lowest high/low more/fewer more/less most/least before/after earlier/later early/late
above/below inside/outside include/exclude includes/excludes included/excluded including/excluding allowed/forbidden
permitted/prohibited accepted/rejected accept/reject approved/rejected agreed/refused agrees/refuses open/closed
opens/closes opened/closed opening/closing start/end starts/ends started/ended begin/end begins/ends began/ended
win/lose won/lost wins/loses gained/lost gain/loss profit/loss buy/sell bought/sold buys/sells acquired/sold
hired/dismissed enabled/disabled enable/disable free/paid public/private internal/external optional/mandatory
voluntary/required required/optional safe/dangerous warm/cold hot/cold wet/dry large/small larger/smaller
largest/smallest big/small long/short longer/shorter longest/shortest fast/slow faster/slower best/worst
better/worse good/bad strong/weak stronger/weaker success/failure succeeded/failed passed/failed support/oppose
supports/opposes supported/opposed positive/negative rich/poor young/old younger/older new/old newer/older
always/never everyone/nobody both/neither all/none male/female men/women boy/girl son/daughter brother/sister
husband/wife father/mother upper/lower upstairs/downstairs indoor/outdoor indoors/outdoors same/different
similar/different possible/impossible likely/unlikely known/unknown able/unable legal/illegal complete/incomplete
correct/incorrect confirmed/denied confirm/deny admitted/denied innocent/guilty alive/dead buyer/seller
landlord/tenant employer/employee lender/borrower sender/recipient teacher/student parent/child doctor/patient
expensive/cheap full/empty heavy/light thick/thin loose/tight temporary/permanent annual/monthly gross/net
import/export imports/exports imported/exported deposit/withdraw maximum/minimum dark/bright loud/quiet
easy/difficult simple/complex rare/common rarely/often seldom/often never/sometimes improve/worsen improved/worsened
improves/worsens expand/shrink expanded/shrank extended/shortened remove/add removed/added adds/removes
adding/removing delayed/advanced ahead/behind during/after local/remote manual/automatic
manually/automatically primary/secondary junior/senior present/absent found/missing directly/indirectly partly/fully
partially/fully
""".split()
]
_STRONGER = [
    pair.split("/")
    for pair in (
        "some/all many/all most/all several/all may/must might/will could/will can/must should/must often/always "
        "usually/always sometimes/always about/exactly probably/certainly likely/certain nearly/exactly almost/exactly "
        "suggests/proves suggest/prove expected/certain"
    ).split()
]


@dataclass(frozen=True, slots=True)
class Change:
    """A text that claim and evidence have in common, and what replaces it. The label is that of a changed claim."""

    old: str
    new: str
    label: int
    sides: tuple[str, ...] = _SIDES


def edited(example: Example, other: Example, chance: random.Random) -> Example | None:
    """Return a supported example with a change in the claim, in the evidence or in both; None if none is possible.

    Names, words and phrases also come from the `other` example.
    """
    own = set(_WORD.findall(example.claim.lower()))
    if len(own & set(_WORD.findall(example.evidence.lower()))) < _NEAR * max(1, len(own)):
        return None
    for make in chance.sample(_MAKERS, _TRIES):
        changes = list(make(example, other, chance))
        if changes:
            change = chance.choice(changes)
            found = _applied(example, change, chance.choice(change.sides))
            if found is not None:
                return found
    return None


def extended(example: Example, other: Example, chance: random.Random) -> Example | None:
    """Return a supported example whose claim ends with the last phrase of another one, which no source has.

    In some cases the sentence of the evidence that is most like the claim gets it too, and the claim stays right.
    """
    phrase = _PHRASE.search(other.claim)
    if not phrase or not example.claim.endswith(".") or phrase[0].lower() in example.evidence.lower():
        return None
    end, last = _PHRASE.search(example.claim), len(example.claim) - 1
    start = end.start() if end and chance.random() < _REPLACED else last
    claim = example.claim[:start] + phrase[0] + "."
    if chance.random() >= _STATED:
        return replace(example, claim=claim, label=NOT_SUPPORTED, wrong=[(start + 1, len(claim) - 1)])
    sentences = _SENTENCE.findall(example.evidence)
    if not sentences or start != last:
        return None
    wanted = set(_WORD.findall(example.claim.lower()))
    best = max(sentences, key=lambda each: len(wanted & set(_WORD.findall(each.lower()))))
    evidence = example.evidence.replace(best, best[:-1] + phrase[0] + best[-1])
    return replace(example, claim=claim, evidence=evidence, wrong=[])


def _applied(example: Example, change: Change, side: str) -> Example | None:
    pattern = re.compile(rf"(?<![\w]){re.escape(change.old)}(?![\w])(?![.,]\d)")
    claim, evidence = example.claim, example.evidence
    if not pattern.search(claim) or (side != "claim" and not pattern.search(evidence)):
        return None
    if side != "evidence":
        claim = pattern.sub(lambda _: change.new, claim)
    if side != "claim":
        evidence = pattern.sub(lambda _: change.new, evidence)
    if side == "both":
        return replace(example, claim=claim, evidence=evidence, wrong=[])
    spans = changed(example.claim, claim) if side == "claim" else [match.span() for match in pattern.finditer(claim)]
    return replace(example, claim=claim, evidence=evidence, label=change.label, wrong=spans)


def _words_of(example: Example) -> tuple[set[str], set[str]]:
    """Return the words of the claim, and those of them that the evidence has."""
    claimed = set(_ANY_WORD.findall(example.claim))
    return claimed, claimed & set(_ANY_WORD.findall(example.evidence))


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _numbers(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    given = _NUMBER.findall(example.evidence)
    for old in sorted(set(_NUMBER.findall(example.claim)) & set(given)):
        if chance.random() < 0.5 and (
            rest := [each for each in given if abs(len(each) - len(old)) <= 1 and each != old]
        ):
            new = chance.choice(rest)
        else:
            digits = [at for at, each in enumerate(old) if each.isdigit()]
            at = chance.choice(digits)
            figure = chance.choice([each for each in "123456789" if each != old[at]])
            new = old[:at] + figure + old[at + 1 :]
        if not _has(example.claim, new):
            yield Change(old, new, CONTRADICTED)


def _members(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    claimed, shared = _words_of(example)
    for group in _GROUPS:
        rest = [each for each in group if each not in claimed]
        yield from (Change(old, chance.choice(rest), CONTRADICTED) for old in group if rest and old in shared)


def _names(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    text = example.evidence if chance.random() < 0.7 else other.evidence
    for old in sorted(set(_NAME.findall(example.claim))):
        if not _has(example.evidence, old):
            continue
        parts = set(old.split())
        rest = [
            each
            for each in set(_NAME.findall(text))
            if not parts & set(each.split())
            and f"{each} {old}" not in text
            and f"{old} {each}" not in text
            and not _has(example.claim, each)
        ]
        if rest:
            yield Change(old, chance.choice(sorted(rest)), NOT_SUPPORTED)


def _opposites(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    claimed, shared = _words_of(example)
    for one, two in _OPPOSITES:
        for old, new in ((one, two), (two, one)):
            if old in shared and new not in claimed:
                yield Change(old, new, CONTRADICTED)


def _stronger(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    _, shared = _words_of(example)
    for weak, strong in _STRONGER:
        if weak in shared:
            yield Change(weak, strong, NOT_SUPPORTED, ("claim", "both"))
        if strong in shared:
            yield Change(strong, weak, NOT_SUPPORTED, ("evidence", "both"))


def _negations(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    for match in _AUXILIARY.finditer(example.claim):
        following = re.match(r" [a-z]+", example.claim[match.end() :])
        before = re.search(r"[\w'-]+ $", example.claim[: match.start()])
        for old in ((before[0] if before else "") + match[0], match[0] + (following[0] if following else "")):
            if old in (match[0], "") or not _has(example.evidence, old):
                continue
            verb = match[0].removesuffix(" not")
            yield Change(old, old.replace(match[0], verb if match["not"] else f"{verb} not"), CONTRADICTED)


def _words(example: Example, other: Example, chance: random.Random) -> Iterator[Change]:
    given = {each for each in _PLAIN.findall(example.evidence + " " + other.evidence) if each not in STOPWORDS}
    for old in sorted(set(_PLAIN.findall(example.claim)) & set(_PLAIN.findall(example.evidence)) & given):
        ending = _ending(old)
        rest = [
            each
            for each in given
            if ending and _ending(each) == ending and each[:4] != old[:4] and not _has(example.claim, each)
        ]
        if rest:
            yield Change(old, chance.choice(sorted(rest)), NOT_SUPPORTED)


def _ending(word: str) -> str | None:
    return next((each for each in _ENDINGS if word.endswith(each)), None)


_Make = Callable[[Example, Example, random.Random], Iterator[Change]]
_MAKERS: list[_Make] = [
    *[_numbers, _members, _names, _negations, _words] * 2,
    *[_opposites] * 3,
    _stronger,
]


def with_edits(examples: Sequence[Example], share: float, chance: random.Random) -> list[Example]:
    """Return the examples followed by edited ones of a share of them."""
    found = list(examples)
    for each in examples:
        if each.label == SUPPORTED and chance.random() < share:
            make = extended if chance.random() < _EXTENDED else edited
            new = make(each, chance.choice(examples), chance)
            if new is not None:
                found.append(new)
    return found
