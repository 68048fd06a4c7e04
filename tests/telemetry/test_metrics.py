"""Metrics: their values, their Prometheus output, the dashboard that draws them and their documentation."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
from starlette.types import ASGIApp, Message

from groundwire.domain import Budget, BudgetStatus, Claim, Judgement, Verdict
from groundwire.errors import ConfigError
from groundwire.report import ChoiceReport, Consistency, Contradiction, Report
from groundwire.telemetry import instruments
from groundwire.telemetry.instruments import Instrument
from groundwire.telemetry.metrics import OTHER, Metrics, Models
from tests.telemetry.receiver import receiving
from tests.telemetry.talks import ASKED, CALLER, CHAT, KEY, SECRETS, Model, run, serving

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
OURS = [each for each in vars(instruments).values() if isinstance(each, Instrument)]
INSTRUMENTS = (*OURS, *instruments.call_instruments("1.41"))
ADMIN = "the-key-of-an-admin"
STREAMED = ASKED | {"stream": True, "stream_options": {"include_usage": True}}
Samples = Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]


def samples(text: str) -> Samples:
    """Return every sample by name and by its labels that are not empty."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in prometheus(text):
        for sample in family.samples:
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if value))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


async def scraped(client: httpx.AsyncClient) -> Samples:
    reply = await client.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/plain")
    return samples(reply.text)


def after(*requests: Mapping[str, Any], model: Model | None = None, **sections: Any) -> Samples:
    """Return the samples of /metrics after these requests."""

    async def work() -> Samples:
        async with serving(model or Model(), **sections) as client:
            for request in requests:
                await client.post(CHAT, json=dict(request), headers={"authorization": f"Bearer {KEY}"})
            return await scraped(client)

    found: Samples = run(work())
    return found


def value(found: Samples, name: str, **labels: str) -> float:
    """The sum of a metric's samples with these labels."""
    return sum(number for given, number in found[name].items() if set(labels.items()) <= set(given))


def test_requests_calls_and_verdicts_are_counted() -> None:
    found = after(ASKED, ASKED, STREAMED)
    ours = {"http_route": CHAT, "http_request_method": "POST", "http_response_status_code": "200"}
    assert value(found, "http_server_request_duration_seconds_count", **ours) == 3
    assert value(found, "http_server_active_requests") == 1  # the one that asks
    call = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "openai", "gen_ai_request_model": "m"}
    mine = call | {"grounding_upstream": "up", "grounding_purpose": "answer"}
    assert value(found, "gen_ai_client_operation_duration_seconds_count", **mine) == 3
    assert value(found, "gen_ai_client_operation_time_to_first_chunk_seconds_count", **mine) == 1
    assert value(found, "gen_ai_client_operation_time_per_output_chunk_seconds_count", **mine) == 3
    assert value(found, "gen_ai_client_token_usage_sum", gen_ai_token_type="input") == 18
    assert value(found, "gen_ai_client_token_usage_sum", gen_ai_token_type="output") == 10
    assert value(found, "grounding_upstream_time_to_first_byte_seconds_count", grounding_upstream="up") == 3
    assert value(found, "grounding_answers_total", grounding_verdict="partially_grounded") == 3
    assert value(found, "grounding_claims_total", grounding_claim_label="supported") == 3
    assert value(found, "grounding_claims_total", grounding_claim_label="unsupported") == 3
    assert value(found, "grounding_flags_total", grounding_flag="unsupported_claims") == 3
    assert value(found, "grounding_verification_duration_seconds_count", grounding_status="complete") == 3
    assert value(found, "grounding_cache_lookups_total", grounding_outcome="miss") == 2
    assert value(found, "grounding_cache_lookups_total", grounding_outcome="hit") == 4
    assert value(found, "grounding_cache_hit_ratio") == pytest.approx(2 / 3)
    assert value(found, "grounding_queue_capacity") > 0
    assert value(found, "grounding_checks_shed_total") == 0
    assert value(found, "grounding_build_info") == 1
    assert not [name for name in found if name.endswith("_created")]


