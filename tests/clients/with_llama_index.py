"""LlamaIndex's OpenAILike: chat, stream, async."""

import asyncio

from asked import BASE_URL, MODEL, QUESTION, SYSTEM, told
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(api_base=BASE_URL, api_key="sk-test", model=MODEL, is_chat_model=True)
asked = [ChatMessage(role="system", content=SYSTEM), ChatMessage(role="user", content=QUESTION)]
whole = model.chat(asked)
told(
    whole=whole.message.content,
    streamed="".join(part.delta or "" for part in model.stream_chat(asked)),
    complete=model.complete(QUESTION).text,
    twin=asyncio.run(model.achat(asked)).message.content,
    grounding="raw" if "grounding" in (getattr(whole.raw, "model_extra", None) or {}) else "",
)
