"""The connection to Redis: calls have a short time-out, and while Redis is down no call is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from groundwire.errors import StoreUnavailable

T = TypeVar("T")

log = structlog.get_logger("groundwire.redis")

_CONNECTIONS = 32
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_MOST_WORK = 256  # background tasks that may wait; further ones are dropped
_LAST_WORDS_S = 1.0  # for background tasks at shutdown
_FAILURES = (RedisError, OSError, TimeoutError)


class SharedRedis:
    """One Redis, with calls limited to `patience` seconds.

    After a failure it counts as down, and calls fail at once, until it has answered a ping, which is retried in the
    background.
    """

    def __init__(self, url: str, patience: float) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=patience,
            retry=Retry(NoBackoff(), 1),  # an idle connection may have been closed: try a second one
            socket_timeout=None,  # `patience` covers it, and the time for a connection as well
            socket_connect_timeout=None,
        )
        self._client: Redis = Redis.from_pool(pool)
        self._patience = patience
        self._tasks: set[asyncio.Task[Any]] = set()
        self._mending: asyncio.Task[None] | None = None
        self._unanswered = 0

    @property
    def client(self) -> Redis:
        """For one-time preparation such as scripts; calls are made through `ask`."""
        return self._client

    async def ask(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        """Return the result of `work`. Raises StoreUnavailable when Redis is down or takes too long."""
        if self._mending is not None:
            self._unanswered += 1
            raise StoreUnavailable("Redis is down.")
        try:
            async with asyncio.timeout(self._patience):
                return await work(self._client)
        except _FAILURES as error:
            self._failed(error)
            raise StoreUnavailable("Redis is down.") from error

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which may raise StoreUnavailable, in the background; its success is not reported."""
        if self._mending is not None or len(self._tasks) >= _MOST_WORK:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, StoreUnavailable):
            log.error("redis.failed", error=type(error).__name__)

    def _failed(self, error: BaseException) -> None:
        self._unanswered += 1
        if self._mending is None:
            log.warning("redis.down", error=type(error).__name__)
            self._mending = asyncio.create_task(self._mend())

    async def _mend(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(self._patience):
                    await self._client.ping()
            except _FAILURES:
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                break
        log.info("redis.up", unanswered=self._unanswered)
        self._mending, self._unanswered = None, 0

    def degraded(self) -> str | None:
        """Return a description of the failure, or None."""
        if self._mending is None:
            return None
        return f"unavailable; verdicts and limits are those of this process, {self._unanswered} questions unanswered"

    async def aclose(self) -> None:
        """Finish background tasks within a second, and close all connections."""
        if self._mending is not None:
            self._mending.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_LAST_WORDS_S)
        for task in set(self._tasks):
            task.cancel()
        await self._client.aclose()
        await self._client.connection_pool.disconnect()
