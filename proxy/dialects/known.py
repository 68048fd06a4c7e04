"""Every dialect that is verified."""

from __future__ import annotations

from proxy.dialects.chat import CHAT
from proxy.dialects.completions import COMPLETIONS
from proxy.dialects.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (CHAT, COMPLETIONS)
