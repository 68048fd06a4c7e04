"""Output and settings of `groundwire serve` at its start."""

import ctypes
import os
from typing import Any

import pytest

from groundwire.config import Settings
from groundwire.http.run import pages_line, return_freed_memory

KEY = {"GROUNDWIRE_ADMIN_KEY": "an-admin-key-of-32-characters-or-so"}
STORED: dict[str, Any] = {"store": {"url": "sqlite:///history.db"}}


@pytest.mark.parametrize(
    ("environ", "sections", "missing"),
    [
        ({}, {}, ["GROUNDWIRE_STORE__URL", "GROUNDWIRE_ADMIN_KEY"]),
        (KEY, {}, ["GROUNDWIRE_STORE__URL"]),
        ({}, STORED, ["GROUNDWIRE_ADMIN_KEY"]),
        (KEY, STORED | {"admin": {"key_env": "MY_KEY"}}, ["MY_KEY"]),
    ],
    ids=["nothing", "no store", "no key", "another variable"],
)
def test_settings_that_the_pages_lack_are_named(
    environ: dict[str, str], sections: dict[str, Any], missing: list[str]
) -> None:
    line = pages_line(Settings.model_validate(sections), environ, "127.0.0.1:8080")
    assert "http:" not in line
    assert [name for name in ("GROUNDWIRE_STORE__URL", "GROUNDWIRE_ADMIN_KEY", "MY_KEY") if name in line] == missing


@pytest.mark.parametrize(
    ("environ", "admin"), [(KEY, {}), ({}, {"keys": {"ann": "sha256:" + "0" * 64}}), ({}, {"keys_file": "keys"})]
)
def test_the_address_of_the_pages_is_printed(environ: dict[str, str], admin: dict[str, Any]) -> None:
    settings = Settings.model_validate(STORED | {"admin": admin})
    assert pages_line(settings, environ, "[::1]:8080").endswith(" http://[::1]:8080/")


class Library:
    """A C library that records its allocator settings."""

    def __init__(self) -> None:
        self.options: dict[int, int] = {}

    def mallopt(self, option: int, value: int) -> int:
        self.options[option] = value
        return 1


@pytest.mark.parametrize(("variable", "is_set"), [("", True), ("MALLOC_ARENA_MAX", False), ("GLIBC_TUNABLES", False)])
def test_freed_memory_is_returned_unless_the_operator_decides(
    monkeypatch: pytest.MonkeyPatch, variable: str, is_set: bool
) -> None:
    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)
    if variable:
        monkeypatch.setenv(variable, "1")
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    return_freed_memory()
    assert library.options == ({-8: 2, -3: 2**18, -1: 2**20} if is_set else {})


def test_a_c_library_without_such_settings_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    return_freed_memory()
