"""What a proxy costs: the same load against the model server directly, through Groundwire and through LiteLLM's proxy.

All four stand side by side in one run and take turns at every load, so that a busy machine is busy for all of them.
The LiteLLM proxy lives in a virtual environment of its own, .bench/litellm-venv, which is made when it is missing.

    python -m bench.overhead            a few minutes, of which the first installation is the longest
    python -m bench.overhead --quick    half a minute, less precise
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.client import MODELS
from bench.processes import Server, free_port, running
from bench.report import heading, machine, markdown, write

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".bench"
VENV = WORK / "litellm-venv"

DIRECT, OFF, SYNC, LITELLM = "direct", "groundwire off", "groundwire sync", "litellm"
LOADS = tuple((shape, concurrency) for shape in MODELS for concurrency in (1, 16, 64))
QUICK_LOADS = (("body", 16), ("stream", 16), ("paced", 16))
_WARM_UP_S = 0.7
_LOOK_S = 0.25  # between two looks at whether a process has become quiet
_QUIET = 0.04  # of a core

_GROUNDWIRE = """\
server: {{host: 127.0.0.1, port: {port}}}
upstreams:
  bench: {{base_url: "http://127.0.0.1:{upstream}/v1", dialect: openai, models: ["*"]}}
grounding: {{mode: "{mode}"}}
"""

_LITELLM = """\
litellm_settings: {telemetry: false, set_verbose: false, num_retries: 0}
model_list:
"""
_LITELLM_MODEL = """\
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-bench}}
"""
_LITELLM_ENVIRON = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # spares it a check that Groundwire has not either
    "NO_PROXY": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One target under one load. Times are in milliseconds; `cpu_ms` is the proxy's CPU time per request.

    `verified` is the share of answers that came with a complete report. Where it is below 1 more was asked of the
    workers than they can do; the answers came all the same, their reports as pending, partial or skipped.
    """

    shape: str
    concurrency: int
    target: str
    requests: int
    verified: float
    per_second: float
    cpu_ms: float
    first_p50: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: a shape of `bench.client`, over so many connections, with a context of so many tokens."""

    shape: str
    concurrency: int
    tokens: int

    def put_on(self, target: Server, seconds: float) -> dict[str, Any]:
        """Sends requests for some seconds from a process of its own; gives what `bench.client` prints."""
        command = [sys.executable, "-m", "bench.client", "--port", str(target.port), "--shape", self.shape]
        command += ["--concurrency", str(self.concurrency), "--context-tokens", str(self.tokens)]
        command += ["--seconds", str(seconds)]
        printed: dict[str, Any] = json.loads(subprocess.check_output(command, cwd=ROOT, timeout=seconds + 90))
        return printed


def measure(target: Server, upstream: Server, load: Load, seconds: float) -> Figure:
    """Puts a load on `target`. Raises RuntimeError when not every request reached the model server and came back."""
    load.put_on(target, _WARM_UP_S)
    _await_quiet(target)
    served, cpu = _served(upstream), target.cpu_s()
    result = load.put_on(target, seconds)
    _await_quiet(target)
    cpu, served = target.cpu_s() - cpu, _served(upstream) - served
    sent = result["requests"]
    if served != sent or result["failures"]:
        raise RuntimeError(f"{target.name}: {sent} sent, {served} served, first failure: {result['first_failure']}")
    return Figure(
        shape=load.shape,
        concurrency=load.concurrency,
        target=target.name,
        requests=sent,
        verified=result["verified"] / sent,
        per_second=sent / result["seconds"],
        cpu_ms=cpu / sent * 1000,
        first_p50=result["first_p50"],
        p50=result["p50"],
        p99=result["p99"],
    )


def _await_quiet(target: Server, within_s: float = 20) -> None:
    """Waits for what a server still does after its last answer (checks that were not ready, logs): it counts too."""
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


def litellm_venv() -> Path:
    """The virtual environment with LiteLLM's proxy, made when it is missing."""
    if not (VENV / "bin" / "litellm").exists():
        subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(VENV / "bin" / "pip"), "install", "--quiet", "litellm[proxy]"])
    return VENV


def start_all(stack: ExitStack) -> tuple[Server, list[Server]]:
    """The model server, and the targets: itself reached directly, Groundwire twice, LiteLLM."""
    port = free_port()
    command = [sys.executable, "-m", "bench.upstream", "--port", str(port)]
    upstream = stack.enter_context(running(DIRECT, command, port, WORK / "upstream.log", {}))
    return upstream, [
        upstream,
        stack.enter_context(_groundwire(OFF, "off", port)),
        stack.enter_context(_groundwire(SYNC, "sync", port)),
        stack.enter_context(_litellm(port)),
    ]


