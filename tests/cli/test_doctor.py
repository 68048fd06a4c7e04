"""`groundwire doctor`, as a user runs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.edge.upstream import Upstream, as_json, body_reply, error_reply


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
    assert found["upstream up"]["detail"].startswith("1 model,")


def test_a_remedy_names_what_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWIRE_SERVER__PROT", "1")
    with Upstream() as upstream:
        upstream.reply = error_reply(404, "no such path", type="invalid_request_error")
        root = upstream.base_url.removesuffix("/v1")
        config = f"upstreams:\n  up: {{base_url: '{root}'}}\n  gone: {{base_url: 'http://127.0.0.1:1/v1'}}\n"
        config += "server: {port: 0}\nstore: {url: 'sqlite:////nowhere/x/history.db'}\n"
        _, printed = doctor(tmp_path, config)
    lines = [line.strip() for line in printed.splitlines()]
    assert "!" in printed
    assert f"Most need /v1: {root}/v1" in lines
    assert any(line.endswith("http://127.0.0.1:1/v1: ConnectError: Connection refused") for line in lines)
    assert "Start it, or correct upstreams.gone.base_url." in lines
    assert any(line.endswith("unable to open database file") for line in lines)
    assert "Create the folder /nowhere/x, or correct store.url." in lines
    assert any("did you mean GROUNDWIRE_SERVER__PORT?" in line for line in lines)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o500)
    _, found = findings(tmp_path, f"server: {{port: 0}}\nstore: {{url: 'sqlite:///{folder}/history.db'}}\n")
    assert (found["store"]["level"], found["store"]["detail"]) == ("error", f"{folder} cannot be written")


def test_an_admin_key_that_serve_would_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWIRE_ADMIN_KEY", "short")
    status, found = findings(tmp_path, f"store: {{url: 'sqlite:///{tmp_path}/history.db'}}\n")
    assert status == 1
    assert found["settings"]["detail"] == "GROUNDWIRE_ADMIN_KEY: the key of 'admin' must have 16 characters or more"


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("groundwire")), "doctor", "--config", str(tmp_path / "missing.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "there is no such file" in done.stdout
    assert "--config" in done.stdout


def test_every_broken_part_has_a_remedy(tmp_path: Path) -> None:
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
