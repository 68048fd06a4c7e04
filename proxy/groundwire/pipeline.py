"""Verify one answer end to end: extract its claims, judge each one, and summarise the judgements.

`verify` does all of it in one call. The gateway calls the parts separately, to cache and interleave them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from groundwire.claims.answer import Claims, find_claims
from groundwire.domain import Choice, Claim
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.scoring.aggregate import Examined, Reading, summarise
from groundwire.text.jsontext import parse_object
from groundwire.verifiers.quotes.quote import check_quotes
from groundwire.verifiers.schema import NO_JSON, TOO_LONG_ANSWER, SchemaResult, read_evidence, validate_schema, value_at

MAX_VIOLATIONS = 1000
MAX_SEARCH = 1_000_000_000
"""Maximum steps of searching for the quotations in the evidence fields of one answer: about a second of work."""

TOOL_CALL_POINTER = "/tool_calls/{}/function/arguments"


@dataclass(frozen=True, slots=True)
class Ask:
    """Checks of an answer in addition to its claims: fields of a JSON answer that hold quotations, and its schema.

    `question` is the user's question, needed to read an answer that is a bare number. `max_search` is the number of
    steps allowed for searching the quotations of one choice.
    """

    evidence_fields: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] | None = field(default=None, hash=False)
    question: str = ""
    max_search: int | None = None


def verify(
    choices: Sequence[Choice],
    context: Context,
    policy: Policy = Policy(),
    ask: Ask = Ask(),
    judge: Judge = Judge(),
) -> Report:
    """Verify an answer against its context and return the report. Pure, apart from calls to the model of `judge`."""
    readings = [read(choice, context, policy, ask) for choice in choices]
    examined = [Examined(reading, tuple(judge(reading.claims, context, policy))) for reading in readings]
    return summarise("", examined, context, policy)


def read(choice: Choice, context: Context, policy: Policy, ask: Ask = Ask()) -> Reading:
    """Extract the claims of one choice, look up the quotations in its evidence fields and validate its JSON schema."""
    found = find_claims(choice.text, policy, ask.question)
    claims = list(_quoted(found.claims, choice.text, ask.evidence_fields) if ask.evidence_fields else found.claims)
    called = [find_claims(arguments, policy) for arguments in choice.arguments]
    for at, each in enumerate(called):
        within = TOOL_CALL_POINTER.format(at)
        claims += [replace(claim, pointer=within + (claim.pointer or "")) for claim in each.claims]
    if choice.arguments:
        claims = [replace(claim, id=f"c{number}") for number, claim in enumerate(claims, start=1)]
    texts = [(choice.text, found), *zip(choice.arguments, called, strict=True)]
    reading = Reading(
        choice,
        tuple(claims),
        _share(texts),
        any(each.truncated for _, each in texts),
        unread=sum(each.total - len(each.claims) for _, each in texts),
    )
    return _with_shape(reading, context, policy, ask) if ask.evidence_fields or ask.json_schema else reading


def _share(texts: Sequence[tuple[str, Claims]]) -> float:
    """Return the share of the characters of several texts that was read for claims."""
    total = sum(len(text) for text, _ in texts)
    return sum(len(text) * found.examined for text, found in texts) / total if total else 1.0


def _with_shape(reading: Reading, context: Context, policy: Policy, ask: Ask) -> Reading:
    """Add the quotations of evidence fields and all violations. A choice without text is not checked for its shape."""
    if not reading.choice.text:
        return reading
    if ask.evidence_fields:
        reading = _with_evidence(reading, context, policy, ask)
    if ask.json_schema is not None:
        is_whole = not reading.choice.unread
        result = validate_schema(reading.choice.text, ask.json_schema) if is_whole else TOO_LONG_ANSWER
        reading = with_schema(reading, result)
    return reading


def _with_evidence(reading: Reading, context: Context, policy: Policy, ask: Ask) -> Reading:
    if reading.choice.unread:  # a truncated JSON text cannot be parsed
        return replace(reading, warnings=("evidence_fields: the answer is too long to be searched for quotations",))
    try:
        answer: object = json.loads(reading.choice.text)
    except (ValueError, RecursionError):
        return replace(reading, violations=(NO_JSON,))
    quotes, violations = read_evidence(answer, ask.evidence_fields)
    found = check_quotes(quotes, context, policy.quotes, max_search=ask.max_search)
    warnings = [f"evidence_fields: {found.unchecked} quotations were not looked up, as there are too many"]
    warnings = warnings if found.unchecked else []
    if len(violations) > MAX_VIOLATIONS:
        warnings.append(f"evidence_fields: {len(violations) - MAX_VIOLATIONS} further violations are not listed")
    return replace(reading, quotes=found.counts, violations=violations[:MAX_VIOLATIONS], warnings=tuple(warnings))


def with_schema(reading: Reading, result: SchemaResult | None) -> Reading:
    """Add the result of validating a choice against the JSON schema of its request, if there is one."""
    if result is None:
        return reading
    found = dict.fromkeys((*(reading.violations or ()), *result.violations))  # "no JSON" may be in both
    reason = (f"response_format: {result.reason}",) if result.outcome == "not_checked" else ()
    return replace(reading, violations=tuple(found), warnings=(*reading.warnings, *reason))


def _quoted(claims: Sequence[Claim], text: str, evidence_fields: Sequence[str]) -> Iterator[Claim]:
    """Yield the claims of a JSON answer, with those in evidence fields marked as quotations or as `not_a_quotation`."""
    answer, pointers = parse_object(text), {_pointer(field) for field in evidence_fields}
    for claim in claims:
        is_label = claim.kind == "field" and claim.skip_reason == "heading"  # such as the id of an entry
        if is_label or not isinstance(answer, dict) or not _stands_in(claim, pointers):
            yield claim
        elif isinstance(value_at(answer, claim.pointer or ""), str):
            yield replace(claim, kind="quote", skip_reason=None, stated_confidence=1.0)
        else:
            yield replace(claim, kind="quote", skip_reason="not_a_quotation")


def _pointer(field: str) -> str:
    """Return the JSON pointer of a field, which is given as a pointer or as a top-level key."""
    return field if field.startswith("/") else "/" + field.replace("~", "~0").replace("/", "~1")


def _stands_in(claim: Claim, pointers: Set[str]) -> bool:
    """Return whether a claim lies inside one of the fields at these pointers."""
    pointer = claim.pointer or ""
    ends = (at for at, character in enumerate(pointer + "/") if character == "/")
    return any(pointer[:end] in pointers for end in ends)
