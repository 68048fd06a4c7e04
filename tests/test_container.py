"""Promises of the Dockerfile: a user without rights, and a file system that may be read-only."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

DOCKERFILE = (Path(__file__).parent.parent / "Dockerfile").read_text(encoding="utf-8")
FINAL = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[-1]


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+(?:\\\n.+)*)$", FINAL, flags=re.MULTILINE)


def test_it_runs_as_a_user_without_rights_named_by_number() -> None:
    """The number lets Kubernetes see that the user is not root."""
    assert [user for user in instructions("USER") if user.isdigit() and int(user) >= 10_000] == instructions("USER")
    assert instructions("USER")
    assert FINAL.index("USER") < FINAL.index("ENTRYPOINT")


def test_nothing_in_it_belongs_to_that_user() -> None:
    assert "chown" not in FINAL
    assert not re.search(r"chmod .*(777|o\+w)", FINAL)


def test_python_writes_nothing_next_to_its_modules() -> None:
    assert "PYTHONDONTWRITEBYTECODE=1" in FINAL
    assert instructions("VOLUME") == []
    assert instructions("WORKDIR") == []


def test_no_secret_is_built_into_it() -> None:
    assert not re.search(r"^(ENV|ARG) .*(KEY|SECRET|PASSWORD|TOKEN)", DOCKERFILE, flags=re.MULTILINE)


def test_the_settings_that_it_ships_hold_no_key() -> None:
    shipped = (Path(__file__).parent.parent / "config.yaml").read_text(encoding="utf-8")
    assert not re.search(r"^[^#\n]*\b(sk|gw|whsec)[-_]\w{8}", shipped, flags=re.MULTILINE)


def test_the_licences_are_there_and_come_along() -> None:
    """A build of the package fails without the files that its metadata names."""
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert [file for file in project["license-files"] if not (root / file).is_file()] == []
    copied = re.findall(r"^COPY (.+)$", DOCKERFILE, flags=re.MULTILINE)
    assert any("LICENSE" in line.split() for line in copied)
