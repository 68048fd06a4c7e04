"""A process that works off jobs, for tests that kill it: `python worker.py URL SCHEMA LOG`.

It reads commands line by line: `keep ID` stores a job and answers when it is stored, `outcome ID` answers with the
outcome of one. At the end of its input it closes. Standard output holds the answers and nothing else; logs go to
standard error. Whenever a job begins or ends, a line with the process is added to LOG. The behaviour of a job depends
on its id: `slow…` takes half a second, `long…` one second, `deadly…` takes the process down with it, and every other
one is quick.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import structlog

from groundwire.config.settings import Jobs as JobSettings
from groundwire.storage.jobs import Jobs
from groundwire.storage.transact import Work

TAKES_S = {"slow": 0.5, "long": 1.0}
TIMEOUT_S = 4.0  # of one attempt; a process that holds a job for one and a half times that counts as dead


def work(log: Path) -> Work:
    """The kind of work of these jobs."""

    def tell(what: str, id_: str) -> None:
        with log.open("a") as lines:
            lines.write(f"{what} {id_} {os.getpid()}\n")

    async def run(id_: str, payload: bytes) -> bytes:
        tell("begins", id_)
        if id_.startswith("deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(next((takes for kind, takes in TAKES_S.items() if id_.startswith(kind)), 0.0))
        tell("ends", id_)
        return json.dumps({"payload": json.loads(payload), "by": os.getpid()}).encode()

    return Work("test", run, timeout=TIMEOUT_S, at_once=2, initial_backoff=0.1)


async def main(url: str, schema: str, log: Path) -> None:
    """Run the commands read from standard input."""
    settings = JobSettings(url=url, database_schema=schema, poll=0.05, drain=5)
    jobs = Jobs(settings, [work(log)], sweep=0.2, timeout=10)
    await jobs.start()
    for _ in range(200):  # a machine under load may be slow
        await asyncio.sleep(0.1 if jobs.is_down else 0)
    print("up", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, id_ = line.split()
        if command == "keep":
            await jobs.defer("test", id_, json.dumps({"of": id_}).encode())
            print(json.dumps({"kept": id_}), flush=True)
        else:
            outcome = await jobs.result("test", id_)
            said = {"state": outcome.state, "result": outcome.result.decode(), "reason": outcome.reason}
            print(json.dumps(said), flush=True)
    await jobs.close()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
