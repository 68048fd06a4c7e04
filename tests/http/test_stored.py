"""The pages as configured by settings: without a store, without keys, and over several replicas."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.errors import ConfigError
from groundwire.http.app import build_app
from tests.servers.review_site import fields, post

KEY = "the-key-of-a-reviewer"
ENVIRON = {"GROUNDWIRE_ADMIN_KEY": KEY, "GROUNDWIRE_ADMIN_SESSION_SECRET": "the same for every replica, and long"}


def client(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://site")


def stored(folder: Path) -> Settings:
    return Settings.model_validate({"store": {"url": f"sqlite:///{folder}/history.db"}})


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/reviews"), ("POST", "/v1/reviews/1"), ("GET", "/v1/grounding"), ("DELETE", "/v1/subjects/acme")],
)
def test_without_a_store_no_admin_key_goes_upstream(method: str, path: str) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={})

    async def work() -> None:
        settings = Settings()
        app = build_app(settings, build_container(settings, {}, transport=httpx.MockTransport(answer)), {})
        async with client(app) as browser:
            reply = await browser.request(method, path, headers={"authorization": f"Bearer {KEY}"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "review_not_found")
            assert (await browser.get("/reviews")).status_code == 404
            assert "store.url" in (await browser.get("/")).text
            assert (await browser.get("/v1/files")).status_code == 200
        assert [request.url.path for request in sent] == ["/v1/files"]

    asyncio.run(work())


def test_without_a_key_nobody_gets_in_and_the_page_explains_why(tmp_path: Path) -> None:
    async def work() -> None:
        async with client(build_app(stored(tmp_path), environ={})) as browser:
            assert (await browser.get("/reviews")).headers["location"].startswith("/sign-in")
            page = await browser.get("/sign-in")
            assert "GROUNDWIRE_ADMIN_KEY" in page.text
            assert (await post(browser, "/sign-in", {**fields(page.text), "key": ""})).status_code == 403
            assert (await browser.get("/v1/reviews", headers={"authorization": "Bearer "})).status_code == 401

    asyncio.run(work())


def test_with_a_common_secret_any_replica_knows_a_session(tmp_path: Path) -> None:
    async def work() -> None:
        replicas = [build_app(stored(tmp_path), environ=ENVIRON) for _ in range(2)]
        async with client(replicas[0]) as browser:
            form = fields((await browser.get("/sign-in")).text)
            await post(browser, "/sign-in", {**form, "key": KEY})
            session = {"cookie": f"groundwire_session={browser.cookies['groundwire_session']}"}
        async with client(replicas[1]) as browser:
            assert "location" not in (await browser.get("/reviews", headers=session)).headers

    asyncio.run(work())


@pytest.mark.parametrize("name", ["GROUNDWIRE_ADMIN_KEY", "GROUNDWIRE_ADMIN_SESSION_SECRET"])
def test_a_secret_that_is_too_short_is_an_error_before_serving(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="characters or more"):
        build_app(stored(tmp_path), environ={**ENVIRON, name: "short"})


def test_over_tls_cookies_go_over_tls_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with client(build_app(stored(tmp_path), environ=ENVIRON)) as browser:
            form = fields((await browser.get("/sign-in")).text)
            reply = await post(browser, "/sign-in", {**form, "key": KEY}, origin="https://site")
            assert "; Secure" in reply.headers["set-cookie"]

    asyncio.run(work())
