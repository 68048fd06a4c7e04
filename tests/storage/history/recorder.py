"""A process that records exchanges, for tests that kill it: `python recorder.py URL SCHEMA INTERVAL COUNT`.

It records COUNT exchanges named gw-0, gw-1, …, ten at a time, and prints how many it has recorded and written. Then
it waits to be killed.
"""

import asyncio
import sys

from groundwire.config.settings import Store
from groundwire.storage.history.database import Database
from groundwire.storage.history.history import History
from tests.storage.history.entries import entry


async def main(url: str, schema: str, interval: float, count: int) -> None:
    """Record, and print the progress."""
    history = History(Database(url, schema), Store(interval=interval, batch=50))
    history.start()
    for n in range(count):
        history.record(entry(f"gw-{n}", labels=("contradicted",)))
        if n % 10 == 9:
            await asyncio.sleep(0.01)
            print(n + 1, history.writer.written, flush=True)
    while True:
        await asyncio.sleep(0.05)
        print(count, history.writer.written, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
