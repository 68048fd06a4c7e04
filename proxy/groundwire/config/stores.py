"""Settings of storage: cached verdicts, exchanges, jobs, webhooks, and the database of facts."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from groundwire.config.values import Duration, Secretive, Section, Size, require_scheme

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*")
_ONE_QUERY = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b[^;]*;?\s*", re.IGNORECASE)


class Cache(Section):
    """Lifetime, number and size of cached verdicts, and the Redis that replicas share."""

    ttl: Duration = 3600.0
    max_entries: int = Field(default=10_000, ge=0)
    max_size: Size = 64 * 2**20
    redis_url: Secretive | None = None
    redis_timeout: Duration = Field(default=0.05, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Cache:
        require_scheme("redis_url", self.redis_url, "redis://", "rediss://", "unix://")
        return self


class Store(Section):
    """Storage of exchanges with their reports: location, content and retention."""

    url: Secretive | None = None
    database_schema: str = Field(default="groundwire", pattern="[a-z_][a-z0-9_]*")
    content: Literal["full", "hashes"] = "full"
    keep: Duration = Field(default=30 * 86_400.0, gt=0)
    keep_count: int = Field(default=1_000_000, ge=1)
    keep_audit: Duration = Field(default=365 * 86_400.0, gt=0)
    interval: Duration = 0.5
    batch: int = Field(default=200, ge=1, le=1000)
    queue: int = Field(default=10_000, ge=1)
    queue_size: Size = 64 * 2**20

    @model_validator(mode="after")
    def _known(self) -> Store:
        known = ("sqlite:///", "sqlite+aiosqlite:///", "postgresql://", "postgresql+psycopg://")
        if self.url is not None and not self.url.startswith(known):
            raise ValueError("url must begin with sqlite:/// or postgresql://")
        _require_file(self.url)
        return self


class Jobs(Section):
    """Storage and execution of background jobs."""

    url: Secretive | None = None
    database_schema: str = "groundwire_jobs"
    attempts: int = Field(default=8, ge=1, le=50)
    timeout: Duration = Field(default=30.0, gt=0)
    at_once: int = Field(default=2, ge=1, le=64)
    keep: Duration = Field(default=86_400.0, gt=0)
    poll: Duration = Field(default=0.5, gt=0)
    drain: Duration = 10.0
    max_payload: Size = 8 * 2**20

    @model_validator(mode="after")
    def _known(self) -> Jobs:
        require_scheme("url", self.url, "sqlite:///", "postgresql://")
        _require_file(self.url)
        return self


class Webhook(Section):
    """Delivery of reports that jobs complete."""

    url: Secretive | None = None
    secret_env: str = "GROUNDWIRE_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
    timeout: Duration = Field(default=10.0, gt=0)
    attempts: int = Field(default=8, ge=1, le=50)

    @model_validator(mode="after")
    def _known(self) -> Webhook:
        require_scheme("url", self.url, "http://", "https://")
        return self


class Facts(Section):
    """The database that facts are read from: named SQL queries with parameters such as `:name`."""

    url: Secretive | None = None
    timeout: Duration = Field(default=1.0, gt=0)
    max_rows: int = Field(default=500, ge=1, le=100_000)
    templates: dict[str, str] = {}

    @model_validator(mode="after")
    def _valid_templates(self) -> Facts:
        require_scheme("url", self.url, "sqlite:///", "postgresql://")
        if bool(self.url) != bool(self.templates):
            raise ValueError("url and templates need each other")
        for name, sql in self.templates.items():
            if not _ONE_QUERY.fullmatch(_QUOTED.sub("", sql)):
                raise ValueError(f"templates.{name} must be one SELECT or WITH … SELECT, without a semicolon")
        return self


def _require_file(url: str | None) -> None:
    """Reject a SQLite database in memory, because every connection would open another one."""
    scheme, _, rest = (url or "").partition(":///")
    if scheme.startswith("sqlite") and rest.partition("?")[0] in ("", ":memory:"):
        raise ValueError("url must name a file, such as sqlite:///groundwire.db")
