"""Admin keys, which are separate from client keys, and the sessions of admins in a browser."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from groundwire.config import Admin
from groundwire.errors import ConfigError, NotAdmin
from groundwire.http.endpoints import Handler
from groundwire.http.guard import FREE_REQUESTS, FailedAttempts
from groundwire.http.keys import NAME, NO_NAME, bearer, digest_of, named_lines, read_digest
from groundwire.wire import Call, Headers, Reply, header

_SHORTEST_KEY = 16

AdminHandler = Callable[[Call, Mapping[str, str], str], Awaitable[Reply]]
"""Return the reply to a call of an admin, whose name is the last argument."""


@dataclass(frozen=True, slots=True)
class AdminKeys:
    """The names of the admins, each with the SHA-256 digest of a key; keys themselves are not stored."""

    digests: Mapping[str, bytes]

    def find_admin(self, key: str) -> str | None:
        """Return the admin whose key this is, or None. Every digest is compared, each in constant time."""
        given = digest_of(key)
        found = [name for name, digest in self.digests.items() if hmac.compare_digest(given, digest)]
        return found[0] if found else None


def read_keys(
    given: Mapping[str, str], file: Path | None = None, key: str | None = None, variable: str = "admin.key_env"
) -> AdminKeys:
    """Read keys by name: those given, those of a file with a line `name: key` for each, and one for the name `admin`.

    The last is the value of `variable`, which errors name.

    A key is written plainly, in 16 characters or more, or as `sha256:` and its digest. Raises ConfigError.
    """
    problems: list[str] = []
    pairs = [
        *(("admin.keys", *each) for each in given.items()),
        *([(variable, "admin", key)] if key else []),
        *(("admin.keys_file", *each) for each in (named_lines(file, "admin.keys_file", problems) if file else ())),
    ]
    digests: dict[str, bytes] = {}
    for place, name, written in pairs:
        digest = _digest(written)
        if not NAME.fullmatch(name):
            problems.append(f"{place}: '{name}' {NO_NAME}")
        elif digest is None:
            problems.append(f"{place}: the key of '{name}' must have {_SHORTEST_KEY} characters or more")
        elif name in digests:
            problems.append(f"{place}: '{name}' is given twice")
        else:
            digests[name] = digest
    if problems:
        raise ConfigError(problems)
    return AdminKeys(digests)


def configured_keys(settings: Admin, environ: Mapping[str, str]) -> AdminKeys:
    """Read the keys that the settings name. Raises ConfigError."""
    file = Path(settings.keys_file) if settings.keys_file else None
    return read_keys(settings.keys, file, environ.get(settings.key_env), settings.key_env)


def _digest(written: str) -> bytes | None:
    return read_digest(written) or (digest_of(written) if len(written) >= _SHORTEST_KEY else None)


def require_admin(keys: AdminKeys, handle: AdminHandler, failed: FailedAttempts | None = None) -> Handler:
    """Require an admin key, sent as `Authorization: Bearer …`.

    Other calls are refused with NotAdmin, and after several wrong keys with TooManyRequests.
    """

    failed = failed or FailedAttempts(free=FREE_REQUESTS)

    async def handler(call: Call, params: Mapping[str, str]) -> Reply:
        key = bearer(header(call.headers, b"authorization"))
        who = failed.authenticate(key, call.address, keys.find_admin) if key else None
        if who is None:
            raise NotAdmin("An admin key is required, sent as 'Authorization: Bearer …'.")
        return await handle(call, params, who)

    return handler


SESSION = "groundwire_session"
VISIT = "groundwire_visit"


class Sessions:
    """Sessions in signed cookies with a name and an expiry: stateless, so any replica can check them.

    They end at their expiry, and as soon as the key they were opened with is removed or changed.
    """

    def __init__(self, keys: AdminKeys, secret: bytes, lasts: float) -> None:
        self._keys = keys
        self._secret = secret
        self._failed = FailedAttempts()
        self.lasts = lasts

    @property
    def any_keys(self) -> bool:
        """True if there is any admin key."""
        return bool(self._keys.digests)

    def open(self, key: str, now: float, address: str = "") -> str | None:
        """Open a session for the admin whose key this is; `now` is in Unix seconds.

        Raises TooManyRequests after wrong keys.
        """
        who = self._failed.authenticate(key, address, self._keys.find_admin)
        if who is None:
            return None
        self._failed.forget(address)
        content = f"{who}:{int(now + self.lasts)}:{secrets.token_hex(8)}"
        return f"{content}:{self._signature(who, content)}"

    def who(self, session: str, now: float) -> str | None:
        """Return the admin of a session, or None if it is invalid or expired."""
        content, _, signature = session.rpartition(":")
        name, ends, *_ = (*content.split(":"), "", "")
        if name not in self._keys.digests or not ends.isdigit():
            return None
        is_ours = hmac.compare_digest(signature.encode(), self._signature(name, content).encode())
        return name if is_ours and now < int(ends) else None

    def form_token(self, cookie: str) -> str:
        """Return the token that a form sent with this cookie must contain."""
        return self._sign(f"form {cookie}")

    def is_form_token(self, cookie: str, token: str) -> bool:
        """Return whether a form token was issued for this cookie."""
        return bool(cookie) and hmac.compare_digest(
            token.encode("utf-8", "surrogatepass"), self._sign(f"form {cookie}").encode()
        )

    def _signature(self, name: str, content: str) -> str:
        return self._sign(f"session {content} {self._keys.digests[name].hex()}")

    def _sign(self, content: str) -> str:
        return hmac.new(self._secret, content.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def cookie(headers: Headers, name: str) -> str:
    """Return the value of a cookie, or "" when it was not sent."""
    sent = b"; ".join(value for found, value in headers if found == b"cookie").decode("latin-1")
    pairs = (each.strip().partition("=") for each in sent.split(";"))
    return next((value for found, _, value in pairs if found == name), "")


def set_cookie(name: str, value: str, *, secure: bool, lasts: float | None = None) -> tuple[bytes, bytes]:
    """Return the header of a cookie that scripts cannot read and other sites cannot send; `lasts` is in seconds."""
    age = "" if lasts is None else f"; Max-Age={int(lasts)}"
    header = f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{age}{'; Secure' if secure else ''}"
    return b"set-cookie", header.encode("latin-1")
