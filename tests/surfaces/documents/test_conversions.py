"""Conversions by LibreOffice: all formats by one instance, and hostile documents that reach nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hostile_documents import open_document, pixel, remote_documents
from office_files import need_office, parts

from callboard.surfaces.documents import _libre_office
from callboard.surfaces.documents._libre_office import LibreOffice, OfficeFailedError, has_libre_office
from callboard.surfaces.documents._office import OLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Call

TABLE = (
    '<table:table table:name="one"><table:table-row><table:table-cell office:value-type="string"><text:p>hello</text:p>'
    "</table:table-cell></table:table-row></table:table>"
)
SLIDE = (
    '<draw:page draw:name="one"><draw:frame svg:width="9cm" svg:height="3cm"><draw:text-box><text:p>hello</text:p>'
    "</draw:text-box></draw:frame></draw:page>"
)
WORDS = {"docx": ("text", "<text:p>hello</text:p>"), "xlsx": ("spreadsheet", TABLE), "pptx": ("presentation", SLIDE)}
"""A document of OpenDocument for each present format."""
OLD_FORMATS = {
    ".doc": ("docx", "MS Word 97"),
    ".odt": ("docx", ""),
    ".rtf": ("docx", "Rich Text Format"),
    ".xls": ("xlsx", "MS Excel 97"),
    ".ods": ("xlsx", ""),
    ".ppt": ("pptx", "MS PowerPoint 97"),
    ".odp": ("pptx", ""),
}
"""The present format of an old one, and LibreOffice's filter that writes the old one."""
ISOLATE = "    isolate(Path(folder), program)"
EMPTY_PROFILE = '<oor:items xmlns:oor="http://openoffice.org/2001/registry"/>'


@pytest.fixture(scope="module")
def real() -> Iterator[LibreOffice]:
    """Give a LibreOffice."""
    need_office(".odt")
    office = LibreOffice()
    office.open()
    yield office
    office.close()


def saved_as(folder: Path, data: bytes, suffix: str, output_filter: str) -> bytes:
    """Save a document of OpenDocument in an old format."""
    (folder / "old.odf").write_bytes(data)
    program = ("soffice", f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to")
    target = f"{suffix[1:]}:{output_filter}"
    subprocess.run([*program, target, "--outdir", folder, folder / "old.odf"], check=True, capture_output=True)
    return (folder / f"old{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", OLD_FORMATS)
def test_old_format_is_converted_twice_by_one_instance(real: LibreOffice, tmp_path: Path, suffix: str) -> None:
    need_office(suffix)
    to, output_filter = OLD_FORMATS[suffix]
    document = open_document(*WORDS[to])
    if output_filter:
        document = saved_as(tmp_path, document, suffix, output_filter)
    real.convert([document], suffix, to)
    assert real._holder is not None
    first_process = real._holder.pid
    converted, pdf = real.convert([document], suffix, to), real.convert([document], suffix, "pdf")
    assert real._holder.pid == first_process
    assert converted[0] is not None
    assert any(b"hello" in part for part in parts(converted[0]).values())
    assert pdf[0] is not None
    assert pdf[0].startswith(b"%PDF-")


def test_several_documents_are_converted_at_once(real: LibreOffice) -> None:
    documents = [open_document("text", f"<text:p>{word}</text:p>") for word in ("one", "two")]
    first, broken, second = real.convert([documents[0], b"PK\x03\x04", documents[1]], ".odt", "docx")
    assert broken is None or b"one" not in broken
    assert first is not None
    assert second is not None
    assert b"one" in parts(first)["word/document.xml"]
    assert b"two" in parts(second)["word/document.xml"]


@pytest.mark.parametrize("suffix", [".doc", ".docx", ".xls", ".xlsx", ".odt", ".rtf", ".ppt", ".odp"])
def test_web_page_under_the_name_of_a_document_is_not_read(suffix: str) -> None:
    need_office(suffix)
    office = LibreOffice()
    page = b'<html><img src="http://127.0.0.1/x.png">'
    to = {".xls": "xlsx", ".xlsx": "xlsx", ".ppt": "pptx", ".odp": "pptx"}.get(suffix, "docx")
    assert office.convert([page], suffix, to) == [None]
    assert office._holder is None


def test_lacking_part_of_libreoffice_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "soffice").touch()
    (tmp_path / "libsclo.so").touch()
    monkeypatch.setattr(_libre_office.shutil, "which", lambda _: str(tmp_path / "soffice"))
    monkeypatch.setattr(_libre_office, "lacking_office", _libre_office.lacking_office.__wrapped__)
    assert has_libre_office()
    assert not has_libre_office(".odp")
    with pytest.raises(OfficeFailedError, match="LibreOffice is installed without its part Writer"):
        LibreOffice().convert([OLE], ".doc", "docx")
    monkeypatch.setattr(_libre_office.shutil, "which", lambda _: None)
    with pytest.raises(OfficeFailedError, match="there is no program soffice"):
        LibreOffice().convert([OLE], ".doc", "docx")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LibreOffice]:
    """Give a LibreOffice in this network, as where the kernel allows no namespace."""
    need_office(".odt")
    program = _libre_office._HOLDER.read_text(encoding="utf-8")
    assert program.count(ISOLATE) == 1
    holder = tmp_path / "holder.py"
    holder.write_text(program.replace(ISOLATE, "    pass"), encoding="utf-8")
    monkeypatch.setattr(_libre_office, "_HOLDER", holder)
    office = LibreOffice()
    office.open()
    yield office
    office.close()


