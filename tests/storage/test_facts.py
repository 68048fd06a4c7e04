"""Facts stored per subject, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from groundwire.storage.memory import Fact, MemoryFacts

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def fact(text: str, at: float = 0.0) -> Fact:
    return Fact(f"f-{at}", text, 0.9, at, True)


def test_facts_come_back_per_subject_in_order() -> None:
    kept = MemoryFacts()
    run(kept.put("acme", [fact("One."), fact("Two.")]))
    run(kept.put("other", [fact("Three.")]))
    assert [each.text for each in run(kept.of("acme"))] == ["One.", "Two."]
    assert [each.text for each in run(kept.of("other"))] == ["Three."]
    assert list(run(kept.of("nobody"))) == []


def test_the_same_fact_again_takes_the_place_of_the_earlier_one() -> None:
    kept = MemoryFacts()
    run(kept.put("acme", [fact("One.", 1), fact("Two.", 2)]))
    run(kept.put("acme", [fact("One.", 3)]))
    assert [(each.text, each.at) for each in run(kept.of("acme"))] == [("Two.", 2), ("One.", 3)]


def test_a_subject_keeps_its_newest_facts() -> None:
    kept = MemoryFacts(per_subject=2)
    run(kept.put("acme", [fact(text) for text in "abc"]))
    assert [each.text for each in run(kept.of("acme"))] == ["b", "c"]


def test_there_is_a_bound_on_all_text_and_the_least_used_subject_goes_first() -> None:
    kept = MemoryFacts(max_chars=3000)
    for subject in ("a", "b", "c"):
        run(kept.put(subject, [fact(subject * 800)]))
    assert list(run(kept.of("a"))) == []
    assert run(kept.of("c"))


def test_a_fact_larger_than_the_whole_memory_is_not_stored() -> None:
    kept = MemoryFacts(max_chars=1000)
    run(kept.put("a", [fact("x" * 5000)]))
    assert list(run(kept.of("a"))) == []


def test_facts_are_dropped_by_their_ids_and_tenant() -> None:
    kept = MemoryFacts()
    one, two = fact("One.", 1.0), fact("Two.", 2.0)
    run(kept.put("a", [one, two], "mine"))
    run(kept.drop("a", [one.id], "another"))
    assert list(run(kept.of("a", "mine"))) == [one, two]
    run(kept.drop("a", [one.id, "unknown"], "mine"))
    assert list(run(kept.of("a", "mine"))) == [two]


def test_a_subject_can_be_forgotten() -> None:
    kept = MemoryFacts()
    run(kept.put("a", [fact("One.")]))
    run(kept.forget("a"))
    assert list(run(kept.of("a"))) == []
