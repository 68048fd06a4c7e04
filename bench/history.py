"""Measure a full history: lists, search, trends and reviews over a million stored exchanges.

The exchanges are made up: words as unevenly frequent as in real texts, a year of days, twenty thousand subjects, a few
models of which one is rare. Each query is repeated with other words, subjects and days; the writer runs as in service.

    python -m bench.history                        SQLite, and PostgreSQL at 127.0.0.1 where there is one: an hour
    python -m bench.history --exchanges 20000      a minute
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench.report import FOLDER, heading, machine, markdown, percentile, write
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Citation, Claim, Judgement, Source, Verdict
from groundwire.report import ChoiceReport, Confidence, Coverage, Report
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Entry, Query
from groundwire.storage.history.exchanges import Exchanges
from groundwire.storage.history.reviews import Reviews, Wanted
from groundwire.storage.history.rows import Rows, rows_of
from groundwire.storage.history.trends import Trends
from groundwire.storage.history.writer import record

POSTGRES = "postgresql://127.0.0.1:5432/test"
SCHEMA = "groundwire_bench"
FULL = 1_000_000
WORTH_KEEPING = 200_000  # exchanges; figures of fewer are printed but not written to a file
GOAL_MS = 300
ROUNDS = 20
BATCH = 200  # as the writer does
FILLING = 1000  # all but the last ones, to fill quickly
DECIDED = 2000

DAY = 86_400.0
FIRST_DAY = date(2025, 1, 1)
START = 1_735_689_600.0  # FIRST_DAY in Unix seconds
DAYS = 365
SUBJECTS = 20_000
VOCABULARY = 20_000
MODELS = ("llama-3.3-70b", "qwen3-32b", "gpt-5-mini", "claude-haiku", "mistral-small", "rare-model")
MODEL_WEIGHTS = (40, 25, 20, 10, 4.99, 0.01)
LABELS = ("supported", "unsupported", "contradicted", "not_checked")
LABEL_WEIGHTS = (84, 8, 3, 5)
FLAG_OF = {"unsupported": "unsupported_claims", "contradicted": "contradicted_claims"}


class Words:
    """Texts of made-up words; the n-th most frequent word is n times as rare as the first."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
        naming = random.Random(0)
        self.words = list(
            {"".join(naming.choices(syllables, k=naming.randint(2, 4))): None for _ in range(2 * VOCABULARY)}
        )
        self.words = self.words[:VOCABULARY]
        self._weights = list(accumulate(1 / (n + 10) for n in range(VOCABULARY)))

    def text(self, count: int) -> str:
        return " ".join(self.random.choices(self.words, cum_weights=self._weights, k=count)).capitalize() + "."


def made_up(words: Words, number: int, total: int) -> Entry:
    """Return the exchange with this number, of so many in all: three to eight claims, two sources."""
    chance = words.random
    sentences = [words.text(chance.randint(8, 16)) for _ in range(chance.randint(3, 8))]
    answer = " ".join(sentences)
    judgements, at = [], 0
    for place, sentence in enumerate(sentences):
        label = chance.choices(LABELS, LABEL_WEIGHTS)[0]
        claim = Claim(f"c{place}", sentence, at, at + len(sentence))
        cited = (Citation("m0", 0, 60, sentence[:60], 0.9, "words"),) if label != "unsupported" else ()
        verdict = Verdict("statement", label, chance.random(), "words", "Not found: " + sentence[:40], cited)  # type: ignore[arg-type]
        judgements.append(Judgement(claim, verdict, chance.random(), (verdict,)))
        at += len(sentence) + 1
    labels = [each.verdict.label for each in judgements]
    checked = [label for label in labels if label != "not_checked"]
    score = checked.count("supported") / len(checked) if checked else None
    verdict_ = "not_applicable" if score is None else "grounded" if score == 1 else "partially_grounded"
    flags = [flag for label, flag in FLAG_OF.items() if label in labels]
    flags += ["low_confidence"] * (chance.random() < 0.05) + ["high_risk"] * (chance.random() < 0.0005)
    report = Report(
        f"gw-{number:024x}",
        "complete",
        verdict_,  # type: ignore[arg-type]
        score,
        tuple(flags),
        coverage=Coverage(len(labels), len(checked), len(labels) - len(checked), 1.0, 1.0),
        confidence=Confidence(chance.random(), "high", "Rely on it.", 0.8, 0.9, 0.7),
        sources=tuple(Source(f"m{n}", "system", words.text(60), n, 0) for n in range(2)),
        choices=(ChoiceReport(0, verdict_, score, tuple(judgements)),),  # type: ignore[arg-type]
        timing_ms=(("context", 2.0), ("claims", 1.0), ("verify", 9.0), ("total", chance.lognormvariate(2.5, 1))),
    )
    subject = int(chance.paretovariate(0.7)) % SUBJECTS
    return Entry(
        at=START + DAYS * DAY * number / total,
        report=report,
        kept=dumps(report.to_dict()),
        model=chance.choices(MODELS, MODEL_WEIGHTS)[0],
        question=words.text(chance.randint(6, 14)).rstrip(".") + "?",
        choices=(Choice(0, answer, "stop"),),
        subject=f"subject-{subject}" if chance.random() < 0.8 else None,
        session=f"session-{number // 6}",
    )


