"""Build the components from the settings; the only folder that names every concrete class."""

from groundwire.container.container import Container as Container
from groundwire.container.container import build_container as build_container
