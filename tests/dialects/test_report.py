"""The response's side of wire.md: the one shape of a report, its nulls, and its offsets in UTF-16."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suites.case import read
from groundwire.dialects.checks import report_json_schema
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import (
    Choice,
    Citation,
    Claim,
    FlaggedNumber,
    Judgement,
    Message,
    Part,
    Probability,
    Source,
    Unavailable,
    Verdict,
)
from groundwire.gateway.reports import summary
from groundwire.http.openapi import openapi
from groundwire.judge import Judge
from groundwire.library import verify_claims
from groundwire.pipeline import TOOL_CALL_POINTER
from groundwire.report import (
    Attempt,
    CacheUse,
    ChoiceReport,
    Confidence,
    Consistency,
    Contradiction,
    Correction,
    Coverage,
    NumericCounts,
    PromptSize,
    QuoteCounts,
    Report,
    Risk,
    SampledClaim,
    SelfConsistency,
    StageUse,
    Utf16,
    Violation,
    render_budget,
)
from groundwire.scoring.budget import measure

ROOT = Path(__file__).parents[2]


def closed(schema: Any) -> Any:
    """A schema that takes no members but those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    named = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    return inner | {"additionalProperties": False} if named else inner


SCHEMA = report_json_schema()
CLOSED = jsonschema.Draft202012Validator(closed(SCHEMA))
OF_BUDGET = jsonschema.Draft202012Validator({"$defs": closed(SCHEMA["$defs"]), "$ref": "#/$defs/ClaimBudget"})


def misfits(value: Any) -> list[str]:
    """Everything about a report that the schema does not name or allow."""
    return sorted(f"{error.json_path}: {error.message}" for error in CLOSED.iter_errors(value))


CITATION = Citation("m0", 4, 8, "blue", 0.87654321, "exact")
CLAIM = Claim("c1", "It is blue.", 0, 11, pointer="/a", stated_confidence=0.5)
SUPPORTED = Verdict("statement", "supported", 0.912345, "exact", "It says so.", (CITATION,))
UNCHECKED = Verdict("", "not_checked", 0.0, "skipped", "It asserts nothing.")
BUDGET = measure(Probability(0.98, 0.97, 0.99, "logprobs"), Probability(0.4, 0.4, 0.4, "logprobs"))
REPORT = Report(
    id="gw-1",
    status="complete",
    verdict="grounded",
    score=2 / 3,
    flags=("low_confidence",),
    warnings=("one",),
    coverage=Coverage(2, 1, 1, 1 / 3, 1.0),
    confidence=Confidence(0.81234567, "high", "Use the answer.", retrieval=0.9, source=1.0),
    sources=(
        Source("m0", "system", "sky blue", message_index=0, part_index=0, offset=3),
        Source("d", "document", "x", message_index=1, part_index=2, title="T"),
        Source("s", "source", "y"),
    ),
    choices=(
        ChoiceReport(
            0,
            "grounded",
            1.0,
            (
                Judgement(CLAIM, SUPPORTED, 0.7, (SUPPORTED,), BUDGET),
                Judgement(Claim("c2", "Is it?", 12, 18, skip_reason="question"), UNCHECKED, 0.0),
            ),
        ),
    ),
    quotes=QuoteCounts(3, 1, 2, (("q", 2),)),
    violations=(Violation("q", 0, "string", "number"), Violation("r", None, "array", "null")),
    numeric=NumericCounts(3, 1, 1, -0.2, 1, ((0, "c1", FlaggedNumber("$5M", "currency", 5e6)),)),
    correction=Correction("complete", '{"q": []}', (Violation("q", 0, "string", "number"),), 90, 7, "status 500"),
    self_consistency=SelfConsistency(
        "complete",
        3,
        (0.0, 0.1, 0.2),
        2,
        0.25,
        (SampledClaim(0, "c1", (1.0, None, 0.5), 0.125),),
        3,
        200,
        8,
        ("timeout",),
    ),
    prompt=PromptSize(2050, 9000, True),
    risk=Risk(0.41234567, "medium", ("Confidence is 0.81.",)),
    quality=0.71234567,
    consistency=Consistency(
        0.25, (Contradiction(0, "c1", "It is blue.", "It is red.", "gw-0", 1.7e9, "semantic", "high", "Why."),), 1
    ),
    cache=CacheUse(1, 2, 3.123456789),
    stages=(StageUse("embedded", 1, ms=1.234567), StageUse("model", 1, 2, 200, 8, 51.5)),
    timing_ms=(("context", 0.123456), ("total", 2.0)),
    degraded=(("numeric", "timeout"),),
    attempts=(Attempt("cloud", "gpt-4o", "status_503"), Attempt("local", "llama3", "answered")),
    config="abc",
)


