"""Map httpx's transport errors to Groundwire's, the same for every upstream."""

from __future__ import annotations

import httpx

from groundwire.config import without_passwords
from groundwire.errors import RequestError, UpstreamBroken, UpstreamConnectTimeout, UpstreamTimeout, UpstreamUnreachable

_ERRORS: tuple[tuple[type[httpx.TransportError], type[RequestError], str], ...] = (
    (httpx.ConnectTimeout, UpstreamConnectTimeout, "upstream '{}' did not accept a connection in time"),
    (httpx.ConnectError, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TimeoutException, UpstreamTimeout, "upstream '{}' did not answer in time"),
    (httpx.UnsupportedProtocol, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TransportError, UpstreamBroken, "the connection to upstream '{}' broke"),
)


def upstream_error(error: httpx.TransportError, name: str, address: str) -> RequestError:
    """Return the error for the upstream called `name`; only the operator's text contains its address.

    Connection errors are described in words. Any other error is described by its class, because its text may quote the
    answer and the query of the request.
    """
    cause = error.__cause__
    words = (
        str(error) if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else type(cause or error).__name__
    )
    operator = f"upstream {name!r} at {without_passwords(address)}: {type(error).__name__}: {words}"
    kind, text = next((kind, text) for httpx_kind, kind, text in _ERRORS if isinstance(error, httpx_kind))
    return kind(text.format(name), operator=operator)
