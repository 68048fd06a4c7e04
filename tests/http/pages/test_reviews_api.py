"""The HTTP API of the stored exchanges: queue, decisions, exports, trends, search, deletion."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from groundwire.http.reviews import parameters
from groundwire.storage.history.reviews import Wanted
from groundwire.wire import Call
from tests.servers.review_site import KEYS, Site, exchange, visit


def test_the_queue_is_read_and_decided_on(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            listed = (await api.get("/v1/reviews", params={"flag": "contradicted_claims"})).json()
            (review,) = listed["reviews"]
            assert (review["text"], review["label"], review["exchange"]) == (
                "Profit rose to $900K.",
                "contradicted",
                "gw-1",
            )
            assert review["citations"][0]["text"] == "Profit fell to $700K."
            assert review["decision"] is None
            path = f"/v1/reviews/{review['id']}"
            decided = await api.post(path, json={"decision": "confirmed", "note": "It fell.", "version": 0})
            assert decided.status_code == 200
            found = (await api.get(path)).json()
            assert found["decision"]["who"] == "ann"
            assert [each["note"] for each in found["decisions"]] == ["It fell."]
            assert (await api.get("/v1/reviews", params={"flag": "contradicted_claims"})).json()["reviews"] == []

    visit(tmp_path, work, exchange())


def test_pages_of_the_queue_follow_each_other(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            seen, after = [], ""
            while after is not None:
                page = (await api.get("/v1/reviews", params={"limit": 2, "after": after})).json()
                seen += [each["id"] for each in page["reviews"]]
                after = page["after"]
            wanted = (await site.history.reviews.page(Wanted(), limit=200)).items
            assert seen == [each.id for each in wanted]

    visit(tmp_path, work, exchange("gw-1"), exchange("gw-2"), exchange("gw-3"))


def test_of_reviewers_at_the_same_time_one_decides_and_the_others_learn_what(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        finding = (await site.history.reviews.page(Wanted())).items[0]
        async with site.api("ann") as ann, site.api("ben") as ben:
            replies = await asyncio.gather(
                *(
                    each.post(f"/v1/reviews/{finding.id}", json={"decision": decision, "version": 0, "note": decision})
                    for each, decision in ((ann, "confirmed"), (ben, "rejected"), (ann, "rejected"))
                )
            )
        assert sorted(reply.status_code for reply in replies) == [200, 409, 409]
        kept = next(reply.json()["decision"] for reply in replies if reply.status_code == 200)
        for reply in replies:
            if reply.status_code == 409:
                told = reply.json()
                assert told["error"]["code"] == "review_conflict"
                assert (told["decision"], told["version"]) == (kept, 1)

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"version": 0}, "decision"),
        ({"decision": "confirmed"}, "version"),
        ({"decision": "maybe", "version": 0}, "decision"),
        ({"decision": "confirmed", "version": -1}, "version"),
        ({"decision": "confirmed", "version": 0, "note": "x" * 4001}, "note"),
        ({"decision": "confirmed", "version": 0, "who": "somebody"}, "who"),
    ],
    ids=["no decision", "no version", "another decision", "negative version", "long note", "another's name"],
)
def test_a_decision_of_another_shape_is_refused_by_name(tmp_path: Path, body: dict[str, object], param: str) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            reply = await api.post("/v1/reviews/1", json=body)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
            assert (await api.get("/v1/reviews/1")).json()["decision"] is None

    visit(tmp_path, work, exchange())


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/reviews?a=1&b=&a=2", {"a": "2", "b": ""}),
        ("/reviews?a=1&a=", {"a": ""}),
        ("/reviews?q=a?b+c%26%C3%BC", {"q": "a?b c&ü"}),
        ("/reviews?%FF=%&=&a", {"\ufffd": "%", "": "", "a": ""}),
        ("/reviews?", {}),
        ("/reviews", {}),
    ],
    ids=["twice", "last empty", "encoded", "malformed", "empty", "none"],
)
def test_a_query_has_the_last_value_of_each_parameter(target: str, expected: dict[str, str]) -> None:
    assert parameters(Call("GET", target, (), b"")) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/v1/reviews?state=odd",
        "/v1/reviews?limit=0",
        "/v1/reviews?odd=1",
        "/v1/grounding/metrics?from=2026-02-02&to=2026-02-01",
        "/v1/grounding/metrics?by=moon",
        "/v1/reviews/export?format=xlsx",
        "/v1/grounding?after=x",
        "/v1/grounding?verdict=odd",
        "/v1/grounding?sort=odd",
    ],
)
def test_a_query_with_invalid_parameters_is_refused(tmp_path: Path, path: str) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            assert (await api.get(path)).status_code == 400

    visit(tmp_path, work)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/reviews"),
        ("GET", "/v1/reviews/1"),
        ("POST", "/v1/reviews/1"),
        ("POST", "/v1/reviews"),
        ("GET", "/v1/reviews/export"),
        ("GET", "/v1/grounding"),
        ("GET", "/v1/grounding/metrics"),
        ("DELETE", "/v1/subjects/acme"),
    ],
)
def test_every_route_requires_an_admin_key_and_accepts_no_cookie(tmp_path: Path, method: str, path: str) -> None:
    async def work(site: Site) -> None:
        browser = await site.signed_in()
        for headers in ({}, {"authorization": "Bearer nonsense"}, {"authorization": KEYS["ann"]}):
            reply = await browser.request(method, path, headers=headers)
            assert reply.status_code == 401
            assert KEYS["ann"] not in reply.text

    visit(tmp_path, work, exchange(subject="acme"))


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"]


def test_decisions_go_into_files_that_compute_nothing(tmp_path: Path) -> None:
    entries = [exchange(f"gw-{at}", question=formula, model=formula) for at, formula in enumerate(FORMULAS)]

    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            await site.history.reviews.decide(finding.id, 0, "rejected", "ann", FORMULAS[finding.id % len(FORMULAS)])
        async with site.api() as api:
            reply = await api.get("/v1/reviews/export", params={"format": "csv"})
            assert reply.headers["content-type"] == "text/csv; charset=utf-8"
            rows = list(csv.DictReader(io.StringIO(reply.text, newline="")))
            lines = (await api.get("/v1/reviews/export", params={"format": "jsonl"})).text.splitlines()
        wanted = (await site.history.reviews.page(Wanted("any"), limit=200)).items
        assert len(rows) == len(lines) == len(wanted) > len(FORMULAS)
        for row in rows:
            for name in ("question", "model", "note"):
                assert row[name].startswith("'")
                assert row[name][1:] in FORMULAS
        assert {json.loads(line)["question"] for line in lines} == set(FORMULAS)

    visit(tmp_path, work, *entries)


@pytest.mark.parametrize("subject", ["a/b ü", "a\nb", "a\n", "\n", "a/entities\n", "\r\n\u2028"])
def test_exchanges_are_searched_and_a_subject_forgotten(tmp_path: Path, subject: str) -> None:

    async def work(site: Site) -> None:
        async with site.api() as api:
            found = (await api.get("/v1/grounding", params={"q": "titan", "subject": subject})).json()
            assert [each["id"] for each in found["exchanges"]] == ["gw-1"]
            site.reports.put("gw-1", b"{}")
            gone = await api.delete(f"/v1/subjects/{quote(subject, safe='')}")
            assert gone.json() == {"subject": subject, "deleted": 1}
            assert site.reports.get("gw-1") is None
            left = (await api.get("/v1/grounding")).json()
            assert [each["id"] for each in left["exchanges"]] == ["gw-2"]
        noted = await site.audited()
        assert {each["action"] for each in noted} == {"search", "forget", "list"}
        assert all("titan" not in each["what"] for each in noted)

    visit(tmp_path, work, exchange("gw-1", subject=subject), exchange("gw-2"))


def test_similar_questions_are_found_the_most_similar_first(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            found = (await api.get("/v1/grounding/similar", params={"q": "How did we do in 2024?"})).json()["exchanges"]
            assert [each["id"] for each in found] == ["gw-1", "gw-2"]
            assert 1.0 > found[0]["similarity"] > found[1]["similarity"]
            narrowed = (
                await api.get("/v1/grounding/similar", params={"q": "How did we do?", "subject": "acme"})
            ).json()
            assert [each["id"] for each in narrowed["exchanges"]] == ["gw-2"]
            assert (await api.get("/v1/grounding/similar")).status_code == 400
        first = (await site.audited())[-1]
        assert (first["action"], first["what"]) == ("search", "similar questions")

    visit(
        tmp_path,
        work,
        exchange("gw-1", question="How did we do in 2023?"),
        exchange("gw-2", question="How did the new office do in the end?", subject="acme"),
        exchange("gw-3", question="Where is the key?"),
    )


def test_the_statements_about_each_name_are_listed_over_time(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with site.api() as api:
            told = (await api.get("/v1/subjects/acme%2Feu/entities")).json()
        assert told["subject"] == "acme/eu"
        assert [each["name"] for each in told["entities"]] == ["Maria Lopez", "Oslo"]
        assert [(each["exchange"], each["statement"]) for each in told["entities"][0]["mentions"]] == [
            ("gw-1", "Maria Lopez leads the office in Oslo."),
            ("gw-2", "Since May Maria Lopez leads the board."),
        ]

    visit(
        tmp_path,
        work,
        exchange("gw-1", answer="Maria Lopez leads the office in Oslo.", subject="acme/eu", at=1_700_000_000.0),
        exchange("gw-2", answer="Since May Maria Lopez leads the board.", subject="acme/eu", at=1_700_000_100.0),
        exchange("gw-3", answer="John Smith leads the office.", subject="other"),
    )


def test_metrics_report_trends_and_live_precision(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            if "contradicted_claims" in finding.flags:
                await site.history.reviews.decide(finding.id, 0, "confirmed", "ann")
        async with site.api() as api:
            told = (await api.get("/v1/grounding/metrics", params={"by": "model"})).json()
        assert {each["key"]: each["exchanges"] for each in told["totals"]} == {"m-1": 2, "m-2": 1}
        assert sum(each["exchanges"] for each in told["days"]) == 3
        (of,) = [each for each in told["precision"] if each["flag"] == "contradicted_claims"]
        assert (of["confirmed"], of["rejected"], of["precision"]) == (3, 0, 1.0)
        assert of["interval"][0] < 1.0

    visit(tmp_path, work, exchange("gw-1"), exchange("gw-2"), exchange("gw-3", model="m-2"))


def test_any_claim_is_decided_on_and_counts_in_the_metrics(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with site.api("ann") as ann, site.api("ben") as ben:
            given = {"exchange": "gw-1", "claim": "c1", "decision": "rejected", "note": "Of another company."}
            reply = await ann.post("/v1/reviews", json=given)
            assert reply.status_code == 200, reply.text
            found = reply.json()
            assert (found["text"], found["flags"], found["is_wrong"]) == ("Revenue was $4.2M in 2023.", [], True)
            assert found["citations"][0]["text"] == "In 2023 revenue was $4.2 million."
            again = await ben.post("/v1/reviews", json=given)
            assert (again.status_code, again.json()["version"]) == (409, 1)
            agreed = await ben.post("/v1/reviews", json=given | {"version": 1})
            assert agreed.json()["id"] == found["id"]
            for wrong in ({"claim": "c99"}, {"exchange": "gw-2"}, {"choice": 1}):
                assert (await ann.post("/v1/reviews", json=given | wrong)).status_code == 404
            assert (await ann.post("/v1/reviews", json={"claim": "c1", "decision": "confirmed"})).json()["error"][
                "param"
            ] == "exchange"
            told = (await ann.get("/v1/grounding/metrics")).json()
            (verifier,) = told["verifiers"]
            assert (verifier["passed_wrong"], verifier["precision"], verifier["recall"]["value"]) == (1, None, 0.0)
            assert (told["agreement"]["count"], told["agreement"]["of"]) == (1, 1)
            assert told["precision"] == []
            decided = (await ann.get("/v1/grounding", params={"state": "decided", "verdict": ""})).json()
            assert [each["id"] for each in decided["exchanges"]] == ["gw-1"]
            by_risk = (await ann.get("/v1/grounding", params={"sort": "risk", "verifier": "statement"})).json()
            assert [each["supported"] for each in by_risk["exchanges"]] == [1]
        noted = await site.audited()
        assert [each["action"] for each in noted if each["who"] == "ben"] == ["decide"]

    visit(tmp_path, work, exchange("gw-1"))
