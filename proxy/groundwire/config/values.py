"""Base types of settings: sections that reject unknown keys, and values with units such as 150ms."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

_PASSWORDS = re.compile(
    r"(?<=//)([^/@:]*):.*(?=@)|([?&][^=&]*(?:password|secret|token|key)[^=&]*)=[^&#]*", re.IGNORECASE
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class Section(BaseModel):
    """A section of the settings; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def _duration(value: Any, bare: str = "s") -> Any:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", value.strip())
        if not match:
            raise ValueError("a duration is written like 150ms, 10s, 5m, 1h or 30d")
        return float(match[1]) * _UNITS[match[2] or bare]
    return value


def seconds(duration: str) -> float:
    """Parse a duration such as 90d into seconds, the default unit. Raises ValueError when it is invalid."""
    return float(_duration(duration))


def _days(value: Any) -> Any:
    return _duration(value, bare="d") / _UNITS["d"] if isinstance(value, str) else value


def _size(value: Any) -> Any:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", value.strip())
        if not match or (match[2] or "B") not in _SIZES:
            raise ValueError("a size is written like 512KiB or 8MiB")
        return int(match[1]) * _SIZES[match[2] or "B"]
    return value


def _share(value: Any) -> Any:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", value.strip())
        if not match:
            raise ValueError("a share is written like 5% or 0.05")
        return float(match[1]) / (100 if match[2] else 1)
    return value


def without_passwords(url: str) -> str:
    """Mask the password before the host of a URL, and parameters such as password, token or key."""
    return _PASSWORDS.sub(lambda found: f"{found[1]}:***" if found[1] is not None else f"{found[2]}=***", url)


def _url(url: str) -> str:
    try:
        urlsplit(url).port  # noqa: B018 - it is read when it is asked for
    except ValueError as error:
        message = "is no URL; in a password : / @ are written %3A %2F %40"
        raise ValueError(message) from error
    return url


def require_scheme(key: str, url: str | None, *schemes: str) -> None:
    """Raise ValueError when a URL starts with none of the schemes, such as https://; None is accepted."""
    if url is not None and not url.startswith(schemes):
        *others, last = schemes
        raise ValueError(f"{key} must begin with {', '.join(others)} or {last}")


def _write_duration(seconds: float) -> str:
    unit = next((unit for unit in ("d", "h", "m", "s") if seconds >= _UNITS[unit] and not seconds % _UNITS[unit]), "ms")
    return f"{_plain(seconds / _UNITS[unit])}{unit}"


def _plain(number: float) -> str:
    """Format a number without an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _write_size(size: int) -> str:
    unit = next((name for name in ("GiB", "MiB", "KiB") if size % _SIZES[name] == 0), "B")
    return f"{size // _SIZES[unit]}{unit}"


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), PlainSerializer(_write_duration)]
"""A number of seconds, also written like 150ms or 5m."""
Size = Annotated[int, BeforeValidator(_size), Field(gt=0), PlainSerializer(_write_size)]
"""A number of bytes, also written like 512KiB."""
Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
"""A number from 0 to 1, also written like 5%."""
Secretive = Annotated[str, AfterValidator(_url), PlainSerializer(without_passwords)]
"""A URL that is serialised without its secrets."""
Days = Annotated[float, BeforeValidator(_days), Field(ge=0), PlainSerializer(lambda days: f"{_plain(days)}d")]
"""A number of days, also written like 30d or 12h."""
