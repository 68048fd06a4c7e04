"""Compare an answer with earlier answers about its subject: contradictions, their severity, and a score.

Only the newest earlier answer that has a statement on a claim counts: it supersedes those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim, Judgement, Severity, Source
from groundwire.evidence.index import Context
from groundwire.features.contradiction import Opposition, is_superseded, opposition
from groundwire.features.statements import Statement, are_of_one_time, is_same, may_be_of_one
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.report import Consistency, Contradiction
from groundwire.text.quantities import find_quantities
from groundwire.text.reading import inside
from groundwire.text.words import CALENDAR, REFERENTS, TITLES, concept, content_stems, stem, words

_INLINE = re.compile(
    r"(?P<subject>[^,;:]{2,120}?)(?:(?P<copula> are| were)|(?P<closed> consists? of| comprises?| is made (?:up )?of|"
    r" are made (?:up )?of)|(?P<taken> (?:(?:is |are )?(?:currently |still )?(?:takes?|taking|receives?|receiving|on|"
    r"prescribed|treated with|allergic to))(?= \w))|:)(?: the following:?)?(?: both)? (?P<items>[^;:]{3,600})$",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = re.compile(
    r"\b(?:includ\w+|such as|for example|e\.g|some|among|like|etc|and (?:more|others|so on)|at least|mainly|mostly|"
    r"several|examples?|many|also|additionally|in addition|besides|as well|other|others|further|additional)\b",
    re.IGNORECASE,
)
_DOSING = frozenset(
    "daily twice once thrice weekly monthly nightly day night morning evening bedtime needed every hour hours week per "
    "tablet tablets capsule capsules dose doses times time mg mcg g ml units iu prn bid tid qd".split()
)
_NOT_TAKEN = frozenset(
    map(
        stem,
        "note notes minutes picture pictures photo photos photograph photographs care part place time break breaks "
        "class classes course courses step steps action turn turns risk risks responsibility holiday train bus taxi "
        "call calls payment payments order orders booking bookings instruction instructions feedback email emails "
        "leave site board duty track course schedule strike monday tuesday wednesday thursday friday saturday sunday "
        "card cards cash mail letters visitors guests walk walks nap naps bath baths shower showers".split(),
    )
)
_TAKING = re.compile(
    r"\b(?:tak(?:es?|ing)|receiv(?:es?|ing)|prescri\w+|medicat\w+|medicines?|drugs?|supplements?|allerg\w+|on)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:patient|client|resident|he|she|they|i|you|who|mother|father|wife|husband|son|daughter|mr|mrs|ms|dr|child|"
    r"baby|woman|man|boy|girl|user|person)\b|^\W*[A-Z][a-z]",
)
_JOINT = re.compile(r"\s*(?:,\s*(?:and|or)\b|,|\band\b|\s&\s)\s*")
_COLLECTIVE = frozenset(
    concept(word.stem)
    for word in words(
        "members ingredients parts components options categories types languages requirements colours colors steps "
        "stages phases plans sizes flavours founders authors winners countries cities sites offices branches products "
        "subjects symptoms formats methods currencies partners shareholders days planets medications medicines drugs "
        "prescriptions supplements allergies diagnoses attendees participants speakers directors owners subsidiaries "
        "allergens beneficiaries signatories"
    )
)
_LONGEST_ITEM = 3  # content words; a longer item is a statement


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that is presented as complete: its subject as a statement, the claim that contains it, and its text.

    `items` are the text of each item with the concepts that name it. `taken` means that it lists medicines that a
    person takes, or substances that a person does not tolerate.
    """

    subject: Statement
    claim: Claim
    text: str
    items: tuple[tuple[str, frozenset[str]], ...]
    taken: bool

    def not_in(self, other: Listing) -> list[str]:
        """Return the texts of the items that another list does not have, perhaps with more or fewer words."""
        theirs = [naming for _, naming in other.items]
        return [text for text, naming in self.items if not any(naming <= each or each <= naming for each in theirs)]


def _listings(statements: Sequence[Statement]) -> Iterator[Listing]:
    """Yield the complete lists of one answer: within a sentence, or as items under a lead-in that ends in a colon."""
    for statement in statements:
        if statement.claim.skip_reason is None and (found := _inline(statement)):
            yield found
    for lead, group in groupby(statements, key=lambda statement: statement.claim.lead):
        items = [statement for statement in group if statement.claim.skip_reason is None]
        if lead.rstrip().endswith(":") and len(items) > 1 and not _OPEN.search(lead):
            subject = replace(items[0], claim=Claim("", lead, 0, len(lead)))
            text = f"{lead.strip()} {', '.join(item.text.strip() for item in items)}"
            if found := _listing(subject, items[0].claim, [item.text for item in items], text):
                yield found


