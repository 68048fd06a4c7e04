"""Build the distribution, install it with its base dependencies only, and check that it works and stays small.

    python tools/dist_check.py

Checks that wheel and sdist hold no tests, benchmarks, training files or data but the sample of `groundwire eval`, that
typing and licence files ship, that the commands run, that a distribution with a top-level module `proxy` is unharmed,
and that the numbers of dependencies and of installed bytes are within their bounds. Of the sdist, which is installed in
a second environment, the version is checked. Needs `uv` and access to a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
UV = str(Path(sys.executable).parent / "uv")
MAX_DEPENDENCIES = 10
MAX_INSTALLED_MB = 230.0
"""ONNX Runtime and numpy take 133 MB of it, and the shipped model 27 MB."""
DATA = (
    *(".jsonl", ".csv", ".tsv", ".parquet", ".arrow", ".npy", ".npz", ".pkl", ".db", ".sse"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip"),
)
"""Endings of files that hold data: none ships except those in `SHIPPED_DATA`."""
SHIPPED_DATA = ("groundwire/evaluation/sample.jsonl", "groundwire/backends/shipped/vectors.npz")
"""The rows that `groundwire eval` measures when it is given no file, and the vectors that select evidence."""
FOREIGN = ("tests/", "bench/", "training/", "tools/", "examples/", "docs/", ".bench/")
REQUIRED = (
    "groundwire/py.typed",
    "groundwire/backends/shipped/model.onnx",
    "groundwire/backends/shipped/tokenizer.json",
    "groundwire/http/pages/templates/queue.html",
    "groundwire/storage/history/migrations/env.py",
)
PROXY = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "another-proxy"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["proxy"]
"""
LIBRARY = """
import proxy, groundwire
from groundwire import verify_claims
report = verify_claims("Revenue was $5M. Costs fell.", "Revenue was $4M in 2023. Costs fell.")
assert proxy.NAME == "another", proxy
assert report.degraded == (), report.degraded
print("verify_claims:", report.verdict, "- groundwire is at", groundwire.__file__)
"""
SCHEMA = """
import asyncio
from groundwire.backends.schema_process import SchemaProcess
print(asyncio.run(SchemaProcess().validate(["{}"], {"type": "object"}, 20.0)))
"""


def main() -> int:
    """Run all checks, print the sizes, and return the exit status."""
    with TemporaryDirectory(prefix="groundwire-dist-") as name:
        folder = Path(name)
        wheel, sdist = build(folder / "dist")
        problems = [*content_problems(wheel, sdist)]
        python = install(folder, wheel)
        problems += behaviour_problems(folder, python)
        sizes = installed_sizes(folder / "venv")
        problems += bound_problems(wheel, sizes)
        problems += sdist_problems(folder / "from-sdist", sdist)
    print(*problems, sep="\n", file=sys.stderr)
    print("dist-check:", "failed" if problems else "passed")
    return 1 if problems else 0


