"""The shape of JSON answers: declared evidence fields (ES1, ES2), the request's JSON schema (ES3). Never coerces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from proxy.types import Violation

_MAX_VIOLATIONS = 100
_JSON_TYPES = (
    (bool, "boolean"),
    (dict, "object"),
    (list, "array"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
)


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What checking an answer against a JSON schema came to.

    `not_checked` says that the schema itself can not be used (`reason`), which is no fault of the answer.
    """

    outcome: Literal["valid", "invalid", "not_checked"]
    violations: tuple[Violation, ...] = ()
    reason: str = ""


def json_type(value: object) -> str:
    """The JSON name of a parsed value's type."""
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")


def read_evidence(answer: object, fields: Sequence[str]) -> tuple[dict[str, list[str]], tuple[Violation, ...]]:
    """The quotes of each evidence field of a parsed JSON answer, and every violation of the declared shape.

    A field is a name of the top level or a JSON pointer ("/result/quotes"). Missing or null is an empty list; strings
    are trimmed, blanks dropped, duplicates removed in order. Whatever is not a list of strings is a violation.
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
    """The value of a field by its name or, when no key has that name, by its JSON pointer; None if missing."""
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


def validate_schema(instance: object, json_schema: Mapping[str, Any]) -> SchemaResult:
    """Whether a parsed JSON answer obeys the JSON schema of its request's `response_format`.

    References outside the schema are never fetched. Violations name the place as a JSON pointer, the rule and the type
    found, never the answer's text; the first hundred are kept.
    """
    from jsonschema import SchemaError  # 60 ms to import, and few requests carry a schema
    from referencing.exceptions import Unresolvable

    try:
        errors = _validator(json.dumps(json_schema)).iter_errors(instance)
        violations = tuple(_violation(error) for error, _ in zip(errors, range(_MAX_VIOLATIONS), strict=False))
    except (SchemaError, Unresolvable, RecursionError, ValueError) as error:
        return SchemaResult("not_checked", reason=f"the JSON schema can not be used: {type(error).__name__}")
    return SchemaResult("invalid" if violations else "valid", violations)


@lru_cache(maxsize=64)
def _validator(json_schema: str) -> Any:
    """The validator of a schema: building one takes longer than using it. Raises SchemaError."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    schema = json.loads(json_schema)
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, registry=Registry())


def _violation(error: Any) -> Violation:
    path = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in error.absolute_path)
    last = error.absolute_path[-1] if error.absolute_path else None
    rule = f"{error.validator} {error.validator_value}" if error.validator in _TELLING_RULES else str(error.validator)
    return Violation(path, last if isinstance(last, int) else None, rule[:200], json_type(error.instance))


_TELLING_RULES = frozenset(
    "type required minItems maxItems minLength maxLength minimum maximum format multipleOf".split()
)
