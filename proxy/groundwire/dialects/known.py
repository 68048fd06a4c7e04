"""The dialects whose answers are verified."""

from __future__ import annotations

from groundwire.dialects.chat import CHAT
from groundwire.dialects.completions import COMPLETIONS
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.messages import MESSAGES
from groundwire.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from groundwire.dialects.responses import RESPONSES

DIALECTS: tuple[Dialect, ...] = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE)
