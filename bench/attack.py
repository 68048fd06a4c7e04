"""Measure a proxy under a mixed attack: latency of /healthz, and memory, files and threads over time.

`groundwire serve` runs with client keys, a store, jobs and a litellm upstream, in front of a model server that
misbehaves. First each kind of attack that could hold the event loop runs alone, then all kinds together, in rounds;
after every round the proxy is measured once it is idle. A separate process requests /healthz every 5 ms, and
another requests it from a bare server at the same time: its latency is the delay of the machine itself.

    python -m bench.attack                 six minutes, over the loopback interface only
    python -m bench.attack --minutes 1     shorter
    python -m bench.attack --only bodies   one kind alone
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import uvloop
import yaml

from bench.crowd import probing
from bench.hostile import UNITS
from bench.misbehaving import LEFT_OPEN, MARK, REPLIES, body, response
from bench.overhead import await_quiet
from bench.peers import ROOT, WORK
from bench.processes import Server, family, free_port, running
from bench.report import heading, machine, markdown, percentile, write

GOAL_P99_MS = 50
FLAT = 0.05
ALONE_SHARE, ROUNDS, WARM_UP = 0.3, 12, 4
ALONE_WORKERS, MIXED_WORKERS = 2, 6
_PATIENCE_S = 30.0
_LEAVE_S = 0.5
_KEEP = 4096
_LOOK_S = 0.2
_SLOW_S = 5.0
_MEMORY = 8 * 2**30  # of address space, for each process: one that needs more must not take the machine down
_ADMIN = "the-key-of-an-admin-of-the-bench"
_SOURCE = {"role": "system", "content": "Revenue was $4.2 million in 2023. The board approved the plan."}
_GZIP_MB = 256

Send = Callable[["Target"], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """The proxy under attack: its port, two client keys, and the id of a report that belongs to the first."""

    port: int
    keys: tuple[str, str]
    report: str = ""

    async def send(self, *parts: bytes, leave: bool = False) -> tuple[str, bytes]:
        """Send bytes on a connection, part by part; return the status of the answer and the beginning of its body.

        With `leave` the connection is dropped after a short while.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(_LEAVE_S if leave else _PATIENCE_S):
                return await _exchange(reader, writer, parts)
        except TimeoutError:
            return ("left" if leave else "no answer"), b""
        except ConnectionError:
            return "closed", b""
        finally:
            writer.transport.abort()

    def post(self, data: bytes, path: str = "/v1/chat/completions", headers: str = "", key: str | None = None) -> bytes:
        """Return a POST request."""
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n"
        key = self.keys[0] if key is None else key
        return f"{head}authorization: Bearer {key}\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data

    def get(self, path: str, headers: str = "", key: str | None = None, method: str = "GET") -> bytes:
        """Return a request without a body."""
        key = self.keys[0] if key is None else key
        head = f"{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer {key}\r\n"
        return f"{head}{headers}\r\n".encode()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: Sequence[bytes]
) -> tuple[str, bytes]:
    received = bytearray()
    for part in parts:
        writer.write(part)
        with suppress(ConnectionError):  # refused before it was read whole: the answer may be there already
            await writer.drain()
        if len(parts) > 1:
            await asyncio.sleep(0.02)
    while data := await reader.read(2**16):
        if len(received) < _KEEP:
            received += data
    head, _, content = bytes(received).partition(b"\r\n\r\n")
    return (head[9:12].decode("latin-1") if head.startswith(b"HTTP/1.1 ") else "closed"), content


def chat(model: str = "m", **members: Any) -> dict[str, Any]:
    """Return the JSON of a chat request."""
    return {"model": model, "messages": [_SOURCE, {"role": "user", "content": "What was it?"}], **members}


def echoed(answer: str, source: str = "", **members: Any) -> dict[str, Any]:
    """Return a chat request whose answer will be this text."""
    messages = [{"role": "system", "content": source} if source else _SOURCE, {"role": "user", "content": answer}]
    return {"model": "echo", "messages": messages, **members}


