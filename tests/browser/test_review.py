"""Reviews in a real browser: an answer flagged by the proxy is found, read, and decided on by keyboard."""

from __future__ import annotations

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundwire.config import Settings
from groundwire.config.settings import Store
from groundwire.demo.show import serving
from groundwire.http.app import build_app
from groundwire.storage.history.database import Database
from groundwire.storage.history.history import History
from groundwire.storage.history.reviews import Wanted
from tests.browser.conftest import KEY, Place, sign_in
from tests.servers.review_site import ANSWER, exchange

CLAIM = "The ticket has low priority."


def test_a_flagged_answer_is_opened_and_confirmed_by_keyboard(page: Any, place: Place, picture: Any) -> None:
    listed = page.locator("[data-item]")
    claims = listed.locator("h3").all_inner_texts()
    assert CLAIM in claims
    picture(page, "queue")
    for _ in range(claims.index(CLAIM) + 1):
        page.keyboard.press("j")
    assert page.locator("[data-item].current h3").inner_text() == CLAIM
    page.keyboard.press("Enter")
    page.wait_for_url("**/exchanges/gw-*")
    card = page.locator("[data-item].current")
    assert CLAIM in card.inner_text()
    assert page.locator(".evidence.lit").first.inner_text().find("high") >= 0
    picture(page, "exchange")
    page.keyboard.press("n")
    page.keyboard.type("The source says: high. j k c r")
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("c")
    assert "Confirmed" in page.locator("article", has_text=CLAIM).inner_text()
    decided = place.rows("SELECT decision, who, note, version FROM findings WHERE text = :text", {"text": CLAIM})
    assert decided == [("confirmed", "admin", "The source says: high. j k c r", 1)]
    assert place.rows("SELECT count(*) FROM findings WHERE decision IS NOT NULL") == [(1,)]
    assert CLAIM not in page.locator("[data-item].current").inner_text()


def test_false_alarms_are_rejected_in_the_queue_itself(page: Any, place: Place) -> None:
    claims = page.locator("[data-item] h3").all_inner_texts()
    page.keyboard.press("j")
    for _ in range(2):
        with page.expect_navigation():
            page.keyboard.press("r")
    assert page.locator("[data-item] h3").all_inner_texts() == claims[2:]
    assert page.locator("[data-item].current h3").inner_text() == claims[2]
    assert place.rows("SELECT count(*) FROM findings WHERE decision = 'rejected'") == [(2,)]


def test_an_exchange_is_found_by_its_words_and_a_supported_claim_decided_on_by_keyboard(
    page: Any, place: Place, picture: Any
) -> None:
    page.goto("/exchanges")
    assert page.locator("[data-item]").count() == 3
    picture(page, "exchanges")
    page.get_by_label("Words of question or answer").fill("ticket priority")
    page.keyboard.press("Enter")
    page.wait_for_url("**/exchanges?q=ticket*")
    assert page.locator("[data-item] h2").all_inner_texts() == ["What is going on with ticket 48213?"]
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/exchanges/gw-*")
    while page.locator("section[aria-labelledby=others] [data-item].current").count() == 0:
        page.keyboard.press("j")
    claim = page.locator("[data-item].current .said").inner_text()
    with page.expect_navigation():
        page.keyboard.press("r")
    card = page.locator("[data-item].current")
    assert claim in card.inner_text()
    assert "Found wrong: a missed error" in card.inner_text()
    assert place.rows("SELECT text, decision, who FROM findings WHERE flags = ''") == [(claim, "rejected", "admin")]


