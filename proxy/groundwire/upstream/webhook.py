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
from collections.abc import Callable, Mapping

import httpx

from groundwire.errors import TryLater
from groundwire.telemetry import Telemetry
from groundwire.upstream.retries import seconds_to_wait

_KEPT = b'{"delivered":true}'
_SECRET_PREFIX = "whsec_"  # noqa: S105 - of secrets as Standard Webhooks write them
_AGENT = "groundwire-webhook"
_UNTOLD = Telemetry()


class Webhook:
    """Posts to `url`, which no request can influence; redirects are not followed. `timeout` is in seconds."""

    def __init__(
        self,
        url: str,
        secret: str,
        transport: httpx.AsyncBaseTransport,
        *,
        timeout: float = 10.0,
        telemetry: Telemetry = _UNTOLD,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._key = signing_key(secret)
        self._transport = transport
        self._extensions = {"timeout": {"connect": timeout, "read": timeout, "write": timeout, "pool": timeout}}
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
        with self._telemetry.webhook(id_) as posted:
            response = await self._sent({**headers, **posted.headers}, body)
            posted.answered(response.status_code)
        if not 200 <= response.status_code < 300:
            after = seconds_to_wait(response.headers.get("retry-after"), now)
            raise TryLater(f"the webhook answered {response.status_code}", after=after)
        return _KEPT

    async def _sent(self, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        request = httpx.Request("POST", self._url, headers=headers, content=body, extensions=self._extensions)
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise TryLater(f"the webhook cannot be reached ({type(error).__name__})") from error
        assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what every async transport returns
        await response.stream.aclose()
        return response


def signing_key(secret: str) -> bytes:
    """Return the key of a secret: the base64 after `whsec_`, else the secret's bytes."""
    if secret.startswith(_SECRET_PREFIX):
        return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    return secret.encode()


def signature(key: bytes, id_: str, timestamp: str, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    digest = hmac.new(key, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
