"""The library's tests compare words, unless they ask for the shipped model."""

import pytest

from groundwire import library
from groundwire.judge import Judge


@pytest.fixture(autouse=True)
def _words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions of the library judge without a model where a test names none."""
    monkeypatch.setattr(library, "_loaded", lambda judge: judge or Judge())
