"""Decode content codings (RFC 9110, section 8.4)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_EITHER_FORMAT = zlib.MAX_WBITS | 32  # zlib or gzip, detected from the header
_MEMBER = b"\x1f"
_PIECE = 2**15


class Decoder:
    """Decode one body chunk by chunk. `known` is False for a coding that is not supported, such as br."""

    def __init__(self, coding: bytes | None) -> None:
        name = (coding or b"identity").strip().lower()
        self.known = name in (b"identity", b"", b"gzip", b"x-gzip", b"deflate")
        self.is_identity = name in (b"identity", b"")
        self._zlib = None if self.is_identity else zlib.decompressobj(_EITHER_FORMAT)
        self._is_over = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of a chunk, in pieces of 32 KiB at most.

        Raises ValueError when they do not match the coding.
        """
        if len(chunk) <= _PIECE and self._zlib is None:
            yield chunk
            return
        for at in range(0, len(chunk), _PIECE):
            piece = chunk[at : at + _PIECE]
            yield from (piece,) if self._zlib is None else self._decoded(piece)

    def whole(self, body: bytes, limit: int) -> bytes:
        """Return the decoded body. Raises ValueError when it is invalid or longer than `limit`."""
        if self._zlib is None:
            return body
        decoded, size = [], 0
        for piece in self.pieces(body):
            decoded.append(piece)
            size += len(piece)
            if size > limit:
                raise ValueError(f"it expands to over {limit} bytes")
        return b"".join(decoded)

    def _decoded(self, rest: bytes) -> Iterator[bytes]:
        assert self._zlib is not None  # noqa: S101 - see `pieces`
        is_full = False
        try:
            while (rest or is_full) and not self._is_over:
                if self._zlib.eof:  # a gzip body may have several members (RFC 1952, section 2.2)
                    self._is_over = not rest.startswith(_MEMBER)
                    self._zlib = zlib.decompressobj(_EITHER_FORMAT)
                    continue
                piece = self._zlib.decompress(rest, _PIECE)
                if piece:
                    yield piece
                rest = self._zlib.unconsumed_tail or self._zlib.unused_data
                is_full = len(piece) == _PIECE and not self._zlib.eof
        except zlib.error as error:
            raise ValueError(f"it is not what its content-encoding says: {error}") from error
