"""GW4, RE2: bodies in a content coding are read, and an unreadable or exploding one is refused."""

import gzip
import random
import zlib

import pytest

from proxy.dialects.encoding import Decoder

TEXT = random.Random(7).randbytes(3000).hex().encode()
CODINGS = {
    None: TEXT,
    b"identity": TEXT,
    b"gzip": gzip.compress(TEXT),
    b" GZIP ": gzip.compress(TEXT),
    b"x-gzip": gzip.compress(TEXT),
    b"deflate": zlib.compress(TEXT),
}


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_a_body_decodes_in_any_chunks(coding: bytes | None, size: int) -> None:
    decoder, body = Decoder(coding), CODINGS[coding]
    assert decoder.known
    assert b"".join(decoder.feed(body[at : at + size]) for at in range(0, len(body), size)) == TEXT


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_a_body_of_two_gzip_members_is_both(size: int) -> None:
    """RFC 1952, section 2.2: a gzip file is a series of members."""
    decoder, body = Decoder(b"gzip"), gzip.compress(b"one ") + gzip.compress(b"two")
    assert b"".join(decoder.feed(body[at : at + size]) for at in range(0, len(body), size)) == b"one two"


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, br", b"x"])
def test_an_unknown_coding_is_said_to_be_unknown(coding: bytes) -> None:
    assert not Decoder(coding).known


def test_a_body_that_is_not_what_it_says_is_refused() -> None:
    with pytest.raises(ValueError, match="content-encoding"):
        Decoder(b"gzip").feed(b"plain text")


def test_a_body_that_explodes_is_refused() -> None:
    bomb = zlib.compress(bytes(200_000))
    with pytest.raises(ValueError, match="100000"):
        Decoder(b"deflate", max_chunk=100_000).feed(bomb)


def test_what_follows_a_gzip_body_and_is_none_is_passed_over() -> None:
    """As gzip itself does with padding."""
    decoder = Decoder(b"gzip")
    assert decoder.feed(gzip.compress(b"text") + bytes(8)) + decoder.feed(bytes(8)) == b"text"
