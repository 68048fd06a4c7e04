"""Lookup of the files of an entailment model, and the errors when they are missing."""

import json
import shutil
from pathlib import Path

import pytest

from groundwire.backends import loading
from groundwire.backends.loading import LoadingModel, judge_identity, load_judge, start_judge
from groundwire.backends.models import find_files
from groundwire.backends.vectors import WordVectors
from groundwire.config import JudgeSettings
from groundwire.errors import ConfigError
from groundwire.judge import Judge
from groundwire.verifiers.entailment import NoModel, Question
from groundwire.verifiers.signals import Combination, Signals
from tests.backends.tiny_models import CORPUS, bert_folder


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
        ("config.json", "judge.model: FOLDER holds no config.json"),
        ("tokenizer.json", "judge.model: FOLDER holds no tokenizer.json"),
        (
            "model.onnx",
            "judge.model: FOLDER holds no model.onnx or onnx/model.onnx "
            "(optimum-cli export onnx --model MODEL FOLDER writes one)",
        ),
    ],
)
def test_a_missing_file_of_the_model_is_named(tmp_path: Path, missing: str, told: str):
    (bert_folder(tmp_path) / missing).unlink()
    assert problem(tmp_path) == told


def test_a_configured_graph_that_is_missing_is_named(cross_encoder: Path):
    assert "holds no model_fp16.onnx" in problem(cross_encoder, "model_fp16.onnx")


def test_a_graph_outside_the_folder_is_missing(cross_encoder: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.onnx"
    elsewhere.write_bytes(b"")
    assert "holds no" in problem(cross_encoder, str(elsewhere))


@pytest.mark.parametrize(("text", "told"), [("[]", "holds no JSON object"), ("{", "cannot be read")])
def test_an_invalid_config_of_the_model_is_refused(tmp_path: Path, text: str, told: str):
    (bert_folder(tmp_path) / "config.json").write_text(text)
    assert told in problem(tmp_path)


@pytest.mark.parametrize("model", ["./no/such/folder", "no such folder", "/no/such", "one-word"])
def test_a_model_that_is_neither_folder_nor_hub_id_is_refused(model: str):
    assert problem(model) == "judge.model: FOLDER is neither a folder nor a hub id such as owner/name"


def test_no_model_is_loaded_where_it_is_switched_off():
    for judge in (load_judge(JudgeSettings(by="off")), start_judge(JudgeSettings(by="off"))):
        assert judge == Judge(judge.model)
        assert isinstance(judge.model, NoModel)
    assert judge_identity(JudgeSettings(by="off")) == ""


@pytest.mark.parametrize(
    ("key", "value"), [("max_tokens", 128), ("template", "A {evidence}"), ("supported_label", "neutral")]
)
def test_settings_that_change_verdicts_change_the_identity(cross_encoder: Path, key: str, value: object):
    settings = JudgeSettings(model=str(cross_encoder))
    assert judge_identity(settings.model_copy(update={key: value})) != judge_identity(settings)


def test_another_fit_changes_the_identity(cross_encoder: Path, tmp_path: Path):
    (tmp_path / "other.json").write_text(json.dumps(FITTED))
    settings = JudgeSettings(model=str(cross_encoder), weights=str(tmp_path / "other.json"))
    judge_identity.cache_clear()
    before = judge_identity(settings)
    (tmp_path / "other.json").write_text(json.dumps(FITTED | {"bias": 0.7}))
    judge_identity.cache_clear()
    assert judge_identity(settings) != before


def test_other_vectors_are_another_judge(tmp_path: Path, cross_encoder: Path, monkeypatch: pytest.MonkeyPatch):
    settings = JudgeSettings(model=str(cross_encoder))
    judge_identity.cache_clear()
    before = judge_identity(settings)
    (tmp_path / "vectors.npz").write_bytes(b"others")
    monkeypatch.setattr(loading, "shipped_vectors", lambda: WordVectors(tmp_path))
    judge_identity.cache_clear()
    assert judge_identity(settings) != before
    judge_identity.cache_clear()


def test_a_model_is_loaded_once_in_a_process(cross_encoder: Path):
    settings = JudgeSettings(model=str(cross_encoder))
    assert load_judge(settings) is load_judge(JudgeSettings(model=str(cross_encoder)))


WEIGHTS = {"model": 0.8, "coverage": 0.3, "names": -0.5, "derived": 0.2, "absent": -0.1, "wrong": -1.0}
FITTED = {
    "weights": WEIGHTS,
    "bias": -0.1,
    "bars": {"strict": 0.7, "balanced": 0.5, "lenient": 0.2},
    "contradicted": 0.6,
}


def fitted(bias: float = -0.1) -> Combination:
    return Combination(Signals(**WEIGHTS), bias, {"strict": 0.7, "balanced": 0.5, "lenient": 0.2}, 0.6)


def test_a_fit_is_read_from_the_model_folder_or_the_configured_file(tmp_path: Path, cross_encoder: Path):
    folder = shutil.copytree(cross_encoder, tmp_path / "fitted")
    (folder / "groundwire.json").write_text(json.dumps(FITTED))
    (tmp_path / "other.json").write_text(json.dumps(FITTED | {"bias": 0.5}))
    assert load_judge(JudgeSettings(model=str(cross_encoder))).combination == Combination()
    assert load_judge(JudgeSettings(model=str(folder))).combination == fitted()
    named = JudgeSettings(model=str(folder), weights=str(tmp_path / "other.json"))
    assert load_judge(named).combination == fitted(0.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "No such file"), ("{", "Expecting"), ('{"model": 1}', "holds no weights")],
    ids=["missing", "no JSON", "others"],
)
def test_a_file_that_holds_no_fit_is_named(tmp_path: Path, cross_encoder: Path, text: str | None, told: str):
    path = tmp_path / "weights.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_judge(JudgeSettings(model=str(cross_encoder), weights=str(path)))
    assert f"judge.weights: {path}" in caught.value.problems[0]
    assert told in caught.value.problems[0]


def test_settings_decide_how_a_model_is_read(cross_encoder: Path):
    def support(evidence: str, **settings: object) -> float:
        judge = load_judge(JudgeSettings(model=str(cross_encoder), **settings))  # type: ignore[arg-type]
        return judge.model.entail([Question(CORPUS[2], "", evidence)])[0].supported

    whole = "The wind farm stands off the coast."
    assert support("farm stands", template="The wind {evidence} off the coast.") == support(whole)
    assert support(CORPUS[0], supported_label="neutral") + support(CORPUS[0]) < 1


def test_a_server_loads_its_model_in_the_background(cross_encoder: Path):
    model = start_judge(JudgeSettings(model=str(cross_encoder))).model
    assert isinstance(model, LoadingModel)
    model.wait(60)
    assert model.state == "ready"
    assert model.entail([Question(CORPUS[2], "", CORPUS[0])])


def test_a_model_that_cannot_be_loaded_has_failed(tmp_path: Path):
    folder = bert_folder(tmp_path)
    (folder / "model.onnx").write_bytes(b"not a graph")
    model = start_judge(JudgeSettings(model=str(folder))).model
    assert isinstance(model, LoadingModel)
    model.wait(60)
    assert model.state == "failed"
    with pytest.raises(RuntimeError, match="not loaded"):
        model.entail([])
