"""ollama-python: chat, generate, streams, thoughts, tools, formats, embeddings, the list; sync and async."""

import asyncio

import ollama
from asked import BASE_URL, MESSAGES, QUESTION, SYSTEM, told

ROOT = BASE_URL.removesuffix("/v1")
ids: list[str | None] = []
client = ollama.Client(
    host=ROOT, event_hooks={"response": [lambda response: ids.append(response.headers.get("x-grounding-id"))]}
)
ask = {"model": "llama3.2", "messages": MESSAGES}


async def in_async() -> str:
    twin = ollama.AsyncClient(host=ROOT)
    return "".join([chunk.message.content or "" async for chunk in await twin.chat(**ask, stream=True)])


def refused() -> str:
    try:
        client.chat("missing", MESSAGES)
    except ollama.ResponseError as error:
        return f"{error.status_code} {error.error}"
    return "nothing"


whole = client.chat(**ask, think=True)
generated = client.generate("llama3.2", prompt=QUESTION, system=SYSTEM)
streamed = list(client.chat(**ask, stream=True))
told(
    whole=[whole.message.content, whole.message.thinking, whole.done_reason, whole.prompt_eval_count],
    generated=[generated.response, generated.eval_count],
    streamed=["".join(chunk.message.content or "" for chunk in streamed), streamed[-1].done_reason],
    format=client.chat(**ask, format={"type": "object"}).message.content,
    embedded=len(client.embed("llama3.2", ["a", "b"]).embeddings),
    listed=[model.model for model in client.list().models],
    pulled=[progress.status for progress in client.pull("llama3.2", stream=True)],
    refused=refused(),
    twin=asyncio.run(in_async()),
    grounding="by its id in the header, which a hook sees" if any(ids) else "",
)
