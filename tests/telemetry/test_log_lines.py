"""Lines of the log: their form, and the content that they never hold."""

import hashlib
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import get_current_span

from groundwire.config import Telemetry
from groundwire.telemetry import configure_logs, short_hash
from groundwire.telemetry.otlp import OpenTelemetryTracer
from groundwire.telemetry.spans import active
from tests.telemetry.talks import Model, exchanged


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator["Lines"]:
    """The log, and its lines."""
    yield Lines(capsys)
    structlog.reset_defaults()


class Lines:
    """A log that can be configured, and a reader of the lines written since."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def log(self, **settings: object) -> structlog.stdlib.BoundLogger:
        """Return a logger configured by these settings."""
        configure_logs(Telemetry.model_validate(settings))
        logger: structlog.stdlib.BoundLogger = structlog.get_logger("test").new()
        return logger

    def read(self) -> list[dict[str, object]]:
        """Return the lines on standard error; nothing ever goes to standard output.

        Lines of exporters are left out: their threads may outlive the tests that started them.
        """
        out, err = self._capsys.readouterr()
        assert out == ""
        lines = [json.loads(line) for line in err.splitlines()]
        return [line for line in lines if not line["event"].startswith("telemetry.")]


def test_a_line_is_json_with_time_level_and_event(lines: Lines) -> None:
    lines.log().info("something.happened", count=3)
    ((line),) = lines.read()
    assert (line["event"], line["level"], line["count"]) == ("something.happened", "info", 3)
    assert str(line["timestamp"]).endswith("Z")
    assert "trace_id" not in line


def test_a_line_logged_in_a_span_names_it(lines: Lines) -> None:
    log = lines.log()
    with active(OpenTelemetryTracer(TracerProvider().get_tracer("test")).start("x", "internal", {})):
        context = get_current_span().get_span_context()
        log.info("here")
    ((line),) = lines.read()
    assert (line["trace_id"], line["span_id"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")


def test_a_refusal_is_logged_in_one_line_with_its_reason() -> None:
    with structlog.testing.capture_logs() as said:
        exchanged(None, Model(), asked={"model": "m", "grounding": 5})
    (line,) = (each for each in said if each["event"] == "request")  # others may come from threads of earlier tests
    assert (line["status"], line["error"]) == (400, "BadRequest")
    assert "grounding" in line["reason"]


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_the_level_selects_the_lines_that_are_written(lines: Lines, level: str, heard: list[str]) -> None:
    log = lines.log(log_level=level)
    for each in ("debug", "info", "warning", "error"):
        getattr(log, each)("x")
    assert [line["level"] for line in lines.read()] == heard


def fail() -> None:
    try:
        raise ValueError("the zanzibar ledger")
    except ValueError as error:
        raise KeyError("the okapi") from error


def test_an_exception_is_logged_with_its_places_and_without_content(lines: Lines) -> None:
    """The text of an exception may quote the content that caused it, such as a source."""
    log = lines.log()
    try:
        fail()
    except KeyError:
        log.exception("it.failed")
    ((line),) = lines.read()
    told = str(line["exception"])
    assert all(word in told for word in ("KeyError", "ValueError", "test_log_lines.py", "in fail"))
    assert not [secret for secret in ("zanzibar", "okapi") if secret in json.dumps(line)]


def test_an_exception_is_logged_whole_where_content_may_be_logged(lines: Lines) -> None:
    log = lines.log(capture_content=True)
    try:
        fail()
    except KeyError:
        log.exception("it.failed")
    ((line),) = lines.read()
    assert "zanzibar" in str(line["exception"])


@pytest.mark.parametrize("text", ["", "naïve 🙂", "\ud800 alone"])
def test_a_short_hash_names_a_text_without_showing_it(text: str) -> None:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert short_hash(text) == digest[:12]


def test_a_text_that_is_no_unicode_can_be_logged() -> None:
    """A model's name may hold a lone surrogate; the log goes to standard error all the same."""
    code = """
        import structlog
        from groundwire.config import Telemetry
        from groundwire.telemetry import configure_logs
        configure_logs(Telemetry())
        structlog.get_logger("x").info("x", model="\\ud800 naïve")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=120, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr)["event"] == "x"


def test_a_warning_of_a_library_is_a_line_without_quoted_content(lines: Lines) -> None:
    lines.log()
    logger = logging.getLogger("some.library")
    try:
        raise ValueError("the walrus factory")
    except ValueError:
        logger.exception("it failed at %s", "the walrus factory")
    logger.error("Bad request: the walrus factory\nthe walrus factory")
    logger.info("the walrus factory")
    read = lines.read()
    assert "walrus" not in json.dumps(read)
    told = [(line["event"], line["library"], line["level"], line["detail"]) for line in read]
    assert told == [
        ("library.warned", "some.library", "error", "it failed at %s"),
        ("library.warned", "some.library", "error", "Bad request"),
    ]
    assert str(read[0]["exception"]).startswith("ValueError\n")


def test_a_warning_of_a_library_is_whole_where_content_is_captured(lines: Lines) -> None:
    lines.log(capture_content=True)
    logging.getLogger("some.library").warning("it failed at %s", "the walrus factory")
    ((line),) = lines.read()
    assert line["detail"] == "it failed at the walrus factory"


CRASH = """
    import asyncio, logging
    from groundwire.config import Telemetry
    from groundwire.telemetry import configure_logs

    async def failing():
        raise ValueError("the walrus factory")

    async def work():
        asyncio.create_task(failing())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    configure_logs(Telemetry())
    asyncio.run(work())
    try:
        raise ValueError("the walrus factory")
    except ValueError as error:
        logging.getLogger("uvicorn.error").error("Exception in ASGI application\\n", exc_info=error)
"""


def test_a_crash_is_logged_by_class_and_places() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRASH)], capture_output=True, text=True, timeout=120, check=True
    )
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert "walrus" not in done.stderr + done.stdout
    assert [line["detail"] for line in told] == ["Task exception was never retrieved", "Exception in ASGI application"]
    assert all("ValueError" in line["exception"] for line in told)
