"""Admin keys from settings, a file and a variable; only their digests are stored, and sessions are signed."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.config import Admin
from groundwire.errors import ConfigError
from groundwire.http.guard import Sessions, cookie, set_cookie
from groundwire.http.keys import AdminKeys, read_admin_keys

KEY = "a-key-that-is-long"
DIGEST = f"sha256:{sha256(KEY.encode()).hexdigest()}"


def read_keys(given: Mapping[str, str], file: Path | None = None, key: str = "") -> AdminKeys:
    """Read keys of settings, of a file, and of a variable."""
    settings = Admin.model_construct(keys=dict(given), keys_file=str(file) if file else None, key_env="KEY")
    return read_admin_keys(settings, {"KEY": key})


def test_keys_come_from_settings_a_file_and_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# reviewers\n\nben: bens-key-that-is-long\ncleo: {DIGEST.replace('a', 'A')}\n")
    keys = read_keys({"ann": DIGEST.upper().replace("SHA", "sha")}, file, "the-key-in-a-variable")
    assert keys.find_admin("bens-key-that-is-long") == "ben"
    assert keys.find_admin("the-key-in-a-variable") == "admin"
    assert keys.find_admin(KEY) in ("ann", "cleo")
    assert keys.find_admin("") is None
    assert "long" not in repr(keys)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ann: short", "the key of 'ann' must have 16 characters or more"),
        ("a nn: a-key-that-is-long", "'a nn' is no name"),
        ("ann: a-key-that-is-long\nann: another-long-key-of-hers", "'ann' is given twice"),
        ("nonsense", ":1: a line is written 'name: key'"),
    ],
    ids=["short", "name", "twice", "no colon"],
)
def test_a_file_that_makes_no_sense_is_refused_without_telling_a_key(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_keys({}, file)
    assert problem in str(caught.value)
    assert "that-is-long" not in str(caught.value)


def test_a_missing_key_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_keys({}, tmp_path / "keys")


def test_a_session_lasts_its_time_and_no_longer() -> None:
    sessions = Sessions(read_keys({"ann": DIGEST}), b"secret", 60.0)
    session = sessions.open(KEY, 1000.0)
    assert session is not None
    assert sessions.admin_of(session, 1059.0) == "ann"
    assert sessions.admin_of(session, 1060.0) is None
    assert Sessions(read_keys({"ann": DIGEST}), b"another", 60.0).admin_of(session, 1001.0) is None
    changed = read_keys({"ann": "another-long-key-of-hers"})
    assert Sessions(changed, b"secret", 60.0).admin_of(session, 1001.0) is None


@given(st.text(), st.text())
def test_nothing_made_up_is_a_session_or_a_token(made_up: str, token: str) -> None:
    sessions = Sessions(read_keys({"ann": DIGEST}), b"secret", 60.0)
    assert sessions.admin_of(made_up, 0.0) is None
    assert not sessions.is_form_token(made_up, token)


def test_a_cookie_is_found_among_others() -> None:
    headers = ((b"cookie", b"a=1; groundwire_session=x:y=; b"), (b"cookie", b"c=2"))
    assert cookie(headers, "groundwire_session") == "x:y="
    assert cookie(headers, "c") == "2"
    assert cookie(headers, "session") == ""


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ((b"c=1; c=2",), "1"),
        ((b"c=1", b"c=2"), "1"),
        ((b"c=; c=2",), ""),
        ((b'c="a\\073 Path=/"',), '"a\\073 Path=/"'),
        ((b"c",), ""),
        ((b"=c; ;;c=1",), "1"),
        ((b"c=\xff\x01",), "\xff\x01"),
        ((), ""),
    ],
    ids=["twice", "in two headers", "first empty", "quoted", "no value", "no name", "not ASCII", "none"],
)
def test_the_first_cookie_of_a_name_is_read_as_it_was_sent(sent: tuple[bytes, ...], value: str) -> None:
    assert cookie(tuple((b"cookie", each) for each in sent), "c") == value


@given(st.binary(max_size=60), st.booleans())
def test_a_cookie_sent_back_sets_no_attribute(sent: bytes, secure: bool) -> None:
    value = cookie(((b"cookie", b"c=" + sent),), "c")
    _, header = set_cookie("c", value, secure=secure)
    assert header.split(b";")[1:] == [b" Path=/", b" HttpOnly", b" SameSite=Strict", *([b" Secure"] if secure else [])]
    assert cookie(((b"cookie", header),), "c") == value


@pytest.mark.parametrize(("lasts", "age"), [(60.5, b"; Max-Age=60"), (0, b"; Max-Age=0"), (None, b"")])
def test_a_cookie_has_the_name_of_an_admin_unquoted_and_its_age(lasts: float | None, age: bytes) -> None:
    expected = b"c=ann@example.com:1; Path=/; HttpOnly; SameSite=Strict" + age
    assert set_cookie("c", "ann@example.com:1", secure=False, lasts=lasts) == (b"set-cookie", expected)
