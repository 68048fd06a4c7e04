"""The model that ships: it loads, is bounded, and decides plain cases."""

from importlib.resources import files
from pathlib import Path

import onnx
import pytest

from bench.everyday import by_judge, figures, measure
from groundwire.backends.loading import load_judge
from groundwire.verifiers.entailment import Question

SHIPPED = Path(str(files("groundwire.backends").joinpath("shipped")))
LEAFLET = (
    "Adults take one tablet once daily with food. Do not take more than two tablets within 24 hours. Children under 12 "
    "must not take this medicine. Store below 25 degrees. The tenant may not terminate the contract before March."
)


@pytest.mark.parametrize(
    ("suite", "false_alarms", "misses", "auroc"),
    [("everyday", 0.12, 0.21, 0.92), ("everyday_open", 0.13, 0.26, 0.87)],
)
def test_the_model_separates_right_from_wrong_on_everyday_documents(
    suite: str, false_alarms: float, misses: float, auroc: float
) -> None:
    """Limits are as measured, so that new weights or rules that lose something show it."""
    found = figures(measure(by_judge(load_judge()), suite))
    assert found["auroc"] > auroc
    assert found["false_alarms"] <= false_alarms
    assert found["misses"] <= misses


def test_its_sums_of_products_saturate_on_no_processor() -> None:
    graph = onnx.load(SHIPPED / "model.onnx").graph
    quantised = {each.data_type for each in graph.initializer if each.name.endswith("_quantized")}
    assert quantised == {onnx.TensorProto.UINT8}


def test_an_answer_is_the_same_alone_and_in_a_batch() -> None:
    model = load_judge().model
    questions = [Question(f"Adults take {n} tablets.", "", LEAFLET) for n in ("one", "2", "three hundred")]
    assert model.entail(questions) == [found for each in questions for found in model.entail([each])]


@pytest.mark.parametrize("text", ["", "\ud800", "[SEP] [CLS] [PAD]", "日本語 🟦", "x" * 5000])
def test_any_text_is_read(text: str) -> None:
    for question in (Question(text, "", LEAFLET), Question("It is.", text, text)):
        (found,) = load_judge().model.entail([question])
        assert 0 <= found.contradicted <= 1 - found.supported + 1e-6