def _inline(statement: Statement) -> Listing | None:
    found = _INLINE.match(statement.text.strip().rstrip("."))
    if found is None or _OPEN.search(statement.text):
        return None
    items = [item for item in _JOINT.split(found["items"]) if item.strip()]
    if not _is_complete(found, items):
        return None
    subject = found["subject"] + (found["taken"] or "")
    claim = Claim("", subject, 0, len(subject), lead=statement.claim.lead)
    return _listing(replace(statement, claim=claim), statement.claim, items, statement.text.strip())


def _is_complete(found: re.Match[str], items: Sequence[str]) -> bool:
    """Return whether a sentence gives a complete list of things; "the rooms are clean and quiet" does not.

    The medicines that a person takes, and the substances that a person does not tolerate, form a complete list.
    """
    if found["closed"]:
        return True
    if found["taken"]:
        taken = {word.stem for item in items for word in words(item)}
        return bool(_PERSON.search(found["subject"])) and taken.isdisjoint(_NOT_TAKEN)
    heads = {concept(word.stem) for word in words(found["subject"])}
    are_names = all(item.strip()[:1].isupper() for item in items)
    return not heads.isdisjoint(_COLLECTIVE) or (found["copula"] is not None and are_names)


def _listing(subject: Statement, claim: Claim, items: Sequence[str], text: str) -> Listing | None:
    read = tuple((item.strip(" .*_"), frozenset(map(concept, _naming(item)))) for item in items)
    if len(read) < 2 or any(not 0 < len(naming) <= _LONGEST_ITEM for _, naming in read):
        return None
    return Listing(subject, claim, text, read, bool(_TAKING.search(subject.text)))


def _naming(item: str) -> frozenset[str]:
    """Return the stems that name an item, without its dose and frequency."""
    read = words(item)
    measured = inside(read, find_quantities(item))
    stems = frozenset(
        word.stem
        for place, word in enumerate(read)
        if word.is_content and word.lower not in _DOSING and place not in measured
    )
    return (stems or content_stems(item)) - REFERENTS


_SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_COSTS: dict[Severity, float] = {"low": 0.25, "medium": 0.5, "high": 0.75, "critical": 1.0}
_CANDIDATES = 12  # earlier statements that a claim is compared with, the most similar ones
_MAX_ITEMS_LISTED = 5
_UNSURE = 0.7  # below this stated confidence, a contradiction is less severe


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """An earlier answer about the subject: the id of its exchange, its time (Unix seconds), and the question."""

    exchange: str
    at: float
    answer: str
    question: str = ""


class EarlierAnswers:
    """The earlier answers about a subject, parsed into statements and indexed. Linear in their text."""

    def __init__(self, history: Sequence[EarlierAnswer], policy: Policy = Policy()) -> None:
        newest_first = sorted(history, key=lambda each: -each.at)
        answers = [
            [
                Statement(claim, each.at, each.question, each.exchange)
                for claim in find_claims(each.answer, policy, each.question).claims
            ]
            for each in newest_first
        ]
        self.listings = [found for answer in answers for found in _listings(answer)]
        self.statements = [each for answer in answers for each in answer if each.claim.skip_reason is None]
        self._context = Context(Source(str(at), "source", each.text) for at, each in enumerate(self.statements))

    def near(self, statement: Statement) -> list[Statement]:
        """Return the earlier statements that share most with this one, newest first."""
        found = self._context.nearest(content_stems(statement.text), _CANDIDATES)
        places = sorted({int(passage.source.id) for passage in found})
        return [self.statements[place] for place in places]


def compare(
    choices: Sequence[tuple[int, Sequence[Judgement]]],
    history: EarlierAnswers,
    policy: Policy,
    *,
    at: float,
    question: str = "",
) -> Consistency:
    """Return the contradictions between the claims of an answer, by choice, and the history of its subject.

    `at` is the time of the answer (Unix seconds).
    """
    found: list[Contradiction] = []
    compared: list[tuple[int, str]] = []
    for index, judgements in choices:
        statements = [Statement(judgement.claim, at, question) for judgement in judgements]
        of_lists = list(_lists(index, statements, judgements, history))
        found += of_lists
        listed = {each.claim for each in of_lists}
        compared += [(index, each.claim) for each in of_lists]
        for judgement, new in zip(judgements, statements, strict=True):
            if new.claim.skip_reason is not None or new.claim.id in listed:
                continue
            if newest := _newest(new, history.near(new), policy):
                compared.append((index, new.claim.id))
                old, opposed = newest
                if opposed is not None:
                    found.append(_contradiction(index, judgement, old.claim.text, old, opposed))
    cost = sum(_COSTS[each.severity] for each in found)
    score = max(0.0, 1.0 - cost / len(compared)) if compared else None
    return Consistency(score, tuple(found), len(compared), tuple(_agreement(compared, found)))


def _newest(new: Statement, near: Sequence[Statement], policy: Policy) -> tuple[Statement, Opposition | None] | None:
    """Return the statement on a claim of the newest earlier exchange that has one, and the opposition to it, if any."""
    for _, group in groupby(near, key=lambda statement: statement.exchange):
        compared = [(old, opposition(new, old)) for old in group]
        for old, opposed in compared:
            if opposed is None and _agrees(new, old, policy):
                return old, None
        for old, opposed in compared:
            if opposed is not None:
                return old, opposed
    return None


