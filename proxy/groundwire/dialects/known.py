"""The dialects whose answers are verified."""

from __future__ import annotations

from proxy.dialects.chat import CHAT
from proxy.dialects.completions import COMPLETIONS
from proxy.dialects.dialect import Dialect
from proxy.dialects.messages import MESSAGES
from proxy.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from proxy.dialects.responses import RESPONSES

DIALECTS: tuple[Dialect, ...] = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE)
