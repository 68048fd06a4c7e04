"""LangChain: a chat model that keeps the report, and a runnable that checks an answer against documents.

Needs `langchain-openai`. `ChatOpenAI` builds its messages from known members of the response and drops `grounding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI

from groundwire.integrations.documents import sources_of, text_of
from groundwire.integrations.sdk import grounding_of
from groundwire.judge import Judge
from groundwire.library import verify_claims, verify_claims_async
from groundwire.policy import Policy


class ChatGroundwire(ChatOpenAI):
    """`ChatOpenAI` with the report in `response_metadata["grounding"]` of the message, or of a stream's last chunk.

    Works for chat completions, whole and streamed, with tools and structured output (`include_raw=True`). It overrides
    the two hooks that LangChain's own subclasses for other providers override.
    """

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        result: ChatResult = super()._create_chat_result(response, generation_info)
        if report := grounding_of(response):
            for generation in result.generations:
                generation.message.response_metadata["grounding"] = report
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any, **kwargs: Any) -> ChatGenerationChunk | None:
        generation: ChatGenerationChunk | None = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)
        if generation is not None and (report := grounding_of(chunk)):
            generation.message.response_metadata["grounding"] = report
        return generation


def grounding_check(policy: Policy = Policy(), judge: Judge | None = None) -> Runnable[Any, Any]:
    """Return a runnable from `{"answer", "sources", "question"?}` to the report of the answer.

    The answer is a text or a message; the sources are documents of a retriever, or texts. For a chain that returns
    other keys, map them first: `{"answer": ..., "sources": itemgetter("context")} | grounding_check()`.
    """

    def check(given: Mapping[str, Any]) -> Any:
        return verify_claims(**_arguments(given), policy=policy, judge=judge).to_dict()

    async def check_async(given: Mapping[str, Any]) -> Any:
        return (await verify_claims_async(**_arguments(given), policy=policy, judge=judge)).to_dict()

    return RunnableLambda(check, afunc=check_async, name="grounding_check")


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "answer": text_of(given["answer"]),
        "sources": sources_of(given["sources"]),
        "question": str(given.get("question", "")),
    }
