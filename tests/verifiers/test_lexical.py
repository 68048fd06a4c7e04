"""ST1, CF1, CX5: what the learned model reads of a claim, and what it makes of it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import steps

from groundwire.domain import Claim, Source
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.verifiers.lexical import SIGNS, Bar, Features, read, shipped
from groundwire.verifiers.statement import assess

TEXT = (
    "The Harwick wind farm stands 12 km off the coast and came into service in May 2019. "
    "Its operator, Norrin Energy, paid £640 million for construction."
)
PADDING = " ".join(f"Recipe {number}: boil the potatoes and add a little butter." for number in range(400))
CONTEXT = Context([Source("farm", "source", TEXT)])


def features_of(text: str, context: Context = CONTEXT) -> Features:
    found = assess(Claim("c1", text, 0, len(text)), context, Policy())
    assert found is not None
    return found[1]


def probability(text: str, context: Context = CONTEXT) -> float:
    return shipped().probability(features_of(text, context))


def test_what_a_source_says_in_these_words_is_found_whole():
    found = features_of("Norrin Energy paid £640 million for construction.")
    assert (found.found, found.by_rule, found.new_names, found.new_end) == (1, 1, 0, 0)
    assert found.wording > 0.7


def test_a_name_that_stands_nowhere_is_new():
    assert features_of("The wind farm belongs to Halden Power.").new_names > 0


def test_an_invented_end_is_seen():
    assert features_of("The wind farm stands off the coast and attracts curious tourists.").new_end > 0.5


@pytest.mark.parametrize(
    ("likelier", "than"),
    [
        ("The wind farm came into service in May 2019.", "In May 2019 the farm started to deliver power."),
        ("Norrin Energy paid for the construction.", "Norrin Energy sold the farm to its employees."),
        ("Norrin Energy paid for the construction.", "Halden Power paid for the construction."),
        ("The wind farm stands off the coast.", "The wind farm won a prize for its design."),
    ],
)
def test_what_is_said_more_plainly_is_more_likely(likelier: str, than: str):
    assert probability(likelier) > probability(than)


@pytest.mark.parametrize("text", ["The wind farm stands off the coast.", "Halden Power won a prize for its design."])
def test_text_beside_the_point_changes_no_feature(text: str):
    padded = Context([Source("before", "source", PADDING), Source("farm", "source", TEXT)])
    assert features_of(text, padded) == features_of(text)


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_any_text_has_features_in_their_ranges(text: str):
    found = assess(Claim("c1", text, 0, len(text)), CONTEXT, Policy())
    if found is not None:
        shares = found[1]._replace(new_names=0)
        assert all(0 <= value <= 1 for value in shares)
        assert 0 < shipped().probability(found[1]) < 1


def test_weights_have_the_signs_that_their_features_have():
    assert all(weight * sign >= 0 for weight, sign in zip(shipped().weights, SIGNS, strict=True))


def test_policies_ask_more_the_stricter_they_are():
    bars = shipped().bars
    assert bars["strict"].cleared >= bars["balanced"].cleared >= bars["lenient"].cleared
    assert bars["strict"].doubted >= bars["balanced"].doubted >= bars["lenient"].doubted


def test_a_model_is_read_as_it_is_stored():
    weights = dict.fromkeys(Features._fields, 0.0)
    bars = {"balanced": {"cleared": 0.5, "doubted": 0.1}}
    alarms = {"numeric": {"contradicted": 0.1}}
    stored = {"weights": weights, "bias": 0.0, "bars": bars, "contradicted": 0.2, "alarms": alarms}
    model = read(json.loads(json.dumps(stored)))
    assert model.alarms == alarms
    assert model.probability(Features(*[1.0] * len(Features._fields))) == 0.5
    assert model.bars["balanced"] == Bar(cleared=0.5, doubted=0.1)


def test_weights_of_other_features_are_refused():
    with pytest.raises(TypeError):
        read({"weights": {"length": 1.0}, "bias": 0.0, "bars": {}, "contradicted": 0.2})


def test_a_probability_takes_few_steps():
    model, found = shipped(), features_of("The wind farm stands off the coast.")
    assert steps(lambda: model.probability(found)) < 300
