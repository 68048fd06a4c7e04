"""The endpoints that check claims, answers, facts and traces, over real sockets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.edge.clients import sdk
from tests.edge.proxies import Proxy
from tests.edge.upstream import Received, Reply, Upstream, body_reply, chat_body, error_reply
from tests.servers.believer import Believer, Manner
from tests.waiting import found_within

EVIDENCE = ["Revenue came to $5 million in 2023. Lee leads the team in Oslo.", "Costs were $3 million in 2023."]
ADMIN = "an-admin-key-that-is-long"
PATIENCE_S = 60.0
SOURCES = [{"id": "a", "text": EVIDENCE[0]}, {"id": "b", "text": EVIDENCE[1]}]
MANY_QUOTES = {"q": [f"quotation {number}" for number in range(21_000)]}

Start = Callable[..., Proxy]


def on(*operations: str, backend: str = "local", **more: Any) -> dict[str, Any]:
    """Return the section that enables these operations."""
    return {
        "enabled": True,
        "backend": {"type": "configurable", "default": backend},
        **{name: {"enabled": True} for name in operations},
        **more,
    }


def post(proxy: Proxy, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    response = httpx.post(f"{proxy.base_url}/grounding/{path}", json=body, timeout=60)
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def admin_get(proxy: Proxy, path: str, **params: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {ADMIN}"}
    found: dict[str, Any] = httpx.get(f"{proxy.base_url}/{path}", params=params, headers=headers, timeout=60).json()
    return found


def exchanges(proxy: Proxy, count: int) -> list[dict[str, Any]]:
    """Return the stored exchanges, once there are `count`."""

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = admin_get(proxy, "grounding").get("exchanges", [])
        return found if len(found) >= count else None

    return found_within(PATIENCE_S, look)


@pytest.fixture
def believing(start_proxy: Start, believer: Believer) -> Callable[..., Proxy]:
    """Start a proxy whose operations use the model named in the body, served by the believer."""

    def start(*operations: str, **more: Any) -> Proxy:
        upstreams = {"up": {"base_url": believer.base_url}}
        return start_proxy(upstreams=upstreams, information_budget=on(*operations, backend="self", **more))

    return start


# --- claims and answers, without any model ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "label", "status"),
    [
        ("Revenue was $5M in 2023.", "supported", "supported"),
        ("Revenue was $6M in 2023.", "contradicted", "contradicted"),
        ("The moon is made of cheese.", "unsupported", "not_entailed"),
    ],
)
def test_one_claim_comes_back_as_a_report_has_it(proxy: Proxy, claim: str, label: str, status: str) -> None:
    found = post(proxy, "claim", claim=claim, sources=SOURCES)
    assert found == post(proxy, "claim", claim=claim, evidence=SOURCES)  # the older name
    assert (found["label"], found["budget"]["status"], found["text"]) == (label, status, claim)
    assert {"p0", "p1", "required_bits", "observed_bits", "budget_gap"} <= found["budget"].keys()
    if label != "unsupported":
        assert found["citations"][0]["source"] == "a"


def test_an_answer_is_verified_and_its_report_stored(proxy: Proxy) -> None:
    answer = "Revenue was $5M in 2023 [a]. Costs were $4M."
    report = post(proxy, "verify", answer=answer, sources=SOURCES, verifiers=["numeric", "statement"])
    claims = report["choices"][0]["claims"]
    assert [claim["label"] for claim in claims] == ["supported", "contradicted"]
    assert proxy.report(report["id"])["verdict"] == "partially_grounded"


def test_an_answer_is_verified_against_messages_and_read_with_its_question(proxy: Proxy) -> None:
    messages = [{"role": "system", "content": " ".join(EVIDENCE)}]
    report = post(proxy, "verify", answer="$3M", messages=messages, question="What were the costs in 2023?")
    assert report["verdict"] == "grounded"
    wrong = post(proxy, "verify", answer="$5M", messages=messages, question="What were the costs in 2023?")
    assert wrong["verdict"] == "ungrounded"


def test_sources_are_plain_texts_or_objects(proxy: Proxy) -> None:
    report = post(proxy, "verify", answer="Revenue was $5M in 2023. Costs were $4M.", sources=[EVIDENCE[0], SOURCES[1]])
    assert [claim["label"] for claim in report["choices"][0]["claims"]] == ["supported", "contradicted"]
    assert [source["id"] for source in report["sources"]] == ["source-1", "b"]
    message = post(proxy, "verify", 400, answer="x", sources=[7])["error"]["message"]
    assert message.startswith("'sources.0': ")
    assert "SourceIn" not in message


def test_the_sources_of_every_check_may_be_one_plain_text(start_proxy: Start) -> None:
    proxy = start_proxy(information_budget=on("memory_gate", "trace_auditing"))
    text, claim = EVIDENCE[1], "Costs were $3M in 2023."
    facts = [{"text": claim}, {"text": claim, "sources": "The moon is full."}]
    assert post(proxy, "claim", claim=claim, sources=text)["label"] == "supported"
    report = post(proxy, "verify", answer=claim, sources=text)
    assert (report["verdict"], [each["id"] for each in report["sources"]]) == ("grounded", ["source-1"])
    assert post(proxy, "trace", steps=[claim], sources=text)["sound"] is True
    admitted = post(proxy, "memory", facts=facts, sources=text)["facts"]
    assert [each["status"] for each in admitted] == ["accepted", "rejected"]
    quoted = post(proxy, "evidence", answer={"q": [text]}, evidence_fields=["q"], sources=text)
    assert quoted["accepted"] == {"q": [text]}


def test_the_sources_of_a_request_may_be_one_plain_text(proxy: Proxy, upstream: Upstream) -> None:
    upstream.reply = body_reply(chat_body("Costs were $3M in 2023."))
    body = {"model": "m", "messages": [{"role": "user", "content": "What were the costs?"}]}
    body["grounding"] = {"sources": EVIDENCE[1]}
    reply = httpx.post(f"{proxy.base_url}/chat/completions", json=body, timeout=60)
    assert reply.json()["grounding"]["verdict"] == "grounded"


def test_an_answer_is_validated_against_its_json_schema(proxy: Proxy, upstream: Upstream) -> None:
    schema = {"type": "object", "properties": {"costs": {"type": "integer"}}, "required": ["year"]}
    report = post(proxy, "verify", answer='{"costs": "3"}', sources=EVIDENCE, json_schema=schema)
    assert "evidence_schema_violation" in report["flags"]
    assert sorted(each["expected"] for each in report["schema"]["violations"]) == ["required year", "type integer"]
    right = post(proxy, "verify", answer='{"costs": 3, "year": 2023}', sources=EVIDENCE, json_schema=schema)
    assert right["schema"]["violations"] == []
    upstream.reply = body_reply(chat_body('{"costs": 3, "year": 2023}'))
    messages = [{"role": "user", "content": "What were the costs?"}]
    wanted = {"model": "m", "messages": messages, "corrective_retry": True}
    post(proxy, "verify", answer='{"costs": "3"}', sources=EVIDENCE, json_schema=schema, **wanted)
    (sent,) = found_within(PATIENCE_S, lambda: [received.json() for received in upstream.requests] or None)
    assert sent["response_format"]["json_schema"]["schema"] == schema


@pytest.fixture
def stored(start_proxy: Start, tmp_path: Path) -> Callable[..., Proxy]:
    """Start a proxy with a store and an admin."""

    def start(**sections: Any) -> Proxy:
        admin = {"keys": {"ann": f"sha256:{sha256(ADMIN.encode()).hexdigest()}"}}
        store = {"url": f"sqlite:///{tmp_path}/store.db", "interval": "10ms"}
        return start_proxy(store=store, admin=admin, **sections)

    return start


@pytest.fixture
def stocked(stored: Callable[..., Proxy], tmp_path: Path) -> Proxy:
    """A proxy with a store, a database of facts and a memory gate."""
    with sqlite3.connect(tmp_path / "facts.db") as database:
        database.execute("CREATE TABLE figures (label TEXT, value REAL)")
        database.execute("INSERT INTO figures VALUES ('rent', 500)")
    facts = {"url": f"sqlite:///{tmp_path}/facts.db", "templates": {"figures": "SELECT label, value FROM figures"}}
    return stored(information_budget=on("memory_gate"), facts=facts)


def test_an_answer_is_verified_with_all_that_a_request_may_ask_for(stocked: Proxy) -> None:
    post(stocked, "memory", subject="acme", facts=[{"text": "Costs were $3M in 2023.", "evidence": EVIDENCE}])
    by_facts = post(stocked, "verify", answer="The rent is 500.", facts={})
    assert (by_facts["verdict"], by_facts["sources"][0]["id"]) == ("grounded", "facts.figures")
    remembered = post(stocked, "verify", answer="Costs were $3M in 2023.", subject="acme", memory=True)
    assert remembered["verdict"] == "grounded"
    assert "memory: no subject is named" in post(stocked, "verify", answer="x", memory=True)["warnings"]


def test_a_verified_answer_is_stored_reviewed_and_compared(stocked: Proxy) -> None:
    answer, question = "Acme was founded in 1987. Nobody lives on Titan.", "When was Acme founded?"
    known = post(stocked, "verify", answer=answer, sources=EVIDENCE, question=question, subject="acme", session="s-1")

    (found,) = exchanges(stocked, 1)
    assert (found["id"], found["question"], found["session"]) == (known["id"], question, "s-1")
    reviews = admin_get(stocked, "reviews")["reviews"]
    assert {each["exchange"] for each in reviews} == {known["id"]}
    other = post(stocked, "verify", answer="Acme was founded in 1993.", sources=EVIDENCE, subject="acme")
    assert "inconsistent_with_history" in other["flags"]
    assert other["consistency"]["contradictions"][0]["exchange"] == known["id"]


def test_confidence_and_consistency_can_be_switched_off(stored: Callable[..., Proxy]) -> None:
    proxy = stored(confidence={"enabled": False}, consistency={"enabled": False})
    post(proxy, "verify", answer="Acme was founded in 1987.", sources=EVIDENCE, subject="acme")
    exchanges(proxy, 1)
    report = post(proxy, "verify", answer="Acme was founded in 1993.", sources=EVIDENCE, subject="acme")
    assert report["verdict"] == "ungrounded"
    assert report.keys().isdisjoint({"confidence", "consistency"})
    assert {"low_confidence", "inconsistent_with_history"}.isdisjoint(report["flags"])
    claim = report["choices"][0]["claims"][0]
    assert (claim["confidence"], "confidence_parts" in claim) == (None, False)
    exchanges(proxy, 2)
    assert {review["confidence"] for review in admin_get(proxy, "reviews")["reviews"]} == {None}
    assert httpx.get(f"{proxy.url}/metrics").text.count('grounding_score_kind="confidence"') == 0
    assert "totals" in admin_get(proxy, "grounding/metrics")


def test_a_verified_answer_is_sampled_where_its_request_is_known(proxy: Proxy, upstream: Upstream) -> None:
    upstream.reply = body_reply(chat_body("Revenue was $5M in 2023."))
    messages = [{"role": "system", "content": EVIDENCE[0]}, {"role": "user", "content": "What was the revenue?"}]
    report = post(proxy, "verify", answer="Revenue was $5M in 2023.", messages=messages, model="m", samples=3)
    found = proxy.self_consistency(report["id"])
    assert (found["status"], found["answered"], found["claims"][0]["votes"]) == ("complete", 3, [1.0, 1.0, 1.0])
    assert [received.json()["messages"] for received in upstream.requests] == [messages] * 3
    for missing in ({"messages": messages}, {"model": "m"}):
        assert post(proxy, "verify", 400, answer="x", samples=3, **missing)["error"]["param"] == "samples"


def test_a_verified_answer_need_not_be_waited_for(proxy: Proxy) -> None:
    waiting = post(proxy, "verify", answer="Revenue was $5M in 2023.", sources=EVIDENCE, mode="async")
    assert waiting["status"] == "pending"
    assert proxy.report(waiting["id"])["verdict"] == "grounded"


@pytest.mark.parametrize(
    ("marks", "status"), [("", "supported"), (" [1]", "supported"), (" [9]", "unknown_citation"), (" [1][9]", None)]
)
def test_a_claim_that_cites_nothing_there_is_has_no_bits(proxy: Proxy, marks: str, status: str | None) -> None:
    found = post(proxy, "claim", claim=f"Revenue was $5M in 2023{marks}.", evidence=EVIDENCE)
    assert found["budget"]["status"] == (status or "unknown_citation")
    is_unknown = "9" in marks
    assert (found["budget"]["observed_bits"] is None) is is_unknown
    assert ("unknown_citation" in found.get("flags", [])) is is_unknown


@pytest.mark.parametrize(
    ("claim", "confidence", "target", "is_short"),
    [
        ("Revenue came to $5 million in 2023.", 0.9, 0.9, False),  # the exact words
        ("Revenue came to $5 million in 2023.", 1.0, 0.95, False),
        ("The team in Oslo is led by Lee.", 0.6, 0.6, False),
        ("The team in Oslo is led by Lee.", 0.95, 0.95, True),
        ("The team in Oslo is led by Lee.", 0.1, 0.55, False),
        ("The team in Oslo is led by Lee.", None, 0.55, False),
    ],
)
def test_evidence_has_to_carry_a_claim_to_its_stated_confidence(
    proxy: Proxy, claim: str, confidence: float | None, target: float, is_short: bool
) -> None:
    found = post(proxy, "claim", claim=claim, evidence=EVIDENCE, confidence=confidence)
    assert (found["label"], found["budget"]["target"]) == ("supported", target)
    assert (found["budget"]["budget_gap"] > 0) is is_short


@pytest.mark.parametrize(
    ("claim", "label"), [("Revenue was $5M in 2023.", "supported"), ("Revenue was $6M in 2023.", "contradicted")]
)
def test_a_model_that_hangs_leaves_the_verdict_by_words(
    believing: Callable[..., Proxy], believer: Believer, claim: str, label: str
) -> None:
    believer.manner = Manner(hangs=True)
    proxy = believing("output_verification", timeout="300ms")
    found = post(proxy, "claim", claim=claim, evidence=EVIDENCE, model="believer")
    assert (found["label"], found["budget"]["missing"]) == (label, "timeout")
    assert found["citations"]


def test_claims_are_found_without_verdicts(proxy: Proxy) -> None:
    found = post(proxy, "claims", text="Revenue was $5M. Is that much?")
    assert [(claim["text"], claim.get("skip_reason")) for claim in found["claims"]] == [
        ("Revenue was $5M.", None),
        ("Is that much?", "question"),
    ]
    assert "label" not in found["claims"][0]


def test_quotations_of_a_json_answer_are_looked_for(proxy: Proxy) -> None:
    answer = {"quotes": ["Costs were $3 million in 2023.", "Costs were $9 million."]}
    found = post(proxy, "evidence", answer=answer, evidence_fields=["quotes"], sources=EVIDENCE)
    assert found == post(proxy, "evidence", answer=answer, fields=["quotes"], sources=EVIDENCE)  # the older name
    assert found["quotes"] == {"extracted": 2, "validated": 1, "rejected": 1, "rejected_by_field": {"quotes": 1}}
    broken = post(proxy, "evidence", answer='{"quotes": "x"}', evidence_fields=["quotes"], sources=EVIDENCE)
    assert broken["schema"]["violations"][0]["found"] == "string"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("claim", {"claim": "x"}, "sources"),
        ("claim", {"claim": "x", "evidence": [7]}, "evidence.0"),
        ("claim", {"claim": "x", "sources": [], "evidence": []}, "evidence"),
        ("claim", {"claim": "", "evidence": []}, "claim"),
        ("claim", {"claim": "x", "evidence": [], "confidence": 2}, "confidence"),
        ("claim", {"claim": "x", "evidence": [], "confidenc": 1}, "confidenc"),
        ("verify", {"answer": "x", "mood": "good"}, "mood"),
        ("verify", {"answer": "x", "sources": [7]}, "sources.0"),
        ("verify", {"answer": "x", "sources": [{"text": "a"}, {"text": "b", "mood": 1}]}, "sources.1.mood"),
        ("verify", {"answer": "x", "detail": "some"}, "detail"),
        ("verify", {"sources": []}, "answer"),
        ("verify", {"answer": "x", "sources": 7}, "sources"),
        ("verify", {"answer": "x", "json_schema": "object"}, "json_schema"),
        ("evidence", {"answer": "{}", "sources": []}, "evidence_fields"),
        ("evidence", {"answer": "{}", "evidence_fields": ["q"], "fields": ["q"], "sources": []}, "fields"),
        ("evidence", {"answer": "no json", "fields": ["q"], "sources": []}, "answer"),
        ("evidence", {"answer": json.dumps(MANY_QUOTES), "fields": ["q"], "sources": ["x" * 10_000]}, "answer"),
        ("trace", {"steps": []}, "steps"),
        ("memory", {"facts": [{"text": 7}]}, "facts.0.text"),
    ],
)
def test_the_error_of_a_check_names_the_wrong_field(proxy: Proxy, path: str, body: dict[str, Any], param: str) -> None:
    assert post(proxy, path, 400, **body)["error"]["param"] == param


def test_the_error_of_a_check_uses_the_terms_of_json(proxy: Proxy) -> None:
    for path, body in (("trace", {"steps": "x"}), ("trace", {"steps": []}), ("memory", {"facts": "x"})):
        message = post(proxy, path, 400, **body)["error"]["message"]
        assert "array" in message.lower()
        assert "tuple" not in message.lower()


# --- operations that are off by default -------------------------------------------------------------------------------


def test_gate_and_audit_are_off_by_default_and_name_their_setting(proxy: Proxy) -> None:
    for path, body in (("memory", {"facts": [{"text": "x"}]}), ("trace", {"steps": ["x"]})):
        assert "information_budget.enabled" in post(proxy, path, 400, **body)["error"]["message"]
    assert httpx.get(f"{proxy.base_url}/grounding/memory?subject=s").status_code == 400


def test_each_is_switched_on_by_itself(start_proxy: Start) -> None:
    gated = start_proxy(information_budget=on("memory_gate"))
    assert post(gated, "memory", facts=[{"text": "Costs were $3M.", "evidence": EVIDENCE}])["accepted"] == 1
    post(gated, "trace", 400, steps=["x"])
    audited = start_proxy(information_budget=on("trace_auditing"))
    assert post(audited, "trace", steps=["Costs were $3M."], context=EVIDENCE)["sound"] is True
    post(audited, "memory", 400, facts=[{"text": "x"}])


# --- the memory gate --------------------------------------------------------------------------------------------------


def test_grounded_facts_are_stored_per_subject_and_others_rejected(start_proxy: Start) -> None:
    proxy = start_proxy(information_budget=on("memory_gate"))
    facts = [
        {"text": "Costs were $3M in 2023.", "confidence": 0.8},
        {"text": "Costs were $4M in 2023.", "confidence": 0.9},
        {"text": "The moon is made of cheese.", "confidence": 0.9},
        {"text": "Lee leads the team.", "confidence": 0.9, "cites": ["a"]},
        {"text": "Lee leads the team.", "confidence": 0.9, "cites": ["zz"]},
    ]
    found = post(proxy, "memory", subject="acme", facts=facts, evidence=SOURCES)
    told = [(each["status"], each.get("reason"), each["confidence"], each["stored"]) for each in found["facts"]]
    assert told == [
        ("accepted", None, 0.8, True),
        ("rejected", "fact_not_grounded", None, False),
        ("rejected", "fact_not_grounded", None, False),
        ("accepted", None, 0.9, True),
        ("rejected", "fact_not_grounded", None, False),
    ]
    kept = httpx.get(f"{proxy.base_url}/grounding/memory", params={"subject": "acme"}).json()
    assert [fact["text"] for fact in kept["facts"]] == ["Costs were $3M in 2023.", "Lee leads the team."]
    other = httpx.get(f"{proxy.base_url}/grounding/memory", params={"subject": "other"}).json()
    assert other["facts"] == []


def test_facts_without_evidence_are_rejected_and_without_subject_not_stored(start_proxy: Start) -> None:
    proxy = start_proxy(information_budget=on("memory_gate"))
    bare, told = post(
        proxy, "memory", facts=[{"text": "Costs were $3M."}, {"text": "Costs were $3M.", "evidence": EVIDENCE}]
    )["facts"]
    assert (bare["status"], bare["reason"]) == ("rejected", "fact_not_grounded")
    assert (told["status"], told["stored"]) == ("accepted", False)


def test_stored_facts_serve_as_sources_on_request(start_proxy: Start, upstream: Upstream) -> None:
    proxy = start_proxy(information_budget=on("memory_gate"), stream={"tail_budget": "10s"})
    post(proxy, "memory", subject="acme", facts=[{"text": "Costs were $3M in 2023.", "evidence": EVIDENCE}])
    upstream.reply = body_reply(chat_body("Costs were $3M in 2023."))

    def labels(**grounding: Any) -> tuple[list[str], list[str]]:
        with sdk(proxy.base_url) as client:
            messages: Any = [{"role": "user", "content": "The sky is blue. What were the costs in 2023?"}]
            completion = client.chat.completions.create(
                model="m", messages=messages, extra_body={"grounding": grounding}
            )
        report: Any = (completion.model_extra or {})["grounding"]
        return [claim["label"] for claim in report["choices"][0]["claims"]], report["warnings"]

    assert labels(subject="acme", memory=True)[0] == ["supported"]
    assert labels(subject="acme")[0] == ["unsupported"]
    assert labels(subject="other", memory=True)[0] == ["unsupported"]
    assert "memory: no subject is named" in labels(memory=True)[1]


def test_a_model_decides_on_facts_by_bits(believing: Callable[..., Proxy]) -> None:
    proxy = believing("memory_gate")
    facts = [
        {"text": "Lee leads the team in Oslo.", "confidence": 0.9},
        {"text": "Kim paints.", "confidence": 0.9},
    ]
    stated, silent = post(proxy, "memory", facts=facts, evidence=EVIDENCE, model="believer")["facts"]
    assert (stated["status"], stated["confidence"], stated["grounding"]) == ("accepted", 0.9, "grounded")
    assert stated["claim"]["budget"]["p1"] == pytest.approx(0.98, abs=0.01)
    assert (silent["status"], silent["reason"]) == ("rejected", "fact_not_grounded")


def test_the_gate_answers_before_the_model_does_that_hangs(believing: Callable[..., Proxy], believer: Believer) -> None:
    believer.manner = Manner(hangs=True)
    proxy = believing("memory_gate", timeout="60s")
    facts = [{"text": f"Fact number {number} holds.", "confidence": 0.8} for number in range(20)]

    found = post(proxy, "memory", subject="acme", facts=facts, evidence=EVIDENCE, model="believer")
    assert {(each["status"], each["grounding"], each["confidence"]) for each in found["facts"]} == {
        ("accepted", "unverified", 0.4)
    }
    assert {each["claim"]["budget"]["missing"] for each in found["facts"]} == {"timeout"}
    kept = httpx.get(f"{proxy.base_url}/grounding/memory", params={"subject": "acme"}).json()
    assert {fact["is_source"] for fact in kept["facts"]} == {False}


@pytest.mark.parametrize(
    ("manner", "cause"),
    [(Manner(fails=99), "unreachable"), (Manner(busy=99), "rate_limited"), (Manner(refuses=True), "no_verdict")],
    ids=["fails", "busy", "refuses"],
)
def test_a_fact_that_no_model_judges_is_accepted_with_less_confidence(
    believing: Callable[..., Proxy], believer: Believer, manner: Manner, cause: str
) -> None:
    believer.manner = manner
    proxy = believing("memory_gate")
    (fact,) = post(proxy, "memory", facts=[{"text": "Lee leads.", "confidence": 0.8}], evidence=EVIDENCE, model="b")[
        "facts"
    ]
    assert (fact["status"], fact["grounding"], fact["confidence"]) == ("accepted", "unverified", 0.4)
    assert fact["claim"]["budget"]["missing"] == cause


def test_the_backend_self_needs_a_model(believing: Callable[..., Proxy]) -> None:
    proxy = believing("memory_gate")
    refused = post(proxy, "memory", 400, facts=[{"text": "x", "evidence": EVIDENCE}])
    assert refused["error"]["param"] == "model"


# --- traces -----------------------------------------------------------------------------------------------------------

STEPS = ["Revenue was $5M in 2023.", "Costs were $4M in 2023.", "The moon is made of cheese.", "Let me think."]


def test_steps_are_audited_by_words(start_proxy: Start) -> None:
    proxy = start_proxy(information_budget=on("trace_auditing"))
    found = post(proxy, "trace", steps=STEPS, context=EVIDENCE, answer="Costs were 4 million dollars.")
    assert [step["status"] for step in found["steps"]] == ["ENTAILED", "CONTRADICTED", "NOT_IN_CONTEXT", "UNVERIFIABLE"]
    assert found["counts"] == {"ENTAILED": 1, "CONTRADICTED": 1, "NOT_IN_CONTEXT": 1, "UNVERIFIABLE": 1}
    assert (found["sound"], found["post_hoc"]["status"]) == (False, "derived")


def test_an_answer_that_the_steps_do_not_lead_to_is_found(start_proxy: Start) -> None:
    proxy = start_proxy(information_budget=on("trace_auditing"))
    found = post(proxy, "trace", steps=STEPS[:1], context=EVIDENCE, answer="Costs were $3M.")
    assert found["post_hoc"]["status"] == "not_derived"


def test_the_post_hoc_check_can_be_off(start_proxy: Start) -> None:
    section = on("trace_auditing")
    section["trace_auditing"]["check_post_hoc"] = False
    assert "post_hoc" not in post(
        start_proxy(information_budget=section), "trace", steps=STEPS[:1], answer="Costs fell."
    )


def test_steps_are_audited_by_a_model_and_entailed_ones_become_premises(
    believing: Callable[..., Proxy], believer: Believer
) -> None:
    proxy = believing("trace_auditing")
    steps = ["Lee leads the team in Oslo.", "Kim paints."]
    found = post(proxy, "trace", steps=steps, context=EVIDENCE, model="believer")
    assert [step["status"] for step in found["steps"]] == ["ENTAILED", "NOT_IN_CONTEXT"]
    last = [prompt for prompt in believer.prompts if "Kim paints" in prompt]
    assert "step-1" in last[0]
    assert "step-2" not in last[0]


@pytest.mark.parametrize(
    ("derived", "status"), [("5 million dollars", "derived"), ("$6M", "not_derived"), ("UNKNOWN", "not_derived")]
)
def test_an_independent_executor_derives_the_answer_from_the_steps_alone(
    start_proxy: Start, upstream: Upstream, derived: str, status: str
) -> None:
    prompts: list[str] = []

    def reply(received: Received) -> Reply:
        said = "\n".join(message["content"] for message in received.json()["messages"])
        if "STEPS, as a JSON array" not in said:
            return body_reply(chat_body("YES"))
        prompts.append(said)
        return body_reply(chat_body(derived))

    upstream.reply = reply
    proxy = start_proxy(information_budget=on("trace_auditing", backend="self"))
    question = "What was the revenue?"
    found = post(proxy, "trace", steps=STEPS[:1], context=EVIDENCE, answer="$5M", question=question, model="m")
    assert (found["post_hoc"]["status"], found["post_hoc"]["derived"]) == (status, derived)
    (prompt,) = prompts
    assert STEPS[0] in prompt
    assert question in prompt
    assert EVIDENCE[0] not in prompt
    assert '"$5M"' not in prompt


def test_words_derive_the_answer_where_the_executor_is_silent(start_proxy: Start, upstream: Upstream) -> None:
    upstream.reply = error_reply(500, "out of memory", type="server_error")
    proxy = start_proxy(information_budget=on("trace_auditing", backend="self"))
    found = post(proxy, "trace", steps=STEPS[:1], context=EVIDENCE, answer="$5M", model="m")
    assert found["post_hoc"]["status"] == "derived"
    assert found["steps"][0]["status"] == "UNVERIFIABLE"


# --- checks under a rate limit ----------------------------------------------------------------------------------------


def test_facts_and_traces_that_a_rate_limit_cuts_short_are_completed_later(
    start_proxy: Start, believer: Believer, tmp_path: Path
) -> None:
    believer.manner = Manner(busy=10_000, retry_after="1")
    proxy = start_proxy(
        upstreams={"up": {"base_url": believer.base_url}},
        information_budget=on("memory_gate", "trace_auditing", backend="self"),
        jobs={"url": f"sqlite:///{tmp_path / 'jobs.db'}", "poll": "100ms"},
    )
    facts = [{"text": text, "confidence": 0.9} for text in ("Lee leads the team in Oslo.", "Kim paints.")]
    gate = post(proxy, "memory", subject="acme", facts=facts, evidence=EVIDENCE, model="believer")
    trace = post(proxy, "trace", steps=["Lee leads the team in Oslo.", "Kim paints."], context=EVIDENCE, model="b")
    assert (gate["status"], trace["status"]) == ("deferred", "deferred")
    assert [(each["status"], each["grounding"]) for each in gate["facts"]] == [("accepted", "unverified")] * 2
    assert trace["counts"]["UNVERIFIABLE"] == 2
    assert fetched(proxy, gate["id"])["facts"] == gate["facts"]
    believer.manner = Manner()
    gate, trace = (found_within(30.0, partial(completed, proxy, each["id"])) for each in (gate, trace))
    assert [(each["status"], each["stored"]) for each in gate["facts"]] == [("accepted", True), ("rejected", False)]
    assert [step["status"] for step in trace["steps"]] == ["ENTAILED", "NOT_IN_CONTEXT"]
    (kept,) = httpx.get(f"{proxy.base_url}/grounding/memory", params={"subject": "acme"}).json()["facts"]
    assert (kept["id"], kept["text"], kept["is_source"]) == (gate["facts"][0]["id"], facts[0]["text"], True)
    assert "id" not in post(proxy, "trace", steps=["Lee leads the team in Oslo."], context=EVIDENCE, model="b")


def fetched(proxy: Proxy, id_: str) -> dict[str, Any]:
    response = httpx.get(f"{proxy.base_url}/grounding/{id_}", timeout=60)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def completed(proxy: Proxy, id_: str) -> dict[str, Any] | None:
    found = fetched(proxy, id_)
    return found if found["status"] == "complete" else None