@pytest.mark.parametrize(
    ("ends", "error", "status"),
    [("error", "429", "429"), ("unreachable", "UpstreamUnreachable", "502")],
)
def test_a_call_that_fails_is_counted_by_its_error(ends: str, error: str, status: str) -> None:
    found = after(ASKED, model=Model(ends))
    assert value(found, "gen_ai_client_operation_duration_seconds_count", error_type=error) == 1
    assert value(found, "http_server_request_duration_seconds_count", http_response_status_code=status) == 1


@pytest.mark.parametrize("mode", ["sync", "off"])
def test_a_client_that_leaves_between_head_and_body_ends_the_call(mode: str) -> None:
    """A slow reader may leave before the head is sent, when nobody has begun to read the body."""
    asked = json.dumps(STREAMED | {"grounding": {"mode": mode}}).encode()

    async def leaving(application: ASGIApp) -> None:
        sending = asyncio.Event()
        body = iter([{"type": "http.request", "body": asked}])

        async def receive() -> Message:
            if (message := next(body, None)) is not None:
                return message
            await sending.wait()
            return {"type": "http.disconnect"}

        async def send(_: Message) -> None:
            sending.set()
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [], "query_string": b""}
        await application(scope, receive, send)

    async def work() -> Samples:
        async with serving(Model()) as client:
            assert isinstance(client._transport, httpx.ASGITransport)
            await leaving(client._transport.app)
            return await scraped(client)

    found = run(work())
    assert value(found, "gen_ai_client_operation_duration_seconds_count", error_type="cancelled") == 1
    assert value(found, "http_server_request_duration_seconds_count", error_type="client_gone") == 1


def test_scores_are_counted_by_kind() -> None:
    found = after(ASKED, ASKED)
    kinds = ("grounding", "confidence", "risk", "quality")
    assert [value(found, "grounding_scores_ratio_count", grounding_score_kind=kind) for kind in kinds] == [2, 2, 2, 2]
    assert value(found, "grounding_scores_ratio_sum", grounding_score_kind="grounding") == 1.0  # two of one half
    assert value(found, "grounding_scores_ratio_count", grounding_score_kind="consistency") == 0


def test_claims_are_counted_by_the_status_of_their_budget() -> None:
    metrics = Metrics()
    claim, verdict = Claim("c1", "x", 0, 1), Verdict("statement", "unsupported", 0.2, "", "")
    budgets = [Budget(status, "", 0.9) for status in ("supported", "not_entailed", "not_entailed")]
    judgements = tuple(Judgement(claim, verdict, 0.5, budget=each) for each in (*budgets, None))
    metrics.evaluated(
        Report("gw-1", "complete", "ungrounded", choices=(ChoiceReport(0, "ungrounded", 0.0, judgements),))
    )
    found = samples(metrics.registry.render("")[0].decode())
    counted = {
        dict(labels)["grounding_budget_status"]: number for labels, number in found["grounding_budgets_total"].items()
    }
    assert {status: number for status, number in counted.items() if number} == {"supported": 1, "not_entailed": 2}
    assert counted.keys() == set(get_args(BudgetStatus))


def test_contradictions_of_earlier_answers_are_counted_by_kind_and_severity() -> None:
    metrics = Metrics()
    found = [Contradiction(0, "c1", "", "", "gw-0", 0.0, "temporal", each, "") for each in ("high", "high", "low")]
    metrics.evaluated(Report("gw-1", "complete", "grounded", consistency=Consistency(0.4, tuple(found), 3)))
    told = samples(metrics.registry.render("")[0].decode())
    kind = {"grounding_contradiction_kind": "temporal"}
    assert value(told, "grounding_contradictions_total", **kind, grounding_severity="high") == 2
    assert value(told, "grounding_contradictions_total") == 3
    assert value(told, "grounding_scores_ratio_sum", grounding_score_kind="consistency") == 0.4


def test_reviews_show_how_far_scores_are_probabilities() -> None:
    metrics = Metrics()
    for score, is_right in ((0.2, True), (0.2, True), (0.2, False), (0.2, True), (0.9, False)):
        metrics.reviewed("statement", score, is_right=is_right)
    told = samples(metrics.registry.render("")[0].decode())
    decided = {"grounding_verifier": "statement", "grounding_review_decision": "rejected"}
    assert value(told, "grounding_reviewed_score_ratio_count", **decided) == 2
    # four at .20, of which .25 are supported, and one at .90, which is
    assert value(told, "grounding_calibration_error_ratio") == pytest.approx((4 * 0.05 + 0.1) / 5)


