"""Daily roll-ups, as pure functions: the contributions of one exchange."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple

from groundwire.storage.history.rows import flags_of
from groundwire.storage.history.tables import LABELS, LATENCIES_MS, SCORES

Grain = Literal["all", "model", "subject", "flag", "model_flag", "subject_flag"]

KEY = ("grain", "day", "model", "subject", "flag")


class Key(NamedTuple):
    """A roll-up: its model, subject and flag ("" for all), and its day in UTC."""

    grain: Grain
    day: date
    model: str = ""
    subject: str = ""
    flag: str = ""


def day_of(at: float) -> date:
    """Return the day in UTC of a time in Unix seconds."""
    return datetime.fromtimestamp(at, UTC).date()


def contributions(exchange: Mapping[Any, Any]) -> Iterator[tuple[Key, dict[str, int]]]:
    """Yield the contribution of an exchange to each of its roll-ups."""
    counts = counts_of(exchange)
    for key in _keys(exchange):
        yield key, counts


def counts_of(exchange: Mapping[Any, Any]) -> dict[str, int]:
    """Return the contribution of an exchange by counter; unaffected counters are left out."""
    counts = {
        "exchanges": 1,
        "flagged": int(bool(exchange["flags"])),
        f"verdict_{exchange['verdict']}": 1,
        "us_sum": round(exchange["total_ms"] * 1000),
        _step(exchange["total_ms"]): 1,
        **{name: exchange[name] for name in ("claims", "checked", *LABELS, "cache_hits", "cache_misses")},
    }
    if exchange["input_tokens"] is not None or exchange["output_tokens"] is not None:
        counts |= {name: exchange[name] or 0 for name in ("input_tokens", "output_tokens")} | {"tokens_count": 1}
    if exchange["upstream_ms"] is not None:
        counts |= {"upstream_us_sum": round(exchange["upstream_ms"] * 1000), "upstream_count": 1}
    for score in SCORES:
        if exchange[score] is not None:
            counts |= {f"{score}_sum": round(exchange[score] * 10_000), f"{score}_count": 1}
    return counts


def _step(total_ms: float) -> str:
    at = bisect_left(LATENCIES_MS, total_ms)
    return f"ms_{LATENCIES_MS[at]}" if at < len(LATENCIES_MS) else "ms_over"


def _keys(exchange: Mapping[Any, Any]) -> Iterator[Key]:
    day, model, subject = day_of(exchange["at"]), exchange["model"], exchange["subject"]
    flags = flags_of(exchange["flags"])
    yield Key("all", day)
    yield Key("model", day, model=model)
    for flag in flags:
        yield Key("flag", day, flag=flag)
        yield Key("model_flag", day, model=model, flag=flag)
    if subject:
        name = subject_key(exchange["tenant"], subject)
        yield Key("subject", day, subject=name)
        for flag in flags:
            yield Key("subject_flag", day, subject=name, flag=flag)


def subject_key(tenant: str, subject: str) -> str:
    """Return the name of a tenant's subject in roll-ups."""
    return f"{tenant}/{subject}" if tenant else subject
