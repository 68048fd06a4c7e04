"""Pages as HTTP replies: templates with autoescaping, headers that restrict the browser to displaying them, and texts
with marked spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from groundwire.http.pages.chart import format_value
from groundwire.wire import Headers, Reply

T = TypeVar("T")

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_SAFE: Headers = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_KINDS = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
_ASSETS = ("pages.css", "pages.js", "icon.svg")
_LABELS = {
    "supported": "supported",
    "contradicted": "contradicted",
    "unsupported": "not in the sources",
    "not_checked": "not checked",
    "partially_grounded": "partially grounded",
    "not_applicable": "nothing to check",
}


class Rendering:
    """The templates and assets of this package. They need the extra `pages`."""

    def __init__(self) -> None:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        folder = files("groundwire.http.pages") / "assets"
        self._assets = {name: (folder / name).read_bytes() for name in _ASSETS}
        self._templates = Environment(
            loader=PackageLoader("groundwire.http.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        versions = {name: sha256(asset).hexdigest()[:12] for name, asset in self._assets.items()}
        self._templates.globals["asset"] = lambda name: f"/assets/{name}?v={versions[name]}"
        self._templates.filters |= {
            "format_value": format_value,
            "when": lambda at: f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC",
            "iso": lambda at: datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
            "words": lambda name: str(name).replace("_", " "),
            "label": lambda name: _LABELS.get(name, name),
        }

    def page(self, template: str, status: int = 200, headers: Headers = (), **values: Any) -> Reply:
        """Render a page; everything in `values` is escaped. `here` names the entry of the menu that it belongs to."""
        body = self._templates.get_template(template).render({"here": "", **values}).encode("utf-8", "replace")
        kind = ((b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store"))
        return Reply(status, (*kind, *_SAFE, *headers), body)

    def asset(self, name: str) -> Reply | None:
        """Return a style sheet, script or picture; its address changes with it, so that browsers may keep it."""
        found = self._assets.get(name)
        if found is None:
            return None
        kept = (b"cache-control", b"public, max-age=31536000, immutable")
        return Reply(200, ((b"content-type", _KINDS[name.rpartition(".")[2]]), kept, *_SAFE), found)


def see_other(path: str, headers: Headers = ()) -> Reply:
    """Redirect a browser to another page with GET."""
    target = path.encode("ascii", "ignore")
    return Reply(303, ((b"location", target), (b"cache-control", b"no-store"), *headers), b"")


def form_fields(body: bytes) -> dict[str, str]:
    """Return the last value of each field, line ends as they were typed; none if there are more than any form has."""
    try:
        fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: value.replace("\r\n", "\n") for name, value in fields}


@dataclass(frozen=True, slots=True)
class Span(Generic[T]):
    """A value attached to the characters `[start, end)` of a text."""

    start: int
    end: int
    about: T


@dataclass(frozen=True, slots=True)
class Segment(Generic[T]):
    """A segment of a text and the values of all spans that cover it. `starts` are those of spans beginning there."""

    text: str
    about: tuple[T, ...] = ()
    starts: tuple[T, ...] = ()


def cut(text: str, spans: Sequence[Span[T]]) -> tuple[Segment[T], ...]:
    """Split a whole text into segments, in order; spans may overlap, and their parts outside the text are ignored."""
    inside = [Span(max(0, span.start), min(len(text), span.end), span.about) for span in spans]
    inside = sorted((span for span in inside if span.start < span.end), key=lambda span: span.start)
    edges = sorted({0, len(text), *(edge for span in inside for edge in (span.start, span.end))})
    found: list[Segment[T]] = []
    covering: list[Span[T]] = []
    next_ = 0
    for start, end in pairwise(edges):
        covering = [span for span in covering if span.end > start]
        begun = next_
        while next_ < len(inside) and inside[next_].start == start:
            next_ += 1
        covering += inside[begun:next_]
        starts = tuple(span.about for span in inside[begun:next_])
        found.append(Segment(text[start:end], tuple(span.about for span in covering), starts))
    return tuple(found)
