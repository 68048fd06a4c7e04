"""Build the components from the settings; the only folder that names every concrete class."""

from groundwire.container.build import build_container
from groundwire.container.container import Container

__all__ = ["Container", "build_container"]
