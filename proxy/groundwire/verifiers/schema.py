"""Check the shape of JSON answers: declared evidence fields, and the JSON schema of a request. No value is coerced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundwire.report import Violation
from groundwire.verifiers.json_schema import Outcome, json_type, validate

NO_JSON = Violation("", None, "JSON", "text")


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """The result of validating an answer against a JSON schema.

    `not_checked` means that validation was not possible, for the given `reason`; it is not a violation by the answer.
    """

    outcome: Outcome
    violations: tuple[Violation, ...] = ()
    reason: str = ""


TOO_LONG_ANSWER = SchemaResult("not_checked", reason="the answer is too long to be validated against a JSON schema")


def read_evidence(answer: object, fields: Sequence[str]) -> tuple[dict[str, list[str]], tuple[Violation, ...]]:
    """Return the quotations in each evidence field of a parsed JSON answer, and all violations of the declared shape.

    A field is a top-level key or a JSON pointer ("/result/quotes"). A missing or null field gives an empty list.
    Strings are stripped, empty ones dropped, and duplicates removed in order. Any value other than a list, and any
    element other than a string, is a violation.
    """
    quotes: dict[str, list[str]] = {field: [] for field in fields}
    if not isinstance(answer, dict):
        return quotes, (Violation("", None, "object", json_type(answer)),)
    violations: list[Violation] = []
    for field in quotes:
        value = value_at(answer, field)
        if isinstance(value, list):
            violations += [
                Violation(field, index, "string", json_type(element))
                for index, element in enumerate(value)
                if not isinstance(element, str)
            ]
            trimmed = (element.strip() for element in value if isinstance(element, str))
            quotes[field] = list(dict.fromkeys(text for text in trimmed if text))
        elif value is not None:
            violations.append(Violation(field, None, "array", json_type(value)))
    return quotes, tuple(violations)


def value_at(answer: Mapping[str, Any], field: str) -> object:
    """Return the value of a key or, if there is no such key, at a JSON pointer (RFC 6901); None if missing."""
    if field in answer or not field.startswith("/"):
        return answer.get(field)
    value: object = answer
    for step in field[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def validate_schema(text: str, json_schema: Mapping[str, Any]) -> SchemaResult:
    """Validate a JSON text against a JSON schema in this process, which a hostile schema can block for a long time.

    References outside the schema are never fetched. A violation has the JSON pointer of the place, the rule that is
    broken and the type found, never text of the answer. At most 100 violations are returned.
    """
    outcome, reason, rows = validate(json.dumps(json_schema), text)
    return SchemaResult(outcome, tuple(Violation(*row) for row in rows), reason)
