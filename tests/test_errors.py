"""The tree of errors that a docstring draws is the real one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from groundwire import errors
from groundwire.errors import GroundwireError

_BRANCH = re.compile(r"^    ((?:│   |    |├── |└── )*)(\w+)(?:  |$)", re.MULTILINE)
_CLASS = re.compile(r"^ *class \w+\(([^)]*)\)", re.MULTILINE)


def drawn(text: str) -> list[tuple[int, str]]:
    """Return depth and name of each error in a drawing, from top to bottom."""
    return [(len(indent) // 4, name) for indent, name in _BRANCH.findall(text)]


def real(error: type[Exception] = GroundwireError, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Yield depth and name of an error and of those below it, in the order of their definitions."""
    yield depth, error.__name__
    for each in error.__subclasses__():
        if each.__module__ == errors.__name__:  # not one of a test
            yield from real(each, depth + 1)


def test_the_drawn_tree_of_errors_is_the_real_one() -> None:
    assert errors.__doc__
    assert drawn(errors.__doc__) == [*real()]


def test_no_other_module_defines_an_error_of_the_tree() -> None:
    names = {name for _, name in real()}
    path = Path(errors.__file__)
    bases = {
        str(module): set(re.findall(r"\w+", " ".join(_CLASS.findall(module.read_text(encoding="utf-8")))))
        for module in path.parent.rglob("*.py")
    }
    assert [module for module, found in bases.items() if found & names] == [str(path)]
