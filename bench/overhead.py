"""Compare the cost of gateways in one run: nginx, Groundwire, Portkey's gateway and LiteLLM's proxy.

All run on one core, the load and the model server on another; they and the model server itself take turns at every load
for several rounds, of which the medians count: so a busy machine is busy for all of them. CPU time is user and system,
including children and work after the last answer. Every request differs from all others, and a run fails unless the
model server has counted each.

        python -m bench.overhead                     all of it in eight minutes, plus the first installation
    python -m bench.overhead --quick             a minute, less precise, and writes nothing
    python -m bench.overhead --only cpu,store    some of: cpu, latency, tokens, start, store

`tokens` are streams of 50 tokens a second. `store` is the cost of recording every exchange in SQLite: the CPU time per
verified body with `store.url` set above that without it, as a share of the latter (forwarding and verification).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from bench.client import STALL_MS
from bench.peers import (
    DIRECT,
    LITELLM,
    LOAD_ON,
    NGINX,
    OFF,
    PORTKEY,
    ROOT,
    STORE,
    SYNC,
    WORK,
    Missing,
    gateway,
    model_server,
    pinned,
    versions,
)
from bench.processes import Server
from bench.report import heading, machine, markdown, write
from bench.upstream import EVENTS

SECTIONS = ("cpu", "latency", "tokens", "start", "store")
GATEWAYS = (NGINX, OFF, SYNC, PORTKEY, LITELLM)
STREAMS = (64, 128, 256)
_CONTEXT_OF_STREAMS = 1000  # tokens: 4 KB
_WARM_UP_S = 0.3
_LOOK_S = 0.2  # between two checks for an idle process
_QUIET = 0.04  # of a core

Figures = dict[str, float]
ByTarget = dict[str, Figures]


@dataclass(frozen=True, slots=True)
class Load:
    """The load to send: a shape of `bench.client`, over so many connections opened within `ramp` seconds.

    With `repeat` it is the same request every time.
    """

    shape: str
    concurrency: int
    tokens: int
    seconds: float
    ramp: float = 0.0
    repeat: bool = False

    def put_on(self, target: Server, seconds: float) -> dict[str, Any]:
        """Send requests for some seconds from a separate process; return the output of `bench.client`."""
        command = [sys.executable, "-m", "bench.client", "--port", str(target.port), "--shape", self.shape]
        command += ["--concurrency", str(self.concurrency), "--context-tokens", str(self.tokens)]
        command += ["--seconds", str(seconds), "--ramp", str(self.ramp)]
        command += ["--repeat"] if self.repeat else []
        command += [f"--header={name}: {value}" for name, value in target.headers.items()]
        done = subprocess.check_output(pinned(command, LOAD_ON), cwd=ROOT, timeout=seconds + 90)
        printed: dict[str, Any] = json.loads(done)
        return printed


def measure(target: Server, upstream: Server, load: Load) -> Figures:
    """Return the clients' figures and `cpu_ms` per request. Raises RuntimeError when one was not served or failed."""
    served, cpu = _served(upstream), target.cpu_s()
    result = load.put_on(target, load.seconds)
    await_quiet(target)
    cpu, served = target.cpu_s() - cpu, _served(upstream) - served
    sent = result["requests"]
    if served != sent or result["failures"]:
        raise RuntimeError(f"{target.name}: {sent} sent, {served} served, first failure: {result['first_failure']}")
    figures = {name: value for name, value in result.items() if isinstance(value, (int, float))}
    return {**figures, "verified": result["verified"] / sent, "cpu_ms": cpu / sent * 1000}


def in_turns(targets: Sequence[Server], upstream: Server, load: Load, rounds: int) -> ByTarget:
    """Return the medians of every target's figures over some rounds."""
    found: dict[str, list[Figures]] = {target.name: [] for target in targets}
    for target in targets:
        _warm_up(target, load)
    for _ in range(rounds):
        for target in targets:
            found[target.name].append(measure(target, upstream, load))
            _tell(target.name, load, found[target.name][-1])
    return {name: {key: median(each[key] for each in figures) for key in figures[0]} for name, figures in found.items()}


