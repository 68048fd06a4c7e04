"""Build the documentation as a static site in build/site, from docs/, README.md, CHANGELOG.md and CONTRIBUTING.md.

Run as `python tools/site.py`; `mkdocs.yml` has the settings. A copy of the pages is made in build/docs, in which links
to files that are not pages lead to the repository. Warnings of the builder, such as a link to no page, are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
COPY = ROOT / "build" / "docs"
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def repository() -> str:
    """Return the address below which the repository shows its files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['urls']['Source']}/blob/main"


def linked(text: str, page: Path, files: str) -> str:
    """Return a page with its links as they are within the site; `files` is the address of other files."""

    def replaced(match: re.Match[str]) -> str:
        target = (page.parent / match[1]).resolve()
        inside = str(target.relative_to(ROOT))
        anchor = match[2] or ""
        if inside in PAGES:
            target, inside = DOCS / PAGES[inside], f"docs/{PAGES[inside]}"
        if not target.is_relative_to(DOCS) or target.is_dir():
            return f"{files}/{inside}{anchor}"
        here = DOCS if page.parent == ROOT else page.parent
        return os.path.relpath(target, here) + anchor

    return _LINK.sub(replaced, text)


def copy_pages() -> None:
    """Copy all pages and their images to build/docs, with their links rewritten."""
    files = repository()
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(DOCS, COPY)
    pages = {path: COPY / path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    pages |= {ROOT / name: COPY / page for name, page in PAGES.items()}
    for page, copy in pages.items():
        copy.write_text(linked(page.read_text(encoding="utf-8"), page, files), encoding="utf-8")


def main() -> int:
    """Build the site. Returns the exit status of the builder."""
    copy_pages()
    builder = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    return subprocess.run(builder, cwd=ROOT, check=False).returncode  # noqa: S603 - no input of others


if __name__ == "__main__":
    sys.exit(main())
