"""The library: verify_claims, quotes, evidence schema, numbers, confidence."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import socket
import typing
import warnings
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import groundwire
from groundwire import (
    EvidenceGroundingError,
    EvidenceSchemaError,
    NumericPolicy,
    Policy,
    Source,
    adjust_confidence,
    check_evidence,
    check_numbers,
    check_quotes,
    find_claims,
    library,
    verify_claims,
)
from groundwire.domain import FlaggedNumber
from groundwire.features.memory import GatePolicy
from groundwire.policy import ModelPolicy, QuotePolicy, Thresholds

SOURCE = 'Revenue came to $4,187,332 in 2023. "We sold more turbines in Spain than ever," said the chief executive.'


@pytest.mark.parametrize("name", groundwire.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(groundwire, name).__name__ == name
    assert name in dir(groundwire)


def test_everything_that_the_library_defines_is_public() -> None:
    public = {name: value for name, value in vars(library).items() if callable(value) and not name.startswith("_")}
    defined = {name for name, value in public.items() if getattr(value, "__module__", "") == library.__name__}
    assert defined - {"T"} <= set(groundwire.__all__)


OPAQUE = {"Judge"}
"""Public classes whose attributes are not part of the API."""

PARTS_OF_THE_PROXY = {"Attempt", "CacheUse", "Consistency", "Correction", "PromptSize", "SelfConsistency", "StageUse"}
"""Types of the attributes of a report that only the proxy fills."""


def signatures(public: object) -> Iterator[object]:
    """Yield what has the type hints of a function or class: itself, its constructor, its properties and methods.

    `to_dict` returns the wire format and not classes.
    """
    if not inspect.isclass(public):
        yield inspect.unwrap(public)  # type: ignore[arg-type]
        return
    if is_dataclass(public):
        yield public
    for name, member in vars(public).items():
        found = member.fget if isinstance(member, property) else member
        if inspect.isfunction(found) and (name == "__init__" or not name.startswith("_")) and name != "to_dict":
            yield found


def classes(hint: object) -> Iterator[type]:
    """Yield the classes of the package in a type hint."""
    if inspect.isclass(hint) and hint.__module__.startswith("groundwire."):
        yield hint
    for part in typing.get_args(hint):
        yield from classes(part)


@pytest.mark.parametrize("name", sorted({*groundwire.__all__} - OPAQUE))
def test_every_class_in_a_public_signature_is_public(name: str) -> None:
    hints = [hint for each in signatures(getattr(groundwire, name)) for hint in typing.get_type_hints(each).values()]
    missing = {each.__name__ for hint in hints for each in classes(hint)} - {*groundwire.__all__}
    assert missing <= PARTS_OF_THE_PROXY
    assert not missing or name == "Report"


def test_type_checkers_find_the_names_where_they_are_loaded_from() -> None:
    tree = ast.parse(Path(groundwire.__file__).read_text(encoding="utf-8"))
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and each.level == 0]
    listed = {alias.asname: each.module for each in imports for alias in each.names if alias.asname}
    assert listed == {name: getattr(groundwire, name).__module__ for name in groundwire.__all__}


def test_every_result_has_the_wire_format_of_the_endpoints() -> None:
    answer = 'Revenue was $5.2M in 2023. "We sold more turbines in Spain", it says.'
    budget = {"p0", "p1", "required_bits", "observed_bits", "budget_gap", "status", "target", "resolution"}
    claim = groundwire.verify_claim("Revenue was $5.2M in 2023.", SOURCE)
    assert (claim.to_dict()["label"], claim.to_dict()["text"]) == (claim.label, claim.claim)
    assert budget <= claim.to_dict()["budget"].keys()
    audit = groundwire.audit_trace(["Revenue was $4.2M."], SOURCE, "$4.2M")
    assert audit.to_dict()["counts"] == {"ENTAILED": 1, "CONTRADICTED": 0, "NOT_IN_CONTEXT": 0, "UNVERIFIABLE": 0}
    assert audit.to_dict()["post_hoc"]["status"] == "derived"
    quotes = check_quotes(answer, SOURCE)
    assert quotes.to_dict()["quotes"] == {"extracted": 1, "validated": 1, "rejected": 0, "rejected_by_field": {}}
    numbers = check_numbers(answer, SOURCE)
    assert numbers.to_dict()["flagged"] == [
        {"choice": 0, "id": "c1", "text": "$5.2M", "type": "currency", "value": 5_200_000.0}
    ]
    assert numbers.to_dict() == verify_claims(answer, SOURCE).to_dict()["numeric"]
    for result in (claim, audit, quotes, numbers, verify_claims(answer, SOURCE)):
        assert json.loads(result.to_json(indent=2)) == result.to_dict()


@pytest.mark.parametrize("text", ["“Ünïcode” 🙂", "a lone \ud800 surrogate"])
def test_json_of_any_text_can_be_encoded_and_read_back(text: str) -> None:
    report = verify_claims(text, text)
    assert json.loads(report.to_json().encode()) == report.to_dict()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        groundwire.nothing_like_it  # noqa: B018


@pytest.mark.parametrize(
    "context",
    [
        SOURCE,
        [SOURCE],
        Source("a", "document", SOURCE),
        ["Something else.", Source("a", "document", SOURCE)],
        {"id": "a", "text": SOURCE},
        ["Something else.", {"text": SOURCE, "metadata": {"source": "a.md"}}],
    ],
    ids=["text", "texts", "source", "both", "object", "objects"],
)
def test_claims_are_verified_against_any_shape_of_context(context: object) -> None:
    report = verify_claims("Revenue was $4.2M in 2023. Revenue was $4.9M in 2023.", context)  # type: ignore[arg-type]
    assert [judgement.verdict.label for judgement in report.choices[0].judgements] == ["supported", "contradicted"]
    assert (report.verdict, report.score) == ("partially_grounded", 0.5)


def test_a_source_is_named_as_in_a_request() -> None:
    given = {"text": SOURCE, "title": "Annual report", "url": "https://example.com/a"}
    report = verify_claims("Revenue was $4.2M in 2023.", given)
    assert [(each.id, each.title, each.url) for each in report.sources] == [
        ("source-1", "Annual report", "https://example.com/a")
    ]
    with pytest.raises(ValueError, match="txt"):
        verify_claims("Revenue was $4.2M in 2023.", {"txt": SOURCE})


def test_the_messages_of_a_request_are_evidence_as_they_are_for_the_proxy() -> None:
    messages = [
        {"role": "system", "content": f"Answer from the context.\n\n<doc id='a'>{SOURCE}</doc>"},
        {"role": "assistant", "content": "Revenue was $9M in 2023."},
        {"role": "user", "content": [{"type": "text", "text": "How much was revenue in 2023?"}]},
    ]
    report = verify_claims("Revenue was $4.2M in 2023. Grass is green.", "Grass is green.", messages=messages)
    assert (report.verdict, [source.kind for source in report.sources]) == ("grounded", ["source", "document"])
    assert verify_claims("Revenue was $9M in 2023.", messages=messages).verdict == "ungrounded"


CALLS: list[tuple[Callable[..., object], dict[str, object]]] = [
    (groundwire.verify_claim, {"claim": "Grass is green.", "evidence": "Grass is green."}),
    (verify_claims, {"text": "Grass is green.", "context": "Grass is green."}),
    (groundwire.audit_trace, {"steps": ["Grass is green."], "context": "Grass is green."}),
    (check_quotes, {"text": "Grass is green.", "context": "Grass is green."}),
    (check_evidence, {"answer": {"q": ["Grass is"]}, "fields": ["q"], "context": "Grass is green."}),
    (check_numbers, {"text": "Grass is green.", "context": "Grass is green."}),
]
RENAMED = {"evidence": "sources", "context": "sources", "text": "answer", "fields": "evidence_fields"}


@pytest.mark.parametrize(("function", "given"), CALLS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_argument_names_work_with_a_warning(function: Callable[..., object], given: dict[str, object]) -> None:
    with pytest.warns(DeprecationWarning, match="is now called 'sources'") as warned:
        function(**given)
    assert {each.filename for each in warned} == {__file__}
    new = {RENAMED.get(name, name): value for name, value in given.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(**new)
    with pytest.raises(TypeError, match="'sources' twice"):
        function(**given, sources=())


def test_evidence_fields_have_one_name_and_the_old_one_is_read() -> None:
    answer = {"q": ["Grass is"]}
    found = check_evidence(answer, evidence_fields=["q"], sources="Grass is green.")
    with pytest.warns(DeprecationWarning, match="'fields' is now called 'evidence_fields'"):
        assert check_evidence(answer, fields=["q"], sources="Grass is green.") == found  # type: ignore[call-arg]
    assert found.accepted == answer


def test_the_async_twins_take_the_old_names_too() -> None:
    with pytest.warns(DeprecationWarning, match="'context' is now called 'sources'"):
        report = asyncio.run(groundwire.verify_claims_async("Grass is green.", context="Grass is green."))  # type: ignore[call-arg]
    assert report.verdict == "grounded"


def test_numbers_in_brackets_resolve_to_texts_by_their_order() -> None:
    report = verify_claims("The sky is blue [2]. Grass is green [3].", ["Grass is green.", "The sky is blue."])
    assert [judgement.verdict.label for judgement in report.choices[0].judgements] == ["supported", "supported"]
    assert report.flags == ("unknown_citation",)


def test_no_context_is_not_clean() -> None:
    report = verify_claims("Revenue was $4.2M.", "")
    assert (report.status, report.verdict, report.score) == ("skipped", "not_checked", None)


def test_evidence_fields_and_schemas_of_json_answers_are_reported() -> None:
    answer = json.dumps({"quotes": ["We sold more turbines in Spain than ever", "We sold none", 3]})
    report = verify_claims(answer, SOURCE, evidence_fields=["quotes"], json_schema={"required": ["verdict"]})
    assert report.quotes
    assert (report.quotes.extracted, report.quotes.validated, report.quotes.rejected) == (2, 1, 1)
    assert {violation.field for violation in report.violations or ()} == {"quotes", ""}
    assert "evidence_schema_violation" in report.flags


def test_claims_are_found_without_a_context() -> None:
    assert [claim.skip_reason for claim in find_claims("Is it? It is 5 km long.")] == ["question", None]


def test_quotations_are_looked_up() -> None:
    result = check_quotes('He said: "We sold more turbines in Spain" and "we sold fewer than before in Spain".', SOURCE)
    assert result.accepted == {"text": ["We sold more turbines in Spain"]}
    assert (result.counts.extracted, result.counts.validated, result.counts.rejected) == (2, 1, 1)


def test_rejecting_all_quotations_is_an_error_only_on_request() -> None:
    text = 'He said: "we never sold anything to anybody at all".'
    assert check_quotes(text, SOURCE).all_rejected
    with pytest.raises(EvidenceGroundingError) as raised:
        check_quotes(text, SOURCE, fail_on_all_rejected=True)
    assert raised.value.rejected == 1


def test_evidence_is_accepted_field_by_field() -> None:
    answer = {"pro": ["Revenue came to $4,187,332"], "contra": ["Revenue came to $4,187,333"], "none": None}
    result = check_evidence(answer, ["pro", "contra", "none", "missing"], SOURCE)
    assert result.accepted == {"pro": ["Revenue came to $4,187,332"], "contra": [], "none": [], "missing": []}
    assert result.counts.rejected_by_field == (("contra", 1),)


def test_every_breach_of_the_shape_is_in_the_error() -> None:
    with pytest.raises(EvidenceSchemaError) as raised:
        check_evidence('{"pro": "no list", "contra": ["fine", 4, null]}', ["pro", "contra"], SOURCE)
    assert [(v.field, v.index, v.found) for v in raised.value.violations] == [
        ("pro", None, "string"),
        ("contra", 1, "number"),
        ("contra", 2, "null"),
    ]


def test_block_quotes_are_quotations() -> None:
    quoted = "> Revenue came to\n> $4,187,332\n\nand\n> Nobody ever earned more.\n— Ann"
    text = f'As "Revenue came to $4,187,332" shows:\n\n{quoted}'
    source = "Revenue came to $4,187,332."
    result = check_quotes(text, source)
    assert result.accepted == {"text": ["Revenue came to $4,187,332", "Revenue came to\n$4,187,332"]}
    assert result.counts.rejected == 1


def test_evidence_that_is_no_json_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        check_evidence("no json", ["pro"], SOURCE)


def test_errors_about_evidence_are_value_errors() -> None:
    with pytest.raises(ValueError, match="expected array, found string"):
        check_evidence({"pro": "no list"}, ["pro"], SOURCE)
    with pytest.raises(ValueError, match="none of the 1 quotations"):
        check_evidence({"pro": ["never said"]}, ["pro"], SOURCE, fail_on_all_rejected=True)


def test_numbers_are_counted_and_flagged() -> None:
    result = check_numbers("Revenue was $4.2M in 2023. Revenue was $5.2M in 2023. It was a good year.", SOURCE)
    assert (result.total_claims, result.verified_claims, result.unverified_claims) == (4, 3, 1)
    assert [claim.text for claim in result.flagged] == ["Revenue was $5.2M in 2023."]
    assert result.flagged_numbers == (FlaggedNumber("$5.2M", "currency", 5_200_000.0),)
    assert result.confidence_adjustment == -0.2
    assert result.ms > 0


def test_numbers_are_checked_with_the_configured_tolerance() -> None:
    policy = NumericPolicy(tolerance=(("currency", 0.3),))
    assert check_numbers("Revenue was $5.2M in 2023.", SOURCE, policy=policy).unverified_claims == 0


@pytest.mark.parametrize(
    ("answer", "original", "adjusted"),
    [
        ("Revenue was $4.2M in 2023.", 0.9, 0.9),
        ("Revenue was $9.9M in 2023.", 0.9, 0.72),
        ("Revenue was $9.9M in 2023. Revenue was $8.8M in 2023.", 0.9, 0.72),
        ("We sold turbines in Spain.", 0.9, 0.9),
        ("Revenue was $9.9M in 2023.", 0.0, 0.0),
    ],
    ids=["verified", "one unverified", "two unverified", "no number", "nothing to take away"],
)
def test_any_unverified_number_lowers_a_stated_confidence_once(answer: str, original: float, adjusted: float) -> None:
    assert adjust_confidence(original, verify_claims(answer, SOURCE)) == pytest.approx(adjusted)


def test_the_penalty_is_the_policys() -> None:
    policy = Policy(numeric=NumericPolicy(confidence_penalty=0.5))
    assert adjust_confidence(0.8, verify_claims("Revenue was $9.9M in 2023.", SOURCE, policy=policy)) == 0.4


def test_a_bare_number_is_read_with_its_question() -> None:
    source = "Revenue: 2019 was $1,496.5 million and 2018 was $1,202.9 million."
    question = "What was the percentage change in revenue from 2018 to 2019?"
    assert verify_claims("24.41 percent", source, question=question).verdict == "grounded"
    assert verify_claims("29.41 percent", source, question=question).verdict == "ungrounded"


def test_the_embedded_verifiers_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is downloaded and no server is called."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    assert verify_claims("Revenue was $4.2M in 2023. They sold turbines in Spain.", SOURCE).verdict != "not_checked"


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda value: Thresholds(grounding=value), 1.1),
        (lambda value: Thresholds(consistency=value), -0.1),
        (lambda value: Thresholds(confidence=value), float("nan")),
        (lambda value: Thresholds(risk=value), 7),
        (lambda value: QuotePolicy(fuzzy_threshold=value), 0.4),
        (lambda value: QuotePolicy(fuzzy_threshold=value), 85),
        (lambda value: NumericPolicy(confidence_penalty=value), 20),
        (lambda value: NumericPolicy(tolerance=(("currency", value),)), 5),
        (lambda value: NumericPolicy(tolerance=(("date", value),)), -7),
        (lambda value: NumericPolicy(max_source_checks=value), 0),
        (lambda value: NumericPolicy(timeout_s=value), -1),
        (lambda value: Policy(max_claims=value), 0),
        (lambda value: Policy(confidence_weights=(("retrieval", value),)), -0.3),
        (lambda value: Policy(source_weights=(("user", value),)), 1.5),
        (lambda value: GatePolicy(min_confidence=value), 50),
        (lambda value: ModelPolicy(probability_max=value), 80),
        (lambda value: ModelPolicy(flag_threshold_bits=value), -1),
    ],
)
def test_a_threshold_out_of_its_range_is_refused(build: Callable[[float], object], value: float) -> None:
    with pytest.raises(ValueError, match=rf"must be .*, not {value}"):
        build(value)


def test_thresholds_at_the_ends_of_their_range_are_taken() -> None:
    Thresholds(0, 1, 0, 1)
    QuotePolicy(fuzzy_threshold=0.5)
    NumericPolicy(confidence_penalty=1, tolerance=(("currency", 1), ("date", 365)))
    Policy(max_claims=1, confidence_weights=(("retrieval", 0), ("source", 3)))


def test_message_parts_that_are_not_read_cause_a_warning() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Revenue was $4.2 million in 2023."}, image]}]
    (warning,) = verify_claims("Revenue was $4.2M in 2023.", messages=messages).warnings
    assert "image" in warning
