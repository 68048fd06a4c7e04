"""LiteLLM: a guardrail for its proxy and a logger for its SDK that check answers with the library.

Needs `litellm`. Neither changes or rejects an answer: the report is added to the response, or given to a function.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.integrations.custom_logger import CustomLogger

from groundwire.integrations.documents import sources_of
from groundwire.judge import Judge
from groundwire.library import verify_claims, verify_claims_async
from groundwire.policy import Policy
from groundwire.report import Report


class GroundingGuardrail(CustomGuardrail):
    """A guardrail of mode `post_call` that adds the report to each response as `grounding`.

    Of a stream, only the events from the finish reason on are held, until the report is made.
    """

    def __init__(self, policy: Policy = Policy(), judge: Judge | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._policy, self._judge = policy, judge

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """Add the report to a whole response."""
        if answer := _text(response, "message"):
            response.grounding = (await self._report(data, answer)).to_dict()
        return response

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Pass a stream on and add the report to its last event."""
        text, held = "", list[Any]()
        async for event in response:
            text += _text(event, "delta")
            if held or _is_finished(event):
                held.append(event)
            else:
                yield event
        if held and text:
            held[-1].grounding = (await self._report(request_data, text)).to_dict()
        for event in held:
            yield event

    async def _report(self, data: Mapping[str, Any], answer: str) -> Report:
        arguments = _evidence(data)
        return await verify_claims_async(answer, **arguments, policy=self._policy, judge=self._judge)


class GroundingLogger(CustomLogger):
    """A callback for `litellm.callbacks` that calls a function with each report and the arguments of the call."""

    def __init__(
        self,
        on_report: Callable[[Report, Mapping[str, Any]], None],
        policy: Policy = Policy(),
        judge: Judge | None = None,
    ) -> None:
        super().__init__()
        self._on_report, self._policy, self._judge = on_report, policy, judge

    def log_success_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Check the answer of a synchronous call; LiteLLM calls this in a thread."""
        if answer := _text(response_obj, "message"):
            report = verify_claims(answer, **_evidence(kwargs), policy=self._policy, judge=self._judge)
            self._on_report(report, kwargs)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Check the answer of an asynchronous call."""
        if answer := _text(response_obj, "message"):
            arguments = _evidence(kwargs)
            self._on_report(
                await verify_claims_async(answer, **arguments, policy=self._policy, judge=self._judge), kwargs
            )


def _evidence(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages and documents of a request as arguments of the library."""
    return {"messages": data.get("messages") or (), "sources": sources_of(data.get("documents") or ())}


def _text(response: Any, member: str) -> str:
    """Return the text of the `message` or `delta` of the first choice, "" if there is none."""
    choices = getattr(response, "choices", None) or ()
    return str(getattr(getattr(choices[0], member, None), "content", None) or "") if choices else ""


def _is_finished(event: Any) -> bool:
    return any(getattr(choice, "finish_reason", None) for choice in getattr(event, "choices", None) or ())
