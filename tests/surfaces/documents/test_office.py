"""Refusals before writing: damage, passwords, bombs, content that a library loses."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import changed, letter, parts, rewritten, with_part
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface, _office
from callboard.surfaces.documents._workspace import Snapshot, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

STRICT = b"purl.oclc.org/ooxml/"
SHAPE = b"<absoluteAnchor><sp/></absoluteAnchor></wsDr>"
EXTENSION = b"<extLst><ext uri='x'/></extLst><plotVisOnly"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def workbook() -> bytes:
    """Make a workbook with a table of numbers and a chart."""
    book = openpyxl.Workbook()
    for row in (["Month", "Revenue"], ["Jan", 1], ["Feb", 2]):
        book.active.append(row)
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    book.active.add_chart(chart, "E2")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def in_sheet(xml: bytes) -> Callable[[dict[str, bytes]], None]:
    """Add something to the end of the first sheet."""
    sheet = "xl/worksheets/sheet1.xml"
    return lambda parts: parts.update({sheet: parts[sheet].replace(b"</worksheet>", xml + b"</worksheet>")})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04 not a zip", "damaged"),
        (workbook()[:-200], "damaged"),
        (OLE + b"..." + "EncryptedPackage".encode("utf-16-le"), "password"),
        (OLE + b"Workbook", "Office 97"),
        (letter(), r"it is a Word document, despite its name; rename it to end with \.docx; it is unchanged"),
        (changed(workbook(), lambda parts: parts.pop("[Content_Types].xml")), "damaged"),
        (changed(workbook(), lambda parts: parts.update({"xl/workbook.xml": b"<broken"})), "damaged"),
        (changed(workbook(), with_part("xl/x.xml", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')), "entities"),
        (changed(workbook(), rewritten("xl/workbook.xml", b"schemas.openxmlformats.org/", STRICT)), "Strict"),
    ],
)  # fmt: skip
def test_a_damaged_or_protected_file_gives_a_clear_error_and_is_unchanged(
    workspace: Path, call: Call, data: bytes, why: str
) -> None:
    path = workspace / "book.xlsx"
    path.write_bytes(data)
    for name, arguments in (("read_range", {}), ("write_range", {"values": [[1]]}), ("get_controls", {})):
        with pytest.raises(ToolError, match=why):
            call(name, "book.xlsx", **arguments)
    with pytest.raises(ToolError, match=why):
        call("open_document", path="book.xlsx")
    assert path.read_bytes() == data


def test_a_zip_that_is_encrypted_is_protected_with_a_password(workspace: Path, call: Call) -> None:
    data = bytearray(letter())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    (workspace / "a.docx").write_bytes(bytes(data))
    with pytest.raises(ToolError, match="password"):
        call("read_text", "a.docx")


def test_a_file_larger_than_allowed_is_not_read(workspace: Path) -> None:
    (workspace / "book.xlsx").write_bytes(workbook())
    surface = DocumentSurface(workspace, max_bytes=1000)
    with pytest.raises(ToolError, match="too large"):
        surface.open_document("book.xlsx")


def test_a_file_that_unpacks_to_more_than_allowed_is_not_read(workspace: Path) -> None:
    (workspace / "book.xlsx").write_bytes(changed(workbook(), with_part("xl/big.xml", b" " * 1_000_000)))
    surface = DocumentSurface(workspace, max_bytes=100_000)
    with pytest.raises(ToolError, match="unpacks to"):
        surface.open_document("book.xlsx")


@settings(max_examples=40)
@given(
    suffix=st.sampled_from([".docx", ".xlsx"]),
    place=st.integers(0, 10_000),
    noise=st.binary(min_size=1, max_size=20),
    repack=st.booleans(),
)
def test_damage_anywhere_gives_a_clear_error_or_none(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, place: int, noise: bytes, *, repack: bool
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    data = letter() if suffix == ".docx" else workbook()

    def spoil(parts: dict[str, bytes]) -> None:
        name = sorted(parts)[place % len(parts)]
        at = place % max(1, len(parts[name]))
        parts[name] = parts[name][:at] + noise + parts[name][at + len(noise) :]

    at = place % len(data)
    spoilt = changed(data, spoil) if repack else data[:at] + noise + data[at + len(noise) :]
    (folder / f"a{suffix}").write_bytes(spoilt)
    surface = DocumentSurface(folder)
    try:
        surface.get_controls(f"a{suffix}")
        surface.get_tree(f"a{suffix}")
    except ToolError as error:
        assert f"a{suffix}" in str(error)  # noqa: PT017 - an error may, and need not, come


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (with_part("xl/vbaProject.bin"), "xl/vbaProject.bin"),
        (with_part("xl/pivotTables/pivotTable1.xml"), "xl/pivotTables/pivotTable1.xml"),
        (with_part("xl/slicers/slicer1.xml"), "xl/slicers/slicer1.xml"),
        (with_part("xl/ctrlProps/ctrlProp1.xml"), "xl/ctrlProps/ctrlProp1.xml"),
        (with_part("xl/connections.xml"), "xl/connections.xml"),
        (with_part("xl/threadedComments/threadedComment1.xml"), "xl/threadedComments/threadedComment1.xml"),
        (with_part("xl/embeddings/oleObject1.bin"), "xl/embeddings/oleObject1.bin"),
        (with_part("xl/media/image1.emf"), "xl/media/image1.emf"),
        (with_part("xl/charts/chartEx1.xml"), "xl/charts/chartEx1.xml"),
        (with_part("xl/anything/new.xml", b"<not-even-xml"), "xl/anything/new.xml"),
        (with_part("docMetadata/LabelInfo.xml"), "docMetadata/LabelInfo.xml"),
        (rewritten("xl/drawings/drawing1.xml", b"</wsDr>", SHAPE), "xl/drawings/drawing1.xml"),
        (rewritten("xl/charts/chart1.xml", b"<plotVisOnly", EXTENSION), "xl/charts/chart1.xml"),
    ],
)  # fmt: skip
def test_an_edit_keeps_parts_that_it_does_not_understand(
    workspace: Path, call: Call, change: Callable[[dict[str, bytes]], None], part: str
) -> None:
    path = workspace / "book.xlsx"
    data = changed(workbook(), change)
    path.write_bytes(data)
    assert call("get_window_info", "book.xlsx")["not_writable_because"] == ""
    call("write_range", "book.xlsx", values=[["Jan", 5]], cell="A2")
    assert call("read_range", "book.xlsx")["values"][1] == ["Jan", 5]
    before, after = parts(data), parts(path.read_bytes())
    assert after[part] == before[part]
    assert [name for name in before if before[name] != after.get(name)] == ["xl/worksheets/sheet1.xml"]


@pytest.mark.parametrize(
    "xml",
    [
        b"<oleObjects/>",
        b'<legacyDrawingHF xmlns:r="r" r:id="rId9"/>',
        b'<extLst><ext uri="{05C60535-1F16-4fd2-B633-F4F36F0B64E0}"/></extLst>',
    ],
)
def test_an_edit_keeps_elements_of_a_sheet_that_it_does_not_understand(workspace: Path, call: Call, xml: bytes) -> None:
    path = workspace / "book.xlsx"
    path.write_bytes(changed(workbook(), in_sheet(xml)))
    call("write_range", "book.xlsx", values=[[1]])
    assert xml in parts(path.read_bytes())["xl/worksheets/sheet1.xml"]


@pytest.mark.parametrize(
    ("part", "why"), [("_xmlsignatures/sig1.xml", "digital signature"), ("xl/revisions/a.xml", "tracks changes")]
)
def test_a_workbook_that_an_edit_would_make_untrue_is_read_but_not_written(
    workspace: Path, call: Call, part: str, why: str
) -> None:
    path = workspace / "book.xlsx"
    data = changed(workbook(), with_part(part))
    path.write_bytes(data)
    assert call("read_range", "book.xlsx")["values"][1] == ["Jan", 1]
    assert why in call("get_window_info", "book.xlsx")["not_writable_because"]
    with pytest.raises(ToolError, match=why):
        call("write_range", "book.xlsx", values=[[1]])
    assert path.read_bytes() == data


def test_a_workbook_of_openpyxl_loses_nothing(workspace: Path, call: Call) -> None:
    (workspace / "book.xlsx").write_bytes(workbook())
    assert call("get_window_info", "book.xlsx")["not_writable_because"] == ""


def test_a_note_is_kept_with_its_text(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.active["A1"].comment = Comment("why one?", "Ada")
    book.save(path)
    call("write_range", "book.xlsx", values=[[2]])
    assert openpyxl.load_workbook(path).active["A1"].comment.text == "why one?"


def test_a_document_with_a_signature_is_read_but_not_written(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    data = changed(letter(), with_part("_xmlsignatures/sig1.xml"))
    path.write_bytes(data)
    assert "Dear Ada," in call("read_text", "a.docx")["text"]
    with pytest.raises(ToolError, match="digital signature"):
        call("insert_paragraph", "a.docx", text="x")
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("error", "why", "damaged"),
    [
        (zipfile.BadZipFile("bad magic"), "bad magic", True),
        (SyntaxError("mismatched tag"), "mismatched tag", True),
        (TimeoutError("took too long"), "took too long", False),
        (MemoryError(), "MemoryError", False),
        (KeyError("none"), "none", False),
    ],
)
def test_only_malformed_bytes_are_called_damaged(error: Exception, why: str, *, damaged: bool) -> None:
    text = str(_office.damaged("a.docx", error))
    assert why in text
    assert ("damaged" in text) is damaged
    assert ("may be in order" in text) is not damaged


def test_a_document_with_macros_in_spite_of_its_name_is_refused(workspace: Path, call: Call) -> None:
    def spoil(parts: dict[str, bytes]) -> None:
        types = parts["[Content_Types].xml"]
        main = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
        parts["[Content_Types].xml"] = types.replace(main, b"application/vnd.ms-word.document.macroEnabled.main+xml")
        parts["[Content_Types].xml"] += b"<!-- wordprocessingml. -->"

    (workspace / "a.docx").write_bytes(changed(letter(), spoil))
    with pytest.raises(ToolError, match="macros"):
        call("read_text", "a.docx")


def test_a_document_that_is_protected_against_editing_is_not_written(workspace: Path, call: Call) -> None:
    def protect(parts: dict[str, bytes]) -> None:
        settings_ = parts["word/settings.xml"]
        mark = b'<w:documentProtection w:edit="readOnly" w:enforcement="1"/></w:settings>'
        parts["word/settings.xml"] = settings_.replace(b"</w:settings>", mark)

    (workspace / "a.docx").write_bytes(changed(letter(), protect))
    with pytest.raises(ToolError, match="protected against editing"):
        call("insert_paragraph", "a.docx", text="x")


def test_a_fingerprint_tells_two_states_apart(tmp_path: Path) -> None:
    first, second = (Snapshot("a.docx", tmp_path, data, fingerprint(data), 0.0, 0o644) for data in (b"a", b"b"))
    assert first.fingerprint != second.fingerprint
