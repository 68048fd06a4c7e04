"""Any input leads to a verdict or a stated abstention, and never to an exception."""

from __future__ import annotations

import pytest

from groundwire.domain import Choice, Exchange, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.pipeline import verify
from groundwire.policy import Policy
from groundwire.report import Report

LABELS = {"supported", "contradicted", "unsupported", "not_checked"}
ENGLISH = "The ferry leaves Oban at 9.30 and costs £12."

ANSWERS = {
    "german": "Die Fähre verlässt Oban um 9.30 Uhr und kostet 12 Pfund.",
    "arabic": "تغادر العبارة أوبان الساعة 9:30 وتكلف 12 جنيهاً.",
    "hebrew": "המעבורת יוצאת מאובן בשעה 9:30.",
    "chinese": "渡轮九点半离开奥本，票价十二英镑。",
    "thai": "เรือเฟอร์รี่ออกจากโอบันเวลา 9.30 น.",
    "mixed_scripts": "The ferry (フェリー, паром) leaves Oban at 9.30.",
    "emoji": "⛴️ The ferry leaves Oban at 9.30 🕤 and costs £12 💷!",
    "only_emoji": "👍🏽🎉",
    "marks_of_direction": "The ferry \u202eleaves\u202c Oban\u200f at 9.30.",
    "lone_surrogate": "The ferry leaves Oban at 9.30 \ud83d.",
    "control_characters": "The ferry\x00 leaves\x1b[31m Oban at 9.30.",
    "one_word": "Oban",
    "one_number": "12",
    "blank": " \n\t ",
    "empty": "",
    "json": '{"port": "Oban", "leaves": "9.30", "price": 12, "stops": [null, true, {"at": []}]}',
    "broken_json": '{"port": "Oban", "leaves": ',
    "code": "```python\nprint('Oban')\n```",
    "unclosed_fence": "```\nThe ferry leaves Oban",
    "table": "| port | leaves |\n|---|---|\n| Oban | 9.30 |",
    "ragged_table": "| port | leaves\n|---\n| Oban | 9.30 | £12 | ferry |",
    "html": "<p>The ferry <b>leaves</b> Oban at 9.30.<script>alert(1)</script>",
    "long_word": "a" * 20_000,
    "long_number": "9" * 5_000,
}
CONTEXTS = {
    "english": ENGLISH,
    "empty": "",
    "blank": " \n ",
    "emoji": "⛴️🕤💷",
    "arabic": "تغادر العبارة أوبان الساعة 9:30.",
    "json": '{"ferries": [{"port": "Oban", "leaves": "9.30", "price": {"amount": 12, "currency": "GBP"}}]}',
    "lone_surrogate": "The ferry leaves \udfff Oban.",
}


def checked(answer: str, context: str) -> Report:
    return verify(
        [Choice(0, answer, "stop")], Context(gather(Exchange(sources=(Source("s1", "source", context),)))), Policy()
    )


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_claim_has_a_verdict_or_the_reason_why_not(answer: str, context: str) -> None:
    report = checked(answer, context)
    for judgement in report.choices[0].judgements:
        assert judgement.verdict.label in LABELS
        assert judgement.verdict.label == "supported" or judgement.verdict.reason
        assert answer[judgement.claim.start : judgement.claim.end]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_without_a_context_nothing_is_called_clean(answer: str) -> None:
    report = checked(answer, "")
    assert report.score is None
    assert all(judgement.verdict.label == "not_checked" for judgement in report.choices[0].judgements)


@pytest.mark.parametrize("language", ["german", "arabic", "hebrew", "chinese", "thai", "mixed_scripts", "emoji"])
def test_a_verbatim_sentence_of_a_source_is_supported_in_any_script(language: str) -> None:
    report = checked(ANSWERS[language], f"Anfang. {ANSWERS[language]} Ende.")
    assert [judgement.verdict.label for judgement in report.choices[0].judgements] == ["supported"]