def _schema(kind: str, size: int) -> bytes:
    definitions = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(size)}
    schema, answer = {
        "pattern": ({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}, {"a": "a" * size + "!"}),
        "unique": ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": at} for at in range(size)]}),
        "nested": ({"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{size}": {"type": "object"}}}, {"a": 1}),
    }[kind]
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return json.dumps(echoed(json.dumps(answer), response_format=form)).encode()


def _filled(kind: str, megabytes: float) -> bytes:
    """Return a body of about this size that is made of one kind of small value."""
    unit, opening, closing = {
        "numbers in sources": ("5", '"grounding":{"sources":[', "]}"),
        "sources": ('{"text":"Revenue was 5."}', '"grounding":{"sources":[', "]}"),
        "keys of grounding": ('"k%d":1', '"grounding":{', "}"),
        "members": ('"k%d":1', "", ',"grounding":{}'),
        "empty arrays": ("[]", '"x":[', '],"grounding":{}'),
        "nested arrays": ("[[[]]]", '"x":[', "]"),
        "documents": ('"a"', '"documents":[', "]"),
        "tools": ('{"type":"function","function":{"name":"a"}}', '"tools":[', "]"),
        "messages": ('{"role":"user","content":"a"}', '"messages":[', "]"),
        "text": ('{"role":"user","content":"' + "Revenue was $4 million. " * 2000 + '"}', '"messages":[', "]"),
    }[kind]
    count = max(1, round(megabytes * 2**20 / (len(unit) + 5 if "%" in unit else len(unit) + 1)))
    values = ",".join(unit % at for at in range(count)) if "%" in unit else ",".join([unit] * count)
    shape = '{"model":"m",' if kind in ("messages", "text") else json.dumps(chat())[:-1] + ","
    return f"{shape}{opening}{values}{closing}}}".encode()


_FILLINGS = (
    "numbers in sources",
    "sources",
    "keys of grounding",
    "members",
    "empty arrays",
    "nested arrays",
    "documents",
    "tools",
    "messages",
    "text",
)


def _table(columns: int, rows: int, mark: str) -> str:
    lines = [[f"c{at}" for at in range(columns)]]
    if mark == "|":
        lines.append(["-"] * columns)
    lines += [[str((at * 7 + row) % 9973) for at in range(columns)] for row in range(rows)]
    return "\n".join(mark.join(line) for line in lines)


def _wide(columns: int, rows: int, mark: str) -> bytes:
    answer = " ".join(f"Revenue of row{at} was 12{at}." for at in range(16))
    return json.dumps(echoed(answer, _table(columns, rows, mark))).encode()


def _names(claims: int, names: int) -> bytes:
    people = " ".join(f"Alice Smith{at}" for at in range(names))
    answer = " ".join(f"{people} met Bob{at}." for at in range(claims))
    return json.dumps(echoed(answer, "Bob Jones " * names + "met Alice.")).encode()


@cache
def _large() -> list[bytes]:
    """Return the bodies whose size matters, made once: their generation must not be measured."""
    return [_filled(kind, size) for kind in _FILLINGS for size in (0.8, 6, 30)]


_SCHEMAS = (("pattern", 40), ("pattern", 2000), ("unique", 4000), ("unique", 20_000), ("nested", 25), ("nested", 200))
_TABLES = ((250, 3, ","), (1000, 50, ","), (1000, 50, "|"), (4000, 10, ","), (600, 3, "|"), (2, 20_000, ","))


async def schemas(target: Target) -> str:
    """Schemas with catastrophic patterns, exponential references and quadratic rules."""
    return (await target.send(target.post(_schema(*random.choice(_SCHEMAS)))))[0]


async def bodies(target: Target) -> str:
    """Bodies of up to 30 MB that consist of very many small values."""
    return (await target.send(target.post(random.choice(_large()))))[0]


async def tables(target: Target) -> str:
    """Tables that are very wide or very long."""
    return (await target.send(target.post(_wide(*random.choice(_TABLES)))))[0]


async def names(target: Target) -> str:
    """Claims that are made of names."""
    return (await target.send(target.post(_names(*random.choice(((1, 300), (16, 300), (100, 30)))))))[0]


