"""The request of every Python client."""

import json
import sys
from typing import Any

BASE_URL = sys.argv[1]
MODEL = "gpt-4o-mini"
SYSTEM = "The sky is blue on a clear day. Grass is green."
QUESTION = "Which colour is the sky?"
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]


def told(**found: Any) -> None:
    """Print the results as JSON."""
    print(json.dumps(found, ensure_ascii=False))
