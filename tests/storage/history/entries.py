"""Custom-made exchanges to be stored, and a history to store them in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from groundwire.config.settings import Store
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Citation, Claim, Judgement, Source, Verdict
from groundwire.report import CacheUse, ChoiceReport, Confidence, Report
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Entry
from groundwire.storage.history.exchanges import Exchanges
from groundwire.storage.history.history import History
from tests.servers.databases import Database as Place

DAY = 86_400.0
NOON = 1_767_268_800.0  # 2026-01-01 12:00 UTC
FLAGS = {"unsupported": "unsupported_claims", "contradicted": "contradicted_claims"}


def judgement(label: str, text: str, start: int, *, flags: Sequence[str] = ()) -> Judgement:
    """A claim that was given this label, with a citation unless it is unsupported."""
    claim = Claim(f"c{start}", text, start, start + len(text))
    found = () if label == "unsupported" else (Citation("m0", 0, 4, "Acme", 1.0, "exact"),)
    verdict = Verdict("statement", label, 0.8, "words", f"It says: {text}", found, tuple(flags))  # type: ignore[arg-type]
    return Judgement(claim, verdict, 0.7, (verdict,))


def report(id_: str, labels: Sequence[str], answer: str, **more: Any) -> Report:
    """A report whose claims are the words of the answer, as many as there are labels."""
    judgements, at = [], 0
    for label, word in zip(labels, answer.split(), strict=False):
        at = answer.index(word, at)
        judgements.append(judgement(label, word, at))
        at += len(word)
    checked = [label for label in labels if label != "not_checked"]
    score = checked.count("supported") / len(checked) if checked else None
    flags = tuple(flag for label, flag in FLAGS.items() if label in labels)
    given: dict[str, Any] = {
        "status": "complete",
        "verdict": "not_applicable" if score is None else "grounded" if score == 1 else "partially_grounded",
        "score": score,
        "flags": flags,
        "confidence": Confidence(0.75, "high", "Rely on it."),
        "sources": (Source("m0", "system", "Acme earned $4.2 million.", 0, 0, 10, "Annual report", ("1",)),),
        "cache": CacheUse(1, 2, 3.0),
        "timing_ms": (("total", 12.5),),
        **more,
    }
    return Report(id_, choices=(ChoiceReport(0, given["verdict"], score, tuple(judgements)),), **given)


def entry(
    id_: str = "gw-1",
    *,
    at: float = NOON,
    question: str = "What did Acme earn?",
    answer: str = "Acme earned $4.2 million in 2023 overall",
    labels: Sequence[str] = ("supported",),
    model: str = "m-1",
    subject: str | None = None,
    session: str | None = None,
    **more: Any,
) -> Entry:
    """An exchange; `more` goes into its report."""
    made = report(id_, labels, answer, **more)
    kept = dumps(made.to_dict())
    choices = (Choice(0, answer, "stop"),)
    return Entry(at, made, kept, model, question, choices, subject, session)


def database(place: Place) -> Database:
    """The database at a place, not opened yet."""
    return Database(place.url, place.schema)


@asynccontextmanager
async def opened(place: Place, **settings: Any) -> AsyncIterator[History]:
    """A history at that place, which writes at once by default."""
    timeout = settings.pop("timeout", 10.0)
    history = History(database(place), Store(**{"interval": 0.0, **settings}), timeout=timeout)
    history.start()
    try:
        yield history
    finally:
        await history.close()


@asynccontextmanager
async def reading(place: Place) -> AsyncIterator[Exchanges]:
    """The exchanges stored at that place, to be read only."""
    found = database(place)
    try:
        yield Exchanges(found)
    finally:
        await found.close()


async def stored(history: History, *entries: Entry) -> None:
    """Record exchanges, and wait until they are written."""
    for each in entries:
        history.record(each)
    assert await history.writer.flush()
    assert not history.writer.lost
