"""One connection with a client: uvicorn's, with the limits that it lacks. What is refused here is refused before ASGI.

uvicorn's parser bounds neither how long a head is nor how long a request takes to arrive, and a client that reads
nothing could hold its model server for ever. While a request arrives in one piece this costs a few comparisons.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from groundwire.dialects.error import error_body

_LEAST_GAIN = 2**16  # bytes of a body that must arrive within `read_timeout`, unless it has ended
_AHEAD = 16  # requests that may be sent ahead on one connection while an earlier one is answered

_REFUSALS = {
    400: ("The request is not valid HTTP/1.1.", "invalid_http"),
    405: ("CONNECT is not allowed here.", "method_not_allowed"),
    408: ("The request took too long to arrive.", "request_timeout"),
    414: ("The URL of the request is over the limit of {max_head} bytes.", "url_too_long"),
    431: ("The headers of the request are over the limit of {max_head} bytes.", "headers_too_large"),
    503: ("The proxy stops before the model has answered. Please try again.", "server_leaving"),
}

# RFC 9110, section 7.2
_HOST = re.compile(rb"(?:\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a connection. `max_head` is in bytes, of URL and headers together; the times are in seconds.

    `read_timeout` is the time for a head to arrive, and for each next 64 KiB of a body; `write_timeout` is how long a
    client may read nothing although data is waiting.
    """

    max_head: int = 2**16
    read_timeout: float = 60.0
    write_timeout: float = 600.0


def connections_within(limits: Limits) -> type[asyncio.Protocol]:
    """Return the protocol factory for uvicorn."""
    return cast(type[asyncio.Protocol], partial(Connection, limits=limits))


class Connection(HttpToolsProtocol):
    """A connection whose requests arrive in bounded size and time, and whose answers are taken."""

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._head = 0  # bytes that came since the head began which is being read
        self._is_within = False  # True within a request: some of it has arrived, but not all
        self._is_in_head = False
        self.parser = cast(HttpRequestParser, _Parser(self))
        self._refusal = 400
        self._body = self._body_before = 0  # bytes of the body that is being read, now and when last looked at
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._earlier: list[RequestResponseCycle] = []  # of those that are answered while the next one is here already

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there, and has `read_timeout` for its first request."""
        super().connection_made(transport)
        self._await_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the disconnection to all requests of the client, not only to the last one."""
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        for cycle in self._earlier:
            _tell(cycle)
        super().connection_lost(exc)

    # --- incoming -----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Some of a request, all of one, or several."""
        self._head += len(data)
        super().data_received(data)
        if self._head > self._limits.max_head:
            self._refuse(414 if len(self.url) > self._limits.max_head else 431)
        elif self._reading is None and (self._is_within or self._is_idle):
            self._await_more()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._is_within = self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header to the request. Trailers of a chunked body are dropped (RFC 9110, section 6.5.1)."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check a head, and start on its request. It is measured only where it may be too large."""
        if refusal := self._wrong_with_head():
            self._refusal = refusal
            raise ValueError(refusal)  # ends the parser and leads to send_400_response
        if self.parser.should_upgrade():
            return  # the parser reads this request once more
        self._is_in_head = False
        self._head = self._body = self._body_before = 0
        before, ahead = self.cycle, len(self.pipeline)
        super().on_headers_complete()
        if len(self.pipeline) > ahead:
            self._earlier = [cycle for cycle in (*self._earlier, before) if not cycle.response_complete]
            if ahead < _AHEAD:
                self.flow.resume_reading()  # or nobody would notice that the client has gone

    def on_body(self, body: bytes) -> None:
        """Some of a body."""
        self._head = 0
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request that has come whole."""
        if self.parser.should_upgrade():
            return
        self._head = 0
        self._is_within = False
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().on_message_complete()

    @property
    def _is_idle(self) -> bool:
        """True if no time limit applies, for instance after blank lines."""
        return (self.cycle is None or self.cycle.response_complete) and self.timeout_keep_alive_task is None

    def head_without_upgrade(self) -> bytes:
        """Return the head that was read last without its offer to switch protocols (RFC 9110, section 7.8)."""
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += (b"%s: %s" % pair for pair in self.headers if pair[0] != b"upgrade")
        return b"\r\n".join((*lines, b"", b""))

    def _wrong_with_head(self) -> int | None:
        """Return the status that refuses the head, if there is something wrong with it."""
        if self._head > self._limits.max_head and (status := self._excess()):
            return status
        if self.parser.get_method() == b"CONNECT":
            return 405
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or any(not _HOST.fullmatch(host) for host in hosts):
            return 400
        return None if hosts or self.parser.get_http_version() == "1.0" else 400

    def _excess(self) -> int | None:
        """The status that refuses the head, if it is too large."""
        if len(self.url) > self._limits.max_head:
            return 414
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        return 431 if size > self._limits.max_head else None

    def _await_more(self) -> None:
        self._reading = self.loop.call_later(self._limits.read_timeout, self._look_for_more)

    def _look_for_more(self) -> None:
        """Close a connection whose request arrives too slowly, unless reading is paused or an answer is in progress."""
        self._reading = None
        if self.transport.is_closing():
            return
        gain, self._body_before = self._body - self._body_before, self._body
        is_early = self.cycle is not None and not self.cycle.response_complete and self._head
        if self.flow.read_paused or gain >= _LEAST_GAIN or is_early:
            self._await_more()
        elif self._is_within:
            self._refuse(408)
        elif self._is_idle:
            self.transport.close()

    # --- outgoing -----------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client takes less than there is for it."""
        super().pause_writing()
        if self._writing is None:
            self._await_taking()

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _await_taking(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(self._limits.write_timeout, self._look_for_taking)

    def _look_for_taking(self) -> None:
        """Close a connection whose client reads nothing."""
        self._writing = None
        if self.transport.get_write_buffer_size() < self._unsent:
            self._await_taking()
        else:
            self.transport.abort()

    # --- rejected -----------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an error in OpenAI's shape; uvicorn calls this for oversized heads, too."""
        self._refuse(self._refusal)

    def cut_off(self) -> None:
        """Close a connection whose answer exceeded the shutdown time."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse(503)

    def _refuse(self, status: int) -> None:
        """Send an error and close; if another answer has begun, only close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            text, code = _REFUSALS[status]
            kind = "invalid_request_error" if status < 500 else "server_error"
            body = error_body(text.format(max_head=self._limits.max_head), kind, None, code)
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
            allow = b"allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n" if status == 405 else b""
            self.transport.write(STATUS_LINE[status] + head + allow + b"\r\n" + body)
        for unanswered in (*self._earlier, *([cycle] if cycle else [])):
            _tell(unanswered)
        self.transport.close()


class _Parser:
    """A request parser that ignores offers to switch protocols.

    httptools drops the body of a request with `Upgrade` and parses the following bytes as the next request. Such a
    request is parsed again without the offer, from its head on.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parser = self._new()

    def _new(self) -> HttpRequestParser:
        parser = HttpRequestParser(self._connection)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse a piece of a request. Raises HttpParserError."""
        rest = memoryview(data)
        while True:
            try:
                return self._parser.feed_data(rest)
            except HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
            head = self._connection.head_without_upgrade()
            self._parser = self._new()
            self._parser.feed_data(head)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


def _tell(cycle: RequestResponseCycle) -> None:
    """Notify a request in progress that its client has disconnected."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()
