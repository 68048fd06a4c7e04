"""Measure the time to verify an answer, by kind and length of its context, and its distribution over the parts.

In process, an answer of 200 words, in milliseconds of CPU time of all threads. Every round has a new context; words
recur, as they do in service, texts never do. A busy machine inflates CPU time too: a reference loop is timed between
rounds, and figures are only comparable where it takes as long.

    python -m bench.verification            some minutes
    python -m bench.verification --quick    few rounds, nothing written
    python -m bench.verification --only kinds [--judge shipped]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from bench.report import heading, machine, markdown, percentile, write
from bench.texts import (
    JSON_SCHEMA,
    answer,
    json_answer,
    long_answer,
    messages,
    table_messages,
    tool_messages,
)
from groundwire.claims.answer import find_claims
from groundwire.config import Telemetry as TelemetrySettings
from groundwire.dialects.dialect import read_messages
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import read_request
from groundwire.domain import Choice, Exchange
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.gateway.forward import Caller
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.judge import Judge
from groundwire.offload import Workers
from groundwire.pipeline import AnswerSnapshot, Ask, read, verify
from groundwire.policy import Policy
from groundwire.scoring.aggregate import Examined, summarise
from groundwire.storage.cache import VerdictCache
from groundwire.storage.memory import Reports
from groundwire.telemetry import Telemetry
from groundwire.telemetry.telemetry import configure_logs
from groundwire.verifiers.schema import read_evidence, validate_schema

LENGTHS = {1_000: 100, 4_000: 100, 16_000: 40, 64_000: 15, 128_000: 10}
QUICK_LENGTHS = {1_000: 15, 4_000: 15}
PARTS = ("gather", "context", "claims", "judge", "summarise", "total")
KINDS: Mapping[str, Callable[[int], list[dict[str, str]]]] = {
    "prose, 4 KB": lambda seed: messages(1_000, seed),
    "prose, 4,000 tokens": lambda seed: messages(4_000, seed),
    "JSON tool result, 4,000 tokens": lambda seed: tool_messages(4_000, seed),
    "table of 8 columns, 4,000 tokens": lambda seed: table_messages(4_000, seed),
    "table of 64 columns, 4,000 tokens": lambda seed: table_messages(4_000, seed, 64),
}
CLAIMS, COLUMNS = (50, 100, 200, 500), (8, 64, 250, 1000)
SECTIONS = ("lengths", "kinds", "scale", "service", "json")
_FIELDS = ("quotes",)


class Stopwatch:
    """Milliseconds of CPU time per part, one entry for each round, and of the reference loop."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def time(self, part: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.taken[part].append((time.process_time() - start) * 1000)

    def figures(self) -> dict[str, dict[str, float]]:
        return {
            part: {"p50": median(taken), "p95": percentile(taken, 95), "least": min(taken)}
            for part, taken in self.taken.items()
        }


def reference() -> float:
    """Return the CPU milliseconds of a fixed loop: a busy neighbour slows it as much as all other work."""
    start, counts = time.process_time(), dict[int, int]()
    for number in range(20_000):
        counts[number % 977] = counts.get(number % 977, 0) + len(str(number))
    return (time.process_time() - start) * 1000


def verification_round(watch: Stopwatch, tokens: int, seed: int) -> None:
    """Verify one answer by the parts of the pure `verify`, each step timed."""
    policy, choice = Policy(), Choice(0, answer(seed), "stop")
    exchange = Exchange(messages=read_messages(messages(tokens, seed)))
    with watch.time("total"):
        with watch.time("gather"):
            sources = gather(exchange)
        with watch.time("context"):
            context = Context(sources)
        with watch.time("claims"):
            reading = read(choice, context, policy)
        with watch.time("judge"):
            judgements = tuple(Judge()(reading.claims, context, policy))
        with watch.time("summarise"):
            summarise("", [Examined(reading, judgements)], context, policy)


def schema_round(watch: Stopwatch, seed: int) -> None:
    """Run the checks that only JSON answers need, on one of 200 words: its evidence field, and its JSON schema."""
    text = json_answer(seed)
    with watch.time("claims of a JSON answer"):
        find_claims(text, Policy())
    with watch.time("evidence fields"):
        read_evidence(json.loads(text), _FIELDS)
    with watch.time("JSON schema"):
        validate_schema(text, JSON_SCHEMA)


