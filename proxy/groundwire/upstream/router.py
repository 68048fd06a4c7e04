"""Choose the upstream of a model, its name there, and its fallbacks. Pure: sends no requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from groundwire.caches import memo
from groundwire.errors import UnknownModel
from groundwire.upstream.retries import ONCE, Outcome, Retries, is_no_answer
from groundwire.upstream.upstream import Upstream

NO_ANSWER = frozenset({429, 500, 502, 503, 504, 529})
"""The default statuses that trigger a fallback; 529 is Anthropic's "overloaded"."""


@dataclass(frozen=True, slots=True)
class UpstreamModels:
    """An upstream and its models: names or globs, and aliases (the client's name → the upstream's).

    `fallbacks` maps names or globs of models to the `upstream/model` to try, in order, when there is no answer; the
    model `*` means the requested one. `fallback_on` are the statuses that count as no answer.
    """

    upstream: Upstream
    models: Sequence[str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    retries: Retries = ONCE
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fallback_on: frozenset[int] = NO_ANSWER


@dataclass(frozen=True, slots=True)
class Route:
    """The upstream of a request, the model's name there, the retries, and the fallbacks."""

    upstream: Upstream
    model: str
    retries: Retries = ONCE
    fallbacks: tuple[Route, ...] = ()
    fallback_on: frozenset[int] = NO_ANSWER

    @property
    def is_plain(self) -> bool:
        """True if there are neither retries nor fallbacks."""
        return not (self.retries.count or self.fallbacks)

    def needs_fallback(self, outcome: Outcome) -> bool:
        """Return whether to try a fallback after this outcome."""
        return bool(self.fallbacks) and is_no_answer(outcome, self.fallback_on)

    def once(self) -> Route:
        """Return the same route for a single attempt."""
        return Route(self.upstream, self.model)


class Router:
    """Finds the upstream of a model: by alias, by exact name, by `upstream/` prefix, by glob; the first match wins."""

    def __init__(self, models: Sequence[UpstreamModels]) -> None:
        self._models = tuple(models)
        self._routes = memo(1024, 256)(self._choose)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All upstreams, in the order of the settings."""
        return tuple(each.upstream for each in self._models)

    def ollamas(self) -> Router | None:
        """Return a router to the upstreams that take native calls; None if there are none."""
        models = [each for each in self._models if each.upstream.is_ollama]
        names = tuple(f"{each.upstream.name}/" for each in models)
        fallbacks_of_each = [
            {model: [target for target in targets if target.startswith(names)] for model, targets in fallbacks.items()}
            for fallbacks in (each.fallbacks for each in models)
        ]
        reachable = [
            replace(each, fallbacks=fallbacks) for each, fallbacks in zip(models, fallbacks_of_each, strict=True)
        ]
        return Router(reachable) if reachable else None

    @property
    def default(self) -> Route:
        """The first upstream, which also receives every path that Groundwire does not know; there it has no
        fallback.
        """
        return Route(self._models[0].upstream, "", self._models[0].retries)

    def choose(self, model: str) -> Route:
        """Return the route of a model. Raises UnknownModel."""
        return self._routes(model)

    def _choose(self, model: str) -> Route:
        entry, upstream_model = self._match(model)
        if not entry.fallbacks and not entry.retries.count:
            return Route(entry.upstream, upstream_model)
        return Route(
            entry.upstream,
            upstream_model,
            entry.retries,
            self._fallbacks(entry, model, upstream_model),
            entry.fallback_on,
        )

    def _match(self, model: str) -> tuple[UpstreamModels, str]:
        for each in self._models:
            if model in each.aliases:
                return each, each.aliases[model]
        for each in self._models:
            if model in each.models:
                return each, model
        prefix, slash, rest = model.partition("/")
        for each in self._models:
            if slash and rest and prefix == each.upstream.name:
                return each, rest
        for each in self._models:
            if any(fnmatchcase(model, glob) for glob in each.models):
                return each, model
        raise UnknownModel(f"The model '{model}' is served by no upstream of this proxy", param="model")

    def _fallbacks(self, entry: UpstreamModels, model: str, upstream_model: str) -> tuple[Route, ...]:
        """Return the fallbacks of a model: those of its name, else of the first matching glob; each without its
        fallbacks.
        """
        given = entry.fallbacks
        fitting = [name for name in (model, upstream_model) if name in given]
        fitting += [glob for glob in given if fnmatchcase(model, glob) or fnmatchcase(upstream_model, glob)]
        return tuple(self._fallback(target, upstream_model) for target in (given[fitting[0]] if fitting else ()))

    def _fallback(self, target: str, upstream_model: str) -> Route:
        for each in self._models:
            if target.startswith(f"{each.upstream.name}/"):
                model = target.removeprefix(f"{each.upstream.name}/")
                return Route(each.upstream, upstream_model if model == "*" else model, each.retries)
        raise LookupError(f"'{target}' names no upstream")  # the settings have been validated
