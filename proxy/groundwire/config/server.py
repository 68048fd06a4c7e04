"""Settings of the HTTP server: address, limits, time-outs and access."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from groundwire.config.values import Duration, Section, Size


def _none(value: Any) -> Any:
    return None if value == "none" else value


TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Server(Section):
    """The address to listen on and the limits of requests."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    keys: Annotated[str | None, BeforeValidator(_none)] = None
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
    def _told_apart(self) -> Server:
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


Digest = Annotated[str, Field(pattern="^sha256:[0-9a-fA-F]{64}$")]


class Admin(Section):
    """Access to stored data, and the lifetime of a browser session."""

    keys: dict[str, Digest] = {}
    keys_file: str | None = None
    key_env: str = "GROUNDWIRE_ADMIN_KEY"
    session: Duration = Field(default=12 * 3600.0, gt=0)
    session_secret_env: str = "GROUNDWIRE_ADMIN_SESSION_SECRET"  # noqa: S105 - the name of a variable
