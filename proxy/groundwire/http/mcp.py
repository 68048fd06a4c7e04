"""The MCP server: verify_claim, verify_claims and audit_trace as tools for agents, over stdio and HTTP.

The only module that imports `mcp`, which comes with the extra of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import AliasChoices, BeforeValidator, FailFast, Field
from starlette.applications import Starlette
from starlette.requests import Request

from groundwire.config import Mcp
from groundwire.dialects.checks import ClaimCheck, TraceCheck, read_answer_check, read_check
from groundwire.dialects.jsonbytes import dumps, is_light, loads
from groundwire.dialects.request import MAX_VALUES, has_over, read_object, text_as_list
from groundwire.errors import BodyTooLarge, RequestError
from groundwire.gateway.checks import Checks
from groundwire.gateway.forward import Caller, parsed
from groundwire.http.exchange import TENANT

PATH = "/mcp"

_INSTRUCTIONS = (
    "Checks claims against the evidence that you give, never against the world. A claim is supported, "
    "contradicted, unsupported (the evidence does not say it) or not_checked, with the reason and the evidence found."
)
_READS_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

_DESCRIPTION = (
    "The sources that may support it: a text, or a list of texts or of objects with `text` and optionally `id`, "
    "`title` and `url`."
)

_Listed = tuple[str | dict[str, Any], ...]

Sources = Annotated[
    _Listed,
    FailFast(),
    BeforeValidator(text_as_list, json_schema_input_type=str | _Listed),
    Field(description=_DESCRIPTION),
]


def mcp_server(checks: Checks) -> MCPServer:
    """Build the server for `checks`. Errors in a call are returned to the agent as a sentence."""
    server = MCPServer("groundwire", instructions=_INSTRUCTIONS, version=version("groundwire"), log_level="WARNING")

    @server.tool(annotations=_READS_ONLY)
    async def verify_claim(
        claim: Annotated[str, Field(description="One claim, in words that can be read without anything else.")],
        sources: Annotated[Sources, Field(validation_alias=AliasChoices("sources", "evidence"))],
        confidence: Annotated[
            float | None, Field(description="The belief (0-1) to which the evidence has to carry the claim.")
        ] = None,
    ) -> dict[str, Any]:
        """Check whether sources support or contradict one claim; return the evidence and the information in bits."""
        with _request_errors_as_tool_errors():
            body = dumps({"claim": claim, "sources": sources, "confidence": confidence})
            check = await parsed(body, lambda: read_check(ClaimCheck, body))
            return dict(await checks.claim(check, Caller()))

    @server.tool(annotations=_READS_ONLY)
    async def verify_claims(
        answer: Annotated[str, Field(description="The answer.", validation_alias=AliasChoices("answer", "text"))],
        call: Context,
        sources: Annotated[Sources, Field(validation_alias=AliasChoices("sources", "context"))] = (),
        messages: Annotated[
            tuple[dict[str, Any], ...],
            FailFast(),
            Field(description="The messages of the chat request that the answer is for; they are sources, too."),
        ] = (),
        question: Annotated[str, Field(description="The question that the answer responds to.")] = "",
        evidence_fields: Annotated[
            tuple[str, ...], FailFast(), Field(description="The fields of a JSON answer that hold quotations.")
        ] = (),
        json_schema: Annotated[
            dict[str, Any] | None, Field(description="The JSON Schema that the answer should conform to.")
        ] = None,
    ) -> dict[str, Any]:
        """Split an answer into claims and check whether sources or messages support or contradict each of them."""
        body = dumps(
            {
                "answer": answer,
                "sources": sources,
                "messages": messages,
                "question": question,
                "evidence_fields": evidence_fields,
                "json_schema": json_schema,
            }
        )
        with _request_errors_as_tool_errors():
            check, request = await parsed(body, lambda: read_answer_check(body, {}, _tenant(call)))
            report: dict[str, Any] = loads(await checks.answer(check, request, Caller()))
            return report

    @server.tool(annotations=_READS_ONLY)
    async def audit_trace(
        steps: Annotated[list[str], FailFast(), Field(description="The steps of the reasoning, in their order.")],
        sources: Annotated[Sources, Field(validation_alias=AliasChoices("sources", "context"))],
        call: Context,
        answer: Annotated[str | None, Field(description="The answer that the steps should lead to.")] = None,
        question: Annotated[str, Field(description="The question that is answered.")] = "",
    ) -> dict[str, Any]:
        """Check whether each step follows from the sources and earlier steps, and the answer from all of them."""
        body = dumps({"steps": steps, "sources": sources, "answer": answer, "question": question})
        with _request_errors_as_tool_errors():
            check = await parsed(body, lambda: read_check(TraceCheck, body))
            return dict(await checks.audit(check, Caller(), _tenant(call)))

    return server


def mcp_app(server: MCPServer, settings: Mcp) -> Starlette:
    """Return the server as an ASGI application at `PATH`; any replica can answer any call.

    It works only within `server.session_manager.run()`.
    """
    security = TransportSecuritySettings(
        allowed_hosts=list(settings.allowed_hosts), allowed_origins=list(settings.allowed_origins)
    )
    return server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security
    )


def check_call(body: bytes) -> None:
    """Raise RequestError for a call that holds too many values to be read on the event loop, or is no JSON object."""
    if not is_light(body) and has_over(read_object(body), MAX_VALUES):
        raise BodyTooLarge(f"A call may hold at most {MAX_VALUES} values.")


def _tenant(call: Context) -> str:
    """Return the tenant of a call over HTTP; over stdio there is only one."""
    request = call.request_context.request
    return str(request.scope.get(TENANT, "")) if isinstance(request, Request) else ""


@contextmanager
def _request_errors_as_tool_errors() -> Iterator[None]:
    """Return request errors to the agent; the text of other errors is not disclosed."""
    try:
        yield
    except RequestError as error:
        raise ToolError(str(error)) from error
