"""The examples of docs/integrations.md run, and print the output in their comments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.edge.proxies import Proxy

PAGE = (Path(__file__).parents[2] / "docs/integrations.md").read_text(encoding="utf-8")
GIVEN, *EXAMPLES = re.findall(r"^```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)


def title(example: str) -> str:
    found = re.findall(r"(?:from|import) (?:groundwire\.integrations\.)?(\w+)", example)
    return found[-1] if found else example.split("(")[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_an_example_prints_what_it_promises(example: str, proxy: Proxy) -> None:
    shown: list[str] = []
    names: dict[str, Any] = {"print": lambda *values: shown.extend(map(str, values))}
    try:
        exec(GIVEN + example.replace("http://127.0.0.1:8080/v1", proxy.base_url), names)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("groundwire"):
            raise
        pytest.skip(f"{error.name} is not installed")
    promised = re.findall(r"print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert " ".join(shown).split() == " ".join(promised).split()
    if callable(test := names.get("test_answer")):
        from groundwire.integrations.pytest_plugin import assert_grounded

        test(assert_grounded)


def test_every_helper_is_on_the_page() -> None:
    folder = Path(__file__).parents[2] / "proxy/groundwire/integrations"
    helpers = {
        name for file in folder.glob("*.py") for name in re.findall(r"^class (\w+)", file.read_text(), re.MULTILINE)
    }
    assert [name for name in sorted(helpers - {"GroundingEvaluation"}) if name not in PAGE] == []


def test_the_failure_of_the_pytest_plugin_reads_as_on_the_page() -> None:
    from groundwire.integrations.pytest_plugin import assert_grounded

    names = dict[str, Any]()
    exec(GIVEN, names)
    with pytest.raises(pytest.fail.Exception) as raised:
        assert_grounded(names["ANSWER"], [names["SYSTEM"]])
    promised = re.findall(r"^    (.*)$", PAGE.split("A failure reads:")[1].split("\n## ")[0], re.MULTILINE)
    shown = str(raised.value).splitlines()
    assert [line for line in promised if "reason" not in line] == [line for line in shown if "reason" not in line]
