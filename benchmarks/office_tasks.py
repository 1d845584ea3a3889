"""Short requests about one document each, with checks of the file afterwards.

These are there to work on; those of `held_out_tasks` say how far a change reaches that was made for these. A check
compares everything in the file, so that a row too many or a header that is gone is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
from openpyxl.worksheet.cell_range import CellRange

if TYPE_CHECKING:
    from pathlib import Path

Check = Callable[["Path", str], str]
"""A function that describes the fault of a file, or of the answer in words; empty if there is none."""
Grid = list[list[Any]]
Blocks = list[tuple[str, Any]]


@dataclass(frozen=True)
class OfficeTask:
    """A request about one document."""

    name: str
    file: str
    make_file: Callable[[Path], None]
    request: str
    wrong: Check

    def make(self, folder: Path) -> Path:
        """Make its document."""
        path = folder / self.file
        self.make_file(path)
        return path


# The workbooks

STOCK: Grid = [
    ["Item", "Quantity", "Price"],
    ["Lamp", 14, 29.5],
    ["Chair", 8, 75],
    ["Desk", 3, 240],
    ["Shelf", 11, 49.9],
    ["Mirror", 6, 35],
    ["Vase", 20, 12.25],
]
VISITS: Grid = [
    ["Month", "Visitors", "Guides"],
    ["January", 310, 4],
    ["February", 275, 3],
    ["March", 420, 5],
    ["April", 515, 6],
    ["May", 640, 8],
]
ORDERS: Grid = [
    ["Customer", "Pieces", "Unit price", "Total"],
    ["Novak", 12, 3.5, None],
    ["Berger", 40, 2.25, None],
    ["Ivanova", 7, 18, None],
    ["Castillo", 25, 4.8, None],
]
COSTS: Grid = [
    ["Kind", "Amount", "Paid by"],
    ["Rent", 1850, "Office"],
    ["Power", 212.4, "Workshop"],
    ["Phone", 64.95, "Office"],
    ["Insurance", 430.5, "Office"],
]


def workbook(title: str, grid: Grid) -> Callable[[Path], None]:
    """Make workbooks of one sheet with these values."""

    def make(path: Path) -> None:
        book = openpyxl.Workbook()
        book.active.title = title
        for row in grid:
            book.active.append(row)
        book.save(path)

    return make


def _grid(sheet: Any) -> Grid:
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    while rows and all(value is None for value in rows[-1]):
        rows.pop()
    width = max((place for row in rows for place, value in enumerate(row, 1) if value is not None), default=0)
    return [row[:width] for row in rows]


def _padded(grid: Grid, width: int, height: int) -> Grid:
    rows = [[*row, *[None] * (width - len(row))] for row in grid]
    return rows + [[None] * width for _ in range(height - len(rows))]


def with_cells(grid: Grid, sheet: str, *sheets: str, **written: Any) -> Check:
    """Expect these values on a sheet, and further empty sheets.

    In the cells of `written`, any value of the set is right. Formulas are compared in capitals, without blanks and
    dollar signs.
    """

    def wrong(path: Path, _: str) -> str:
        book = openpyxl.load_workbook(path)
        if book.sheetnames != [sheet, *sheets]:
            return f"the sheets are {', '.join(book.sheetnames)}"
        found = book[sheet]
        if any(_grid(book[other]) for other in sheets):
            return "the new sheet is not empty"
        extent = CellRange(
            f"A1:{found.cell(max(len(grid), found.max_row), max(len(grid[0]), found.max_column)).coordinate}"
        )
        expected = _padded(grid, extent.max_col, extent.max_row)
        for row, values in enumerate(expected, 1):
            for column, value in enumerate(values, 1):
                cell = found.cell(row, column)
                allowed = written.get(cell.coordinate, {value})
                if _plain(cell.value) not in allowed:
                    return f"{cell.coordinate} is {cell.value!r}"
        return ""

    return wrong


def _plain(value: Any) -> Any:
    return re.sub(r"[\s$]", "", value).upper() if isinstance(value, str) and value.startswith("=") else value


def with_chart(grid: Grid, sheet: str, kind: str, cells: str, title: str | None = None) -> Check:
    """Expect unchanged values, and one chart that draws these cells."""
    same = with_cells(grid, sheet)

    def wrong(path: Path, said: str) -> str:
        charts = openpyxl.load_workbook(path)[sheet]._charts
        if len(charts) != 1:
            return f"{len(charts)} charts" if charts else "no chart"
        (chart,) = charts
        drawn = [CellRange(each.val.numRef.f.rpartition("!")[2].replace("$", "")) for each in chart.series]
        if chart.tagname != kind:
            return f"a {chart.tagname}"
        if not any(CellRange(cells).issubset(each) for each in drawn):
            return f"it draws {', '.join(each.coord for each in drawn)}"
        runs = [run.t for each in chart.title.tx.rich.p for run in each.r or ()] if chart.title and title else []
        if title is not None and "".join(runs).casefold() != title.casefold():
            return f"its title is {''.join(runs)!r}"
        return same(path, said)

    return wrong


def with_format(grid: Grid, sheet: str, cells: str, places: int) -> Check:
    """Expect unchanged values, and these cells with so many decimals."""
    same = with_cells(grid, sheet)

    def wrong(path: Path, said: str) -> str:
        for row in openpyxl.load_workbook(path)[sheet][cells]:
            for cell in row:
                shown = re.search(r"0(?:\.(0+))?(?![0-9#?])", cell.number_format)
                if shown is None or len(shown[1] or "") != places:
                    return f"{cell.coordinate} has the format {cell.number_format}"
        return same(path, said)

    return wrong


def with_answer(number: float, others: set[float], check: Check) -> Check:
    """Expect an unchanged file, and an answer with this number alone."""

    def wrong(path: Path, said: str) -> str:
        found = {float(text) for text in re.findall(r"\d+(?:\.\d+)?", said)}
        if number not in found or found & others:
            return f"it answered {said[:80]!r}"
        return check(path, said)

    return wrong


# The documents

MINUTES: Blocks = [
    ("Title", "Minutes of the garden club"),
    ("Normal", "The club met on Monday in the old greenhouse. All members were there."),
    ("Heading 1", "Watering"),
    ("Normal", "Anna waters the beds on Monday and Thursday, Omar on the other days."),
    ("table", [["Member", "Hours"], ["Anna", "28"], ["Omar", "35"], ["Lin", "19"]]),
    ("Heading 1", "Tools"),
    ("Normal", "Two spades are broken."),
]
NOTICE: Blocks = [
    ("Title", "Rules of the workshop"),
    ("Normal", "The workshop is open from 8 to 17, and closed on holidays."),
    ("Heading 1", "Safety"),
    ("Normal", "Attention: the saw may be used with goggles only."),
    ("Normal", "The deadline for reports is 20 April."),
    ("table", [["Machine", "Keeper", "Year"], ["Saw", "Ruiz", "2015"], ["Lathe", "Okafor", "2019"]]),
]


def document(blocks: Blocks) -> Callable[[Path], None]:
    """Make Word documents of these paragraphs and tables."""

    def make(path: Path) -> None:
        document = docx.Document()
        for style, text in blocks:
            if style != "table":
                document.add_paragraph(text, style=style)
                continue
            table = document.add_table(rows=0, cols=len(text[0]))
            for row in text:
                for cell, value in zip(table.add_row().cells, row, strict=True):
                    cell.text = value
        document.save(str(path))

    return make


def _blocks(path: Path) -> Blocks:
    found: Blocks = []
    for block in docx.Document(str(path)).iter_inner_content():
        if hasattr(block, "rows"):
            found.append(("table", [[cell.text for cell in row.cells] for row in block.rows]))
        elif block.text.strip():
            found.append((block.style.name, block.text.strip()))
    return found


def with_blocks(*blocks: tuple[str, Any]) -> Check:
    """Expect these paragraphs and tables, each paragraph in its style."""

    def wrong(path: Path, _: str) -> str:
        found = _blocks(path)
        if len(found) != len(blocks):
            return f"{len(found)} paragraphs and tables"
        return next((f"found {one!r}" for one, other in zip(found, blocks, strict=True) if one != other), "")

    return wrong


def with_bold(blocks: Blocks, beginning: str) -> Check:
    """Expect unchanged text, and one paragraph in bold."""
    same = with_blocks(*blocks)

    def wrong(path: Path, said: str) -> str:
        for paragraph in docx.Document(str(path)).paragraphs:
            meant = paragraph.text.startswith(beginning)
            if paragraph.style.name == "Normal" and any(bool(run.bold) is not meant for run in paragraph.runs):
                return f"{paragraph.text[:30]!r} is {'not' if meant else 'also'} bold"
        return same(path, said)

    return wrong


def changed(blocks: Blocks, place: int, style: str, text: Any) -> Blocks:
    """Replace one paragraph or table."""
    return [(style, text) if place == number else block for number, block in enumerate(blocks)]


_TUESDAY: Blocks = [
    (style, text.replace("Monday", "Tuesday") if isinstance(text, str) else text) for style, text in MINUTES
]

TASKS: tuple[OfficeTask, ...] = (
    OfficeTask(
        "chart",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "Draw a bar chart of the quantities",
        with_chart(STOCK, "Stock", "barChart", "B2:B7"),
    ),
    OfficeTask(
        "add a sheet",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "Add a sheet called Archive",
        with_cells(STOCK, "Stock", "Archive"),
    ),
    OfficeTask(
        "sort numbers",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "Sort the table by price, the highest first",
        with_cells([STOCK[0], *sorted(STOCK[1:], key=lambda row: -row[2])], "Stock"),
    ),
    OfficeTask(
        "sum",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "Write the sum of all quantities into cell B9",
        with_cells([*STOCK, [None] * 3, [None] * 3], "Stock", B9={62, "=SUM(B2:B7)", "=SUM(B1:B7)", "=SUM(B2:B8)"}),
    ),
    OfficeTask(
        "change a number",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "A chair costs 79 now. Change its price",
        with_cells(STOCK, "Stock", C3={79}),
    ),
    OfficeTask(
        "append a row",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "Add the item Carpet at the end of the table, quantity 5, price 119",
        with_cells([*STOCK, ["Carpet", 5, 119]], "Stock"),
    ),
    OfficeTask(
        "replace a word",
        "minutes.docx",
        document(MINUTES),
        "Replace Monday with Tuesday everywhere",
        with_blocks(*_TUESDAY),
    ),
    OfficeTask(
        "append a paragraph",
        "minutes.docx",
        document(MINUTES),
        "Add this paragraph at the end: The next meeting is in June.",
        with_blocks(*MINUTES, ("Normal", "The next meeting is in June.")),
    ),
    OfficeTask(
        "a table's cell",
        "minutes.docx",
        document(MINUTES),
        "Change the hours of Anna in the table to 32",
        with_blocks(
            *changed(MINUTES, 4, "table", [["Member", "Hours"], ["Anna", "32"], ["Omar", "35"], ["Lin", "19"]])
        ),
    ),
    OfficeTask(
        "question on a workbook",
        "stock.xlsx",
        workbook("Stock", STOCK),
        "How many shelves are in stock?",
        with_answer(11, {14, 8, 3, 6, 20}, with_cells(STOCK, "Stock")),
    ),
    OfficeTask(
        "chart with a title",
        "visits.xlsx",
        workbook("Sheet1", VISITS),
        "Make a line chart of the visitors of each month, with the title Our visitors",
        with_chart(VISITS, "Sheet1", "lineChart", "B2:B6", "Our visitors"),
    ),
    OfficeTask(
        "rename a sheet",
        "costs.xlsx",
        workbook("Tabelle1", COSTS),
        "Rename the sheet to Costs",
        with_cells(COSTS, "Costs"),
    ),
    OfficeTask(
        "fill formulas",
        "orders.xlsx",
        workbook("Orders", ORDERS),
        "Fill the column Total with formulas: pieces times unit price",
        with_cells(
            ORDERS,
            "Orders",
            **{f"D{row}": {f"=B{row}*C{row}", f"=C{row}*B{row}", f"=PRODUCT(B{row}:C{row})"} for row in range(2, 6)},
        ),
    ),
    OfficeTask(
        "number format",
        "costs.xlsx",
        workbook("Tabelle1", COSTS),
        "Show all amounts with two decimals",
        with_format(COSTS, "Tabelle1", "B2:B5", 2),
    ),
    OfficeTask(
        "sort texts",
        "orders.xlsx",
        workbook("Orders", ORDERS),
        "Sort the rows by customer from A to Z",
        with_cells([ORDERS[0], *sorted(ORDERS[1:])], "Orders"),
    ),
    OfficeTask(
        "mean",
        "visits.xlsx",
        workbook("Sheet1", VISITS),
        "Put the average number of visitors into cell B8",
        with_cells([*VISITS, [None] * 3, [None] * 3], "Sheet1", B8={432, "=AVERAGE(B2:B6)", "=AVERAGE(B1:B6)"}),
    ),
    OfficeTask(
        "change a text",
        "costs.xlsx",
        workbook("Tabelle1", COSTS),
        "The rent is paid by the workshop: write Workshop there",
        with_cells(COSTS, "Tabelle1", C2={"Workshop"}),
    ),
    OfficeTask(
        "a heading",
        "notice.docx",
        document(NOTICE),
        "Add the heading Contact at the end of the document",
        with_blocks(*NOTICE, ("Heading 1", "Contact")),
    ),
    OfficeTask(
        "a table's row",
        "notice.docx",
        document(NOTICE),
        "Add a row to the table: Drill, Haas, 2022",
        with_blocks(*changed(NOTICE, 5, "table", [*NOTICE[5][1], ["Drill", "Haas", "2022"]])),
    ),
    OfficeTask(
        "change a date",
        "notice.docx",
        document(NOTICE),
        "The deadline for reports is 4 May now, correct it",
        with_blocks(*changed(NOTICE, 4, "Normal", "The deadline for reports is 4 May.")),
    ),
    OfficeTask(
        "bold",
        "notice.docx",
        document(NOTICE),
        "Make the paragraph that begins with Attention bold",
        with_bold(NOTICE, "Attention"),
    ),
    OfficeTask(
        "question on a document",
        "notice.docx",
        document(NOTICE),
        "From which year is the lathe?",
        with_answer(2019, {2015}, with_blocks(*NOTICE)),
    ),
)
