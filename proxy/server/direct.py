"""A short cut to the paths of model traffic: past Starlette's middleware and its walk through the list of routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class DirectApp(Starlette):
    """An application whose `direct` routes are found by one look-up; all other paths go Starlette's way.

    They are routes of it like any other, with a plain path and their methods, and handle their errors themselves.
    """

    def __init__(self, *, direct: Sequence[Route], routes: Sequence[Any], **options: Any) -> None:
        super().__init__(routes=[*direct, *routes], **options)
        self._direct: dict[tuple[str, str], ASGIApp] = {
            (method, route.path): route.app for route in direct for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        app = self._direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        await (app or super().__call__)(scope, receive, send)