def test_no_key_subject_or_text_is_a_label() -> None:
    named = {"grounding": {"subject": "umbrella-corp", "session": "s-42"}}

    async def work() -> str:
        async with serving(Model()) as client:
            for method, path in (
                ("POST", CHAT),
                ("BREW", CHAT),
                ("GET", "/v1/files/umbrella-corp"),
                ("GET", "/nowhere"),
            ):
                asked = {**ASKED, **named}
                await client.request(method, path, json=asked, headers={"authorization": f"Bearer {KEY}"})
            return (await client.get("/metrics")).text

    text = run(work())
    assert "grounding_claims_total" in text
    assert not [secret for secret in (*SECRETS, "umbrella", "s-42", "BREW") if secret in text]


def test_models_that_clients_make_up_do_not_become_labels_without_end() -> None:
    models = Models(["named"], limit=3)
    assert models.label("named") == "named"
    assert models.label("rumoured") == OTHER
    assert [models.label(f"m{n}", answered=True) for n in range(5)] == ["m0", "m1", "m2", OTHER, OTHER]
    assert models.label("m1") == "m1"


def test_clients_that_make_up_models_add_fifty_labels_at_most() -> None:
    asked = [ASKED | {"model": f"made-up-{count}", "grounding": {"mode": "off"}} for count in range(60)]
    found = after(*asked)["gen_ai_client_operation_duration_seconds_count"]
    models = [dict(labels)["gen_ai_request_model"] for labels in found]
    assert len(models) == 51
    assert sum(number for labels, number in found.items() if ("gen_ai_request_model", OTHER) in labels) == 10


def test_a_model_name_that_is_no_unicode_does_not_stop_metrics() -> None:
    """JSON may hold a lone surrogate, which no reply can."""
    asked = json.dumps(ASKED | {"model": "m\ud800"}).encode()

    async def work() -> Samples:
        async with serving(Model()) as client:
            headers = {"content-type": "application/json"}
            assert (await client.post(CHAT, content=asked, headers=headers)).status_code == 200
            return await scraped(client)

    found = run(work())
    assert value(found, "gen_ai_client_operation_duration_seconds_count", gen_ai_request_model="m?") == 1


def test_openmetrics_with_exemplars_of_traces_is_returned_on_request() -> None:
    async def work(url: str) -> httpx.Response:
        async with serving(Model(), telemetry={"otlp_endpoint": url}) as client:
            await client.post(CHAT, json=ASKED, headers={"traceparent": CALLER})
            return await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})

    with receiving() as receiver:
        reply = run(work(receiver.url))
    assert reply.headers["content-type"].startswith("application/openmetrics-text")
    found = {family.name: family for family in openmetrics(reply.text)}
    exemplars = [each.exemplar for each in found["http_server_request_duration_seconds"].samples if each.exemplar]
    assert {exemplar.labels["trace_id"] for exemplar in exemplars} == {CALLER[3:35]}


def test_metrics_that_are_switched_off_are_not_there() -> None:
    async def work() -> int:
        async with serving(Model(), telemetry={"metrics": False}) as client:
            assert (await client.post(CHAT, json=ASKED)).json()["grounding"]["status"] == "complete"
            return (await client.get("/metrics")).status_code

    assert run(work()) == 404


def test_metrics_may_be_for_admins_only() -> None:
    key = "k" * 20

    async def work() -> list[int]:
        sections = {"telemetry": {"metrics_access": "admin"}}
        async with serving(Model(), {"GROUNDWIRE_ADMIN_KEY": key}, **sections) as client:
            given = ({}, {"authorization": f"Bearer {KEY}"}, {"authorization": f"Bearer {key}"})
            return [(await client.get("/metrics", headers=headers)).status_code for headers in given]

    assert run(work()) == [401, 401, 200]


