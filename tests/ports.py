"""Ports for servers that tests start as processes."""

import itertools
import os
import socket

FIRST, COUNT = 10_000, 20_000  # below the ports that Linux hands out by itself

_numbers = itertools.count(os.getpid() * 97)


def free_port() -> int:
    """Return a port that stays free until the server listens on it.

    A port that the system hands out can be handed out again, to another test, while the server is still starting.
    """
    for number in _numbers:
        port = FIRST + number % COUNT
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise AssertionError("unreachable")
