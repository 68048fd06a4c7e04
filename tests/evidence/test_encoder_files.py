"""ST4: where an encoder's files are found, and what is said when they are not."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_models import CORPUS, bert_folder

from proxy.config import Encoder
from proxy.errors import ConfigError
from proxy.evidence.files import find_files
from proxy.evidence.loading import load_encoder, load_verifiers
from proxy.verification.alignment.model import Blend
from proxy.verification.judge import VERIFIERS


def problem(model: Path | str, file: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        find_files(str(model), None, file)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0].replace(str(model), "FOLDER")


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_int8.onnx"])
def test_a_graph_is_found_where_exporters_put_it(tmp_path: Path, name: str):
    bert_folder(tmp_path, file=name)
    assert find_files(str(tmp_path), None, None).graph == tmp_path / name


def test_a_graph_that_is_named_wins(tmp_path: Path):
    bert_folder(tmp_path)
    bert_folder(tmp_path, file="onnx/model_quantized.onnx")
    assert find_files(str(tmp_path), None, None).graph == tmp_path / "model.onnx"
    named = find_files(str(tmp_path), None, "onnx/model_quantized.onnx")
    assert named.graph == tmp_path / "onnx/model_quantized.onnx"


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("config.json", "encoder.model: FOLDER holds no config.json"),
        ("tokenizer.json", "encoder.model: FOLDER holds no tokenizer.json"),
        (
            "model.onnx",
            "encoder.model: FOLDER holds no model.onnx or onnx/model.onnx "
            "(optimum-cli export onnx --model MODEL FOLDER writes one)",
        ),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, missing: str, told: str):
    (bert_folder(tmp_path) / missing).unlink()
    assert problem(tmp_path) == told


def test_a_named_graph_that_is_missing_is_told(cross_encoder: Path):
    assert "holds no model_fp16.onnx" in problem(cross_encoder, "model_fp16.onnx")


@pytest.mark.parametrize(("text", "told"), [("[]", "holds no JSON object"), ("{", "cannot be read")])
def test_a_config_that_is_none_is_told(tmp_path: Path, text: str, told: str):
    (bert_folder(tmp_path) / "config.json").write_text(text)
    assert told in problem(tmp_path)


@pytest.mark.parametrize("model", ["./no/such/folder", "no such folder", "/no/such", "one-word"])
def test_what_is_neither_folder_nor_hub_id_is_told(model: str):
    assert problem(model) == "encoder.model: FOLDER is neither a folder nor a hub id such as owner/name"


def test_no_encoder_is_the_embedded_verifiers():
    assert load_verifiers(Encoder()) is VERIFIERS


def test_an_encoder_stands_behind_the_statement_verifier_only(cross_encoder: Path):
    named = dict(load_verifiers(Encoder(model=str(cross_encoder))))
    shipped = dict(VERIFIERS)
    assert list(named) == list(shipped)
    assert [name for name in named if named[name] is not shipped[name]] == ["statement"]


@pytest.mark.parametrize("key", Encoder.model_fields)
def test_every_setting_of_an_encoder_is_part_of_what_verdicts_are_kept_under(key: str):
    other = {"max_tokens": 128, "asked_from": 0.3, "asked_below": 0.7, "budget": 1.0, "template": "A {evidence}"}
    settings = Encoder(model="owner/name")
    assert settings.model_copy(update={key: other.get(key, "another")}).policy != settings.policy


def test_an_encoder_is_loaded_once_in_a_process(cross_encoder: Path):
    settings = Encoder(model=str(cross_encoder))
    assert load_encoder(settings) is load_encoder(Encoder(model=str(cross_encoder)))


FITTED = {"model": 0.8, "encoder": 0.3, "bias": -0.1, "bars": {"strict": 0.7, "balanced": 0.5, "lenient": 0.2}}


def test_what_an_encoder_counts_is_read_beside_it_or_from_the_file_that_is_named(tmp_path: Path, cross_encoder: Path):
    folder = shutil.copytree(cross_encoder, tmp_path / "fitted")
    (folder / "groundwire.json").write_text(json.dumps(FITTED))
    (tmp_path / "other.json").write_text(json.dumps(FITTED | {"bias": 0.5}))
    assert load_encoder(Encoder(model=str(cross_encoder)))[1] == Blend()
    assert load_encoder(Encoder(model=str(folder)))[1] == Blend(**FITTED)
    named = Encoder(model=str(folder), weights=str(tmp_path / "other.json"))
    assert load_encoder(named)[1] == Blend(**FITTED | {"bias": 0.5})


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "No such file"), ("{", "holds no weights for an encoder"), ('{"model": 1}', "holds no weights")],
    ids=["missing", "no JSON", "others"],
)
def test_weights_that_are_none_are_told(tmp_path: Path, cross_encoder: Path, text: str | None, told: str):
    path = tmp_path / "weights.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_encoder(Encoder(model=str(cross_encoder), weights=str(path)))
    assert f"encoder.weights: {path}" in caught.value.problems[0]
    assert told in caught.value.problems[0]


def test_settings_decide_how_an_encoder_reads(cross_encoder: Path):
    plain, _ = load_encoder(Encoder(model=str(cross_encoder)))
    wrapped, _ = load_encoder(Encoder(model=str(cross_encoder), template="The wind {evidence} off the coast."))
    swapped, _ = load_encoder(Encoder(model=str(cross_encoder), supported_label="neutral"))
    assert wrapped(CORPUS[2], "farm stands") == plain(CORPUS[2], "The wind farm stands off the coast.")
    assert swapped(CORPUS[2], CORPUS[0]).support + plain(CORPUS[2], CORPUS[0]).support < 1
