"""GW3: which upstream serves a model, and under which name."""

from typing import Any

import pytest

from proxy.errors import UnknownModel
from proxy.types import Call, Reply
from proxy.upstream.router import Router, Served


class Named:
    """An upstream that is only a name."""

    provider = "openai"
    forwards_documents = False

    def __init__(self, name: str) -> None:
        self.name = name

    async def send(self, call: Call) -> Reply:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


ROUTER = Router(
    [
        Served(Named("ollama"), ["*"], {"fast": "llama3:8b"}),
        Served(Named("claude"), ["claude-*", "anthropic/claude-?"], {"best": "claude-4", "gpt-4o": "claude-4"}),
        Served(Named("openai"), ["gpt-4o", "gpt-[35]*", "o1"]),
        Served(Named("team/gpu"), ["team-*"]),
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
    router = Router([Served(Named("up"), models)])
    if serves:
        assert router.choose(model).model == model
    else:
        with pytest.raises(UnknownModel) as caught:
            router.choose(model)
        assert caught.value.param == "model"
        assert model in str(caught.value)


def test_the_first_upstream_is_the_default() -> None:
    assert ROUTER.default.name == "ollama"
    assert [upstream.name for upstream in ROUTER.upstreams] == ["ollama", "claude", "openai", "team/gpu"]


@pytest.mark.parametrize("model", ["[", "[!", "*" * 200 + "x", "a" * 10_000, "\ud800", "\x00", ""])
def test_no_name_is_a_trouble(model: str) -> None:
    router: Any = Router([Served(Named("up"), ["*a*b*c*d*e*"])])
    with pytest.raises(UnknownModel):
        router.choose(model)
