"""Settings of retries, fallbacks, limits and headers of an upstream, and errors in them."""

from pathlib import Path
from typing import Any

import pytest

from groundwire.config import Settings, load_settings
from groundwire.config.settings import Retries
from groundwire.container import build_container
from groundwire.errors import ConfigError
from groundwire.upstream.upstream import LimitedUpstream, OpenAIUpstream
from groundwire.wire import Reply

UP = {"base_url": "http://up/v1"}
SPARE = {"base_url": "http://spare/v1", "models": []}


def house(**up: Any):
    return build_container(
        Settings.model_validate({"upstreams": {"up": UP | up, "spare": SPARE}}), {"KEY": " s3cret\n"}
    )


def test_by_default_nothing_is_tried_twice_limited_or_sent_elsewhere() -> None:
    router = house().passage.router
    assert router.choose("m").is_plain
    assert [type(upstream) for upstream in router.upstreams] == [OpenAIUpstream, OpenAIUpstream]


def test_retries_and_fallbacks_reach_the_router() -> None:
    retries = {"count": 2, "statuses": [503], "initial_backoff": "1s", "max_backoff": "2s", "deadline": "1m"}
    router = house(retries=retries, fallbacks=["spare/*"], fallback_on=[500]).passage.router
    route = router.choose("m")
    assert route.retries == Retries(count=2, statuses=(503,), initial_backoff=1.0, max_backoff=2.0, deadline=60.0)
    assert [(each.upstream.name, each.model) for each in route.fallbacks] == [("spare", "m")]
    assert [route.needs_fallback(Reply(status, (), b"")) for status in (500, 503)] == [True, False]


@pytest.mark.parametrize("limits", [{"max_concurrent": 1}, {"per_minute": 1}])
def test_limits_are_for_their_own_upstream(limits: dict[str, int]) -> None:
    up, spare = house(limits=limits).passage.router.upstreams
    assert isinstance(up, LimitedUpstream)
    assert not isinstance(spare, LimitedUpstream)


def test_all_of_it_can_be_set_by_variables() -> None:
    variables = {
        "BASE_URL": "http://up/v1",
        "RETRIES__COUNT": "3",
        "FALLBACKS": "[up/small]",
        "LIMITS__MAX_CONCURRENT": "8",
        "REQUEST_HEADERS": "[x-a, openai-*]",
        "HEADERS": "{X-Tenant: ours}",
        "HEADERS_ENV": "{api-key: KEY}",
    }
    up = load_settings(None, {f"GROUNDWIRE_UPSTREAMS__UP__{name}": value for name, value in variables.items()})
    found = up.upstreams["up"]
    assert (found.retries.count, found.limits.max_concurrent, found.instead) == (3, 8, {"*": ("up/small",)})
    assert found.request_headers == ("x-a", "openai-*")
    assert (found.headers, found.headers_env) == ({"X-Tenant": "ours"}, {"api-key": "KEY"})


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("fallbacks: [elsewhere/m]", "'elsewhere/m' must be upstream/model"),
        ("fallbacks: [spare]", "'spare' must be upstream/model"),
        ("fallbacks: [spare/]", "'spare/' must be upstream/model"),
        ("fallbacks: {m: [nowhere/m]}", "'nowhere/m' must be upstream/model"),
        ("retries: {count: -1}", "upstreams.up.retries.count"),
        ("retries: {cuont: 1}", "unknown key (did you mean 'count'?)"),
        ("retries: {statuses: [200]}", "upstreams.up.retries.statuses.0"),
        ("limits: {max_concurrent: 0}", "upstreams.up.limits.max_concurrent"),
        ("headers: {Host: x}", "the header Host cannot be set"),
        ("headers: {X-Grounding-Mode: x}", "the header X-Grounding-Mode cannot be set"),
        ('headers: {"bad name": x}', "headers.bad name"),
        ('headers: {x: "a\\nb"}', "headers.x"),
        ("request_headers: [a b]", "request_headers.0"),
    ],
)
def test_an_invalid_routing_setting_is_refused_with_its_place(tmp_path: Path, said: str, problem: str) -> None:
    path = tmp_path / "config.yaml"
    text = f"upstreams:\n  up:\n    base_url: http://up/v1\n    {said}\n  spare:\n    base_url: http://spare/v1\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})
    assert problem in caught.value.problems[0]


def test_header_lists_are_not_for_litellm() -> None:
    with pytest.raises(ValueError, match="request_headers cannot be set for dialect litellm"):
        Settings.model_validate(
            {"upstreams": {"up": {"dialect": "litellm", "litellm_model": "gemini/*", "request_headers": ["x"]}}}
        )


def test_a_secret_header_needs_its_variable() -> None:
    assert house(headers_env={"api-key": "KEY"})
    with pytest.raises(ConfigError, match=r"upstreams\.up\.headers_env: the variable OTHER is not set"):
        house(headers_env={"api-key": "OTHER"})
