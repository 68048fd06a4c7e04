"""Haystack: a component that checks replies against documents. Needs `haystack-ai`."""

from __future__ import annotations

from typing import Any

from haystack import Document, component

from groundwire.integrations.documents import sources_of, text_of
from groundwire.library import verify_claims


@component
class GroundingChecker:
    """Checks the replies of a generator against the documents of a retriever.

    `reports` and `scores` have one entry per reply; a score is None if no claim of the reply was checked.
    """

    @component.output_types(reports=list[dict[str, Any]], scores=list[Any])
    def run(self, replies: list[Any], documents: list[Document], question: str = "") -> dict[str, Any]:
        """Check replies, which are texts or chat messages."""
        sources = sources_of(documents)
        reports = [verify_claims(text_of(reply), sources, question=question).to_dict() for reply in replies]
        return {"reports": reports, "scores": [report["score"] for report in reports]}
