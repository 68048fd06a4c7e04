"""The MCP server: verify_claim, verify_claims and audit_trace as tools for agents, over stdio and HTTP (LB3).

The only module that imports `mcp`, which comes with the extra of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request

from proxy.config import Mcp
from proxy.dialects.checks import ClaimCheck, TraceCheck, read_answer_check, read_check
from proxy.dialects.jsonbytes import dumps, loads
from proxy.errors import RequestError
from proxy.gateway.checks import Checks
from proxy.gateway.estimators import Asker
from proxy.server.exchange import TENANT

PATH = "/mcp"

_INSTRUCTIONS = (
    "Checks what is said against the evidence that you give, never against the world. A claim is supported, "
    "contradicted, unsupported (the evidence does not say it) or not_checked, with the reason and the evidence found."
)
_READS_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Evidence = Annotated[list[str], Field(description="The texts that may support it, each a source of its own.")]


def mcp_server(checks: Checks) -> MCPServer:
    """The server over what `checks` can check. What is wrong with a call is told to the agent in a sentence."""
    server = MCPServer("groundwire", instructions=_INSTRUCTIONS, version=version("groundwire"), log_level="WARNING")

    @server.tool(annotations=_READS_ONLY)
    async def verify_claim(
        claim: Annotated[str, Field(description="One claim, in words that can be read without anything else.")],
        evidence: Evidence,
        confidence: Annotated[
            float | None, Field(description="The belief (0-1) to which the evidence has to carry the claim.")
        ] = None,
    ) -> dict[str, Any]:
        """Says whether evidence supports or contradicts one claim, how many bits it tells, and where it stands."""
        with _told():
            check = read_check(ClaimCheck, dumps({"claim": claim, "evidence": evidence, "confidence": confidence}))
            return dict(await checks.claim(check, Asker()))

    @server.tool(annotations=_READS_ONLY)
    async def verify_claims(
        text: Annotated[str, Field(description="An answer, as it would be given to a user.")],
        context: Evidence,
        call: Context,
        question: Annotated[str, Field(description="What the answer answers.")] = "",
    ) -> dict[str, Any]:
        """Cuts an answer into its claims and says of each whether the context supports or contradicts it."""
        body = dumps({"answer": text, "sources": [{"text": each} for each in context], "question": question})
        with _told():
            check, request = read_answer_check(body, {}, _tenant(call))
            report: dict[str, Any] = loads(await checks.answer(check, request, Asker()))
            return report

    @server.tool(annotations=_READS_ONLY)
    async def audit_trace(
        steps: Annotated[list[str], Field(description="The steps of the reasoning, in their order.")],
        context: Evidence,
        call: Context,
        answer: Annotated[str | None, Field(description="The answer that the steps should lead to.")] = None,
        question: Annotated[str, Field(description="The question that is answered.")] = "",
    ) -> dict[str, Any]:
        """Says of each step whether it follows from the context and earlier steps, and of the answer from all."""
        given: Mapping[str, Any] = {"steps": steps, "context": context, "answer": answer, "question": question}
        with _told():
            return dict(await checks.audit(read_check(TraceCheck, dumps(given)), Asker(), _tenant(call)))

    return server


def mounted(server: MCPServer, settings: Mcp) -> Starlette:
    """The server as an application that answers at `PATH`; any replica can answer any call.

    Whoever mounts it enters `server.session_manager.run()` for as long as it is to answer.
    """
    security = TransportSecuritySettings(
        allowed_hosts=list(settings.allowed_hosts), allowed_origins=list(settings.allowed_origins)
    )
    return server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security
    )


def _tenant(call: Context) -> str:
    """Return the tenant of a call over HTTP; over stdio there is only one."""
    request = call.request_context.request
    return str(request.scope.get(TENANT, "")) if isinstance(request, Request) else ""


@contextmanager
def _told() -> Iterator[None]:
    """Tells the agent what is wrong with its call; of any other failure it hears only that there was one."""
    try:
        yield
    except RequestError as error:
        raise ToolError(str(error)) from error
