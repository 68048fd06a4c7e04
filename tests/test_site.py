"""The generated pages are current, and the site is built without warnings and loads nothing from other hosts."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from groundwire.config import Settings

ROOT = Path(__file__).parent.parent


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE, SITE = tool("reference"), tool("site")


@pytest.mark.parametrize("page", REFERENCE.PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_current(page: Path) -> None:
    """It is written by `python tools/reference.py`."""
    assert page.read_text(encoding="utf-8") == REFERENCE.PAGES[page]()


def test_the_settings_page_has_every_setting() -> None:
    def leaves(value: object, path: str) -> set[str]:
        if isinstance(value, dict) and value and path not in ("upstreams",):
            return {leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}".strip("."))}
        return {path}

    page = REFERENCE.settings_page()
    settings = leaves(Settings().model_dump(mode="json", exclude={"upstreams"}), "")
    settings |= leaves(Settings().upstreams["ollama"].model_dump(mode="json"), "upstreams.NAME")
    assert len(settings) > 150
    assert [path for path in sorted(settings) if f"| `{path}` |" not in page] == []


def test_comments_of_the_settings_file_go_on_in_the_next_line() -> None:
    text = "section:\n  key: 1                    # one\n                            # two\n  other: 2\n"
    assert REFERENCE.comments(text) == {"section.key": "one two"}


def test_links_lead_to_pages_of_the_site_or_to_the_repository() -> None:
    text = "[a](docs/wire.md#flags) [b](config.yaml) [c](https://x.y/z) [d](#here)"
    linked = SITE.linked(text, ROOT / "README.md", "R")
    assert linked == "[a](wire.md#flags) [b](R/config.yaml) [c](https://x.y/z) [d](#here)"
    linked = SITE.linked("[a](README.md) [b](../README.md) [c](../wire.md)", ROOT / "docs/decisions/README.md", "R")
    assert linked == "[a](README.md) [b](../README.md) [c](../wire.md)"


def test_every_page_is_in_the_navigation() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for each in (entry.values() if isinstance(entry, dict) else entry) for page in pages(each)]  # type: ignore[attr-defined]

    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    written = {str(path.relative_to(SITE.DOCS)) for path in SITE.DOCS.rglob("*.md")} | set(SITE.PAGES.values())
    assert sorted(listed) == sorted(written)


def test_the_site_is_built_and_needs_no_other_host() -> None:
    pytest.importorskip("zensical")
    done = subprocess.run(
        [sys.executable, "tools/site.py"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = sorted((ROOT / "build/site").rglob("*.html"))
    assert len(built) > 30
    loading = re.compile(r"<(?:script|link|img|iframe|source|video)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")
    canonical = re.compile(r"rel=\"?(?:canonical|alternate|edit)")
    for page in built:
        html = page.read_text(encoding="utf-8")
        assert [tag for tag in loading.findall(html) if not canonical.search(tag)] == [], page
        assert 'class="mermaid"' not in html
    for sheet in (ROOT / "build/site").rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8"))
    assert (ROOT / "build/site/search.json").stat().st_size > 100_000
