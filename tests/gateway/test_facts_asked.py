"""A request names parameters, and the numbers of its answer are checked against the database."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.exchanges import answered, asked, grounding_in, house, whole

ANSWER = "Occupancy was 93.5% in Q3 2024. Net operating income was $2 million in Q3 2024. The cap rate is 5%."


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Any]:
    """The settings of a database with figures of one property."""
    file = tmp_path / "figures.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE figures (property INTEGER, label TEXT, value REAL, unit TEXT, period TEXT)")
        rows = [(7, "Occupancy rate", 93.5, "%", "Q3 2024"), (7, "Net operating income", 1250000, "USD", "Q3 2024")]
        connection.executemany("INSERT INTO figures VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    select = "SELECT label, value, unit, period FROM figures WHERE property = :property_id"
    return {"url": f"sqlite:///{file}", "templates": {"figures": select}}


def report(grounding: dict[str, Any], context: str = "", **sections: Any) -> dict[str, Any]:
    """The report on ANSWER to a question, with this context or none."""

    async def work() -> dict[str, Any]:
        serving = house(whole(ANSWER), **sections)
        messages = [{"role": "system", "content": context}] if context else []
        messages += [{"role": "user", "content": "How is the property doing?"}]
        _, raw = await answered(serving, {**asked(grounding=grounding), "messages": messages})
        await serving.close()
        return grounding_in(raw)

    return asyncio.run(work())


def test_numbers_are_checked_against_the_values_that_a_request_names(figures: dict[str, Any]) -> None:
    found = report({"facts": {"property_id": 7}}, facts=figures)
    claims = found["choices"][0]["claims"]
    assert [claim["label"] for claim in claims] == ["supported", "contradicted", "not_checked"]
    assert [citation["match"] for claim in claims for citation in claim["citations"]] == ["sql", "sql"]
    assert [(source["id"], source["kind"]) for source in found["sources"]] == [("facts.figures", "facts")]


def test_no_row_leaves_everything_unchecked(figures: dict[str, Any]) -> None:
    found = report({"facts": {"property_id": 8}}, facts=figures)
    assert {claim["label"] for claim in found["choices"][0]["claims"]} == {"not_checked"}
    assert (found["verdict"], found["score"]) == ("not_checked", None)


def test_a_failing_database_gives_a_warning_and_no_flags(figures: dict[str, Any]) -> None:
    broken = {**figures, "templates": {"figures": "SELECT label, value FROM missing WHERE property = :property_id"}}
    found = report({"facts": {"property_id": 7}}, facts=broken)
    assert found["warnings"] == ["facts.figures: error (OperationalError)"]
    assert (found["verdict"], found["flags"]) == ("not_checked", [])


NULLS = "SELECT label, NULL AS value, unit, period FROM figures WHERE property = :property_id"
SLOW = (
    "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) "
    "SELECT 'x' AS label, max(i) AS value FROM n WHERE i > :property_id"
)


@pytest.mark.parametrize(
    ("template", "warning"),
    [
        ("SELECT label, value FROM missing WHERE property = :property_id", "error (OperationalError)"),
        ("SELECT label, value FROM figures WHERE property = -:property_id", "no_row"),
        ("SELECT property FROM figures WHERE property = :property_id", "bad_columns"),
        ("SELECT label, label AS value FROM figures WHERE property = :property_id", "not_a_number"),
        (NULLS, None),
        (SLOW, "timeout"),
    ],
    ids=["error", "no row", "bad columns", "no number", "NULL", "time-out"],
)
def test_other_sources_make_a_database_that_fails_no_reason_for_doubt(
    figures: dict[str, Any], template: str, warning: str | None
) -> None:
    settings = {**figures, "templates": {"figures": template}, "timeout": "200ms"}
    found = report({"facts": {"property_id": 7}}, "The lobby was painted. The cap rate is 5%.", facts=settings)
    told = [each for each in found["warnings"] if each.startswith("facts.figures")]
    assert [each.startswith(f"facts.figures: {warning}") for each in told] == ([True] if warning else [])
    labels = [claim["label"] for claim in found["choices"][0]["claims"]]
    assert labels == ["not_checked", "not_checked", "supported"]
    assert {"unsupported_claims", "high_risk", "numeric_mismatch"}.isdisjoint(found["flags"])


def test_a_request_without_parameters_queries_no_database(figures: dict[str, Any]) -> None:
    assert report({}, facts=figures)["sources"] == []


def test_values_that_nobody_has_set_up_are_a_warning() -> None:
    assert report({"facts": {"property_id": 7}})["warnings"] == ["facts: no SQL templates are configured"]


def test_a_parameter_that_no_template_takes_is_a_warning(figures: dict[str, Any]) -> None:
    assert report({"facts": {"propertyid": 7}}, facts=figures)["warnings"] == ["facts: no template takes 'propertyid'"]
