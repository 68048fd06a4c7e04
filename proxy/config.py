"""Settings: what `config.yaml` and the environment may say. An unknown key is refused, with its line.

Every key can be set by a variable, such as `GROUNDWIRE_SERVER__PORT`, which wins over the file.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from proxy.errors import ConfigError
from proxy.types import EncoderPolicy, ModelPolicy, NumericPolicy, Operation, Policy, QuotePolicy
from proxy.types import Thresholds as ThresholdPolicy

PREFIX = "GROUNDWIRE_"

_PASSWORDS = re.compile(
    r"(?<=//)([^/@:]*):.*(?=@)|([?&][^=&]*(?:password|secret|token|key)[^=&]*)=[^&#]*", re.IGNORECASE
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def _duration(value: Any, bare: str = "s") -> Any:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", value.strip())
        if not match:
            raise ValueError("a duration is written like 150ms, 10s, 5m, 1h or 30d")
        return float(match[1]) * _UNITS[match[2] or bare]
    return value


def seconds(duration: str) -> float:
    """How long a duration is, such as 90d. Raises ValueError when it is none."""
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


def _none(value: Any) -> Any:
    return None if value == "none" else value


def without_passwords(url: str) -> str:
    """A URL as it may be shown, without the password before its host and those among its parameters."""
    return _PASSWORDS.sub(lambda found: f"{found[1]}:***" if found[1] is not None else f"{found[2]}=***", url)


def _url(url: str) -> str:
    try:
        urlsplit(url).port  # noqa: B018 - it is read when it is asked for
    except ValueError as error:
        told = "is no URL; in a password : / @ are written %3A %2F %40"
        raise ValueError(told) from error
    return url


def _write_duration(seconds: float) -> str:
    unit = next((unit for unit in ("d", "h", "m", "s") if seconds >= _UNITS[unit] and not seconds % _UNITS[unit]), "ms")
    return f"{_plain(seconds / _UNITS[unit])}{unit}"


def _plain(number: float) -> str:
    """A number in digits only, without an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _write_size(size: int) -> str:
    unit = next((name for name in ("GiB", "MiB", "KiB") if size % _SIZES[name] == 0), "B")
    return f"{size // _SIZES[unit]}{unit}"


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), PlainSerializer(_write_duration)]
Size = Annotated[int, BeforeValidator(_size), Field(gt=0), PlainSerializer(_write_size)]
Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
Secretive = Annotated[str, AfterValidator(_url), PlainSerializer(without_passwords)]
Days = Annotated[float, BeforeValidator(_days), Field(ge=0), PlainSerializer(lambda days: f"{_plain(days)}d")]


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*")
_ONE_QUERY = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b[^;]*;?\s*", re.IGNORECASE)


class Section(BaseModel):
    """A part of the settings; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Server(Section):
    """Where the proxy listens, and what it takes."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    keys: Annotated[str | None, BeforeValidator(_none)] = None
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


Status = Annotated[int, Field(ge=400, le=599)]


class Retries(Section):
    """When a model server is asked once more, before the first byte of an answer."""

    count: int = Field(default=0, ge=0, le=20)
    statuses: tuple[Status, ...] = (429, 502, 503, 504)
    first_wait: Duration = 0.5
    longest_wait: Duration = 8.0
    within: Duration = 30.0
    after_timeout: bool = False


class Limits(Section):
    """How much a model server is asked for at most, and how long what is over that may wait."""

    max_concurrent: int | None = Field(default=None, ge=1)
    per_minute: int | None = Field(default=None, ge=1)
    queue: int = Field(default=64, ge=0)
    queue_timeout: Duration = 10.0


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$")]
_NOT_TO_BE_SET = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect")


_OLLAMA_PORT = ":11434"


class Upstream(Section):
    """One model server, and the models it is asked for."""

    base_url: str | None = None
    dialect: Literal["openai", "anthropic", "litellm"] = "openai"
    models: tuple[str, ...] = ("*",)
    aliases: dict[str, str] = {}
    api_key_env: str | None = None
    litellm_model: str | None = None
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
        of_openai = {"connect_timeout", "forwards_documents", "ollama", "request_headers", "response_headers"}
        if self.dialect == "litellm" and (idle := self.model_fields_set & of_openai):
            raise ValueError(f"{' and '.join(sorted(idle))} cannot be set for dialect litellm")
        for name in (*self.headers, *self.headers_env):
            if name.lower() in _NOT_TO_BE_SET or name.lower().startswith("x-grounding-"):
                raise ValueError(f"the header {name} cannot be set")
        return self

    @property
    def ollama_url(self) -> str | None:
        """The root of Ollama's own API, where this is an Ollama: told so, or on the port that is Ollama's."""
        root = (self.base_url or "").rstrip("/").removesuffix("/v1")
        is_one = self.ollama == "yes" or (self.ollama == "auto" and root.endswith(_OLLAMA_PORT))
        return root if is_one and self.dialect == "openai" else None

    @property
    def instead(self) -> dict[str, tuple[str, ...]]:
        """The fallbacks by name or glob of the model that is asked for."""
        return self.fallbacks if isinstance(self.fallbacks, dict) else {"*": self.fallbacks} if self.fallbacks else {}


