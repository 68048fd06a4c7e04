"""The shipped vectors: they find what is said in other words, and read any text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.backends.loading import shipped_vectors
from groundwire.backends.vectors import WordVectors
from groundwire.domain import Claim, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.verifiers.entailment import Entailment, Question, State
from groundwire.verifiers.selection import MAX_WORDS, select_evidence

FILLER = " ".join(f"Visitor {number} enjoyed the quiet museum of the town." for number in range(60))


def context(*texts: str) -> Context:
    return Context([Source(str(at), "source", text) for at, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("claim", "fact"),
    [
        ("Pets have to stay away.", "Dogs may not be brought inside."),
        ("An expectant mother should see a physician first.", "In pregnancy, ask your doctor."),
        ("You pay nothing for shipping.", "Parcels are delivered free of charge."),
    ],
)
def test_a_passage_that_shares_no_word_with_a_claim_is_selected(claim: str, fact: str) -> None:
    for text in (f"{fact} {FILLER}", f"{FILLER} {fact}", f"{FILLER} {fact} {FILLER}"):
        assert fact.rstrip(".") in select_evidence(claim, "", context(text), vectors=shipped_vectors()).text


def test_the_similarity_of_a_text_to_itself_is_one() -> None:
    found = shipped_vectors().similarities("The mill was built in 1890.", context("The mill was built in 1890. Hens."))
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    assert abs(found[1]) < 0.5


def test_a_text_without_words_is_similar_to_nothing() -> None:
    assert set(shipped_vectors().similarities(" ", context("A mill. …"))) == {0.0}


def test_markup_and_marks_do_not_count() -> None:
    plain, marked = (context(f"The mill was built in 1890{end}") for end in (".", " – **see [here](https://a.b/c)**’"))
    claim = "The mill [1] was **built** in 1890’."
    assert shipped_vectors().similarities(claim, plain)[0] == pytest.approx(1.0, abs=1e-5)
    assert shipped_vectors().similarities(claim, marked)[0] > 0.8


def test_the_passages_of_a_context_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = WordVectors._encode
    monkeypatch.setattr(WordVectors, "_encode", lambda self, texts: encoded.append(len(texts)) or encode(self, texts))
    sources = context("The mill was built in 1890. Hens live there.")
    for each in (sources, sources.renewed()):
        shipped_vectors().similarities("Hens", each)
    assert encoded == [2, 1, 1]


@dataclass
class Encoder:
    """A model that notes the evidence of its questions."""

    state: State
    read: list[str] = field(default_factory=list)

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        self.read += [each.evidence for each in questions]
        return [Entailment(0.9) for _ in questions]


def test_a_judge_uses_vectors_once_its_model_is_ready() -> None:
    fact = "Dogs may not be brought inside."
    text = "Pets have to stay away."
    claim, sources = Claim("c1", text, 0, len(text), "statement"), context(f"{FILLER} {fact}")
    model = Encoder("ready")
    Judge(model, vectors=shipped_vectors()).one(claim, sources, Policy())
    assert fact.rstrip(".") in model.read[0]
    waiting = Judge(Encoder("loading"), vectors=WordVectors(Path("nowhere")))
    assert waiting.one(claim, sources, Policy()).verdict.degraded == "loading"


def test_a_missing_file_is_an_error_of_loading(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"vectors\.npz"):
        WordVectors(tmp_path).load()


@given(st.text(max_size=80), st.lists(st.text(max_size=400), max_size=4))
def test_any_text_gets_a_similarity_to_each_passage(claim: str, texts: list[str]) -> None:
    sources = context(*texts)
    found = shipped_vectors().similarities(claim, sources)
    assert len(found) == len(sources.passages)
    assert all(-1.001 <= each <= 1.001 for each in found)
    evidence = select_evidence(claim, "", sources, vectors=shipped_vectors())
    assert sum(len(each.words) for each in evidence.passages[1:]) <= MAX_WORDS
    assert len(evidence.similarities) == len(evidence.passages)
