"""Render JSON records like the rows of a table: `price: 3 | address.city: Paris`, each value after its path.

Small objects are one text; larger ones are split into groups of adjacent fields, and long strings become separate
texts. `heading` has the path and the name of the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from groundwire.text.jsontext import Node, offsets_of

_MOST_FIELDS = 12
_WIDEST = 600
_LONG_STRING = 160
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_LONGEST_NAME, _LONGEST_PATH = 120, 240  # characters; every text below repeats them
_NAMING_KEYS = ("name", "title", "label", "id", "key", "symbol", "date")


class Reading(NamedTuple):
    """A span of the JSON text with its rendering."""

    start: int
    end: int
    text: str
    heading: str


ReadText = Callable[[str], Iterator[tuple[int, int, str, str]]]


def read_records(text: str, root: Node, read_text: ReadText) -> Iterator[Reading]:
    """Yield the renderings of a tree; `read_text` cuts strings that are long enough to be separate texts.

    Recursive to the depth of the tree, which `read_tree` limits. Linear in its size.
    """
    yield from _container(text, root, "", "", read_text)


def _container(text: str, node: Node, path: str, heading: str, read_text: ReadText) -> Iterator[Reading]:
    items = node.items or []
    if node.leaves and _is_small(node):
        yield Reading(node.value_start, node.end, " | ".join(_fields(text, node, path)), heading)
        return
    naming = _naming(items) if node.in_object else None
    if naming:
        heading = " ".join(filter(None, (heading, str(naming.value))))[-_LONGEST_PATH:]
    group: list[Node] = []
    for item in items:
        if not _is_small(item) or (item.in_object and not node.in_object):
            yield from _group(text, group, path, heading, naming)
            group = []
            step = _joined(path, item.key) if node.in_object else path
            yield from _large(text, item, step, heading, read_text)
        else:
            if len(group) == _MOST_FIELDS:
                yield from _group(text, group, path, heading, naming)
                group = []
            group.append(item)
    yield from _group(text, group, path, heading, naming)


def _large(text: str, item: Node, path: str, heading: str, read_text: ReadText) -> Iterator[Reading]:
    if item.items is not None:
        yield from _container(text, item, path, heading, read_text)
        return
    start, end = item.value_start + 1, item.end - 1
    places = offsets_of(text, start, end)
    for low, high, reading, inner in read_text(str(item.value)):
        first, last = (places[low], places[high]) if places else (start + low, start + high)
        yield Reading(first, last, reading, inner or heading or path)


def _group(text: str, group: list[Node], path: str, heading: str, naming: Node | None) -> Iterator[Reading]:
    """Yield the rendering of adjacent fields, preceded by the field that names their record."""
    if not group:
        return
    led = group if naming is None or naming in group else [naming, *group]
    fields = [field for item in led for field in _named_fields(text, item, path)]
    if fields:
        yield Reading(group[0].start, group[-1].end, " | ".join(fields), heading)


def _fields(text: str, node: Node, path: str) -> list[str]:
    if not node.in_object:
        values = ", ".join(
            text[item.value_start : item.end] if item.items else _shown(text, item) for item in node.items or []
        )
        return [f"{path}: {values}" if path else values]
    return [field for item in node.items or [] for field in _named_fields(text, item, path)]


def _named_fields(text: str, item: Node, path: str) -> list[str]:
    name = path if isinstance(item.key, int) else _joined(path, item.key)
    if item.items is None:
        return [f"{name}: {_shown(text, item)}" if name else _shown(text, item)]
    return _fields(text, item, name) if item.leaves else []


def _is_small(node: Node) -> bool:
    if node.items is None:
        return not isinstance(node.value, str) or (node.width <= _LONG_STRING and "\n" not in node.value.strip())
    if node.leaves > _MOST_FIELDS or node.width > _WIDEST:
        return False
    return all(_is_small(item) and (node.in_object or not item.in_object) for item in node.items)


def _naming(items: list[Node]) -> Node | None:
    """Return the first short field of an object that names it, if any."""
    named = (item for item in items if item.items is None and item.width <= 80 and str(item.value))
    return next((item for item in named if str(item.key).lower() in _NAMING_KEYS), None)


def _shown(text: str, item: Node) -> str:
    if isinstance(item.value, str):
        return item.value
    written = text[item.value_start : item.end]
    return written.lower() if written in ("True", "False", "None") else written


def _joined(path: str, key: str | int) -> str:
    step = _HUMP.sub(" ", str(key)[:_LONGEST_NAME]).strip()
    return f"{path}.{step}"[-_LONGEST_PATH:] if path else step
