"""The sheets and cells that a call touches, however it names them."""

from __future__ import annotations

import openpyxl
import pytest
from openpyxl.worksheet.table import Table

from callboard.actors.commands import Asked, Toolbox
from callboard.actors.runtime import Lanes
from callboard.messages import AgentKind, Hazard
from callboard.surfaces.documents.excel._touched_cells import coverage

PAYROLL = {"sheet": "Payroll", "cells": "A1:C3"}


@pytest.fixture
def book(workspace):
    """Give a workbook with two sheets; Payroll is open."""
    made = openpyxl.Workbook()
    payroll = made.active
    payroll.title = "Payroll"
    for row in (["name", "role", "pay"], ["Ann", "cook", 1], ["Bob", "clown", 2]):
        payroll.append(row)
    payroll.add_table(Table(displayName="Staff", ref="A1:C3"))
    made.create_sheet("Sales 1")["B2"] = "=Payroll!C2"
    made.defined_names["Wages"] = openpyxl.workbook.defined_name.DefinedName("Wages", attr_text="Payroll!$C$2:$C$3")
    made.save(workspace / "book.xlsx")
    return workspace / "book.xlsx"


@pytest.fixture
def facts(surface, book):
    """Ask for the facts that the rules see of a call on the workbook."""
    targets = {target.id: target for target in surface.targets()}

    async def ask(tool, target="book.xlsx", **arguments):
        lanes = Lanes()
        kind = AgentKind.APP if target else AgentKind.HOST
        bound = Toolbox([surface], (), lanes).tools(kind, targets[target] if target else None)[tool]
        assert bound.check(arguments) is None
        return await bound.facts(arguments, (), Asked(explain=True))

    return ask


def names(found, book):
    return [name.replace(f"{book.parent}/", "") for name in found.resources]


@pytest.mark.parametrize(
    "arguments",
    [
        {"sheet": "Payroll"},
        {"sheet": "payroll"},
        {"control_id": "sheet-1"},
        {"control_id": "range-1"},
        {"control_id": "table-1"},
        {"cells": "Payroll!A1:C3"},
        {"cells": "'Payroll'!$a$1:c3"},
        {"cells": "a1:C03"},
        {},
    ],
    ids=str,
)
async def test_the_same_cells_are_one_call_however_they_are_named(facts, arguments):
    found = await facts("read_range", **arguments)
    assert list(found.resources) == ["range:Payroll!A1:C3"]
    assert {name: found.arguments[name] for name in PAYROLL} == PAYROLL
    assert found.arguments["document"] == "book.xlsx"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("replace_text", {"find_text": "ann", "new_text": "Eve"}),
        ("replace_text", {"find_text": "ann", "new_text": "Eve", "whole_cell": "true"}),
        ("write_range", {"cell": "A2", "values": '[["Eve"]]'}),
    ],
    ids=str,
)
async def test_a_call_that_leaves_arguments_out_is_looked_at_as_it_runs(facts, tool, arguments):
    assert (await facts(tool, **arguments)).hazards == {Hazard.OVERWRITES}


@pytest.mark.parametrize("cell", ["A1", "A1:A1", "A01", "$A$1", "Payroll!a1", ""])
async def test_the_same_cell_is_one_argument_however_it_is_written(facts, cell):
    found = await facts("write_range", cell=cell, values=[[1, 2]])
    assert (found.arguments["sheet"], found.arguments["cell"]) == ("Payroll", "A1")
    assert list(found.resources) == ["range:Payroll!A1:B1"]