@pytest.mark.parametrize("isolation", ["real", "own"], ids=["namespace", "profile"])
def test_document_reaches_no_network(
    request: pytest.FixtureRequest, listener: tuple[int, list[bytes]], isolation: str
) -> None:
    office, (port, connections) = request.getfixturevalue(isolation), listener
    for scheme in ("http", "https", "ftp", "vnd.sun.star.webdav", "smb"):
        for name, data in remote_documents(f"{scheme}://127.0.0.1:{port}").items():
            suffix = f".{name.partition('.')[2]}"
            if has_libre_office(suffix):
                (pdf,) = office.convert([data], suffix, "pdf")
                assert pdf is not None
    assert connections == []


def test_document_shows_no_picture_of_this_machine(real: LibreOffice, tmp_path: Path) -> None:
    for suffix, to in ((".rtf", "docx"), (".ods", "xlsx")):
        (tmp_path / "picture.png").write_bytes(pixel())
        (name,) = (name for name in remote_documents("") if name.endswith(suffix))
        (converted,) = real.convert([remote_documents(tmp_path.as_uri())[name]], suffix, to)
        if hides_no_files(real):
            pytest.skip("this user may not make a namespace of mounts")
        assert converted is not None
        assert pixel() not in parts(converted).values()


def hides_no_files(office: LibreOffice) -> bool:
    """Return whether the operating system lets this user hide no files."""
    assert office._holder is not None
    space = Path(f"/proc/{office._holder.pid}/ns/mnt").readlink()
    return space == Path("/proc/self/ns/mnt").readlink()


def test_same_documents_reach_a_network_without_the_profile(
    own: LibreOffice, listener: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_libre_office, "profile", lambda *_: EMPTY_PROFILE)
    port, connections = listener
    for name in ("letter.docx", "book.xlsx", "text.odt", "sheet.ods"):
        data = remote_documents(f"http://127.0.0.1:{port}/{name}")[name]
        own.convert([data], f".{name.partition('.')[2]}", "pdf")
        assert any(f"/{name}/".encode() in connection for connection in connections), name


def test_workbook_that_is_saved_as_pdf_reaches_no_network(
    workspace: Path, call: Call, listener: tuple[int, list[bytes]]
) -> None:
    need_office(".xlsx")
    port, connections = listener
    (workspace / "book.xlsx").write_bytes(remote_documents(f"http://127.0.0.1:{port}")["book.xlsx"])
    call("save_as", "book.xlsx", path="book.pdf")
    assert (workspace / "book.pdf").read_bytes().startswith(b"%PDF-")
    assert connections == []
