"""pydantic-ai: a run, a stream, a tool."""

import asyncio

from asked import BASE_URL, MODEL, QUESTION, SYSTEM, told
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key="sk-test"))
agent = Agent(model, system_prompt=SYSTEM)
painter = Agent(model, system_prompt=SYSTEM)
painted: list[str] = []


@painter.tool_plain
def paint(colour: str) -> str:
    """Paints in a colour."""
    painted.append(colour)
    return f"painted {colour}"


async def streamed() -> str:
    async with agent.run_stream(QUESTION) as result:
        return "".join([part async for part in result.stream_text(delta=True)])


told(
    whole=agent.run_sync(QUESTION).output,
    streamed=asyncio.run(streamed()),
    after_a_tool=painter.run_sync(QUESTION).output,
    tools=painted,
)