DEFAULT_UPSTREAMS = {"ollama": {"base_url": "http://127.0.0.1:11434/v1"}}


class Grounding(Section):
    """What is verified, and how strictly."""

    enabled: bool = True
    mode: Literal["sync", "async", "off"] = "sync"
    verifiers: tuple[Literal["quote", "numeric", "statement"], ...] = ("quote", "numeric", "statement")
    policy: Literal["strict", "balanced", "lenient"] = "balanced"
    max_claims: int = Field(default=500, ge=1)
    hedged: Literal["exclude", "verify"] = "exclude"
    timeout: Duration = 2.0
    workers: int = Field(default=1, ge=1, le=64)
    queue: int = Field(default=64, ge=1)
    max_bytes: Size = 256 * 2**20
    keep_reports: Size = 32 * 2**20


class Quotes(Section):
    """How quotations are looked for."""

    enabled: bool = True
    mode: Literal["substring", "fuzzy"] = "substring"
    fuzzy_threshold: float = Field(default=0.85, ge=0.5, le=1.0)
    log_rejections: bool = True
    fail_on_all_rejected: bool = False


class Tolerance(Section):
    """How near is near enough, as a share of the value; for dates, in days."""

    currency: Share = 0.05
    percentage: Share = 0.02
    ratio: Share = 0.05
    date: Days = 7.0


class Numeric(Section):
    """Which numbers are checked."""

    currency: bool = True
    percentage: bool = True
    ratio: bool = True
    date: bool = True
    tolerance: Literal["written"] | Tolerance = "written"
    confidence_penalty: Share = 0.2
    max_source_checks: int = Field(default=10, ge=1)
    timeout: Duration = 0.1


class Encoder(Section):
    """A model that is asked about claims which words alone leave open, and for how long."""

    model: str | None = None
    revision: str | None = None
    file: str | None = None
    weights: str | None = None
    supported_label: str | None = None
    template: str | None = None
    max_tokens: int = Field(default=512, ge=64)
    asked_from: Share = 0.1
    asked_below: Share = 0.9
    budget: Duration = 0.1

    @model_validator(mode="after")
    def _sensible(self) -> Encoder:
        if self.template is not None and self.template.count("{evidence}") != 1:
            raise ValueError("template must hold {evidence} once")
        return self

    @property
    def policy(self) -> EncoderPolicy:
        """The part of it that verdicts depend on."""
        when = {"asked_from", "asked_below", "budget"}
        identity = self.model_dump_json(exclude=when) if self.model else ""
        return EncoderPolicy(identity, self.asked_from, self.asked_below, self.budget)


BackendName = Literal["self", "haiku", "external", "local"]


class Backend(Section):
    """Who is asked how likely a claim is; `configurable`: whom each operation names, or else the default."""

    type: Literal["self", "haiku", "external", "local", "configurable"] = "configurable"
    default: BackendName = "local"
    haiku_model: str = "claude-haiku-4-5"
    external_url: Secretive | None = None
    external_key_env: str | None = None


class Asking(Section):
    """An operation that may ask a model; `backend` counts where the type of backend is configurable."""

    enabled: bool = False
    backend: BackendName | None = None


class MemoryGate(Asking):
    """Whether facts are checked before they are kept, and how sure one must be."""

    min_confidence: Share = 0.5
    reject_unsupported: bool = True


class OutputVerification(Asking):
    """Whether a model is asked about claims of answers that words leave open, and which bits are flagged."""

    flag_threshold_bits: float = Field(default=0.0, ge=0)
    asked_from: Share = 0.2
    asked_below: Share = 0.8


class TraceAuditing(Asking):
    """Whether reasoning is audited step by step, and whether its answer must follow from it."""

    check_post_hoc: bool = True


