"""Load settings from `config.yaml` and the environment. An unknown key is rejected with its line number.

Every key can be set by a variable, such as `GROUNDWIRE_SERVER__PORT`, which overrides the file.
"""

from proxy.config.grounding import SHIPPED, JudgeSettings, Tolerance
from proxy.config.hallucination import Backend
from proxy.config.reading import load_settings
from proxy.config.server import Admin, Mcp, Server
from proxy.config.settings import Settings
from proxy.config.telemetry import Telemetry
from proxy.config.upstreams import Upstream
from proxy.config.values import seconds, without_passwords

__all__ = [
    "SHIPPED",
    "Admin",
    "Backend",
    "JudgeSettings",
    "Mcp",
    "Server",
    "Settings",
    "Telemetry",
    "Tolerance",
    "Upstream",
    "load_settings",
    "seconds",
    "without_passwords",
]
