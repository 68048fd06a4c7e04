"""The parsed body of a request, shared by routing, forwarding and verification."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from groundwire.dialects.answer import Answer
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.jsonbytes import loads_object, replaced, without
from groundwire.dialects.largejson import ValuesTooLarge
from groundwire.dialects.options import MAX_VALUES, Options, explicit_sources, has_over, read_options
from groundwire.domain import Choice, Exchange
from groundwire.errors import BadRequest, BodyTooLarge, UnreadableBody
from groundwire.pipeline import Ask


@dataclass(frozen=True, slots=True)
class Request:
    """A completion request in some dialect. `raw` is its original body, `body` the decoded one.

    `model` is empty when the request names none, as with stored prompts. `tenant` owns everything stored about it.
    `warnings` has one sentence for each part that is not read; `question` is set where it is not among the messages.
    """

    dialect: Dialect
    raw: bytes
    body: Mapping[str, Any]
    model: str
    options: Options
    tenant: str = ""
    warnings: tuple[str, ...] = ()
    question: str = ""

    @property
    def expected_choices(self) -> int:
        """The number of choices that the answer will have."""
        return self.dialect.expected(self.body)

    def outgoing(self, model: str, forwards_documents: bool) -> bytes:
        """Return the body for an upstream that calls the model `model`: the original less Groundwire's keys."""
        ours = {"grounding"} | (set() if forwards_documents else {"documents"})
        body = without(self.raw, ours) if any(name in self.body for name in ours) else self.raw
        return body if model == self.model else replaced(body, "model", model)

    def exchange(self) -> Exchange:
        """Return the parts of the request that verification reads."""
        return Exchange(
            messages=self.dialect.messages(self.body),
            sources=explicit_sources(self.options, self.body.get("documents")),
            temperature=_temperature(self.dialect.temperature(self.body)),
        )

    @property
    def ask(self) -> Ask:
        """The checks requested in addition to those of claims."""
        return Ask(self.options.evidence_fields, self.dialect.schema(self.body), self.question)

    def examinable(self, answer: Answer) -> tuple[Choice, ...]:
        """Return the choices of an answer, with the arguments of tool calls only if these are to be checked."""
        return answer.choices(with_arguments=self.options.check_tool_calls)


def read_request(dialect: Dialect, raw: bytes, headers: Mapping[str, str], tenant: str = "") -> Request:
    """Parse a request. Raises UnreadableBody when it is not a JSON object, BadRequest when an option is invalid."""
    body = read_object(raw)
    if has_over(body.get("documents"), MAX_VALUES):
        raise BadRequest(f"'documents' must not hold over {MAX_VALUES:,} values", param="documents")
    return Request(dialect, raw, body, model_of(body), read_options(body, headers), tenant, _warnings(dialect, body))


def _warnings(dialect: Dialect, body: Mapping[str, Any]) -> tuple[str, ...]:
    documents = body.get("documents")
    unread = () if documents is None or isinstance(documents, list) else ("documents: no array, so not read",)
    return (*unread, *dialect.unread(body))


def model_of(body: Mapping[str, Any]) -> str:
    """Return the model that a body names; an empty string if none."""
    model = body.get("model")
    return model if isinstance(model, str) else ""


def read_object(raw: bytes, skipped: Collection[str] = ()) -> dict[str, Any]:
    """Parse a body as a JSON object. The members in `skipped` may be left out of a large one.

    Raises UnreadableBody, and BodyTooLarge when it holds too many values for its size.
    """
    try:
        body = loads_object(raw, skipped)
    except ValuesTooLarge as error:
        raise BodyTooLarge(f"The body of your request cannot be read: {error}.") from error
    except ValueError as error:
        raise UnreadableBody("We could not parse the JSON body of your request. It is not valid JSON.") from error
    if not isinstance(body, dict):
        raise UnreadableBody("The body of your request must be a JSON object.")
    return body


def _temperature(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= 100 else None
