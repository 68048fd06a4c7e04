"""Limits of this process: concurrency slots with a bounded queue, a budget of bytes, and rates over a minute."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass

MINUTE_S = 60.0
ROUNDING_S = 1e-6  # keeps a bucket that was just refilled from being empty by a rounding error


class LimitReached(Exception):
    """There is no capacity, and waiting is not possible or took too long. `after` is when to try again (seconds)."""

    def __init__(self, after: float) -> None:
        super().__init__(f"no capacity for {after:g} s")
        self.after = after


class LimiterClosed(Exception):
    """No further slots are given."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limits of a limiter: `slots` in use at once, and `size` bytes of their holders; None: unlimited.

    Up to `queue` further ones may wait, each `queue_timeout` seconds at most. With `oversized`, one that is larger than
    `size` gets its slot while no other holds any bytes.
    """

    slots: int | None = None
    size: int | None = None
    queue: int = 0
    queue_timeout: float = 0.0
    oversized: bool = False


class Slot:
    """One of the slots of a limiter, and the bytes of its holder, which must release it."""

    __slots__ = ("_limiter", "_size")

    def __init__(self, limiter: ConcurrencyLimiter, size: int) -> None:
        self._limiter: ConcurrencyLimiter | None = limiter
        self._size = size

    def grow(self, by: int) -> bool:
        """Take further bytes, if they are free."""
        if self._limiter is None or not self._limiter.reserve(by):
            return False
        self._size += by
        return True

    def shrink(self, size: int) -> None:
        """Release all but `size` bytes."""
        if self._limiter is not None and size < self._size:
            freed, self._size = self._size - size, size
            self._limiter.free(freed)

    def release(self) -> None:
        """Release the slot and its bytes; further calls have no effect."""
        if self._limiter is not None:
            limiter, self._limiter = self._limiter, None
            limiter.free(self._size, slots=1)


class ConcurrencyLimiter:
    """Slots for concurrent work, given in the order of the requests for them. Used from one event loop.

    A `rate` limits the starts as well. `limits` and `rate` may change at any time; slots in use are unaffected.
    """

    def __init__(self, limits: Capacity, rate: SlidingWindow | None = None) -> None:
        self.limits = limits
        self.rate = rate
        self.active = 0  # slots in use
        self._size = 0
        self._queue: OrderedDict[asyncio.Future[Slot], int] = OrderedDict()  # the sizes of those that wait for a slot
        self._delayed = 0  # those that wait because of the rate
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """The number of requests for a slot that wait."""
        return len(self._queue) + self._delayed

    def try_acquire(self, size: int = 0) -> Slot | None:
        """Return a slot for a holder of `size` bytes; None if it would have to wait. Raises LimiterClosed."""
        if self._is_closed:
            raise LimiterClosed
        if self._queue or not self._has_capacity(size):
            return None
        if self.rate is not None and not self.rate.try_start(time.monotonic()):
            return None
        return self._take(size)

    async def acquire(self, size: int = 0) -> Slot:
        """Return a slot for a holder of `size` bytes as soon as there is one. Raises LimitReached or LimiterClosed."""
        deadline = time.monotonic() + self.limits.queue_timeout
        if self._is_closed:
            raise LimiterClosed
        slot = await self._wait_for_slot(size) if self._queue or not self._has_capacity(size) else self._take(size)
        try:
            await self._wait_for_rate(deadline)
        except BaseException:
            slot.release()
            raise
        return slot

    def reserve(self, size: int) -> bool:
        """Take `size` bytes without a slot, if they are free."""
        if self.limits.size is not None and self._size + size > self.limits.size:
            return False
        self._size += size
        return True

    def free(self, size: int, slots: int = 0) -> None:
        """Release bytes and slots, and give slots to those that wait."""
        self.active -= slots
        self._size -= size
        self._serve_queue()
        if not self.active:
            self._idle.set()

    def close(self) -> None:
        """Reject further requests for slots and all that wait for one."""
        self._is_closed = True
        while self._queue:
            turn, _ = self._queue.popitem(last=False)
            turn.set_exception(LimiterClosed())

    async def wait_until_idle(self) -> None:
        """Wait until no slot is in use."""
        await self._idle.wait()

    def _has_capacity(self, size: int) -> bool:
        limits = self.limits
        if limits.slots is not None and self.active >= limits.slots:
            return False
        fits = limits.size is None or self._size + size <= limits.size
        return fits or (limits.oversized and not self._size)

    def _take(self, size: int) -> Slot:
        self.active += 1
        self._size += size
        self._idle.clear()
        return Slot(self, size)

    async def _wait_for_slot(self, size: int) -> Slot:
        self._check_queue()
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._queue[turn] = size
        try:
            await asyncio.wait((turn,), timeout=self.limits.queue_timeout)
        except asyncio.CancelledError:
            self._give_up(turn)
            raise
        if not turn.done():
            self._give_up(turn)
            raise LimitReached(self.limits.queue_timeout)
        return turn.result()

    def _give_up(self, turn: asyncio.Future[Slot]) -> None:
        if self._queue.pop(turn, None) is not None:
            self._serve_queue()  # one behind it may be small enough
        elif turn.done() and turn.exception() is None:
            turn.result().release()  # it got its slot in the same moment

    def _serve_queue(self) -> None:
        """Give slots to those that wait, from the head of the queue while there is capacity."""
        while self._queue:
            turn, size = next(iter(self._queue.items()))
            if not self._has_capacity(size):
                return
            del self._queue[turn]
            turn.set_result(self._take(size))

    async def _wait_for_rate(self, deadline: float) -> None:
        if self.rate is None:
            return
        rate, now = self.rate, time.monotonic()
        at = rate.reserve(now)
        if at <= now:
            return
        try:
            if at > deadline:
                raise LimitReached(at - now)
            self._check_queue()
            self._delayed += 1
            try:
                await asyncio.sleep(at - now)
            finally:
                self._delayed -= 1
        except BaseException:
            rate.cancel(at)
            raise

    def _check_queue(self) -> None:
        if self.waiting >= self.limits.queue:
            raise LimitReached(self.limits.queue_timeout)


class SlidingWindow:
    """A rate that holds for every minute: at most `per_minute` starts within any 60 seconds.

    A start beyond it can be reserved for later.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._starts: list[float] = []

    def reserve(self, now: float) -> float:
        """Reserve and return the time at which the next start is possible."""
        del self._starts[: bisect_right(self._starts, now - MINUTE_S)]
        is_full = len(self._starts) >= self._per_minute
        at = max(now, self._starts[-self._per_minute] + MINUTE_S) if is_full else now
        insort(self._starts, at)
        return at

    def cancel(self, at: float) -> None:
        """Release an unused reservation."""
        self._starts.remove(at)

    def try_start(self, now: float) -> bool:
        """Start now, if that is possible."""
        at = self.reserve(now)
        if at > now:
            self.cancel(at)
        return at <= now


class TokenBucket:
    """A rate with a burst: a bucket of as many tokens as are added to it in a minute, at even intervals.

    Its state is the time at which it will be full again (the generic cell rate algorithm).
    """

    __slots__ = ("_full_at",)

    def __init__(self) -> None:
        self._full_at = 0.0

    def take(self, per_minute: int, now: float) -> tuple[float, float]:
        """Take a token, if there is one.

        Return the seconds until there is one, which are 0 if it was taken, and those until the bucket is full.
        """
        interval = MINUTE_S / per_minute
        full_at = max(self._full_at, now) + interval
        if full_at - now > MINUTE_S + ROUNDING_S:
            return full_at - now - MINUTE_S, full_at - interval - now
        self._full_at = full_at
        return 0.0, full_at - now
