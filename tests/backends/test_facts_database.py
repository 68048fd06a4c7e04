"""Queries to the user's database, on SQLite always and on PostgreSQL where there is one."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from groundwire.backends.facts import Facts, FactsDatabase
from tests.servers import databases

ROWS = [
    (1, "Net operating income", 1250000.0, "USD", "Q3 2024"),
    (1, "Occupancy rate", 93.5, "%", "Q3 2024"),
    (1, "Cap rate", None, "%", "Q3 2024"),
    (2, "Occupancy rate", 71.0, "%", "Q3 2024"),
]
ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'x' AS label, count(*) AS value FROM n"
)


@dataclass(frozen=True)
class Place:
    """A database with a table of figures, and the prefix of the table's name."""

    url: str
    prefix: str = ""


def sqlite(folder: Path) -> Iterator[Place]:
    file = folder / "the figures.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE figures (property INTEGER, label TEXT, value REAL, unit TEXT, period TEXT)")
        connection.executemany("INSERT INTO figures VALUES (?, ?, ?, ?, ?)", ROWS)
        connection.commit()
    yield Place(f"sqlite:///{file}")


def postgresql() -> Iterator[Place]:
    with databases.postgresql() as found, psycopg.connect(found.url, autocommit=True) as connection:
        table = f"{found.schema}.figures"
        connection.execute(f"CREATE SCHEMA {found.schema}")
        connection.execute(
            f"CREATE TABLE {table} (property INTEGER, label TEXT, value NUMERIC, unit TEXT, period TEXT)"
        )
        connection.cursor().executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", ROWS)
        yield Place(found.url, f"{found.schema}.")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from sqlite(tmp_path) if request.param == "sqlite" else postgresql()


def ask(place: Place, queries: Mapping[str, str], parameters: Mapping[str, object], **limits: float) -> Facts:
    """Return the results of the queries; `{t}` in them is the table."""
    templates = {name: sql.replace("{t}", f"{place.prefix}figures") for name, sql in queries.items()}

    async def work() -> Facts:
        database = FactsDatabase(place.url, templates, **limits)  # type: ignore[arg-type]
        try:
            return await database.ask(parameters)
        finally:
            await database.close()

    return asyncio.run(work())


def gave_nothing(found: Facts, name: str, reason: str) -> bool:
    """Return whether a query gave no values, for this reason, and left a source without text."""
    told = [(each.template, each.reason) for each in found.shortfalls]
    return told == [(name, reason)] and [(each.id, each.text) for each in found.sources] == [(f"facts.{name}", "")]


FIGURES = {"figures": "SELECT label, value, unit, period FROM {t} WHERE property = :property_id ORDER BY label DESC"}


def test_each_value_is_a_sentence_and_null_an_unknown_value(place: Place) -> None:
    found = ask(place, FIGURES, {"property_id": 1})
    (source,) = found.sources
    assert (source.id, source.kind, found.shortfalls) == ("facts.figures", "facts", ())
    lines = [line.replace("1250000.0 ", "1250000 ") for line in source.text.split("\n")]
    assert lines == [
        "Occupancy rate in Q3 2024 is 93.5%.",
        "Net operating income in Q3 2024 is 1250000 USD.",
        "Cap rate in Q3 2024 is unknown.",
    ]


def test_no_row_is_a_source_without_text(place: Place) -> None:
    found = ask(place, FIGURES, {"property_id": 99})
    assert gave_nothing(found, "figures", "no_row")


def test_a_table_of_periods_gives_a_sentence_for_each(place: Place) -> None:
    periods = {"periods": "SELECT 'Fiscal Q3 2024' AS label, '2024-02-01' AS start, '2024-04-30' AS \"end\""}
    (source,) = ask(place, periods, {}).sources
    assert source.text == "Fiscal Q3 2024 is from 2024-02-01 to 2024-04-30."