def test_a_full_report_has_the_documented_shape() -> None:
    assert misfits(REPORT.to_dict()) == []


@pytest.mark.parametrize(
    "report",
    [
        Report("gw-1", "failed", "not_checked", degraded=(("all", "error"),)),
        Report("gw-1", "skipped", "not_checked", warnings=("w",)),
        replace(
            REPORT, choices=(), sources=(), quotes=None, violations=None, numeric=None, confidence=None, score=None
        ),
        replace(REPORT, choices=(ChoiceReport(0, "not_applicable", None, ()),)),
    ],
    ids=["failed", "skipped", "nothing found", "no claims"],
)
def test_a_report_of_little_has_the_documented_shape(report: Report) -> None:
    assert misfits(report.to_dict()) == []


def test_the_shape_check_notices_what_is_not_documented() -> None:
    wire = REPORT.to_dict()
    wire["extra"] = wire["coverage"]["extra"] = wire["choices"][0]["claims"][0]["extra"] = 1
    del wire["id"]
    extra = "Additional properties are not allowed ('extra' was unexpected)"
    assert misfits(wire) == [
        f"$.choices[0].claims[0]: {extra}",
        f"$.coverage: {extra}",
        "$: 'id' is a required property",
        f"$: {extra}",
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("status", "done"),
        ("verdict", "supported"),
        ("flags", ["surprising"]),
        ("score", 1.01),
        ("confidence.score", None),
        ("confidence.level", "certain"),
        ("risk.level", "none"),
        ("risk.score", -0.1),
        ("quality", 7),
        ("coverage.claims_total", -1),
        ("sources.0.sha256", "abc"),
        ("numeric.confidence_adjustment", 0.2),
        ("stages.0.stage", "cloud"),
        ("choices.0.claims.0.label", "unknown"),
        ("choices.0.claims.0.flags", ["surprising"]),
        ("choices.0.claims.0.budget.status", "fine"),
        ("choices.0.claims.0.budget.p1", 1.5),
        ("choices.0.claims.0.budget.p1_interval", [0.5]),
        ("choices.0.claims.0.citations.0.start", -1),
        ("choices.0.claims.0.citations.0.match", "near"),
    ],
)
def test_the_schema_is_tight(path: str, value: Any) -> None:
    """The published schema, which is open to further members, refuses values that no report has."""
    wire = REPORT.to_dict()
    jsonschema.validate(wire, SCHEMA)
    *steps, last = path.split(".")
    place = wire
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wire, SCHEMA)


def test_the_published_schema_is_the_one_of_the_code() -> None:
    """It is written by `python tools/report_schema.py`."""
    assert json.loads((ROOT / "docs/report.schema.json").read_text(encoding="utf-8")) == SCHEMA


def test_the_openapi_document_has_the_published_schema() -> None:
    components = json.loads(json.dumps(openapi()["components"]["schemas"]).replace("#/components/schemas/", "#/$defs/"))
    assert {name: components[name] for name in SCHEMA["$defs"]} == SCHEMA["$defs"]
    assert components["GroundingReport"] == {name: SCHEMA[name] for name in components["GroundingReport"]}


@pytest.mark.parametrize("case", read("everyday.jsonl")[::12], ids=lambda case: case["document"][:20])
def test_real_reports_fit_the_schema(case: dict[str, Any]) -> None:
    """Reports of the library, which have budgets, and their JSON."""
    for sentence in case["sentences"]:
        report = verify_claims(f'{sentence["text"]} "Nobody said so." [7]', case["document"], judge=Judge())
        assert misfits(report.to_dict()) == []
        assert json.loads(report.to_json()) == report.to_dict() == report.to_dict()


def test_every_part_of_a_report_reaches_the_wire() -> None:
    """A field that somebody adds to Report and forgets to render fails here."""
    wire = REPORT.to_dict()
    names = {"violations": "schema"}
    assert {names.get(field.name, field.name) for field in fields(Report)} <= set(wire)


def test_a_budget_has_bits_and_the_interval_of_the_observed_value() -> None:
    assert REPORT.to_dict()["choices"][0]["claims"][0]["budget"] == {
        "p0": 0.4,
        "p1": 0.98,
        "required_bits": 1.0063,
        "observed_bits": 1.1688,
        "budget_gap": -0.1625,
        "status": "supported",
        "target": 0.95,
        "resolution": 1e-6,
        "p1_interval": [0.97, 0.99],
        "method": "logprobs",
    }


def test_a_budget_names_the_method_of_p1() -> None:
    p0 = Probability(0.4, 0.2, 0.6, "samples")
    wire = render_budget(measure(Probability(0.98, 0.97, 0.99, "logprobs"), p0))
    assert (wire["method"], wire["p0_interval"]) == ("logprobs", [0.2, 0.6])


