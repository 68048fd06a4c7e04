"""Build the components from the settings; the only folder that names every concrete class."""

from groundwire.container.container import Container, build_container

__all__ = ["Container", "build_container"]
