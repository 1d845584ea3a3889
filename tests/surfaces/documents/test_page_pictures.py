"""Pictures of pages, slides and cells: saved as files, and shown to models with vision."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest
from hostile_documents import remote_documents
from office_files import need_office, pdf_of
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import PatternFill

from callboard.actors.runtime import Lease
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents import DocumentSurface, _page_pictures
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Call

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pypdfium2")

BLUE, WHITE = (0, 0, 255), (255, 255, 255)


@pytest.fixture(scope="module", autouse=True)
def warm_office() -> Iterator[None]:
    """Keep one LibreOffice for the tests of this module."""
    LIBRE_OFFICE.open()
    yield
    LIBRE_OFFICE.close()


@pytest.fixture
def letter(workspace: Path) -> Path:
    """Write a document of three pages; the second one is blue."""
    need_office(".docx")
    document = docx.Document()
    document.add_paragraph("First")
    document.add_page_break()
    blue = io.BytesIO()
    Image.new("RGB", (60, 70), BLUE).save(blue, "PNG")
    document.add_picture(blue, docx.shared.Inches(6), docx.shared.Inches(7))
    document.add_page_break()
    document.add_paragraph("Last")
    document.save(str(workspace / "letter.docx"))
    return workspace / "letter.docx"


@pytest.fixture
def book(workspace: Path) -> Path:
    """Write a workbook with a chart, a print area and a hidden sheet."""
    need_office(".xlsx")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "My sales"
    for row in range(1, 101):
        sheet.append([row, row * 2, row * 3])
    for row in sheet["B2:C4"]:
        for cell in row:
            cell.fill, cell.value = PatternFill("solid", fgColor="0000FF"), None
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=1, min_row=5, max_row=9))
    sheet.add_chart(chart, "E2")
    sheet.oddHeader.center.text = "HEADER"
    sheet.print_title_rows = "1:1"
    other = book.create_sheet("Other")
    other["A1"], other.print_area, other.sheet_state = "other", "A1:A1", "hidden"
    book.save(workspace / "book.xlsx")
    return workspace / "book.xlsx"


@pytest.fixture
def shown(call: Call) -> Callable[..., list[Any]]:
    """Call a tool, and return the pictures that it shows."""

    def run(name: str, document: str, **arguments: Any) -> list[Any]:
        guard = EffectGuard(Lease("here", 1))
        call(name, document, guard, **arguments)
        return [Image.open(io.BytesIO(picture)) for picture in guard.pictures]

    return run


def window(surface: DocumentSurface, name: str) -> Any:
    """Find the window of a document."""
    return next(target for target in surface.targets() if target.id == name)


def opened(path: Path) -> Any:
    """Open a saved picture."""
    return Image.open(path).convert("RGB")


# Pages


def test_all_pages_of_a_document_are_saved_with_their_numbers(letter: Path, workspace: Path, call: Call) -> None:
    before = letter.read_bytes()
    answer = call("save_as", "letter.docx", path="page.png")
    assert answer == {"files": ["page-1.png", "page-2.png", "page-3.png"], "pages": 3}
    pictures = [opened(workspace / name) for name in answer["files"]]
    assert {picture.width for picture in pictures} == {1600}
    assert [picture.getpixel((800, 800)) for picture in pictures] == [WHITE, BLUE, WHITE]
    assert letter.read_bytes() == before


def test_pages_width_and_format_are_chosen(letter: Path, workspace: Path, call: Call) -> None:
    answer = call("save_as", "letter.docx", path="blue.jpg", pages="2", width=400)
    assert answer == {"files": ["blue.jpg"], "pages": 3}
    picture = Image.open(workspace / "blue.jpg")
    assert (picture.format, picture.width) == ("JPEG", 400)
    assert picture.convert("RGB").getpixel((200, 200))[2] > 250
    assert call("save_as", "letter.docx", path="x.jpeg", pages="1-2")["files"] == ["x-1.jpeg", "x-2.jpeg"]


def test_picture_never_overwrites_a_file(letter: Path, workspace: Path, call: Call) -> None:
    (workspace / "page-2.png").write_bytes(b"mine")
    with pytest.raises(ToolError, match=r"already a file 'page-2\.png'"):
        call("save_as", "letter.docx", path="page.png")
    assert sorted(path.name for path in workspace.iterdir()) == ["letter.docx", "page-2.png"]
    assert (workspace / "page-2.png").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"pages": "4"}, r"it has 3 pages, and no page 4"),
        ({"pages": "3-2"}, r"from the first to the last, like 2-4"),
        ({"pages": "1-21"}, r"name at most 20"),
        ({"path": "a.pdf", "pages": "2"}, r"pages, cells and width are for pictures"),
        ({"path": "a.docx", "width": 100}, r"pages, cells and width are for pictures"),
        ({"path": "a.gif"}, r"another \.docx, \.pdf, \.png, \.jpg or \.jpeg file"),
    ],
)
def test_wrong_pages_of_a_document_are_refused(letter: Path, call: Call, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        call("save_as", "letter.docx", **{"path": "a.png", **options})


def test_pages_of_a_pdf_are_saved_and_shown(workspace: Path, call: Call, shown: Callable[..., list[Any]]) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 17"]))
    assert call("save_as", "a.pdf", path="a.png", width=300) == {"files": ["a.png"], "pages": 1}
    assert opened(workspace / "a.png").size == (300, 389)
    (picture,) = shown("get_picture", "a.pdf")
    assert picture.width == 1200
    with pytest.raises(ToolError, match="it has 1 pages, and no page 2"):
        call("get_picture", "a.pdf", page=2)


def test_large_pictures_and_many_pages_are_refused(workspace: Path, call: Call, monkeypatch: Any) -> None:
    tall = pdf_of(["x"]).replace(b"[0 0 612 792]", b"[0 0 100 9000]")
    (workspace / "tall.pdf").write_bytes(tall)
    with pytest.raises(ToolError, match=r"page 1 would have .* pixels, and at most 50,000,000 are drawn"):
        call("save_as", "tall.pdf", path="a.png", width=2000)
    (workspace / "a.pdf").write_bytes(pdf_of(["x"]))
    monkeypatch.setattr(_page_pictures, "MOST_PAGES", 0)
    with pytest.raises(ToolError, match="it has 1 pages, and at most 0 are drawn"):
        call("save_as", "a.pdf", path="a.png")
    (workspace / "b.pdf").write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(ToolError, match=r"'b\.pdf' can't be drawn: it is damaged"):
        call("get_picture", "b.pdf")


def test_picture_for_a_model_is_made_smaller_if_it_is_too_large(
    workspace: Path, shown: Callable[..., list[Any]], monkeypatch: Any
) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 17"]))
    monkeypatch.setattr(_page_pictures, "MOST_PICTURE_BYTES", 3000)
    assert [picture.width for picture in shown("get_picture", "a.pdf")] == [400]
    monkeypatch.setattr(_page_pictures, "MOST_PICTURE_BYTES", 10)
    with pytest.raises(ToolError, match="its picture is too large"):
        shown("get_picture", "a.pdf")


def test_page_of_a_document_is_shown(letter: Path, shown: Callable[..., list[Any]]) -> None:
    (picture,) = shown("get_picture", "letter.docx", page=2)
    assert picture.getpixel((600, 600)) == BLUE


def test_picture_file_is_shown(workspace: Path, shown: Callable[..., list[Any]]) -> None:
    Image.effect_noise((2500, 1250), 200).convert("RGBA").save(workspace / "noise.png")
    (picture,) = shown("get_picture", "noise.png")
    assert picture.size in {(1200, 600), (900, 450)}
    Image.new("RGB", (30, 20), "blue").save(workspace / "small.bmp")
    (picture,) = shown("get_picture", "small.bmp")
    assert picture.size == (30, 20)


@pytest.mark.parametrize("name", ["letter.docx", "book.xlsx"])
def test_document_that_becomes_a_picture_reaches_no_network(
    workspace: Path, call: Call, listener: tuple[int, list[bytes]], name: str
) -> None:
    need_office(f".{name.partition('.')[2]}")
    port, connections = listener
    (workspace / name).write_bytes(remote_documents(f"http://127.0.0.1:{port}")[name])
    call("save_as", name, path="a.png")
    if name == "book.xlsx":
        call("save_as", name, path="b.png", cells="A1:C20")
    assert connections == []


def test_rules_see_the_names_of_all_pictures(workspace: Path, surface: DocumentSurface) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["x"]))
    target = window(surface, "a.pdf")

    def written(**arguments: Any) -> list[str]:
        names = surface.resources(target, "save_as", {"pages": "", "width": None, **arguments})
        return [name.rpartition("/")[2] for name in names if not name.endswith(".pdf")]

    assert written(path="b.png", pages="3") == ["b.png"]
    assert written(path="b.png", pages="3-4") == ["b.png", "b-3.png", "b-4.png"]
    assert written(path="b.png")[-1] == "b-20.png"
    assert written(path="b.pdf", pages="") == []


# Cells


def test_range_of_a_workbook_is_one_picture_cut_to_its_cells(book: Path, workspace: Path, call: Call) -> None:
    before = book.read_bytes()
    assert call("save_as", "book.xlsx", path="range.png", cells="My sales!B2:C4")["files"] == ["range.png"]
    picture = opened(workspace / "range.png")
    ratio = picture.width / picture.height
    assert 2 < ratio < 4  # two columns wide, three rows high
    assert [picture.getpixel(place) for place in ((20, 20), (picture.width // 2, picture.height // 2))] == [BLUE, BLUE]
    assert book.read_bytes() == before
    call("save_as", "book.xlsx", path="wide.png", cells="'My sales'!B2:C4", width=900)
    assert abs(opened(workspace / "wide.png").width - 900) <= 1


def test_chart_beside_the_cells_is_in_the_picture(book: Path, workspace: Path, call: Call) -> None:
    call("save_as", "book.xlsx", path="cells.png", cells="My sales!A1:C20")
    call("save_as", "book.xlsx", path="chart.png", cells="My sales!A1:M20")
    assert opened(workspace / "chart.png").width > 2 * opened(workspace / "cells.png").width


def test_sheet_of_a_workbook_is_drawn_by_its_pages(book: Path, workspace: Path, call: Call) -> None:
    answer = call("save_as", "book.xlsx", path="sheet.png", cells="My sales", pages="1-2")
    assert answer["files"] == ["sheet-1.png", "sheet-2.png"]
    assert call("save_as", "book.xlsx", path="other.png", cells="Other") == {"files": ["other.png"], "pages": 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cells": "Nope!A1"}, "there is no sheet 'Nope'"),
        ({"cells": "My sales!Z200:AA201"}, "there is nothing to see"),
        ({"cells": "My sales!A1:B2", "pages": "2"}, "a range is one picture"),
        ({"cells": "My sales!A1:B2", "path": "a.pdf"}, r"another \.xlsx, \.png, \.jpg or \.jpeg file"),
    ],
)
def test_wrong_cells_of_a_picture_are_refused(book: Path, call: Call, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        call("save_as", "book.xlsx", **{"path": "a.png", **options})


def test_rules_see_the_cells_of_a_picture(book: Path, surface: DocumentSurface) -> None:
    target = window(surface, "book.xlsx")
    arguments = {"path": "a.png", "pages": "1", "width": None, "cells": "my sales!b2:c4"}
    assert surface.canonical(target, "save_as", arguments)["cells"] == "'My sales'!B2:C4"
    assert surface.resources(target, "save_as", arguments)[1:] == ["range:My sales!B2:C4"]
    assert surface.resources(target, "save_as", {**arguments, "cells": "other"})[1:] == ["sheet:Other"]
    assert surface.resources(target, "save_as", {**arguments, "cells": ""})[1:] == ["sheet:My sales", "sheet:Other"]


def test_cells_are_read_and_shown(book: Path, call: Call, shown: Callable[..., list[Any]]) -> None:
    (picture,) = shown("read_range", "book.xlsx", cells="B2:C4", picture=True)
    assert picture.getpixel((picture.width // 2, picture.height // 2)) == BLUE
    assert shown("read_range", "book.xlsx", cells="A1:A2") == []


# Slides


def test_several_slides_are_saved_as_pictures(workspace: Path, call: Call) -> None:
    pytest.importorskip("pptx")
    need_office(".pptx")
    import slide_decks

    (workspace / "deck.pptx").write_bytes(slide_decks.sample_deck())
    call("move_slide", "deck.pptx", control_id="slide-2", hidden=True)
    answer = call("save_as", "deck.pptx", path="s.png", pages="2-3", width=320)
    assert answer == {"files": ["s-2.png", "s-3.png"], "pages": 5}
    assert opened(workspace / "s-2.png").width == 320
    shown_slides = call("save_as", "deck.pptx", path="all.jpg", width=160)["files"]
    assert shown_slides == ["all-1.jpg", "all-3.jpg", "all-4.jpg", "all-5.jpg"]
    assert call("save_as", "deck.pptx", path="one.png", control_id="slide-5", width=160)["files"] == ["one.png"]
    with pytest.raises(ToolError, match="the deck has 5 slides, and no slide 7"):
        call("save_as", "deck.pptx", path="x.png", pages="2-7")
