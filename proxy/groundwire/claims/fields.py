"""Split a JSON answer into claims: the content of each field, with the span of its value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from groundwire.claims.blocks import LEAD_LIMIT
from groundwire.claims.certainty import PLAIN, named_confidence
from groundwire.claims.prose import Draft, prose, unfenced
from groundwire.text.jsontext import Value, offsets_of, parse_object, scalars

_LABEL_KEYS = frozenset(
    "id type status role format kind version schema $schema language lang success error uuid".split()
)
_VALUE_WORDS = 5


def json_of(text: str) -> str | None:
    """Return the JSON text if the whole answer is one, with a fence around it replaced by spaces; else None."""
    inside = unfenced(text, "", "json") or text
    return None if parse_object(inside) is None else inside


def fields(text: str) -> Iterator[Draft]:
    """Yield the claims of a JSON answer: the sentences of its strings; its numbers and truth values as "key: value".

    Fields with ids, types and the like are skipped as headings, stated confidences as confidences. Nulls are left out.
    """
    root = parse_object(text)
    for value in scalars(text):
        if value.value is None:
            continue
        holder = _holder(root, value)
        key = next((step for step in reversed(value.path) if isinstance(step, str)), "")
        if key.lower() in _LABEL_KEYS:
            yield Draft(value.start, value.end, "field", "", "heading", pointer=value.pointer, text=str(value.value))
        elif (stated := named_confidence(key, value.value)) is not None:
            yield Draft(
                value.start, value.end, "field", "", "confidence", stated, (), value.pointer, f"{key}: {value.value}"
            )
        elif isinstance(value.value, str):
            yield from _string(text, value, key, holder)
        else:
            written = f"{key}: {text[value.start : value.end]}" if key else text[value.start : value.end]
            lead, confidence = _record(holder, key), _stated(holder)
            yield Draft(value.start, value.end, "field", lead, None, confidence, (), value.pointer, written)


def _string(text: str, value: Value, key: str, holder: object) -> Iterator[Draft]:
    own = str(value.value)
    places = offsets_of(text, value.start, value.end)
    stated = _stated(holder)
    is_value = own.count(" ") < _VALUE_WORDS and not own.rstrip().endswith((".", "!", "?"))
    for draft in prose(own):
        start, end = (
            (places[draft.start], places[draft.end]) if places else (value.start + draft.start, value.start + draft.end)
        )
        draft = draft._replace(start=start, end=end, pointer=value.pointer, text=own[draft.start : draft.end])
        if stated != PLAIN and draft.confidence == PLAIN:
            draft = draft._replace(confidence=stated)
        if is_value:
            lead = " ".join(filter(None, (_record(holder, key), key)))[:LEAD_LIMIT]
            draft = draft._replace(
                kind="field", lead=lead, skip=None if draft.skip in ("heading", "lead_in") else draft.skip
            )
        yield draft


def _holder(root: object, value: Value) -> object:
    """Return the object or array that contains `value`."""
    for step in value.path[:-1]:
        if isinstance(root, dict) and isinstance(step, str):
            root = root.get(step)
        elif isinstance(root, list) and isinstance(step, int) and step < len(root):
            root = root[step]
    return root


def _record(holder: object, key: str) -> str:
    """Return a text that names the record of a field: the first field of its object, if that is a short string."""
    if not isinstance(holder, dict) or not holder:
        return ""
    name, first = next(iter(holder.items()))
    return f"{name}: {first}"[:LEAD_LIMIT] if isinstance(first, str) and name != key and len(first) <= 120 else ""


def _stated(holder: object) -> float:
    """Return the confidence that an object states for itself, in a field with such a key."""
    if isinstance(holder, dict):
        for key, value in islice(holder.items(), 40):
            if (stated := named_confidence(key, value)) is not None:
                return stated
    return PLAIN
