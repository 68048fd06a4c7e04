"""Rows, records and values read with the names of their row and columns."""

from __future__ import annotations

import json

import pytest

from groundwire.evidence.passages import cut
from tests.steps import growth

# id: (text, text of an expected passage, the slice that the passage represents)
READINGS = {
    "markdown": (
        "| | 2024 | 2023 |\n|---|---:|---:|\n| **Revenue** | 4.2 | 3.9 |\n",
        "Revenue | 2024: 4.2 | 2023: 3.9",
        "| **Revenue** | 4.2 | 3.9 |",
    ),
    "markdown with a named first column": (
        "| City | People |\n| --- | --- |\n| Rome | 2.8 million |",
        "City: Rome | People: 2.8 million",
        "| Rome | 2.8 million |",
    ),
    "scale in the caption": (
        "Revenue (in millions)\n\n| | 2024 |\n|---|---|\n| Product | 4.2 |",
        "Product (in millions) | 2024: 4.2",
        "| Product | 4.2 |",
    ),
    "scale in the corner": (
        "| (in thousands) | 2024 | 2023 |\n|---|---|---|\n| Cash | 10 | 20 |",
        "Cash (in thousands) | 2024: 10 | 2023: 20",
        "| Cash | 10 | 20 |",
    ),
    "scale in a column name is not repeated": (
        "| Item | Price ($ millions) |\n|---|---|\n| Ship | 3 |",
        "Item: Ship | Price ($ millions): 3",
        "| Ship | 3 |",
    ),
    "loose pipes under stacked heads": (
        " |  | Years Ended September 30, | \n | 2019 | 2018\nFixed Price | $  1,452.4 | $  1,146.2\nOther | 4.1 | 6.7",
        "Fixed Price | Years Ended September 30, 2019: $1,452.4 | Years Ended September 30, 2018: $1,146.2",
        "Fixed Price | $  1,452.4 | $  1,146.2",
    ),
    "loose pipes with a head of words": (
        "season | division | wins\n2008 - 09 | western | 25\n2009 - 10 | western | 28",
        "season: 2009 - 10 | division: western | wins: 28",
        "2009 - 10 | western | 28",
    ),
    "loose pipes under a head that reaches over the columns": (
        " | March 31, | \n | 2019 | 2018\nAssets: |  | \nCash | 5 | 4",
        "Cash (Assets) | March 31, 2019: 5 | March 31, 2018: 4",
        "Cash | 5 | 4",
    ),
    "title over the head": (
        "Years ended May 31, |  | \n | 2019 | 2018\nCash | $86.8 | $87.0\nDebt | 3.1 | 3.2",
        "Debt (Years ended May 31,) | 2019: 3.1 | 2018: 3.2",
        "Debt | 3.1 | 3.2",
    ),
    "scale over the head": (
        "($ in millions) |  | \nAt May 31: | 2019 | 2018\nCash | 86 | 87\nDebt | 31 | 32",
        "At May 31: Debt ($ in millions) | 2019: 31 | 2018: 32",
        "Debt | 31 | 32",
    ),
    "corner in the second row of the head": (
        " | Year |  | Change | \n(In millions) | 2018 | 2017 | Dollar | Percent\nSales | 2,280 | 1,664 | 616 | 37%",
        "Sales (In millions) | Year 2018: 2,280 | Year 2017: 1,664 | Change Dollar: 616 | Change Percent: 37%",
        "Sales | 2,280 | 1,664 | 616 | 37%",
    ),
    "second head in the middle": (
        " |  | 2019\n | First | Second\nSales | 5 | 6\nCosts | 3 | 4\n |  | 2018\n | First | Second\nSales | 7 | 8",
        "Sales | 2018 First: 7 | 2018 Second: 8",
        "Sales | 7 | 8",
    ),
    "columns of dollars and of percentages": (
        " | 2019 |  | 2018 | \n | $ | % | $ | %\nCanada | 96 | 6.1 | 70 | 6.6",
        "Canada | 2019 $: 96 | 2019 %: 6.1 | 2018 $: 70 | 2018 %: 6.6",
        "Canada | 96 | 6.1 | 70 | 6.6",
    ),
    "pairs": ("Name | Bob\nAge | 30\nCity | Rome", "Age: 30", "Age | 30"),
    "row group": (
        "Assets | 2020 | 2019\nCurrent assets: | | \nCash | 5 | 4",
        "Assets: Cash (Current assets) | 2020: 5 | 2019: 4",
        "Cash | 5 | 4",
    ),
    "currency sign in a cell of its own": (
        "Assets | 2020 | 2019\nCash | $ | 5 | 4\nDebt | 1 | 2",
        "Assets: Cash | 2020: $5 | 2019: 4",
        "Cash | $ | 5 | 4",
    ),
    "csv": ("name,price,stock\nApple,3.5,10\n", "name: Apple | price: 3.5 | stock: 10", "Apple,3.5,10"),
    "csv with identifiers": (
        "plant,output_gwh_2021,output_gwh_2022\nElm,265,290\nTarn,142,151",
        "plant: Elm | output gwh 2021: 265 | output gwh 2022: 290",
        "Elm,265,290",
    ),
    "csv with quotes": (
        'name,price,stock\n"Pear,\ngreen",4,20\n',
        "name: Pear, green | price: 4 | stock: 20",
        '"Pear,\ngreen",4,20',
    ),
    "csv of two columns": ("year,revenue\n2022,4000000\n2023,5000000", "year: 2023 | revenue: 5000000", "2023,5000000"),
    "csv of two columns that look like thousands": ("id,qty\n1,200\n2,300", "id: 2 | qty: 300", "2,300"),
    "csv of two columns without names": ("2022,4000000\n2023,5000000", "2023: 5000000", "2023,5000000"),
    "csv of two columns with semicolons": ("name;age\nAnn;33\nBob;44", "name: Bob | age: 44", "Bob;44"),
    "tsv": ("name\tprice\nApple\t3.5\nPear\t4", "name: Pear | price: 4", "Pear\t4"),
    "html": (
        "<table><caption>Prices (in thousands)</caption><tr><th>Item</th><th>2020</th></tr>"
        "<tr><td>Tea &amp; <b>milk</b></td><td>5</td></tr></table>",
        "Item: Tea & milk (in thousands) | 2020: 5",
        "<tr><td>Tea &amp; <b>milk</b></td><td>5</td></tr>",
    ),
    "html left open": (
        "<table><tr><th>Item<th>2020<tr><td>Tea<td>5</table>",
        "Item: Tea | 2020: 5",
        "<tr><td>Tea<td>5</table>",
    ),
    "json object": (
        '{"location": {"name": "Paris"}, "current": {"temp_c": 21.5, "isDay": true}}',
        "location.name: Paris | current.temp c: 21.5 | current.is Day: true",
        '{"location": {"name": "Paris"}, "current": {"temp_c": 21.5, "isDay": true}}',
    ),
    "json records": (
        '[{"name": "A", "price": 3}, {"name": "B", "price": 4}]',
        "name: B | price: 4",
        '{"name": "B", "price": 4}',
    ),
    "json records under a key": (
        '{"count": 2, "results": [{"name": "A", "tags": ["x", "y"]}, {"name": "B", "tags": []}]}',
        "results.name: A | results.tags: x, y",
        '{"name": "A", "tags": ["x", "y"]}',
    ),
    "json inside prose": ('The tool said:\n{"price": 3}\nThat is all.', "price: 3", '{"price": 3}'),
    "json lines": ('{"name": "A", "n": 1}\n{"name": "B", "n": 2}', "name: B | n: 2", '{"name": "B", "n": 2}'),
    "python literal": ("{'title': \"it's\", 'url': None, 'ok': True}", "title: it's | url: none | ok: true", None),
    "fenced json": ('```json\n{\n  "price": 3\n}\n```', "price: 3", '{\n  "price": 3\n}'),
    "key and value line": (
        "Born: 6 October 1852\nDied: 29 August 1900",
        "Died: 29 August 1900",
        "Died: 29 August 1900",
    ),
}