@pytest.mark.parametrize(
    ("tool", "arguments", "touched"),
    [
        ("insert_table", {"sheet": "Sales 1", "cell": "D1", "header": ["a"], "rows": [[1]]}, ["range:Sales 1!D1:D2"]),
        ("set_formula", {"cells": "D2:D3", "formula": "=C2"}, ["range:Payroll!D2:D3", "range:Payroll!C2:C3"]),
        ("set_formula", {"cells": "D2", "formula": "=SUM(Wages)"}, ["range:Payroll!D2", "sheet:Payroll"]),
        (
            "set_formula",
            {"sheet": "Sales 1", "cells": "A1:A2", "formula": "=PAYROLL!$C2"},
            ["range:Sales 1!A1:A2", "range:Payroll!C2:C3"],
        ),
        (
            "set_formula",
            {"sheet": "Sales 1", "cells": "A1", "formula": "=SUM(Staff[pay])"},
            ["range:Sales 1!A1", "sheet:Payroll"],
        ),
        (
            "set_formula",
            {"sheet": "Sales 1", "cells": "A1", "formula": "=SUM(Payroll:'Sales 1'!Z1)"},
            ["range:Sales 1!A1", "sheet:Payroll", "sheet:Sales 1"],
        ),
        (
            "set_formula",
            {"sheet": "Sales 1", "cells": "A1", "formula": '=INDIRECT("Payroll!C2")'},
            ["range:Sales 1!A1", "unknown"],
        ),
        ("rename_sheet", {"sheet": "payroll", "title": "Pay"}, ["sheet:Payroll", "sheet:Pay", "sheet:Sales 1"]),
        ("delete_rows_or_columns", {"what": "sheet", "control_id": "sheet-1"}, ["sheet:Payroll"]),
        ("add_sheet", {"title": "New"}, ["sheet:New"]),
        *(
            ("filter_rows", {"where": [{"column": "pay", "value": 1}], "to": to}, ["range:Payroll!A1:C3", sheet])
            for to, sheet in (
                ("E1", "sheet:Payroll"),
                ("'sales 1'!B2", "sheet:Sales 1"),
                ("New", "sheet:New"),
                (" E1", "sheet: E1"),
            )
        ),
        ("insert_chart", {"type": "bar", "anchor": "f5"}, ["range:Payroll!A1:C3", "range:Payroll!F5"]),
        ("save_as", {"path": "copy.xlsx"}, ["file:copy.xlsx", "sheet:Payroll", "sheet:Sales 1"]),
        ("read_range", {"sheet": "None"}, ["file:book.xlsx", "unknown"]),
    ],
)
async def test_a_call_names_all_that_it_touches(facts, book, tool, arguments, touched):
    assert names(await facts(tool, **arguments), book) == touched


