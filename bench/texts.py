"""Texts to measure with: a RAG prompt of any length and a typical answer of 200 words, both made up for this purpose.

The passages that the answer rests on are always the same; around them stand generated ones, different for every seed,
so that no cache which remembers a text makes a second round look faster than the first.
"""

from __future__ import annotations

import json
import random

CHARS_PER_TOKEN = 4

ANSWER = """\
Northgate Freight closed fiscal 2023 with revenue of $412.6 million, an increase of 9.3% over the previous year. \
Most of that growth came from the refrigerated segment, which now accounts for 38% of sales [1]. Operating \
margin narrowed from 11.8% to 10.4%, mainly because diesel and driver wages rose faster than freight rates.

During the year the company opened three cross-dock terminals, in Tulsa, Reno and Savannah, and it retired 140 \
older tractors. The Savannah terminal began operations on 14 August 2023 and handles about 1,900 pallets a day \
[2]. Chief executive Maria Oduya said that the terminal "will shorten our delivery times in the Southeast by a \
full day".

Net debt fell to $96 million, and the ratio of net debt to EBITDA improved to 1.4x. The board approved a \
dividend of $0.32 per share, payable in April 2024, and extended the share buyback until the end of 2025. \
Management expects capital spending of $55 million next year, most of it for trailers with electric cooling \
units [3].

Two customers together provide more than a quarter of revenue, and the contract with the larger of them, Halden \
Foods, has to be renewed by June 2024. None of the ten largest customers has been lost since 2019."""

EVIDENCE = (
    """\
Northgate Freight, Inc. annual results
Revenue for fiscal 2023 was $412.6 million, up 9.3% from $377.5 million in fiscal 2022. The refrigerated segment \
grew 16% and contributed 38% of revenue. Operating margin was 10.4% compared with 11.8% a year earlier, as \
diesel prices and driver wages increased faster than freight rates.""",
    """\
Network and fleet
Three cross-dock terminals were opened in the year: Tulsa in February, Reno in May and Savannah on August 14, \
2023. The Savannah terminal handles approximately 1,900 pallets per day. "It will shorten our delivery times in \
the Southeast by a full day," said Maria Oduya, chief executive officer. The fleet was renewed, and 140 older \
tractors were retired. The company operates in the United States and Canada only.""",
    """\
Capital and outlook
Net debt decreased to $96 million from $118 million, and net debt to EBITDA was 1.4x at year end. The board of \
directors declared a dividend of $0.32 per share payable in April 2024 and extended the share repurchase \
programme to 31 December 2025. Capital expenditures for fiscal 2024 are expected to be $55 million, largely for \
trailers with electric cooling units. Two customers represent 27% of revenue together; the agreement with the \
larger one, Halden Foods, expires in June 2024. None of the ten largest customers has left since 2019.""",
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


def passages(tokens: int, seed: int) -> list[str]:
    """Passages of about `tokens` tokens in all, those that the answer rests on among them at even distances."""
    dice = random.Random(seed)
    others: list[str] = []
    missing = tokens * CHARS_PER_TOKEN - sum(map(len, EVIDENCE))
    while missing > 0:
        others.append(_passage(dice))
        missing -= len(others[-1])
    step = max(1, len(others) // len(EVIDENCE))
    for number, evidence in enumerate(EVIDENCE):
        others.insert(number * (step + 1), evidence)
    return others


def messages(tokens: int, seed: int) -> list[dict[str, str]]:
    """A chat request of the usual RAG form: instructions, numbered passages, a question."""
    numbered = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages(tokens, seed), start=1))
    return [
        {"role": "system", "content": "Answer from the passages below and cite them by number. Be brief."},
        {"role": "user", "content": f"{numbered}\n\nQuestion: How did Northgate Freight do in fiscal 2023?"},
    ]


def json_answer() -> str:
    """A JSON answer with evidence fields, as a structured-output request would get it."""
    return json.dumps(
        {
            "summary": ANSWER,
            "quotes": [sentence.strip() + "." for text in EVIDENCE for sentence in text.split(".")[:4]],
            "revenue": {"amount": 412.6, "unit": "million USD", "growth": 0.093},
            "risks": [{"name": "customer concentration", "severity": "high"}, {"name": "fuel", "severity": "medium"}],
        }
    )


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