def evidence_round(watch: Stopwatch, tokens: int, seed: int) -> None:
    """Read a JSON answer with its evidence field looked up in the context."""
    context = Context(gather(Exchange(messages=read_messages(messages(tokens, seed)))))
    with watch.time("reading a JSON answer with quotations"):
        read(Choice(0, json_answer(seed), "stop"), context, Policy(), Ask(_FIELDS, JSON_SCHEMA))


def by_length(lengths: Mapping[int, int]) -> dict[int, dict[str, Any]]:
    """Time the steps of a verification, by the length of the context."""
    found: dict[int, dict[str, Any]] = {}
    for tokens, rounds in lengths.items():
        watch = Stopwatch()
        gc.collect()
        for seed in range(1, rounds + 1):
            verification_round(watch, tokens, seed * 1_000_003 + tokens)
        found[tokens] = {"rounds": rounds, **watch.figures()}
        _progress(f"{tokens:7} tokens", watch, "total")
    return found


def by_kind(rounds: int, judge: Judge) -> dict[str, dict[str, float]]:
    """Time whole verifications of answers to each kind of context, taken in turn."""
    watch = Stopwatch()
    for seed in range(rounds + 3):
        for kind, given in KINDS.items():
            exchange, choice = Exchange(messages=read_messages(given(seed))), Choice(0, answer(seed), "stop")
            with (watch if seed >= 3 else Stopwatch()).time(kind):
                verify([choice], Context(gather(exchange)), judge=judge)
        watch.taken["reference loop"].append(reference())
    for kind in watch.taken:
        _progress(kind, watch, kind)
    return watch.figures()


def by_scale(rounds: int) -> dict[str, dict[str, float]]:
    """Time verifications by the number of claims of an answer and of columns of a table."""
    watch = Stopwatch()
    for seed in range(rounds):
        for count in CLAIMS:
            given, text = messages(4_000, seed), long_answer(count, seed)
            exchange, found = Exchange(messages=read_messages(given)), len(find_claims(text, Policy()).claims)
            with watch.time(f"{count} sentences"):
                verify([Choice(0, text, "stop")], Context(gather(exchange)), Policy(max_claims=max(found, 1)))
        for columns in COLUMNS:
            exchange = Exchange(messages=read_messages(table_messages(16_000, seed, columns)))
            with watch.time(f"{columns} columns, 16,000 tokens"):
                verify([Choice(0, answer(seed), "stop")], Context(gather(exchange)))
    for part in watch.taken:
        _progress(part, watch, part)
    return watch.figures()


def log_to_nowhere() -> None:
    """Configure logs as the server does: its lines are part of the cost."""
    shown, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the logger
    configure_logs(TelemetrySettings())
    sys.stderr = shown


async def in_service(watch: Stopwatch, tokens: int, rounds: int, judge: Judge) -> None:
    """Examine answers as in service; the same ones again; and new answers about the same documents."""
    workers = Workers(1, 64)
    cache, reports = VerdictCache(10_000, 3600.0), Reports(1000)
    service = GroundingService(workers, cache, reports, Policy(), Telemetry(), timeout=10.0, judge=judge)
    size = f"{tokens:,} tokens"

    async def examine(part: str, given: list[dict[str, str]], said: str) -> None:
        request = read_request(CHAT, dumps({"model": "m", "messages": given}), {})
        start = time.process_time()
        session = GroundingSession.begin(service, request, "sync", Caller())
        await session.verify(AnswerSnapshot([Choice(0, said, "stop")]))
        watch.taken[f"{part}, {size}"].append((time.process_time() - start) * 1000)

    for seed in range(rounds):
        given = messages(tokens, seed)
        await examine("first", given, answer(seed))
        for _ in range(3):
            await examine("all verdicts cached", [dict(each) for each in given], answer(seed))
        await examine("same documents, another answer", given, answer(seed + 7_919))
        asked = [given[0], {**given[1], "content": given[1]["content"].replace("Question:", "Question: in short,")}]
        await examine("same documents, another question and answer", asked, answer(seed + 15_838))
    workers.close()


