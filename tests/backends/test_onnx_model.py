"""Models of both kinds give the probabilities that an independent computation gives."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save
from tokenizers import Tokenizer

from groundwire.backends.models import Profile, find_files
from groundwire.backends.onnx import OnnxModel
from groundwire.backends.pairs import claim_first_matched
from groundwire.errors import ConfigError
from groundwire.verifiers.entailment import Entailment, Question
from tests.backends.tiny_models import (
    CORPUS,
    POSITIONS,
    bert,
    bert_folder,
    bert_states,
    bert_weights,
    modernbert,
    modernbert_folder,
    modernbert_weights,
    softmax,
)

EVIDENCE, CLAIM = " ".join(CORPUS[:2]), CORPUS[2]
PAIRS = [
    (EVIDENCE, CLAIM),
    ("Norrin Energy paid.", "The operator paid for the harbour in 2019."),
    ("", "The wind farm stands off the coast."),
    ("Ünïcode, 日本語 and 🟦 in the evidence.", "Strøm — 42 % — 🟦 “quoted”."),
]


def load(folder: Path, file: str | None = None, **format_: Any) -> OnnxModel:
    return OnnxModel(find_files(str(folder), None, file), Profile(str(folder), **format_))


def ask(model: OnnxModel, claim: str, evidence: str) -> Entailment:
    (found,) = model.entail([Question(claim, "", evidence)])
    return found


def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def doubts(folder: Path, evidence: str, claim: str) -> list[tuple[str, float]]:
    """Return every token of the claim with its probability of being hallucinated, by numpy."""
    tokenizer = tokenizer_of(folder)
    pair = tokenizer.encode(evidence, claim)
    shares = softmax(modernbert(modernbert_weights(tokenizer.get_vocab_size()), pair.ids))
    told = zip(pair.offsets, pair.sequence_ids, shares[:, 1], strict=True)
    return [(claim[start:end], float(share)) for (start, end), sequence, share in told if sequence == 1]


@pytest.mark.parametrize(("evidence", "claim"), PAIRS, ids=["long", "short", "no evidence", "scripts"])
def test_a_token_classifier_gives_what_numpy_gives(token_classifier: Path, evidence: str, claim: str):
    worst = max(share for token, share in doubts(token_classifier, evidence, claim) if any(map(str.isalnum, token)))
    assert ask(load(token_classifier), claim, evidence).supported == pytest.approx(1 - worst, abs=1e-4)


@pytest.mark.parametrize(("evidence", "claim"), PAIRS, ids=["long", "short", "no evidence", "scripts"])
def test_a_cross_encoder_gives_what_numpy_gives(cross_encoder: Path, evidence: str, claim: str):
    tokenizer = tokenizer_of(cross_encoder)
    pair = tokenizer.encode(evidence, claim)
    shares = softmax(bert(bert_weights(tokenizer.get_vocab_size()), pair.ids, pair.type_ids))
    opinion = ask(load(cross_encoder), claim, evidence)
    assert (opinion.supported, opinion.doubted) == (pytest.approx(shares[1], abs=1e-5), ())


def test_doubted_tokens_are_merged_into_whole_words_and_phrases(token_classifier: Path):
    doubted = [token.strip() for token, share in doubts(token_classifier, EVIDENCE, CLAIM) if share >= 0.5]
    told = ask(load(token_classifier), CLAIM, EVIDENCE).doubted
    assert told
    assert all(phrase in CLAIM for phrase in told)
    words = {word for phrase in told for word in phrase.split()}
    assert all(any(token in word for word in words) for token in doubted if token.isalnum())
    assert words < set(CLAIM.rstrip(".").split())


def test_a_model_that_doubts_nothing_supports_and_one_that_doubts_all_names_it(tmp_path: Path):
    sure = ask(load(modernbert_folder(tmp_path / "sure", lean=20.0)), CLAIM, EVIDENCE)
    unsure = ask(load(modernbert_folder(tmp_path / "unsure", lean=-20.0)), CLAIM, EVIDENCE)
    assert (sure.supported, sure.doubted) == (pytest.approx(1.0, abs=1e-6), ())
    assert (unsure.supported, unsure.doubted) == (pytest.approx(0.0, abs=1e-6), (CLAIM.rstrip("."),))


def test_a_single_logit_is_the_probability_of_its_label(tmp_path: Path):
    folder = bert_folder(tmp_path, labels=("LABEL_0",))
    tokenizer = tokenizer_of(folder)
    pair = tokenizer.encode(EVIDENCE, CLAIM)
    logit = bert(bert_weights(tokenizer.get_vocab_size(), labels=1), pair.ids, pair.type_ids)[0]
    support = ask(load(folder, supported_label="LABEL_0"), CLAIM, EVIDENCE).supported
    assert support == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)


def test_an_encoder_that_reads_what_matches_gives_what_numpy_gives(tmp_path: Path):
    folder = bert_folder(tmp_path, labels=("supported",), matched=True)
    tokenizer = tokenizer_of(folder)
    weights = bert_weights(tokenizer.get_vocab_size(), labels=1, matched=True)
    pair = claim_first_matched(tokenizer, CLAIM, "", EVIDENCE, 96)
    states = bert_states(weights, pair.ids, pair.types)
    wrong = 1 / (1 + np.exp(-(states @ weights["token"] + weights["token.bias"])[:, 0]))
    doubted = {CLAIM[slice(*place)] for place, share in zip(pair.places, wrong, strict=True) if place and share >= 0.5}
    opinion = ask(load(folder), CLAIM, EVIDENCE)
    assert opinion.supported == pytest.approx(1 / (1 + np.exp(-bert(weights, pair.ids, pair.types)[0])), abs=1e-5)
    assert {word for phrase in opinion.doubted for word in re.findall(r"\w+", phrase)} >= doubted - {"."}
    assert opinion.doubted


def test_a_model_that_reads_fewer_tokens_is_given_fewer(tmp_path: Path):
    model = load(bert_folder(tmp_path, labels=("supported",), matched=True))
    assert len(model._pair(Question(CLAIM, "", " ".join(CORPUS * 12))).ids) == 96


def test_the_lead_is_read_with_the_claim(cross_encoder: Path):
    model = load(cross_encoder)
    with_lead, whole = (
        model.entail([Question("It stands.", "The farm is old.", EVIDENCE)]),
        model.entail([Question("The farm is old. It stands.", "", EVIDENCE)]),
    )
    assert with_lead[0].supported == whole[0].supported


def test_the_label_of_a_contradiction_is_recognised(tmp_path: Path):
    folder = bert_folder(tmp_path, labels=("contradiction", "entailment", "neutral"))
    tokenizer = tokenizer_of(folder)
    pair = tokenizer.encode(EVIDENCE, CLAIM)
    shares = softmax(bert(bert_weights(tokenizer.get_vocab_size()), pair.ids, pair.type_ids))
    found = ask(load(folder), CLAIM, EVIDENCE)
    assert (found.supported, found.contradicted) == (
        pytest.approx(shares[1], abs=1e-5),
        pytest.approx(shares[0], abs=1e-5),
    )


def test_a_template_is_placed_around_the_evidence(cross_encoder: Path):
    plain, wrapped = load(cross_encoder), load(cross_encoder, template="the {evidence} farm")
    assert ask(wrapped, CLAIM, "wind") == ask(plain, CLAIM, "the wind farm")


def test_a_graph_for_one_length_is_given_that_length(token_classifier: Path, tmp_path: Path):
    encoder, free = load(modernbert_folder(tmp_path, length=96)), load(token_classifier)
    for evidence, claim in PAIRS:
        fixed, any_length = ask(encoder, claim, evidence), ask(free, claim, evidence)
        assert (fixed.supported, fixed.doubted) == (pytest.approx(any_length.supported, abs=1e-5), any_length.doubted)
    assert len(encoder._pair(Question(CLAIM, "", " ".join(CORPUS * 4))).ids) == 96


def test_an_encoder_serves_several_threads_at_once(token_classifier: Path):
    encoder = load(token_classifier)
    alone = [ask(encoder, claim, evidence) for evidence, claim in PAIRS]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda pair: ask(encoder, pair[1], pair[0]), PAIRS * 10))
    assert together == alone * 10


def test_an_encoder_starts_no_thread(token_classifier: Path):
    before = len(os.listdir("/proc/self/task"))
    encoder = load(token_classifier, max_tokens=4096)
    ask(encoder, CLAIM, " ".join(CORPUS * 30))
    assert len(os.listdir("/proc/self/task")) <= before


def test_a_tokenizer_that_truncates_and_pads_is_read_without_either(cross_encoder: Path, tmp_path: Path):
    tokenizer = tokenizer_of(cross_encoder)
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=64)
    for name in ("model.onnx", "config.json"):
        (tmp_path / name).write_bytes((cross_encoder / name).read_bytes())
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert ask(load(tmp_path), CLAIM, EVIDENCE) == ask(load(cross_encoder), CLAIM, EVIDENCE)


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"max_position_embeddings": 96}, 96),
        ({"max_position_embeddings": 98, "model_type": "xlm-roberta", "pad_token_id": 1}, 96),
        ({}, POSITIONS),
    ],
    ids=["bert", "roberta counts from behind its padding", "as given"],
)
def test_a_model_never_reads_more_than_it_has_positions_for(tmp_path: Path, config: dict[str, Any], limit: int):
    model = load(bert_folder(tmp_path, **config), max_tokens=4096)
    assert limit - 2 <= len(model._pair(Question(CLAIM, "", " ".join(CORPUS * 12))).ids) <= limit
    assert ask(model, CLAIM, " ".join(CORPUS * 12))


def wants_pictures(folder: Path) -> None:
    node = helper.make_node("Identity", ["pixel_values"], ["logits"])
    given = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3])]
    made = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph([node], "pictures", given, made)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), folder / "model.onnx")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "model.onnx").write_bytes(b"not a graph"), "cannot be used"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "cannot be used"),
        (wants_pictures, "its graph asks for pixel_values"),
        (lambda folder: bert_folder(folder, labels=("LABEL_0", "LABEL_1")), "the one of its labels (LABEL_0, LABEL_1)"),
        (lambda folder: bert_folder(folder, id2label={"0": "entailment", "1": "neutral"}), "its graph has 3 labels"),
        (lambda folder: bert_folder(folder, groundwire={"layout": "odd"}), "its layout odd is none of evidence_first"),
    ],
    ids=[
        "no graph",
        "no tokenizer",
        "a model of pictures",
        "labels that do not tell",
        "labels of another model",
        "an unknown layout",
    ],
)
def test_a_model_that_cannot_be_used_is_refused_with_its_folder(tmp_path: Path, spoil: Any, told: str):
    spoil(bert_folder(tmp_path))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert str(tmp_path) in caught.value.problems[0]
    assert told in caught.value.problems[0]
