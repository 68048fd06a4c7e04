"""Which upstream serves a model, and under which name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from proxy.errors import UnknownModel
from proxy.upstream.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Served:
    """An upstream with what it serves: model names or globs, and aliases (the client's name → the upstream's)."""

    upstream: Upstream
    models: Sequence[str]
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes, and the model's name there."""

    upstream: Upstream
    model: str


class Router:
    """Finds the upstream of a model: by alias, by exact name, by `upstream/` prefix, by glob; the first that fits."""

    def __init__(self, served: Sequence[Served]) -> None:
        self._served = tuple(served)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All of them, in the order of the settings."""
        return tuple(each.upstream for each in self._served)

    @property
    def default(self) -> Upstream:
        """The first, which also gets every path that Groundwire does not know."""
        return self._served[0].upstream

    def choose(self, model: str) -> Route:
        """The route of a model. Raises UnknownModel."""
        for each in self._served:
            if model in each.aliases:
                return Route(each.upstream, each.aliases[model])
        for each in self._served:
            if model in each.models:
                return Route(each.upstream, model)
        prefix, slash, rest = model.partition("/")
        for each in self._served:
            if slash and rest and prefix == each.upstream.name:
                return Route(each.upstream, rest)
        for each in self._served:
            if any(fnmatchcase(model, glob) for glob in each.models):
                return Route(each.upstream, model)
        raise UnknownModel(f"The model '{model}' is served by no upstream of this proxy", param="model")
