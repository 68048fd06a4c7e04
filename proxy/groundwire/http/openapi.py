"""The OpenAPI document of the proxy's endpoints, generated from the models that validate them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from groundwire.dialects import checks as s
from groundwire.dialects import reviews as r
from groundwire.dialects.checks import ClaimCheck, EvidenceCheck, MemoryCheck, TextCheck, TraceCheck
from groundwire.dialects.jsonbytes import dumps
from groundwire.http.exchange import JSON
from groundwire.report_schema import GroundingReport, ReportClaim
from groundwire.wire import Call, Reply

Model = type[Any]  # a pydantic model or a TypedDict
Mode = Literal["validation", "serialization"]

_SCHEMAS = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint: its purpose, its request and response models (None: JSON of no fixed shape), and its access."""

    method: str
    path: str
    summary: str
    gives: Model | None = None
    body: type[BaseModel] | None = None
    query: type[r.Query] | None = None
    errors: tuple[int, ...] = ()
    for_admins: bool = False
    media: str = "application/json"


_BODY = (400, 413)
_STORED = (400, 401, 503)

OPERATIONS = (
    Operation("post", "/v1/grounding/verify", "Verify an answer", GroundingReport, s.VerifyBody, errors=_BODY),
    Operation("post", "/v1/grounding/claims", "Find the claims of a text", s.FoundClaims, TextCheck, errors=_BODY),
    Operation("post", "/v1/grounding/claim", "Verify one claim", ReportClaim, ClaimCheck, errors=_BODY),
    Operation("post", "/v1/grounding/evidence", "Check JSON quotations", s.QuotesFound, EvidenceCheck, errors=(400,)),
    Operation("post", "/v1/grounding/trace", "Audit steps of reasoning", s.AuditedTrace, TraceCheck, errors=_BODY),
    Operation("post", "/v1/grounding/memory", "Add facts to memory", s.DecidedFacts, MemoryCheck, errors=_BODY),
    Operation("get", "/v1/grounding/memory", "Facts in memory about a subject", s.StoredFacts, errors=(400, 503)),
    Operation("get", "/v1/grounding/{id}", "A report by its id", GroundingReport, errors=(404, 503)),
    Operation("get", "/v1/grounding", "Find exchanges", r.ExchangePage, None, r.ExchangeQuery, _STORED, True),
    Operation("get", "/v1/grounding/metrics", "Quality trends", r.Metrics, None, r.MetricsQuery, _STORED, True),
    Operation("get", "/v1/grounding/similar", "Similar past questions", r.SimilarPage, None, r.SimilarQuery,
        _STORED, True),
    Operation("get", "/v1/subjects/{subject}/entities", "Statements about each name", r.EntityHistory, None,
        r.SubjectQuery, _STORED, True),
    Operation("get", "/v1/reviews", "The review queue", r.ReviewPage, None, r.ReviewQuery, _STORED, True),
    Operation("get", "/v1/reviews/{id}", "One finding", r.ReviewDetail, None, None, (401, 404, 503), True),
    Operation("post", "/v1/reviews", "Decide on any claim", r.ReviewOut, r.ClaimDecisionIn, None,
        (400, 401, 404, 409, 503), True),
    Operation("post", "/v1/reviews/{id}", "Decide on a finding", r.ReviewOut, r.DecisionIn, None,
        (400, 401, 404, 409, 503), True),
    Operation("get", "/v1/reviews/export", "Decisions as a file of JSON lines or CSV", None, None, r.ExportQuery,
        _STORED, True, "application/jsonl"),
    Operation("delete", "/v1/subjects/{subject}", "Forget a subject", r.Forgotten, None, r.SubjectQuery, _STORED, True),
    Operation("get", "/healthz", "Check that the process is alive", s.Alive),
    Operation("get", "/readyz", "Readiness, and the parts that are degraded", s.Readiness),
    Operation("get", "/metrics", "Metrics for Prometheus", media="text/plain"),
    Operation("get", "/openapi.json", "This document"),
)  # fmt: skip

_ERRORS = {
    400: "The request is not valid for this endpoint.",
    401: "An admin key is needed.",
    404: "Not found, or no longer stored.",
    409: "Somebody else has decided meanwhile; their decision is in `decision`, its version in `version`.",
    413: "The body is too large.",
    503: "The store cannot be reached at the moment.",
}

_GUARD = {401: "A client key is needed, where keys are on.", 429: "A limit of the key is exceeded."}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document."""
    given = {each.gives.__name__: each.gives for each in OPERATIONS if each.gives} | {"FailureBody": s.FailureBody}
    taken = {each.body.__name__: each.body for each in OPERATIONS if each.body}
    wanted: list[tuple[str, Mode, TypeAdapter[Any]]] = [
        *((name, "serialization", TypeAdapter(given[name])) for name in sorted(given)),
        *((name, "validation", TypeAdapter(taken[name])) for name in sorted(taken)),
    ]
    refs, defined = TypeAdapter.json_schemas(wanted, ref_template=_SCHEMAS)
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _operation(each, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Groundwire",
            "version": version("groundwire"),
            "description": "The proxy's own endpoints. All other paths below /v1 are those of the model server.",
        },
        "paths": paths,
        "components": {
            "schemas": defined.get("$defs", {}),
            "securitySchemes": {
                "admin": {"type": "http", "scheme": "bearer", "description": "An admin key."},
                "client": {"type": "http", "scheme": "bearer", "description": "A client key, where keys are on."},
            },
        },
    }


async def document(_: Call, __: Mapping[str, str]) -> Reply:
    """Return the document, which is built on first use."""
    return Reply(200, JSON, _document())


@cache
def _document() -> bytes:
    return dumps(openapi())


def _operation(each: Operation, refs: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    gives = (
        refs[each.gives.__name__, "serialization"] if each.gives else {"type": "string"} if "text" in each.media else {}
    )
    failed = {"application/json": {"schema": refs[s.FailureBody.__name__, "serialization"]}}
    operation: dict[str, Any] = {
        "summary": each.summary,
        "responses": {
            "200": {"description": "Done.", "content": {each.media: {"schema": gives}}},
            **{str(status): {"description": _ERRORS[status], "content": failed} for status in each.errors},
        },
    }
    if parameters := list(_parameters(each)):
        operation["parameters"] = parameters
    if each.body:
        content = {"application/json": {"schema": refs[each.body.__name__, "validation"]}}
        operation["requestBody"] = {"required": True, "content": content}
    if each.for_admins:
        operation["security"] = [{"admin": []}]
        operation["responses"]["429"] = {"description": "Too many keys were wrong.", "content": failed}
    elif each.path.startswith("/v1/"):
        operation["security"] = [{}, {"client": []}]
        operation["responses"] |= {
            str(status): {"description": description, "content": failed} for status, description in _GUARD.items()
        }
    return operation


def _parameters(each: Operation) -> Iterator[dict[str, Any]]:
    for part in each.path.split("/"):
        if part.startswith("{"):
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
    if each.path == "/v1/grounding/memory" and each.method == "get":
        yield {"name": "subject", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}}
    schema = each.query.model_json_schema() if each.query else {}
    required = schema.get("required", ())
    for name, value in schema.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": value}
