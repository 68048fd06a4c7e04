"""Read the text of files: UTF-8, and PDF and DOCX with the libraries of the extra `documents`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from groundwire.errors import GroundwireError
from groundwire.extras import install_command, is_installed


def read_document(path: Path) -> str:
    """Return the text of a file. Raises OSError, or GroundwireError for a file without text that can be read."""
    read = _READERS.get(path.suffix.lower())
    if read is None:
        return _text(path)
    if not is_installed("documents"):
        raise GroundwireError(f"{path}: it needs {install_command('documents')}")
    with path.open("rb"):  # a missing file is an OSError, whatever the library raises for it
        pass
    try:
        text = read(path)
    except GroundwireError:
        raise
    except Exception as error:  # of many kinds, for broken files
        raise GroundwireError(f"{path}: cannot be read as {path.suffix[1:].upper()} ({error})") from error
    if not text.strip():
        raise GroundwireError(f"{path}: holds no text; a scan must be recognised (OCR) first")
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise GroundwireError(f"{path}: is no text in UTF-8") from error


def _pdf(path: Path) -> str:
    from pypdf import PdfReader

    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise GroundwireError(f"{path}: is encrypted")
    return "\n\n".join(page.extract_text().strip() for page in reader.pages)


def _docx(path: Path) -> str:
    import docx
    from docx.table import Table

    blocks = docx.Document(str(path)).iter_inner_content()
    return "\n\n".join("\n".join(_rows(block)) if isinstance(block, Table) else block.text for block in blocks)


def _rows(table: Any) -> Iterator[str]:
    """Yield a table as Markdown, its first row as the header."""
    for number, row in enumerate(table.rows):
        cells = [" ".join(cell.text.split()).replace("|", "\\|") for cell in row.cells]
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield "|" + " --- |" * len(cells)


_READERS: dict[str, Callable[[Path], str]] = {".pdf": _pdf, ".docx": _docx}
