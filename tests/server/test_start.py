"""The lines that `groundwire serve` prints when it starts."""

from typing import Any

import pytest

from proxy.config import Settings
from proxy.server.run import pages_line

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