def test_the_answer_and_the_evidence_of_a_claim_are_never_clipped(chromium: Any, place: Place) -> None:
    context = chromium.new_context(base_url=place.url, viewport={"width": 390, "height": 700})
    page = context.new_page()
    sign_in(page)
    page.get_by_role("link", name=CLAIM).click()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 420})
        clipped = page.evaluate(
            """() => [...document.querySelectorAll(".answer, .answer .text, .finding, .finding .quote")]
              .filter((each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1)
              .map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert clipped == []
        card = page.locator("article", has_text=CLAIM)
        assert "priority" in card.locator(".quote").first.inner_text()
    context.close()


def test_the_evidence_of_the_claim_under_the_cursor_lights_up(page: Any) -> None:
    page.get_by_role("link", name=CLAIM).click()
    page.locator("a.claim.supported").first.hover()
    assert page.locator(".evidence.lit").count() >= 1
    assert page.locator("a.claim.lit").inner_text().startswith("Harbour Clinic")
    page.locator("a.claim", has_text=CLAIM).first.focus()
    assert "priority" in page.locator(".evidence.lit").first.inner_text()


def test_pages_read_and_decide_without_scripts(chromium: Any, place: Place) -> None:
    context = chromium.new_context(base_url=place.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page)
    page.get_by_role("link", name=CLAIM).click()
    article = page.locator("article", has_text=CLAIM)
    article.get_by_role("link", name="(tool)").first.click()
    assert page.evaluate("1") == 1
    assert "priority" in page.locator(".evidence:target").inner_text()
    article.get_by_label("Note").fill("Read without scripts.")
    article.get_by_role("button", name="Reject").click()
    assert "Rejected: a false alarm" in article.inner_text()
    assert place.rows("SELECT note FROM findings WHERE decision = 'rejected'") == [("Read without scripts.",)]
    other = page.locator("section[aria-labelledby=others] article").first
    other.get_by_role("button", name="Wrong").click()
    assert "Found wrong: a missed error" in other.inner_text()
    assert place.rows("SELECT flags, version FROM findings WHERE flags = ''") == [("", 1)]
    context.close()


def test_a_decision_that_came_too_late_shows_the_others(page: Any, place: Place) -> None:
    page.get_by_role("link", name=CLAIM).click()
    other = page.context.new_page()
    other.goto(page.url)
    for each, button in ((other, "Reject"), (page, "Confirm")):
        each.locator("article", has_text=CLAIM).get_by_role("button", name=button).click()
    told = page.get_by_role("alert").inner_text()
    assert "Your decision was not kept" in told
    assert "rejected" in told


WIDTHS = {"phone": 390, "desk": 1280}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_every_page_fits_and_can_be_read(chromium: Any, place: Place, picture: Any, width: int, scheme: str) -> None:
    context = chromium.new_context(
        base_url=place.url, viewport={"width": width, "height": 860}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto("/")
    assert unreadable(page) == []
    page.goto("/playground?example")
    page.get_by_role("button", name="Check the answer").click()
    page.locator("a.claim.supported").first.wait_for()
    assert unreadable(page) == []
    if (width, scheme) == (WIDTHS["desk"], "light"):
        page.evaluate("scrollTo(0, 0)")
        picture(page, "playground")
    page.goto("/sign-in")
    assert unreadable(page) == []
    sign_in(page)
    exchange = page.get_by_role("link", name=CLAIM).get_attribute("href").partition("#")[0]
    for path in ("/reviews", "/exchanges", exchange, "/quality"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert unreadable(page) == [], path
        assert unlabelled(page) == [], path
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_month_of_answers_is_drawn(chromium: Any, tmp_path: Path, picture: Any, scheme: str) -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, a_month(tmp_path / "history.db")).result()
    settings = Settings.model_validate({"store": {"url": f"sqlite:///{tmp_path}/history.db"}})
    with serving(build_app(settings, environ={settings.admin.key_env: KEY})) as url:
        context = chromium.new_context(
            base_url=url.removesuffix("/v1"), viewport={"width": 1280, "height": 1240}, color_scheme=scheme
        )
        page = context.new_page()
        sign_in(page)
        page.goto("/quality")
        assert [chart.locator("circle").count() for chart in page.locator(".chart").all()] == [90, 30, 30, 60, 30, 3]
        assert page.locator("table", has_text="small").locator("tbody tr").count() == 3
        assert unreadable(page) == []
        if scheme == "light":
            picture(page, "quality")
        context.close()


async def a_month(file: Path) -> None:
    """Store thirty days of answers of three models, and decide on some of their findings."""
    dice = random.Random(7)
    database = Database(f"sqlite:///{file}")
    await database.migrate()
    history = History(database, Store(interval=0.0))
    history.start()
    now = time.time()
    answers = [
        ANSWER,
        "Revenue was $4.2M in 2023. The board met in Oslo.",
        "Profit fell to $700K. The board met in Rome.",
    ]
    for day in range(30):
        for number in range(dice.randint(4, 9)):
            chosen = dice.choices(answers, (1, 2 + day / 6, 1))[0]
            made = exchange(f"gw-{day}-{number}", answer=chosen, model=dice.choice(("small", "large", "other")))
            took = (("total", dice.lognormvariate(2.5 + day / 60, 0.8)),)
            history.record(replace(made, at=now - (29 - day) * 86_400, report=replace(made.report, timing_ms=took)))
    assert await history.writer.flush()
    for finding in (await history.reviews.page(Wanted(), limit=200)).items:
        is_right = dice.random() < (0.95 if finding.label == "contradicted" else 0.7)
        await history.reviews.decide(finding.id, 0, "confirmed" if is_right else "rejected", "ann")
    await history.close()


def unreadable(page: Any) -> list[str]:
    """Return the texts whose contrast with their background is under 4.5 (WCAG 2.1, AA)."""
    found: list[str] = page.evaluate(
        """() => {
          const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
            .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
            .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
          const behind = (element) => {
            for (let at = element; at; at = at.parentElement) {
              const color = channels(getComputedStyle(at).backgroundColor);
              if (color.length === 3 || color[3] === 1) return color;
            }
            return [255, 255, 255];
          };
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const bad = [];
          while (walker.nextNode()) {
            const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
            if (!text || !element.checkVisibility() || element.closest("script, .unseen, .skip")) continue;
            const style = getComputedStyle(element);
            const ink = channels(element instanceof SVGElement ? style.fill : style.color);
            const [one, other] = [light(ink), light(behind(element))].sort((a, b) => b - a);
            if ((one + 0.05) / (other + 0.05) < 4.5) bad.push(`${text.slice(0, 40)} ${ink} on ${behind(element)}`);
          }
          return bad;
        }"""
    )
    return found


def unlabelled(page: Any) -> list[str]:
    """Return the fields, buttons, links and pictures without a name, and the missing landmarks."""
    found: list[str] = page.evaluate(
        """() => {
          const all = (selector, isBad) => [...document.querySelectorAll(selector)].filter(isBad);
          const bad = [
            ...all("input:not([type=hidden]), select, textarea", (each) => !each.labels.length),
            ...all("button, a[href]", (each) => !each.textContent.trim() && !each.getAttribute("aria-label")),
            ...all("img", (each) => !each.hasAttribute("alt")),
            ...all("svg", (each) => !each.hasAttribute("aria-hidden") && !each.hasAttribute("aria-labelledby")),
          ].map((each) => each.outerHTML.slice(0, 80));
          return [...bad, ...["main", "header", "nav", "h1"].filter((name) => !document.querySelector(name))];
        }"""
    )
    return found
