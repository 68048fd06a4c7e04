"""Databases for tests: a file, and a separate schema on a PostgreSQL server where there is one.

The server is the one that GROUNDWIRE_TEST_POSTGRES names, else database `test` on 127.0.0.1:5432. Without it those
tests are skipped with a reason.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

SERVER = os.environ.get("GROUNDWIRE_TEST_POSTGRES", "postgresql://127.0.0.1:5432/test")


@dataclass(frozen=True, slots=True)
class Database:
    """The database of one test."""

    url: str
    schema: str = "unused"


@contextmanager
def sqlite(folder: Path) -> Iterator[Database]:
    """A file in `folder`."""
    yield Database(f"sqlite:///{folder}/jobs.db")


@contextmanager
def postgresql() -> Iterator[Database]:
    """A schema, dropped afterwards."""
    try:
        connection = psycopg.connect(SERVER, connect_timeout=3, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL to test with at {SERVER.rpartition('@')[2]}: {error}")
    schema = f"groundwire_test_{uuid4().hex[:12]}"
    with connection:
        try:
            yield Database(SERVER, schema)
        finally:
            _drop(connection, schema)


def _drop(connection: psycopg.Connection, schema: str) -> None:
    """Drop a schema. A proxy that is still running may deadlock with it; PostgreSQL then ends one of the two."""
    for _ in range(10):
        with suppress(psycopg.errors.DeadlockDetected):
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            return
    raise RuntimeError(f"{schema} cannot be dropped")
