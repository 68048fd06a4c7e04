"""Measure the size and shape of the package, side by side with well-made libraries.

    python tools/figures.py            two Markdown tables, as in docs/architecture.md

The libraries are measured as they are installed in this environment, by the same code. Lines count everything in
`.py` files. A function's length is from its `def` to its last line. A cycle is two or more modules that import each
other at import time, directly or through others. Dependencies are those without extras; the installed size includes
theirs, without byte code. The second table compares with the goals of the project; the files that a request enters are
counted by `path_of_request.py`, which starts a server.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import path_of_request
from language import measure_code
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ANCHORS = ("httpx", "starlette", "structlog")
LONG = 40  # lines of a function


@dataclass(frozen=True, slots=True)
class Shape:
    """The figures of one package."""

    lines: int
    modules: int
    median: float
    long: int
    functions: int
    openings: float
    whats: float
    cycles: int
    dependencies: int
    megabytes: float

    def cells(self) -> tuple[str, ...]:
        """Return the figures as text, in the order of `ROWS`."""
        return (
            f"{self.lines / 1000:.1f} k / {self.modules}",
            f"{self.median:.0f} / {self.long} of {self.functions:,}",
            f"{self.openings:.1f} %",
            f"{self.whats:.1f}",
            str(self.cycles),
            str(self.dependencies),
            f"{self.megabytes:.0f} MB" if self.megabytes >= 10 else f"{self.megabytes:.1f} MB",
        )


ROWS = (
    "lines / modules",
    "functions: median lines / over 40",
    "docstrings that open with what, how, whether …",
    '"what" per 1,000 words of docstring',
    "import cycles",
    "direct dependencies",
    "installed, with all dependencies",
)
MAX_LINES, MAX_DEPENDENCIES, MAX_MEGABYTES, MAX_FILES = 26_000, 10, 150, 45
"""The goals of the project for the package."""


def measure(folder: Path, required: Sequence[Requirement]) -> Shape:
    """Measure the package in a folder, which requires others."""
    paths = sorted(folder.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    lengths = [length for tree in trees.values() for length in _function_lengths(tree)]
    figures = [measure_code(path) for path in paths]
    docstrings, words = sum(each.docstrings for each in figures), sum(each.words for each in figures)
    return Shape(
        lines=sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths),
        modules=sum(bool(tree.body) for tree in trees.values()),
        median=statistics.median(lengths),
        long=sum(length > LONG for length in lengths),
        functions=len(lengths),
        openings=100 * sum(len(each.openings) for each in figures) / max(1, docstrings),
        whats=1000 * sum(each.whats for each in figures) / max(1, words),
        cycles=count_cycles(_imports(folder, trees)),
        dependencies=len(required),
        megabytes=(_folder_size(folder) + sum(map(_installed_size, closure(required)))) / 1e6,
    )


def _function_lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def _imports(folder: Path, trees: Mapping[Path, ast.Module]) -> dict[str, set[str]]:
    """Return the modules of the package that each of its modules imports at import time."""
    names = {path: _module(folder, path) for path in trees}
    known = set(names.values())
    found: dict[str, set[str]] = {}
    for path, tree in trees.items():
        package = names[path] if path.name == "__init__.py" else names[path].rpartition(".")[0]
        targets = {_nearest(target, known) for target in _targets(tree.body, package)}
        found[names[path]] = {target for target in targets if target and target != names[path]}
    return found


def _module(folder: Path, path: Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(body: list[ast.stmt], package: str) -> Iterator[str]:
    """Yield the dotted names that statements outside functions and type-checking blocks import."""
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])]) if level else module
                yield from (f"{base}.{each.name}" for each in names)
            case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
                yield from _targets(node.orelse, package)
            case ast.If() | ast.Try() | ast.With() | ast.ClassDef():
                for part in ("body", "orelse", "handlers", "finalbody"):
                    yield from _targets(getattr(node, part, []), package)
            case ast.ExceptHandler(body=inner):
                yield from _targets(inner, package)


def _nearest(target: str, known: set[str]) -> str | None:
    """Return the module itself, or the one that defines the imported name."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target or None


def count_cycles(graph: Mapping[str, set[str]]) -> int:
    """Count groups of two or more modules that can all be reached from each other (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups = 0

    def visit(node: str) -> None:
        nonlocal groups
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            at = stack.index(node)
            groups += len(stack) - at > 1
            del stack[at:]

    for node in graph:
        if node not in order:
            visit(node)
    return groups


def own_requirements(pyproject: Path) -> list[Requirement]:
    """Return the direct dependencies of a base install."""
    return [*map(Requirement, tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["dependencies"])]


def requirements(name: str, extra: str = "") -> list[Requirement]:
    """Return the dependencies of an installed distribution, those of an extra included, that apply here."""
    found = map(Requirement, importlib.metadata.requires(name) or ())
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": extra})]


def closure(required: Iterable[Requirement]) -> set[str]:
    """Return the names of the distributions that are required, directly or through others."""
    waiting = [(each, extra) for each in required for extra in ("", *each.extras)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        each, extra = waiting.pop()
        if (key := (canonicalize_name(each.name), extra)) not in seen:
            seen.add(key)
            waiting += [(inner, of) for inner in requirements(each.name, extra) for of in ("", *inner.extras)]
    return {name for name, _ in seen}


def _installed_size(name: str) -> int:
    """Return the bytes of an installed distribution, without byte code."""
    distribution = importlib.metadata.distribution(name)
    paths = (Path(str(each.locate())) for each in distribution.files or () if each.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def _folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def main() -> int:
    """Print the table."""
    sys.setrecursionlimit(10_000)
    root = Path(__file__).parent.parent
    folders = {
        name: Path(spec.origin).parent for name in ANCHORS if (spec := importlib.util.find_spec(name)) and spec.origin
    }
    ours = measure(root / "proxy/groundwire", own_requirements(root / "pyproject.toml"))
    shapes = {"groundwire": ours, **{name: measure(at, requirements(name)) for name, at in folders.items()}}
    print("| |", " | ".join(shapes), "|")
    print("|---|" + "---|" * len(shapes))
    for row, cells in zip(ROWS, zip(*(shape.cells() for shape in shapes.values()), strict=True), strict=True):
        print(f"| {row} |", " | ".join(cells), "|")
    print("\n| groundwire | goal | measured |\n|---|---|---|")
    print(f"| lines | {MAX_LINES / 1000:.0f} k | {ours.lines / 1000:.1f} k |")
    print(f"| direct dependencies | {MAX_DEPENDENCIES} | {ours.dependencies} |")
    print(f"| installed, with all dependencies | {MAX_MEGABYTES} MB | {ours.megabytes:.0f} MB |")
    print(f"| files that one unstreamed request enters | {MAX_FILES} | {len(path_of_request.measure())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