def run(command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result."""
    return subprocess.run(command, text=True, check=False, capture_output=True, **options)  # noqa: S603


def checked(command: Sequence[str]) -> None:
    """Run a command that has to succeed."""
    done = run(command)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def build(out: Path) -> tuple[Path, Path]:
    """Return the wheel and the sdist built from the repository."""
    checked([UV, "build", "--quiet", "--out-dir", str(out), str(ROOT)])
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def content_problems(wheel: Path, sdist: Path) -> Iterator[str]:
    """Yield a line for each file that must not ship or is missing."""
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.namelist()
    with tarfile.open(sdist) as archive_:
        sources = [name.partition("/")[2] for name in archive_.getnames()]
    yield from (f"the wheel holds {name}" for name in packed if not name.startswith(("groundwire/", "groundwire-")))
    yield from (f"the wheel holds {name}" for name in packed if name.endswith(".pyc") or is_stray_data(name))
    yield from (f"the sdist holds {name}" for name in sources if name.startswith(FOREIGN) or is_stray_data(name))
    yield from (f"the wheel lacks {name}" for name in (*REQUIRED, *SHIPPED_DATA) if name not in packed)
    for name in ("LICENSE", "NOTICE"):
        if not any(each.endswith(f".dist-info/licenses/{name}") for each in packed):
            yield f"the wheel lacks {name}"
        if name not in sources:
            yield f"the sdist lacks {name}"


def is_stray_data(name: str) -> bool:
    """Return whether a file of a wheel or sdist holds data that is not meant to ship."""
    return name.endswith(DATA) and name.removeprefix("proxy/") not in SHIPPED_DATA


def install(folder: Path, wheel: Path) -> Path:
    """Install the wheel, and a distribution with a module `proxy`, in an environment; return its interpreter."""
    other = folder / "another"
    (other / "proxy").mkdir(parents=True)
    (other / "pyproject.toml").write_text(PROXY, encoding="utf-8")
    (other / "proxy" / "__init__.py").write_text('NAME = "another"\n', encoding="utf-8")
    return make_environment(folder / "venv", wheel, other)


def make_environment(folder: Path, *packages: Path) -> Path:
    """Install packages, and their dependencies, in a new environment in `folder`; return its interpreter."""
    python = folder / "bin" / "python"
    checked([UV, "venv", "--quiet", "--python", sys.executable, str(folder)])
    checked([UV, "pip", "install", "--quiet", "--python", str(python), *map(str, packages)])
    return python


def behaviour_problems(folder: Path, python: Path) -> Iterator[str]:
    """Yield a line for each thing that does not work in the environment."""
    groundwire = str(python.parent / "groundwire")
    (folder / "config.yaml").write_text("store: {url: 'sqlite:///history.db'}\n", encoding="utf-8")
    (folder / "empty").mkdir()
    for what, command, cwd, status, expected in (
        ("version", [groundwire, "--version"], folder / "empty", 0, version()),
        ("library", [str(python), "-c", LIBRARY], folder / "empty", 0, "partially_grounded"),
        ("schema", [str(python), "-c", SCHEMA], folder / "empty", 0, "it needs pip install 'groundwire[schema]'"),
        ("demo", [groundwire, "demo", "--pace", "0"], folder / "empty", 0, "contradicted"),
        ("missing extra", [groundwire, "config"], folder, 2, "store.url: it needs pip install 'groundwire[history]'"),
    ):
        yield from command_problems(what, command, cwd, status, expected)


def sdist_problems(folder: Path, sdist: Path) -> Iterator[str]:
    """Install the sdist in a new environment in `folder`, and yield a line if its command does not work."""
    python = make_environment(folder, sdist)
    yield from command_problems("sdist", [str(python.parent / "groundwire"), "--version"], folder, 0, version())


def command_problems(what: str, command: Sequence[str], cwd: Path, status: int, expected: str) -> Iterator[str]:
    """Run a command, and yield a line if its exit status, or its output, is not the expected one."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDWIRE_", "OTEL_"))}
    done = run(command, cwd=cwd, env=environ)
    is_well = done.returncode == status and expected in done.stdout + done.stderr
    print(f"{what}: {'works' if is_well else 'fails'}")
    if not is_well:
        yield f"{what}: status {done.returncode}, without {expected!r}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def version() -> str:
    """Return the version in pyproject.toml."""
    return str(_project()["version"])


def _project() -> dict[str, list[str]]:
    project: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def installed_sizes(environment: Path) -> dict[str, float]:
    """Return the megabytes of each entry of the environment's packages, without byte code."""
    packages = next((environment / "lib").glob("python*/site-packages"))
    return {entry.name: _megabytes(entry) for entry in packages.iterdir() if entry.name != "__pycache__"}


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc") / 1e6


def bound_problems(wheel: Path, sizes: dict[str, float]) -> Iterator[str]:
    """Print the sizes, and yield a line for each bound that is exceeded."""
    total, dependencies = sum(sizes.values()), len(_project()["dependencies"])
    print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB; direct dependencies: {dependencies}; installed: {total:.0f} MB")
    largest = sorted(sizes.items(), key=lambda each: -each[1])[:8]
    print("largest:", ", ".join(f"{name} {size:.0f} MB" for name, size in largest))
    if total > MAX_INSTALLED_MB:
        yield f"the base install takes {total:.0f} MB, over {MAX_INSTALLED_MB:.0f}"
    if dependencies > MAX_DEPENDENCIES:
        yield f"there are {dependencies} direct dependencies, over {MAX_DEPENDENCIES}"


if __name__ == "__main__":
    sys.exit(main())
