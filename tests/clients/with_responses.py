"""openai-python on Responses: create, its stream, .stream(), parse, tools; sync and async."""

import asyncio

import openai
from asked import BASE_URL, MODEL, QUESTION, SYSTEM, told
from pydantic import BaseModel

client = openai.OpenAI(base_url=BASE_URL, api_key="sk-test")
ask = {"model": MODEL, "instructions": SYSTEM, "input": QUESTION}


class Colour(BaseModel):
    colour: str


async def in_async() -> str:
    async with openai.AsyncOpenAI(base_url=BASE_URL, api_key="sk-test") as twin:
        return (await twin.responses.create(**ask)).output_text


tools = [{"type": "function", "name": "paint", "parameters": {"type": "object", "properties": {}}}]
whole = client.responses.create(**ask)
events = list(client.responses.create(**ask, stream=True))
with client.responses.stream(**ask) as stream:
    kinds = [event.type for event in stream]
    final = stream.get_final_response()
called = client.responses.create(**ask, tools=tools)
places = {"body": whole, "last event": events[-1].response, "summed up": final}
shown = [place for place, got in places.items() if "grounding" in (got.model_extra or {})]
told(
    whole=whole.output_text,
    usage=whole.usage.total_tokens,
    streamed="".join(event.delta for event in events if event.type == "response.output_text.delta"),
    helper=[final.output_text, kinds],
    parsed=client.responses.parse(**ask, text_format=Colour).output_parsed.colour,
    tools=called.output[0].arguments,
    twin=asyncio.run(in_async()),
    grounding=" and ".join(shown),
)
