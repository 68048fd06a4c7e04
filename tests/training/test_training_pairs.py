"""Pairs are assembled of labelled answers, our claims and rules, and none comes from the fold that is held out."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.evaluation.rows import Row
from training.data import FOLDS, HELD_OUT, SETS
from training.labelled import Aligned, known
from training.pair import Pair, changed
from training.pairs import assembled
from training.written import cut, read_written

CONTEXT = (
    "The bridge of number {} was opened in 1900 by the mayor, Anna Berg. It crosses the river Elde near the old town."
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("It costs 40 euros.", "It costs 50 euros.", ["50"], id="exchanged"),
        pytest.param("It costs 40 euros.", "It never costs 40 euros.", ["never"], id="put-in"),
        pytest.param("It never costs 40 euros.", "It costs 40 euros.", ["costs"], id="left-out-marks-the-next"),
        pytest.param("It costs 40 euros today", "It costs 40 euros", [], id="left-out-at-the-end"),
        pytest.param("Anna saw Berta.", "Berta saw Anna.", ["Berta saw", "."], id="swapped"),
        pytest.param("The same.", "The same.", [], id="equal"),
        pytest.param("", "All new", ["All new"], id="all"),
    ],
)
def test_changed_characters_are_the_words_that_differ(before: str, after: str, expected: list[str]) -> None:
    assert [after[low:high] for low, high in changed(before, after)] == expected


def row(label: int, spans: tuple[tuple[int, int], ...] | None = None, context: str = "A text.") -> Row:
    return Row("r", (context,), "One. Two.", label, spans)


ONE, TWO = Aligned("One.", 0, 4, "A text."), Aligned("Two.", 5, 9, "A text.")


def told(*answers: tuple[Row, list[Aligned]]) -> list[tuple[str, int, list[tuple[int, int]] | None]]:
    rows, claims = zip(*answers, strict=True)
    return [(pair.claim, pair.truth, pair.bad) for pair in known("set", rows, claims)]


def test_every_claim_of_a_sound_answer_is_supported() -> None:
    assert told((row(0), [ONE, TWO])) == [("One.", 1, None), ("Two.", 1, None)]


def test_only_claim_of_an_unsound_answer_is_wrong() -> None:
    assert told((row(1), [ONE])) == [("One.", 0, None)]


def test_claims_of_an_unsound_answer_are_left_out_when_nobody_knows_which_is_wrong() -> None:
    assert told((row(1), [ONE, TWO])) == []


def test_claim_that_a_sound_answer_has_too_is_supported_and_leaves_the_other_as_wrong() -> None:
    assert told((row(0), [ONE]), (row(1), [ONE, TWO])) == [("One.", 1, None), ("One.", 1, None), ("Two.", 0, None)]


def test_sound_answer_about_another_context_says_nothing() -> None:
    assert told((row(0, context="Another text."), [ONE]), (row(1), [ONE, TWO])) == [("One.", 1, None)]


def test_marked_span_tells_which_claim_is_wrong_and_where() -> None:
    assert told((row(1, ((6, 20),)), [ONE, TWO])) == [("One.", 1, None), ("Two.", 0, [(1, 4)])]


def test_sentences_are_cut_out_by_number() -> None:
    text = "First one. Second!\n\n Third line\nFourth? Fifth."
    assert cut(text, 1, 3) == "Second! Third line Fourth?"
    assert cut(text, 0, 9) == "First one. Second! Third line Fourth? Fifth."


def _context(is_held_out: bool, after: int) -> str:
    """A made-up text of the fold that is asked for."""
    numbers = iter(range(after, after + 1000))
    texts = (CONTEXT.format(number) for number in numbers)
    return next(text for text in texts if (zlib.crc32(text.encode()) % FOLDS == HELD_OUT) == is_held_out)


def _lines(name: str, at: int) -> Iterator[str]:
    """A set of three answers: a sound and an unsound one to fit on, and a sound one of the fold that is held out."""
    fitted, held_out = _context(False, 1000 * at), _context(True, 1000 * at)
    for number, (context, answer, label) in enumerate(
        (
            (fitted, "The bridge was opened in 1900 by Anna Berg.", 0),
            (fitted, "The bridge was opened in 1950 by Anna Berg.", 1),
            (held_out, "The bridge crosses the river Elde held out of it.", 0),
        )
    ):
        found = {"id": f"{name}-{number}", "context": context, "answer": answer, "label": label, "spans": None}
        yield json.dumps(found) + "\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with every set, made up."""
    for at, name in enumerate(SETS):
        (tmp_path / f"{name}.jsonl").write_text("".join(_lines(name, at)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def own(data: Path) -> Path:
    """A file of two claims on a passage of the first set."""
    found = {"set": SETS[0], "id": f"{SETS[0]}-0", "first": 0, "count": 1}
    claims = {"supported": ["Anna Berg opened it."], "unsupported": [["entity", "Carl Berg opened it."]]}
    with gzip.open(data / "own.jsonl.gz", "wt", encoding="utf-8") as out:
        out.write(json.dumps(found | claims) + "\n")
    return data / "own.jsonl.gz"


def test_our_claims_get_their_passage_back(data: Path, own: Path) -> None:
    (found,) = read_written(own, data)
    assert found.passage == CONTEXT.format(found.passage.split()[4]).split(". ")[0] + "."
    assert (found.supported, found.unsupported) == (["Anna Berg opened it."], [("entity", "Carl Berg opened it.")])


def test_row_that_is_gone_is_an_error(data: Path, own: Path) -> None:
    (data / f"{SETS[0]}.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(KeyError):
        read_written(own, data)


def test_pairs_are_assembled_of_every_origin(data: Path, own: Path) -> None:
    pairs = assembled(data, own, count=6, repeat=1)
    assert {pair.origin for pair in pairs} == {*SETS, "written", "sentence", "perturbed", "same"}
    assert all("held out" not in pair.claim for pair in pairs)
    assert sum(pair.origin == SETS[0] and pair.truth == 0 for pair in pairs) == 1
    assert sum(pair.origin == SETS[0] and pair.truth == 1 for pair in pairs) == 1
    assert all(_is_well_formed(pair) for pair in pairs)
    (wrong,) = (pair for pair in pairs if pair.origin == "written" and not pair.truth)
    assert wrong.bad == [(0, 4)]
    assert "Anna Berg" in wrong.evidence


def _is_well_formed(pair: Pair) -> bool:
    inside = all(0 <= low < high <= len(pair.claim) for low, high in pair.bad or ())
    return inside and bool(pair.evidence) and not (pair.truth and pair.bad)


def test_without_our_claims_the_others_are_assembled(data: Path) -> None:
    assert {pair.origin for pair in assembled(data, None, count=6, repeat=1)} >= {*SETS, "perturbed", "same"}


def test_claims_in_the_repository_name_their_passage_and_hold_none() -> None:
    path = Path(__file__).parents[2] / "training" / "written.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    assert all(set(each) == {"set", "id", "first", "count", "supported", "unsupported"} for each in found)
    assert all(kind.islower() and text for each in found for kind, text in each["unsupported"])
    assert len(found) == 3901