def test_a_parameter_is_bound_and_never_becomes_a_part_of_the_query(place: Place) -> None:
    by_label = {"labelled": "SELECT label, value FROM {t} WHERE label = :label"}
    hostile = "x' OR '1'='1"
    assert gave_nothing(ask(place, by_label, {"label": hostile}), "labelled", "no_row")
    assert gave_nothing(ask(place, by_label, {"label": "'; DROP TABLE figures; --"}), "labelled", "no_row")
    assert len(ask(place, by_label, {"label": "Occupancy rate"}).sources[0].text.split("\n")) == 2


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("DELETE FROM {t} WHERE property = :property_id", id="delete"),
        pytest.param("UPDATE {t} SET value = 0 WHERE property = :property_id", id="update"),
        pytest.param("DROP TABLE {t}", id="drop"),
        pytest.param("SELECT 1 AS value, 'a' AS label; DELETE FROM {t}", id="a second statement"),
        pytest.param("COMMIT; DELETE FROM {t}", id="out of the transaction"),
        pytest.param("CREATE TABLE {t}_more (a INTEGER)", id="create"),
    ],
)
def test_nothing_can_be_written(place: Place, sql: str) -> None:
    assert [each.reason for each in ask(place, {"bad": sql}, {"property_id": 1}).shortfalls] == ["error"]
    assert len(ask(place, FIGURES, {"property_id": 1}).sources[0].text.split("\n")) == 3


def test_a_query_that_takes_too_long_is_stopped_and_the_others_answer(place: Place) -> None:
    found = ask(place, {"endless": ENDLESS, **FIGURES}, {"property_id": 1}, timeout_s=0.3)
    assert [(each.template, each.reason) for each in found.shortfalls] == [("endless", "timeout")]
    assert [(source.id, bool(source.text)) for source in found.sources] == [
        ("facts.endless", False),
        ("facts.figures", True),
    ]


def test_rows_beyond_the_limit_are_left_out_and_reported(place: Place) -> None:
    many = {
        "many": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000) "
        "SELECT 'Item ' || x AS label, x AS value FROM n"
    }
    found = ask(place, many, {}, max_rows=20, timeout_s=5.0)
    assert len(found.sources[0].text.split("\n")) == 20
    assert [(source.id, source.text) for source in found.sources[1:]] == [("facts.many.rest", "")]
    assert [str(each) for each in found.shortfalls] == ["facts.many: row_limit (only 20 rows were read)"]


@pytest.mark.parametrize(
    ("parameters", "reasons"),
    [
        pytest.param({"property_id": 1, "period": "Q3 2024"}, [], id="all given"),
        pytest.param({"property_id": 1}, ["missing_parameter"], id="one is missing"),
        pytest.param({"other": 1}, [], id="another query is meant"),
        pytest.param({"property_id": [1], "period": "Q3 2024"}, ["bad_parameter"], id="a list"),
    ],
)
def test_a_query_runs_with_all_its_parameters_or_not_at_all(
    place: Place, parameters: dict[str, object], reasons: list[str]
) -> None:
    queries = {"both": "SELECT label, value FROM {t} WHERE property = :property_id AND period = :period"}
    found = ask(place, queries, parameters)
    assert [each.reason for each in found.shortfalls] == reasons
    assert any(source.text for source in found.sources) == (reasons == [] and "other" not in parameters)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param("SELECT label FROM {t}", "bad_columns", id="no value"),
        pytest.param("SELECT label, value FROM {t}_missing", "error", id="no such table"),
        pytest.param("SELEC label", "error", id="no SQL"),
    ],
)
def test_a_query_without_values_is_reported(place: Place, sql: str, reason: str) -> None:
    found = ask(place, {"odd": sql}, {})
    assert gave_nothing(found, "odd", reason)


def test_a_value_that_is_no_number_is_unknown(place: Place) -> None:
    found = ask(place, {"odd": "SELECT label, unit AS value FROM {t} WHERE property = 2"}, {})
    assert [each.reason for each in found.shortfalls] == ["not_a_number"]
    assert found.sources[0].text == "Occupancy rate is unknown."


def test_each_query_runs_once_for_all_claims(place: Place) -> None:
    found = ask(place, {**FIGURES, "count": "SELECT 'Properties' AS label, 2 AS value"}, {"property_id": 2})
    assert [source.title for source in found.sources] == ["figures", "count"]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("sqlite:////nowhere/at/all.db", id="no such file"),
        pytest.param("postgresql://127.0.0.1:9/test", id="no server"),
    ],
)
def test_a_missing_database_is_reported_and_raises_nothing(url: str) -> None:
    found = ask(Place(url), {"one": "SELECT 'a' AS label, 1 AS value"}, {}, timeout_s=0.5)
    assert [each.reason for each in found.shortfalls] in (["error"], ["timeout"])


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    ask(Place(f"sqlite:///{tmp_path}/new.db"), {"one": "SELECT 'a' AS label, 1 AS value"}, {})
    assert list(tmp_path.iterdir()) == []
