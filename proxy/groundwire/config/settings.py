"""All settings, those of the server, its upstreams and its stores first, and the policy derived from them."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import chain
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from groundwire.config.grounding import (
    ConfidenceSettings,
    ConsistencySettings,
    Correction,
    Grounding,
    InformationBudget,
    JudgeSettings,
    Numeric,
    Quotes,
    Sampling,
    Thresholds,
    Tolerance,
)
from groundwire.config.values import Duration, Secretive, Section, Size, require_scheme
from groundwire.policy import ModelPolicy, NumericPolicy, Policy, QuotePolicy
from groundwire.policy import Thresholds as ThresholdPolicy

DEFAULT_UPSTREAMS = {"ollama": {"base_url": "http://127.0.0.1:11434/v1"}}

_OLLAMA_PORT = ":11434"
_NOT_TO_BE_SET = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*")
_ONE_QUERY = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b[^;]*;?\s*", re.IGNORECASE)

TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Digest = Annotated[str, Field(pattern="^sha256:[0-9a-fA-F]{64}$")]
Status = Annotated[int, Field(ge=400, le=599)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$")]
MediaHost = Annotated[
    str, Field(pattern=r"^(?:[a-z][a-z0-9+.-]*://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$")
]


class Server(Section):
    """The address to listen on and the limits of requests."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    keys: Annotated[str | None, BeforeValidator(lambda value: None if value == "none" else value)] = None
    tenants: Literal["each", "all"] | dict[TenantName, tuple[str, ...]] = "each"
    trusted_proxies: tuple[str, ...] = ()
    max_body: Size = 32 * 2**20
    max_head: Size = 64 * 2**10
    max_bodies: Size = 2**30
    max_concurrent: int = Field(default=1000, ge=1)
    queue: int = Field(default=1000, ge=0)
    queue_timeout: Duration = 5.0
    read_timeout: Duration = Field(default=60.0, gt=0)
    write_timeout: Duration = Field(default=600.0, gt=0)
    keep_alive: Duration = 75.0
    drain_delay: Duration = 0.0
    drain: Duration = 30.0
    watch: bool = False

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ip_network(each)
            except ValueError as error:
                raise ValueError(f"'{each}' is no address or network") from error
        return value

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of the trusted proxies."""
        return tuple(map(ip_network, self.trusted_proxies))

    @model_validator(mode="after")
    def _unique_tenants(self) -> Server:
        groups = self.tenants if isinstance(self.tenants, dict) else {}
        names = [name for group in groups.values() for name in group]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"tenants: the key '{twice[0]}' is given twice")
        return self

    def tenant_of(self, client: str) -> str:
        """Return the tenant of a client's key: the group that lists it, or the client's name."""
        if self.tenants == "all":
            return ""
        groups = self.tenants if isinstance(self.tenants, dict) else {}
        return next((tenant for tenant, names in groups.items() if client in names), client)


class Stream(Section):
    """Delivery of the verdict within a stream."""

    carrier: Literal["last_event", "extra_event", "comment", "none"] = "last_event"
    tail_budget: Duration = 0.15
    keepalive: Duration = 15.0
    max_event: Size = 32 * 2**20


class Mcp(Section):
    """The MCP server at /mcp and the host names that its callers may use."""

    enabled: bool = False
    allowed_hosts: tuple[str, ...] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
    allowed_origins: tuple[str, ...] = ()
    max_body: Size = 2 * 2**20


class Admin(Section):
    """Access to stored data, and the lifetime of a browser session."""

    keys: dict[str, Digest] = {}
    keys_file: str | None = None
    key_env: str = "GROUNDWIRE_ADMIN_KEY"
    session: Duration = Field(default=12 * 3600.0, gt=0)
    session_secret_env: str = "GROUNDWIRE_ADMIN_SESSION_SECRET"  # noqa: S105 - the name of a variable


class Retries(Section):
    """Retries of a request to a model server, before the first byte of an answer.

    `statuses` are those of replies that are retried. No attempt begins later than `deadline` after the first. With
    `after_timeout`, a request that arrived but timed out is retried too, although the completion may be in progress and
    be billed twice.
    """

    count: int = Field(default=0, ge=0, le=20)
    statuses: tuple[Status, ...] = (429, 502, 503, 504)
    initial_backoff: Duration = 0.5
    max_backoff: Duration = 8.0
    deadline: Duration = 30.0
    after_timeout: bool = False


class Limits(Section):
    """Limits on requests to a model server, and on the queue of those that exceed them."""

    max_concurrent: int | None = Field(default=None, ge=1)
    per_minute: int | None = Field(default=None, ge=1)
    queue: int = Field(default=64, ge=0)
    queue_timeout: Duration = 10.0


class Upstream(Section):
    """One model server and the models that it serves."""

    base_url: str | None = None
    dialect: Literal["openai", "anthropic", "litellm"] = "openai"
    models: tuple[str, ...] = ("*",)
    aliases: dict[str, str] = {}
    api_key_env: str | None = None
    litellm_model: str | None = None
    allowed_media_hosts: tuple[MediaHost, ...] = ()
    timeout: Duration = 600.0
    connect_timeout: Duration = 10.0
    forwards_documents: bool = False
    retries: Retries = Retries()
    fallbacks: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    fallback_on: tuple[Status, ...] = (429, 500, 502, 503, 504, 529)
    limits: Limits = Limits()
    request_headers: tuple[HeaderName, ...] | None = None
    response_headers: tuple[HeaderName, ...] | None = None
    headers: dict[HeaderName, HeaderValue] = {}
    headers_env: dict[HeaderName, str] = {}
    truncation_alarm: bool = True
    ollama: Literal["auto", "yes", "no"] = "auto"

    @model_validator(mode="after")
    def _complete(self) -> Upstream:
        if self.dialect != "litellm" and not (self.base_url or "").startswith(("http://", "https://")):
            raise ValueError("base_url must be given and begin with http:// or https://")
        if "@" in (self.base_url or "").partition("//")[2].partition("/")[0]:
            raise ValueError("base_url must hold no password; api_key_env or headers_env names a variable with it")
        if self.dialect == "litellm" and not self.litellm_model:
            raise ValueError("litellm_model must be given, such as anthropic/* or gemini/gemini-2.5-flash")
        if "*" in (self.litellm_model or "").partition("/")[0]:
            raise ValueError("litellm_model must name the provider, which clients would choose otherwise")
        if self.allowed_media_hosts and self.dialect != "litellm":
            raise ValueError("allowed_media_hosts cannot be set for dialect " + self.dialect)
        of_openai = {"connect_timeout", "forwards_documents", "ollama", "request_headers", "response_headers"}
        if self.dialect == "litellm" and (idle := self.model_fields_set & of_openai):
            raise ValueError(f"{' and '.join(sorted(idle))} cannot be set for dialect litellm")
        for name in (*self.headers, *self.headers_env):
            if name.lower() in _NOT_TO_BE_SET or name.lower().startswith("x-grounding-"):
                raise ValueError(f"the header {name} cannot be set")
        return self

    @property
    def ollama_url(self) -> str | None:
        """The root of Ollama's own API if this is an Ollama server, by setting or by its default port."""
        root = (self.base_url or "").rstrip("/").removesuffix("/v1")
        is_one = self.ollama == "yes" or (self.ollama == "auto" and root.endswith(_OLLAMA_PORT))
        return root if is_one and self.dialect == "openai" else None

    @property
    def instead(self) -> dict[str, tuple[str, ...]]:
        """The fallbacks, by name or glob of the requested model."""
        return self.fallbacks if isinstance(self.fallbacks, dict) else {"*": self.fallbacks} if self.fallbacks else {}


