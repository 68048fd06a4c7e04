"""Texts to measure with: a RAG prompt of any length and a typical answer of 200 words, both made up for this purpose.

Every seed gives other passages and other names and numbers in every sentence of the answer, so that no cache which
remembers a text makes a second round look faster than the first.
"""

from __future__ import annotations

import json
import random
import re

CHARS_PER_TOKEN = 4

_ANSWER = """\
{company} closed fiscal 2023 with revenue of ${revenue} million, an increase of {growth}% over the previous \
year. Most of that growth came from the refrigerated segment, which now accounts for {share}% of sales [1]. \
Operating margin narrowed from {before}% to {margin}%, mainly because diesel and driver wages rose faster than \
freight rates.

During the year the company opened three cross-dock terminals, in Tulsa, Reno and Savannah, and it retired \
{tractors} older tractors. The Savannah terminal began operations on 14 August 2023 and handles about {pallets} \
pallets a day [2]. Chief executive Maria {person} said that the terminal "will shorten our delivery times in the \
Southeast by {days} full days".

Net debt fell to ${debt} million, and the ratio of net debt to EBITDA improved to {leverage}x. The board \
approved a dividend of ${dividend} per share, payable in April 2024, and extended the share buyback until the \
end of 2025. Management expects capital spending of ${capital} million next year, most of it for trailers with \
electric cooling units [3].

Two customers together provide more than a quarter of revenue, and the contract with the larger of them, \
{customer} Foods, has to be renewed by June 2024. None of the ten largest customers has been lost since {since}."""

_EVIDENCE = (
    """\
{company}, Inc. annual results
Revenue for fiscal 2023 was ${revenue} million, up {growth}% from $377.5 million in fiscal 2022. The \
refrigerated segment grew 16% and contributed {share}% of revenue. Operating margin was {margin}% compared with \
{before}% a year earlier, as diesel prices and driver wages increased faster than freight rates.""",
    """\
Network and fleet
Three cross-dock terminals were opened in the year: Tulsa in February, Reno in May and Savannah on August 14, \
2023. The Savannah terminal handles approximately {pallets} pallets per day. "It will shorten our delivery times \
in the Southeast by {days} full days," said Maria {person}, chief executive officer. The fleet was renewed, and \
{tractors} older tractors were retired. The company operates in the United States and Canada only.""",
    """\
Capital and outlook
Net debt decreased to ${debt} million from $118 million, and net debt to EBITDA was {leverage}x at year end. The \
board of directors declared a dividend of ${dividend} per share payable in April 2024 and extended the share \
repurchase programme to 31 December 2025. Capital expenditures for fiscal 2024 are expected to be ${capital} \
million, largely for trailers with electric cooling units. Two customers represent 27% of revenue together; the \
agreement with the larger one, {customer} Foods, expires in June 2024. None of the ten largest customers has \
left since {since}.""",
)

_TOPICS = (
    "harbour maintenance,vineyard irrigation,museum admissions,broadband rollout,hospital staffing,school catering,"
    "forest inventory,tram renewal,cement production,salmon farming,library lending,glass recycling,rural clinics,"
    "ferry timetables,battery storage,wheat exports,bridge inspection,theatre funding,dairy pricing,parking permits"
).split(",")
_PLACES = "Aldermoor Brisa Corvane Dunmarch Estrel Falkenby Gorsand Hollin Istrad Jorvale Kestmere Lunsford".split()
_PEOPLE = "Anand Bergström Castellano Diallo Eriksen Farouk Grigoryan Hoang Iversen Jankowska Kealoha Lindqvist".split()
_SENTENCES = (
    "The report on {topic} in {place} counts {n} sites, {pct}% more than in {year}.",
    "According to {person}, spending on {topic} reached ${money} million in {year}, which was below the plan.",
    "{place} replaced its older equipment between {year} and {later}, but the savings were smaller than expected.",
    "Residents of {place} were asked about {topic} in a survey of {n} households; {pct}% were satisfied.",
    "Officials said that the contract for {topic} would be renewed on {day} {month} {later} unless costs rise.",
    "A second phase, led by {person}, will cover the districts north of {place} and the villages along the coast.",
    "The auditors found no irregularities, although {n} invoices had been filed later than the rules allow.",
    "Compared with {place}, where the same method has been used since {year}, results improved only slowly.",
    "Prices for materials went up by {pct}% within a year, and the budget was raised to ${money} million.",
    "“We would rather finish one part well than start three,” {person} told the council of {place} in {month} {year}.",
    "Work was interrupted for {day} weeks after heavy rain had damaged the access road.",
    "The number of complaints about {topic} fell from {n} to {fewer}, and most of them were settled within a month.",
)
_MONTHS = "January February March April May June July August September October November December".split()


