"""Build the components from the settings; the only folder that names every concrete class."""

from groundwire.container.build import build_house
from groundwire.container.container import House

__all__ = ["House", "build_house"]