class Scores(Section):
    """Targets to which the scores of answers are sent, by the traces that the answers belong to."""

    langfuse_url: Secretive | None = None
    langfuse_public_key_env: str = "LANGFUSE_PUBLIC_KEY"
    langfuse_secret_key_env: str = "LANGFUSE_SECRET_KEY"  # noqa: S105 - the name of a variable
    phoenix_url: Secretive | None = None
    phoenix_key_env: str = "PHOENIX_API_KEY"
    interval: Duration = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Scores:
        require_scheme("langfuse_url", self.langfuse_url, "http://", "https://")
        require_scheme("phoenix_url", self.phoenix_url, "http://", "https://")
        return self


class Telemetry(Section):
    """Metrics, traces and logs: export and content."""

    service_name: str = "groundwire"
    resource: dict[str, str] = {}
    metrics: bool = True
    metrics_access: Literal["open", "admin"] = "open"
    otlp_endpoint: Secretive | None = None
    otlp_signals: tuple[Literal["traces", "metrics", "logs"], ...] = ("traces", "metrics", "logs")
    metrics_interval: Duration = Field(default=60.0, gt=0)
    sample_ratio: float = Field(default=1.0, ge=0, le=1)
    genai_semconv: Literal["1.41", "next"] = "1.41"
    capture_content: bool = False
    scores: Scores = Scores()
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _known(self) -> Telemetry:
        require_scheme("otlp_endpoint", self.otlp_endpoint, "http://", "https://")
        return self


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


