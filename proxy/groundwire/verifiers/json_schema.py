"""Validate JSON texts against JSON Schemas written by clients. This file imports nothing else of the package.

Patterns are matched in linear time and no reference is ever fetched, but validation can still take time exponential in
the size of the schema, and the library holds the GIL meanwhile. So the proxy runs this file as a process that it can
kill (`groundwire.backends.schema_process`); callers who trust their schemas use `validate` directly.

The process reads requests from its standard input: two lengths in network byte order, then a schema and a text in
UTF-8. It answers each with two lines of JSON: `[outcome, reason]`, then a list of `[field, index, expected, found]`.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

Outcome = Literal["valid", "invalid", "not_checked"]
Row = tuple[str, int | None, str, str]
"""A violation: JSON pointer, index if it is an array element, the rule that is broken, the type that was found."""

HEADER = struct.Struct("!II")
MAX_VIOLATIONS = 100
_INSTALL = "pip install 'groundwire[schema]'"  # see `groundwire.extras`, which this process does not import
MAX_MEMORY = 2**29

_RULES_WITH_VALUE = frozenset(
    "required minItems maxItems minLength maxLength minProperties maxProperties minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf".split()
)
_JSON_TYPES = (
    (bool, "boolean"),
    (dict, "object"),
    (list, "array"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
)


def json_type(value: object) -> str:
    """Return the JSON name of a parsed value's type."""
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")


class UnusableSchema(Exception):
    """Raised for a schema that cannot be applied; the message completes "the JSON schema cannot be used: "."""


class Validation:
    """The validation of a JSON text against a schema. `violations` costs more than `is_valid`.

    Raises UnusableSchema on construction or on use.
    """

    def __init__(self, schema: str, text: str) -> None:
        self._schema = _compiled(schema)
        self._parsed = True
        try:
            self._value: Any = json.loads(text)
        except (ValueError, RecursionError):
            self._parsed = False

    @property
    def is_valid(self) -> bool:
        """Return whether the text is JSON that conforms to the schema."""
        try:
            return self._parsed and bool(self._schema.is_valid(self._value))
        except (UnicodeEncodeError, RecursionError) as error:
            raise UnusableSchema("the answer holds values that it cannot be applied to") from error

    def violations(self) -> list[Row]:
        """Return at most 100 violations. They never contain parts of the text."""
        if not self._parsed:
            return [("", None, "JSON", "text")]
        return [_row(error) for error in islice(self._schema.iter_errors(self._value), MAX_VIOLATIONS)]


def validate(schema: str, text: str) -> tuple[Outcome, str, list[Row]]:
    """Return the outcome of validating a JSON text, the reason if it was not checked (else ""), and the violations."""
    try:
        validation = Validation(schema, text)
        if validation.is_valid:
            return "valid", "", []
        return "invalid", "", validation.violations()
    except UnusableSchema as error:
        return "not_checked", reason_of(error), []


def reason_of(error: UnusableSchema) -> str:
    """Return the reason for reports that an answer was not checked."""
    return f"the JSON schema cannot be used: {error}"


@lru_cache(maxsize=32)
def _compiled(schema: str) -> Any:
    try:
        import jsonschema_rs
    except ImportError as error:
        raise UnusableSchema(f"it needs {_INSTALL}") from error

    try:
        # formats are annotations in the current draft; treat them so in every draft
        return jsonschema_rs.validator_for(
            schema, pattern_options=jsonschema_rs.RegexOptions(), offline=True, validate_formats=False
        )
    except jsonschema_rs.ValidationError as error:
        raise UnusableSchema(_fault(error)) from error
    except (ValueError, RecursionError) as error:
        message = "it is nested too deeply" if "recursion limit" in str(error) else "it is no JSON that can be read"
        raise UnusableSchema(message) from error


def _fault(error: Any) -> str:
    """Return the reason that a schema did not compile."""
    where = _pointer(error.instance_path) or "its top level"
    if error.kind.name == "format" and error.kind.value == "regex":
        return (
            f"the pattern at {where} cannot be matched in linear time (no look-around, no back-references), or is none"
        )
    if error.kind.name == "$ref":
        if "etriev" in error.message:
            return "it refers to another schema, and none is fetched"
        return (
            "its $schema is not supported" if "meta-schema" in error.message else "it refers to a part it does not have"
        )
    return f"the rule at {where} is not valid"


def _row(error: Any) -> Row:
    path = error.instance_path
    last = path[-1] if path else None
    return _pointer(path)[:500], last if isinstance(last, int) else None, _rule(error), json_type(error.instance)


def _rule(error: Any) -> str:
    kind = error.kind
    if kind.name == "type":
        return f"type {' or '.join(kind.value)}"
    if kind.name == "falseSchema":  # `additionalProperties: false` and the like
        return str(error.schema_path[-1])[:200] if error.schema_path else "nothing"
    return f"{kind.name} {kind.value}"[:200] if kind.name in _RULES_WITH_VALUE else str(kind.name)


def _pointer(path: Sequence[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def serve(cpu_seconds: float) -> None:
    """Answer requests until the end of standard input. The process is killed if one takes more processor time."""
    _limit()
    with suppress(ImportError):  # the first request reports it
        import jsonschema_rs  # noqa: F401 - the import must not count towards the time of a request

    source, sink = sys.stdin.buffer, sys.stdout.buffer

    def reply(values: object) -> None:
        sink.write(json.dumps(values).encode() + b"\n")
        sink.flush()

    while header := source.read(HEADER.size):
        schema, text = (source.read(length).decode("utf-8", "surrogatepass") for length in HEADER.unpack(header))
        _set_timer(cpu_seconds)
        try:
            validation = Validation(schema, text)
            valid = validation.is_valid
            reply(("valid" if valid else "invalid", ""))
            reply([] if valid else validation.violations())
        except UnusableSchema as error:
            reply(("not_checked", reason_of(error)))
            reply([])
        _set_timer(0)


def _set_timer(cpu_seconds: float) -> None:
    """Have the operating system end the process after this much processor time; 0 stops the timer."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _limit() -> None:
    """Lower the priority of the process below the proxy's, and limit its memory to `MAX_MEMORY` bytes."""
    with suppress(ImportError, AttributeError, ValueError, OSError):  # not every system can
        import resource

        os.nice(10)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    serve(float(sys.argv[1]))
