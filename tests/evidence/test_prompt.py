"""How many tokens a prompt has at least, and when a model server cannot have read all of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from groundwire.domain import Message, Part, Role
from groundwire.evidence.prompt_size import Bounds, bounds_of, prompt_size
from groundwire.report import PromptSize

ROOT = Path(__file__).parents[2]
TEXTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("*.yaml"),
    *ROOT.glob("proxy/groundwire/gateway/*.py"),
    *ROOT.glob("proxy/groundwire/http/pages/**/*.html"),
    *ROOT.glob("proxy/groundwire/http/pages/**/*.js"),
    *ROOT.glob("proxy/groundwire/evaluation/*.jsonl"),
]
CHINESE = "人工智能正在改变我们的世界，大型语言模型可以回答问题、撰写文章和编写代码。中华人民共和国国务院办公厅。"
LONG_WORDS = "Donaudampfschifffahrtsgesellschaft internationalization responsibilities misunderstandings"

Count = Callable[[str], int]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Count]:
    """Tokenizers whose vocabularies lie in a package that is installed anyway."""
    package = find_spec("litellm")
    assert package
    assert package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        encodings = {name: tiktoken.get_encoding(name) for name in ("p50k_base", "cl100k_base", "o200k_base")}
    claude = Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))
    return {
        **{name: lambda text, by=encoding: len(by.encode_ordinary(text)) for name, encoding in encodings.items()},
        "claude": lambda text: len(claude.encode(text, add_special_tokens=False).ids),
    }


def bounds(*texts: str, role: Role = "user") -> Bounds:
    return bounds_of([Message(at, role, (Part(text),)) for at, text in enumerate(texts)])


# --- the bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_tokenizer_gets_below_the_sure_bound_on_text_or_code(path: Path, tokenizers: dict[str, Count]) -> None:
    text = path.read_text(encoding="utf-8")
    assert bounds(text).sure <= min(count(text) for count in tokenizers.values())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" " * 5000, id="spaces"),
        pytest.param("\n" * 5000, id="line breaks"),
        pytest.param("=" * 5000, id="a rule"),
        pytest.param("a" * 5000, id="one letter"),
        pytest.param("。" * 5000, id="one mark of a script without spaces"),
        pytest.param("the " * 5000, id="one word"),
        pytest.param("I don't. You can't. " * 500, id="apostrophes"),
        pytest.param(f"{LONG_WORDS} " * 100, id="long words"),
        pytest.param(CHINESE * 50, id="Chinese"),
        pytest.param("การศึกษาในประเทศไทย " * 200, id="Thai"),
        pytest.param("हिन्दी भारत की भाषा है। " * 200, id="Hindi, whose vowels are marks"),
        pytest.param("🙂🙃" * 500, id="emoji"),
        pytest.param('{"a":1,"b":[2,3],"c":"d"}' * 200, id="JSON without spaces"),
        pytest.param("lone \ud800 surrogate " * 100, id="no Unicode at all"),
    ],
)
def test_no_tokenizer_gets_below_the_sure_bound_on(text: str, tokenizers: dict[str, Count]) -> None:
    sayable = text.encode("utf-8", "replace").decode()
    assert bounds(text).sure <= min(count(sayable) for count in tokenizers.values())


@given(st.lists(st.sampled_from([" ", "\n", "a", "the", "It's", "x_y", "é", "ß", "42", "1.5", "(", '"', "-", "=="])))
def test_no_arrangement_of_words_and_marks_gets_below_the_sure_bound(
    tokenizers: dict[str, Count], pieces: list[str]
) -> None:
    text = "".join(pieces)
    assert bounds(text).sure <= min(count(text) for count in tokenizers.values())


@given(st.lists(st.text(), max_size=5), st.text())
def test_a_longer_prompt_never_has_a_lower_bound(texts: list[str], more: str) -> None:
    shorter, longer = bounds(*texts), bounds(*texts, more)
    assert shorter.sure <= longer.sure
    assert shorter.likely <= longer.likely


def test_prose_is_bounded_near_its_true_size(tokenizers: dict[str, Count]) -> None:
    text = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    assert bounds(text).sure > 0.4 * tokenizers["o200k_base"](text)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message(0, "user", (Part("word " * 900, "document"),)), id="a file, which a server may leave out"),
        pytest.param(
            Message(0, "assistant", (Part("<think>" + "word " * 900 + "</think>"),)),
            id="thoughts of an earlier answer, which templates drop",
        ),
        pytest.param(Message(0, "user", ()), id="an image"),
    ],
)
def test_what_may_be_missing_from_the_prompt_is_not_counted(message: Message) -> None:
    assert bounds_of([message]) == Bounds()


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_every_message_is_counted(role: Role) -> None:
    assert bounds("word " * 1000, "word " * 1000, role=role).sure == 1800


# --- what a count tells -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reported", "at_least", "is_truncated"),
    [
        pytest.param(2050, Bounds(9000), True, id="far too few"),
        pytest.param(8950, Bounds(9000), False, id="fewer than a window would leave out"),
        pytest.param(9001, Bounds(9000), False, id="enough"),
        pytest.param(90_000, Bounds(9000), False, id="with images"),
        pytest.param(40, Bounds(100), False, id="a short prompt"),
        pytest.param(2050, Bounds(1800, 3000), True, id="half a window, where more is likely"),
        pytest.param(4096, Bounds(1800, 5000), True, id="a whole window, where more is likely"),
        pytest.param(2051, Bounds(1800, 2100), False, id="half a window, and no more is likely"),
        pytest.param(2222, Bounds(1800, 3000), False, id="no window, where more is likely"),
    ],
)
def test_what_a_count_tells(reported: int, at_least: Bounds, is_truncated: bool) -> None:
    assert prompt_size(reported, at_least).is_truncated is is_truncated


@pytest.mark.parametrize("reported", [None, -1, 0, 1])
def test_a_server_that_did_not_count_has_told_nothing(reported: int | None) -> None:
    assert prompt_size(reported, Bounds(9000, 9000)) == PromptSize(None, 9000, False)


@pytest.mark.parametrize("window", [2048, 4096, 8192, 32768, 65536, 131072])
@pytest.mark.parametrize("kept", [4, 5])
def test_what_ollama_leaves_of_a_prompt_is_known_for_a_window(window: int, kept: int) -> None:
    half = window - (window - kept) // 2
    for left in (half, window):
        assert prompt_size(left, Bounds(0, 2 * window)) == PromptSize(left, 2 * window, True)
