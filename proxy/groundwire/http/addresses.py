"""The address that a request comes from, as the connection or a trusted reverse proxy gives it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.types import Scope

Network = IPv4Network | IPv6Network


def client_address(scope: Scope) -> str:
    """Return the address of the connection, "" where it has none (a Unix socket)."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def forwarded_address(scope: Scope, trusted: Sequence[Network]) -> str:
    """Return the last address in X-Forwarded-For that is not a trusted proxy's; each proxy appends its client's.

    The header is used only if the connection comes from a trusted proxy, because anybody can write one.
    """
    address = client_address(scope)
    values = (value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-forwarded-for")
    for each in reversed([entry for value in values for entry in value.split(",")]):
        if not _is_in(address, trusted):
            break
        parsed = _parsed(each)
        if parsed is None:
            break
        address = str(parsed)
    return address


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """Return an address as X-Forwarded-For has it, with or without a port; None where it is none."""
    bare = address.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        parsed = ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
