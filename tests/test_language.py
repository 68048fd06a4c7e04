"""The measure of plain language that `make check` applies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "tools/language.py"


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def write(root: Path, code: str) -> None:
    (root / "proxy/groundwire/plain").mkdir(parents=True)
    (root / "proxy/groundwire/plain/one.py").write_text(code, encoding="utf-8")
    (root / "README.md").write_text("A proxy.\n", encoding="utf-8")


def test_plain_code_passes(tmp_path: Path) -> None:
    write(tmp_path, '"""Parse dates."""\n\nLIMIT = 3  # digits of a year, as in SHA256 or `AB12`\n')
    assert run(tmp_path, "--quiet").returncode == 0


def test_each_fault_is_found_and_shown(tmp_path: Path) -> None:
    write(
        tmp_path,
        '"""What a date is."""\n\n\ndef read_told(x: int) -> int:\n    """Return a number (CX6)."""\n'
        "    return x  # so it is told\n",
    )
    failed = run(tmp_path, "--quiet")
    assert failed.returncode == 1
    assert "proxy/groundwire/plain: texts over a limit" in failed.stdout
    assert "proxy/groundwire/plain: names over a limit" in failed.stdout
    shown = run(tmp_path, "--show", "proxy/groundwire/plain").stdout
    assert "one.py:1: What a date is." in shown
    assert "[told]" in shown
    assert "one.py:5: CX6" in shown
    assert "one.py:4: read_told" in shown


def test_each_page_is_measured_alone(tmp_path: Path) -> None:
    write(tmp_path, '"""Parse dates."""\n')
    (tmp_path / "docs/decisions").mkdir(parents=True)
    for name in ("docs/plain.md", "docs/wire.md", "docs/decisions/0001-x.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("A fee is a number.\n" * 400, encoding="utf-8")
    idiom = "The fee stands beside it.\n\nThe number bears nothing.\n"
    for name in ("docs/wire.md", "docs/decisions/0001-x.md", "CHANGELOG.md"):
        (tmp_path / name).write_text(idiom, encoding="utf-8")
    failed = run(tmp_path, "--quiet")
    assert failed.stdout.splitlines() == [
        f"{name}: texts over a limit (--show {name} lists them)"
        for name in ("CHANGELOG.md", "docs/decisions/0001-x.md", "docs/wire.md")
    ]


def test_comments_of_settings_are_measured(tmp_path: Path) -> None:
    write(tmp_path, '"""Parse dates."""\n')
    settings = "# Settings.\nfee:\n  on: true  # whether it is told\n  url: 'x#y'\n  at: 1  # a number\n"
    (tmp_path / "config.yaml").write_text(settings, encoding="utf-8")
    failed = run(tmp_path, "--quiet")
    assert failed.stdout == "config.yaml: texts over a limit (--show config.yaml lists them)\n"
    shown = run(tmp_path, "--show", "config.yaml").stdout
    assert "config.yaml:3: whether it is told" in shown