def _agrees(new: Statement, old: Statement, policy: Policy) -> bool:
    if not may_be_of_one(new, old) or (new.dates() and old.dates() and not are_of_one_time(new, old)):
        return False
    return Judge().one(new.claim, Context([Source("earlier", "source", old.text)]), policy).verdict.label == "supported"


def _lists(
    choice: int, statements: Sequence[Statement], judgements: Sequence[Judgement], history: EarlierAnswers
) -> Iterator[Contradiction]:
    """Yield a contradiction for each complete list that differs from the newest earlier list of the same things."""
    judged = {judgement.claim.id: judgement for judgement in judgements}
    for mine in _listings(statements):
        old = next((each for each in history.listings if _are_of_same(mine, each)), None)
        if old is None or not (difference := _difference(mine, old)):
            continue
        yield _contradiction(choice, judged[mine.claim.id], old.text, old.subject, difference, mine.text)


def _difference(mine: Listing, old: Listing) -> Opposition | None:
    """Return how two lists of the same things differ. The difference is low if items are only added or only removed."""
    added, missing = mine.not_in(old), old.not_in(mine)
    if not added and not missing:
        return None
    gravity = 2 if len(added) == len(mine.items) else 1 if added and missing else 0
    if mine.taken and old.taken:
        gravity = max(gravity, 1)
    sides = ("Listed now and not before:", added), ("Listed before and not now:", missing)
    reasons = [f"{which} {', '.join(items[:_MAX_ITEMS_LISTED])}." for which, items in sides if items]
    return Opposition("entity", gravity, " ".join(reasons))


def _are_of_same(mine: Listing, other: Listing) -> bool:
    new, old = mine.subject, other.subject
    if is_superseded(replace(new, claim=replace(new.claim, text=mine.text)), old):
        return False
    return may_be_of_one(new, old) and are_of_one_time(new, old) and is_same(new, old)


def _contradiction(
    choice: int,
    judgement: Judgement,
    earlier: str,
    old: Statement,
    difference: Opposition,
    statement: str | None = None,
) -> Contradiction:
    """Return a contradiction, more severe if the sources contradict the claim too, less so if they support it."""
    claim, label = judgement.claim, judgement.verdict.label
    severity, why = difference.gravity, [difference.reason]
    if label == "contradicted":
        severity += 1
        why.append("The sources of this answer contradict it too.")
    elif label == "supported":
        severity -= 1
        why.append("The sources of this answer state it.")
    if min(claim.stated_confidence, old.claim.stated_confidence) < _UNSURE:
        severity -= 1
        why.append("One of the two is stated with less than certainty.")
    return Contradiction(
        choice,
        claim.id,
        statement or claim.text,
        earlier,
        old.exchange,
        old.at,
        difference.kind,
        _SEVERITIES[min(max(severity, 0), 3)],
        " ".join(why),
    )


def _agreement(compared: Sequence[tuple[int, str]], found: Sequence[Contradiction]) -> Iterator[tuple[int, str, float]]:
    """Yield the agreement (0–1) of each compared claim with earlier answers, by its most severe contradiction."""
    for choice, claim in dict.fromkeys(compared):
        costs = [_COSTS[each.severity] for each in found if (each.choice, each.claim) == (choice, claim)]
        yield choice, claim, 1.0 - max(costs, default=0.0)


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


def entity_history(history: Sequence[EarlierAnswer], policy: Policy = Policy()) -> tuple[Entity, ...]:
    """Return every name in the earlier answers, most mentioned first. A short and a full name are separate entities."""
    written: dict[str, str] = {}
    mentions: dict[str, dict[Mention, None]] = {}
    for statement in EarlierAnswers(history, policy).statements:
        for name in _names_in(statement):
            written.setdefault(name.casefold(), name)
            mention = Mention(statement.exchange, statement.at, statement.claim.text)
            mentions.setdefault(name.casefold(), {})[mention] = None
    found = ((written[key], sorted(each, key=lambda mention: mention.at)) for key, each in mentions.items())
    entities = (Entity(name, tuple(oldest_first)) for name, oldest_first in found)
    return tuple(sorted(entities, key=lambda entity: (-len(entity.mentions), entity.name)))


def _names_in(statement: Statement) -> dict[str, None]:
    """Return the names in a statement, each as a whole."""
    reading = statement.reading
    names: dict[str, None] = {}
    for place, word in enumerate(reading.words):
        is_telling = word.lower not in TITLES and word.stem not in CALENDAR
        if reading.is_name(place) and is_telling and place not in reading.measured:
            run = reading.name_run(place)
            names[reading.text[reading.words[run[0]].start : reading.words[run[-1]].end]] = None
    return names
