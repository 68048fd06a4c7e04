"""anthropic-python: create, its stream, .stream(), tools, counted tokens; sync and async."""

import asyncio

import anthropic
from asked import BASE_URL, QUESTION, SYSTEM, told

ROOT = BASE_URL.removesuffix("/v1")
client = anthropic.Anthropic(base_url=ROOT, api_key="sk-test")
asked = [{"role": "user", "content": QUESTION}]
ask = {"model": "claude-sonnet-4-5", "max_tokens": 100, "system": SYSTEM, "messages": asked}


async def in_async() -> str:
    twin = anthropic.AsyncAnthropic(base_url=ROOT, api_key="sk-test")
    async with twin, twin.messages.stream(**ask) as stream:
        return await stream.get_final_text()


tools = [{"name": "paint", "input_schema": {"type": "object", "properties": {}}}]
whole = client.messages.create(**ask)
events = list(client.messages.create(**ask, stream=True))
with client.messages.stream(**ask) as stream:
    summed = list(stream)
    final = stream.get_final_message()
called = client.messages.create(**ask, tools=tools)
told_last = [event for event in summed if event.type == "message_delta"][-1]
places = {"body": whole, "last delta": events[-2], "last delta of the helper": told_last, "summed up": final}
told(
    whole=whole.content[0].text,
    usage=whole.usage.output_tokens,
    streamed="".join(getattr(event.delta, "text", "") for event in events if event.type == "content_block_delta"),
    helper=[final.content[0].text, final.stop_reason, [event.type for event in summed]],
    tools=called.content[0].input,
    counted=client.messages.count_tokens(model="claude-sonnet-4-5", messages=asked).input_tokens,
    twin=asyncio.run(in_async()),
    grounding=" and ".join(place for place, got in places.items() if "grounding" in (got.model_extra or {})),
)
