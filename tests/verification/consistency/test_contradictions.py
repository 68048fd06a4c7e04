"""CO1: what contradicts an earlier answer, and what only looks like it."""

import pytest
from answers import after

CONTRADICTIONS = [
    # entity: a value, a name or a list that should be the same
    ("entity", "head count", "Acme has 50 employees.", "Acme has 80 employees."),
    ("entity", "revenue of a year", "In 2023, revenue was $4.2 million.", "Revenue was $5.1 million in 2023."),
    ("entity", "price", "The Pro plan costs $20 per month.", "The Pro plan costs $35 per month."),
    ("entity", "converted unit", "The bridge is 2.7 km long.", "The bridge is 1,500 m long."),
    ("entity", "per another period", "The Pro plan costs $20 per month.", "The Pro plan costs $500 per year."),
    ("entity", "share", "The churn rate was 4% in Q2 2024.", "In Q2 2024 the churn rate was 7%."),
    ("entity", "duration", "The warranty lasts 24 months.", "The warranty lasts 12 months."),
    (
        "entity",
        "among other things",
        "Acme makes bikes. It is based in Ulm. Acme has 50 employees. It exports to Italy.",
        "Thank you for asking. Acme was founded in 1998, and Acme has 70 employees.",
    ),
    ("entity", "office", "The CEO of Acme is Maria Lopez.", "The CEO of Acme is John Smith."),
    ("entity", "office, turned round", "Maria Lopez is the CEO of Acme.", "John Smith is the CEO of Acme."),
    ("entity", "capital", "The capital of Australia is Canberra.", "The capital of Australia is Sydney."),
    ("entity", "seat", "Acme is headquartered in Berlin.", "Acme is headquartered in Hamburg."),
    ("entity", "founder", "Acme was founded by Anna Weber.", "Acme was founded by Carl Jung."),
    ("entity", "birthplace", "Mozart was born in Salzburg.", "Mozart was born in Vienna."),
    (
        "entity",
        "members",
        "The board members are Anna Weber, Bob Stone and Carl Jung.",
        "The board members are Anna Weber, Bob Stone and Dora Klein.",
    ),
    (
        "entity",
        "items under a lead-in",
        "The available plans are:\n\n- Basic\n- Pro\n- Team\n",
        "The available plans are:\n\n- Basic\n- Business\n",
    ),
    (
        "entity",
        "ingredients",
        "The sauce consists of tomatoes, garlic and basil.",
        "The sauce consists of tomatoes, onions and basil.",
    ),
    (
        "entity",
        "missing member",
        "The founders are Anna Weber and Bob Stone.",
        "The founders are Anna Weber, Bob Stone and Carl Jung.",
    ),
    # temporal: a date of what happens once; what has ended
    ("temporal", "founding", "Acme was founded in 1998.", "Acme was founded in 2003."),
    ("temporal", "deadline", "The deadline is May 3, 2025.", "The deadline is May 10, 2025."),
    ("temporal", "release", "Version 5 was released in March 2024.", "Version 5 was released in June 2024."),
    ("temporal", "expiry", "The contract expires on 30 June 2026.", "The contract expires on 31 December 2026."),
    ("temporal", "office ended", "John Smith was CEO of Acme until 2020.", "John Smith is the CEO of Acme."),
    ("temporal", "shop closed", "The Paris store closed in 2019.", "The Paris store is open."),
    (
        "temporal",
        "product discontinued",
        "The Model X printer was discontinued in 2021.",
        "The Model X printer is still available.",
    ),
    ("temporal", "no longer", "Acme no longer sells the Model X.", "Acme sells the Model X."),
    # semantic: negations and opposites
    ("semantic", "not", "The Pro plan includes phone support.", "The Pro plan does not include phone support."),
    (
        "semantic",
        "never mind the wording",
        "The warranty doesn't cover water damage.",
        "The warranty covers water damage.",
    ),
    ("semantic", "prefix", "The drug was effective against malaria.", "The drug was ineffective against malaria."),
    ("semantic", "direction", "Acme's revenue rose in 2023.", "Acme's revenue fell in 2023."),
    ("semantic", "opposite", "Dogs are allowed in the park.", "Dogs are forbidden in the park."),
    ("semantic", "all and none", "All plans include backups.", "No plans include backups."),
    ("semantic", "decision", "The board approved the merger.", "The board rejected the merger."),
    ("semantic", "roles", "Acme acquired Beta.", "Beta acquired Acme."),
    ("semantic", "refundable", "Tickets are refundable.", "Tickets are not refundable."),
]