class Hallucination(Section):
    """The model-backed part: off until it is enabled, and each operation besides."""

    enabled: bool = False
    backend: Backend = Backend()
    memory_gate: MemoryGate = MemoryGate()
    output_verification: OutputVerification = OutputVerification()
    trace_auditing: TraceAuditing = TraceAuditing()
    batch_size: int = Field(default=8, ge=1, le=64)
    timeout: Duration = Field(default=2.0, gt=0)
    cache_ttl: Duration = 3600.0

    @property
    def operations(self) -> dict[Operation, BackendName]:
        """The backend of each operation that is on, by name."""
        parts: dict[Operation, Asking] = {
            "memory_gate": self.memory_gate,
            "output_verification": self.output_verification,
            "trace_auditing": self.trace_auditing,
        }
        return {name: self._backend(each.backend) for name, each in parts.items() if self.enabled and each.enabled}

    @property
    def identity(self) -> str:
        """What tells the backend of output verification from others of its kind, as far as the settings know it."""
        names = {"haiku": self.backend.haiku_model, "external": without_passwords(self.backend.external_url or "")}
        return names.get(self.operations.get("output_verification", ""), "")

    def _backend(self, named: BackendName | None) -> BackendName:
        return (named or self.backend.default) if self.backend.type == "configurable" else self.backend.type

    @model_validator(mode="after")
    def _sensible(self) -> Hallucination:
        parts = (self.memory_gate, self.output_verification, self.trace_auditing)
        if self.backend.type != "configurable" and any(each.backend for each in parts):
            raise ValueError("an operation can name a backend of its own only where backend.type is configurable")
        if "external" in self.operations.values() and self.backend.external_url is None:
            raise ValueError("backend.external_url must be given where a backend is external")
        url = self.backend.external_url
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("backend.external_url must begin with http:// or https://")
        return self


class Weights(Section):
    """What the four parts of confidence count; they need not add up to one."""

    retrieval: float = Field(default=0.3, ge=0)
    source: float = Field(default=0.25, ge=0)
    extraction: float = Field(default=0.25, ge=0)
    consistency: float = Field(default=0.2, ge=0)


class SourceWeights(Section):
    """How far each kind of source is to be relied on."""

    tool: Share = 1.0
    document: Share = 1.0
    source: Share = 1.0
    system: Share = 0.9
    user: Share = 0.7


class ConfidenceSettings(Section):
    """How confidence is put together."""

    weights: Weights = Weights()
    source_weights: SourceWeights = SourceWeights()


class Thresholds(Section):
    """What is worth a warning: grounding, consistency and confidence below these, a risk above its own."""

    grounding: Share = 0.7
    consistency: Share = 0.8
    confidence: Share = 0.6
    risk: Share = 0.3


