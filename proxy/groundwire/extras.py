"""Optional libraries: the extras of the distribution, and the error for one that is not installed.

A library of an extra is imported only within the modules of its feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from groundwire.errors import MissingExtra

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "providers": ("litellm",),
    "history": ("sqlalchemy", "alembic", "aiosqlite", "jinja2"),
    "postgres": ("sqlalchemy", "psycopg"),
    "redis": ("redis",),
    "jobs": ("dbos",),
    "telemetry": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "prometheus_client"),
    "mcp": ("mcp",),
    "schema": ("jsonschema_rs",),
    "fuzzy": ("rapidfuzz",),
    "pages": ("jinja2",),
    "bulk": ("pyarrow",),
    "cluster": ("distributed", "pyarrow"),
    "documents": ("pypdf", "docx"),
    "hub": ("tokenizers", "huggingface_hub"),
}
"""The top-level modules of each extra."""


def is_installed(extra: str) -> bool:
    """Return whether all libraries of an extra can be imported."""
    return all(_exists(module) for module in EXTRAS[extra])


def install_command(*extras: str) -> str:
    """Return the command that installs extras."""
    return f"pip install 'groundwire[{','.join(dict.fromkeys(extras))}]'"


def require_extras(*needs: tuple[str, str]) -> None:
    """Raise MissingExtra, with one line for each setting or command whose extras are not installed.

    `needs` are pairs of a setting or command and the extra that it needs.
    """
    missing: dict[str, list[str]] = {}
    for setting, extra in needs:
        if not is_installed(extra):
            missing.setdefault(setting, []).append(extra)
    if missing:
        raise MissingExtra([f"{setting}: it needs {install_command(*extras)}" for setting, extras in missing.items()])


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # a package above it is missing
        return False
