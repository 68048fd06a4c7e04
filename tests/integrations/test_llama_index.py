"""LlamaIndex: reports in `raw`, the event handler, and the evaluator."""

from __future__ import annotations

import asyncio

import pytest

from tests.edge.proxies import Proxy
from tests.integrations.conftest import ANSWER, QUESTION, SYSTEM, TRUE, labels

pytest.importorskip("llama_index.llms.openai_like")

from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import ChatMessage
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai_like import OpenAILike

from groundwire.integrations import grounding_of
from groundwire.integrations.llama_index import GroundingEvaluation, GroundingEvaluator, GroundingEventHandler

ASKED = [ChatMessage(role="system", content=SYSTEM), ChatMessage(role="user", content=QUESTION)]
FOUND = ["supported", "contradicted"]
NODES = [NodeWithScore(node=TextNode(text=SYSTEM, metadata={"file_name": "acme.md"}))]


@pytest.fixture
def model(proxy: Proxy) -> OpenAILike:
    return OpenAILike(api_base=proxy.base_url, api_key="k", model="m", is_chat_model=True)


def test_a_response_has_its_report(model: OpenAILike) -> None:
    assert labels(grounding_of(model.chat(ASKED))) == FOUND
    assert labels(grounding_of(model.stream_chat(ASKED))) == FOUND
    assert labels(grounding_of(asyncio.run(model.achat(ASKED)))) == FOUND


def test_the_handler_collects_the_reports_of_a_query_engine(model: OpenAILike) -> None:
    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            return str(model.chat([ASKED[0], ChatMessage(role="user", content=query_str)]).message.content)

    handler, dispatcher = GroundingEventHandler(), get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        assert str(Engine().query(QUESTION)) == ANSWER
        assert [labels(report) for report in handler.reports] == [FOUND]
        assert "".join(part.delta or "" for part in model.stream_chat(ASKED)) == ANSWER
        assert [labels(report) for report in handler.reports] == [FOUND, FOUND]
        assert GroundingEventHandler().reports == []
    finally:
        dispatcher.event_handlers.remove(handler)


def test_an_evaluation_has_score_and_feedback() -> None:
    evaluator = GroundingEvaluator()
    found = evaluator.evaluate_response(QUESTION, Response(ANSWER, source_nodes=NODES))
    assert isinstance(found, GroundingEvaluation)
    assert (found.passing, found.score, found.invalid_result) == (False, 0.5, False)
    assert "contradicted: It reported revenue of $4.9 million in 2023." in (found.feedback or "")
    assert labels(found.report) == FOUND
    assert evaluator.evaluate(QUESTION, TRUE, [SYSTEM]).passing


def test_an_answer_without_claims_is_an_invalid_result() -> None:
    found = GroundingEvaluator().evaluate(QUESTION, "Shall I look it up?", [SYSTEM])
    assert (found.passing, found.score, found.invalid_result) == (False, None, True)
    with pytest.raises(ValueError, match="'response' and 'contexts'"):
        GroundingEvaluator().evaluate(QUESTION, TRUE)