class Settings(Section):
    """All settings."""

    server: Server = Server()
    upstreams: dict[str, Upstream] = Field(
        default={name: Upstream.model_validate(each) for name, each in DEFAULT_UPSTREAMS.items()}, min_length=1
    )
    grounding: Grounding = Grounding()
    quotes: Quotes = Quotes()
    numeric: Numeric = Numeric()
    judge: JudgeSettings = JudgeSettings()
    information_budget: InformationBudget = InformationBudget()
    confidence: ConfidenceSettings = ConfidenceSettings()
    consistency: ConsistencySettings = ConsistencySettings()
    thresholds: Thresholds = Thresholds()
    facts: Facts = Facts()
    cache: Cache = Cache()
    store: Store = Store()
    admin: Admin = Admin()
    jobs: Jobs = Jobs()
    webhook: Webhook = Webhook()
    sampling: Sampling = Sampling()
    correction: Correction = Correction()
    mcp: Mcp = Mcp()
    stream: Stream = Stream()
    telemetry: Telemetry = Telemetry()

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if self.webhook.url is not None and self.jobs.url is None:
            raise ValueError("webhook.url needs jobs.url: only reports that jobs finish are sent")
        for name, upstream in self.upstreams.items():
            for target in chain.from_iterable(upstream.instead.values()):
                if not any(target.startswith(f"{each}/") and target != f"{each}/" for each in self.upstreams):
                    raise ValueError(f"upstreams.{name}.fallbacks: '{target}' must be upstream/model, or upstream/*")
        return self

    @property
    def named_models(self) -> list[str]:
        """The models that the settings name without a wildcard."""
        named = (name for each in self.upstreams.values() for name in (*each.aliases, *each.models))
        return [name for name in named if "*" not in name]

    @property
    def policy(self) -> Policy:
        """The part of the settings that verdicts depend on."""
        numeric, quotes, estimating = self.numeric, self.quotes, self.information_budget.output_verification
        tolerance = None
        if isinstance(numeric.tolerance, Tolerance):
            shares = numeric.tolerance.model_dump(exclude={"date"})
            tolerance = (*shares.items(), ("date", numeric.tolerance.date))
        return Policy(
            name=self.grounding.policy,
            verifiers=self.grounding.verifiers,
            max_claims=self.grounding.max_claims,
            verify_hedged=self.grounding.hedged == "verify",
            numeric=NumericPolicy(
                **numeric.model_dump(exclude={"tolerance", "timeout"}), tolerance=tolerance, timeout_s=numeric.timeout
            ),
            quotes=QuotePolicy(
                enabled=quotes.enabled,
                fuzzy=quotes.mode == "fuzzy",
                fuzzy_threshold=quotes.fuzzy_threshold,
                fail_on_all_rejected=quotes.fail_on_all_rejected,
            ),
            model=ModelPolicy(
                backend=self.information_budget.operations.get("output_verification", ""),
                identity=self.information_budget.identity,
                probability_min=estimating.probability_min,
                probability_max=estimating.probability_max,
                flag_threshold_bits=estimating.flag_threshold_bits,
            ),
            judge=self.judge.identity,
            has_confidence=self.confidence.enabled,
            confidence_weights=tuple(self.confidence.weights.model_dump().items()),
            source_weights=tuple(self.confidence.source_weights.model_dump().items()),
            thresholds=ThresholdPolicy(**self.thresholds.model_dump()),
        )
