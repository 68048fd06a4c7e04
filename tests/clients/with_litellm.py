"""litellm's SDK: completion, its stream, tools, embeddings."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from asked import BASE_URL, MESSAGES, MODEL, told

ask = {"model": f"openai/{MODEL}", "messages": MESSAGES, "api_base": BASE_URL, "api_key": "sk-test"}
tools = [{"type": "function", "function": {"name": "paint", "parameters": {"type": "object", "properties": {}}}}]
whole = litellm.completion(**ask)
told(
    whole=whole.choices[0].message.content,
    usage=whole.usage.total_tokens,
    streamed="".join(chunk.choices[0].delta.content or "" for chunk in litellm.completion(**ask, stream=True)),
    tools=litellm.completion(**ask, tools=tools).choices[0].message.tool_calls[0].function.arguments,
    grounding="body" if getattr(whole, "grounding", None) else "",
)
