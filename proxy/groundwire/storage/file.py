"""Identify the file at a path, to detect that an open one was deleted or replaced."""

from __future__ import annotations

from pathlib import Path

Identity = tuple[int, int]


def identity(file: Path) -> Identity | None:
    """Return device and inode of the file at a path; None if there is none. Takes microseconds on a local disk."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