async def bombs(target: Target) -> str:
    """Answers that are small compressed and up to 256 MiB decompressed."""
    size, shape = random.choice((8, 64, _GZIP_MB)), random.choice(("body", "stream"))
    request = chat(f"bomb-{size}-{shape}", stream=shape == "stream")
    return (await target.send(target.post(json.dumps(request).encode())))[0]


async def framing(target: Target) -> str:
    """Requests made to be read in two ways."""
    hidden = f"GET /v1/{MARK} HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    length, key = len(hidden), f"authorization: Bearer {target.keys[0]}\r\n"
    start = f"POST /v1/other HTTP/1.1\r\nhost: a\r\n{key}"
    both = f"{start}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    trailer = f"{start}connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{MARK}: 1\r\n\r\n"
    requests: tuple[tuple[bytes, ...], ...] = (
        (f"{start}connection: Upgrade, close\r\nupgrade: h2c\r\ncontent-length: {length}\r\n\r\n".encode(), hidden),
        (both.encode() + hidden,),
        (f"{start}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}".encode() + hidden,),
        (f"{start}transfer-encoding : chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n".encode() + hidden,),
        (f"{start}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n".encode() + hidden,),
        (trailer.encode(),),
        (f"GET /v1/x HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n{key}\r\n".encode(),),
        (f"GET /v1/x HTTP/1.1\r\nconnection: close\r\n{key}\r\n".encode(),),
        (target.get("/v1/x", "x-a: b\rx-b: c\r\n"),),
        (target.get("/v1/x", "x-big: " + "a" * 100_000 + "\r\n"),),
    )
    return (await target.send(*random.choice(requests), leave=True))[0]


async def paths(target: Target) -> str:
    """Paths that try to leave `base_url`, and methods that are not forwarded."""
    path = random.choice(
        "/v1/../../x|/v1/%2e%2e/x|/v1/..%2fx|/v1/..;/x|/v1/%252e%252e/x|/v1/..\\x|/v1//a/../../x|/v1/%c0%ae%c0%ae/x"
        "|/%76%31/models|/v1/models/%2e%2e%2f%2e%2e%2fx|/v1@127.0.0.1:9/x|/api/../v1/x".split("|")
    )
    method = random.choice(("GET", "DELETE", "TRACE", "CONNECT"))
    return (await target.send(target.get(path, method=method)))[0]


async def shapes(target: Target) -> str:
    """JSON that is broken, deep, or of the wrong types."""
    data = random.choice(
        (
            b"",
            b"[]",
            b'"x"',
            b"\xff\xfe",
            b'{"model":"m","messages":[],}',
            b'{"model":"m","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
            b'{"model":"m","seed":' + b"9" * 100_000 + b',"messages":[{"role":"user","content":"a"}]}',
            b'{"model":"m","messages":[null,5,"x",{"role":5},{"role":"user","content":[null,5,{"type":5}]}]}',
            b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}],"grounding":{"subject":"\\u0000"}}',
            b'{"model":"' + b"m" * 1_000_000 + b'","messages":[{"role":"user","content":"a"}]}',
            json.dumps(chat("hosted", metadata=5)).encode(),
        )
    )
    return (await target.send(target.post(data)))[0]


async def texts(target: Target) -> str:
    """Answers and sources that repeat one hostile piece."""
    text = (random.choice(UNITS) * 65_536)[: random.choice((2_000, 16_000, 65_536))]
    request = echoed(text) if random.random() < 0.5 else echoed("Revenue was $5 million.", text or " ")
    return (await target.send(target.post(json.dumps(request | {"stream": random.random() < 0.5}).encode())))[0]


async def fetching(target: Target) -> str:
    """Requests that try to make the proxy call a host: URLs of media, and addresses as models."""
    url = "http://127.0.0.1:9/x.png"
    image = [{"type": "image_url", "image_url": {"url": url}}]
    requests = (chat("hosted") | {"messages": [{"role": "user", "content": image}]}, chat(f"hosted/{url}"), chat(url))
    return (await target.send(target.post(json.dumps(random.choice(requests)).encode())))[0]