@pytest.mark.parametrize(
    ("tool", "arguments", "touched"),
    [
        ("open_document", {"path": "book.xlsx"}, ["file:book.xlsx"]),
        ("create_document", {"path": "new.docx"}, ["file:new.docx"]),
        ("select_window", {"window": "BOOK.xlsx"}, ["file:book.xlsx"]),
        ("start_application", {"name": "word"}, ["file:Document1.docx"]),
        ("create_document", {"path": "../out.docx"}, ["unknown"]),
    ],
)
async def test_a_host_agents_call_names_the_file(facts, book, tool, arguments, touched):
    assert names(await facts(tool, target="", **arguments), book) == touched


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ("sheet:Payroll", "range:Payroll!A1", "all"),
        ("sheet:payroll", "sheet:Payroll", "all"),
        ("sheet:Pay*", "range:Payroll!A1", "all"),
        ("sheet:Sales", "range:Payroll!A1", "none"),
        ("range:Payroll!A1:C3", "range:Payroll!B2", "all"),
        ("range:payroll!a1:c3", "range:Payroll!C3:D4", "part"),
        ("range:'Payroll'!A1:C3", "range:Payroll!D4", "none"),
        ("range:Payroll!A1", "sheet:Payroll", "part"),
        ("range:Payroll!*", "sheet:Payroll", "all"),
        ("range:*!A1", "range:Payroll!A1", "all"),
        ("range:Payroll!A*", "range:Payroll!A7", "all"),
        ("range:Payroll!A*", "range:Payroll!B7", "none"),
        ("range:Payroll!A*", "range:Payroll!A1:Z9", "part"),  # its text fits, its cells do not
        ("range:Sales!A1", "sheet:Payroll", "none"),
        ("re:sheet:(Payroll|HR)", "range:Payroll!A1", "all"),
        ("re:range:Payroll!.*", "sheet:Payroll", "part"),
        ("re:range:Payroll!.*", "range:Payroll!A1", "all"),
        ("re:range:Sales!.*", "sheet:Payroll", "none"),
        ("*", "range:Payroll!A1", "all"),
        ("url:*", "range:Payroll!A1", "none"),
    ],
)
def test_patterns_are_compared_with_sheets_and_cells(pattern, resource, expected):
    assert coverage(pattern, resource) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("file:{}/book.xlsx", "all"),
        ("file:book.xlsx", "all"),
        ("file:*.xlsx", "all"),
        ("file:BOOK.xlsx", "part"),
        ("file:other.xlsx", "none"),
    ],
)
@pytest.mark.parametrize("resource", ["range:Payroll!A1", "file:{}/book.xlsx"])
def test_a_pattern_for_a_file_stands_for_all_that_is_in_it(surface, book, pattern, expected, resource):
    (target,) = (target for target in surface.targets() if target.id == "book.xlsx")
    assert surface.coverage(target, pattern.format(book.parent), resource.format(book.parent)) == expected


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ("range:Payroll!B:B", "range:Payroll!B2", "all"),
        ("range:Payroll!B:B", "range:Payroll!A1:C3", "part"),
        ("range:Payroll!B:B", "range:Payroll!A1", "none"),
        ("range:Payroll!1:3", "range:Payroll!A1:C3", "all"),
        ("range:Payroll!c3:a1", "range:Payroll!B2", "all"),
        ("range:Payroll!A1,B2", "range:Payroll!B2", "all"),
        ("range:Payroll!A1,B2", "range:Payroll!B2:B3", "part"),
        ("range:Payroll!nonsense", "range:Payroll!B2", "part"),  # undecidable
        ("range:Payroll", "range:Payroll!B2", "all"),
        ("range:*", "range:Payroll!B2", "all"),
        ("re:range:Payroll!B2", "range:Payroll!A1:B2", "part"),
        ("re:range:Payroll!B[0-9]+", "sheet:Payroll", "part"),
        ("re:range:Sales!B2", "range:Payroll!A1:B2", "none"),
        ("*Payroll!B2", "range:Payroll!A1:C3", "part"),
        ("[rs]*:Payroll!B2", "range:Payroll!A1:C3", "part"),
        ("sheet:'Payroll'", "sheet:Payroll", "all"),
        ("re:sheet:payroll", "sheet:Payroll", "all"),
    ],
)
def test_a_pattern_finds_the_cells_that_it_means_however_it_names_them(pattern, resource, expected):
    assert coverage(pattern, resource) == expected


@pytest.mark.parametrize(
    ("formula", "touched"),
    [
        ("=SUM(Hop)", ["sheet:Payroll"]),
        ("=Hidden", ["unknown"]),
        ("=Loop", []),
        ("=Nothing", ["unknown"]),
        ("=SUM(B:B)", ["sheet:Sales 1"]),
        ("=OFFSET(Payroll!A1,4,2)", ["unknown", "sheet:Payroll"]),
    ],
)
async def test_a_formula_reads_what_its_names_mean(facts, book, formula, touched):
    made = openpyxl.load_workbook(book)
    names = {"Hop": "Wages", "Hidden": 'INDIRECT("Payroll!C2")', "Loop": "Loop"}
    for name, text in names.items():
        made.defined_names[name] = openpyxl.workbook.defined_name.DefinedName(name, attr_text=text)
    made.save(book)
    found = await facts("set_formula", sheet="Sales 1", cells="A1", formula=formula)
    assert names_of(found) == ["range:Sales 1!A1", *touched]


def names_of(found):
    return list(found.resources)
