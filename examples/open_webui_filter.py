"""
title: Groundwire
description: Shows which claims of an answer its context supports, contradicts or does not mention.
required_open_webui_version: 0.5.17
version: 1.0.0
license: Apache-2.0
"""

from typing import Any

import aiohttp
from pydantic import BaseModel, Field


class Filter:
    """A filter function for Open WebUI. It changes no answer: it adds a status line, and a citation for each claim.

    Of models behind Groundwire, the report is in the last event of the stream. Answers of other models are checked
    against the sources of Open WebUI's own retrieval, if `check_url` is set.
    """

    class Valves(BaseModel):
        """The settings in the admin panel."""

        priority: int = Field(default=0, description="Filters with a lower number run first.")
        list_claims: bool = Field(default=True, description="Add a citation for each claim that is not supported.")
        send_session: bool = Field(default=False, description="Send the chat's id to Groundwire, for its review pages.")
        check_url: str = Field(
            default="",
            description="Groundwire's address, such as http://groundwire:8080, to check other models' answers.",
        )
        api_key: str = Field(default="", description="The key for this address, if it needs one.")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(self, body: dict[str, Any], __metadata__: dict[str, Any] | None = None) -> dict[str, Any]:
        """Add the chat's id to a request, if the settings ask for it."""
        chat = (__metadata__ or {}).get("chat_id")
        if self.valves.send_session and chat:
            body["grounding"] = {**body.get("grounding", {}), "session": chat}
        return body

    async def stream(self, event: dict[str, Any], __event_emitter__: Any = None) -> dict[str, Any]:
        """Show the report that an event of an answer carries."""
        response = event.get("response")
        for part in (event, response if isinstance(response, dict) else {}):
            await self._show(part.get("grounding"), __event_emitter__)
        return event

    async def outlet(self, body: dict[str, Any], __event_emitter__: Any = None) -> dict[str, Any]:
        """Check a finished answer against its sources, if `check_url` is set. A failure leaves the answer alone."""
        *earlier, answer = body.get("messages") or [{}]
        sources = [
            {"text": text, "title": str((source.get("source") or {}).get("name") or "")}
            for source in answer.get("sources") or ()
            for text in source.get("document") or ()
        ]
        if self.valves.check_url and sources and answer.get("role") == "assistant":
            question = next((each["content"] for each in reversed(earlier) if each.get("role") == "user"), "")
            asked = {"answer": answer.get("content") or "", "sources": sources, "question": question}
            try:
                await self._show(await self._verify(asked), __event_emitter__)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                await _status(__event_emitter__, f"Grounding was not checked: {type(error).__name__}")
        return body

    async def _verify(self, asked: dict[str, Any]) -> Any:
        url = f"{self.valves.check_url.rstrip('/')}/v1/grounding/verify"
        headers = {"Authorization": f"Bearer {self.valves.api_key}"} if self.valves.api_key else {}
        timeout = aiohttp.ClientTimeout(total=30)
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.post(url, json=asked, headers=headers) as response,
        ):
            return await response.json()

    async def _show(self, report: Any, emit: Any) -> None:
        """Show a report below the answer."""
        if not isinstance(report, dict) or "verdict" not in report:
            return
        claims = [claim for choice in report.get("choices", ()) for claim in choice.get("claims", ())]
        checked = [claim for claim in claims if claim["label"] != "not_checked"]
        wrong = [claim for claim in checked if claim["label"] != "supported"]
        found = f"{len(checked) - len(wrong)} of {len(checked)} claims are supported" if checked else report["status"]
        await _status(emit, f"Grounding: {report['verdict'].replace('_', ' ')}, {found}")
        for claim in wrong if self.valves.list_claims else ():
            evidence = [citation["text"] for citation in claim.get("citations", ())]
            source = {"name": f"{claim['label']}: {claim['text']}"}
            data = {
                "source": source,
                "document": ["\n\n".join([claim["reason"], *evidence])],
                "metadata": [{"source": source["name"]}],
            }
            await _emit(emit, {"type": "citation", "data": data})


async def _status(emit: Any, text: str) -> None:
    await _emit(emit, {"type": "status", "data": {"description": text, "done": True}})


async def _emit(emit: Any, event: dict[str, Any]) -> None:
    """Send an event to the page; a request over the API has none."""
    if emit is not None:
        await emit(event)
