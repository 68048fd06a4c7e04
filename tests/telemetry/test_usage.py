"""Token usage as model servers report it, in OpenAI's fields and in Anthropic's."""

from typing import Any

import pytest

from groundwire.telemetry.requests import Usage


@pytest.mark.parametrize(
    ("told", "read"),
    [
        pytest.param({}, Usage(), id="nothing"),
        pytest.param({"prompt_tokens": 9, "completion_tokens": 5}, Usage(9, 5), id="chat completions"),
        pytest.param(
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 5, 4, None, 3),
            id="chat completions, with a cache and reasoning",
        ),
        pytest.param(
            {
                "input_tokens": 9,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 5, 4, None, 3),
            id="responses",
        ),
        pytest.param(
            {"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 30},
            Usage(59, 5, 20, 30),
            id="messages, which count their cache apart",
        ),
        pytest.param(
            {"prompt_tokens": True, "completion_tokens": "5", "prompt_tokens_details": 1}, Usage(), id="rubbish"
        ),
        pytest.param({"prompt_tokens": -1, "completion_tokens": None}, Usage(), id="no counts"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0), id="zero is a count"),
    ],
)
def test_usage_is_read_from_the_fields_of_every_dialect(told: dict[str, Any], read: Usage) -> None:
    assert Usage.of(told) == read
