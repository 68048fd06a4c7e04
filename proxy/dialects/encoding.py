"""Content codings that a body must be freed of before it can be read (RFC 9110, section 8.4)."""

from __future__ import annotations

import zlib


class Decoder:
    """Decodes one body, chunk by chunk. `known` is False for a coding that cannot be undone here, such as br."""

    def __init__(self, coding: bytes | None) -> None:
        name = (coding or b"identity").strip().lower()
        self.known = name in (b"identity", b"", b"gzip", b"x-gzip", b"deflate")
        self.is_identity = name in (b"identity", b"")
        self._zlib = None if self.is_identity else zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, chunk: bytes) -> bytes:
        """What a chunk decodes to. Raises ValueError when it is not what the coding's name says."""
        if self._zlib is None:
            return chunk
        try:
            return self._zlib.decompress(chunk)
        except zlib.error as error:
            raise ValueError(f"the body is not what its content-encoding says: {error}") from error
