"""Load settings from `config.yaml` and the environment. An unknown key is rejected with its line number.

Every key can be set by a variable, such as `GROUNDWIRE_SERVER__PORT`, which overrides the file.
"""

from groundwire.config.grounding import SHIPPED as SHIPPED
from groundwire.config.grounding import JudgeSettings as JudgeSettings
from groundwire.config.grounding import Tolerance as Tolerance
from groundwire.config.reading import load_settings as load_settings
from groundwire.config.settings import Admin as Admin
from groundwire.config.settings import Mcp as Mcp
from groundwire.config.settings import Scores as Scores
from groundwire.config.settings import Server as Server
from groundwire.config.settings import Settings as Settings
from groundwire.config.settings import Telemetry as Telemetry
from groundwire.config.settings import Upstream as Upstream
from groundwire.config.values import seconds as seconds
from groundwire.config.values import without_passwords as without_passwords
