"""training.public: the pairs of sets for natural language inference."""

import json
from collections import Counter
from pathlib import Path

from training.example import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, UNSUPPORTED
from training.public import paired


def _write(folder: Path, name: str, rows: list[tuple[str, str, str]]) -> None:
    lines = [json.dumps({"context": one, "answer": two, "meta": {"fine": fine}}) for one, two, fine in rows]
    (folder / f"{name}.jsonl").write_text("\n".join(lines))


def test_a_folder_without_pairs_has_no_examples(tmp_path: Path):
    assert list(paired(tmp_path)) == []


def test_a_pair_has_the_label_that_its_set_gives(tmp_path: Path):
    premises = [f"Number {at} is in the room." for at in range(40)]
    _write(tmp_path, "multinli", [(each, f"{each} Now.", fine) for each in premises for fine in "ECN"])
    found = list(paired(tmp_path))
    assert Counter(each.label for each in found) == {SUPPORTED: 40, CONTRADICTED: 40, UNSUPPORTED: 40}
    assert all(each.claim.removesuffix(" Now.") in each.evidence for each in found)
    among = sum(each.evidence.count("Number") > 1 for each in found)
    assert 20 < among < 70


def test_a_contradiction_of_two_captions_is_only_not_supported(tmp_path: Path):
    _write(tmp_path, "snli", [(f"A dog runs {at}.", f"A man sleeps {at}.", "C") for at in range(6)])
    assert {each.label for each in paired(tmp_path)} == {NOT_SUPPORTED}
