"""Claim schemas: reading, splitting and filling them, and balancing surface cues."""

import gzip
import json
import random
from pathlib import Path

import pytest

from training.corpus import composed, cue_weights, cues, draw_examples, turned
from training.example import CONTRADICTED, SUPPORTED, UNSUPPORTED, changed, difference
from training.schemas import PARTS, Schema, fill, read_schemas


def line(number: int, **fields: object) -> str:
    stored = {
        "topic": f"t{number}",
        "slots": {"A": ["Ann", "Bea", "Cid"], "N": ["3", "4"]},
        "evidence": [f"{{A}} has {{N}} boats in harbour {number}.", f"Boats of {{A}}, harbour {number}: {{N}}"],
        "supported": ["{A} owns {N} boats.", "{A} does not own fewer than {N} boats."],
        "contradicted": ["{A~} owns all boats of {A}.", "{A} never owned a boat."],
        "unsupported": ["{A} will sell the boats.", "{A} sails because of the wind."],
    }
    return json.dumps(stored | fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.jsonl").write_text("\n".join(line(n) for n in range(60)))
    with gzip.open(tmp_path / "two.jsonl.gz", "wt") as packed:
        packed.write("\n".join(line(n) for n in range(60, 120)) + "\n" + '{"slots": {')
    return tmp_path


def test_every_schema_is_in_exactly_one_part(folder: Path):
    every = {each.evidence[0] for each in read_schemas(folder, "")}
    parts = [{each.evidence[0] for each in read_schemas(folder, part)} for part in PARTS]
    assert len(every) == 120
    assert set.union(*parts) == every
    assert sum(map(len, parts)) == 120
    assert all(parts)


def test_slots_are_the_same_on_both_sides_and_others_differ():
    chance = random.Random(1)
    schema = Schema("x", {"A": ["Ann", "Bea"], "N": ["3"]}, ["{A}"], [])
    for _ in range(20):
        values, others = schema.draw(chance)
        assert others["A"] != values["A"]
        filled = fill("{A}, {A~} and {N} of {X} {", values, others)
        assert filled == f"{values['A']}, {others['A']} and 3 of {{X}} {{"


def test_each_line_begins_with_a_capital():
    assert fill("{A} is here.\n{A} left. she", {"A": "the boat"}, {}) == "The boat is here.\nThe boat left. she"


def test_a_pass_has_every_claim_once_with_its_evidence(folder: Path):
    schemas = list(read_schemas(folder, ""))[:20]
    examples = list(draw_examples(schemas, 3, plain=True))
    assert len(examples) == 20 * 6
    assert sorted({each.label for each in examples}) == [0, 1, 2]
    assert all("arbour" in each.evidence for each in examples)
    assert [each.claim for each in draw_examples(schemas, 3)] == [each.claim for each in draw_examples(schemas, 3)]


def test_the_wrong_part_of_a_claim_is_marked_by_its_right_twin():
    right, wrong = "The fee is paid once a year.", "The fee is paid twice a year."
    assert [wrong[low:high] for low, high in changed(right, wrong)] == ["twice"]
    assert difference([right], wrong) == changed(right, wrong)
    assert difference(["Something else entirely is said here."], wrong) is None


def test_weighted_cues_do_not_predict_the_label():
    claims = [("supported", "It is not so.")] * 60 + [("contradicted", "It is not so.")] * 30
    claims += [("supported", "It is.")] * 40 + [("contradicted", "It is.")] * 70
    weights = cue_weights([Schema("x", {}, ["e"], claims)])

    def share(text: str) -> float:
        counted = {label: weights[label, cues(text)] * claims.count((label, text)) for label, _ in set(claims)}
        return counted["supported"] / sum(counted.values())

    assert share("It is not so.") == pytest.approx(share("It is."), abs=0.04)


def facts(number: int) -> list[dict[str, list[str]]]:
    return [
        {
            "supported": [f"Boat {each} is red.", f"Red is the colour of boat {each}."],
            "contradicted": [f"Boat {each} is blue."],
            "unsupported": [f"Boat {each} is old."],
        }
        for each in range(number)
    ]


def test_claims_of_facts_are_claims_of_the_schema(tmp_path: Path):
    (tmp_path / "facts.jsonl").write_text(json.dumps({"evidence": ["Red boats."], "facts": facts(3)}))
    (schema,) = read_schemas(tmp_path, "")
    assert len(schema.claims) == 12
    assert [len(fact) for fact in schema.facts] == [4, 4, 4]


def test_documents_of_facts_give_a_claim_every_label(tmp_path: Path):
    (tmp_path / "facts.jsonl").write_text(json.dumps({"evidence": ["Nothing."], "facts": facts(5)}))
    (schema,) = read_schemas(tmp_path, "")
    labels: dict[str, set[int]] = {}
    for seed in range(40):
        for example in composed(schema, random.Random(seed)):
            boat = next(word for word in example.claim.rstrip(".").split() if word.isdigit())
            states_red = f"Boat {boat} is red." in example.evidence or f"colour of boat {boat}." in example.evidence
            states_blue = f"Boat {boat} is blue." in example.evidence
            same, other = (states_blue, states_red) if "blue" in example.claim else (states_red, states_blue)
            assert (same, other) == {SUPPORTED: (True, False), CONTRADICTED: (False, True)}.get(
                example.label, (False, False)
            )
            labels.setdefault(example.claim, set()).add(example.label)
    assert labels["Boat 1 is red."] == {SUPPORTED, CONTRADICTED, UNSUPPORTED}


def test_twins_contradict_each_other():
    right, wrong = "The library closes at six on Fridays.", "The library closes at four on Fridays."
    schema = Schema("x", {}, ["Text."], [("supported", right), ("contradicted", wrong)])
    found = [each for seed in range(100) for each in turned(schema, [right], {}, {}, random.Random(seed))]
    assert {(each.claim, each.evidence) for each in found} == {(right, wrong), (wrong, right)}
    assert all(each.label == CONTRADICTED and each.wrong for each in found)
