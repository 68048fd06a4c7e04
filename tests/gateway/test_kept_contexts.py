"""Evidence of exchanges, cached in bounded memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from groundwire.domain import Exchange, Message, Part, Source
from groundwire.gateway.service import EvidenceCache
from groundwire.pipeline import Prepared
from tests.gateway.exchanges import FACTS, exchange, sources


def never() -> bool:
    return False


def always() -> bool:
    return True


def is_same(one: Prepared, other: Prepared) -> bool:
    """Return whether two were read only once."""
    return one.context.passages is other.context.passages


def test_the_same_exchange_is_read_once() -> None:
    cache = EvidenceCache()
    assert is_same(cache.prepare(exchange(), never), cache.prepare(exchange(), never))


@pytest.mark.parametrize(
    "other",
    [
        exchange(FACTS + " Grass is green."),
        Exchange(exchange().messages, (Source("s1", "source", "Grass is green."),)),
        replace(exchange(), messages=(replace(exchange().messages[0], role="user"),)),
        replace(sources(), sources=(replace(sources().sources[0], labels=("2",)),)),
    ],
)
def test_an_exchange_that_differs_anywhere_is_read_anew(other: Exchange) -> None:
    cache = EvidenceCache()
    known = [cache.prepare(exchange(), never), cache.prepare(sources(), never)]
    found = cache.prepare(other, never)
    assert not any(is_same(found, each) for each in known)
    assert found.context.digest not in [each.context.digest for each in known]


def parts(*texts: str) -> Exchange:
    """An exchange whose system prompt has these parts."""
    return Exchange((Message(0, "system", tuple(map(Part, texts))),))


def test_texts_split_elsewhere_are_other_texts() -> None:
    cache, text = EvidenceCache(), "The sky is blue."
    said = [parts(text[:at], text[at:]) for at in (7, 10)] + [parts(text), parts(text, ""), sources(text)]
    known = [cache.prepare(each, never) for each in said]
    assert all(is_same(one, cache.prepare(each, never)) for one, each in zip(known, said, strict=True))
    assert not any(is_same(one, other) for one, other in combinations(known, 2))


def test_a_message_without_parts_is_a_message_too() -> None:
    cache, one = EvidenceCache(), parts("The sky is blue.")
    more = replace(one, messages=(*one.messages, Message(1, "user", ())))
    assert not is_same(cache.prepare(one, never), cache.prepare(more, never))


def test_half_a_character_is_a_text_too() -> None:
    cache = EvidenceCache()
    one, other = (cache.prepare(exchange("The sky is \ud83d blue."), never) for _ in range(2))
    assert is_same(one, other)


def test_incompletely_read_evidence_is_not_cached() -> None:
    cache = EvidenceCache()
    assert not cache.prepare(exchange(), always).context.is_complete
    assert cache.prepare(exchange(), never).context.is_complete


def test_memory_is_bounded_and_the_exchanges_used_last_stay() -> None:
    cache = EvidenceCache(max_bytes=37_500)
    texts = [f"The walrus number {at} lives in Oslo. " * 10 for at in range(20)]
    first = cache.prepare(exchange(texts[0]), never)
    second = cache.prepare(exchange(texts[1]), never)
    for text in texts[2:]:
        cache.prepare(exchange(text), never)
        assert is_same(cache.prepare(exchange(texts[0]), never), first)
    assert cache._recent.size <= 37_500
    assert not is_same(cache.prepare(exchange(texts[1]), never), second)


def question(text: str) -> Exchange:
    """An exchange without evidence."""
    return Exchange((Message(0, "user", (Part(text),)),))


def test_exchanges_without_evidence_are_bounded_too() -> None:
    cache = EvidenceCache(30_000)
    for number in range(30):
        cache.prepare(question(f"Question {number}?"), never)
    assert 0 < cache._recent.size <= 30_000
