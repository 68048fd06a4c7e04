"""A Redis for tests: the real one where there is one, and a gate before it that can be shut like a server that hangs.

The server is the one that GROUNDWIRE_TEST_REDIS names, else 127.0.0.1:6379. Without it those tests are skipped with
a reason.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from uuid import uuid4

import pytest
import redis

SERVER = os.environ.get("GROUNDWIRE_TEST_REDIS", "redis://127.0.0.1:6379")
PATIENT_S = 60.0


class RedisOfTests:
    """A real Redis, in which `name` is part of every key that a test makes; they are deleted afterwards."""

    def __init__(self) -> None:
        self.url = SERVER
        self.name = f"test-{uuid4().hex[:12]}"
        self.client = redis.Redis.from_url(SERVER, socket_timeout=PATIENT_S)
        try:
            self.client.ping()
        except redis.RedisError as error:
            pytest.skip(f"no Redis to test with at {SERVER.rpartition('@')[2]}: {error}")

    def keys(self) -> list[bytes]:
        """Return the keys of the test."""
        return list(self.client.scan_iter(f"*{self.name}*"))

    def close(self) -> None:
        """Delete the keys."""
        for key in self.keys():
            self.client.delete(key)
        self.client.close()


class Gate:
    """A listener on a separate port that forwards bytes to a Redis (None: nowhere); while it is shut it is silent."""

    def __init__(self, url: str | None = None) -> None:
        parts = redis.connection.parse_url(url) if url else {}
        self._behind = (parts.get("host", "127.0.0.1"), parts.get("port", 6379)) if url else None
        self._may_pass = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.accepted = 0
        if url:
            self._may_pass.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The gate's URL."""
        return f"redis://127.0.0.1:{self._listening.getsockname()[1]}"

    def shut(self) -> None:
        """Stop forwarding; connections stay open."""
        self._may_pass.clear()

    def open(self) -> None:
        """Forward everything again."""
        self._may_pass.set()

    def close(self) -> None:
        """Close all sockets."""
        for each in (self._listening, *self._sockets):
            with suppress(OSError):
                each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.accepted += 1
                self._sockets.append(client)
                if self._behind is not None:
                    server = socket.create_connection(self._behind)
                    self._sockets.append(server)
                    for one, other in ((client, server), (server, client)):
                        threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                self._may_pass.wait()
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