@pytest.mark.parametrize(("text", "reading", "written"), READINGS.values(), ids=READINGS)
def test_value_reads_with_its_names(text: str, reading: str, written: str | None) -> None:
    pieces = {piece.text: text[piece.start : piece.end] for piece in cut(text)}
    assert reading in pieces
    assert pieces[reading] == (written or text)


def test_long_string_of_a_record_is_cut_like_text_and_cited_where_it_is_written() -> None:
    body = 'He said "no". ' + "The plant in Ohio closed in 2019. " * 8
    text = json.dumps({"title": "Closure", "body": body})
    pieces = list(cut(text))
    quoted = next(piece for piece in pieces if piece.text == 'He said "no".')
    assert text[quoted.start : quoted.end] == 'He said \\"no\\".'
    assert quoted.heading == "Closure"
    assert sum(piece.text == "The plant in Ohio closed in 2019." for piece in pieces) == 8


@pytest.mark.parametrize(
    "text",
    [
        "We saw Rome, Paris, and Bern.\nThen we left, tired, and slept.",
        "Rome, Italy\nParis, France",
        "1,200\n2,300\n3,400",
        "3,14\n2,71",
    ],
)
def test_prose_and_numbers_with_commas_are_no_table(text: str) -> None:
    assert [piece.text for piece in cut(text)] == text.split("\n")


def test_every_part_of_a_large_record_has_its_name() -> None:
    rows = [{"id": f"row{row}", "size": {"w": row}, **{f"c{at}": row * at for at in range(40)}} for row in range(3)]
    texts = [piece.text for piece in cut(json.dumps(rows))]
    assert len(texts) > 9
    assert all(text.startswith("id: row") for text in texts)


def test_malformed_json_is_read_as_text() -> None:
    text = '{"price": 3, "name": "A'
    assert [piece.text for piece in cut(text)] == [text]


def test_long_table_reads_every_row() -> None:
    def table(rows: int) -> str:
        return "| Row | Value |\n|---|---|\n" + "\n".join(f"| r{n} | {n} |" for n in range(rows))

    assert growth(lambda text: list(cut(text)), table(500), table(2000)) < 6
    pieces = list(cut(table(10_000)))
    assert len(pieces) == 10_001
    assert pieces[-1].text == "Row: r9999 | Value: 9999"
