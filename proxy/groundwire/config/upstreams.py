"""Settings of model servers: address, models, retries, fallbacks and limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from groundwire.config.values import Duration, Section

_NOT_TO_BE_SET = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect")
_OLLAMA_PORT = ":11434"

DEFAULT_UPSTREAMS = {"ollama": {"base_url": "http://127.0.0.1:11434/v1"}}


Status = Annotated[int, Field(ge=400, le=599)]
MediaHost = Annotated[
    str, Field(pattern=r"^(?:[a-z][a-z0-9+.-]*://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$")
]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$")]


class Retries(Section):
    """Retries of a request to a model server, before the first byte of an answer."""

    count: int = Field(default=0, ge=0, le=20)
    statuses: tuple[Status, ...] = (429, 502, 503, 504)
    first_wait: Duration = 0.5
    longest_wait: Duration = 8.0
    within: Duration = 30.0
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
