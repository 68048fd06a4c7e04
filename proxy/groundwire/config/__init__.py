"""Load settings from `config.yaml` and the environment. An unknown key is rejected with its line number.

Every key can be set by a variable, such as `GROUNDWIRE_SERVER__PORT`, which overrides the file.
"""

from groundwire.config.grounding import SHIPPED, Backend, JudgeSettings, Tolerance
from groundwire.config.reading import load_settings
from groundwire.config.settings import Admin, Mcp, Scores, Server, Settings, Telemetry, Upstream
from groundwire.config.values import seconds, without_passwords

__all__ = [
    "SHIPPED",
    "Admin",
    "Backend",
    "JudgeSettings",
    "Mcp",
    "Scores",
    "Server",
    "Settings",
    "Telemetry",
    "Tolerance",
    "Upstream",
    "load_settings",
    "seconds",
    "without_passwords",
]
