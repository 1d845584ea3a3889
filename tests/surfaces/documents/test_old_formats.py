"""Files of older formats: read as converted copies, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import docx
import openpyxl
import pytest
from hostile_documents import open_document
from office_files import letter, need_office

from callboard.actors.runtime import Lease
from callboard.errors import ToolError
from callboard.surfaces import EffectGuard
from callboard.surfaces.documents import _libre_office, _workspace
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE

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
    with pytest.raises(ToolError, match="not what its name says; it is unchanged"):
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
        with pytest.raises(ToolError, match="can't be read: it is damaged, protected, or not what its name says"):
            call("read_range", name)


def test_lack_of_libreoffice_gives_a_way_out(
    workspace: Path, surface: DocumentSurface, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workspace, "lacking_office", lambda _: "LibreOffice is not installed")
    (workspace / "letter.rtf").write_bytes(RICH_TEXT)
    with pytest.raises(ToolError, match=r"LibreOffice is not installed; save it as \.docx"):
        call("open_document", path="letter.rtf")
    assert surface.no_target("letter.rtf").endswith("save it as .docx")
    assert not any(target.id == "letter.rtf" for target in surface.targets())
