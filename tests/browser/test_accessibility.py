"""Check every page with axe-core, which npm fetches; skipped where npm cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Place, sign_in

AXE = "axe-core@4"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
INSTALLED_WITHIN_S = 120


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the source of axe-core."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine, which fetches axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), AXE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLED_WITHIN_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not fetch {AXE} within {INSTALLED_WITHIN_S} s")
    if done.returncode:
        pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip()[:200]}")
    return (Path(folder) / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.timeout(600)  # axe reads every element of nine pages
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")], ids=["phone", "dark"])
def test_axe_finds_no_violation_on_any_page(chromium: Any, place: Place, axe: str, width: int, scheme: str) -> None:
    context = chromium.new_context(
        base_url=place.url, viewport={"width": width, "height": 860}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    found = {}
    for path in ("/", "/playground?example", "/sign-in"):
        page.goto(path)
        found[path] = violations(page, axe)
    sign_in(page)
    page.goto("/exchanges?state=open&model=groundwire-demo")
    exchange = page.locator("[data-open]").first.get_attribute("href")
    found["a decision"] = decided(page, exchange, axe)
    for path in (
        "/exchanges?model=groundwire-demo",
        "/reviews?state=any",
        "/quality?against=before",
        "/exchanges/gw-0",
    ):
        page.goto(path)
        found[path] = violations(page, axe)
    context.close()
    assert {path: each for path, each in found.items() if each} == {}


def decided(page: Any, exchange: str, axe: str) -> list[str]:
    """Return the violations on the page of an exchange with every part open and decisions of each kind made."""
    page.goto(exchange)
    for section, button in (("flagged", "Reject"), ("others", "Wrong")):
        card = page.locator(f"section[aria-labelledby={section}] article").first
        with page.expect_navigation():
            card.get_by_role("button", name=button).click()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return violations(page, axe)


def violations(page: Any, axe: str) -> list[str]:
    """Return the violations found by axe-core: each rule with the first element that breaks it."""
    page.evaluate(axe)
    found = page.evaluate("(rules) => axe.run(document, rules)", RULES)["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]