CONSISTENT = [
    # the same in other words
    ("the very same", "Acme has 50 employees.", "Acme has 50 employees."),
    ("in other words", "Acme bought Beta in 2020.", "Beta was acquired by Acme in 2020."),
    ("rounded", "Revenue in 2023 was $4,187,332.", "Revenue in 2023 was $4.2 million."),
    ("in another unit", "The bridge is 2.7 km long.", "The bridge is 2,700 m long."),
    ("per another period, the same", "The Pro plan costs $20 per month.", "The Pro plan costs $240 per year."),
    ("within a bound", "Acme has more than 50 employees.", "Acme has 80 employees."),
    ("coarser date", "Acme was founded in March 1998.", "Acme was founded in 1998."),
    (
        "list in another order",
        "The founders are Anna Weber and Bob Stone.",
        "The founders are Bob Stone and Anna Weber.",
    ),
    ("list shortened by name", "The founders are Anna Weber and Bob Stone.", "The founders are Weber and Stone."),
    # something else
    ("other plan", "The basic plan costs $10.", "The pro plan costs $20."),
    ("other company", "Acme has 50 employees.", "Beta has 80 employees."),
    ("other model", "The iPhone 14 has a 6.1-inch screen.", "The iPhone 15 has a 6.3-inch screen."),
    ("other number in a name", "The Model 3 costs $40,000.", "The Model 4 costs $50,000."),
    ("other attribute", "Acme has 50 employees.", "Acme has 3 offices."),
    ("other site", "The Berlin office has 50 employees.", "The Hamburg office has 80 employees."),
    ("a part of it", "Acme has 50 employees.", "Acme has 20 employees in Berlin."),
    ("a narrower class", "Tickets are refundable.", "Discounted tickets are not refundable."),
    ("who works there", "Anna Weber works at Acme.", "Bob Stone works at Acme."),
    ("a manager", "Anna Weber is a manager at Acme.", "Bob Stone is a manager at Acme."),
    ("what else was bought", "Acme acquired Beta.", "Acme acquired Gamma."),
    ("another visit", "Anna Weber visited Rome in 2019.", "Anna Weber visited Rome in 2021."),
    ("another office opened", "Acme opened an office in 2019.", "Acme opened an office in 2021."),
    ("some and some not", "Some plans include backups.", "Some plans do not include backups."),
    ("open lists", "The plans include Basic and Pro.", "The plans include Team and Business."),
    ("lists of traits", "The rooms are clean, quiet and bright.", "The rooms are spacious and modern."),
    ("another list", "The board members are Anna Weber and Bob Stone.", "The founders are Carl Jung and Dora Klein."),
    ("other hours", "The museum opens at 9 am.", "The museum closes at 5 pm."),
    ("weekdays", "The museum closes at 5 pm.", "The museum closes at 8 pm on Thursdays."),
    ("another condition", "Returns are free.", "Returns are not free if the box was opened."),
    ("another view", "The deal is good for customers.", "According to critics, the deal is not good for customers."),
    ("possibility", "The shop is open on Sunday.", "The shop may not be open on Sunday."),
    ("country and city", "Acme is based in Germany.", "Acme is based in Berlin."),
    # another time
    ("other year", "Revenue was $4.2 million in 2022.", "Revenue was $5.1 million in 2023."),
    ("other quarter", "The churn rate was 4% in Q1 2024.", "The churn rate was 7% in Q2 2024."),
    ("today and today", "The temperature today is 20 degrees.", "The temperature today is 25 degrees."),
    ("rose and fell", "Acme's revenue rose in 2022.", "Acme's revenue fell in 2023."),
    ("successor", "John Smith was CEO of Acme until 2020.", "Maria Lopez is the CEO of Acme."),
    ("end is news", "John Smith is the CEO of Acme.", "John Smith was CEO of Acme until 2020."),
    ("no longer is news", "Acme sells the Model X.", "Acme no longer sells the Model X."),
    ("closed since", "The Paris store is open.", "The Paris store closed in 2025."),
    ("reopened", "The Paris store closed in 2019.", "The Paris store reopened in 2023 and is open again."),
    ("new price", "The Pro plan costs $20 per month.", "The Pro plan now costs $35 per month."),
    ("new holder", "The CEO of Acme is Maria Lopez.", "The new CEO of Acme is John Smith."),
    ("as of later", "The population was 8.0 million in 2010.", "As of 2024, the population is 8.9 million."),
    ("was and is", "The price was $20.", "The price is $35."),
    ("closing time", "The shop is open until 6 pm.", "The shop is open."),
]


@pytest.mark.parametrize(
    ("kind", "earlier", "answer"),
    [pytest.param(kind, earlier, answer, id=name) for kind, name, earlier, answer in CONTRADICTIONS],
)
def test_an_answer_that_can_not_be_true_beside_an_earlier_one_contradicts_it(
    kind: str, earlier: str, answer: str
) -> None:
    found = after(earlier, answer).contradictions
    assert [each.kind for each in found] == [kind]


@pytest.mark.parametrize(
    ("earlier", "answer"), [pytest.param(earlier, answer, id=name) for name, earlier, answer in CONSISTENT]
)
def test_what_can_be_true_beside_an_earlier_answer_contradicts_nothing(earlier: str, answer: str) -> None:
    assert after(earlier, answer).contradictions == ()
