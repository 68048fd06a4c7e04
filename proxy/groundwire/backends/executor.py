"""A chat model that completes chains of reasoning, for the post-hoc check of traces."""

from __future__ import annotations

from dataclasses import dataclass

from groundwire.backends.asking import Asking, Refused
from groundwire.dialects.chat import CHAT
from groundwire.dialects.dialect import Answer
from groundwire.domain import Unavailable

_MAX_TOKENS = 200


@dataclass(frozen=True, slots=True)
class ChatExecutor:
    """A model behind OpenAI's dialect."""

    asking: Asking
    model: str

    async def complete(self, system: str, user: str) -> str | Unavailable:
        """Return the reply to a prompt, at temperature 0; raises nothing but cancellation."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        question = {"model": self.model, "messages": messages, "temperature": 0.0, "max_tokens": _MAX_TOKENS}
        answer = await self.asking.ask(question)
        if isinstance(answer, Refused):
            return Unavailable("error")
        if isinstance(answer, Unavailable):
            return answer
        return next((choice.text for choice in Answer.whole(CHAT, answer).choices()), "")