def answer(seed: int) -> str:
    """An answer to the question in `messages` of the same seed: 200 words in ten sentences, all of them supported."""
    return _ANSWER.format_map(_facts(seed))


def passages(tokens: int, seed: int) -> list[str]:
    """Passages of about `tokens` tokens in all, those that the answer rests on among them at even distances."""
    dice, facts = random.Random(seed), _facts(seed)
    evidence = [text.format_map(facts) for text in _EVIDENCE]
    others: list[str] = []
    missing = tokens * CHARS_PER_TOKEN - sum(map(len, evidence))
    while missing > 0:
        others.append(_passage(dice))
        missing -= len(others[-1])
    step = max(1, len(others) // len(evidence))
    for number, text in enumerate(evidence):
        others.insert(number * (step + 1), text)
    return others


def _facts(seed: int) -> dict[str, object]:
    dice = random.Random(seed)
    return {
        "company": f"{dice.choice(_PLACES)} {dice.choice(('Freight', 'Haulage', 'Logistics', 'Carriers'))}",
        "revenue": dice.randint(3100, 9900) / 10,
        "growth": dice.randint(31, 99) / 10,
        "share": dice.randint(30, 48),
        "before": dice.randint(110, 159) / 10,
        "margin": dice.randint(71, 109) / 10,
        "tractors": dice.randint(120, 390),
        "pallets": f"{dice.randint(11, 48) * 100:,}",
        "person": dice.choice(_PEOPLE),
        "days": dice.choice(("two", "three", "four", "five")),
        "debt": dice.randint(60, 99),
        "leverage": dice.randint(11, 19) / 10,
        "dividend": dice.randint(21, 88) / 100,
        "capital": dice.randint(41, 59),
        "customer": dice.choice(_PLACES),
        "since": dice.randint(2011, 2020),
    }


def messages(tokens: int, seed: int) -> list[dict[str, str]]:
    """A chat request of the usual RAG form: instructions, numbered passages, a question."""
    numbered = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages(tokens, seed), start=1))
    company = _facts(seed)["company"]
    return [
        {"role": "system", "content": "Answer from the passages below and cite them by number. Be brief."},
        {"role": "user", "content": f"{numbered}\n\nQuestion: How did {company} do in fiscal 2023?"},
    ]


def json_answer(seed: int) -> str:
    """The answer as JSON with an evidence field, as a structured-output request would get it."""
    sentences = [sentence for text in _EVIDENCE for sentence in text.format_map(_facts(seed)).split(". ")[:4]]
    return json.dumps(
        {
            "summary": answer(seed),
            "quotes": [sentence.partition("\n")[2] or sentence for sentence in sentences],
            "revenue": {"amount": 412.6, "unit": "million USD", "growth": 0.093},
            "risks": [{"name": "customer concentration", "severity": "high"}, {"name": "fuel", "severity": "medium"}],
        }
    )


