"""Keys of admins and, separate from them, of clients by name. The file of client keys is reloaded when it changes.

Only SHA-256 digests of keys are stored. A key of 256 random bits cannot be found by trying, so a slow hash would only
add cost to every request.

A line of the file of client keys is `name: sha256:…`, followed by properties of the key, such as
`requests_per_minute=600`, `concurrent=20`, `created=2026-11-21T09:30:00Z` and `expires=2027-02-19T09:30:00Z`.
"""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from groundwire.errors import ConfigError, GroundwireError
from groundwire.storage.limits import Limits

if TYPE_CHECKING:
    from groundwire.config import Admin

log = structlog.get_logger("groundwire.keys")

_NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)
_NO_NAME = "is no name: letters, digits and . _ @ - make one"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})", re.IGNORECASE)
_SHORTEST_ADMIN_KEY = 16

_SETTING = "server.keys"
_PREFIX = "gw-"
_LOOK_EVERY_S = 1.0
_COUNTS = ("requests_per_minute", "concurrent")
_TIMES = ("created", "expires")
_HEADING = "# Client keys by name: digests and limits. `groundwire keys` writes them; changes count at once.\n"


def _digest_of(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _read_digest(written: str) -> bytes | None:
    """Parse a digest written as `sha256:` and 64 hexadecimal digits; None for anything else."""
    match = _DIGEST.fullmatch(written)
    return bytes.fromhex(match[1]) if match else None


def bearer(authorization: bytes | None) -> str | None:
    """Return the key in a header `Authorization: Bearer …`, or None for any other value."""
    scheme, _, key = (authorization or b"").decode("latin-1").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _named_lines(file: Path, setting: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines `name: …` of a file of keys; errors are added to `problems`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{setting}: {file}: {getattr(error, 'strerror', None) or 'is not UTF-8'}")
        return
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, written = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if colon:
            yield name.strip(), written.strip()
        else:
            problems.append(f"{setting}: {file}:{number}: a line is written 'name: key'")


@dataclass(frozen=True, slots=True)
class AdminKeys:
    """The names of the admins, each with the SHA-256 digest of a key; keys themselves are not stored."""

    digests: Mapping[str, bytes]

    def find_admin(self, key: str) -> str | None:
        """Return the admin whose key this is, or None. Every digest is compared, each in constant time."""
        given = _digest_of(key)
        found = [name for name, digest in self.digests.items() if hmac.compare_digest(given, digest)]
        return found[0] if found else None


def read_admin_keys(settings: Admin, environ: Mapping[str, str]) -> AdminKeys:
    """Read the keys that the settings name: in a mapping, in a file with lines `name: key`, and one for `admin`.

    A key is written plainly, in 16 characters or more, or as `sha256:` and its digest. Raises ConfigError.
    """
    problems: list[str] = []
    pairs = [("admin.keys", *each) for each in settings.keys.items()]
    if key := environ.get(settings.key_env):
        pairs.append((settings.key_env, "admin", key))
    if settings.keys_file:
        lines = _named_lines(Path(settings.keys_file), "admin.keys_file", problems)
        pairs += [("admin.keys_file", *each) for each in lines]
    digests: dict[str, bytes] = {}
    for place, name, written in pairs:
        digest = _read_digest(written) or (_digest_of(written) if len(written) >= _SHORTEST_ADMIN_KEY else None)
        if not _NAME.fullmatch(name):
            problems.append(f"{place}: '{name}' {_NO_NAME}")
        elif digest is None:
            problems.append(f"{place}: the key of '{name}' must have {_SHORTEST_ADMIN_KEY} characters or more")
        elif name in digests:
            problems.append(f"{place}: '{name}' is given twice")
        else:
            digests[name] = digest
    if problems:
        raise ConfigError(problems)
    return AdminKeys(digests)


@dataclass(frozen=True, slots=True)
class Client:
    """The holder of a key: its name, limits and expiry."""

    name: str
    digest: bytes
    limits: Limits = field(default_factory=Limits)
    created: datetime | None = None
    expires: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return whether the key has expired."""
        return self.expires is not None and self.expires <= now


class Clients:
    """The clients in a file, which is checked at most once a second, so that keys change without a restart.

    If the file becomes unreadable, the keys stay and `problem` describes it. Raises ConfigError when it cannot be read
    initially.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem: str | None = None
        self._file = file
        self._clock = clock
        self._next_look = clock() + _LOOK_EVERY_S
        self._seen = _fingerprint(file)
        self._by_digest = _by_digest(read_clients(file))

    async def find(self, key: str) -> Client | None:
        """Return the client of a key.

        It is looked up by its digest; timing reveals nothing useful, because a guessed beginning of a digest leads to
        no key.
        """
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + _LOOK_EVERY_S
            await asyncio.to_thread(self._reload)
        digest = _digest_of(key)
        found = self._by_digest.get(digest)
        return found if found is not None and hmac.compare_digest(found.digest, digest) else None

    def _reload(self) -> None:
        seen = _fingerprint(self._file)
        if seen == self._seen and self.problem is None:
            return
        try:
            clients = read_clients(self._file)
        except ConfigError as error:
            if self.problem is None:
                log.warning("keys.unreadable", problems=list(error.problems))
            self.problem = "unreadable; the keys are as they were"
            return
        self.problem, self._seen, self._by_digest = None, seen, _by_digest(clients)
        log.info("keys.read", keys=len(clients))


def read_clients(file: Path) -> tuple[Client, ...]:
    """Read the clients of a file. Raises ConfigError, with every invalid line."""
    problems: list[str] = []
    clients: dict[str, Client] = {}
    for name, written in _named_lines(file, _SETTING, problems):
        client = _client(name, written)
        if isinstance(client, str):
            problems.append(f"{_SETTING}: {file}: '{name}' {client}")
        elif name in clients:
            problems.append(f"{_SETTING}: {file}: '{name}' is given twice")
        else:
            clients[name] = client
    if problems:
        raise ConfigError(problems)
    return tuple(clients.values())


def _by_digest(clients: tuple[Client, ...]) -> Mapping[bytes, Client]:
    return {client.digest: client for client in clients}


def _client(name: str, written: str) -> Client | str:
    """Return the client of a line, or the error in it, without repeating a key that was written there."""
    if not _NAME.fullmatch(name):
        return _NO_NAME
    first, *pairs = written.split() or [""]
    digest = _read_digest(first)
    if digest is None:
        return "must be followed by sha256: and 64 hexadecimal digits; `groundwire keys create` writes such lines"
    known = dict(pair.partition("=")[::2] for pair in pairs)
    if unknown := known.keys() - {*_COUNTS, *_TIMES}:
        return f"has an unknown '{min(unknown)}'"
    try:
        counts = {each: _count(known[each]) for each in _COUNTS if each in known}
        times = {each: _moment(known[each]) for each in _TIMES if each in known}
    except ValueError as error:
        return f"has a value that cannot be: {error}"
    return Client(name, digest, Limits(**counts), **times)


def _count(written: str) -> int:
    if not written.isdecimal() or int(written) < 1:
        raise ValueError("a limit is a number from 1")
    return int(written)


def _moment(written: str) -> datetime:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise ValueError("a time is written like 2027-02-19 or 2027-02-19T09:30:00Z") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _fingerprint(file: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        found = file.stat()
        return found.st_mtime_ns, found.st_ino, found.st_size
    return None


def create_key(file: Path, name: str, limits: Limits, now: datetime, lasts: float | None = None) -> tuple[str, Client]:
    """Create a key, which cannot be shown again, and return it with its client; `lasts` is in seconds.

    Raises GroundwireError when the name is taken or the file is invalid.
    """
    if not _NAME.fullmatch(name):
        raise GroundwireError(f"'{name}' {_NO_NAME}")
    now = now.replace(microsecond=0)
    expires = datetime.fromtimestamp(now.timestamp() + lasts, UTC) if lasts is not None else None
    key = _PREFIX + secrets.token_urlsafe(32)
    client = Client(name, _digest_of(key), limits, now, expires)
    with _rewrite(file) as lines:
        if lines and any(each.name == name for each in read_clients(file)):
            raise GroundwireError(f"{file}: there is a key '{name}' already; revoke it, or choose another name")
        lines += [_line(client)] if lines else [_HEADING, _line(client)]
    return key, client


def revoke_key(file: Path, name: str) -> None:
    """Revoke a key. Raises GroundwireError when there is none of that name."""
    with _rewrite(file) as lines:
        others = [line for line in lines if line.partition(":")[0].strip() != name]
        if len(others) == len(lines):
            raise GroundwireError(f"{file}: there is no key '{name}'")
        lines[:] = others


def public_fields(client: Client) -> dict[str, int | str | None]:
    """Return the properties of a client except its name and digest, as in its line."""
    return {
        "requests_per_minute": client.limits.requests_per_minute,
        "concurrent": client.limits.concurrent,
        "created": _written(client.created) if client.created else None,
        "expires": _written(client.expires) if client.expires else None,
    }


def _line(client: Client) -> str:
    details = "".join(f" {name}={value}" for name, value in public_fields(client).items() if value is not None)
    return f"{client.name}: sha256:{client.digest.hex()}{details}\n"


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _rewrite(file: Path) -> Iterator[list[str]]:
    """Yield the lines of a file and write them back in one step; other writers wait."""
    file = file.resolve()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        yield lines
        _replace(file, "".join(lines))
        os.fsync(folder)
    finally:
        os.close(folder)


def _replace(file: Path, text: str) -> None:
    """Replace a file by one that only its owner can read, keeping the owner if permitted."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        with suppress(OSError):
            before = file.stat()
            os.chown(name, before.st_uid, before.st_gid)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
