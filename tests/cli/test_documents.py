"""Sources in PDF and DOCX, as `groundwire check` reads them."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from groundwire import documents
from groundwire.documents import read_document
from groundwire.errors import GroundwireError

LINES = ("Revenue was $4.2 million in 2023.", "The office is in Oslo.")


def pdf(*pages: str) -> bytes:
    """A PDF with a page for each text, its lines one below the other."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in text.splitlines())
        content = zlib.compress(f"BT /F1 12 Tf 72 700 Td {shown}ET".encode())
        page = f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * number} 0 R /MediaBox [0 0 612 792] "
        objects.append((page + "/Resources << /Font << /F1 3 0 R >> >> >>").encode())
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    body, offsets = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (
            size,
            table,
            size,
            len(body),
        )
    )


def test_the_pages_of_a_pdf_are_read_in_order(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "report.pdf").write_bytes(pdf(*LINES))
    assert read_document(tmp_path / "report.pdf").split("\n\n") == list(LINES)


def test_an_encrypted_pdf_is_an_error(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    (tmp_path / "plain.pdf").write_bytes(pdf(LINES[0]))
    writer = pypdf.PdfWriter(clone_from=tmp_path / "plain.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    with pytest.raises(GroundwireError, match=r"locked\.pdf: is encrypted"):
        read_document(tmp_path / "locked.pdf")


def test_a_scan_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    with pytest.raises(GroundwireError, match=r"scan\.pdf: holds no text"):
        read_document(tmp_path / "scan.pdf")


@pytest.mark.parametrize("name", ["broken.pdf", "broken.docx"])
def test_a_broken_file_is_an_error(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(GroundwireError, match=rf"{name}: cannot be read as (PDF|DOCX)"):
        read_document(tmp_path / name)


@pytest.mark.parametrize("name", ["missing.pdf", "missing.docx", "missing.txt"])
def test_a_missing_file_is_an_error_of_the_system(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / name)


def test_a_docx_keeps_the_order_of_paragraphs_and_tables(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Annual report", 1)
    document.add_paragraph(LINES[0])
    table = document.add_table(rows=2, cols=2)
    for at, text in enumerate(("Name", "Since", "Ida | Ole", "2019")):
        table.cell(at // 2, at % 2).text = text
    document.add_paragraph(LINES[1])
    document.save(str(tmp_path / "report.docx"))
    assert read_document(tmp_path / "report.docx").split("\n\n") == [
        "Annual report",
        LINES[0],
        "| Name | Since |\n| --- | --- |\n| Ida \\| Ole | 2019 |",
        LINES[1],
    ]


def test_without_the_extra_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "is_installed", lambda extra: False)
    with pytest.raises(GroundwireError, match=r"report\.pdf: it needs pip install 'groundwire\[documents\]'"):
        read_document(tmp_path / "report.pdf")


def test_other_binary_files_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "report.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(GroundwireError, match=r"report\.doc: is no text in UTF-8"):
        read_document(tmp_path / "report.doc")
