"""Find URLs in a request that would be fetched, and check them against the allowed hosts.

litellm fetches references in parts of messages, in a dozen shapes, some of them of another provider's API. So every
string of a part is checked, unless its key marks it as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from groundwire.errors import BadRequest

_FIELDS = ("messages", "input", "prediction")
_TEXT_KEYS = frozenset(
    "text thinking signature refusal title context citations annotations input arguments cache_control role name id "
    "type tool_use_id tool_call_id tool_calls function_call reasoning_content provider_specific_fields "
    "thinking_blocks".split()
)
_SCHEME = re.compile(r"[\s\x00-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*:|//|\\\\)")
_DATA = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)
_STORED = re.compile(r"(?:gs|s3|file)://\S+")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class MediaHosts:
    """The allowed hosts of media, by scheme, host and port; see `read_host`."""

    allowed: frozenset[tuple[str, str, int | None]] = frozenset()

    def check(self, body: Mapping[str, Any], upstream: str) -> None:
        """Raise BadRequest, naming the field, when a request refers to media on a host that is not allowed."""
        for path, url in remote_media(body):
            if not self._allows(url):
                message = (
                    f"'{path}': upstream '{upstream}' fetches nothing from this address; send the data itself as a "
                    "data: URL"
                )
                raise BadRequest(message, param=path, operator=f"a URL in {path} is not among allowed_media_hosts")

    def _allows(self, url: str) -> bool:
        if re.search(r"[\s\\\x00-\x20@]", url):
            return False
        try:
            return read_host(url) in self.allowed
        except ValueError:
            return False

    @property
    def names(self) -> list[str]:
        """The hosts as `host` or `host:port`."""
        return sorted(host if port is None else f"{host}:{port}" for _, host, port in self.allowed)


def read_host(text: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL, or of a host alone, which means https. Raises ValueError."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if not parts.hostname:
        raise ValueError("it names no host")
    scheme = parts.scheme.lower()
    return scheme, parts.hostname.lower().rstrip("."), parts.port or _DEFAULT_PORTS.get(scheme)


def remote_media(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every string in a request that litellm or a provider might fetch."""
    for field in _FIELDS:
        waiting: list[tuple[str, Any]] = [(field, body.get(field))]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, list):
                waiting += [(f"{path}[{at}]", each) for at, each in reversed([*enumerate(value)])]
            elif isinstance(value, dict):
                waiting += [(f"{path}.{key}", each) for key, each in reversed(_media(value))]
            elif isinstance(value, str) and (_is_stored(value) if _is_text(path) else _is_remote(value)):
                yield path, value


def _media(part: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the members of a part, or of a message, that are not text."""
    skipped = _TEXT_KEYS
    if part.get("type") == "text":
        skipped |= {"data"}
    if part.get("type") == "search_result":
        skipped |= {"source"}
    return [(key, value) for key, value in part.items() if key not in skipped and not _is_plain_text(key, value)]


def _is_plain_text(key: str, value: Any) -> bool:
    return key == "content" and isinstance(value, str)


def _is_text(path: str) -> bool:
    """Return whether a bare string at this path is text: an input to embed, or a part of a message."""
    return path == "input" or re.fullmatch(r"input\[\d+\]|.*content\[\d+\]", path) is not None


def _is_stored(text: str) -> bool:
    """Return whether a text to be embedded is the address of an object in a store."""
    return _STORED.fullmatch(text.strip()) is not None


def _is_remote(text: str) -> bool:
    inline = _DATA.match(text)
    if inline is not None:
        return "://" in inline.group()
    return _SCHEME.match(text) is not None or "://" in text
