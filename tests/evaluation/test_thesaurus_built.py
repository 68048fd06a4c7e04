"""The thesaurus is built from WordNet's files: relations of common senses only, claims broader than their source."""

from pathlib import Path

import pytest

from bench.thesaurus import lines, read

NOUNS = """  1 A line of the licence.
00000001 05 n 01 animal 0 000 | a living thing
00000002 05 n 02 dog 0 hound 0 001 @ 00000001 n 0000 | a pet
00000003 06 n 01 hound 1 001 @ 00000001 n 0000 | a rogue
00000004 04 n 01 purchase 0 001 + 00000011 v 0101 | an act
"""
VERBS = """00000011 40 v 02 buy 0 purchase 0 002 + 00000004 n 0201 * 00000012 v 0000 01 + 08 00 | get for money
00000012 40 v 01 pay 0 000 01 + 08 00 | give money
"""
ADJECTIVES = """00000021 00 a 01 large 0 002 ! 00000022 a 0101 & 00000023 a 0000 | big
00000022 00 a 01 small 0 001 ! 00000021 a 0101 | not big
00000023 00 s 01 gigantic 0 001 & 00000021 a 0000 | very big
"""
SENSES = """animal%1:05:00:: 00000001 1 9
buy%2:40:00:: 00000011 1 9
dog%1:05:00:: 00000002 1 9
gigantic%5:00:00:large:00 00000023 1 2
hound%1:05:00:: 00000002 2 0
hound%1:06:01:: 00000003 1 60
large%3:00:00:: 00000021 1 9
pay%2:40:00:: 00000012 1 9
purchase%1:04:00:: 00000004 1 5
purchase%2:40:00:: 00000011 1 5
small%3:00:00:: 00000022 1 9
"""


@pytest.fixture
def built(tmp_path: Path) -> dict[str, list[str]]:
    texts = {"data.noun": NOUNS, "data.verb": VERBS, "data.adj": ADJECTIVES, "data.adv": "", "index.sense": SENSES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {line.split("\t")[0]: line.split("\t")[1:] for line in lines(read(tmp_path))}


def test_what_is_broader_is_stated_by_what_is_narrower_and_not_the_reverse(built):
    assert "dog" in built["animal"][1]
    assert "dog" not in built


def test_a_sense_that_a_word_hardly_ever_has_does_not_count(built):
    assert all("hound" not in groups[0].split() for groups in built.values())


def test_an_action_is_stated_by_one_that_includes_it(built):
    assert built["pay"][1].split() == ["buy", "purchas"]


def test_synonyms_and_derivations_are_alike(built):
    assert built["buy"][0] == "purchas"
    assert built["purchas"][0] == "buy"


def test_an_adjective_is_stated_by_a_stronger_one_and_denied_by_its_antonym(built):
    assert built["larg"] == ["", "gigantic", "small"]
    assert built["small"] == ["", "", "larg"]
