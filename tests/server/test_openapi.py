"""Item 7 of wire.md: the OpenAPI document has every endpoint of our own, and what it says of shapes is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from server.pages.site_of_tests import ANSWER, SOURCE, Site, exchange, visit
from starlette.routing import Mount, Route

from proxy.config import Settings
from proxy.dialects.jsonbytes import loads
from proxy.server.app import build_app
from proxy.server.openapi import OPERATIONS, openapi

OURS = ("/v1/grounding", "/v1/reviews", "/v1/subjects", "/healthz", "/readyz", "/openapi.json")


def served(tmp_path: Path) -> set[tuple[str, str]]:
    """Method and path of each endpoint of our own that the application has, pages aside."""
    app = build_app(Settings.model_validate({"store": {"url": f"sqlite:///{tmp_path}/history.db"}}))
    found: list[tuple[str, Route]] = []
    for route in app.routes:
        if isinstance(route, Mount):
            found += [(route.path + inner.path, inner) for inner in route.routes if isinstance(inner, Route)]
        elif isinstance(route, Route):
            found.append((route.path, route))
    return {
        (method.lower(), re.sub(r":path}", "}", path))
        for path, route in found
        if path.startswith(OURS)
        for method in (route.methods or set()) - {"HEAD"}
    }


def test_every_endpoint_of_our_own_is_in_the_document_and_nothing_else(tmp_path: Path) -> None:
    assert {(each.method, each.path) for each in OPERATIONS} == served(tmp_path)


def schema_of(path: str, method: str) -> dict[str, Any]:
    document = openapi()
    found = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    return {**found, "components": document["components"]}


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/v1/reviews", "/v1/reviews"),
        ("/v1/reviews/{id}", "/v1/reviews/1"),
        ("/v1/grounding", "/v1/grounding"),
        ("/v1/grounding/metrics", "/v1/grounding/metrics?by=flag"),
        ("/v1/grounding/similar", "/v1/grounding/similar?q=How+did+we+do"),
        ("/v1/subjects/{subject}/entities", "/v1/subjects/acme/entities"),
    ],
)
def test_what_is_stored_is_told_as_the_document_says(tmp_path: Path, path: str, url: str) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            jsonschema.validate((await api.get(url)).json(), schema_of(path, "get"))

    visit(tmp_path, work, exchange(subject="acme"))


def test_a_report_is_as_the_document_says() -> None:
    jsonschema.validate(loads(exchange(answer=ANSWER, source=SOURCE).kept), schema_of("/v1/grounding/{id}", "get"))


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = openapi()
    refs = set(re.findall(r"'\$ref': '#/components/schemas/([^']+)'", repr(document)))
    assert refs
    assert refs <= document["components"]["schemas"].keys()