def _warm_up(target: Server, load: Load) -> None:
    load.put_on(target, _WARM_UP_S)
    await_quiet(target)


def await_quiet(target: Server, within_s: float = 20) -> None:
    """Wait for the work of a server after its last answer (checks that were not ready, logs): it counts too."""
    deadline = time.monotonic() + within_s
    before = target.cpu_s()
    while time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        now = target.cpu_s()
        if now - before < _QUIET * _LOOK_S:
            return
        before = now


def _served(upstream: Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{upstream.port}/served", timeout=10) as response:
        return int(response.read())


def _tell(name: str, load: Load, figures: Figures) -> None:
    times = ", ".join(f"{key} {figures[key]:.2f}" for key in ("cpu_ms", "first_p50", "whole_p50", "whole_p99"))
    print(f"{load.shape} ×{load.concurrency:<4}{name:26}{times}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """The parameters of a measurement: time under each load, number of rounds, tokens of context."""

    upstream: Server
    gateways: Mapping[str, Server]
    seconds: float
    rounds: int
    tokens: int

    @property
    def all(self) -> list[Server]:
        """Return the model server reached directly, and every gateway."""
        return [self.upstream, *self.gateways.values()]

    def cpu(self) -> dict[str, ByTarget]:
        """Measure CPU time at concurrency 16: of bodies, of streams whose events come all at once, and every 2 ms."""
        gateways = list(self.gateways.values())
        return {shape: self._in_turns(gateways, shape, 16) for shape in ("body", "stream", "paced")}

    def latency(self) -> dict[str, ByTarget]:
        """Measure latency at concurrency 1 of the same."""
        return {shape: self._in_turns(self.all, shape, 1) for shape in ("body", "stream", "paced")}

    def tokens_a_second(self) -> dict[str, dict[int, Figures]]:
        """Measure streams of 50 tokens a second; a gateway that stalls is spared greater numbers of them."""
        found: dict[str, dict[int, Figures]] = {target.name: {} for target in self.all}
        for streams in STREAMS:
            load = Load("tokens", streams, _CONTEXT_OF_STREAMS, self.seconds + 2, ramp=1)
            for target in self.all:
                if all(not each["stalled"] for each in found[target.name].values()):
                    _warm_up(target, replace(load, concurrency=1))
                    found[target.name][streams] = measure(target, self.upstream, load)
                    _tell(target.name, load, found[target.name][streams])
        return found

    def start(self) -> ByTarget:
        """Measure the seconds from a gateway's start until it answers, and its memory then, in MB."""
        names, found = list(self.gateways), {name: list[Figures]() for name in self.gateways}
        for _ in range(self.rounds):
            for name in names:
                with gateway(name, self.upstream) as started:
                    time.sleep(0.2)
                    found[name].append({"first_answer_s": started.first_answer_s, "rss_mb": started.rss_mb()})
        return {name: {key: median(each[key] for each in some) for key in some[0]} for name, some in found.items()}

    def store(self) -> ByTarget:
        """Measure CPU time of verified bodies without and with a store."""
        with gateway(STORE, self.upstream) as storing:
            targets = [self.gateways[OFF], self.gateways[SYNC], storing]
            load = Load("body", 8, self.tokens, self.seconds * 2)
            return in_turns(targets, self.upstream, load, self.rounds)

    def _in_turns(self, targets: Sequence[Server], shape: str, concurrency: int) -> ByTarget:
        return in_turns(targets, self.upstream, Load(shape, concurrency, self.tokens, self.seconds), self.rounds)


def run(sections: Sequence[str], seconds: float, rounds: int, tokens: int) -> dict[str, Any]:
    """Measure every available gateway under every load; return the result that is written to a file."""
    WORK.mkdir(exist_ok=True)
    with ExitStack() as stack:
        upstream = stack.enter_context(model_server())
        gateways, left_out = {}, {}
        for name in (OFF, SYNC) if sections == ("store",) else GATEWAYS:
            try:
                gateways[name] = stack.enter_context(gateway(name, upstream))
            except Missing as missing:
                left_out[name] = str(missing)
                print(f"{name} is left out: {missing}", file=sys.stderr)
        bench = Bench(upstream, gateways, seconds, rounds, tokens)
        does: Mapping[str, Callable[[], Any]] = {
            "cpu": bench.cpu,
            "latency": bench.latency,
            "tokens": bench.tokens_a_second,
            "start": bench.start,
            "store": bench.store,
        }
        measured = {section: does[section]() for section in sections}
    return {
        "command": " ".join(["python -m bench.overhead", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(list(gateways)),
        "left_out": left_out,
        "context_tokens": tokens,
        "seconds_per_load": seconds,
        "rounds": rounds,
        **measured,
    }


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures and their relation to the goals, as Markdown."""
    others = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    left_out = "".join(f" Left out: {name} ({why})." for name, why in result["left_out"].items())
    tables = {"cpu": _cpu_table, "latency": _latency_table, "tokens": _tokens_table, "start": _start_table}
    tables["store"] = _store_table
    return "\n".join(
        [
            heading("What a gateway costs", result),
            f"Requests of {result['context_tokens']} tokens, answers of 200 words or {EVENTS} events, one process each "
            f"on one core, medians of {result['rounds']} rounds; {others}.{left_out}",
            *(part for section in SECTIONS if section in result for part in tables[section](result[section])),
            "\n## Goals\n",
            markdown(("goal", "measured", ""), list(_goals(result))),
        ]
    )


def _cpu_table(cpu: Mapping[str, ByTarget]) -> Iterator[str]:
    for shape, title, divisor in (
        ("body", "CPU time per body, 16 connections", 1),
        ("paced", "CPU time per streamed event, 16 streams of an event every 2 ms", EVENTS),
        ("stream", "CPU time per stream whose events come all at once, 16 connections", 1),
    ):
        rows = []
        for target, figures in cpu[shape].items():
            others = (_ratio(cpu, shape, other, target) for other in (LITELLM, PORTKEY))
            shown = (figures["cpu_ms"] / divisor * 1000, _ratio(cpu, shape, target, NGINX), *others)
            rows.append((target, *map(_number, shown), "–" if target != SYNC else f"{figures['verified']:.0%}"))
        yield f"\n## {title}\n"
        yield markdown(("", "µs", "÷ nginx", "LiteLLM ÷ this", "Portkey ÷ this", "verified"), rows)


def _latency_table(latency: Mapping[str, ByTarget]) -> Iterator[str]:
    yield "\n## Latency at one connection, ms; in brackets what is added to the way without a gateway\n"
    rows = []
    for target in latency["body"]:
        cells = []
        for shape, name in _LATENCIES:
            added = _added(latency, shape, target, name)
            cells.append("–" if added is None else f"{latency[shape][target][name]:.2f} ({added:+.2f})")
        rows.append((target, *cells))
    titles = ("", "body p50", "body p99", "first byte of a stream p50", "p99", "an event on its way p50")
    yield markdown(titles, rows)


_LATENCIES = (
    ("body", "whole_p50"),
    ("body", "whole_p99"),
    ("stream", "first_p50"),
    ("stream", "first_p99"),
    ("paced", "event_p50"),
)


def _tokens_table(tokens: Mapping[str, Mapping[int, Figures]]) -> Iterator[str]:
    yield f"\n## Streams of 50 tokens a second\n\nHow many of so many at once had a gap of over {STALL_MS} ms\n"
    rows = []
    for target, by_streams in tokens.items():
        found = (by_streams.get(streams) for streams in STREAMS)
        rows.append((target, *(f"{each['stalled']:.0f} of {each['requests']:.0f}" if each else "–" for each in found)))
    yield markdown(("", *(f"{streams} streams" for streams in STREAMS)), rows)


def _start_table(start: ByTarget) -> Iterator[str]:
    yield "\n## Start\n"
    rows = [(name, f"{each['first_answer_s']:.2f}", f"{each['rss_mb']:.0f}") for name, each in start.items()]
    yield markdown(("", "first answer after, s", "resident memory, MB"), rows)


def _store_table(store: ByTarget) -> Iterator[str]:
    yield "\n## What recording costs: CPU time per verified body, 8 connections, SQLite\n"
    rows = [(name, f"{each['cpu_ms']:.2f}", f"{each['verified']:.0%}") for name, each in store.items()]
    yield markdown(("", "ms", "verified"), rows)


def _goals(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield every goal that this run can judge: its text, the measured value, and "met" or "missed"."""
    for text, value, limit, unit in _targets(result):
        if value is not None:
            yield f"{text} ≤ {limit:g}{unit}", f"{_number(value)}{unit}", "met" if value <= limit else "missed"


def _targets(result: Mapping[str, Any]) -> Iterator[tuple[str, float | None, float, str]]:
    if cpu := result.get("cpu"):
        for shape, what, goals in (
            ("body", "CPU time per body", ((NGINX, 12), (LITELLM, 1 / 35), (PORTKEY, 1 / 8))),
            ("paced", "CPU time per event", ((NGINX, 3.5), (LITELLM, 1 / 8))),
        ):
            for other, limit in goals:
                yield f"{what}, of that of {other}", _ratio(cpu, shape, OFF, other), round(limit, 4), " ×"
    if latency := result.get("latency"):
        yield "added latency p50", _added(latency, "body", OFF, "whole_p50"), 0.6, " ms"
        yield "added latency p99", _added(latency, "body", OFF, "whole_p99"), 3, " ms"
        yield "added to the first byte of a stream p99", _added(latency, "stream", OFF, "first_p99"), 4, " ms"
        yield "added per event", _added(latency, "paced", OFF, "event_p50"), 0.2, " ms"
        off, sync = (_added(latency, "paced", each, "event_p50") for each in (OFF, SYNC))
        yield "verification's part of that", None if off is None or sync is None else sync - off, 0.05, " ms"
    if tokens := result.get("tokens"):
        yield "stalled of 128 streams with verification", tokens[SYNC].get(128, {}).get("stalled"), 0, ""
        yield "stalled of 256 streams without", tokens[OFF].get(256, {}).get("stalled"), 0, ""
    if start := result.get("start"):
        yield "memory at the start", start[OFF]["rss_mb"], 90, " MB"
        yield "start to first answer", start[OFF]["first_answer_s"], 1, " s"
    if store := result.get("store"):
        share = store[STORE]["cpu_ms"] / store[SYNC]["cpu_ms"] - 1
        yield "recording, of forwarding and verification", share * 100, 5, " %"


def _ratio(cpu: Mapping[str, ByTarget], shape: str, one: str, other: str) -> float | None:
    figures = cpu[shape]
    if one not in figures or other not in figures or not figures[other]["cpu_ms"]:
        return None
    return figures[one]["cpu_ms"] / figures[other]["cpu_ms"]


def _added(latency: Mapping[str, ByTarget], shape: str, target: str, name: str) -> float | None:
    figures = latency[shape]
    if name not in figures.get(target, {}) or name not in figures[DIRECT]:
        return None
    return figures[target][name] - figures[DIRECT][name]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round of CPU times and latencies")
    parser.add_argument("--only", help=f"sections, by comma: {', '.join(SECTIONS)}")
    parser.add_argument("--seconds", type=float, default=1.5, help="for one target under one load (default: 1.5)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the medians count (default: 3)")
    parser.add_argument("--context-tokens", type=int, default=4000, help="of a request (default: 4000)")
    parser.add_argument("--name", default="overhead", help="of the files under bench/results (default: overhead)")
    given = parser.parse_args()
    sections = tuple(given.only.split(",")) if given.only else ("cpu", "start") if given.quick else SECTIONS
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}")
    seconds, rounds = (1.0, 1) if given.quick else (given.seconds, given.rounds)
    result = run(sections, seconds, rounds, given.context_tokens)
    (WORK / "overhead.json").write_text(json.dumps(result))
    table = as_table(result)
    print(table)
    if sections == SECTIONS:
        write(given.name, result, table)


if __name__ == "__main__":
    main()