def test_an_unknown_budget_is_null_and_gives_the_cause() -> None:
    wire = render_budget(measure(Unavailable("rate_limited", 3.0)))
    assert (wire["p1"], wire["budget_gap"], wire["status"], wire["missing"]) == (
        None,
        None,
        "unavailable",
        "rate_limited",
    )
    assert OF_BUDGET.is_valid(wire)


def test_a_pending_report_promises_nothing() -> None:
    assert Report("gw-1", "pending", "not_checked", warnings=("w",)).to_dict() == {
        "id": "gw-1",
        "version": 1,
        "status": "pending",
        "verdict": "not_checked",
        "score": None,
        "offset_unit": "codepoint",
        "flags": [],
        "warnings": ["w"],
    }


def test_a_claim_that_was_not_checked_has_no_score() -> None:
    checked, unchecked = REPORT.to_dict()["choices"][0]["claims"]
    assert (checked["score"], checked["confidence"], checked["verifier"]) == (0.9123, 0.7, "statement")
    assert (unchecked["score"], unchecked["confidence"], unchecked["verifier"]) == (None, None, None)
    assert (checked["pointer"], unchecked["skip_reason"]) == ("/a", "question")
    assert "pointer" not in unchecked
    assert "skip_reason" not in checked


def test_parts_of_confidence_that_are_unknown_are_null() -> None:
    assert REPORT.to_dict()["confidence"]["parts"] == {
        "retrieval": 0.9,
        "source": 1.0,
        "extraction": None,
        "consistency": None,
    }


def test_a_summary_is_a_report_without_its_claims() -> None:
    wire = REPORT.to_dict()
    without = json.loads(json.dumps(wire))
    del without["choices"][0]["claims"]
    assert summary(wire) == without
    assert "claims" in wire["choices"][0]


def test_a_summary_of_a_report_without_choices_is_the_report() -> None:
    wire = Report("gw-1", "pending", "not_checked").to_dict()
    assert summary(wire) == wire


# --- offsets in UTF-16 ------------------------------------------------------------------------------------------------

WIDE = st.text(st.sampled_from("ab é🙂𝒳\ud800\n"), max_size=30)


def utf16_slice(text: str, start: int, end: int) -> str:
    """Return the result of JavaScript's `slice`."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")


@st.composite
def spans(draw: st.DrawFn) -> tuple[str, int, int]:
    text = draw(WIDE)
    start = draw(st.integers(0, len(text)))
    return text, start, draw(st.integers(start, len(text)))


def reported(claim: Claim, citation: Citation, source: Source) -> Report:
    verdict = replace(SUPPORTED, citations=(citation,))
    choice = ChoiceReport(0, "grounded", 1.0, (Judgement(claim, verdict, 1.0, (verdict,)),))
    return Report("gw-1", "complete", "grounded", choices=(choice,), sources=(source,))


@given(spans(), spans(), st.booleans(), st.booleans())
def test_utf16_offsets_cut_out_the_same_text(
    said: tuple[str, int, int], stated: tuple[str, int, int], in_message: bool, in_tool_call: bool
) -> None:
    """This holds for claims in the answer or a tool call, and for citations of a message or a separate source."""
    answer, start, end = said
    evidence, low, high = stated
    pointer = TOOL_CALL_POINTER.format(1) + "/city" if in_tool_call else None
    choice = Choice(0, "🙂", arguments=("🙂🙂", answer)) if in_tool_call else Choice(0, answer)
    source = Source("s", "source", evidence)
    messages: tuple[Message, ...] = ()
    if in_message:
        source = replace(source, message_index=2, part_index=1, offset=low, text=evidence[low:])
        messages = (Message(2, "user", (Part("🙂"), Part(evidence))),)
    report = reported(
        Claim("c1", answer[start:end], start, end, pointer=pointer),
        Citation("s", low, high, evidence[low:high], 1.0, "exact"),
        source,
    )
    wire = report.to_dict(Utf16((choice,), messages, report.sources))
    (claim,) = wire["choices"][0]["claims"]
    (citation,) = claim["citations"]
    assert wire["offset_unit"] == "utf16"
    assert utf16_slice(answer, claim["start"], claim["end"]) == claim["text"]
    assert utf16_slice(evidence, citation["start"], citation["end"]) == citation["text"]


@given(spans())
def test_a_rendered_report_is_valid_json(said: tuple[str, int, int]) -> None:
    text, start, end = said
    report = reported(
        Claim("c1", text[start:end], start, end), Citation("s", 0, 0, text, 1.0, "fuzzy"), Source("s", "tool", text)
    )
    assert json.loads(dumps(report.to_dict())) == report.to_dict()