async def strangers(target: Target) -> str:
    """Requests without a key or with a wrong one, for a stranger's report, and guesses of an admin's key."""
    wrong = f"key=wrong{random.random()}&next=/".encode()
    form = "content-type: application/x-www-form-urlencoded\r\n"
    requests = (
        target.get(f"/v1/grounding/{target.report}", key=target.keys[1]),
        target.get(f"/v1/grounding/{target.report}", key="gw-" + "a" * 43),
        target.post(b"{}", key=""),
        target.get("/v1/reviews"),
        target.get("/v1/grounding", key=f"{_ADMIN}-not"),
        b"POST /sign-in HTTP/1.1\r\nhost: a\r\nconnection: close\r\n%bcontent-length: %d\r\n\r\n%b"
        % (form.encode(), len(wrong), wrong),
    )
    return (await target.send(random.choice(requests)))[0]


async def faults(target: Target) -> str:
    """Model servers that break off, send unreadable data, or never end; the client disconnects from the last."""
    model = random.choice((*REPLIES, *LEFT_OPEN, "drip"))
    request = json.dumps(chat(model, stream=random.random() < 0.5)).encode()
    return (await target.send(target.post(request), leave=model in LEFT_OPEN))[0]


async def slow(target: Target) -> str:
    """Clients that send half a request, or disconnect during an answer."""
    whole = target.post(json.dumps(chat(stream=True)).encode())
    parts = random.choice(((whole[:60],), (whole[:-20],), (whole[:30], whole[30:90], whole[90:-5]), (whole,)))
    return (await target.send(*parts, leave=True))[0]


ALONE: tuple[Send, ...] = (schemas, bodies, tables, names, bombs)
"""The kinds that could hold the event loop or a worker: each runs alone first."""
MIXED: tuple[Send, ...] = (*ALONE, framing, paths, shapes, texts, fetching, strangers, faults, slow)
KINDS = {kind.__name__: kind for kind in MIXED}


@dataclass(frozen=True, slots=True)
class Look:
    """Resources held by the proxy and its children at one time: resident memory in MB, open files, threads."""

    at_s: float
    rss_mb: float
    files: int
    threads: int


def look(server: Server, begun: float) -> Look:
    """Return the resources held by the proxy."""
    pids = family(server.pid)
    files = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    threads = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)
    return Look(time.monotonic() - begun, server.rss_mb(), files, threads)


async def attack(target: Target, kinds: Sequence[Send], seconds: float, workers: int) -> Counter[str]:
    """Attack with these kinds in any order, some at once, for `seconds`; count kinds with their outcomes."""
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + seconds

    async def one() -> None:
        while time.monotonic() < until:
            kind, begun = random.choice(kinds), time.monotonic()
            outcomes[f"{kind.__name__} {await kind(target)}"] += 1
            if (took := time.monotonic() - begun) > _SLOW_S:
                print(f"{kind.__name__} took {took:.0f} s", file=sys.stderr, flush=True)

    await asyncio.gather(*(one() for _ in range(workers)))
    return outcomes


async def innocent(target: Target) -> str:
    """Return the status of the report on a usual request that is in no cache."""
    number = random.randrange(10**9)
    request = echoed(f"Revenue was ${number} in 2023.", f"Revenue was ${number} in 2023.")
    status, content = await target.send(target.post(json.dumps(request).encode()))
    found = content.partition(b'"status":"')[2].partition(b'"')[0].decode()
    return found or status


async def phase(
    server: Server, control: int, target: Target, kinds: Sequence[Send], seconds: float, workers: int
) -> dict[str, Any]:
    """Attack for a while, and request /healthz at the same time."""
    async with probing(server.port) as waits, probing(control) as bare, watching(server) as memory:
        outcomes = await attack(target, kinds, seconds, workers)
    found = {
        "outcomes": dict(sorted(outcomes.items())),
        "healthz": _times(waits),
        "bare": _times(bare),
        "peak_mb": max(memory),
    }
    print(kinds[0].__name__ if len(kinds) == 1 else "mixed", found, file=sys.stderr, flush=True)
    return found