class Cache(Section):
    """How long verdicts are kept, and how many; and the Redis that replicas share."""

    ttl: Duration = 3600.0
    max_entries: int = Field(default=10_000, ge=0)
    redis_url: Secretive | None = None
    redis_timeout: Duration = Field(default=0.05, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Cache:
        if self.redis_url is not None and not self.redis_url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("redis_url must begin with redis://, rediss:// or unix://")
        return self


class Facts(Section):
    """The database that is asked for values, and how: SQL by name, with its parameters as `:name`."""

    url: Secretive | None = None
    timeout: Duration = Field(default=1.0, gt=0)
    max_rows: int = Field(default=500, ge=1, le=100_000)
    templates: dict[str, str] = {}

    @model_validator(mode="after")
    def _askable(self) -> Facts:
        if self.url is not None and not self.url.startswith(("sqlite:///", "postgresql://")):
            raise ValueError("url must begin with sqlite:/// or postgresql://")
        if bool(self.url) != bool(self.templates):
            raise ValueError("url and templates need each other")
        for name, sql in self.templates.items():
            if not _ONE_QUERY.fullmatch(_QUOTED.sub("", sql)):
                raise ValueError(f"templates.{name} must be one SELECT or WITH … SELECT, without a semicolon")
        return self


class Jobs(Section):
    """Where work that is left for later is kept, and how often it is tried."""

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
        if self.url is not None and not self.url.startswith(("sqlite:///", "postgresql://")):
            raise ValueError("url must begin with sqlite:/// or postgresql://")
        return self


class Store(Section):
    """Where exchanges are kept with their reports, what of them, and for how long."""

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
        return self


Digest = Annotated[str, Field(pattern="^sha256:[0-9a-fA-F]{64}$")]


class Admin(Section):
    """Who may see what is stored, and for how long a browser stays signed in."""

    keys: dict[str, Digest] = {}
    keys_file: str | None = None
    key_env: str = "GROUNDWIRE_ADMIN_KEY"
    session: Duration = Field(default=12 * 3600.0, gt=0)
    session_secret_env: str = "GROUNDWIRE_ADMIN_SESSION_SECRET"  # noqa: S105 - the name of a variable


class Webhook(Section):
    """Who is told of the reports that jobs finish."""

    url: Secretive | None = None
    secret_env: str = "GROUNDWIRE_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
    timeout: Duration = Field(default=10.0, gt=0)
    attempts: int = Field(default=8, ge=1, le=50)

    @model_validator(mode="after")
    def _known(self) -> Webhook:
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        return self


class Sampling(Section):
    """How often an answer is sampled again to see whether it comes out the same."""

    enabled: bool = False
    on_request: bool = True
    samples: int = Field(default=3, ge=3, le=5)
    temperatures: tuple[Annotated[float, Field(ge=0, le=2)], ...] = Field(default=(0.0, 0.1, 0.2), min_length=1)
    timeout: Duration = Field(default=60.0, gt=0)


class Mcp(Section):
    """Whether the MCP server is mounted at /mcp, and by which names its callers may reach it."""

    enabled: bool = False
    allowed_hosts: tuple[str, ...] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
    allowed_origins: tuple[str, ...] = ()


class Stream(Section):
    """How a verdict travels in a stream."""

    carrier: Literal["last_event", "extra_event", "comment", "none"] = "last_event"
    tail_budget: Duration = 0.15
    keepalive: Duration = 15.0
    max_event: Size = 32 * 2**20


class Telemetry(Section):
    """What is measured, where metrics, traces and logs go, and what they may hold."""

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
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section):
    """Everything that can be set."""

    server: Server = Server()
    upstreams: dict[str, Upstream] = Field(
        default={name: Upstream.model_validate(each) for name, each in DEFAULT_UPSTREAMS.items()}, min_length=1
    )
    grounding: Grounding = Grounding()
    quotes: Quotes = Quotes()
    numeric: Numeric = Numeric()
    encoder: Encoder = Encoder()
    hallucination: Hallucination = Hallucination()
    confidence: ConfidenceSettings = ConfidenceSettings()
    thresholds: Thresholds = Thresholds()
    facts: Facts = Facts()
    cache: Cache = Cache()
    store: Store = Store()
    admin: Admin = Admin()
    jobs: Jobs = Jobs()
    webhook: Webhook = Webhook()
    sampling: Sampling = Sampling()
    mcp: Mcp = Mcp()
    stream: Stream = Stream()
    telemetry: Telemetry = Telemetry()

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if self.webhook.url is not None and self.jobs.url is None:
            raise ValueError("webhook.url needs jobs.url: only reports that jobs finish are told")
        for name, upstream in self.upstreams.items():
            for target in chain.from_iterable(upstream.instead.values()):
                if not any(target.startswith(f"{each}/") and target != f"{each}/" for each in self.upstreams):
                    raise ValueError(f"upstreams.{name}.fallbacks: '{target}' must be upstream/model, or upstream/*")
        return self

    @property
    def policy(self) -> Policy:
        """The part of the settings that verdicts depend on."""
        numeric, quotes = self.numeric, self.quotes
        tolerance = None
        if isinstance(numeric.tolerance, Tolerance):
            tolerance = (
                *numeric.tolerance.model_dump(exclude={"date"}).items(),
                ("date", numeric.tolerance.date),
            )
        return Policy(
            name=self.grounding.policy,
            verifiers=self.grounding.verifiers,
            max_claims=self.grounding.max_claims,
            verify_hedged=self.grounding.hedged == "verify",
            numeric=NumericPolicy(
                currency=numeric.currency,
                percentage=numeric.percentage,
                ratio=numeric.ratio,
                date=numeric.date,
                tolerance=tolerance,
                confidence_penalty=numeric.confidence_penalty,
                max_source_checks=numeric.max_source_checks,
                timeout_s=numeric.timeout,
            ),
            quotes=QuotePolicy(
                enabled=quotes.enabled,
                fuzzy=quotes.mode == "fuzzy",
                fuzzy_threshold=quotes.fuzzy_threshold,
                fail_on_all_rejected=quotes.fail_on_all_rejected,
            ),
            encoder=self.encoder.policy,
            model=ModelPolicy(
                backend=self.hallucination.operations.get("output_verification", ""),
                identity=self.hallucination.identity,
                asked_from=self.hallucination.output_verification.asked_from,
                asked_below=self.hallucination.output_verification.asked_below,
                flag_threshold_bits=self.hallucination.output_verification.flag_threshold_bits,
            ),
            confidence_weights=tuple(self.confidence.weights.model_dump().items()),
            source_weights=tuple(self.confidence.source_weights.model_dump().items()),
            thresholds=ThresholdPolicy(**self.thresholds.model_dump()),
        )


