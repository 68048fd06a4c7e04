"""Measure deferred work: the time until a job is stored, the time until it starts, and memory.

python bench/jobs.py sqlite:////tmp/jobs.db
python bench/jobs.py postgresql://127.0.0.1:5432/test --schema groundwire_bench
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time

from groundwire.config.settings import Jobs as JobSettings
from groundwire.storage.jobs import Jobs
from groundwire.storage.transact import Work


def resident_mb() -> float:
    """Return the resident memory of this process, in MB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def told(name: str, seconds: list[float]) -> str:
    """Write the median and the tail of some times as a line."""
    cuts = statistics.quantiles(seconds, n=100)
    return f"{name}: median {1000 * cuts[49]:.1f} ms, 95 % {1000 * cuts[94]:.1f} ms, 99 % {1000 * cuts[98]:.1f} ms"


async def main(url: str, schema: str, jobs_to_do: int, size: int, every: float) -> None:
    """Store jobs at a steady pace and wait for all of them."""
    done: dict[str, float] = {}

    async def run(id_: str, payload: bytes) -> bytes:
        done[id_] = time.perf_counter()
        return payload

    before = resident_mb()
    jobs = Jobs(JobSettings(url=url, database_schema=schema), [Work("bench", run)])
    await jobs.start()
    payload = json.dumps("x" * size).encode()
    run_id, begun, kept = time.time_ns(), {}, []
    for number in range(jobs_to_do):
        id_ = f"{run_id}-{number}"
        begun[id_] = time.perf_counter()
        await jobs.defer("bench", id_, payload)
        kept.append(time.perf_counter() - begun[id_])
        await asyncio.sleep(every)
    while len(done) < jobs_to_do:  # noqa: ASYNC110 - it is only to end
        await asyncio.sleep(0.05)
    print(told("until kept", kept))
    print(told("until begun", [done[id_] - begun[id_] for id_ in begun]))
    print(f"memory: {before:.0f} MB before, {resident_mb():.0f} MB after")
    await jobs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--schema", default="groundwire_bench")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--every", type=float, default=0.3)
    args = parser.parse_args()
    asyncio.run(main(args.url, args.schema, args.jobs, args.size, args.every))
