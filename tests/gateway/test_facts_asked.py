"""FA1, FA2: a request names parameters, and the numbers of its answer are checked against the database."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from exchanges import answered, asked, grounding_in, house, whole

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


def report(grounding: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """The report on ANSWER to a question without any context of its own."""

    async def work() -> dict[str, Any]:
        serving = house(whole(ANSWER), **sections)
        messages = [{"role": "user", "content": "How is the property doing?"}]
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


def test_a_database_that_fails_is_told_and_doubts_nothing(figures: dict[str, Any]) -> None:
    broken = {**figures, "templates": {"figures": "SELECT label, value FROM missing WHERE property = :property_id"}}
    found = report({"facts": {"property_id": 7}}, facts=broken)
    assert found["warnings"] == ["facts.figures: error (OperationalError)"]
    assert (found["verdict"], found["flags"]) == ("not_checked", [])


def test_nothing_is_asked_unless_a_request_names_parameters(figures: dict[str, Any]) -> None:
    assert report({}, facts=figures)["sources"] == []


def test_values_that_nobody_has_set_up_are_a_warning() -> None:
    assert report({"facts": {"property_id": 7}})["warnings"] == ["facts: no SQL templates are configured"]


def test_a_parameter_that_no_template_takes_is_a_warning(figures: dict[str, Any]) -> None:
    assert report({"facts": {"propertyid": 7}}, facts=figures)["warnings"] == ["facts: no template takes 'propertyid'"]