def tool_messages(tokens: int, seed: int) -> list[dict[str, str]]:
    """A chat request whose evidence is the JSON result of a tool: records of sites, and those of the answer."""
    dice, facts = random.Random(seed), _facts(seed)
    records: list[dict[str, object]] = []
    while sum(len(str(record)) for record in records) < tokens * CHARS_PER_TOKEN - 2_000:
        records.append(_record(dice))
    stated = {"annual_results": {**facts, "fiscal_year": 2023}, "notes": [text.format_map(facts) for text in _EVIDENCE]}
    return _asked(json.dumps({"sites": records, **stated}), facts)


def table_messages(tokens: int, seed: int, columns: int = 8) -> list[dict[str, str]]:
    """A chat request whose evidence is a Markdown table of so many columns, with the answer's facts under it."""
    dice, facts = random.Random(seed), _facts(seed)
    names = ["Site", *(f"{dice.choice(_TOPICS).capitalize()} {2005 + at}" for at in range(columns - 1))]
    lines = [" | ".join(names), "|".join("---" for _ in names)]
    size = 0
    while size < tokens * CHARS_PER_TOKEN - 2_000 or len(lines) < 4:
        cells = (f"{dice.randint(200, 9000):,}" for _ in names[1:])
        lines.append(" | ".join((f"{dice.choice(_PLACES)} {len(lines)}", *cells)))
        size += len(lines[-1])
    table = "\n".join(f"| {line} |" for line in lines)
    return _asked("\n\n".join((table, *(text.format_map(facts) for text in _EVIDENCE))), facts)


def long_answer(claims: int, seed: int) -> str:
    """An answer of about so many claims on the subject of `messages`."""
    sentences = re.split(r"(?<=[.\]]) ", " ".join(answer(seed + at).replace("\n\n", " ") for at in range(claims // 8)))
    return " ".join(sentences[:claims])


def _asked(evidence: str, facts: dict[str, object]) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"How did {facts['company']} do in fiscal 2023?"},
        {"role": "tool", "content": evidence},
    ]


def _record(dice: random.Random) -> dict[str, object]:
    return {
        "place": dice.choice(_PLACES),
        "topic": dice.choice(_TOPICS),
        "contact": {"name": dice.choice(_PEOPLE), "since": dice.randint(2005, 2022)},
        "spending_million": dice.randint(15, 990) / 10,
        "sites": dice.randint(200, 9000),
        "renewed": f"{dice.randint(2005, 2022)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
        "remark": _filled(dice.choice(_SENTENCES), dice),
    }


JSON_SCHEMA = {
    "type": "object",
    "required": ["summary", "quotes", "revenue", "risks"],
    "properties": {
        "summary": {"type": "string", "minLength": 1},
        "quotes": {"type": "array", "items": {"type": "string"}},
        "revenue": {
            "type": "object",
            "required": ["amount", "unit"],
            "properties": {"amount": {"type": "number"}, "unit": {"type": "string"}, "growth": {"type": "number"}},
        },
        "risks": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "severity"],
                "properties": {"name": {"type": "string"}, "severity": {"enum": ["low", "medium", "high"]}},
            },
        },
    },
    "additionalProperties": False,
}


def _passage(dice: random.Random) -> str:
    sentences = [_filled(dice.choice(_SENTENCES), dice) for _ in range(dice.randint(3, 7))]
    return f"{dice.choice(_TOPICS).capitalize()} in {dice.choice(_PLACES)}\n{' '.join(sentences)}"


def _filled(sentence: str, dice: random.Random) -> str:
    year, count = dice.randint(2005, 2022), dice.randint(200, 9000)
    return sentence.format(
        topic=dice.choice(_TOPICS),
        place=dice.choice(_PLACES),
        person=dice.choice(_PEOPLE),
        month=dice.choice(_MONTHS),
        year=year,
        later=year + dice.randint(1, 6),
        day=dice.randint(2, 28),
        n=f"{count:,}",
        fewer=f"{count * 2 // 3:,}",
        pct=dice.randint(20, 970) / 10,
        money=dice.randint(15, 990) / 10,
    )