def resident() -> float:
    """Return the resident memory of this process in megabytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def run(lengths: Mapping[int, int], sections: tuple[str, ...], judged_by: str) -> dict[str, Any]:
    """Return the figures, as the result that is written to a file."""
    judge, rounds = Judge(), min(lengths.values())
    if judged_by == "shipped":
        from groundwire.backends.loading import load_judge

        judge = load_judge()
    started = resident()
    result: dict[str, Any] = {
        "command": " ".join(["python -m bench.verification", *sys.argv[1:]]),
        "machine": machine(),
        "judge": judged_by,
        "claims": len(find_claims(answer(0), Policy()).claims),
        "reference_ms": median(reference() for _ in range(9)),
    }
    if "lengths" in sections:
        first = Stopwatch()
        verification_round(first, 4_000, seed=0)
        result["first_in_process_ms"] = {part: taken[0] for part, taken in first.taken.items()}
        result["by_context_tokens"] = by_length(lengths)
    if "kinds" in sections:
        result["by_kind"] = by_kind(rounds * 2, judge)
    if "scale" in sections:
        result["by_scale"] = by_scale(max(3, rounds // 3))
    if "service" in sections:
        log_to_nowhere()
        service = Stopwatch()
        for tokens in (1_000, 4_000):
            asyncio.run(in_service(service, tokens, rounds * 2, judge))
        result["in_service"] = service.figures()
    if "json" in sections:
        watch = Stopwatch()
        schema_round(Stopwatch(), 0)
        for seed in range(1, 1 + rounds * 2):
            schema_round(watch, seed)
            evidence_round(watch, 4_000, seed)
        result["json_answer"] = watch.figures()
    return result | {"resident_mb": {"before": started, "after": resident()}}


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures as Markdown: median and 95th percentile in milliseconds."""
    sections = [
        heading("How long verification takes", result),
        f"An answer of 200 words, {result['claims']} claims, judge: {result['judge']}. Milliseconds of CPU time: "
        f"median (95th percentile; least). The reference loop took {result['reference_ms']:.2f} ms.\n",
    ]
    if "by_context_tokens" in result:
        rows = [
            (f"{tokens:,}", *(_pair(figures[part]) for part in PARTS))
            for tokens, figures in result["by_context_tokens"].items()
        ]
        first = result["first_in_process_ms"]["total"]
        sections += [
            markdown(("context tokens, without a model", *PARTS), rows),
            f"\nThe very first answer of a process, 4,000 tokens: {first:.1f} ms.\n",
        ]
    for part, title in (
        ("by_kind", "kind of context"),
        ("by_scale", "growth, without a model"),
        ("json_answer", "for a JSON answer"),
        ("in_service", "through the gateway's queue and cache"),
    ):
        if part in result:
            rows = [(name, _pair(taken)) for name, taken in result[part].items()]
            sections.append(markdown((title, "ms"), rows) + "\n")
    memory = result["resident_mb"]
    sections.append(f"Resident memory: {memory['before']:.0f} MB before, {memory['after']:.0f} MB after all this.")
    return "\n".join(sections)


def _progress(what: str, watch: Stopwatch, part: str) -> None:
    print(f"{what}: {median(watch.taken[part]):.1f} ms", file=sys.stderr, flush=True)


def _pair(taken: Mapping[str, float]) -> str:
    return f"{taken['p50']:.2f} ({taken['p95']:.2f}; {taken['least']:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short contexts, few rounds, nothing written")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section; may be repeated")
    parser.add_argument("--judge", choices=("off", "shipped"), default="off", help="of the kinds and in service")
    parser.add_argument("--name", default="verification", help="of the files under bench/results")
    given = parser.parse_args()
    result = run(QUICK_LENGTHS if given.quick else LENGTHS, tuple(given.only or SECTIONS), given.judge)
    table = as_table(result)
    print(table)
    if not given.quick:
        write(given.name, result, table)


if __name__ == "__main__":
    main()
