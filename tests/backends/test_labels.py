"""Recognition of labels that mean "supported", by their names."""

import pytest

from groundwire.backends.onnx import supporting


def places(*labels: str, per_token: bool = False, named: str | None = None) -> set[str]:
    found = supporting(dict(enumerate(labels)), per_token=per_token, named=named)
    return {labels[place] for place in found}


@pytest.mark.parametrize(
    ("labels", "supported"),
    [
        (("contradiction", "entailment", "neutral"), {"entailment"}),
        (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), {"ENTAILMENT"}),
        (("Contradict", "Entailed", "Neutral"), {"Entailed"}),
        (("entailment", "not_entailment"), {"entailment"}),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), {"SUPPORTS"}),
        (("hallucinated", "consistent"), {"consistent"}),
        (("ok", "hallucination"), {"ok"}),
        (("Not-Hallucinated", "Hallucinated"), {"Not-Hallucinated"}),
    ],
    ids=", ".join,
)
def test_a_label_of_a_pair_is_known_by_its_name(labels: tuple[str, ...], supported: set[str]):
    assert places(*labels) == supported


@pytest.mark.parametrize(
    ("labels", "supported"),
    [
        (("LABEL_0", "LABEL_1"), {"LABEL_0"}),
        (("0", "1"), {"0"}),
        (("O", "B-HALLUCINATION", "I-HALLUCINATION"), {"O"}),
        (("I-Baseless", "O", "I-Contradiction"), {"O"}),
        (("supported", "hallucinated"), {"supported"}),
    ],
    ids=", ".join,
)
def test_a_label_of_a_token_is_known_by_its_name_or_by_custom(labels: tuple[str, ...], supported: set[str]):
    assert places(*labels, per_token=True) == supported


def test_a_configured_label_overrides_the_names_of_labels():
    assert places("LABEL_0", "LABEL_1", named="label_1") == {"LABEL_1"}
    assert places("entailment", "neutral", named="neutral") == {"neutral"}
    assert places("score", named="score") == {"score"}


@pytest.mark.parametrize(
    ("labels", "per_token", "named"),
    [
        (("LABEL_0", "LABEL_1"), False, None),
        (("LABEL_0", "LABEL_1", "LABEL_2"), True, None),
        (("B-PER", "I-PER", "B-ORG"), True, None),
        (("positive", "negative"), False, None),
        (("score",), False, None),
        (("entailment", "neutral"), False, "yes"),
        (("contradiction", "neutral"), False, None),
    ],
    ids=["a pair without names", "three without names", "names of people", "sentiment", "one", "no such", "none"],
)
def test_ambiguous_labels_are_refused_by_name(labels: tuple[str, ...], per_token: bool, named: str | None):
    with pytest.raises(ValueError, match=", ".join(labels)):
        places(*labels, per_token=per_token, named=named)
