"""LangChain's ChatOpenAI: invoke, stream, tools, structured output, async."""

import asyncio

from asked import BASE_URL, MODEL, QUESTION, SYSTEM, told
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

model = ChatOpenAI(base_url=BASE_URL, api_key="sk-test", model=MODEL, stream_usage=True)
asked = [("system", SYSTEM), ("human", QUESTION)]


class Colour(BaseModel):
    """A colour."""

    colour: str


@tool
def paint(colour: str) -> str:
    """Paints in a colour."""
    return colour


whole = model.invoke(asked)
chunks = list(model.stream(asked))
told(
    whole=whole.content,
    usage=whole.usage_metadata["total_tokens"],
    streamed="".join(chunk.text for chunk in chunks),
    stream_usage=sum((chunk.usage_metadata or {}).get("total_tokens", 0) for chunk in chunks),
    tools=model.bind_tools([paint]).invoke(asked).tool_calls[0]["args"],
    structured=model.with_structured_output(Colour, method="json_schema").invoke(asked).colour,
    twin=asyncio.run(model.ainvoke(asked)).content,
    embeddings=len(OpenAIEmbeddings(base_url=BASE_URL, api_key="k", check_embedding_ctx_length=False).embed_query("a")),
    grounding="response_metadata" if "grounding" in whole.response_metadata else "",
)
