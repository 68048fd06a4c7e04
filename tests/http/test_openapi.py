"""The OpenAPI document has all of the proxy's own endpoints, and its schemas are correct."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.routing import Mount, Route

from groundwire.config import Settings
from groundwire.dialects.jsonbytes import loads
from groundwire.dialects.request import Options
from groundwire.http.app import build_app
from groundwire.http.openapi import OPERATIONS, openapi
from tests.servers.review_site import ANSWER, SOURCE, Site, exchange, visit

OURS = ("/v1/grounding", "/v1/reviews", "/v1/subjects", "/healthz", "/readyz", "/metrics", "/openapi.json")


def served(tmp_path: Path) -> set[tuple[str, str]]:
    """Method and path of each of the application's own endpoints, pages excepted."""
    app = build_app(Settings.model_validate({"store": {"url": f"sqlite:///{tmp_path}/history.db"}}))
    found: list[tuple[str, Route]] = []
    for route in app.routes:
        if isinstance(route, Mount):
            found += [(route.path + inner.path, inner) for inner in route.routes if isinstance(inner, Route)]
        elif isinstance(route, Route):
            found.append((route.path, route))
    return {
        (method.lower(), re.sub(r":(path|text)}", "}", path))
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
def test_stored_data_is_returned_as_the_document_describes(tmp_path: Path, path: str, url: str) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            jsonschema.validate((await api.get(url)).json(), schema_of(path, "get"))

    visit(tmp_path, work, exchange(subject="acme"))


def test_a_report_matches_its_schema_in_the_document() -> None:
    jsonschema.validate(loads(exchange(answer=ANSWER, source=SOURCE).kept), schema_of("/v1/grounding/{id}", "get"))


GIVEN = ["Revenue was $4.2 million in 2023.", "Profit fell."]
FACTS = [{"text": "Profit fell."}, {"text": "It rained."}]
OWN = (
    ("/v1/grounding/claims", {"text": "Revenue was $4.2M. Is that good?"}),
    ("/v1/grounding/claim", {"claim": "Revenue was $4.2M.", "evidence": GIVEN}),
    ("/v1/grounding/evidence", {"answer": {"q": ["Profit fell", "It rose"]}, "fields": ["q"], "sources": GIVEN}),
    ("/v1/grounding/evidence", {"answer": {"q": "Profit fell"}, "evidence_fields": ["q"], "sources": GIVEN[1]}),
    ("/v1/grounding/verify", {"answer": "Revenue was $4.2M.", "sources": [{"text": GIVEN[0]}]}),
    ("/v1/grounding/trace", {"steps": ["Profit fell.", "Profit rose."], "context": GIVEN, "answer": "Profit fell."}),
    ("/v1/grounding/memory", {"subject": "acme", "evidence": GIVEN, "facts": FACTS}),
    ("/v1/grounding/memory", None),
    ("/healthz", None),
    ("/readyz", None),
)  # fmt: skip


def test_every_check_is_returned_as_the_document_describes() -> None:
    on = {"enabled": True}
    app = build_app(Settings.model_validate({"information_budget": {**on, "memory_gate": on, "trace_auditing": on}}))

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://site") as client:
            for path, body in OWN:
                asked = client.get(path, params={"subject": "acme"}) if body is None else client.post(path, json=body)
                reply = await asked
                assert reply.status_code == 200, (path, reply.text)
                jsonschema.validate(reply.json(), schema_of(path, "get" if body is None else "post"))

    asyncio.run(work())
    assert {(each.method, each.path) for each in OPERATIONS if not each.gives} == {
        ("get", "/metrics"),
        ("get", "/openapi.json"),
        ("get", "/v1/reviews/export"),
    }


@pytest.mark.parametrize("model", ["ClaimCheck", "EvidenceCheck", "FactIn", "MemoryCheck", "TraceCheck", "VerifyBody"])
def test_the_document_describes_sources_as_the_code_reads_them(model: str) -> None:
    """A plain text, or a list of texts and objects; nothing else."""
    components = openapi()["components"]
    schema = {**components["schemas"][model]["properties"]["sources"], "components": components}
    for given in ("text", ["text", {"text": "x", "id": "a"}], []):
        jsonschema.validate(given, schema)
        assert Options.model_validate({"sources": given})
    for given in (5, {"text": "x"}, [{"id": "a"}], None):
        assert not jsonschema.Draft202012Validator(schema).is_valid(given)
        with pytest.raises(ValueError, match="sources"):
            Options.model_validate({"sources": given})


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = openapi()
    refs = set(re.findall(r"'\$ref': '#/components/schemas/([^']+)'", repr(document)))
    assert refs
    assert refs <= document["components"]["schemas"].keys()