def load_settings(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file (None: the defaults) under those of the environment.

    Raises ConfigError with one line for each thing that is wrong, naming file, line and key.
    """
    values, lines = ({}, {}) if path is None else _read(path)
    from_variables = "upstreams" not in values
    variables = _overlay(values, environ)
    if from_variables and "upstreams" in values:
        values["upstreams"] = _completed(values["upstreams"])
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError([_problem(details, path, lines, variables) for details in error.errors()]) from error


def _completed(upstreams: Any) -> Any:
    """Upstreams that only variables describe, with what the default of the same name has besides."""
    if not isinstance(upstreams, dict):
        return upstreams
    return {
        name: {**DEFAULT_UPSTREAMS.get(name, {}), **each} if isinstance(each, dict) else each
        for name, each in upstreams.items()
    }


Path_ = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Reads all plain words but null as text, and leaves to each key what they mean: YAML 1.1 takes `off` for false."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - yaml's own way to say it
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _read(path: Path) -> tuple[dict[str, Any], dict[Path_, int]]:
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), _Loader)
        if node is None:
            return {}, {}
        values = _Loader("").construct_document(node)
        lines, twice = dict(_lines(node, ())), list(_duplicates(node))
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError([f"{place}: {getattr(error, 'problem', None) or error}"]) from error
    if twice:
        raise ConfigError([f"{path}:{line}: '{key}' is given twice" for key, line in twice])
    if not isinstance(values, dict):
        raise ConfigError([f"{path}:1: the file must hold keys and values"])
    return values, lines


def _lines(node: yaml.Node, path: Path_) -> Iterator[tuple[Path_, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*path, at), value.start_mark.line + 1
            yield from _lines(value, (*path, at))


def _duplicates(node: yaml.Node) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.value, key.start_mark.line + 1
            seen.add(key.value)
            yield from _duplicates(value)


def _overlay(values: dict[str, Any], environ: Mapping[str, str]) -> dict[Path_, str]:
    """Sets in `values` what variables say; returns which variable stands behind which path."""
    variables: dict[Path_, str] = {}
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        at, path = values, []
        *sections, last = name.removeprefix(PREFIX).split("__")
        for section in sections:
            path.append(_key(at, section))
            inner = at.get(path[-1])
            at[path[-1]] = at = dict(inner) if isinstance(inner, dict) else {}
        path.append(_key(at, last))
        at[path[-1]] = _said(text)
        variables[tuple(path)] = name
    return variables


def _said(text: str) -> Any:
    """What a variable says: a list or mapping in YAML's brackets, null, or else plain text."""
    if not text.startswith(("[", "{")):
        return None if text in ("", "null", "~") else text
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe one
    except yaml.YAMLError:
        return text


def _key(values: Mapping[str, Any], variable: str) -> str:
    """The key that a variable's part means: one that is there, whatever its case and dashes, else its lower case."""
    lower = variable.lower()
    return next((key for key in values if str(key).lower().replace("-", "_") == lower), lower)


def _problem(
    details: Mapping[str, Any], path: Path | None, lines: Mapping[Path_, int], variables: Mapping[Path_, str]
) -> str:
    loc: Path_ = tuple(step for step in details["loc"] if step not in ("Tolerance", "literal['written']"))
    place = _place(loc, path, lines, variables)
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), _siblings(loc), n=1)
        what = "unknown key" + (f" (did you mean '{near[0]}'?)" if near else "")
    elif details["type"] in ("model_type", "dict_type"):
        what = "must hold keys and values"
    else:
        what = str(details["msg"]).removeprefix("Value error, ")
    return f"{place}{'.'.join(map(str, loc))}: {what}"


def _place(loc: Path_, path: Path | None, lines: Mapping[Path_, int], variables: Mapping[Path_, str]) -> str:
    """Where a wrong value stands: the variable that gives it, its line, a variable within it, the line around it."""
    giving = (f"{name}: " for place, name in variables.items() if loc[: len(place)] == place)
    within = (f"{name}: " for place, name in variables.items() if place[: len(loc)] == loc)
    around = [f"{path}:{lines[loc[:n]]}: " for n in range(len(loc), 0, -1) if loc[:n] in lines]
    exact = around[:1] if loc in lines else []
    return next(chain(giving, exact, within, around), f"{path}: " if path else "")


def _siblings(loc: Path_) -> list[str]:
    """The keys that could stand where an unknown one stands."""
    model: Any = Settings
    for step in loc[:-1]:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(step))
            model = field.annotation if field else None
            if str(step) == "upstreams":
                model = dict
            elif str(step) == "tolerance":
                model = Tolerance
        elif model is dict:
            model = Upstream
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []
