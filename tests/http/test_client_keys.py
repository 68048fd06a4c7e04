"""Client keys in a file that stores only digests; it is replaced as a whole and reloaded when it changes."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.errors import ConfigError, GroundwireError
from groundwire.http.keys import Clients, create_key, read_clients, revoke_key
from groundwire.storage.limits import Limits

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
DIGEST = "sha256:" + "ab" * 32


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def who(clients: Clients, key: str) -> str | None:
    client = asyncio.run(clients.find(key))
    return client.name if client else None


def test_a_key_is_long_random_and_stored_as_a_digest_only(file: Path) -> None:
    key, client = create_key(file, "app", Limits(600, 20), NOW, lasts=86_400)
    other, _ = create_key(file, "batch", Limits(), NOW)
    assert re.fullmatch(r"gw-[\w-]{43}", key)
    assert key != other
    assert key[3:] not in file.read_text()
    assert read_clients(file)[0] == client
    assert (client.limits, client.created, client.expires) == (Limits(600, 20), NOW, NOW + timedelta(days=1))
    assert who(Clients(file), key) == "app"
    assert who(Clients(file), other) == "batch"
    assert who(Clients(file), key + "x") is None
    assert who(Clients(file), "") is None


def test_a_key_without_a_lifetime_has_expired(file: Path) -> None:
    _, client = create_key(file, "app", Limits(), NOW, lasts=0.0)
    assert client.is_expired(NOW)


def test_only_its_owner_may_read_the_file(file: Path) -> None:
    create_key(file, "app", Limits(), NOW)
    file.chmod(0o644)
    create_key(file, "other", Limits(), NOW)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["keys"], "nothing else is left behind"


def test_entries_written_by_hand_are_preserved(file: Path) -> None:
    file.write_text(f"# ours\nann: {DIGEST}\n\nben: {DIGEST.replace('ab', 'cd')} concurrent=2")
    create_key(file, "cleo", Limits(), NOW)
    revoke_key(file, "ann")
    assert file.read_text().startswith(f"# ours\n\nben: {DIGEST.replace('ab', 'cd')} concurrent=2\ncleo: sha256:")


def test_a_file_behind_a_link_is_written_where_it_lies(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    create_key(tmp_path / "link", "app", Limits(), NOW)
    assert (tmp_path / "link").is_symlink()
    assert [each.name for each in read_clients(file)] == ["app"]


def test_keys_created_concurrently_are_all_stored(file: Path) -> None:
    names = [f"app-{at}" for at in range(8)]
    making = [threading.Thread(target=create_key, args=(file, name, Limits(), NOW)) for name in names]
    for each in making:
        each.start()
    for each in making:
        each.join()
    assert sorted(each.name for each in read_clients(file)) == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ann: plain-and-long-enough-key", "'ann' must be followed by sha256: and 64 hexadecimal digits"),
        ("ann:", "'ann' must be followed by sha256:"),
        (f"a nn: {DIGEST}", "'a nn' is no name"),
        (f"ann: {DIGEST}\nann: {DIGEST}", "'ann' is given twice"),
        (f"ann: {DIGEST} colour=red", "'ann' has an unknown 'colour'"),
        (f"ann: {DIGEST} concurrent=0", "a limit is a number from 1"),
        (f"ann: {DIGEST} requests_per_minute=many", "a limit is a number from 1"),
        (f"ann: {DIGEST} expires=soon", "a time is written like 2027-02-19"),
        ("nonsense", ":1: a line is written 'name: key'"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_without_telling_a_key(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_clients(file)
    assert problem in str(caught.value)
    assert "plain-and-long" not in str(caught.value)


def test_a_missing_key_file_is_reported(file: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Clients(file)


def test_a_key_ends_at_its_time(file: Path) -> None:
    file.write_text(f"ann: {DIGEST} expires=2027-02-19")
    (client,) = read_clients(file)
    end = datetime(2027, 2, 19, tzinfo=UTC)
    assert not client.is_expired(end - timedelta(seconds=1))
    assert client.is_expired(end)


def test_keys_come_and_go_without_a_restart(file: Path) -> None:
    clock = Clock()
    first, _ = create_key(file, "first", Limits(), NOW)
    clients = Clients(file, clock)
    second, _ = create_key(file, "second", Limits(), NOW)
    revoke_key(file, "first")
    assert (who(clients, first), who(clients, second)) == ("first", None), "it is looked at once a second"
    clock.now = 1.0
    assert (who(clients, second), who(clients, first)) == ("second", None)


def test_a_file_that_breaks_leaves_the_keys_as_they_were(file: Path) -> None:
    clock = Clock()
    key, _ = create_key(file, "app", Limits(), NOW)
    good = file.read_text()
    clients = Clients(file, clock)
    file.write_text("nonsense")
    clock.now = 1.0
    assert who(clients, key) == "app"
    assert clients.problem == "unreadable; the keys are as they were"
    file.unlink()
    clock.now = 2.0
    assert who(clients, key) == "app"
    assert clients.problem is not None
    file.write_text(good)
    clock.now = 3.0
    assert who(clients, key) == "app"
    assert clients.problem is None


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["keys", *arguments], env={"COLUMNS": "120"})
    if isinstance(done.exception, GroundwireError):
        return 2, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_creates_lists_and_revokes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("server: {keys: client-keys}\n")
    made = run("create", "app", "--requests-per-minute", "600", "--concurrent", "20", "--expires", "90d")
    assert made[0] == 0
    key = made[1].strip()
    assert key.startswith("gw-")
    assert key not in made[2], "a key that is piped elsewhere stays off the screen"
    assert who(Clients(tmp_path / "client-keys"), key) == "app"
    assert run("create", "app")[::2] == (
        2,
        "client-keys: there is a key 'app' already; revoke it, or choose another name",
    )
    assert "app" in run("list")[1]
    told = json.loads(run("list", "--json")[1])["app"]
    assert (told["requests_per_minute"], told["concurrent"]) == (600, 20)
    lasts = datetime.fromisoformat(told["expires"]) - datetime.fromisoformat(told["created"])
    assert lasts == timedelta(days=90)
    assert key not in run("list")[1] + run("list", "--json")[1]
    assert run("revoke", "app")[0] == 0
    assert who(Clients(tmp_path / "client-keys"), key) is None
    assert "there is no key 'app'" in run("revoke", "app")[2]


def test_the_command_needs_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "names no file" in run("create", "app")[2]
    assert run("create", "app", "--file", "other")[0] == 0
    assert run("create", "later", "--file", "other", "--expires", "soon")[0] == 2
