"""Haystack: the component in a pipeline."""

from __future__ import annotations

import pytest

from tests.integrations.conftest import ANSWER, SYSTEM, TRUE, labels

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.dataclasses import ChatMessage

from groundwire.integrations.haystack import GroundingChecker

DOCUMENTS = [Document(content=SYSTEM, meta={"title": "Acme", "url": "https://example.com/acme"})]


def test_replies_are_checked_in_a_pipeline() -> None:
    pipeline = Pipeline()
    pipeline.add_component("checker", GroundingChecker())
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["groundwire.integrations.haystack"])
    for each in (pipeline, again):
        given = {"replies": [ANSWER, ChatMessage.from_assistant(TRUE), "Shall I?"], "documents": DOCUMENTS}
        found = each.run({"checker": given})["checker"]
        assert found["scores"] == [0.5, 1.0, None]
        assert labels(found["reports"][0]) == ["supported", "contradicted"]
        assert (found["reports"][0]["sources"][0]["title"], found["reports"][0]["sources"][0]["url"]) == (
            "Acme",
            "https://example.com/acme",
        )
