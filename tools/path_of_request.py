"""Count the files of the package that one unstreamed, verified request enters.

Run as `python tools/path_of_request.py` in the repository root (`--list` prints the files). It starts the server with
its default settings in front of a small model server, sends requests until a first answer is verified by the loaded
judge, and counts the files whose functions the next request runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

WAIT = 60.0
"""Longest time in seconds for the server to start and to load its judge."""

_FACTS = "The Acme Pro plan costs ${} per month. It includes {} users and support by e-mail. Refunds take 14 days."
_ANSWER = "The Pro plan costs ${} per month. It includes 90 users. It comes with a free bicycle for {} people."


class ModelServer(BaseHTTPRequestHandler):
    """A model server whose answers repeat the number at the end of the question."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a chat completion."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = asked["messages"][-1]["content"].rpartition(" ")[2]
        message = {"role": "assistant", "content": _ANSWER.format(number, number)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 60, "completion_tokens": 30}
        body = json.dumps({"id": "a", "model": "m", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def serve(port: int, upstream: int, output: Path) -> None:
    """Run the server in this process; SIGUSR1 clears the files entered so far, SIGUSR2 writes them to `output`."""
    entered: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    def clear(*_: object) -> None:
        entered.clear()

    def write(*_: object) -> None:
        output.with_suffix(".part").write_text(json.dumps(sorted(entered)), encoding="utf-8")
        output.with_suffix(".part").rename(output)

    signal.signal(signal.SIGUSR1, clear)
    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(profile)
    sys.setprofile(profile)
    from groundwire.cli import main

    sys.argv = ["groundwire", "serve", "--port", str(port)]
    os.environ["GROUNDWIRE_UPSTREAMS__MODEL__BASE_URL"] = f"http://127.0.0.1:{upstream}/v1"
    main()


def measure() -> list[str]:
    """Return the files of the package that one request enters, relative to the package."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), ModelServer)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "entered.json"
        command = [sys.executable, __file__, "--serve", str(port), str(model.server_port), str(output)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)  # noqa: S603
        try:
            _wait_until_verified(port)
            server.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            _ask(port, 4321)
            time.sleep(0.2)  # for work after the answer
            server.send_signal(signal.SIGUSR2)
            _wait_for(output)
            found: list[str] = json.loads(output.read_text(encoding="utf-8"))
        finally:
            server.kill()
            server.wait()
            model.shutdown()
    return sorted(path.rpartition("/groundwire/")[2] for path in found if "/proxy/groundwire/" in path)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _ask(port: int, number: int) -> dict[str, Any]:
    """Return the grounding of an answer, which differs by its number."""
    facts = {"role": "system", "content": _FACTS.format(number, number)}
    body = {"model": "m", "messages": [facts, {"role": "user", "content": f"What does the plan cost? {number}"}]}
    url, headers = f"http://127.0.0.1:{port}/v1/chat/completions", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=WAIT) as reply:  # noqa: S310 - a local server
        grounding: dict[str, Any] = json.loads(reply.read())["grounding"]
        return grounding


def _wait_until_verified(port: int) -> None:
    until = time.monotonic() + WAIT
    for number in range(20, 2000):
        with suppress(OSError):
            grounding = _ask(port, number)
            if grounding["status"] == "complete" and "verifier_degraded" not in grounding["flags"]:
                return
        if time.monotonic() > until:
            raise TimeoutError("no answer was verified")
        time.sleep(0.2)


def _wait_for(path: Path) -> None:
    until = time.monotonic() + WAIT
    while not path.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{path.name} was not written")
        time.sleep(0.05)


def main(arguments: list[str] | None = None) -> int:
    """Print the number of files, by folder, or serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the files")
    parser.add_argument("--serve", nargs=3, metavar=("PORT", "UPSTREAM", "OUTPUT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(int(options.serve[0]), int(options.serve[1]), Path(options.serve[2]))
        return 0
    files = measure()
    if options.list:
        print(*files, sep="\n")
    for folder, count in Counter(path.rpartition("/")[0].partition("/")[0] or "." for path in files).most_common():
        print(f"{count:4} {folder}")
    print(f"{len(files):4} files are entered by one request")
    return 0


if __name__ == "__main__":
    sys.exit(main())
