"""Keys by name, of admins and of clients: their format in files, and their comparison.

Only SHA-256 digests of keys are stored. A key of 256 random bits cannot be found by trying, so a slow hash would only
add cost to every request.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)
NO_NAME = "is no name: letters, digits and . _ @ - make one"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})", re.IGNORECASE)


def digest_of(key: str) -> bytes:
    """Return the digest of a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(one, other)


def read_digest(written: str) -> bytes | None:
    """Parse a digest written as `sha256:` and 64 hexadecimal digits; None for anything else."""
    match = _DIGEST.fullmatch(written)
    return bytes.fromhex(match[1]) if match else None


def write_digest(digest: bytes) -> str:
    """Return a digest in the format of files."""
    return f"sha256:{digest.hex()}"


def bearer(authorization: bytes | None) -> str | None:
    """Return the key in a header `Authorization: Bearer …`, or None for any other value."""
    scheme, _, key = (authorization or b"").decode("latin-1").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def named_lines(file: Path, setting: str, problems: list[str]) -> Iterator[tuple[str, str]]:
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
