"""Makes the servers of the tests importable from every folder of tests, and starts them; and how hypothesis searches.

Examples have no deadline of their own: a busy machine would fail tests that have nothing to do with time. Where CI is
set, the same examples are tried every time, so that a change is judged by what it changed; at a desk they differ.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from servers.believer import Believer

settings.register_profile(
    "groundwire", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("groundwire")


@pytest.fixture
def believer() -> Iterator[Believer]:
    """A model server with predictable beliefs; tests set its `manner`."""
    with Believer() as server:
        yield server
