"""Ollama's own API, where an upstream is one: chat and generate are verified, everything else below /api passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from groundwire.container import Container
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.request import DIALECTS
from groundwire.http.endpoints import Handler

_EMBEDDINGS = ("/api/embed", "/api/embeddings")


def ollama_paths(container: Container) -> Iterator[tuple[str, str | None, Handler]]:
    """Yield each path with its method (None: any) and handler; nothing if no upstream is an Ollama."""
    router = container.passage.router.ollamas()
    if router is None:
        return
    completions, passage = replace(container.completions, router=router), replace(container.passage, router=router)

    def completion(dialect: Dialect) -> Handler:
        return lambda call, _: completions.complete(dialect, replace(call, native=True))

    for dialect in DIALECTS:
        if dialect.native:
            yield dialect.path, "POST", completion(dialect)
    for path in _EMBEDDINGS:
        yield path, "POST", lambda call, _: passage.by_model("embeddings", replace(call, native=True))
    yield "/api/{path:path}", None, lambda call, _: passage.to_default(replace(call, native=True))
