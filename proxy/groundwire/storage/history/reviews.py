"""The review queue: findings, decisions on them and on other claims, and the accuracy that follows from these."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from sqlalchemy import ColumnElement, RowMapping, Select, and_, distinct, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from groundwire.dialects.jsonbytes import loads
from groundwire.domain import Citation, restored
from groundwire.errors import ReviewConflict
from groundwire.features.advice import wilson_interval
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Page, Stored
from groundwire.storage.history.rows import claim_row, flags_of
from groundwire.storage.history.tables import CONTENTS, DECISIONS, EXCHANGES, FINDING_FLAGS, FINDINGS, answered_between

Decision = Literal["confirmed", "rejected"]
"""The decision on a verdict: it is right (confirmed) or wrong (rejected).

Confirming a flag means that the answer is wrong there; rejecting it, that it is a false alarm. Rejecting the verdict on
a claim without a flag means that the claim is wrong and was missed.
"""

MAX_COUNTED = 10_000
"""Findings after which counting those that wait ends."""

_EXPORTED_AT_ONCE = 500
_IS_OPEN = FINDINGS.c.decision.is_(None)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision: its author, its time (Unix seconds) and a note."""

    decision: Decision
    who: str
    at: float
    note: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A subject of review: one flagged claim of an answer, or a flag on the answer without a claim.

    A claim without `flags` is one that was decided on all the same.
    `version` counts decisions and must be given with the next one. `start` and `end` refer to the answer of `choice`,
    or to the field at `pointer`. `original_confidence` is the confidence that the answer expresses, `question` the
    user's last message and `asked` its interrogative sentence. Texts are None if the store keeps no content.
    """

    id: int
    exchange: str
    at: float
    model: str
    subject: str | None
    flags: tuple[str, ...]
    version: int
    decided: Decided | None
    choice: int | None = None
    claim: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    pointer: str | None = None
    label: str | None = None
    verifier: str | None = None
    method: str | None = None
    score: float | None = None
    confidence: float | None = None
    reason: str | None = None
    citations: tuple[Citation, ...] = ()
    question: str | None = None
    asked: str | None = None
    session: str | None = None
    original_confidence: float | None = None
    tenant: str = ""

    @property
    def is_wrong(self) -> bool | None:
        """True if a reviewer found the claim or answer wrong, False if right; None without a decision."""
        return None if self.decided is None else (self.decided.decision == "confirmed") == bool(self.flags)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Select findings that meet all conditions. `state` is `open` until there is a decision.

    `since` and `until` (Unix seconds, half-open) bound the time of the answer.
    """

    state: Literal["open", "confirmed", "rejected", "decided", "any"] = "open"
    flag: str | None = None
    verifier: str | None = None
    model: str | None = None
    subject: str | None = None
    exchange: str | None = None
    since: float | None = None
    until: float | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share of a number of cases, which is at least one."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share (0–1)."""
        return self.count / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the share."""
        return wilson_interval(self.count, self.of)


@dataclass(frozen=True, slots=True)
class Precision:
    """The precision of a flag of one verifier ("" if no claim is concerned), by reviewers' decisions."""

    flag: str
    verifier: str
    confirmed: int
    rejected: int

    @property
    def ratio(self) -> Ratio:
        """The share that was confirmed."""
        return Ratio(self.confirmed, self.confirmed + self.rejected)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Reviewed claims of one verifier: flagged or `passed` without a flag by it, and found right or wrong."""

    verifier: str
    flagged_wrong: int
    flagged_right: int
    passed_wrong: int
    passed_right: int

    @property
    def precision(self) -> Ratio | None:
        """The share of the flagged claims that are wrong; None if none was reviewed."""
        return _ratio(self.flagged_wrong, self.flagged_wrong + self.flagged_right)

    @property
    def recall(self) -> Ratio | None:
        """The share of the wrong claims that were flagged; None if none was found wrong."""
        return _ratio(self.flagged_wrong, self.flagged_wrong + self.passed_wrong)


def _ratio(count: int, of: int) -> Ratio | None:
    return Ratio(count, of) if of else None


_FINDING = (
    select(FINDINGS, EXCHANGES.c.id.label("exchange"), EXCHANGES.c.at, EXCHANGES.c.session, EXCHANGES.c.tenant)
    .add_columns(CONTENTS.c.question, CONTENTS.c.asked)
    .join(EXCHANGES, EXCHANGES.c.seq == FINDINGS.c.seq)
    .join(CONTENTS, CONTENTS.c.seq == FINDINGS.c.seq)
)


class Reviews:
    """Findings and decisions in a database. Every method raises StoreUnavailable when it cannot be reached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, wanted: Wanted, after: int | None = None, limit: int = 50) -> Page[Finding]:
        """Return the selected findings, newest first; `after` is that of the preceding page."""
        found = _selected(_FINDING, wanted)
        if after is not None:
            found = found.where(FINDINGS.c.id < after)
        rows, next_ = await self._database.page(found.order_by(FINDINGS.c.id.desc()), limit, "id")
        return Page(tuple(map(_finding, rows)), next_)

    async def answers(self, wanted: Wanted, after: int | None = None, limit: int = 50) -> Page[tuple[Finding, ...]]:
        """Return the selected findings of each answer that has any, newest answer first, in the order of the answer.

        `after` is that of the preceding page.
        """
        newest = _selected(select(FINDINGS.c.seq).join(EXCHANGES, EXCHANGES.c.seq == FINDINGS.c.seq), wanted)
        if after is not None:
            newest = newest.where(FINDINGS.c.seq < after)
        some = newest.order_by(FINDINGS.c.id.desc()).limit(MAX_COUNTED).subquery()  # by an index, unlike all by `seq`
        numbers = select(some.c.seq).distinct().order_by(some.c.seq.desc()).limit(limit + 1)
        ordered = _selected(_FINDING, wanted).order_by(FINDINGS.c.seq.desc(), FINDINGS.c.id)
        async with self._database.reading() as connection:
            found = (await connection.execute(numbers)).scalars().all()
            rows = (await connection.execute(ordered.where(FINDINGS.c.seq.in_(found[:limit])))).mappings().all()
        answers = tuple(tuple(map(_finding, of_one)) for _, of_one in groupby(rows, itemgetter("seq")))
        return Page(answers, found[limit - 1] if len(found) > limit else None)

    async def of_exchange(self, exchange: str) -> tuple[Finding, ...]:
        """Return all findings of an exchange, decided or not, in the order of the answer."""
        ordered = _FINDING.where(EXCHANGES.c.id == exchange).order_by(FINDINGS.c.id)
        return tuple(map(_finding, await self._database.fetch(ordered)))

    async def get(self, id_: int) -> Finding | None:
        """Return one finding, or None if there is none."""
        rows = await self._database.fetch(_FINDING.where(FINDINGS.c.id == id_))
        return _finding(rows[0]) if rows else None

    async def decisions(self, id_: int) -> tuple[Decided, ...]:
        """Return all decisions on a finding, oldest first."""
        made = select(DECISIONS).where(DECISIONS.c.finding == id_).order_by(DECISIONS.c.version)
        rows = await self._database.fetch(made)
        return tuple(Decided(row["decision"], row["who"], row["at"], row["note"]) for row in rows)

    async def decide(self, id_: int, version: int, decision: Decision, who: str, note: str = "") -> Finding | None:
        """Decide on a finding as it was at `version`, and return its new state; None if there is none.

        Raises ReviewConflict, with the other decision, when somebody has decided since.
        """
        async with self._database.changing() as connection:
            return await _decide(connection, id_, version, decision, who, note)

    async def decide_on_claim(
        self, stored: Stored, choice: int, claim: str, version: int, decision: Decision, who: str, note: str = ""
    ) -> Finding | None:
        """Decide on any claim of an exchange, as `decide` does; None if it has no such claim.

        The first decision on a claim without a flag adds a finding without flags.
        """
        row = claim_row(stored, choice, claim)
        if row is None:
            return None
        of_claim = FINDINGS.c.seq == row["seq"], FINDINGS.c.choice == choice, FINDINGS.c.claim == claim
        wanted = select(FINDINGS.c.id).where(*of_claim).order_by(FINDINGS.c.id.desc()).limit(1)
        add = self._database.insert(FINDINGS).on_conflict_do_nothing(index_elements=["seq", "place"])
        async with self._database.changing() as connection:
            id_ = (await connection.execute(wanted)).scalar()
            if id_ is None:
                await connection.execute(add.values(row))
                id_ = (await connection.execute(wanted)).scalar_one()
            return await _decide(connection, id_, version, decision, who, note)

    async def waiting(self, exchanges: Sequence[int]) -> Mapping[int, int]:
        """Return the number of open findings of each of these exchanges, given by `seq`, that has any."""
        counted = select(FINDINGS.c.seq, func.count().label("waiting")).where(FINDINGS.c.seq.in_(exchanges), _IS_OPEN)
        return {row["seq"]: row["waiting"] for row in await self._database.fetch(counted.group_by(FINDINGS.c.seq))}

    async def open(self, limit: int = MAX_COUNTED) -> tuple[int, int]:
        """Return the number of open findings, and of the exchanges that they belong to; counting ends at `limit`."""
        newest = select(FINDINGS.c.seq).where(_IS_OPEN).order_by(FINDINGS.c.id.desc()).limit(limit).subquery()
        exchanges = func.count(distinct(newest.c.seq)).label("exchanges")
        (row,) = await self._database.fetch(select(func.count().label("findings"), exchanges).select_from(newest))
        return row["findings"], row["exchanges"]

    async def accuracy(self, since: float | None = None) -> tuple[Accuracy, ...]:
        """Return the reviewed claims of each verifier ("" if none judged them) over decisions since then."""
        counts: dict[str, Counter[tuple[bool, bool]]] = {}
        for row in await self._counted(since, FINDINGS.c.claim.is_not(None)):
            is_flagged = bool(row["flags"])
            is_wrong = (row["decision"] == "confirmed") == is_flagged
            counts.setdefault(row["verifier"] or "", Counter())[is_flagged, is_wrong] += row["count"]
        kinds = ((True, True), (True, False), (False, True), (False, False))
        return tuple(Accuracy(verifier, *map(counts[verifier].__getitem__, kinds)) for verifier in sorted(counts))

    async def agreement(self, since: float | None = None) -> Ratio | None:
        """Return the share of findings on which all of their reviewers agree, of those with two or more reviewers.

        The last decision of each reviewer counts; None if nothing was decided on by two.
        """
        again = select(FINDINGS.c.id).where(*_decided_since(since), FINDINGS.c.version > 1)
        made = select(DECISIONS.c.finding, DECISIONS.c.who, DECISIONS.c.decision)
        made = made.where(DECISIONS.c.finding.in_(again)).order_by(DECISIONS.c.finding, DECISIONS.c.version)
        last: dict[int, dict[str, str]] = {}
        for row in await self._database.fetch(made):
            last.setdefault(row["finding"], {})[row["who"]] = row["decision"]
        by_two = [set(decisions.values()) for decisions in last.values() if len(decisions) > 1]
        return _ratio(sum(len(different) == 1 for different in by_two), len(by_two))

    async def _counted(self, since: float | None, *conditions: ColumnElement[bool]) -> Sequence[RowMapping]:
        """Return the number of decided findings by flags, verifier and decision."""
        kinds = FINDINGS.c.flags, FINDINGS.c.verifier, FINDINGS.c.decision
        counted = select(*kinds, func.count().label("count")).where(*_decided_since(since), *conditions)
        return await self._database.fetch(counted.group_by(*kinds))

    async def precision(self, since: float | None = None) -> tuple[Precision, ...]:
        """Return the precision of each flag of each verifier, over decisions since then, most decided first."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for row in await self._counted(since):
            for flag in flags_of(row["flags"]):
                counts[flag, row["verifier"] or "", row["decision"]] += row["count"]
        found = [
            Precision(flag, verifier, counts[flag, verifier, "confirmed"], counts[flag, verifier, "rejected"])
            for flag, verifier in {(flag, verifier) for flag, verifier, _ in counts}
        ]
        return tuple(sorted(found, key=lambda each: (-each.confirmed - each.rejected, each.flag, each.verifier)))

    async def export(self, wanted: Wanted = Wanted("decided")) -> AsyncIterator[Finding]:
        """Yield all selected findings, newest first, read in batches: for files, calibration and threshold advice."""
        after = None
        while True:
            page = await self.page(wanted, after, _EXPORTED_AT_ONCE)
            for finding in page.items:
                yield finding
            if page.after is None:
                return
            after = page.after


async def _decide(
    connection: AsyncConnection, id_: int, version: int, decision: Decision, who: str, note: str
) -> Finding | None:
    now = time.time()
    decided = {"decision": decision, "who": who, "note": note}
    change = update(FINDINGS).where(FINDINGS.c.id == id_, FINDINGS.c.version == version)
    changed = await connection.execute(change.values(version=version + 1, decided_at=now, **decided))
    if changed.rowcount:
        await connection.execute(insert(DECISIONS).values(finding=id_, version=version + 1, at=now, **decided))
    row = (await connection.execute(_FINDING.where(FINDINGS.c.id == id_))).mappings().first()
    found = _finding(row) if row else None
    if found is not None and not changed.rowcount:
        last = found.decided or Decided("rejected", "", 0.0, "")
        raise ReviewConflict(last.decision, last.who, last.at, last.note, found.version)
    return found


def _decided_since(since: float | None) -> Sequence[ColumnElement[bool]]:
    return FINDINGS.c.decision.is_not(None), *(() if since is None else (FINDINGS.c.decided_at >= since,))


def _selected(found: Select[Any], wanted: Wanted) -> Select[Any]:
    """Restrict a statement on findings and their exchanges to the wanted ones."""
    equal = {
        FINDINGS.c.verifier: wanted.verifier,
        FINDINGS.c.model: wanted.model,
        FINDINGS.c.subject: wanted.subject,
        EXCHANGES.c.id: wanted.exchange,
        EXCHANGES.c.tenant: wanted.tenant,
    }
    found = found.where(*(column == value for column, value in equal.items() if value is not None))
    found = found.where(*answered_between(wanted.since, wanted.until))
    if wanted.state == "open":
        found = found.where(_IS_OPEN)
    elif wanted.state == "decided":
        found = found.where(~_IS_OPEN)
    elif wanted.state != "any":
        found = found.where(FINDINGS.c.decision == wanted.state)
    if wanted.flag is None:
        return found
    return found.join(
        FINDING_FLAGS, and_(FINDING_FLAGS.c.finding == FINDINGS.c.id, FINDING_FLAGS.c.flag == wanted.flag)
    )


def _finding(row: Mapping[Any, Any]) -> Finding:
    decided = Decided(row["decision"], row["who"], row["decided_at"], row["note"]) if row["decision"] else None
    citations = tuple(restored(Citation, {"text": "", **each}) for each in loads(row["citations"] or "[]"))
    plain = {name: row[name] for name in Finding.__slots__ if name not in ("flags", "decided", "citations")}
    return Finding(**plain, flags=flags_of(row["flags"]), decided=decided, citations=citations)
