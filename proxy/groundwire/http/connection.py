"""uvicorn's connection with a client, with the limits that neither its settings nor an ASGI application can set.

An application sees a request only after its head has been parsed, and cannot abort a connection. uvicorn itself

- sets no limit to the size of a head, or to the time that a head or a body may take to arrive;
- waits without limit for a client that reads nothing of its answer;
- drops the body of a request with `Upgrade`, and parses the body as the next request (request smuggling);
- turns the trailers of a body into headers, and accepts several `Host` headers, or none;
- does not notice that a client has disconnected which has sent further requests ahead.

A front proxy that covers some of these is not a reason to drop them: see `docs/security.md`.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from groundwire.config import Server
from groundwire.dialects.dialect import error_body

_MIN_PROGRESS = 2**16  # bytes of a body that must arrive within `read_timeout`, unless it has ended
_MAX_AHEAD = 16  # requests that may be sent ahead on one connection while an earlier one is answered

_ERRORS = {
    400: ("The request is not valid HTTP/1.1.", "invalid_http"),
    405: ("CONNECT is not allowed here.", "method_not_allowed"),
    408: ("The request took too long to arrive.", "request_timeout"),
    414: ("The URL of the request is over the limit of {max_head} bytes.", "url_too_long"),
    431: ("The headers of the request are over the limit of {max_head} bytes.", "headers_too_large"),
    503: ("The proxy stops before the model has answered. Please try again.", "server_leaving"),
}

# RFC 9110, section 7.2
_HOST = re.compile(rb"(?:\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?", re.IGNORECASE)


class Connection(HttpToolsProtocol):
    """A connection whose requests arrive in bounded size and time, and whose answers are read in bounded time.

    `max_head` limits URL and headers together. `read_timeout` is the time for a head to arrive, and for each next
    64 KiB of a body; `write_timeout` is how long a client may read nothing although data is waiting.
    """

    def __init__(self, *args: Any, settings: Server, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = settings
        self.url = b""
        self._head_bytes = 0  # received since the head began, or since the last piece of the body
        self._new_bytes = 0  # received since the progress was last checked
        self._is_receiving = False  # True within a request: some of it has arrived, but not all
        self._is_in_head = False
        self._head_error = 400
        self._cycles: list[RequestResponseCycle] = []
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait `read_timeout` for the first request."""
        super().connection_made(transport)
        self._start_read_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the disconnection to all active requests; uvicorn reports it to the latest one only."""
        for timer in (self._read_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._disconnect_cycles()
        super().connection_lost(exc)

    # --- requests -----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request, a whole one, or several, and check the size and the progress."""
        self._unset_keepalive_if_required()
        self._head_bytes += len(data)
        self._new_bytes += len(data)
        try:
            self._parse(memoryview(data))
        except HttpParserError:
            self._refuse(self._head_error)
        if self._head_bytes > self._limits.max_head:
            self._refuse(414 if len(self.url) > self._limits.max_head else 431)
        elif self._read_timer is None and (self._is_receiving or self._is_idle):
            self._start_read_timer()

    def _parse(self, data: memoryview) -> None:
        """Parse data, and the head of a request with `Upgrade` a second time without it (RFC 9110, section 7.8)."""
        while True:
            try:
                return self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            head = self._head_without_upgrade()
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self.parser.feed_data(head)

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += (b"%s: %s" % pair for pair in self.headers if pair[0] != b"upgrade")
        return b"\r\n".join((*lines, b"", b""))

    def on_message_begin(self) -> None:
        """Begin a request, which has `read_timeout` from its first byte on."""
        super().on_message_begin()
        self._stop_read_timer()
        self._is_receiving = self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header to the request. Trailers of a chunked body are dropped (RFC 9110, section 6.5.1)."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check a head, and start its request. Raises ValueError to stop the parser."""
        if error := self._check_head():
            self._head_error = error
            raise ValueError(error)
        if self.parser.should_upgrade():
            return  # `_parse` feeds this head again
        self._is_in_head = False
        self._head_bytes = 0
        super().on_headers_complete()
        self._cycles = [*self._active_cycles(), self.cycle]
        if 0 < len(self.pipeline) <= _MAX_AHEAD:
            self.flow.resume_reading()  # uvicorn stops reading, and would not notice a disconnection

    def on_body(self, body: bytes) -> None:
        """Receive a piece of a body."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete a request."""
        if self.parser.should_upgrade():
            return
        self._head_bytes = 0
        self._is_receiving = False
        self._stop_read_timer()
        super().on_message_complete()

    def _check_head(self) -> int | None:
        """Return the status that refuses the head, or None if it is valid."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._limits.max_head:
            return 414 if len(self.url) > self._limits.max_head else 431
        if self.parser.get_method() == b"CONNECT":
            return 405
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or any(not _HOST.fullmatch(host) for host in hosts):
            return 400
        return None if hosts or self.parser.get_http_version() == "1.0" else 400

    # --- time limits --------------------------------------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """True if there is no request and no time limit, for instance after blank lines."""
        return not self._active_cycles() and self.timeout_keep_alive_task is None

    def _start_read_timer(self) -> None:
        self._new_bytes = 0
        self._read_timer = self.loop.call_later(self._limits.read_timeout, self._check_progress)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _check_progress(self) -> None:
        """Close a connection whose request arrives too slowly, unless reading is paused or an answer is in progress."""
        self._read_timer = None
        is_ahead = self._head_bytes and self._active_cycles()
        if self.transport.is_closing():
            return
        if self.flow.read_paused or self._new_bytes >= _MIN_PROGRESS or is_ahead:
            self._start_read_timer()
        elif self._is_receiving:
            self._refuse(408)
        elif self._is_idle:
            self.transport.close()

    def pause_writing(self) -> None:
        """Wait `write_timeout` for the client to read something."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop waiting: the client has read most of the data."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _start_write_timer(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self._limits.write_timeout, self._check_reader)

    def _check_reader(self) -> None:
        """Abort a connection whose client reads nothing."""
        if self.transport.get_write_buffer_size() < self._unsent:
            self._start_write_timer()
        else:
            self.transport.abort()

    # --- errors -------------------------------------------------------------------------------------------------------

    def cut_off(self) -> None:
        """Close a connection whose answer exceeded the shutdown time."""
        if self._active_cycles():
            self._refuse(503)

    def _refuse(self, status: int) -> None:
        """Send an error and close; if an answer has begun, only close."""
        if self.transport.is_closing():
            return
        if not any(cycle.response_started for cycle in self._active_cycles()):
            self.transport.write(_error_response(status, self._limits.max_head))
        self._disconnect_cycles()
        self.transport.close()

    def _active_cycles(self) -> list[RequestResponseCycle]:
        """Return the requests that are not answered yet; all but the first were sent ahead."""
        return [cycle for cycle in self._cycles if not cycle.response_complete]

    def _disconnect_cycles(self) -> None:
        for cycle in self._active_cycles():
            cycle.disconnected = True
            cycle.message_event.set()


def _error_response(status: int, max_head: int) -> bytes:
    """Return an error in OpenAI's shape, and the request to close the connection."""
    text, code = _ERRORS[status]
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = error_body(text.format(max_head=max_head), kind, None, code)
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    allow = b"allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n" if status == 405 else b""
    return STATUS_LINE[status] + head + allow + b"\r\n" + body
