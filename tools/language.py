"""Measure how plainly docstrings, comments and pages are written, and fail where a folder or a page is over a limit.

Run as `python tools/language.py` in the repository root (`--show NAME` lists the texts that count against a folder or
page). Three figures are limited, each to `LIMIT` per cent of a folder or page: docstrings and comments of settings that
open with "what", "how", "whether" and the like; docstrings, comments and sentences of pages with a word of the old
private idiom; and names that contain one. "what" per 1,000 words of docstring is limited to
`MAX_WHAT`, requirement ids to none.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 2.0
MAX_WHAT = 2.0

_FOLDERS = ("proxy", "tools", "training", "bench", "examples", "tests")
_ANY_NAMES = ("examples", "tests")  # folders in which names have no limit
_PAGES = ("*.md", "docs/*.md", "docs/decisions/*.md")
_SETTINGS = "config.yaml"

_OPENING = re.compile(
    r"(?:what(?:ever)?|how|whether|that|who(?:se|m)?|when(?:ever)?|where|why|which|as far as|so that)\b", re.IGNORECASE
)
_WHAT = re.compile(r"\bwhat(?:ever)?\b", re.IGNORECASE)
_IDIOM = re.compile(
    r"\b(?:tells?|told|telling|says?|said|saying|stands?(?!-in)|stood|bears?|bore|borne|hears?|heard|beside|besides"
    r"|of (?:its|their|one's) own|heirs?|tenancy|estates?|desk|the house|patience|goes without|comes? to nothing"
    r"|is asked of|are asked of|counts? for nothing|speaks?|spoke|spoken)\b",
    re.IGNORECASE,
)
_IDIOM_NAME = re.compile(
    r"(?:^|_)(?:told|tells?|heard|hears?|said|says?|stands?|standing|bears?|borne|beside|kept|within|house|estate"
    r"|site|tenancy|heirs?|renounce|desk|door|patience|silence|sameness|lapses|begun|asker|asking|asked|prover"
    r"|recaller|recalled|worded)(?:_|$)"
)
_REQUIREMENT = re.compile(r"(?<![\w.-])(?!SHA|UTF|ISO|RFC|X5|H[12]00)[A-Z]{2}\d{1,2}(?![\w-])")
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']{2,}'|“[^”]*”")
_SETTING_COMMENT = re.compile(r"(?:^|\s)# +(.*)")
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|ruff:|fmt:|mypy:|!)")


@dataclass
class Figures:
    """Counts of one folder or page."""

    docstrings: int = 0
    words: int = 0
    whats: int = 0
    texts: int = 0
    names: int = 0
    openings: list[str] = field(default_factory=list)
    idioms: list[str] = field(default_factory=list)
    idiom_names: list[str] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)

    def __iadd__(self, other: Figures) -> Figures:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    @property
    def opening_share(self) -> float:
        """Return the per cent of docstrings and settings' comments that open with an interrogative or relative word."""
        return _per_cent(len(self.openings), self.docstrings)

    @property
    def whats_per_thousand(self) -> float:
        """Return the number of "what" per 1,000 words of docstring."""
        return 1000 * self.whats / self.words if self.words else 0.0

    @property
    def idiom_share(self) -> float:
        """Return the per cent of texts with a word of the old idiom."""
        return _per_cent(len(self.idioms), self.texts)

    @property
    def name_share(self) -> float:
        """Return the per cent of defined names with a word of the old idiom."""
        return _per_cent(len(self.idiom_names), self.names)

    @property
    def text_is_plain(self) -> bool:
        """Return whether the texts keep all limits."""
        shares_kept = self.opening_share < LIMIT and self.idiom_share < LIMIT
        return shares_kept and self.whats_per_thousand < MAX_WHAT

    @property
    def names_are_plain(self) -> bool:
        """Return whether the names keep the limit."""
        return self.name_share < LIMIT


