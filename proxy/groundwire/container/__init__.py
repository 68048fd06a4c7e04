"""Build the components from the settings; the only folder that names every concrete class."""

from proxy.wiring.build import build_house
from proxy.wiring.house import House

__all__ = ["House", "build_house"]
