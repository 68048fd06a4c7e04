"""Bounds on the work that a claim and a context may cause, counted in steps and passages."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from groundwire.domain import Choice, Claim, Exchange, Source
from groundwire.evidence import tables
from groundwire.evidence.index import MAX_CHARS, MAX_PASSAGES, Context
from groundwire.evidence.messages import gather
from groundwire.pipeline import verify
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.text.reading import Reading
from groundwire.verifiers import vetoes
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.numbers.candidates import MAX_STEPS, DeadlineExceeded, Work, WorkLimitExceeded


def value(row: int, column: int) -> int:
    return 1000 + (row * 7 + column * 13) % 8999


def markdown(rows: int, columns: int) -> str:
    head = "|name|" + "|".join(f"c{i}" for i in range(columns)) + "|\n|" + "-|" * (columns + 1)
    body = [f"|row{r}|" + "|".join(str(value(r, i)) for i in range(columns)) + "|" for r in range(rows)]
    return "\n".join([head, *body])


def csv(rows: int, columns: int) -> str:
    head = "name," + ",".join(f"c{i}" for i in range(columns))
    return "\n".join([head, *(f"row{r}," + ",".join(str(value(r, i)) for i in range(columns)) for r in range(rows))])


def html(rows: int, columns: int) -> str:
    head = "<tr><th>name</th>" + "".join(f"<th>c{i}</th>" for i in range(columns)) + "</tr>"
    body = (
        f"<tr><td>row{r}</td>" + "".join(f"<td>{value(r, i)}</td>" for i in range(columns)) + "</tr>"
        for r in range(rows)
    )
    return f"<table>{head}{''.join(body)}</table>"


def records(rows: int, columns: int) -> str:
    return json.dumps([{"name": f"row{r}", **{f"c{i}": value(r, i) for i in range(columns)}} for r in range(rows)])


TABLES = {"Markdown": markdown, "CSV": csv, "HTML": html, "JSON": records}


def report(answer: str, text: str) -> Report:
    return verify([Choice(0, answer)], Context([Source("s", "source", text)]))


def steps(monkeypatch: pytest.MonkeyPatch, claim: str, text: str) -> int:
    made: list[Work] = []

    class Counted(Work):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs | {"max_steps": 10**9})
            made.append(self)

    monkeypatch.setattr(numeric, "Work", Counted)
    context = Context([Source("s", "source", text)])
    numeric.verify(Claim("c1", claim, 0, len(claim)), context, Policy())
    return sum(work.steps for work in made)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_number_takes_as_many_steps_in_a_wide_table_as_in_a_narrow_one(
    monkeypatch: pytest.MonkeyPatch, table: Callable[[int, int], str]
) -> None:
    claim = f"In row5, c17 is {value(5, 17)}."
    narrow, wide = (steps(monkeypatch, claim, table(10, columns)) for columns in (60, 1000))
    assert 0 < wide <= 2 * narrow < MAX_STEPS


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_readings_of_a_wide_table_are_bounded_and_linear(table: Callable[[int, int], str]) -> None:
    sizes = []
    for columns in (100, 200, 400):
        passages = Context([Source("s", "source", table(10, columns))]).passages
        assert max(len(passage.text) for passage in passages) <= tables.MAX_READING
        sizes.append(sum(len(passage.text) for passage in passages))
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("columns", [8, 64, 300])
def test_any_cell_of_a_table_supports_its_value_and_contradicts_another(
    table: Callable[[int, int], str], columns: int
) -> None:
    last = columns - 1
    text = table(12, columns)
    right = report(f"In row7, c{last} is {value(7, last)}.", text)
    assert [each.verdict.label for each in right.choices[0].judgements] == ["supported"]
    wrong = report(f"In row7, c{last} is 123456.", text)
    assert [each.verdict.label for each in wrong.choices[0].judgements] != ["supported"]


BLOWN_UP = {
    "column name": lambda n: "|" + "x" * n + "|b|\n|-|-|\n" + "|1|2|\n" * (n // 6),
    "row label": lambda n: "|a|" + "b|" * 100 + "\n|-|" + "-|" * 100 + "\n" + ("|" + "x" * n + "|" + "1|" * 100),
    "group": lambda n: "|a|b|\n|-|-|\n|" + "x" * n + "| |\n" + "|1|2|\n" * (n // 6),
    "JSON key": lambda n: '{"' + "k" * n + '": {' + ", ".join(f'"a{i}": "b"' for i in range(n // 8)) + "}}",
    "JSON name": lambda n: json.dumps({"name": "x" * 79, "rows": [{"a": i, "b": "y" * 100} for i in range(n // 100)]}),
    "colspan": lambda n: "<table>" + "<tr><td colspan=99>a<td>1</tr>" * (n // 30) + "</table>",
}


@pytest.mark.parametrize("text", BLOWN_UP.values(), ids=BLOWN_UP)
def test_the_passages_read_never_grow_faster_than_the_text(text: Callable[[int], str]) -> None:
    sizes = [sum(len(p.text) for p in Context([Source("s", "source", text(n))]).passages) for n in (4000, 8000, 16000)]
    assert sizes[2] <= 2.2 * sizes[1] <= 5 * sizes[0]


def test_a_claim_with_too_many_numbers_is_not_checked_for_the_work_and_not_for_the_time() -> None:
    claim = "Revenue grew " + "5% " * 150 + "."
    text = "Revenue grew " + "6% " * 300 + "."
    context, found = Context([Source("s", "source", text)]), []
    for tick in (0.0, 1e-9):
        verdict = numeric.verify(Claim("c1", claim, 0, len(claim)), context, Policy(), lambda tick=tick: tick)
        assert verdict is not None
        found.append((verdict.label, verdict.method))
    assert found[0] == found[1]
    assert found[0][0] in ("not_checked", "contradicted", "unsupported")
    assert found[0][1] != "timeout"


def test_work_ends_at_its_limit_and_at_its_deadline() -> None:
    work = Work(max_steps=10, clock=lambda: 0.0)
    work.spend(10)
    with pytest.raises(WorkLimitExceeded):
        work.spend()
    ticks = iter(range(1000))
    late = Work(2.5, clock=lambda: float(next(ticks)))
    late.spend()
    late.spend(500)
    with pytest.raises(DeadlineExceeded):
        late.spend(500)


def test_names_are_compared_as_often_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counted(one: str, other: str) -> bool:
        nonlocal asked
        asked += 1
        return False

    monkeypatch.setattr(vetoes, "may_be_one", counted)
    counts = []
    for n in (20, 40, 80, 160):
        asked = 0
        claim = Reading(" ".join(f"Al{i} Smith{i}" for i in range(n)) + " met Bob.")
        vetoes.find_vetoes(claim, Reading(" ".join(f"Bo{i} Jones{i}" for i in range(n)) + " met Alice."))
        counts.append(asked)
    assert counts[3] <= 1.1 * counts[2]


def test_a_run_of_capitals_is_bounded_on_both_sides() -> None:
    reading = Reading("Alice Smith " * 50)
    assert len(reading.name_run(50)) <= 17
    assert reading.name_run(0).start == 0
    assert [*Reading("The New York Times reported").name_run(2)] == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- a\n" * (MAX_PASSAGES + 50), id="lines"),
        pytest.param("revenue grew " * (MAX_CHARS // 13 + 500), id="characters"),
    ],
)
def test_a_context_beyond_the_limits_is_read_in_part_and_makes_nothing_unsupported(text: str) -> None:
    context = Context(gather(Exchange(sources=(Source("s", "source", f"{text}\nThe seal lives in Rome."),))))
    assert 0 < context.examined < 1
    assert not context.is_complete
    found = verify([Choice(0, "The tiger eats rice in Delhi.")], context)
    assert [each.verdict.label for each in found.choices[0].judgements] == ["not_checked"]
    assert found.choices[0].judgements[0].verdict.method == "context_limit"
    assert found.status == "partial"
    assert found.coverage
    assert found.coverage.context_examined < 1


def test_a_context_below_the_limits_is_read_whole() -> None:
    text = "The walrus lives in Oslo. " * 1000
    assert Context([Source("s", "source", text)]).examined == 1
    assert Context([]).examined == 1