@asynccontextmanager
async def watching(server: Server) -> AsyncIterator[list[float]]:
    """Record the proxy's memory during the block."""
    noted = [server.rss_mb()]

    async def note() -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            noted.append(server.rss_mb())

    task = asyncio.create_task(note())
    try:
        yield noted
    finally:
        task.cancel()


def _times(waits: Sequence[float]) -> dict[str, float]:
    return {"count": len(waits), "p50": percentile(waits, 50), "p99": percentile(waits, 99), "max": max(waits)}


async def run_phases(server: Server, control: int, keys: tuple[str, str], seconds: float, only: str) -> dict[str, Any]:
    """Run every phase; return its times, and the proxy's resources after each."""
    begun = time.monotonic()
    target = Target(server.port, keys)
    _, content = await target.send(target.post(json.dumps(chat()).encode()))
    target = replace(target, report="gw-" + content.partition(b'"id":"gw-')[2].partition(b'"')[0].decode())
    random.seed(1)
    _large()
    alone = [KINDS[only]] if only else list(ALONE)
    found: dict[str, Any] = {"alone": {}, "mixed": [], "looks": [], "innocent": []}

    async def settle() -> None:
        await asyncio.to_thread(await_quiet, server)
        found["looks"].append(asdict(look(server, begun)))
        found["innocent"].append(await innocent(target))

    async with probing(server.port) as waits, probing(control) as bare:
        await asyncio.sleep(min(5, seconds / 20))
    found["idle"] = {"healthz": _times(waits), "bare": _times(bare)}
    await settle()
    for kind in alone:
        spent = seconds * (1 if only else ALONE_SHARE / len(alone))
        found["alone"][kind.__name__] = await phase(server, control, target, [kind], spent, ALONE_WORKERS)
        await settle()
    for _ in range(0 if only else ROUNDS):
        spent = seconds * (1 - ALONE_SHARE) / ROUNDS
        found["mixed"].append(await phase(server, control, target, MIXED, spent, MIXED_WORKERS))
        await settle()
    return found


