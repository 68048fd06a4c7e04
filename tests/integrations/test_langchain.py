"""LangChain: the chat model keeps the report, and the runnable checks answers."""

from __future__ import annotations

import asyncio
from operator import itemgetter

import pytest

from tests.edge.proxies import Proxy
from tests.integrations.conftest import ANSWER, QUESTION, SYSTEM, labels

pytest.importorskip("langchain_openai")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from groundwire.integrations import grounding_of
from groundwire.integrations.langchain import ChatGroundwire, grounding_check

ASKED = [("system", SYSTEM), ("human", QUESTION)]
FOUND = ["supported", "contradicted"]
DOCUMENTS = [
    Document("Acme Corp was founded in Oslo.", metadata={"source": "acme.md", "page": 3}, id="d-1"),
    Document("It sells turbines."),
]


class City(BaseModel):
    """A city."""

    city: str


@tool
def get_weather(city: str, unit: str) -> str:
    """Return the weather."""
    return city + unit


@pytest.fixture
def model(proxy: Proxy) -> ChatGroundwire:
    return ChatGroundwire(base_url=proxy.base_url, api_key="k", model="m", stream_usage=True)


def test_the_plain_model_loses_the_report(proxy: Proxy) -> None:
    """The reason for the subclass; when this fails, LangChain keeps unknown members itself."""
    model = ChatOpenAI(base_url=proxy.base_url, api_key="k", model="m")
    assert grounding_of(model.invoke(ASKED)) is None


def test_a_message_has_its_report(model: ChatGroundwire) -> None:
    message = model.invoke(ASKED)
    assert message.content == ANSWER
    assert labels(message.response_metadata["grounding"]) == FOUND
    assert labels(grounding_of(message)) == FOUND
    assert labels(grounding_of(asyncio.run(model.ainvoke(ASKED)))) == FOUND


@pytest.mark.parametrize("usage", [False, True], ids=["", "with usage"])
def test_a_stream_has_its_report(model: ChatGroundwire, usage: bool) -> None:
    model = model.model_copy(update={"stream_usage": usage})
    chunks = list(model.stream(ASKED))
    assert "".join(chunk.text for chunk in chunks) == ANSWER
    assert [labels(found) for chunk in chunks if (found := grounding_of(chunk))] == [FOUND]
    merged = chunks[0]
    for chunk in chunks[1:]:
        merged += chunk
    assert labels(merged.response_metadata["grounding"]) == FOUND

    async def streamed() -> list[object]:
        return [chunk async for chunk in model.astream(ASKED)]

    assert labels(grounding_of(asyncio.run(streamed()))) == FOUND


def test_tool_calls_and_structured_output_have_it(model: ChatGroundwire) -> None:
    called = model.bind_tools([get_weather]).invoke(ASKED)
    assert called.tool_calls[0]["args"]["city"] == "Oslo"
    assert called.response_metadata["grounding"]["verdict"] == "not_applicable"
    chain = model.with_structured_output(City, method="json_schema", include_raw=True)
    answer = chain.invoke(ASKED)
    assert answer["parsed"] == City(city="Oslo")
    assert labels(grounding_of(answer["raw"])) == ["supported"]


def test_an_answer_is_checked_against_documents() -> None:
    check = grounding_check()
    report = check.invoke({"answer": "Acme Corp was founded in Oslo [1].", "sources": DOCUMENTS})
    assert report["verdict"] == "grounded"
    assert [(each["id"], each.get("label")) for each in report["sources"]] == [("d-1", "d-1"), ("source-2", None)]
    message = AIMessage("Acme Corp was founded in Rome.")
    found = asyncio.run(check.ainvoke({"answer": message, "sources": DOCUMENTS, "question": "Where?"}))
    assert found["verdict"] == "ungrounded"
    with pytest.raises(TypeError, match="must be a text"):
        check.invoke({"answer": 7, "sources": DOCUMENTS})


def test_it_is_part_of_a_chain(model: ChatGroundwire) -> None:
    chain = {
        "answer": lambda given: model.invoke([("human", given["question"])]),
        "sources": itemgetter("context"),
        "question": itemgetter("question"),
    } | grounding_check()
    assert labels(chain.invoke({"question": QUESTION, "context": SYSTEM})) == FOUND
