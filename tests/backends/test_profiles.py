"""Models named by one word: values of their profiles, settings that override them, and the errors."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import RobertaProcessing

import groundwire.backends.models as profiles
from groundwire.backends.loading import judge_identity, load_judge
from groundwire.backends.models import PROFILES, Profile, find_model
from groundwire.backends.onnx import contradicting, supporting
from groundwire.backends.pairs import LAYOUTS, evidence_first, evidence_first_one_separator
from groundwire.config import JudgeSettings
from groundwire.errors import ConfigError
from groundwire.verifiers.entailment import Question
from tests.backends.tiny_models import CORPUS, bert_folder, word_piece

MODELS = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
SUPPORTED = {"entailment", "supported", "1"}
EXPORTED = sorted(name for name, each in PROFILES.items() if each.file is None)
PUBLISHED = sorted(name for name, each in PROFILES.items() if each.file is not None)


def problem(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        find_model(JudgeSettings(**settings))  # type: ignore[arg-type]
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize("name", PROFILES)
def test_every_layout_of_a_profile_is_known(name: str):
    assert PROFILES[name].layout in (None, *LAYOUTS)


@pytest.mark.parametrize(
    ("labels", "per_token", "named"),
    [
        (("contradiction", "entailment", "neutral"), False, None),
        (("entailment", "neutral", "contradiction"), False, None),
        (("supported", "hallucinated"), True, None),
        (("0", "1"), False, "1"),
    ],
)
def test_the_labels_of_the_models_with_profiles_are_understood(
    labels: tuple[str, ...], per_token: bool, named: str | None
):
    listed = dict(enumerate(labels))
    assert {listed[place] for place in supporting(listed, per_token=per_token, named=named)} <= SUPPORTED
    assert {listed[place] for place in contradicting(listed)} <= {"contradiction"}


@pytest.mark.parametrize("name", PROFILES)
def test_every_template_and_length_is_one_that_settings_would_accept(name: str):
    profile = PROFILES[name]
    JudgeSettings(template=profile.template, max_tokens=profile.max_tokens)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_has_its_row_in_the_documentation(name: str):
    profile = PROFILES[name]
    row = next(line for line in MODELS.splitlines() if line.startswith(f"| `{name}` |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1].split(" ")[0] == profile.model
    assert (cells[2] == "export it") == (profile.file is None)


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_word_names_the_files_on_the_hub(name: str):
    found, profile = find_model(JudgeSettings(model=name)), PROFILES[name]
    assert (found.model, found.revision, found.file) == (profile.model, profile.revision, profile.file)


@pytest.mark.parametrize("name", EXPORTED)
def test_a_model_without_a_graph_on_the_hub_is_refused_with_the_command_that_exports_it(name: str):
    told = problem(model=name)
    assert PROFILES[name].export_command(f"models/{name}") in told
    assert f"judge.model: models/{name} and judge.profile: {name}" in told


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_model_is_read_according_to_its_profile(name: str, tmp_path: Path):
    found, profile = find_model(JudgeSettings(model=str(tmp_path), profile=name)), PROFILES[name]
    assert (found.model, found.revision, found.file) == (str(tmp_path), None, None)
    assert (found.template, found.supported_label, found.layout, found.max_tokens) == (
        profile.template,
        profile.supported_label,
        profile.layout,
        profile.max_tokens,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("revision", "v2"),
        ("file", "onnx/model.onnx"),
        ("template", "A {evidence}"),
        ("supported_label", "neutral"),
        ("max_tokens", 64),
    ],
)
def test_settings_override_the_values_of_the_profile(key: str, value: object):
    found = find_model(JudgeSettings(model="nli-deberta-v3-small", **{key: value}))  # type: ignore[arg-type]
    assert getattr(found, key) == value


def test_a_file_that_is_named_is_looked_for_where_the_profile_knows_of_none():
    found = find_model(JudgeSettings(model="lettucedetect-base", file="onnx/model.onnx"))
    assert (found.model, found.file) == ("KRLabsOrg/lettucedect-base-modernbert-en-v1", "onnx/model.onnx")


@pytest.mark.parametrize("model", ["shipped", "owner/name", "./models/judge", "~/judge"])
def test_a_model_without_a_profile_is_left_as_it_is(model: str):
    found = find_model(JudgeSettings(model=model))
    assert (found.model, found.revision, found.file, found.template, found.layout) == (model, None, None, None, None)


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("lettucedetect-bas", "lettucedetect-base"),
        ("LettuceDetect-Large", "lettucedetect-large"),
        ("nli-deberta-small", "nli-deberta-v3-small"),
        ("minicheck-deberta", "minicheck-deberta-large"),
        ("shiped", "shipped"),
    ],
)
def test_an_unknown_word_is_refused_with_the_name_that_is_meant(model: str, meant: str):
    told = f"judge.model: {model} is no profile, folder or hub id such as owner/name (did you mean '{meant}'?)"
    assert problem(model=model) == told


def test_an_unknown_word_with_a_profile_is_refused_too():
    assert "did you mean 'nli-deberta-v3-small'?" in problem(model="nli-deberta-v3-smal", profile="lettucedetect-base")


def test_a_word_that_is_near_to_nothing_is_refused_without_a_guess():
    assert problem(model="gpt") == "judge.model: gpt is no profile, folder or hub id such as owner/name"


def test_an_unknown_profile_is_refused():
    assert problem(model="./here", profile="tinylettuce-17") == (
        "judge.profile: tinylettuce-17 is no profile (did you mean 'tinylettuce-17m'?)"
    )


def test_a_profile_belongs_to_a_model_that_is_named():
    assert problem(profile="lettucedetect-base") == (
        "judge.profile: the shipped model needs none; for another one, set judge.model: lettucedetect-base"
    )


def test_a_model_that_is_a_profile_wins_over_another_profile():
    found = find_model(JudgeSettings(model="nli-deberta-v3-small", profile="lettucedetect-base"))
    assert found == find_model(JudgeSettings(model="nli-deberta-v3-small"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a model that the profile `tiny` names, with labels as MiniCheck's."""
    folder = bert_folder(tmp_path / "tiny", labels=("0", "1"), file="onnx/graph.onnx")
    tiny = Profile(str(folder), None, "onnx/graph.onnx", supported_label="1")
    monkeypatch.setattr(profiles, "PROFILES", {**PROFILES, "tiny": tiny})
    judge_identity.cache_clear()
    load_judge.cache_clear()
    return folder


