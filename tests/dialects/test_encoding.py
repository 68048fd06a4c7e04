"""Bodies in a content coding are read, and an unreadable or exploding one is refused."""

import gzip
import random
import tracemalloc
import zlib

import pytest

from groundwire.dialects.framing import Decoder

TEXT = random.Random(7).randbytes(3000).hex().encode()
CODINGS = {
    None: TEXT,
    b"identity": TEXT,
    b"gzip": gzip.compress(TEXT),
    b" GZIP ": gzip.compress(TEXT),
    b"x-gzip": gzip.compress(TEXT),
    b"deflate": zlib.compress(TEXT),
}


def decoded(decoder: Decoder, *chunks: bytes) -> bytes:
    return b"".join(piece for chunk in chunks for piece in decoder.pieces(chunk))


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_a_body_decodes_in_any_chunks(coding: bytes | None, size: int) -> None:
    decoder, body = Decoder(coding), CODINGS[coding]
    assert decoder.known
    assert decoded(decoder, *(body[at : at + size] for at in range(0, len(body), size))) == TEXT


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_a_body_of_two_gzip_members_is_both(size: int) -> None:
    """RFC 1952, section 2.2: a gzip file is a series of members."""
    decoder, body = Decoder(b"gzip"), gzip.compress(b"one ") + gzip.compress(b"two")
    assert decoded(decoder, *(body[at : at + size] for at in range(0, len(body), size))) == b"one two"


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, br", b"x"])
def test_an_unknown_coding_is_reported_as_unknown(coding: bytes) -> None:
    assert not Decoder(coding).known


def test_a_body_that_contradicts_its_coding_is_refused() -> None:
    with pytest.raises(ValueError, match="content-encoding"):
        decoded(Decoder(b"gzip"), b"plain text")


@pytest.mark.parametrize("size", [32_768, 32_769, 65_536, 200_000])
@pytest.mark.parametrize("coding", [None, b"deflate"])
def test_a_body_comes_in_small_pieces(coding: bytes | None, size: int) -> None:
    body = bytes(size)
    pieces = list(Decoder(coding).pieces(zlib.compress(body) if coding else body))
    assert (b"".join(pieces), max(map(len, pieces))) == (body, 32_768)


def test_a_body_that_explodes_is_refused_without_being_held() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match="100000"):
        Decoder(b"deflate").whole(bomb, 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_padding_after_a_gzip_body_is_ignored() -> None:
    """The gzip command ignores it too."""
    assert decoded(Decoder(b"gzip"), gzip.compress(b"text") + bytes(8), bytes(8)) == b"text"
