"""A real proxy with a store, before the demo's model server, and a real headless Chromium to visit its pages with.

Without playwright or a Chromium on the machine these tests are skipped with that reason. With
GROUNDWIRE_SCREENSHOTS=docs/pages they write pictures of the pages into that folder.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from groundwire.config import Settings
from groundwire.demo.model import MODEL, SCENARIOS, build_model
from groundwire.demo.show import serving
from groundwire.http.app import build_app

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

KEY = "the-key-of-a-reviewer"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WRITTEN_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """A running proxy and its database file."""

    url: str
    file: Path

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows that a query selects."""
        with closing(sqlite3.connect(self.file)) as database:
            return database.execute(sql, values or {}).fetchall()

    def ask(self) -> None:
        """Send the demo's requests through the proxy once its judge is loaded, and wait until they are stored."""
        deadline = time.monotonic() + WRITTEN_WITHIN_S
        while "loading" in httpx.get(f"{self.url}/readyz", timeout=60).text:
            assert time.monotonic() < deadline, "the judge was not loaded"
            time.sleep(0.1)
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="not-needed", max_retries=0)
        for scenario in SCENARIOS:
            messages: Any = scenario.messages
            client.chat.completions.create(model=MODEL, messages=messages)
        while self._stored() < len(SCENARIOS):
            assert time.monotonic() < deadline, "the answers were not stored"
            time.sleep(0.1)

    def _stored(self) -> int:
        """Return how many exchanges the proxy has stored; 0 while it still makes its tables."""
        reply = httpx.get(f"{self.url}/v1/grounding", headers={"authorization": f"Bearer {KEY}"}, timeout=60)
        return len(reply.json()["exchanges"]) if reply.status_code == 200 else 0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Run the browser, without a window. Meanwhile this thread can start no other event loop."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Run a proxy whose store holds the demo's answers, two of them flagged."""
    file = tmp_path / "history.db"
    with serving(build_model(0.0)) as model:
        settings = Settings.model_validate(
            {
                "upstreams": {"demo": {"base_url": model}},
                "grounding": {"timeout": "30s"},
                "store": {"url": f"sqlite:///{file}", "interval": "50ms"},
                "telemetry": {"log_level": "error"},
            }
        )
        app = build_app(settings, environ={settings.admin.key_env: KEY})
        with serving(app) as url:
            found = Place(url.removesuffix("/v1"), file)
            found.ask()
            yield found


@pytest.fixture
def page(chromium: Any, place: Place) -> Iterator[Any]:
    """Open a page in which the reviewer has signed in; any complaint of the browser fails the test."""
    context = chromium.new_context(base_url=place.url, viewport={"width": 1280, "height": 860}, color_scheme="light")
    opened = context.new_page()
    complaints: list[str] = []
    answered: list[int] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("response", lambda reply: answered.append(reply.status))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(opened)
    yield opened
    context.close()
    refused = answered.count(409)  # the browser reports it as an error too, but some tests expect it
    assert [each for each in complaints if "409" not in each] == []
    assert len(complaints) == refused


def sign_in(page: Any) -> None:
    """Sign in with the keyboard, as people do."""
    page.goto("/reviews")
    page.get_by_label("Admin key").fill(KEY)
    page.keyboard.press("Enter")
    page.wait_for_url("**/reviews")


@pytest.fixture
def picture() -> Any:
    """Return a function that saves a picture of a page where pictures are wanted."""
    folder = os.environ.get("GROUNDWIRE_SCREENSHOTS")

    def take(page: Any, name: str, **options: Any) -> None:
        if folder:
            page.wait_for_timeout(600)  # until animations have ended
            page.screenshot(path=Path(folder) / f"{name}.png", **options)

    return take
