"""Edits by other tools around pivot tables, and what policy sees of them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

    from callboard.messages import Target
    from callboard.surfaces.documents import DocumentSurface

AMOUNT = [{"column": "Amount"}]
DEFINITION = "xl/pivotTables/pivotTable1.xml"
CACHE = "xl/pivotCache/pivotCacheDefinition1.xml"


@pytest.fixture
def path(workspace: Path, call: Call) -> Path:
    """Give a workbook with a pivot table, with a filter, on a sheet of its own."""
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in (["Key", "Kind", "Amount"], ["a", "x", 1], ["b", "y", 2], ["a", "y", 4]):
        book.active.append(row)
    book.save(workspace / "book.xlsx")
    call("insert_pivot", "book.xlsx", rows=["Key"], values=AMOUNT, filters=[{"column": "Kind"}], to="P!B2")
    return workspace / "book.xlsx"


def target_of(surface: DocumentSurface, name: str = "book.xlsx") -> Target:
    return next(target for target in surface.targets() if target.name == name)


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(path: Path, surface: DocumentSurface, name: str, change: Callable[[str], str]) -> None:
    """Change a part as another program would have written it, and look at the file."""
    content = parts(path)
    before = content[name].decode()
    content[name] = change(before).encode()
    assert content[name].decode() != before
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in content.items():
            archive.writestr(part, data)
    surface.observe(target_of(surface))


def source(surface: DocumentSurface) -> Any:
    (pivot,) = [control for control in surface.observe(target_of(surface)).controls if control.kind == "pivot"]
    return pivot.detail["source"], pivot.detail["cells"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_range", {"cell": "C5", "values": [[9]]}),
        ("write_range", {"cell": "C2", "values": [["x"]]}),
        ("set_formula", {"cells": "C6", "formula": "=1"}),
        ("replace_text", {"find_text": "Grand", "new_text": "Great"}),
        ("sort_range", {"cells": "B4:C6", "by": [{"column": "C"}]}),
        ("insert_rows_or_columns", {"what": "rows", "at": "5"}),
        ("insert_rows_or_columns", {"what": "rows", "at": "4"}),
        ("insert_rows_or_columns", {"what": "columns", "at": "C"}),
        ("delete_rows_or_columns", {"what": "rows", "at": "5"}),
        ("delete_rows_or_columns", {"what": "columns", "at": "B", "count": 2}),
        ("insert_table", {"cell": "C6", "header": ["h"], "rows": [[1]]}),
        ("copy_range", {"cells": "F1:F2", "to": "C5"}),
    ],
)
def test_cells_of_a_pivot_table_are_kept(call: Call, path: Path, tool: str, arguments: dict[str, Any]) -> None:
    call("write_range", path.name, sheet="P", cell="F1", values=[["free"], ["cells"]])
    before = path.read_bytes()
    with pytest.raises(ToolError, match=r"pivot table|is not empty"):
        call(tool, path.name, sheet="P", **arguments)
    assert path.read_bytes() == before


def test_source_and_place_follow_moved_cells(call: Call, path: Path, surface: DocumentSurface) -> None:
    assert source(surface) == ("Data!A1:C4", "B2:C7")
    answer = call("insert_rows_or_columns", path.name, sheet="Data", what="rows", at="3", count=2)
    assert answer["pivots_to_refresh"] == ["pivot-1"]
    call("insert_rows_or_columns", path.name, sheet="Data", what="columns", at="A")
    call("insert_rows_or_columns", path.name, sheet="P", what="rows", at="1")
    call("rename_sheet", path.name, sheet="Data", title='It\'s <the> "data"')
    assert source(surface) == ('It\'s <the> "data"!B1:D6', "B3:C8")
    call("edit_pivot", path.name, control_id="pivot-1")
    values = call("read_range", path.name, control_id="pivot-1")["values"]
    assert values[3:] == [["a", 5], ["b", 2], ["(blank)", None], ["Grand Total", 7]]


def test_deleted_source_is_refused(call: Call, path: Path) -> None:
    with pytest.raises(ToolError, match="a pivot table reads the cells that would be deleted"):
        call("delete_rows_or_columns", path.name, sheet="Data", what="columns", at="A", count=3)
    with pytest.raises(ToolError, match="a pivot table refers to the sheet 'Data'"):
        call("delete_rows_or_columns", path.name, what="sheet", sheet="Data")


def test_deleted_sheet_takes_its_pivot_table_along(call: Call, path: Path, surface: DocumentSurface) -> None:
    call("add_sheet", path.name, title="Last")
    call("delete_rows_or_columns", path.name, what="sheet", sheet="P")
    assert not [name for name in parts(path) if "pivot" in name]
    call("insert_pivot", path.name, sheet="Data", rows=["Key"], values=AMOUNT, to="Data!F1")
    call("delete_rows_or_columns", path.name, what="sheet", sheet="Data")  # the pivot table stands there, too
    assert not [name for name in parts(path) if "pivot" in name]
    assert [control.kind for control in surface.observe(target_of(surface)).controls] == ["sheet"]


def test_other_edits_change_no_part_of_a_pivot_table(call: Call, path: Path) -> None:
    before = parts(path)
    call("write_range", path.name, sheet="Data", cell="F1", values=[["note"]])
    call("format_cells", path.name, sheet="P", cells="B4:C7", bold=True)
    call("insert_chart", path.name, sheet="P", cells="B4:C6", type="bar")
    after = parts(path)
    assert [name for name in before if "pivot" in name and before[name] != after[name]] == []


FOREIGN = [
    ("its layout is Excel's compact", lambda xml: xml.replace('compact="0" outline="0"', 'compact="1"')),
    ("it has formats", lambda xml: xml.replace("<pivotTableStyleInfo", '<formats count="0"/><pivotTableStyleInfo')),
    ("hidden or collapsed", lambda xml: xml.replace('<item x="1"/>', '<item h="1" x="1"/>')),
    ("an order", lambda xml: xml.replace('<item x="0"/><item x="1"/>', '<item x="1"/><item x="0"/>', 1)),
    ("only some of its totals", lambda xml: xml.replace("cacheId", 'rowGrandTotals="0" cacheId')),
    ("shown as percentOfTotal", lambda xml: xml.replace("baseField", 'showDataAs="percentOfTotal" baseField')),
    ("it shows the stdDev", lambda xml: xml.replace("baseField", 'subtotal="stdDev" baseField')),
    ("its labels are merged", lambda xml: xml.replace("cacheId", 'mergeItem="1" cacheId')),
    ("subtotals of its own", lambda xml: xml.replace('axis="axisRow"', 'axis="axisRow" sumSubtotal="1"')),
    ("names of its own", lambda xml: xml.replace('axis="axisRow"', 'axis="axisRow" name="Mine"')),
    ("items without data", lambda xml: xml.replace('showAll="0"', "")),
    ("no fields for its rows", lambda xml: xml.replace('<rowFields count="1"><field x="0"/></rowFields>', "")),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "change"), FOREIGN, ids=[reason for reason, _ in FOREIGN])
def test_pivot_table_of_another_form_is_left_to_excel(
    call: Call, path: Path, surface: DocumentSurface, reason: str, change: Callable[[str], str]
) -> None:
    changed(path, surface, DEFINITION, change)
    changed(path, surface, CACHE, lambda xml: xml.replace(' refreshOnLoad="1"', ""))
    before = parts(path)
    with pytest.raises(ToolError, match=f"can only be changed in Excel: .*{reason}"):
        call("edit_pivot", path.name, control_id="pivot-1", totals=False)
    answer = call("edit_pivot", path.name, control_id="pivot-1", cells="A1:C3")
    assert reason in answer["not_computed"]
    assert answer["source"] == "Data!A1:C3"
    after = parts(path)
    assert [name for name in before if before[name] != after[name]] == [CACHE]
    assert b'refreshOnLoad="1"' in after[CACHE]
    with pytest.raises(ToolError, match="lacks the column 'Key'"):
        call("edit_pivot", path.name, control_id="pivot-1", cells="B1:C3")


def test_source_outside_of_the_workbook_is_named(call: Call, path: Path, surface: DocumentSurface) -> None:
    changed(
        path,
        surface,
        CACHE,
        lambda xml: xml.replace('type="worksheet"', 'type="external"').replace("worksheetSource", "x"),
    )
    assert source(surface)[0] == "a data connection"
    with pytest.raises(ToolError, match="reads a data connection, which is no range of this workbook"):
        call("edit_pivot", path.name, control_id="pivot-1")


def test_source_by_a_defined_name_is_left_to_excel(call: Call, path: Path, surface: DocumentSurface) -> None:
    changed(path, surface, CACHE, lambda xml: xml.replace('ref="A1:C4" sheet="Data"', 'name="Figures"'))
    changed(path, surface, CACHE, lambda xml: xml.replace(' refreshOnLoad="1"', ""))
    answer = call("edit_pivot", path.name, control_id="pivot-1")
    assert answer["not_computed"].endswith("since it reads the defined name 'Figures'")
    assert b'refreshOnLoad="1"' in parts(path)[CACHE]
    with pytest.raises(ToolError, match="'Figures' is not a range of cells or the name of a table"):
        call("edit_pivot", path.name, control_id="pivot-1", totals=False)
    assert call("edit_pivot", path.name, control_id="pivot-1", cells="Data!A1:C4")["source"] == "Data!A1:C4"


def test_pivot_chart_keeps_its_pivot_table(call: Call, path: Path, surface: DocumentSurface) -> None:
    call("insert_chart", path.name, sheet="P", cells="B4:C6", type="bar")
    link = '<c:pivotSource xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:name>'
    link += '[book.xlsx]P!PivotTable1</c:name><c:fmtId val="0"/></c:pivotSource>'
    chart = "xl/charts/chart1.xml"
    place = parts(path)[chart].decode().index(">", parts(path)[chart].decode().index("chartSpace")) + 1
    changed(path, surface, chart, lambda xml: xml[:place] + link + xml[place:])
    with pytest.raises(ToolError, match="can't be deleted: a pivot chart shows it"):
        call("edit_pivot", path.name, control_id="pivot-1", delete=True)


def test_policy_sees_what_is_read_and_written(path: Path, surface: DocumentSurface) -> None:
    target, entries = target_of(surface), {entry.name: entry for entry in surface.tools()}

    def resources(tool: str, **arguments: Any) -> list[str]:
        bound = entries[tool].tool.validate({**arguments, "document": path.name})
        known = {name: value for name, value in bound.items() if name != "document"}
        explicit = surface.canonical(target, tool, known)
        assert explicit.get("cells", "") in {arguments.get("cells", ""), "A1:C4"}
        return [name for name in surface.resources(target, tool, explicit) if name.startswith(("range:", "sheet:"))]

    plan = {"rows": ["Key"], "values": AMOUNT}
    assert resources("insert_pivot", sheet="data", **plan) == ["range:Data!A1:C4", "sheet:Pivot"]
    assert resources("insert_pivot", sheet="Data", to="p!H1", **plan) == ["range:Data!A1:C4", "sheet:P"]
    assert resources("edit_pivot", control_id="pivot-1") == ["sheet:P", "range:Data!A1:C4"]
    assert resources("edit_pivot", control_id="pivot-1", cells="A1:C3") == ["sheet:P", "range:Data!A1:C3"]
    assert resources("edit_pivot", control_id="pivot-1", delete=True) == ["sheet:P"]
    arguments = {"control_id": "pivot-1", "control_name": "", "delete": True}
    assert surface.hazards(target, "edit_pivot", arguments, ()) == {"deletes"}
    assert surface.hazards(target, "edit_pivot", {**arguments, "delete": False}, ()) == set()
    assert [entries[name].effect for name in ("insert_pivot", "edit_pivot")] == ["once", "idempotent"]