@contextmanager
def proxied() -> Iterator[tuple[Server, Server, tuple[str, str]]]:
    """Run the model server and the proxy before it; yield both, and two client keys."""
    folder = WORK / f"attack-{os.getpid()}"
    folder.mkdir(parents=True)
    python, groundwire = sys.executable, str(Path(sys.executable).parent / "groundwire")
    behind, port = free_port(), free_port()
    base = f"http://127.0.0.1:{behind}/v1"
    file = folder / "client-keys"
    keys = tuple(_created(groundwire, file, name) for name in ("first", "second"))
    settings = {
        "server": {"host": "127.0.0.1", "port": port, "keys": str(file)},
        "upstreams": {
            "up": {"base_url": base, "models": ["*"], "timeout": "5s", "api_key_env": "BENCH_KEY"},
            "hosted": {
                "dialect": "litellm",
                "litellm_model": "gemini/*",
                "models": ["hosted*"],
                "base_url": base,
                "api_key_env": "BENCH_KEY",
            },
        },
        "store": {"url": f"sqlite:///{folder}/store.db"},
        "jobs": {"url": f"sqlite:///{folder}/jobs.db"},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    environ = {"BENCH_KEY": "sk-bench", "GROUNDWIRE_ADMIN_KEY": _ADMIN}
    upstream = running(
        "upstream", [python, "-m", "bench.misbehaving", "--port", str(behind)], behind, folder / "upstream.log", {}
    )
    proxy = running("groundwire", [groundwire, "serve", "--config", str(config)], port, folder / "proxy.log", environ)
    with upstream as model_server, proxy as server:
        yield server, model_server, (keys[0], keys[1])


def _created(groundwire: str, file: Path, name: str) -> str:
    """Return a new client key."""
    command = [groundwire, "keys", "create", name, "--file", str(file)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return next(word for word in said.split() if word.startswith("gw-"))


async def _bare(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(response(body("x")))
    writer.close()


def serve_bare(port: int) -> None:
    """Serve answers that take no work."""

    async def serve() -> None:
        server = await asyncio.start_server(_bare, "127.0.0.1", port)
        await server.serve_forever()

    uvloop.run(serve())


def run(minutes: float, only: str) -> dict[str, Any]:
    WORK.mkdir(exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    port = free_port()
    bare = running("bare", [sys.executable, "-m", "bench.attack", "--bare", str(port)], port, WORK / "bare.log", {})
    with bare, proxied() as (server, upstream, keys):
        found = uvloop.run(run_phases(server, port, keys, minutes * 60, only))
        found["reached_upstream"] = uvloop.run(_seen(upstream.port))
    command = " ".join(["python -m bench.attack", *sys.argv[1:]])
    return {"command": command, "machine": machine(), "found": found}


async def _seen(port: int) -> dict[str, int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /seen HTTP/1.1\r\nhost: a\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    found: dict[str, int] = json.loads(await reader.read(2**20))
    writer.close()
    return found


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    found = result["found"]
    rows = [("idle", found["idle"], "")]
    rows += [(f"{name} alone", each, _summary(each["outcomes"])) for name, each in found["alone"].items()]
    rows += [(f"mixed, round {at}", each, "") for at, each in enumerate(found["mixed"], 1)]
    columns = ("", "/healthz p50, ms", "p99", "max", "bare server p99, ms", "max", "peak RSS, MB", "outcomes")
    times = [
        (
            name,
            *(f"{each['healthz'][key]:.1f}" for key in ("p50", "p99", "max")),
            f"{each['bare']['p99']:.1f}",
            f"{each['bare']['max']:.1f}",
            f"{each.get('peak_mb', 0):.0f}",
            outcomes,
        )
        for name, each, outcomes in rows
    ]
    held = [
        (f"{each['at_s']:.0f}", f"{each['rss_mb']:.0f}", each["files"], each["threads"], status)
        for each, status in zip(found["looks"], found["innocent"], strict=True)
    ]
    total = sum((Counter(each["outcomes"]) for each in found["mixed"]), Counter())
    parts = [
        heading("A mixed attack", result),
        f"The goal for /healthz is p99 under {GOAL_P99_MS} ms. A bare server, asked alongside, shows the machine's own "
        "delay.\n",
        markdown(columns, times),
        "\n## What the proxy held, once quiet, and the report of a usual request\n",
        markdown(("second", "RSS, MB", "files", "threads", "report"), held),
        f"\n{_flatness(found['looks'])}\n",
        "## Outcomes of the mixed rounds\n",
        markdown(("kind and status", "count"), sorted(total.items())),
        f"\nReached the model server: {json.dumps(found['reached_upstream'])}.",
    ]
    return "\n".join(parts)


def _summary(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {name.split(' ', 1)[1]}" for name, count in outcomes.items())


def _flatness(looks: Sequence[Mapping[str, float]]) -> str:
    if len(looks) <= WARM_UP + 2:
        return "Too few rounds to say whether memory is flat."
    first, second = looks[-(ROUNDS - WARM_UP) : -(ROUNDS - WARM_UP) // 2], looks[-(ROUNDS - WARM_UP) // 2 :]
    before, after = (mean(look["rss_mb"] for look in half) for half in (first, second))
    growth = after / before - 1
    verdict = "flat" if growth <= FLAT else "not flat"
    rest = ", ".join(f"{name} {first[0][name]} → {second[-1][name]}" for name in ("files", "threads"))
    return (
        f"After mixed round {WARM_UP}, mean of {len(first)} rounds and of the next {len(second)}: "
        f"RSS {before:.0f} → {after:.0f} MB, {growth:+.1%} ({verdict}); {rest}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--only", choices=sorted(KINDS), default="", help="one kind alone; nothing is written")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--bare", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        serve_bare(given.bare)
        return
    result = run(given.minutes, given.only)
    table = as_table(result)
    print(table)
    if not (given.dry or given.only):
        write("attack", result, table)


if __name__ == "__main__":
    main()