def test_metrics_for_admins_need_an_admin() -> None:
    async def work() -> None:
        async with serving(Model(), telemetry={"metrics_access": "admin"}):
            pass

    with pytest.raises(ConfigError, match="no admin key"):
        run(work())


# --- docs, dashboard and alerts ---------------------------------------------------------------------------------------


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of docs/observability.md."""
    section = DOCS.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]


def test_the_table_of_metrics_is_that_of_the_instruments() -> None:
    written = {row[0]: row[1:] for row in table("Metrics")}
    real = {
        each.name: [
            each.prometheus,
            each.kind,
            each.unit,
            ", ".join(f"`{label}`" for label in each.labels).strip("`"),
            each.about,
        ]
        for each in INSTRUMENTS
    }
    assert written == real


def test_the_table_of_settings_names_each_of_them() -> None:
    from groundwire.config import Telemetry

    assert {row[0] for row in table("Settings")} == {f"telemetry.{name}" for name in Telemetry.model_fields}


def everything(tmp_path: Path, collector: str) -> Samples:
    """Return the samples of /metrics after traffic through every part, with a collector that accepts nothing."""
    sections = {
        "telemetry": {
            "otlp_endpoint": collector,
            "otlp_signals": ["metrics"],
            "metrics_interval": "50ms",
            "scores": {"phoenix_url": collector},
        },
        "store": {"url": f"sqlite:///{tmp_path}/history.db"},
        "jobs": {"url": f"sqlite:///{tmp_path}/jobs.db", "poll": "50ms", "drain": "0s"},
        "information_budget": {"enabled": True, "backend": {"type": "local"}, "memory_gate": {"enabled": True}},
    }
    fact = {"text": "The ledger was sealed in 1881.", "evidence": [{"text": "The ledger was sealed in 1881."}]}

    async def decide(client: httpx.AsyncClient) -> None:
        admin = {"authorization": f"Bearer {ADMIN}"}
        while True:
            found = (await client.get("/v1/reviews", headers=admin)).json()["reviews"]
            if found:
                break
            await asyncio.sleep(0.05)
        said = {"decision": "confirmed", "version": 0}
        assert (await client.post(f"/v1/reviews/{found[0]['id']}", headers=admin, json=said)).status_code == 200

    async def work() -> Samples:
        async with serving(Model(), {"GROUNDWIRE_ADMIN_KEY": ADMIN}, **sections) as client:
            for asked in (ASKED, STREAMED, ASKED | {"grounding": {"mode": "async"}}):
                assert (await client.post(CHAT, json=asked)).status_code == 200
            kept = await client.post("/v1/grounding/memory", json={"subject": "acme", "facts": [fact]})
            assert kept.status_code == 200
            await decide(client)
            while True:
                found = await scraped(client)
                if {"grounding_jobs_attempts_total", "grounding_degraded"} <= found.keys():
                    return found
                await asyncio.sleep(0.05)

    found: Samples = run(work())
    return found


def named_in(expression: str) -> set[str]:
    """Return the names of the metrics in a query."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(?:by|without)\s*\([^)]*\)|\"[^\"]*\"", " ", expression)
    return {name for name in re.findall(r"\b[a-z_]+\b", bare) if "_" in name and name not in ("histogram_quantile",)}


def test_every_metric_of_dashboard_and_alerts_is_there_after_some_traffic(tmp_path: Path) -> None:
    board = json.loads((ROOT / "deploy/grafana/groundwire.json").read_text(encoding="utf-8"))
    drawn = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))
    told = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    wanted = {name for expression in (*drawn, *told) for name in named_in(expression)}
    assert len(wanted) > 20
    with receiving() as receiver:
        receiver.status = 400
        assert wanted - everything(tmp_path, receiver.url).keys() == set()


def test_the_dashboard_draws_every_metric() -> None:
    board = (ROOT / "deploy/grafana/groundwire.json").read_text(encoding="utf-8")
    assert [each.prometheus for each in INSTRUMENTS if each.prometheus not in board] == []


DEPLOYED = sorted(each for each in (ROOT / "deploy").rglob("*.y*ml") if "templates" not in each.parts)


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.name)
def test_every_file_to_be_deployed_can_be_read(path: Path) -> None:
    assert list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
