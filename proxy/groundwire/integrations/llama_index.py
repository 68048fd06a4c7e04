"""LlamaIndex: an evaluator that checks an answer against its nodes, and an event handler that collects reports.

Needs `llama-index-core`. The report on one answer of the proxy is `grounding_of(response)` of a chat response, which
has it in `raw`; a query engine drops that, so the handler takes it from the events of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatInProgressEvent

from groundwire.integrations.documents import explain, sources_of
from groundwire.integrations.sdk import grounding_of
from groundwire.judge import Judge
from groundwire.library import verify_claims_async
from groundwire.policy import Policy


class GroundingEvaluation(EvaluationResult):
    """An evaluation with the report that it is made from."""

    report: dict[str, Any] | None = None


class GroundingEvaluator(BaseEvaluator):
    """Checks which claims of an answer its contexts support; `passing` is set when all checked ones are supported.

    `score` is the share of supported claims. An answer without a checkable claim is an invalid result.
    """

    def __init__(self, policy: Policy = Policy(), judge: Judge | None = None) -> None:
        self._policy, self._judge = policy, judge

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """Accept prompts, of which there are none."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Check a response against contexts. Raises ValueError if either is missing."""
        if response is None or contexts is None:
            raise ValueError("'response' and 'contexts' must be given")
        report = await verify_claims_async(
            response, sources_of(list(contexts)), question=query or "", policy=self._policy, judge=self._judge
        )
        return GroundingEvaluation(
            query=query,
            contexts=list(contexts),
            response=response,
            passing=report.verdict == "grounded",
            score=report.score,
            feedback=explain(report),
            invalid_result=report.score is None,
            invalid_reason="no claim could be checked" if report.score is None else None,
            report=dict(report.to_dict()),
        )


class GroundingEventHandler(BaseEventHandler):
    """Collects the reports on the answers of a chat model behind the proxy, in `reports`, whole and streamed."""

    reports: list[Any] = []  # noqa: RUF012 - pydantic copies it

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex knows the handler."""
        return "GroundingEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Keep the report of an event of a model that carries one; a report is kept once."""
        if not isinstance(event, (LLMChatEndEvent, LLMChatInProgressEvent)):
            return
        report = grounding_of(event.response)
        if report and all(each["id"] != report["id"] for each in self.reports):
            self.reports.append(report)