def support(settings: JudgeSettings) -> float:
    return load_judge(settings).model.entail([Question(CORPUS[2], "", CORPUS[0])])[0].supported


def test_a_model_named_by_one_word_decides_as_the_same_model_set_up_by_hand(tiny: Path):
    by_hand = JudgeSettings(model=str(tiny), file="onnx/graph.onnx", supported_label="1")
    assert support(JudgeSettings(model="tiny")) == support(by_hand)
    assert support(JudgeSettings(model="tiny", supported_label="0")) == pytest.approx(1 - support(by_hand))


def test_another_profile_is_another_identity(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    before = judge_identity(JudgeSettings(model="tiny"))
    changed = Profile(str(tiny), None, "onnx/graph.onnx", supported_label="0")
    monkeypatch.setattr(profiles, "PROFILES", {"tiny": changed})
    judge_identity.cache_clear()
    assert judge_identity(JudgeSettings(model="tiny")) != before


def roberta() -> Tokenizer:
    tokenizer = word_piece()
    ids = {token: tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]")}
    tokenizer.post_processor = RobertaProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]), add_prefix_space=False
    )
    return tokenizer


def test_a_single_separator_replaces_the_two_of_robertas_tokenizer():
    tokenizer, (evidence, claim) = roberta(), (CORPUS[0], CORPUS[2])
    separator = tokenizer.token_to_id("[SEP]")
    pair = evidence_first_one_separator(tokenizer, claim, "", evidence, 512)
    first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in (evidence, claim))
    assert list(pair.ids) == [tokenizer.token_to_id("[CLS]"), *first, separator, *second, separator]
    assert [claim[slice(*place)] for place in pair.places if place][:3] == ["The", "wind", "farm"]


def test_a_tokenizer_that_puts_one_separator_keeps_it():
    tokenizer = word_piece()
    assert evidence_first_one_separator(tokenizer, CORPUS[2], "", CORPUS[0], 64) == evidence_first(
        tokenizer, CORPUS[2], "", CORPUS[0], 64
    )
