"""How long the verification of an answer takes, by the length of its context, and where that time goes.

In process, on one core, an answer of 200 words. Every round has a context of its own; words recur, as they do in
service, texts never do.

    python -m bench.verification            about a minute
    python -m bench.verification --quick    short contexts, few rounds
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from bench.report import heading, machine, markdown, percentile, write
from bench.texts import JSON_SCHEMA, answer, json_answer, messages
from proxy.dialects.parts import read_messages
from proxy.gateway.verify import Verification
from proxy.gateway.workers import Workers
from proxy.stores.verdicts import VerdictCache
from proxy.types import Choice, Exchange, Policy
from proxy.verification.aggregate import Examined, summarise
from proxy.verification.claims.answer import find_claims
from proxy.verification.context.gathering import gather
from proxy.verification.context.index import Context
from proxy.verification.examine import Ask, read
from proxy.verification.judge import Judge
from proxy.verification.schema import read_evidence, validate_schema

LENGTHS = {1_000: 100, 4_000: 100, 16_000: 40, 64_000: 15, 128_000: 10}
QUICK_LENGTHS = {1_000: 15, 4_000: 15}
PARTS = ("gather", "context", "claims", "judge", "summarise", "total")
_FIELDS = ("quotes",)


class Stopwatch:
    """Milliseconds of CPU time per part, one entry for each round: the time on a core that nobody else wants."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def time(self, part: str) -> Iterator[None]:
        start = time.thread_time()
        yield
        self.taken[part].append((time.thread_time() - start) * 1000)

    def figures(self) -> dict[str, dict[str, float]]:
        return {part: {"p50": median(taken), "p95": percentile(taken, 95)} for part, taken in self.taken.items()}


def verification_round(watch: Stopwatch, tokens: int, seed: int) -> None:
    """One answer verified as the gateway does it, each step timed."""
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
    """The checks that only JSON answers need, on one of 200 words: its evidence field, and its JSON schema."""
    text = json_answer(seed)
    with watch.time("claims of a JSON answer"):
        find_claims(text, Policy())
    with watch.time("evidence fields"):
        read_evidence(json.loads(text), _FIELDS)
    with watch.time("JSON schema"):
        validate_schema(json.loads(text), JSON_SCHEMA)


def evidence_round(watch: Stopwatch, tokens: int, seed: int) -> None:
    """A JSON answer read with its evidence field looked up in the context."""
    context = Context(gather(Exchange(messages=read_messages(messages(tokens, seed)))))
    with watch.time("reading a JSON answer with quotations"):
        read(Choice(0, json_answer(seed), "stop"), context, Policy(), Ask(_FIELDS, JSON_SCHEMA))


async def again_rounds(watch: Stopwatch, tokens: int, rounds: int) -> None:
    """Answers examined as in service, and then once more, when all their verdicts are in the cache."""
    workers = Workers(1, 64)
    verification = Verification(workers, VerdictCache(10_000, 3600.0), timeout=10.0)
    for seed in range(rounds):
        given, choice = messages(tokens, seed), Choice(0, answer(seed), "stop")
        for part in ("first", "again"):
            start = time.process_time()
            examination = verification.begin(
                lambda said=given: Exchange(messages=read_messages(said)), Ask((), None), Policy()
            )
            await examination.report([choice])
            watch.taken[f"{part}, {tokens:,} tokens"].append((time.process_time() - start) * 1000)
    workers.close()


def run(lengths: Mapping[int, int]) -> dict[str, Any]:
    """The figures, as the result that is written to a file."""
    first = Stopwatch()
    verification_round(first, 4_000, seed=0)
    by_length: dict[int, dict[str, Any]] = {}
    for tokens, rounds in lengths.items():
        watch = Stopwatch()
        gc.collect()
        for seed in range(1, rounds + 1):
            verification_round(watch, tokens, seed * 1_000_003 + tokens)
        by_length[tokens] = {"rounds": rounds, **watch.figures()}
        print(f"{tokens:7} tokens: {by_length[tokens]['total']['p50']:.1f} ms", file=sys.stderr, flush=True)
    watch = Stopwatch()
    schema_round(Stopwatch(), 0)
    for seed in range(1, 1 + min(lengths.values()) * 2):
        schema_round(watch, seed)
        evidence_round(watch, 4_000, seed)
    service = Stopwatch()
    for tokens in (1_000, 4_000):
        asyncio.run(again_rounds(service, tokens, min(lengths.values()) * 3))
    return {
        "command": " ".join(["python -m bench.verification", *sys.argv[1:]]),
        "machine": machine(),
        "claims": len(find_claims(answer(0), Policy()).claims),
        "first_in_process_ms": {part: taken[0] for part, taken in first.taken.items()},
        "by_context_tokens": by_length,
        "json_answer": watch.figures(),
        "in_service": service.figures(),
    }


def as_table(result: Mapping[str, Any]) -> str:
    """The figures as Markdown: median and 95th percentile in milliseconds."""
    rows = [
        (f"{tokens:,}", *(_pair(figures[part]) for part in PARTS))
        for tokens, figures in result["by_context_tokens"].items()
    ]
    sections = (
        heading("How long verification takes", result),
        f"An answer of 200 words, {result['claims']} claims. Milliseconds of CPU time: median (95th percentile).\n",
        markdown(("context tokens", *PARTS), rows),
        f"\nThe very first answer of a process, 4,000 tokens: {result['first_in_process_ms']['total']:.1f} ms.\n",
        markdown(("for a JSON answer", "ms"), [(name, _pair(taken)) for name, taken in result["json_answer"].items()]),
        "\nThe same through the gateway's queue and cache, work of all threads included.\n",
        markdown(("in service", "ms"), [(name, _pair(taken)) for name, taken in result["in_service"].items()]),
    )
    return "\n".join(sections)


def _pair(taken: Mapping[str, float]) -> str:
    return f"{taken['p50']:.2f} ({taken['p95']:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short contexts, few rounds, nothing written")
    parser.add_argument("--name", default="verification", help="of the files under bench/results")
    given = parser.parse_args()
    result = run(QUICK_LENGTHS if given.quick else LENGTHS)
    table = as_table(result)
    print(table)
    if not given.quick:
        write(given.name, result, table)


if __name__ == "__main__":
    main()
