"""`groundwire doctor`, as a user runs it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from edge.upstream import Upstream, as_json, body_reply, error_reply


def doctor(folder: Path, config: str, *arguments: str) -> tuple[int, str]:
    file = folder / "config.yaml"
    file.write_text(config, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("groundwire")), "doctor", "--config", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def findings(folder: Path, config: str) -> tuple[int, dict[str, Any]]:
    status, printed = doctor(folder, config, "--json")
    return status, {each["part"]: each for each in json.loads(printed)}


def test_a_working_installation(tmp_path: Path) -> None:
    with Upstream() as upstream:
        upstream.reply = body_reply(as_json({"object": "list", "data": [{"id": "m", "object": "model"}]}))
        config = f"upstreams: {{up: {{base_url: '{upstream.base_url}'}}}}\nserver: {{port: 0}}\n"
        config += f"store: {{url: 'sqlite:///{tmp_path}/history.db'}}\njudge: {{by: encoder}}\n"
        status, found = findings(tmp_path, config)
    assert status == 0, found
    assert {part: each["level"] for part, each in found.items()} == {
        "settings": "ok",
        "upstream up": "ok",
        "judge": "warning",  # the tests switch it off by a variable
        "store": "ok",
        "port": "ok",
    }
    assert found["upstream up"]["detail"].startswith("1 models")


def test_what_is_broken_has_a_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, Upstream() as upstream:
        upstream.reply = error_reply(401, "no key", type="invalid_request_error")
        config = (
            f"upstreams:\n  up: {{base_url: '{upstream.base_url}'}}\n  gone: {{base_url: 'http://127.0.0.1:1/v1'}}\n"
        )
        config += f"server: {{port: {taken.getsockname()[1]}}}\nstore: {{url: 'sqlite:////nowhere/x/history.db'}}\n"
        status, found = findings(tmp_path, config)
    assert status == 1
    levels = {part: each["level"] for part, each in found.items()}
    assert levels | {"judge": ""} == {
        "settings": "ok",
        "upstream up": "warning",
        "upstream gone": "error",
        "judge": "",
        "store": "error",
        "port": "warning",
    }
    assert all(each["remedy"] for each in found.values() if each["level"] != "ok")


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    status, printed = doctor(tmp_path, "server: {prot: 1}\n")
    assert status == 1
    assert "did you mean" in printed
