"""Files of older formats: read as converted copies, never changed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import docx
import openpyxl
import pytest
from hostile_documents import open_document
from office_files import letter, need_office
from old_workbooks import excel_95, excel_sheet, ole_file

from callboard.actors.runtime import Lease
from callboard.errors import ToolError
from callboard.surfaces import EffectGuard
from callboard.surfaces.documents import _libre_office, _workspace
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE
from callboard.surfaces.documents._real_format import real_format

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

RICH_TEXT = rb"{\rtf1\ansi Dear Ada,\par Yours\par}"
SHEET = (
    '<table:table table:name="Costs"><table:table-row><table:table-cell office:value-type="string"><text:p>rent'
    '</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="400"/></table:table-row>'
    "</table:table>"
)


@pytest.fixture
def old(workspace: Path) -> Path:
    """Give a workspace with a letter and a workbook of older formats."""
    need_office(".odt")
    (workspace / "letter.rtf").write_bytes(RICH_TEXT)
    (workspace / "costs.ods").write_bytes(open_document("spreadsheet", SHEET))
    return workspace


def window(surface: DocumentSurface, name: str) -> dict[str, object]:
    (target,) = (target for target in surface.targets() if target.id == name)
    return dict(surface.observe(target).window)


def test_old_formats_are_windows_that_are_read(old: Path, surface: DocumentSurface, call: Call) -> None:
    assert [target.id for target in surface.targets()][:2] == ["costs.ods", "letter.rtf"]
    assert "Dear Ada," in call("read_text", "letter.rtf")["text"]
    assert call("read_range", "costs.ods")["values"] == [["rent", 400]]
    info = window(surface, "letter.rtf")
    assert (info["application"], info["size"]) == ("Word", len(RICH_TEXT))
    assert info["read_through"] == "a .docx copy that LibreOffice made; it may lack something"
    assert (old / "letter.rtf").read_bytes() == RICH_TEXT


def test_old_presentation_is_read_and_saved_as_a_present_one(workspace: Path, call: Call) -> None:
    need_office(".odp")
    slide = (
        '<draw:page draw:name="one"><draw:frame svg:width="9cm" svg:height="2cm"><draw:text-box>'
        "<text:p>Quarter</text:p></draw:text-box></draw:frame></draw:page>"
    )
    (workspace / "plan.odp").write_bytes(open_document("presentation", slide))
    assert "Quarter" in call("read_text", "plan.odp")["text"]
    call("save_as", "plan.odp", path="plan.pptx")
    assert "Quarter" in call("read_text", "plan.pptx")["text"]
    guard = EffectGuard(Lease("here", 1))
    assert call("get_picture", "plan.odp", guard, control_id="slide-1")["control_id"] == "slide-1"
    assert len(guard.pictures) == 1


def test_edit_of_an_old_format_is_refused_with_the_way(old: Path, surface: DocumentSurface, call: Call) -> None:
    assert "save_as makes 'costs.xlsx'" in str(window(surface, "costs.ods")["not_writable_because"])
    with pytest.raises(ToolError, match=r"save_as makes 'letter\.docx', which can be edited"):
        call("insert_paragraph", "letter.rtf", text="x")
    assert sorted(path.name for path in old.iterdir()) == ["costs.ods", "letter.rtf"]


def test_present_copy_is_edited_and_the_original_stays(old: Path, call: Call) -> None:
    assert call("save_as", "letter.rtf", path="letter.docx").id == "letter.docx"
    call("insert_paragraph", "letter.docx", text="P.S.")
    assert [paragraph.text for paragraph in docx.Document(str(old / "letter.docx")).paragraphs][-1] == "P.S."
    call("save_as", "costs.ods", path="new.xlsx")
    call("write_range", "new.xlsx", values=[[500]], cell="B1")
    assert openpyxl.load_workbook(old / "new.xlsx").active["B1"].value == 500
    call("save_as", "letter.rtf", path="letter.pdf")
    assert (old / "letter.pdf").read_bytes().startswith(b"%PDF-")
    assert (old / "letter.rtf").read_bytes() == RICH_TEXT


@pytest.mark.parametrize("path", ["copy.rtf", "copy.doc", "copy.xlsx"])
def test_old_format_is_not_written(old: Path, call: Call, path: str) -> None:
    with pytest.raises(ToolError, match="is refused"):
        call("save_as", "letter.rtf", path=path)
    assert not (old / path).exists()


@pytest.mark.parametrize("name", ["new.doc", "new.ods"])
def test_new_document_of_an_old_format_is_refused(workspace: Path, call: Call, name: str) -> None:
    with pytest.raises(ToolError, match="a new document is in the present format"):
        call("create_document", path=name)
    assert list(workspace.iterdir()) == []


def test_copy_is_made_once_for_each_version(old: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    conversions = []

    def convert(files: list[bytes], *_: object) -> list[bytes]:
        conversions.append(files)
        return [letter()]

    monkeypatch.setattr(_workspace.LIBRE_OFFICE, "convert", convert)
    for text in (b"one", b"one", b"two"):
        (old / "letter.rtf").write_bytes(b"{\\rtf1 " + text + b"}")
        call("read_text", "letter.rtf")
    assert len(conversions) == 2


def test_file_of_another_format_than_its_name_is_not_read(workspace: Path, call: Call) -> None:
    need_office(".doc")
    (workspace / "letter.doc").write_bytes(b"<html><img src=http://127.0.0.1/x.png>")
    with pytest.raises(
        ToolError, match=r"it is a web page, despite its name; open it in Office, and save it as \.docx"
    ):
        call("read_text", "letter.doc")


def test_damaged_old_workbook_is_not_read_as_lines_of_text(
    workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_office(".xls")
    monkeypatch.setitem(_libre_office._FILTERS, ("calc", "xls"), "MS Excel 97")
    (data,) = LIBRE_OFFICE.convert([open_document("spreadsheet", SHEET)], ".ods", "xls")
    assert data is not None
    (workspace / "good.xls").write_bytes(data)
    (workspace / "cut.xls").write_bytes(data[: len(data) // 2])
    (workspace / "zeros.xls").write_bytes(data[:600] + bytes(len(data) - 600))
    assert call("read_range", "good.xls")["values"] == [["rent", 400]]
    for name in ("cut.xls", "zeros.xls"):
        with pytest.raises(ToolError, match=r"is damaged.*it is unchanged"):
            call("read_range", name)


@pytest.mark.parametrize("suffix", [".doc", ".ppt", ".rtf", ".xls"])
@pytest.mark.parametrize("size", [8, 100, 600, 0.5, 0.9])
def test_cut_file_of_office_97_is_called_damaged(workspace: Path, call: Call, suffix: str, size: float) -> None:
    need_office(".doc")
    data = ole_file("Book of Letters".encode("utf-16-le") * 500, "WordDocument")
    streams = data[1024:1536]  # their list is moved to the end, where Word puts it
    data = data[:48] + struct.pack("<I", len(data) // 512 - 1) + data[52:1024] + bytes(512) + data[1536:] + streams
    cut = data[: int(size if size > 1 else len(data) * size)]
    (workspace / f"letter{suffix}").write_bytes(cut)
    with pytest.raises(ToolError, match=r"is damaged and can't be opened \(its end is missing\); it is unchanged"):
        call("read_text" if suffix != ".xls" else "read_range", f"letter{suffix}")
    assert (workspace / f"letter{suffix}").read_bytes() == cut


def test_texts_of_a_container_do_not_tell_its_format() -> None:
    text = "A Book about the Workbook, and the PowerPoint Document".encode("utf-16-le")
    assert real_format(ole_file(text, "Other"), ".doc") is None
    word = real_format(ole_file(text, "WordDocument"), ".ppt")
    assert word is not None
    assert word.suffix == ".doc"


def test_lack_of_libreoffice_gives_a_way_out(
    workspace: Path, surface: DocumentSurface, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workspace, "lacking_office", lambda _: "LibreOffice is not installed")
    (workspace / "letter.rtf").write_bytes(RICH_TEXT)
    with pytest.raises(ToolError, match=r"LibreOffice is not installed; save it as \.docx"):
        call("open_document", path="letter.rtf")
    assert surface.no_target("letter.rtf").endswith("save it as .docx")
    assert not any(target.id == "letter.rtf" for target in surface.targets())


EARLY = {
    "Excel 95": ole_file(excel_95("Büro".encode("cp1252")), "Book"),
    "Excel 95 without a container": excel_95("Büro".encode("cp1252")),
    "Excel 4": excel_sheet(4, "Büro".encode("cp1252")),
    "Excel 3": excel_sheet(3, "Büro".encode("cp1252")),
    "Excel 2": excel_sheet(2, "Büro".encode("cp1252")),
}


@pytest.mark.parametrize("data", EARLY.values(), ids=EARLY)
def test_workbook_of_excel_95_or_before_is_read_and_saved(
    workspace: Path, surface: DocumentSurface, call: Call, data: bytes
) -> None:
    need_office(".xls")
    (workspace / "costs.xls").write_bytes(data)
    assert call("read_range", "costs.xls")["values"] == [["Büro", 400]]
    assert window(surface, "costs.xls")["writable"] is False
    call("save_as", "costs.xls", path="costs.xlsx")
    call("write_range", "costs.xlsx", values=[[500]], cell="B1")
    sheet = openpyxl.load_workbook(workspace / "costs.xlsx").active
    assert [sheet["A1"].value, sheet["B1"].value] == ["Büro", 500]
    assert (workspace / "costs.xls").read_bytes() == data


@pytest.mark.parametrize("name", EARLY)
def test_cut_workbook_of_excel_95_or_before_is_refused(workspace: Path, call: Call, name: str) -> None:
    need_office(".xls")
    data = EARLY[name]
    for size in (len(data) // 2, len(data) - 4 if data[:1] == b"\t" else 1_000):
        (workspace / "costs.xls").write_bytes(data[:size])
        with pytest.raises(ToolError, match=r"'costs.xls' (is damaged|can't be read: it is damaged).*it is unchanged"):
            call("read_range", "costs.xls")


def test_present_workbook_under_an_old_name_is_read(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    need_office(".xls")
    book = openpyxl.Workbook()
    book.active["A1"] = "rent"
    book.save(workspace / "costs.xlsx")
    (workspace / "costs.xlsx").rename(workspace / "costs.xls")
    assert call("read_range", "costs.xls")["values"] == [["rent"]]
    assert window(surface, "costs.xls")["read_through"] == (
        "its contents, which are those of a .xlsx file despite its name"
    )
    call("save_as", "costs.xls", path="new.xlsx")
    assert openpyxl.load_workbook(workspace / "new.xlsx").active["A1"].value == "rent"


def test_rich_text_under_the_name_of_word_is_read(workspace: Path, call: Call) -> None:
    need_office(".doc")
    (workspace / "letter.doc").write_bytes(RICH_TEXT)
    assert "Dear Ada," in call("read_text", "letter.doc")["text"]


XML = b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>'
OTHERS = {
    "page.xls": (b"<html><table><tr><td>rent</table>", r"it is a web page, .*save it as \.xlsx"),
    "list.xls": (b"rent;400\r\ngas;20\r\n", r"it is a plain text, despite its name; rename it to end with \.csv"),
    "wide.xls": ("\ufeffrent\t400".encode("utf-16-le"), r"rename it to end with \.csv"),
    "xml.xls": (XML, r"it is a file of Office 2003 in XML, .*save it as \.xlsx"),
    "print.xls": (b"%PDF-1.4 x", r"it is a PDF document, .*rename it to end with \.pdf"),
    "archive.doc": (b"MIME-Version: 1.0\r\n\r\nx", r"it is a web archive, .*save it as \.docx"),
    "letter.xls": (ole_file(b"x", "WordDocument"), r"it is a document of Word 97 or before, .* end with \.doc;"),
    "mail.doc": (ole_file(b"x", "__properties_version1.0"), r"it is a message of Outlook, despite its name"),
    "secret.xls": (ole_file(b"x", "EncryptedPackage"), r"is protected with a password; it was not opened"),
    "talk.ppt": (ole_file(b"x", "PP40"), r"it is a presentation of PowerPoint 95; open it in Office"),
    "two.doc": (b"\xdb\xa5\x2d\0" + bytes(600), r"it is a document of Word 2 or before; open it in Office"),
    "empty.xls": (b"", r"it is empty"),
    "old.xlsx": (EARLY["Excel 95"], r"it is a workbook of Excel 97 or before, .*rename it to end with \.xls;"),
    "text.xlsx": (b"rent;400\r\n", r"it is a plain text, .*rename it to end with \.csv"),
    "page.docx": (b"<!DOCTYPE html><p>x", r"it is a web page, .*save it as \.docx"),
    "rich.docx": (RICH_TEXT, r"it is a rich text \(RTF\), .*rename it to end with \.rtf"),
    "noise.ppt": (bytes(range(256)) * 4, r"it is damaged, protected, or not what its name says"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_file_that_is_not_what_its_name_says_tells_what_it_is(workspace: Path, call: Call, name: str) -> None:
    need_office(".xls")
    data, message = OTHERS[name]
    (workspace / name).write_bytes(data)
    with pytest.raises(ToolError, match=message):
        call("read_range" if name.endswith(("xls", "xlsx")) else "read_text", name)
    assert (workspace / name).read_bytes() == data