def _groundwire(name: str, mode: str, upstream: int) -> AbstractContextManager[Server]:
    port = free_port()
    config = WORK / f"groundwire-{mode}.yaml"
    config.write_text(_GROUNDWIRE.format(port=port, upstream=upstream, mode=mode))
    command = [str(Path(sys.executable).parent / "groundwire"), "serve", "--config", str(config)]
    return running(name, command, port, WORK / f"groundwire-{mode}.log", {})


def _litellm(upstream: int) -> AbstractContextManager[Server]:
    port = free_port()
    config = WORK / "litellm.yaml"
    models = (_LITELLM_MODEL.format(model=model, upstream=upstream) for model in sorted(set(MODELS.values())))
    config.write_text(_LITELLM + "".join(models))
    command = [str(litellm_venv() / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--num_workers", "1"]
    return running(LITELLM, command, port, WORK / "litellm.log", _LITELLM_ENVIRON)


def run(loads: Sequence[tuple[str, int]], seconds: float, tokens: int) -> dict[str, Any]:
    """Every target under every load, as the result that is written to a file."""
    WORK.mkdir(exist_ok=True)
    figures: list[Figure] = []
    with ExitStack() as stack:
        upstream, targets = start_all(stack)
        at_start = {target.name: target.rss_mb() for target in targets}
        for shape, concurrency in loads:
            for target in targets:
                figures.append(measure(target, upstream, Load(shape, concurrency, tokens), seconds))
                print(_progress(figures[-1]), file=sys.stderr, flush=True)
        memory = {target.name: {"start": at_start[target.name], "end": target.rss_mb()} for target in targets}
    return {
        "command": " ".join(["python -m bench.overhead", *sys.argv[1:]]),
        "machine": machine(),
        "litellm": _litellm_version(),
        "context_tokens": tokens,
        "seconds_per_load": seconds,
        "rss_mb": memory,
        "figures": [asdict(figure) for figure in figures],
    }


def _progress(figure: Figure) -> str:
    load = f"{figure.shape} ×{figure.concurrency}"
    return (
        f"{load:12}{figure.target:16}{figure.per_second:8.0f} /s {figure.cpu_ms:8.3f} ms CPU, p50 {figure.p50:.2f} ms"
    )


def as_table(result: Mapping[str, Any]) -> str:
    """The figures as Markdown, each beside how many times less CPU it takes than LiteLLM under the same load."""
    litellm = {_load_of(each): each for each in result["figures"] if each["target"] == LITELLM}
    rows = [_row(each, litellm[_load_of(each)]) for each in result["figures"]]
    memory = [(name, f"{mb['start']:.0f}", f"{mb['end']:.0f}") for name, mb in result["rss_mb"].items()]
    tokens, litellm_version = result["context_tokens"], result["litellm"]
    sections = (
        heading("What a proxy costs", result),
        f"Requests of {tokens} tokens, answers of 200 words; LiteLLM {litellm_version}, one worker each.\n",
        markdown(
            ("load", "target", "requests/s", "CPU ms", "LiteLLM ÷ this", "verified", "first ms", "p50 ms", "p99 ms"),
            rows,
        ),
        "\nResident memory, MB:\n",
        markdown(("target", "at start", "at the end"), memory),
    )
    return "\n".join(sections)


def _load_of(figure: Mapping[str, Any]) -> tuple[str, int]:
    return figure["shape"], figure["concurrency"]


def _row(figure: Mapping[str, Any], litellm: Mapping[str, Any]) -> tuple[str, ...]:
    ratio = litellm["cpu_ms"] / figure["cpu_ms"]
    times = (f"{figure[name]:.2f}" for name in ("first_p50", "p50", "p99"))
    load = f"{figure['shape']} ×{figure['concurrency']}"
    verified = f"{figure['verified']:.0%}" if figure["target"] == SYNC else "–"
    return (
        load,
        figure["target"],
        f"{figure['per_second']:.0f}",
        f"{figure['cpu_ms']:.3f}",
        f"{ratio:.1f}",
        verified,
        *times,
    )


def _litellm_version() -> str:
    command = [str(VENV / "bin" / "python"), "-c", "from importlib.metadata import version as v; print(v('litellm'))"]
    return subprocess.check_output(command, text=True).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="concurrency 16 only, and little of it")
    parser.add_argument("--seconds", type=float, default=4.0, help="for one target under one load (default: 4)")
    parser.add_argument("--context-tokens", type=int, default=4000, help="of a request (default: 4000)")
    parser.add_argument("--name", default="overhead", help="of the files under bench/results (default: overhead)")
    given = parser.parse_args()
    loads, seconds = (QUICK_LOADS, 1.5) if given.quick else (LOADS, given.seconds)
    result = run(loads, seconds, given.context_tokens)
    table = as_table(result)
    print(table)
    if not given.quick:
        write(given.name, result, table)


if __name__ == "__main__":
    main()