async def fill(database: Database, total: int) -> dict[str, float]:
    """Store `total` exchanges; return the time per exchange of the last batches of the writer's size."""
    words = Words(1)
    wall: list[float] = []
    cpu: list[float] = []
    started = time.perf_counter()
    measured = min(total // 2, 50 * BATCH)
    starts = [*range(0, total - measured, FILLING), *range(total - measured, total, BATCH)]
    for first, end in pairwise([*starts, total]):
        entries = [made_up(words, number, total) for number in range(first, end)]
        begins, begins_cpu = time.perf_counter(), time.process_time()
        await record(database, rows(entries))
        wall.append((time.perf_counter() - begins) * 1000 / len(entries))
        cpu.append((time.process_time() - begins_cpu) * 1000 / len(entries))
        if first % 50_000 == 0:
            print(f"{first:9,} exchanges, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    batches = measured // BATCH
    return {"wall_ms": median(wall[-batches:]), "cpu_ms": median(cpu[-batches:])}


def rows(entries: Sequence[Entry]) -> list[Rows]:
    return [rows_of(entry, "full") for entry in entries]


async def review(reviews: Reviews, words: Words) -> None:
    """Decide on some of the latest findings, so that precision has something to count."""
    after, decided = None, 0
    while decided < DECIDED:
        page = await reviews.page(Wanted(), after, 500)
        for finding in page.items[::5]:
            said = words.random.choice(("confirmed", "rejected"))
            await reviews.decide(finding.id, finding.version, said, "bench")  # type: ignore[arg-type]
            decided += 1
        if (after := page.after) is None:
            return


def looks(database: Database, total: int) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return the queries to measure; each call uses new words, subjects or days."""
    words = Words(2)
    chance = words.random
    exchanges, reviews, trends = Exchanges(database), Reviews(database), Trends(database)

    def common() -> str:
        return words.words[chance.randint(0, 20)]

    def middling() -> str:
        return words.words[chance.randint(500, 2_000)]

    def rare() -> str:
        return words.words[chance.randint(VOCABULARY - 2_000, VOCABULARY - 1)]

    def subject() -> str:
        return f"subject-{int(chance.paretovariate(0.7)) % SUBJECTS}"

    def page(**query: Any) -> Awaitable[object]:
        return exchanges.page(Query(**query))

    def days(count: int) -> tuple[date, date]:
        until = FIRST_DAY + timedelta(days=chance.randint(count, DAYS))
        return until - timedelta(days=count), until

    return {
        "one exchange": lambda: exchanges.get(f"gw-{chance.randrange(total):024x}"),
        "list: newest": page,
        "list: from the middle on": lambda: exchanges.page(Query(), chance.randrange(total)),
        "list: a subject": lambda: page(subject=subject()),
        "list: the busiest subject": lambda: page(subject="subject-1"),
        "list: a session": lambda: page(session=f"session-{chance.randrange(total // 6)}"),
        "list: a frequent flag": lambda: page(flag="unsupported_claims"),
        "list: a rare flag": lambda: page(flag="high_risk"),
        "list: a rare model": lambda: page(model="rare-model"),
        "list: a frequent flag of a rare model": lambda: page(model="rare-model", flag="unsupported_claims"),
        "list: a rare flag of a subject": lambda: page(subject=subject(), flag="high_risk"),
        "list: one day": lambda: page(since=(at := START + chance.randrange(DAYS) * DAY), until=at + DAY),
        "search: a frequent word": lambda: page(text=common()),
        "search: a less frequent word": lambda: page(text=middling()),
        "search: a rare word": lambda: page(text=rare()),
        "search: two frequent words": lambda: page(text=f"{common()} {common()}"),
        "search: a frequent and a rare word": lambda: page(text=f"{common()} {rare()}"),
        "search: a word that is nowhere": lambda: page(text="xylophone"),
        "search: a frequent word, in a subject": lambda: page(text=common(), subject=subject()),
        "search: a frequent word, with a rare flag": lambda: page(text=common(), flag="high_risk"),
        "search: a frequent word, of a rare model": lambda: page(text=common(), model="rare-model"),
        "similar questions": lambda: exchanges.similar(words.text(10)),
        "similar questions of a subject": lambda: exchanges.similar(words.text(10), subject()),
        "trends: 90 days by model": lambda: trends.daily("model", *days(90)),
        "trends: a year by flag": lambda: trends.daily("flag", *days(DAYS)),
        "trends: a flag by model, a year": lambda: trends.daily("model", *days(DAYS), flag="high_risk"),
        "trends: a subject, a year": lambda: trends.daily("subject", *days(DAYS), key=subject()),
        "trends: the busiest subjects of 30 days": lambda: trends.totals("subject", *days(30)),
        "trends: models of a year": lambda: trends.totals("model", *days(DAYS)),
        "reviews: the queue": lambda: reviews.page(Wanted()),
        "reviews: a rare flag": lambda: reviews.page(Wanted(flag="high_risk")),
        "reviews: a rare model": lambda: reviews.page(Wanted(model="rare-model")),
        "reviews: a frequent flag of a rare model": lambda: reviews.page(
            Wanted(model="rare-model", flag="unsupported_claims")
        ),
        "reviews: a subject": lambda: reviews.page(Wanted(subject=subject())),
        "reviews: what was decided": lambda: reviews.page(Wanted("decided")),
        "reviews: precision per flag": lambda: reviews.precision(),
    }


async def measure(url: str, total: int) -> dict[str, Any]:
    """Fill a database and query it; times in milliseconds."""
    database = Database(url, SCHEMA)
    await database.migrate()
    writing = await fill(database, total)
    if not database.is_sqlite:
        async with database.writing() as connection:  # what autovacuum does in its own time
            await connection.exec_driver_sql("ANALYZE")
    await review(Reviews(database), Words(3))
    taken: dict[str, dict[str, float]] = {}
    for name, look in looks(database, total).items():
        times = []
        for _ in range(ROUNDS):
            begins = time.perf_counter()
            await look()
            times.append((time.perf_counter() - begins) * 1000)
        taken[name] = {"p50": median(times), "p95": percentile(times, 95), "max": max(times)}
        print(f"{name:45} {taken[name]['p50']:8.1f} ms  {taken[name]['max']:8.1f} ms", file=sys.stderr, flush=True)
    again = [replace(made_up(Words(1), n, total), at=START) for n in range(total, total + BATCH)]
    begins = time.perf_counter()
    await record(database, rows(again))
    writing["batch_ms"] = (time.perf_counter() - begins) * 1000
    await database.close()
    return {"writing": writing, "looks": taken}


def sqlite(total: int, folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder, prefix="groundwire-bench-") as place:
        found = asyncio.run(measure(f"sqlite:///{place}/history.db", total))
        found["bytes"] = sum(path.stat().st_size for path in Path(place).iterdir())
    return found


def postgresql(total: int) -> dict[str, Any] | None:
    try:
        connection = psycopg.connect(POSTGRES, connect_timeout=3, autocommit=True)
    except psycopg.OperationalError as error:
        print(f"PostgreSQL is left out: {error}", file=sys.stderr)
        return None
    with connection:
        try:
            found = asyncio.run(measure(POSTGRES, total))
            sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
            size = connection.execute(sizes + "%s::regnamespace", (SCHEMA,)).fetchone()
            found["bytes"] = int(size[0]) if size else 0
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    return found


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures as Markdown: median, and the worst of all rounds."""
    found = {name: each for name, each in result["databases"].items() if each}
    columns = ["milliseconds: median (worst)", *found]
    names = next(iter(found.values()))["looks"]
    table = [
        (name, *(f"{each['looks'][name]['p50']:.1f} ({each['looks'][name]['max']:.0f})" for each in found.values()))
        for name in names
    ]
    size = ["size, GB", *(f"{each['bytes'] / 1e9:.2f}" for each in found.values())]
    writing = [
        ["writing an exchange: ms of CPU", *(f"{each['writing']['cpu_ms']:.2f}" for each in found.values())],
        ["writing an exchange: ms", *(f"{each['writing']['wall_ms']:.2f}" for each in found.values())],
    ]
    over = [
        f"{name} on {where}" for where, each in found.items() for name, t in each["looks"].items() if t["p95"] > GOAL_MS
    ]
    verdict = f"Over the goal of {GOAL_MS} ms (95th percentile): {', '.join(over)}." if over else (
        f"Everything is within the goal of {GOAL_MS} ms (95th percentile)."
    )  # fmt: skip
    return "\n".join(
        (
            heading("How fast a full history answers", result),
            f"{result['exchanges']:,} exchanges, pages of 50, {ROUNDS} rounds each. {verdict}\n",
            markdown(columns, [*table, *writing, size]),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=FULL)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the SQLite file lies")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="only this one; the other's figures stay")
    given = parser.parse_args()
    kept = FOLDER / "history.json"
    databases: dict[str, Any] = {}
    if given.database != "postgresql":
        databases["SQLite"] = sqlite(given.exchanges, given.folder)
    if given.database != "sqlite":
        databases["PostgreSQL"] = postgresql(given.exchanges)
    if given.database and kept.exists():
        earlier = json.loads(kept.read_text())
        databases = {**(earlier["databases"] if earlier["exchanges"] == given.exchanges else {}), **databases}
    result = {
        "command": " ".join(["python -m bench.history", *sys.argv[1:]]),
        "machine": machine(),
        "exchanges": given.exchanges,
        "databases": databases,
    }
    table = as_table(result)
    if given.exchanges >= WORTH_KEEPING:
        write("history", result, table)
    print(table)


if __name__ == "__main__":
    main()
