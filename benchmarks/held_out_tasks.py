"""Twelve held-out requests about one document each.

They were written before any run of them was looked at. Nothing may be changed for them: they measure changes that were
made for `office_tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import openpyxl

from benchmarks.office_tasks import (
    OfficeTask,
    changed,
    document,
    with_answer,
    with_blocks,
    with_cells,
    with_chart,
    workbook,
)

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.office_tasks import Blocks, Check, Grid

VOTES: Grid = [
    ["Party", "Votes", "Seats"],
    ["Sun", 5120, 11],
    ["Lake", 3480, 7],
    ["Hill", 2210, 5],
    ["Wood", 1190, 2],
]
RACE: Grid = [
    ["Runner", "Club", "Points"],
    ["Petrov", "North", 61],
    ["Silva", "East", 88],
    ["Haddad", "North", 47],
    ["Olsen", "West", 93],
    ["Kim", "East", 72],
]
PARCELS: Grid = [
    ["Parcel", "Destination", "Weight"],
    ["P-101", "Oslo", 12],
    ["P-102", "Turin", 7],
    ["P-103", "Gdansk", 21],
    ["P-104", "Porto", 9],
    ["P-105", "Ghent", 16],
]
BEDS: Grid = [
    ["Plant", "Colour", "Number"],
    ["Rose", "white", 24],
    ["Aster", "blue", 60],
    ["Dahlia", "orange", 18],
]
ROOMS: Grid = [
    ["Room", "Length", "Width", "Area"],
    ["Kitchen", 4, 3.5, None],
    ["Hall", 6, 2, None],
    ["Study", 3.2, 3, None],
]
REBATES: Grid = [
    ["Product", "Price", "Discount"],
    ["Kettle", 39, 0.15],
    ["Toaster", 54, 0.2],
    ["Mixer", 85, 0.05],
    ["Grill", 129, 0.1],
]
BUDGET: Grid = [["Team", "Amount"], ["Design", 42000], ["Support", 31500]]

LETTER: Blocks = [
    ("Title", "To all tenants"),
    ("Normal", "Mrs Keller has been the caretaker since May."),
    ("Normal", "Please call Mrs Keller if the heating fails."),
    ("Heading 1", "Keys"),
    ("Normal", "Lost keys are replaced by Mrs Keller within two days."),
]
TRIP: Blocks = [
    ("Title", "A weekend at the lake"),
    ("Normal", "We leave on Saturday at nine."),
    ("Heading 1", "Equipment"),
    (
        "table",
        [["Article", "Price", "Shop"], ["Tent", "129", "Alpin"], ["Stove", "45", "Feuer"], ["Lamp", "18", "Alpin"]],
    ),
    ("Heading 1", "Food"),
    ("Normal", "Everyone brings something for the first evening."),
]
FAIR: Blocks = [
    ("Title", "Report on the book fair"),
    ("Normal", "The fair was open for three days."),
    ("Heading 1", "Visitors"),
    ("table", [["City", "Visitors"], ["Bonn", "52"], ["Berlin", "39"], ["Kiel", "28"]]),
    ("Normal", "Most of them came on Sunday."),
]


def _as_percentages(grid: Grid, sheet: str, cells: str) -> Check:
    """Expect unchanged values, and these cells as percentages."""
    same = with_cells(grid, sheet)

    def wrong(path: Path, said: str) -> str:
        for row in openpyxl.load_workbook(path)[sheet][cells]:
            for cell in row:
                if not cell.number_format.endswith("%"):
                    return f"{cell.coordinate} has the format {cell.number_format}"
        return same(path, said)

    return wrong


HELD_OUT: tuple[OfficeTask, ...] = (
    OfficeTask(
        "pie chart",
        "votes.xlsx",
        workbook("Results", VOTES),
        "Please create a pie chart that shows the votes of the parties",
        with_chart(VOTES, "Results", "pieChart", "B2:B5"),
    ),
    OfficeTask(
        "new worksheet",
        "votes.xlsx",
        workbook("Results", VOTES),
        "Insert a new worksheet named Summary",
        with_cells(VOTES, "Results", "Summary"),
    ),
    OfficeTask(
        "name of a sheet",
        "budget.xlsx",
        workbook("Sheet1", BUDGET),
        "Give the sheet the name Budget 2027",
        with_cells(BUDGET, "Budget 2027"),
    ),
    OfficeTask(
        "descending order",
        "race.xlsx",
        workbook("Race", RACE),
        "Put the runners in descending order of their points",
        with_cells([RACE[0], *sorted(RACE[1:], key=lambda row: -row[2])], "Race"),
    ),
    OfficeTask(
        "total",
        "parcels.xlsx",
        workbook("Parcels", PARCELS),
        "Calculate the total weight of the parcels in cell C8",
        with_cells([*PARCELS, [None] * 3, [None] * 3], "Parcels", C8={65, "=SUM(C2:C6)", "=SUM(C1:C6)", "=SUM(C2:C7)"}),
    ),
    OfficeTask(
        "new row",
        "beds.xlsx",
        workbook("Beds", BEDS),
        "Append a row for another plant: Tulip, red, 40",
        with_cells([*BEDS, ["Tulip", "red", 40]], "Beds"),
    ),
    OfficeTask(
        "computed column",
        "rooms.xlsx",
        workbook("Rooms", ROOMS),
        "Compute the area of each room in column D with a formula, length multiplied by width",
        with_cells(
            ROOMS,
            "Rooms",
            **{f"D{row}": {f"=B{row}*C{row}", f"=C{row}*B{row}", f"=PRODUCT(B{row}:C{row})"} for row in range(2, 5)},
        ),
    ),
    OfficeTask(
        "percentages",
        "rebates.xlsx",
        workbook("Rebates", REBATES),
        "Display the discounts as percentages",
        _as_percentages(REBATES, "Rebates", "C2:C5"),
    ),
    OfficeTask(
        "a name in a letter",
        "letter.docx",
        document(LETTER),
        "Mrs Keller is now called Mrs Brandt. Change her name in the whole letter",
        with_blocks(*((style, text.replace("Keller", "Brandt")) for style, text in LETTER)),
    ),
    OfficeTask(
        "last sentence",
        "letter.docx",
        document(LETTER),
        "Put a new paragraph after the last one that says: The office is closed in August.",
        with_blocks(*LETTER, ("Normal", "The office is closed in August.")),
    ),
    OfficeTask(
        "a wrong number in a table",
        "fair.docx",
        document(FAIR),
        "In the table, the number of visitors from Berlin must be 47. Correct it",
        with_blocks(
            *changed(FAIR, 3, "table", [["City", "Visitors"], ["Bonn", "52"], ["Berlin", "47"], ["Kiel", "28"]])
        ),
    ),
    OfficeTask(
        "question about a table",
        "trip.docx",
        document(TRIP),
        "How much does the stove cost?",
        with_answer(45, {129, 18}, with_blocks(*TRIP)),
    ),
)
