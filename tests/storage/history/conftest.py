"""The databases that tests of the history share; a test that asks for `place` has one for itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.databases import Database, postgresql, sqlite


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def module_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database for all tests of a module together, SQLite and PostgreSQL in turn."""
    folder = tmp_path_factory.mktemp("history")
    with sqlite(folder) if request.param == "sqlite" else postgresql() as found:
        yield found
