"""Counts of changes between two versions of a document."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference

from callboard import Outcome, Settings, TaskResult
from callboard.actors.commands import contents_of, described_changes
from callboard.messages import SubtaskResult
from callboard.terminal._document_changes import FolderFiles, OldDocuments


def book(path: Path, edit: Callable[[Any], object] = lambda _book: None) -> Path:
    made = openpyxl.Workbook()
    for row in (["Name", "Price"], ["Screw", 2], ["Nut", 3]):
        made.active.append(row)
    made.active["C2"] = "=B2*2"
    edit(made)
    made.save(path)
    return path


def chart(made: Any) -> None:
    drawn = BarChart()
    drawn.add_data(Reference(made.active, min_col=2, min_row=1, max_row=3))
    made.active.add_chart(drawn, "E2")


def text(path: Path, *paragraphs: str, cells: tuple[str, ...] = ()) -> Path:
    made = docx.Document()
    for paragraph in paragraphs:
        made.add_paragraph(paragraph)
    if cells:
        table = made.add_table(1, len(cells))
        for cell, content in zip(table.rows[0].cells, cells, strict=True):
            cell.text = content
    made.save(str(path))
    return path


def ended(artifacts: Sequence[str], changed: Sequence[str], made: Sequence[str]) -> TaskResult:
    """Build the result of a task."""
    return TaskResult(
        task_id="t",
        outcome=Outcome.FINISHED,
        artifacts=tuple(artifacts),
        made=tuple(made),
        changed=tuple(changed),
    )


def described(before: Path, after: Path) -> str:
    return described_changes(contents_of(before), contents_of(after))


def test_cells_are_compared_by_value_and_formula(tmp_path: Path) -> None:
    def edit(made: Any) -> None:
        made.active["B2"], made.active["C2"], made.active["A9"], made.active["A3"] = 20, "=B2*3", "new", None

    assert described(book(tmp_path / "a.xlsx"), book(tmp_path / "b.xlsx", edit)) == "4 cells"


def test_charts_and_sheets_are_counted(tmp_path: Path) -> None:
    def edit(made: Any) -> None:
        chart(made)
        made.create_sheet("More")
        made.active.title = "Prices"

    before, after = book(tmp_path / "a.xlsx"), book(tmp_path / "b.xlsx", edit)
    assert described(before, after) == "1 new chart, 1 new sheet, 1 sheet renamed"
    assert described(after, before) == "1 chart removed, 1 sheet removed, 1 sheet renamed"


def test_formats_alone_change_no_values(tmp_path: Path) -> None:
    def edit(made: Any) -> None:
        made.active["B2"].number_format = "0.00"

    assert described(book(tmp_path / "a.xlsx"), book(tmp_path / "b.xlsx", edit)) == "no values changed"


def test_paragraphs_and_cells_of_a_text_are_counted(tmp_path: Path) -> None:
    before = text(tmp_path / "a.docx", "One", "Two", cells=("x", "y"))
    after = text(tmp_path / "b.docx", "One", "Second", "Third", cells=("x", "z"))
    assert described(before, after) == "2 paragraphs, 1 cell"


def test_a_new_document_is_counted_whole(tmp_path: Path) -> None:
    assert described_changes(None, contents_of(book(tmp_path / "a.xlsx", chart))) == "7 cells, 1 chart"
    made = text(tmp_path / "a.docx", "One", cells=("x",))
    assert described_changes(None, contents_of(made)) == "1 paragraph, 1 cell, 1 table"


def test_changed_slides_texts_notes_and_charts_are_counted(tmp_path):
    slide_decks = pytest.importorskip("slide_decks")
    before, after = tmp_path / "a.pptx", tmp_path / "b.pptx"
    before.write_bytes(slide_decks.sample_deck())
    made = slide_decks.pptx.Presentation(before)
    made.slides[0].shapes.title.text = "Plan"
    made.slides[2].shapes[1].table.cell(1, 1).text = "9"
    made.slides[3].notes_slide.notes_text_frame.text = "Costs rose."
    made.slides.add_slide(made.slide_layouts[0]).shapes.title.text = "End"
    made.save(after)
    assert described(before, after) == "2 paragraphs, 1 cell, 1 note, 1 new slide, 2 slides changed"
    assert described_changes(None, contents_of(before)).endswith("3 notes, 1 chart, 1 picture, 5 slides, 1 table")


def test_lines_of_a_text_file_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("a;b\n1;3\n4;5\n", encoding="utf-8")
    assert described(tmp_path / "a.csv", tmp_path / "b.csv") == "2 lines"


def test_a_shared_formula_that_is_written_out_is_no_change(tmp_path: Path) -> None:
    sheet = '<c r="A1"><f t="shared" si="0"/><v>1</v></c>'
    whole = book(tmp_path / "a.xlsx")
    for name, cell in (("b.xlsx", sheet), ("c.xlsx", sheet.replace('<f t="shared" si="0"/>', "<f>B1*2</f>"))):
        with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / name, "w") as copy:
            for entry in source.infolist():
                data = source.read(entry)
                if entry.filename == "xl/worksheets/sheet1.xml":
                    data = f'<worksheet><sheetData><row r="1">{cell}</row></sheetData></worksheet>'.encode()
                copy.writestr(entry, data)
    assert described(tmp_path / "b.xlsx", tmp_path / "c.xlsx") == "no values changed"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"xl/workbook.xml": b"<broken"},
        {"xl/workbook.xml": b'<workbook><sheet name="no id"/></workbook>'},
        {"xl/workbook.xml": b"<workbook/>", "xl/worksheets/a.xml": b'<w><c r="A1" t="s"><v>7</v></c></w>'},
        {"xl/workbook.xml": b"<workbook/>", "xl/worksheets/a.xml": b"<w><c><v>7</v></c></w>"},
    ],
)
def test_a_damaged_document_has_no_counts(tmp_path: Path, content: dict[str, bytes]) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    assert contents_of(tmp_path / "a.xlsx") is None


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\xff\xfe no text"])
def test_a_file_of_another_format_has_no_counts(tmp_path: Path, data: bytes) -> None:
    for name in ("a.xlsx", "a.docx", "a.csv"):
        (tmp_path / name).write_bytes(data)
    assert contents_of(tmp_path / "a.xlsx") is None
    assert contents_of(tmp_path / "a.docx") is None
    assert contents_of(tmp_path / "missing.xlsx") is None


def test_entities_are_not_resolved(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden", encoding="utf-8")
    entity = f'<!DOCTYPE a [<!ENTITY s SYSTEM "file://{tmp_path}/secret">]>'
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", f"{entity}<d><p><t>&s;</t></p></d>")
    found = contents_of(tmp_path / "a.docx")
    assert found is None or not any("hidden" in each for each in found.texts["paragraph"])


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<d>" + b" " * 200_000_000 + b"</d>")
    assert contents_of(tmp_path / "a.docx") is None


def test_files_that_existed_are_changed_and_others_made(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    book(tmp_path / "old" / "a.xlsx")
    names = [str(book(tmp_path / "new" / name, chart)) for name in ("a.xlsx", "b.xlsx")]
    result = ended(names, (*names, "memo:one"), made=names[1:])
    assert OldDocuments(originals={tmp_path / "new": tmp_path / "old"}).lines(result) == [
        ("changed", f"{names[0]} (1 new chart)"),
        ("made", f"{names[1]} (7 cells, 1 chart)"),
        ("called", "memo:one"),
    ]


def test_without_the_files_before_only_new_ones_are_counted(tmp_path: Path) -> None:
    names = [str(book(tmp_path / name)) for name in ("a.xlsx", "b.xlsx")]
    assert OldDocuments().lines(ended(names, names, made=names[1:])) == [
        ("changed", names[0]),
        ("made", f"{names[1]} (7 cells)"),
    ]


def subtask(address: str, changed: str, target: str = "") -> SubtaskResult:
    """Build the result of a subtask that changed its target."""
    outcome = Outcome.FINISHED
    return SubtaskResult(
        run_id="t~1", number=1, request="x", address=address, target=target, outcome=outcome, changed=(changed,)
    )


@pytest.mark.parametrize(
    ("done", "name"),
    [
        (subtask("app/libreoffice-calc/11082", "libreoffice-calc-11082", "Prices - Calc"), "Prices - Calc"),
        (subtask("app/libreoffice-calc/11082", "libreoffice-calc-11082"), "libreoffice-calc"),
        (subtask("app/memo/one", "memo:one"), "memo:one"),
        (subtask("mobile/emulator-5554", "emulator-5554", "Pixel 7"), "Pixel 7"),
    ],
)
def test_a_window_is_named_by_its_title_or_application(done: SubtaskResult, name: str) -> None:
    result = ended((), (*done.changed, "open_in_desktop", "mail.send"), ())
    lines = OldDocuments().lines(result.model_copy(update={"subtasks": (done,)}))
    assert lines == [("changed", name), ("called", "mail.send")]


def test_files_that_an_application_saved_are_found_in_a_copy(tmp_path: Path) -> None:
    place, original = tmp_path / "copy", tmp_path / "original"
    for folder in (place, original):
        (folder / "workspace" / "sub").mkdir(parents=True)
        for name in ("a.txt", "b.txt", "c.txt"):
            (folder / "workspace" / name).write_text("one\n", encoding="utf-8")
    settings = Settings.load(
        base=place, documents={"workspace": "workspace"}, journal={"path": "workspace/journal.db"}, shells={}
    )
    before = OldDocuments(originals={place: original}, files=FolderFiles.look(settings))
    work = place / "workspace"
    (work / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (work / "c.txt").unlink()
    book(work / "sub" / "report.xlsx", chart)
    for own in (".~lock.report.xlsx#", "journal.db-wal"):
        (work / own).touch()
    known = str(work / "b.txt")
    assert before.lines(ended((known,), (known,), ())) == [
        ("changed", f"{known} (no values changed)"),
        ("changed", f"{work / 'a.txt'} (1 line)"),
        ("removed", str(work / "c.txt")),
        ("made", f"{work / 'sub' / 'report.xlsx'} (7 cells, 1 chart)"),
    ]


def test_too_many_files_are_not_compared_and_not_all_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.load(base=tmp_path, documents={"workspace": "."})
    before = OldDocuments(files=FolderFiles.look(settings))
    for number in range(22):
        (tmp_path / f"{number}.txt").touch()
    assert before.lines(ended((), (), ()))[-1] == ("changed", "2 more files")
    monkeypatch.setattr("callboard.terminal._document_changes._MOST_FILES", 21)
    assert before.lines(ended((), (), ())) == []
    assert FolderFiles.look(settings) == FolderFiles()
