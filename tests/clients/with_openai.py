"""openai-python: create, its stream, .stream(), parse, tools, embeddings, models, errors; sync and async."""

import asyncio

import openai
from asked import BASE_URL, MESSAGES, MODEL, told
from pydantic import BaseModel

client = openai.OpenAI(base_url=BASE_URL, api_key="sk-test")
ask = {"model": MODEL, "messages": MESSAGES}


class Colour(BaseModel):
    colour: str


async def in_async() -> str:
    async with openai.AsyncOpenAI(base_url=BASE_URL, api_key="sk-test") as twin:
        stream = await twin.chat.completions.create(**ask, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


tools = [{"type": "function", "function": {"name": "paint", "parameters": {"type": "object", "properties": {}}}}]
whole = client.chat.completions.create(**ask)
chunks = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
with client.chat.completions.stream(**ask) as stream:
    events = [event.type for event in stream]
    final = stream.get_final_completion()
parsed = client.chat.completions.parse(**ask, response_format=Colour)
called = client.chat.completions.create(**ask, tools=tools)
places = {"body": whole, "last event": chunks[-1]}
shown = [place for place, got in places.items() if "grounding" in (got.model_extra or {})]
told(
    whole=whole.choices[0].message.content,
    usage=whole.usage.total_tokens,
    streamed="".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
    stream_usage=chunks[-1].usage.total_tokens,
    helper=[final.choices[0].message.content, events],
    parsed=parsed.choices[0].message.parsed.colour,
    tools=called.choices[0].message.tool_calls[0].function.arguments,
    embeddings=len(client.embeddings.create(model=MODEL, input=["a", "b"]).data),
    models=[model.id for model in client.models.list()],
    twin=asyncio.run(in_async()),
    grounding=" and ".join(shown),
)
