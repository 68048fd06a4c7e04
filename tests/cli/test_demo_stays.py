"""Issue 5, accepted when: the demo stays, prints an address and a key, and a flagged answer of it can be reviewed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import httpx

STORED_WITHIN_S = 60.0


def test_the_demo_stays_until_its_flagged_answers_are_reviewed() -> None:
    code = "from groundwire.cli import main; main()"
    # Ended by SIGTERM, since SIGINT is ignored by whatever a shell has started in the background.
    demo = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--stay", "--pace", "0"], stdout=subprocess.PIPE, text=True
    )
    assert demo.stdout
    try:
        said = ""
        while "Press Ctrl+C" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        address, key = re.search(r"Open +(\S+)/reviews\n", said), re.search(r"Key +(\S+)\n", said)
        assert address
        assert key
        with httpx.Client(base_url=address[1], headers={"authorization": f"Bearer {key[1]}"}) as admin:
            assert admin.get("/reviews").headers["location"].startswith("/sign-in")
            deadline = time.monotonic() + STORED_WITHIN_S
            reviews = []
            while not reviews:
                assert time.monotonic() < deadline, "the demo's answers were not stored"
                reply = admin.get("/v1/reviews")
                reviews = reply.json()["reviews"] if reply.status_code == 200 else []
                time.sleep(0.1)
            path = f"/v1/reviews/{reviews[0]['id']}"
            assert admin.post(path, json={"decision": "confirmed", "version": 0}).status_code == 200
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
        demo.wait()
        demo.stdout.close()
