"""The upstream that serves a model, and the name of the model there."""

from typing import Any

import pytest

from groundwire.config.settings import Retries
from groundwire.errors import UnknownModel, UpstreamBusy, UpstreamUnreachable
from groundwire.upstream.router import Router, UpstreamModels
from groundwire.wire import Call, Reply


class Named:
    """An upstream that is only a name."""

    provider = "openai"
    forwards_documents = False
    truncation_alarm = True

    def __init__(self, name: str, is_ollama: bool = False) -> None:
        self.name = name
        self.is_ollama = is_ollama

    async def send(self, call: Call) -> Reply:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


ROUTER = Router(
    [
        UpstreamModels(Named("ollama"), ["*"], {"fast": "llama3:8b"}),
        UpstreamModels(Named("claude"), ["claude-*", "anthropic/claude-?"], {"best": "claude-4", "gpt-4o": "claude-4"}),
        UpstreamModels(Named("openai"), ["gpt-4o", "gpt-[35]*", "o1"]),
        UpstreamModels(Named("team/gpu"), ["team-*"]),
    ]
)


@pytest.mark.parametrize(
    ("model", "upstream", "there"),
    [
        pytest.param("o1", "openai", "o1", id="an exact name before an earlier glob"),
        pytest.param("gpt-4o", "claude", "claude-4", id="an alias before an exact name"),
        pytest.param("fast", "ollama", "llama3:8b", id="an alias"),
        pytest.param("best", "claude", "claude-4", id="an alias of a later upstream"),
        pytest.param("claude/claude-3", "claude", "claude-3", id="a prefix before a glob"),
        pytest.param("openai/gpt-9", "openai", "gpt-9", id="a prefix goes with any model"),
        pytest.param("openai/org/model", "openai", "org/model", id="only the prefix is taken off"),
        pytest.param("claude-3", "ollama", "claude-3", id="of two globs the first"),
        pytest.param("meta/llama", "ollama", "meta/llama", id="a slash that is no prefix"),
        pytest.param("openai/", "ollama", "openai/", id="a prefix with nothing behind it"),
        pytest.param("GPT-4o", "ollama", "GPT-4o", id="names have their case"),
        pytest.param("*", "ollama", "*", id="a glob is a name too"),
    ],
)
def test_a_model_finds_its_upstream(model: str, upstream: str, there: str) -> None:
    route = ROUTER.choose(model)
    assert (route.upstream.name, route.model) == (upstream, there)


@pytest.mark.parametrize(
    ("models", "model", "serves"),
    [
        (["claude-*"], "claude-4", True),
        (["claude-*"], "claude", False),
        (["gpt-[35]*"], "gpt-5-mini", True),
        (["gpt-[35]*"], "gpt-4", False),
        (["a?"], "ab", True),
        (["a?"], "abc", False),
        ([], "a", False),
    ],
    ids=str,
)
def test_globs(models: list[str], model: str, serves: bool) -> None:
    router = Router([UpstreamModels(Named("up"), models)])
    if serves:
        assert router.choose(model).model == model
    else:
        with pytest.raises(UnknownModel) as caught:
            router.choose(model)
        assert caught.value.param == "model"
        assert model in str(caught.value)


def test_the_first_upstream_is_the_default() -> None:
    assert ROUTER.default.upstream.name == "ollama"
    assert [upstream.name for upstream in ROUTER.upstreams] == ["ollama", "claude", "openai", "team/gpu"]


@pytest.mark.parametrize("model", ["[", "[!", "*" * 200 + "x", "a" * 10_000, "\ud800", "\x00", ""])
def test_no_name_is_a_trouble(model: str) -> None:
    router: Any = Router([UpstreamModels(Named("up"), ["*a*b*c*d*e*"])])
    with pytest.raises(UnknownModel):
        router.choose(model)


ROUTER_WITH_FALLBACKS = Router(
    [
        UpstreamModels(
            Named("cloud"),
            ["gpt-*"],
            {"best": "gpt-4o"},
            Retries(count=2),
            {"gpt-4o": ["spare/gpt-4o-eu", "team/gpu/llama"], "gpt-5*": [], "*": ["spare/*"]},
            frozenset({503}),
        ),
        UpstreamModels(Named("spare"), ["*"], retries=Retries(count=1)),
        UpstreamModels(Named("team/gpu"), []),
    ]
)


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        pytest.param("gpt-4o", [("spare", "gpt-4o-eu"), ("team/gpu", "llama")], id="those of the model, in order"),
        pytest.param("best", [("spare", "gpt-4o-eu"), ("team/gpu", "llama")], id="of the model behind an alias"),
        pytest.param("cloud/gpt-3", [("spare", "gpt-3")], id="those of all others, under the same name"),
        pytest.param("gpt-5-mini", [], id="none for these"),
        pytest.param("spare/gpt-4o", [], id="none for another upstream"),
    ],
)
def test_a_model_has_its_fallbacks(model: str, instead: list[tuple[str, str]]) -> None:
    route = ROUTER_WITH_FALLBACKS.choose(model)
    assert [(each.upstream.name, each.model) for each in route.fallbacks] == instead
    assert all(each.fallbacks == () for each in route.fallbacks)


def test_each_upstream_is_tried_as_often_as_its_settings_allow() -> None:
    route = ROUTER_WITH_FALLBACKS.choose("gpt-4o")
    assert [each.retries.count for each in (route, *route.fallbacks)] == [2, 1, 0]
    assert route.needs_fallback(Reply(503, (), b""))
    assert not route.needs_fallback(Reply(429, (), b""))
    assert route.needs_fallback(UpstreamBusy("x", after=1))
    assert route.once().is_plain


def test_an_upstream_without_fallbacks_is_never_passed_over() -> None:
    assert not ROUTER_WITH_FALLBACKS.choose("spare/m").needs_fallback(UpstreamUnreachable("x"))
    assert ROUTER_WITH_FALLBACKS.default.retries.count == 2
    assert ROUTER_WITH_FALLBACKS.default.fallbacks == ()


# --- those that are Ollamas -------------------------------------------------------------------------------------------


def test_native_calls_go_to_ollamas_alone_and_so_do_their_fallbacks() -> None:
    instead = {"*": ["hosted/gpt-4o", "spare/*"]}
    served = [
        UpstreamModels(Named("hosted"), ["*"]),
        UpstreamModels(Named("gpu", is_ollama=True), ["*"], {"fast": "llama3.2"}, fallbacks=instead),
        UpstreamModels(Named("spare", is_ollama=True), ["qwen3"]),
    ]
    assert Router(served).choose("fast").upstream.name == "gpu"
    assert Router(served).choose("llama3.2").upstream.name == "hosted"
    ollamas = Router(served).ollamas()
    assert ollamas is not None
    assert [upstream.name for upstream in ollamas.upstreams] == ["gpu", "spare"]
    assert ollamas.default.upstream.name == "gpu"
    route = ollamas.choose("llama3.2")
    assert (route.upstream.name, route.model) == ("gpu", "llama3.2")
    assert [(each.upstream.name, each.model) for each in route.fallbacks] == [("spare", "llama3.2")]


def test_without_an_ollama_there_is_no_router_to_them() -> None:
    assert Router([UpstreamModels(Named("hosted"), ["*"])]).ollamas() is None
