"""Content codings that a body must be freed of before it can be read (RFC 9110, section 8.4)."""

from __future__ import annotations

import zlib

_EITHER_FORMAT = zlib.MAX_WBITS | 32  # zlib's or gzip's, whichever the body begins with
_MEMBER = b"\x1f"


class Decoder:
    """Decodes one body, chunk by chunk. `known` is False for a coding that cannot be undone here, such as br.

    `max_chunk` bounds, in bytes, what one chunk may expand to.
    """

    def __init__(self, coding: bytes | None, max_chunk: int = 256 * 2**20) -> None:
        name = (coding or b"identity").strip().lower()
        self.known = name in (b"identity", b"", b"gzip", b"x-gzip", b"deflate")
        self.is_identity = name in (b"identity", b"")
        self._max_chunk = max_chunk
        self._zlib = None if self.is_identity else zlib.decompressobj(_EITHER_FORMAT)

    def feed(self, chunk: bytes) -> bytes:
        """What a chunk decodes to. Raises ValueError when it is not what the coding's name says, or expands too far."""
        if self._zlib is None:
            return chunk
        decoded = b""
        try:
            while chunk:
                if self._zlib.eof:  # a gzip body may have several members (RFC 1952, section 2.2)
                    if not chunk.startswith(_MEMBER):
                        break
                    self._zlib = zlib.decompressobj(_EITHER_FORMAT)
                decoded += self._zlib.decompress(chunk, self._max_chunk - len(decoded) + 1)
                if len(decoded) > self._max_chunk:
                    raise ValueError(f"a part of the body expands to over {self._max_chunk} bytes")
                chunk = self._zlib.unused_data
        except zlib.error as error:
            raise ValueError(f"the body is not what its content-encoding says: {error}") from error
        return decoded
