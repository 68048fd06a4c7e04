"""The databases that the history is tested on: each test that asks for `place` runs on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stores.databases import Database, postgresql, sqlite


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def module_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The same, for all tests of a module together."""
    folder = tmp_path_factory.mktemp("history")
    with sqlite(folder) if request.param == "sqlite" else postgresql() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database that is gone afterwards, SQLite and PostgreSQL in turn."""
    with sqlite(tmp_path) if request.param == "sqlite" else postgresql() as found:
        yield found
