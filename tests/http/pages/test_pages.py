"""The pages: their content, access to them, the effect of decisions, and the escaping of untrusted text."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from groundwire.dialects.jsonbytes import dumps
from groundwire.http.pages.rendering import form_fields
from groundwire.report import Consistency, Contradiction, Utf16
from groundwire.storage.history.exchange import Content, PromptMessage
from groundwire.storage.history.reviews import Wanted
from groundwire.telemetry.reliability import Calibration
from tests.servers.review_site import ANSWER, KEYS, QUESTION, Site, application, exchange, fields, post, visit

ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea></title></svg><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
]


def test_a_visitor_signs_in_with_a_key_and_is_redirected_back(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = site.client()
        reply = await browser.get("/exchanges/gw-1?x=1")
        assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in?next=%2Fexchanges%2Fgw-1%3Fx%3D1")
        form = fields((await browser.get(reply.headers["location"])).text)
        reply = await post(browser, "/sign-in", {**form, "key": KEYS["ann"]})
        assert (reply.status_code, reply.headers["location"]) == (303, "/exchanges/gw-1?x=1")
        cookie = reply.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert KEYS["ann"] not in cookie
        assert (await browser.get("/exchanges/gw-1")).status_code == 200

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize("key", ["", "the-key-of-ann-1235", "sha256:" + "0" * 64], ids=["none", "wrong", "a digest"])
def test_another_key_opens_nothing(tmp_path: Path, key: str) -> None:
    async def work(site: Site) -> None:
        browser = site.client()
        form = fields((await browser.get("/sign-in")).text)
        assert (await post(browser, "/sign-in", {**form, "key": key})).status_code == 403
        assert (await browser.get("/reviews")).status_code == 303
        for path in ("/v1/reviews", "/v1/grounding", "/v1/grounding/metrics", "/v1/reviews/export"):
            reply = await browser.get(path, headers={"authorization": f"Bearer {key}"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_admin_key")

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize(
    "next_", ["//evil.example", "https://evil.example", "/\\evil.example", "/sign-out", "/reviews\r\nx: y"], ids=repr
)
def test_signing_in_leads_to_no_other_site(tmp_path: Path, next_: str) -> None:
    async def work(site: Site) -> None:
        browser = site.client()
        form = fields((await browser.get("/sign-in")).text)
        reply = await post(browser, "/sign-in", {**form, "next": next_, "key": KEYS["ann"]})
        assert reply.headers["location"] == "/reviews"

    visit(tmp_path, work)


def test_a_session_ends_with_its_time_with_its_key_and_with_signing_out(tmp_path: Path) -> None:
    async def short(site: Site) -> None:
        browser = await site.signed_in()
        assert (await browser.get("/reviews")).status_code == 303

    async def work(site: Site) -> None:
        browser = await site.signed_in()
        page = await browser.get("/reviews")
        assert page.status_code == 200
        session = browser.cookies["groundwire_session"]
        stranger = site.client()
        for forged in (session.replace("ann", "ben", 1), session[:-1] + ("0" if session[-1] != "0" else "1"), "ann"):
            reply = await stranger.get("/reviews", headers={"cookie": f"groundwire_session={forged}"})
            assert reply.status_code == 303
        elsewhere = Site(application(site.history), site.history, site.database).client()
        assert (await elsewhere.get("/reviews", headers={"cookie": f"groundwire_session={session}"})).status_code == 303
        assert (await post(browser, "/sign-out", fields(page.text))).status_code == 303
        assert (await browser.get("/reviews")).status_code == 303

    visit(tmp_path, work)
    (tmp_path / "short").mkdir()
    visit(tmp_path / "short", short, session_s=0.001)


def test_a_flagged_answer_is_listed_opened_and_decided_on(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        page = (await browser.get("/reviews")).text
        link = re.search(r'href="(/exchanges/gw-1)#finding-(\d+)"[^>]*>Profit rose to \$900K\.', page)
        assert link, page
        shown = (await browser.get(link[1])).text
        assert QUESTION in shown
        finding = int(link[2])
        decided = {
            **fields(shown),
            "version": "0",
            "decision": "confirmed",
            "note": "It fell.\r\nSee the source.",
            "back": link[1],
        }
        reply = await post(browser, f"/reviews/{finding}", decided)
        assert reply.status_code == 303, reply.text
        assert reply.headers["location"].startswith("/exchanges/gw-1#finding-")
        found = await site.history.reviews.get(finding)
        assert found is not None
        assert found.decided is not None
        assert (found.decided.decision, found.decided.who) == ("confirmed", "ann")
        assert found.decided.note == "It fell.\nSee the source."
        after = (await browser.get(link[1])).text
        assert "Confirmed" in after
        assert "See the source." in after
        assert f"#finding-{finding}" not in (await browser.get("/reviews")).text
        assert f"#finding-{finding}" in (await browser.get("/reviews?state=confirmed")).text

    visit(tmp_path, work, exchange())


def test_claims_are_marked_in_the_answer_and_evidence_in_its_source(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get("/exchanges/gw-1")).text
        links = re.findall(r'<a class="claim (\w+)" href="#([\w-]+)"[^>]*>([^<]*)', page)
        assert [(label, text) for label, _, text in links] == [
            ("supported", "Revenue was $4.2M in 2023."),
            ("contradicted", "Profit rose to $900K."),
            ("unsupported", "Nobody lives on the moon of Titan."),
        ]
        for _, anchor, _ in links:
            assert f'id="{anchor}"' in page
        assert re.search(r'<mark class="evidence" id="evidence-0-34-55"[^>]*>Profit fell to \$700K\.</mark>', page)
        for anchor in re.findall(r'href="#(evidence-[\d-]+)"', page):
            assert f'id="{anchor}"' in page

    visit(tmp_path, work, exchange())


def test_of_two_reviewers_the_second_is_shown_what_the_first_decided(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        ann, ben = await site.signed_in("ann"), await site.signed_in("ben")
        finding = (await site.history.reviews.page(Wanted())).items[0]
        forms = [fields((await browser.get("/exchanges/gw-1")).text) for browser in (ann, ben)]
        path = f"/reviews/{finding.id}"
        first = {**forms[0], "version": "0", "decision": "rejected", "note": "A figure of speech."}
        assert (await post(ann, path, first)).status_code == 303
        reply = await post(
            ben, path, {**forms[1], "version": "0", "decision": "confirmed", "note": "Made up, <b>I</b> say."}
        )
        assert reply.status_code == 409
        assert (await ben.get(path)).headers["location"] == f"/exchanges/gw-1#finding-{finding.id}"
        assert "A figure of speech." in reply.text
        assert "Made up, &lt;b&gt;I&lt;/b&gt; say.</textarea>" in reply.text
        found = await site.history.reviews.get(finding.id)
        assert found is not None
        assert found.decided is not None
        assert (found.decided.who, found.version) == ("ann", 1)
        again = {**forms[1], "version": "1", "decision": "confirmed"}
        assert (await post(ben, path, again)).status_code == 303
        assert "Before:" in (await ben.get("/exchanges/gw-1")).text

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize(
    "change",
    [{"token": ""}, {"token": "0" * 64}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
    ids=["no token", "another token", "another site", "a neighbour"],
)
def test_a_form_that_is_not_ours_changes_nothing(tmp_path: Path, change: dict[str, str]) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        finding = (await site.history.reviews.page(Wanted())).items[0]
        form = fields((await browser.get("/exchanges/gw-1")).text) | {"decision": "confirmed", "version": "0"}
        token = {name: value for name, value in change.items() if name == "token"}
        headers = {name: value for name, value in change.items() if name != "token"}
        reply = await post(browser, f"/reviews/{finding.id}", {**form, **token}, **headers)
        assert reply.status_code == 403
        found = await site.history.reviews.get(finding.id)
        assert found is not None
        assert found.decided is None

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"a=1&b=&a=2", {"a": "2", "b": ""}),
        (b"a=1&a=", {"a": ""}),
        (b"note=x%0D%0Ay+z", {"note": "x\ny z"}),
        (b"a=\xff%FF&%&=&a", {"a": "", "%": "", "": ""}),
        (b"", {}),
        (b"&".join([b"a=1"] * 20), {"a": "1"}),
        (b"&".join([b"a=1"] * 21), {}),
    ],
    ids=["twice", "last empty", "line ends", "malformed", "empty", "20 fields", "21 fields"],
)
def test_a_form_has_the_last_value_of_each_field(body: bytes, expected: dict[str, str]) -> None:
    assert form_fields(body) == expected


def test_the_token_of_one_session_does_not_serve_another(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        ann, ben = await site.signed_in("ann"), await site.signed_in("ben")
        finding = (await site.history.reviews.page(Wanted())).items[0]
        form = fields((await ann.get("/exchanges/gw-1")).text) | {"decision": "confirmed", "version": "0"}
        assert (await post(ben, f"/reviews/{finding.id}", form)).status_code == 403

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrusted_text_is_escaped_on_every_page(tmp_path: Path, attack: str) -> None:
    told = exchange(
        answer=f"{ANSWER} Profit is {attack} and nobody knows why.",
        source=f"Profit fell to $700K. {attack}",
        title=attack,
        question=attack,
        model=attack,
        subject=attack,
    )

    async def work(site: Site) -> None:
        browser = await site.signed_in()
        finding = (await site.history.reviews.page(Wanted())).items[0]
        form = fields((await browser.get("/exchanges/gw-1")).text)
        noted = {**form, "version": "0", "decision": "rejected", "note": attack}
        assert (await post(browser, f"/reviews/{finding.id}", noted)).status_code == 303
        pages = [
            await browser.get("/exchanges/gw-1"),
            await browser.get("/reviews", params={"state": "any"}),
            await browser.get("/reviews", params={"model": attack, "subject": attack, "flag": attack}),
            await browser.get("/reviews", params={"state": attack}),
            await browser.get("/exchanges"),
            await browser.get("/exchanges", params=dict.fromkeys(("q", "model", "subject", "session", "flag"), attack)),
            await browser.get("/exchanges", params={"verdict": attack}),
            await browser.get("/quality", params={"model": attack, "against": attack}),
            await browser.get("/sign-in", params={"next": attack}),
            await post(browser, f"/reviews/{finding.id}", {**noted, "version": "0"}),
        ]
        for page in pages:
            body = page.text
            assert re.findall(r"<script[^>]*>", body) == re.findall(
                r'<script src="/assets/pages\.js\?v=\w+" defer>', body
            )
            assert not re.search(r"<(img|svg)[^>]*\son", body)
            assert not re.search(r"<[a-z][^>]*\son[a-z]+\s*=\s*[\"']?alert", re.sub(r'"[^"]*"', '""', body))
            assert "javascript:" not in "".join(re.findall(r'href="[^"]*"', body))
            assert ">49<" not in body
            policy = page.headers.get("content-security-policy", "")
            assert page.status_code == 303 or ("default-src 'none'" in policy and "unsafe" not in policy)

    visit(tmp_path, work, told)


def test_no_page_needs_what_its_policy_forbids(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        for path in ("/exchanges", "/reviews", "/exchanges/gw-1", "/quality"):
            page = await browser.get(path)
            assert page.status_code == 200
            assert "style=" not in page.text
            assert "<style" not in page.text
            addresses = re.findall(r'(?:src|href|action)="([^"]*)"', page.text)
            assert all(address.startswith(("/", "#")) and not address.startswith("//") for address in addresses)
            for asset in {address for address in addresses if address.startswith("/assets/")}:
                assert (await browser.get(asset)).status_code == 200

    visit(tmp_path, work, exchange())


def test_the_queue_is_walked_page_by_page_and_each_finding_seen_once(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        path, seen = "/reviews?model=m-1", []
        while path:
            page = (await browser.get(path)).text
            seen += re.findall(r"data-open href=\"/exchanges/[\w-]+#finding-(\d+)\"", page)
            assert page.count('<li class="panel answers">') == len(set(re.findall(r'data-open href="([^#]*)', page)))
            older = re.search(r'rel="next" href="(/reviews\?[^"]*)"', page)
            path = older[1].replace("&amp;", "&") if older else ""
        newest = (await site.history.reviews.page(Wanted(), limit=200)).items
        by_answer = sorted(newest, key=lambda each: (-int(each.exchange.removeprefix("gw-")), each.id))
        assert len({each.exchange for each in newest}) > 25
        assert seen == [str(each.id) for each in by_answer]

    visit(tmp_path, work, *(exchange(f"gw-{number}") for number in range(30)))


def test_the_queue_counts_answers_and_findings_and_has_a_card_for_each_answer(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        page = (await browser.get("/reviews")).text
        assert "2 answers wait for review, with 4 findings." in page
        assert page.count('<li class="panel answers">') == 2
        card = page.partition('<li class="panel answers">')[2].partition('<li class="panel answers">')[0]
        assert f'<a href="/exchanges/gw-2">{QUESTION}</a>' in card
        assert re.findall(r'<li class="item" id="finding-(\d+)"', card) == ["3", "4"]
        assert card.count('value="confirmed"') == card.count('value="rejected"') == 2
        decided = {**fields(card), "decision": "rejected"}
        reply = await post(browser, "/reviews/4", decided)
        assert reply.headers["location"] == "/reviews#finding-3"
        page = (await browser.get("/reviews")).text
        assert "2 answers wait for review, with 3 findings." in page
        assert 'id="finding-4"' not in page
        assert (await post(browser, "/reviews/3", decided)).headers["location"] == "/reviews#finding-1"
        page = (await browser.get("/reviews")).text
        assert "1 answer waits for review, with 2 findings." in page

    visit(tmp_path, work, exchange("gw-1"), exchange("gw-2"))


def test_a_card_of_the_queue_shows_some_claims_and_leads_to_the_others(tmp_path: Path) -> None:
    answer = " ".join(f"Nobody lives on moon {number} of Titan." for number in range(20))

    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get("/reviews")).text
        findings = (await site.history.reviews.page(Wanted(), limit=200)).items
        shown = page.count("data-item")
        assert 0 < shown < len(findings)
        assert f'<a href="/exchanges/gw-1">{len(findings) - shown} more on the page of the answer</a>' in page

    visit(tmp_path, work, exchange(answer=answer))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("subject=acme", ["gw-2"]),
        ("model=m-9", ["gw-3"]),
        ("flag=numeric_mismatch", ["gw-1", "gw-2", "gw-3"]),
        ("since=2026-01-02&until=2026-01-02", ["gw-2"]),
        ("until=2026-01-01", ["gw-1"]),
        ("since=2026-01-04", []),
        ("flag=&model=&subject=&since=&until=", ["gw-1", "gw-2", "gw-3"]),
    ],
    ids=str,
)
def test_the_queue_is_filtered(tmp_path: Path, query: str, found: list[str]) -> None:
    noon = 1_767_268_800.0  # 2026-01-01 12:00 UTC
    entries = (
        exchange("gw-1", at=noon),
        exchange("gw-2", at=noon + 86_400, subject="acme"),
        exchange("gw-3", at=noon + 2 * 86_400, model="m-9"),
    )

    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get(f"/reviews?{query}")).text
        assert sorted(set(re.findall(r'data-open href="/exchanges/([\w-]+)#', page))) == found

    visit(tmp_path, work, *entries)


def test_the_pages_show_that_no_content_is_stored(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        assert "its text is not kept" in (await browser.get("/reviews")).text
        page = (await browser.get("/exchanges/gw-1")).text
        assert "The text of the answer is not kept." in page
        assert "Profit" not in page

    visit(tmp_path, work, exchange(), content="hashes")


@pytest.mark.parametrize("content", ["full", "hashes"])
def test_an_earlier_contradicting_answer_is_shown_if_content_is_stored(tmp_path: Path, content: Content) -> None:
    told = exchange()
    earlier = Contradiction(
        0, "c2", "Profit rose <b>.", "Profit fell in Lima.", "gw-0", 0.0, "semantic", "high", "It fell, said the other."
    )
    report = replace(told.report, consistency=Consistency(0.5, (earlier,), 1))
    contradicted = replace(told, report=report, kept=dumps(report.to_dict()))

    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get("/exchanges/gw-1")).text
        assert "Said otherwise before" in page
        assert 'href="/exchanges/gw-0"' in page
        for text in ("Profit rose &lt;b&gt;.", "Profit fell in Lima.", "It fell, said the other."):
            assert (text in page) == (content == "full")

    visit(tmp_path, work, contradicted, content=content)


def test_the_whole_question_and_the_prompt_are_shown(tmp_path: Path) -> None:
    message = "I am in Berlin & new here.\nHow did we do in 2023?"
    prompt = (PromptMessage("system", "Be <b>brief</b>."), PromptMessage("user", message))
    told = replace(
        exchange(question=message), asked="How did we do in 2023?", prompt=prompt, session="s-1", intent="lookup"
    )

    async def work(site: Site) -> None:
        browser = await site.signed_in()
        page = (await browser.get("/exchanges/gw-1")).text
        assert "<h1>How did we do in 2023?</h1>" in page
        assert page.count("I am in Berlin &amp; new here.\nHow did we do in 2023?") == 2
        assert "Be &lt;b&gt;brief&lt;/b&gt;." in page
        assert "session s-1" in page
        assert '<a href="/exchanges/gw-1">How did we do in 2023?</a>' in (await browser.get("/reviews")).text

    visit(tmp_path, work, told)


def test_a_contradicted_earlier_answer_is_shown_with_the_claim(tmp_path: Path) -> None:
    told = exchange()
    earlier = Contradiction(0, "c1", "Revenue.", "Revenue was $9M.", "gw-0", 0.0, "entity", "high", "It said $9M.")
    flags = (*told.report.flags, "inconsistent_with_history")
    report = replace(told.report, consistency=Consistency(0.5, (earlier,), 1), flags=flags)

    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get("/exchanges/gw-1")).text
        card = page[page.index("An earlier answer contradicts it: It said $9M.") :].partition("</article>")[0]
        assert "<p>Revenue was $9M.</p>" in card
        assert 'said in <a href="/exchanges/gw-0">an earlier answer</a>' in card

    visit(tmp_path, work, replace(told, report=report, kept=dumps(report.to_dict())))


def test_unknown_ids_and_invalid_queries_are_errors(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        form = fields((await browser.get("/reviews")).text)
        assert (await browser.get("/exchanges/gw-none")).status_code == 404
        for id_ in ("999", "abc", "9" * 30):
            reply = await post(browser, f"/reviews/{id_}", {**form, "decision": "confirmed", "version": "0"})
            assert reply.status_code == 404
        for query in ("state=odd", "since=tomorrow", "after=-1", "odd=1"):
            assert (await browser.get(f"/reviews?{query}")).status_code == 400

    visit(tmp_path, work)


def test_every_look_is_in_the_audit_log(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        await browser.get("/reviews?subject=acme")
        await browser.get("/exchanges/gw-1")
        await browser.get("/reviews/export?format=csv")
        noted = await site.audited()
        assert [(each["who"], each["action"]) for each in reversed(noted)] == [
            ("ann", "list"),
            ("ann", "read"),
            ("ann", "export"),
        ]
        assert [each["subject"] for each in noted if each["action"] == "read"] == ["acme"]

    visit(tmp_path, work, exchange(subject="acme"))


def test_the_quality_page_shows_trends_models_and_live_precision(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            if finding.label == "contradicted":
                await site.history.reviews.decide(finding.id, 0, "confirmed", "ann")
        page = (await (await site.signed_in()).get("/quality")).text
        assert page.count("<svg") >= 4
        assert "m-1" in page
        assert "m-2" in page
        assert "2 of 2" in page
        assert "<title>" in page.partition('role="img"')[2]

    visit(tmp_path, work, exchange("gw-1"), exchange("gw-2", model="m-2"))


def test_the_quality_page_shows_consistency_risk_and_calibration(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        assert "No claim has been reviewed yet." in (await browser.get("/quality")).text
        findings = [each for each in (await site.history.reviews.page(Wanted())).items if each.score is not None]
        for at, finding in enumerate(findings):
            await site.history.reviews.decide(finding.id, 0, "rejected" if at else "confirmed", "ann")
        page = re.sub(r"\s+", " ", (await browser.get("/quality")).text)
        assert "<dt>Consistency</dt><dd>40 %</dd>" in page
        risk = await site.history.exchanges.get("gw-1")
        assert risk is not None
        assert f"<dt>Risk</dt><dd>{100 * (risk.summary.risk or 0):.0f} %</dd>" in page
        assert "Consistency with earlier answers" in page
        found = [(each.score or 0.0, int(at > 0)) for at, each in enumerate(findings)]
        assert f"<dt>Calibration error</dt><dd>{100 * (Calibration(found).error or 0):.0f} %</dd>" in page
        assert f"{len(found)} reviewed claims; expected calibration error" in page

    told = exchange("gw-1")
    visit(tmp_path, work, replace(told, report=replace(told.report, consistency=Consistency(0.4, (), 2))))


def test_claims_with_offsets_in_utf16_are_marked_at_their_place(tmp_path: Path) -> None:
    told = exchange(answer="🎉 Yes. Profit rose to $900K.")
    units = Utf16(told.choices, (), told.report.sources)
    wide = replace(told, kept=dumps(told.report.to_dict(units)))

    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get("/exchanges/gw-1")).text
        assert '<a class="claim contradicted"' in page
        assert re.search(r'data-claim="0-c\d+"[^>]*>Profit rose to \$900K\.<', page)

    visit(tmp_path, work, wide)


NOON = 1_767_268_800.0  # 2026-01-01 12:00 UTC
STORED = (
    exchange("gw-1", at=NOON),
    exchange("gw-2", at=NOON + 86_400, subject="acme", question="Where did the board meet?"),
    exchange("gw-3", at=NOON + 2 * 86_400, model="m-9", answer="Revenue was $4.2M in 2023."),
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["gw-3", "gw-2", "gw-1"]),
        ("q=board", ["gw-2"]),
        ("q=titan&model=m-1", ["gw-2", "gw-1"]),
        ("subject=acme", ["gw-2"]),
        ("tenant=other", []),
        ("verdict=grounded", ["gw-3"]),
        ("verdict=partially_grounded&flag=numeric_mismatch", ["gw-2", "gw-1"]),
        ("verifier=statement", ["gw-2", "gw-1"]),
        ("verifier=consistency", []),
        ("state=open", ["gw-2", "gw-1"]),
        ("state=decided", []),
        ("since=2026-01-02&until=2026-01-02", ["gw-2"]),
        ("sort=risk&subject=acme", ["gw-2"]),
        ("q=&verdict=&flag=&model=&since=&until=&state=any&sort=newest", ["gw-3", "gw-2", "gw-1"]),
    ],
    ids=str,
)
def test_exchanges_are_listed_searched_and_filtered(tmp_path: Path, query: str, found: list[str]) -> None:
    async def work(site: Site) -> None:
        page = (await (await site.signed_in()).get(f"/exchanges?{query}")).text
        assert re.findall(r'data-open href="/exchanges/([\w-]+)"', page) == found
        assert "2 answers wait for review, with 4 findings." in page
        (noted, *_) = await site.audited()
        assert noted["action"] == ("search" if "q=b" in query or "q=t" in query else "list")

    visit(tmp_path, work, *STORED)


def test_exchanges_are_walked_page_by_page_in_either_order(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        for order in ("newest", "risk"):
            path, seen = f"/exchanges?model=m-1&sort={order}", []
            while path:
                page = (await browser.get(path)).text
                seen += re.findall(r'data-open href="/exchanges/([\w-]+)"', page)
                following = re.search(r'rel="next" href="(/exchanges\?[^"]*)"', page)
                path = following[1].replace("&amp;", "&") if following else ""
            assert seen == [f"gw-{number}" for number in reversed(range(30))]

    visit(tmp_path, work, *(exchange(f"gw-{number}") for number in range(30)))


def form_of(page: str, claim: str) -> dict[str, str]:
    """The hidden fields of the form on the card of a claim."""
    return fields(page[page.index(f'<p class="said">{claim}') :])


def test_a_claim_without_a_flag_is_decided_on_and_found_wrong(tmp_path: Path) -> None:
    claim = "Revenue was $4.2M in 2023."

    async def work(site: Site) -> None:
        ann, ben = await site.signed_in("ann"), await site.signed_in("ben")
        forms = [form_of((await browser.get("/exchanges/gw-1")).text, claim) for browser in (ann, ben)]
        wrong = {**forms[0], "decision": "rejected", "note": "Of another <b>company</b>."}
        reply = await post(ann, "/reviews", wrong)
        assert reply.status_code == 303, reply.text
        assert re.fullmatch(r"/exchanges/gw-1#finding-\d+", reply.headers["location"])
        page = (await ben.get("/exchanges/gw-1")).text
        assert "Found wrong: a missed error" in page
        assert "Of another &lt;b&gt;company&lt;/b&gt;." in page
        late = await post(ben, "/reviews", {**forms[1], "decision": "confirmed", "note": "It is right."})
        assert late.status_code == 409
        assert "It is right.</textarea>" in late.text
        assert (await ben.get("/reviews?state=open")).text.count(claim) == 0
        assert "a missed error" in (await ben.get("/reviews?state=decided")).text
        for change in ({"claim": "c99"}, {"exchange": "gw-none"}, {"choice": "7"}):
            assert (await post(ann, "/reviews", {**wrong, **change})).status_code == 404
        assert (await post(ann, "/reviews", {**wrong, "token": ""})).status_code == 403
        quality = re.sub(r"\s+", " ", (await ann.get("/quality")).text)
        assert "0 of 1; between" in quality  # recall: the one claim found wrong was not flagged

    visit(tmp_path, work, exchange())


def test_a_rejected_flag_is_a_false_alarm_and_shown_as_one(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted())).items:
            await site.history.reviews.decide(finding.id, 0, "rejected", "ann")
        page = (await (await site.signed_in()).get("/exchanges/gw-1")).text
        assert page.count('<span class="decided alarm">Rejected: a false alarm</span>') == 2
        assert 'class="decided right"' not in page

    visit(tmp_path, work, exchange())


def test_the_headline_counts_claims_and_sources_have_their_names(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        page = re.sub(r"\s+", " ", (await (await site.signed_in()).get("/exchanges/gw-1")).text)
        assert "<strong>33 %</strong> <span>1 of the 3 checked claims is supported by the sources." in page
        assert "2 findings wait for review." in page
        assert re.search(r'match in <a href="#evidence-0-[\d-]+">Annual report</a>', page)
        assert '<span class="name">Annual report</span>' in page

    visit(tmp_path, work, exchange(title="Annual report"))


def test_quality_shows_hours_at_first_and_compares_models_and_periods(tmp_path: Path) -> None:
    now = time.time()
    usage = {"input_tokens": 1200, "output_tokens": 80, "upstream_ms": 450.0}
    answers = [replace(exchange(f"gw-{at}", at=now - 60 * at), **usage) for at in range(3)]
    other = exchange("gw-9", model="m-2", at=now, answer="Revenue was $4.2M in 2023.")

    async def work(site: Site) -> None:
        browser = await site.signed_in()
        page = re.sub(r"\s+", " ", (await browser.get("/quality")).text)
        assert '<option value="1" selected>last 24 hours</option>' in page
        assert f"{datetime.fromtimestamp(now, UTC):%H}:00: Answers" in page
        assert "<dt>Answers</dt><dd>4</dd>" in page
        assert "<dt>Model server, median</dt><dd>450 ms</dd>" in page
        assert "<dt>Input tokens</dt><dd>3,600</dd>" in page
        assert "<dt>Output tokens</dt><dd>240</dd>" in page
        compared = (await browser.get("/quality?days=7&model=m-1&against=m-2")).text
        rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th><td class="number">(.*?)</td></tr>', compared))
        cells = {name: re.split(r'</td><td class="number">', row) for name, row in rows.items()}
        assert cells["Answers"] == ["3", "1", "+2"]
        assert cells["Grounding score"] == ["33 %", "100 %", "−67 points"]
        assert cells["Input tokens"] == ["1,200", "–", "–"]
        before = (await browser.get("/quality?days=7&against=before")).text
        assert re.search(r'Answers</th><td class="number">4</td><td class="number">0</td>', before)

    visit(tmp_path, work, *answers, other)
