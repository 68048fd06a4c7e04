"""Pages as HTTP replies: templates with autoescaping, and headers that restrict the browser to displaying them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from groundwire.http.pages.chart import told
from groundwire.wire import Headers, Reply

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
    """The templates and assets of this package."""

    def __init__(self) -> None:
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
            "told": told,
            "when": _when,
            "iso": lambda at: datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
            "words": lambda name: str(name).replace("_", " "),
            "label": lambda name: _LABELS.get(name, name),
        }

    def page(self, template: str, status: int = 200, headers: Headers = (), **values: Any) -> Reply:
        """A page; everything in `values` is escaped. `here` names the entry of the menu that it belongs to."""
        body = self._templates.get_template(template).render({"here": "", **values}).encode("utf-8", "replace")
        kind = ((b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store"))
        return Reply(status, (*kind, *_SAFE, *headers), body)

    def asset(self, name: str) -> Reply | None:
        """A style sheet, script or picture; its address changes with it, so that browsers may keep it."""
        found = self._assets.get(name)
        if found is None:
            return None
        kept = (b"cache-control", b"public, max-age=31536000, immutable")
        return Reply(200, ((b"content-type", _KINDS[name.rpartition(".")[2]]), kept, *_SAFE), found)


def see_other(path: str, headers: Headers = ()) -> Reply:
    """Redirect a browser to another page with GET."""
    target = path.encode("ascii", "ignore")
    return Reply(303, ((b"location", target), (b"cache-control", b"no-store"), *headers), b"")


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def only_given(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that are not empty."""
    return {name: value for name, value in parameters.items() if value}
