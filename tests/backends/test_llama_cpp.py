"""The protocol against a third-party server, llama.cpp's, with a tiny model made on the spot.

Opt-in: `pip install xllamacpp gguf`, then run this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from groundwire.backends.estimators import ChatEstimator
from groundwire.domain import Estimate, Probability
from tests.backends.asked import CLAIMS, CONTEXT, STATED_CLAIM, asking

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("gguf") is None,
    reason="opt-in: install xllamacpp and gguf to ask llama.cpp's own server",
)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the base URL of a llama.cpp server."""
    from tests.backends.tiny_llama import CONTEXT as LENGTH
    from tests.backends.tiny_llama import write_model

    path: Path = tmp_path_factory.mktemp("llama") / "tiny.gguf"
    write_model(import_module("gguf"), path)
    library: Any = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = 2 * LENGTH, 2, 0
    params.warmup = False
    params.port = 0
    server = library.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def ask(base_url: str, work: Any, **options: Any) -> Any:
    found, _ = asking(base_url, lambda each: work(ChatEstimator(each, "tiny", **options)), "/chat/completions")
    return found


def expected() -> float:
    from tests.backends.tiny_llama import YES_OVER_NO

    return 1 / (1 + math.exp(-YES_OVER_NO))


def test_its_logprobs_are_the_probability_that_the_model_was_made_with(llama: str) -> None:
    found: Estimate = ask(llama, lambda each: each.estimate_probability(STATED_CLAIM, CONTEXT))
    assert isinstance(found, Probability), found
    assert found.method == "logprobs"
    assert found.value == pytest.approx(expected(), abs=0.05)


def test_a_group_answered_with_one_word_is_retried_claim_by_claim(llama: str) -> None:
    found = ask(llama, lambda each: each.batch_estimate(CLAIMS, CONTEXT))
    assert [each.value for each in found] == pytest.approx([expected()] * 3, abs=0.05)


def test_its_samples_agree_with_its_logprobs(llama: str) -> None:
    found = ask(llama, lambda each: each.estimate_probability(STATED_CLAIM, CONTEXT), has_logprobs=False)
    assert isinstance(found, Probability), found
    assert found.method == "samples"
    assert found.lower <= expected() <= found.upper