def _per_cent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def measure_code(path: Path) -> Figures:
    """Measure the docstrings, comments and names of a Python file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    figures = Figures()
    for line, text in _docstrings(tree):
        figures.docstrings += 1
        figures.words += len(text.split())
        figures.whats += len(_WHAT.findall(_CODE.sub("", text)))
        if _OPENING.match(text):
            figures.openings.append(f"{path}:{line}: {text.splitlines()[0]}")
        _measure_text(figures, path, line, text)
    for line, text in _comments(source):
        _measure_text(figures, path, line, text)
    for line, name in _names(tree):
        figures.names += 1
        if _IDIOM_NAME.search(_snake_case(name)):
            figures.idiom_names.append(f"{path}:{line}: {name}")
    return figures


def measure_page(path: Path) -> Figures:
    """Measure the sentences of a Markdown page, without its code blocks."""
    figures = Figures()
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*|#])", text):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z*`])", " ".join(block.split())):
            if sentence:
                _measure_text(figures, path, 0, sentence)
    return figures


def measure_settings(path: Path) -> Figures:
    """Measure the comments of the settings file like docstrings; a line that goes on is part of the first."""
    figures = Figures()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not (comment := _SETTING_COMMENT.search(line)):
            continue
        _measure_text(figures, path, number, comment[1])
        if not line.lstrip().startswith("#"):
            figures.docstrings += 1
            if _OPENING.match(comment[1]):
                figures.openings.append(f"{path}:{number}: {comment[1]}")
    return figures


def _measure_text(figures: Figures, path: Path, line: int, text: str) -> None:
    place = f"{path}:{line}" if line else str(path)
    plain = _CODE.sub("", text)
    figures.texts += 1
    if found := _IDIOM.search(plain):
        figures.idioms.append(f"{place}: [{found[0]}] {' '.join(text.split())}")
    figures.requirements += [f"{place}: {found}" for found in _REQUIREMENT.findall(plain)]


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            yield token.start[0], token.string


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names of classes, functions, parameters and assigned variables."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def measure(root: Path) -> dict[str, Figures]:
    """Measure every folder of the package, every other folder of code, every page, and the settings file."""
    found: dict[str, Figures] = {}
    for path in sorted(path for top in _FOLDERS for path in (root / top).rglob("*.py")):
        parts = path.relative_to(root).parts
        depth = 3 if parts[0] == "proxy" and len(parts) > 3 else 1
        found.setdefault("/".join(parts[:depth]), Figures()).__iadd__(measure_code(path))
    for path in (path for pattern in _PAGES for path in sorted(root.glob(pattern))):
        found[path.relative_to(root).as_posix()] = measure_page(path)
    if (root / _SETTINGS).exists():
        found[_SETTINGS] = measure_settings(root / _SETTINGS)
    return found


def complaints(found: dict[str, Figures]) -> list[str]:
    """List the folders and pages that are over a limit."""
    checks: tuple[tuple[str, Callable[[Figures], bool], tuple[str, ...]], ...] = (
        ("texts over a limit", lambda figures: figures.text_is_plain, ()),
        ("names over a limit", lambda figures: figures.names_are_plain, _ANY_NAMES),
        ("requirement ids in texts", lambda figures: not figures.requirements, ()),
    )
    return [
        f"{folder}: {wrong} (--show {folder} lists them)"
        for wrong, is_kept, exempt in checks
        for folder, figures in sorted(found.items())
        if folder not in exempt and not is_kept(figures)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of every folder and page; return 1 if one is over a limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--show", metavar="NAME", help="list the texts that count against a folder or page")
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    options = parser.parse_args(arguments)
    found = measure(options.root)
    if options.show:
        figures = found[options.show]
        print(*figures.openings, *figures.idioms, *figures.requirements, *figures.idiom_names, sep="\n")
        return 0
    if not options.quiet:
        _print_table(found)
    wrong = complaints(found)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def _print_table(found: dict[str, Figures]) -> None:
    total = Figures()
    for folder, figures in found.items():
        if folder.startswith("proxy"):
            total += figures
    width = max(map(len, found))
    print(f"{'':{width}}{'docstrings':>11}{'openings %':>11}{'what ‰':>8}{'idiom %':>9}{'ids':>5}{'names %':>9}")
    for folder, figures in {**found, "the package": total}.items():
        print(
            f"{folder:{width}}{figures.docstrings:11}{figures.opening_share:11.1f}{figures.whats_per_thousand:8.1f}"
            f"{figures.idiom_share:9.1f}{len(figures.requirements):5}{figures.name_share:9.1f}"
        )


if __name__ == "__main__":
    sys.exit(main())
