"""A gate for CI: the application's answers must be supported by their documents, or the build fails.

`pytest examples/ci_gate` runs offline, with the demo model. The fixture `assert_grounded` comes with groundwire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groundwire.demo.model import MODEL, SCENARIOS, Scenario, build_model
from groundwire.demo.show import serving

openai = pytest.importorskip("openai")

HANDBOOK, ANNUAL_REPORT, _ = SCENARIOS


@pytest.fixture(scope="session")
def answer() -> Iterator[Callable[[Scenario], str]]:
    """Return the application: here a call of the demo model."""
    with serving(build_model(0)) as url:
        client = openai.OpenAI(base_url=url, api_key="none")

        def ask(scenario: Scenario) -> str:
            completion = client.chat.completions.create(model=MODEL, messages=scenario.messages)
            return str(completion.choices[0].message.content)

        yield ask


def test_answers_on_the_handbook_are_supported(answer: Any, assert_grounded: Any) -> None:
    """Fails if a claim of the answer is not in the documents."""
    assert_grounded(answer(HANDBOOK), sources=[HANDBOOK.messages[0]["content"]])


@pytest.mark.xfail(strict=True, reason="known: the operating profit is wrong, and a quotation is made up")
def test_answers_on_the_annual_report_are_supported(answer: Any, assert_grounded: Any) -> None:
    """A known failure, which fails the build once it is repaired, so that the mark is removed."""
    assert_grounded(answer(ANNUAL_REPORT), sources=[ANNUAL_REPORT.messages[0]["content"]])
