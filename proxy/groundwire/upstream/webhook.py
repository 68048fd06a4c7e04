"""Post reports to the webhook in the settings, signed as Standard Webhooks prescribe.

`webhook-signature` is `v1,` and the base64 of HMAC-SHA256, under the secret, over `webhook-id`, `webhook-timestamp`
(seconds since 1970) and the body, joined by dots. Receivers check it and the age of the timestamp, and ignore ids that
they have seen. See https://www.standardwebhooks.com.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable

import httpx
from aiohttp import ClientTimeout

from groundwire.errors import TryLater
from groundwire.telemetry import Telemetry
from groundwire.telemetry.names import STATUS_CODE
from groundwire.upstream.http import HttpClient
from groundwire.upstream.router import seconds_to_wait

_RECEIPT = b'{"delivered":true}'
_SECRET_PREFIX = "whsec_"  # noqa: S105 - of secrets as Standard Webhooks write them
_AGENT = "groundwire-webhook"
_NO_TELEMETRY = Telemetry()


class Webhook:
    """Posts to `url`, which no request can influence; redirects are not followed. `timeout` is in seconds."""

    def __init__(
        self,
        url: str,
        secret: str,
        client: HttpClient,
        *,
        timeout: float = 10.0,
        telemetry: Telemetry = _NO_TELEMETRY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._key = signing_key(secret)
        self._client = client
        self._timeouts = ClientTimeout(sock_connect=timeout, sock_read=timeout)
        self._telemetry = telemetry
        self._clock = clock

    async def post(self, id_: str, body: bytes) -> bytes:
        """Deliver a report and return a receipt as JSON. Raises TryLater unless the response is a 2xx."""
        now = self._clock()
        timestamp = str(int(now))
        headers = {
            "content-type": "application/json",
            "user-agent": _AGENT,
            "webhook-id": id_,
            "webhook-timestamp": timestamp,
            "webhook-signature": signature(self._key, id_, timestamp, body),
        }
        encoded = tuple((name.encode(), value.encode("latin-1")) for name, value in headers.items())
        with self._telemetry.webhook(id_) as span:
            sent = span.propagate(encoded)
            reply = await self._client.send("POST", self._url, sent, body, self._timeouts, _unreachable)
            if not isinstance(reply.body, bytes):
                await reply.body.aclose()
            span.set({STATUS_CODE: reply.status})
            if reply.status >= 400:
                span.fail(str(reply.status))
        if not 200 <= reply.status < 300:
            waits = [value.decode("latin-1") for name, value in reply.headers if name.lower() == b"retry-after"]
            after = seconds_to_wait(waits[0] if waits else None, now)
            raise TryLater(f"the webhook answered {reply.status}", after=after)
        return _RECEIPT


def _unreachable(error: httpx.TransportError) -> TryLater:
    return TryLater(f"the webhook cannot be reached ({type(error).__name__})")


def signing_key(secret: str) -> bytes:
    """Return the key of a secret: the base64 after `whsec_`, else the secret's bytes."""
    if secret.startswith(_SECRET_PREFIX):
        return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    return secret.encode()


def signature(key: bytes, id_: str, timestamp: str, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    digest = hmac.new(key, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
