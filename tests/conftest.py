"""Start the servers that tests share, and configure hypothesis.

Examples have no deadline: a busy machine would fail tests that have nothing to do with time. Where CI is set, the same
examples are tried every time, so that a result depends only on the change; elsewhere they differ.
"""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.servers.believer import Believer
from tests.servers.databases import Database, postgresql, sqlite
from tests.servers.redis_of_tests import Gate, RedisOfTests

settings.register_profile(
    "groundwire", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("groundwire")


def pytest_configure() -> None:
    """Let the tests and their subprocesses keep bytecode, even where the environment forbids it, and load no model.

    Otherwise every `groundwire serve` that a test starts would compile all of its imports anew.
    """
    os.environ.setdefault("GROUNDWIRE_JUDGE__BY", "off")  # words alone, unless a test asks for a model
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix, "bytecode")))


@pytest.fixture(scope="session", autouse=True)
def _no_cached_loggers() -> Iterator[None]:
    """Keep loggers uncached: a command that runs in this process would fix them, and later tests could not capture."""
    configure = structlog.configure
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", lambda **given: configure(**given | {"cache_logger_on_first_use": False}))
        yield


@pytest.fixture(autouse=True)
def _default_logs() -> Iterator[None]:
    """Undo the configuration of logs after a test that ran a command in this process."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()


@pytest.fixture(scope="module", autouse=True)
def _a_small_heap() -> None:
    """Exclude objects of earlier modules from garbage collection.

    Thousands of tests leave so many that one collection lasts half a second: longer than some measured times.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database that is gone afterwards, SQLite and PostgreSQL in turn."""
    with sqlite(tmp_path) if request.param == "sqlite" else postgresql() as found:
        yield found


@pytest.fixture
def believer() -> Iterator[Believer]:
    """A model server with predictable beliefs; tests set its `manner`."""
    with Believer() as server:
        yield server


@pytest.fixture
def real_redis() -> Iterator[RedisOfTests]:
    """A Redis, without the keys of this test afterwards; skips where there is none."""
    found = RedisOfTests()
    yield found
    found.close()


@pytest.fixture
def gate(real_redis: RedisOfTests) -> Iterator[Gate]:
    """A gate to the Redis that can be shut."""
    found = Gate(real_redis.url)
    yield found
    found.close()


@pytest.fixture
def silent_redis() -> Iterator[Gate]:
    """A server that takes connections as a Redis does and never answers."""
    found = Gate()
    yield found
    found.close()
