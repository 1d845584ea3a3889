"""The documents surface as a whole: its tools for hosts, their schemas, and the example from end to end."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import openpyxl
import pytest

from callboard.messages import AgentKind, Effect, Target, TargetKind
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface
from support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

SOFFICE = shutil.which("soffice")


def test_the_applications_that_can_be_started_are_targets(surface: DocumentSurface, call: Call) -> None:
    applications = call("list_applications")
    assert [(target.id, target.name, target.address, target.start) for target in applications] == [
        ("word", "Word", "app/word/*", "start_application"),
        ("excel", "Excel", "app/excel/*", "start_application"),
        ("powerpoint", "PowerPoint", "app/powerpoint/*", "start_application"),
    ]
    assert surface.targets() == tuple(applications)


def test_starting_an_application_makes_a_document_with_the_next_number(call: Call) -> None:
    made = [call("start_application", name=name).id for name in ("word", "Word", "Excel")]
    assert made == ["Document1.docx", "Document2.docx", "Workbook1.xlsx"]
    with pytest.raises(ToolError, match="there are: word, excel, powerpoint"):
        call("start_application", name="paint")


def test_a_window_is_opened_and_selected_by_id_or_name(workspace: Path, call: Call) -> None:
    (workspace / "sub").mkdir()
    for path in ("a.docx", "sub/a.docx", "b.xlsx"):
        target = call("create_document", path=path)
        assert isinstance(target, Target)
        assert call("open_document", path=path) == target
        assert call("select_window", window=path) == target
    assert call("select_window", window="B.xlsx").id == "b.xlsx"
    for window, why in (("c.docx", "no window"), ("A.docx", "2 windows")):
        with pytest.raises(ToolError, match=why):
            call("select_window", window=window)
    with pytest.raises(ToolError, match="no document"):
        call("open_document", path="c.docx")


def test_observing_gives_controls_facts_and_a_fingerprint(call: Call, surface: DocumentSurface) -> None:
    target = call("start_application", name="word")
    call("insert_heading", target.id, text="Title")
    seen = surface.observe(target)
    assert [control.id for control in seen.controls] == ["heading-1"]
    assert seen.window | {"size": 0, "modified": ""} == {
        "path": "Document1.docx", "application": "Word", "size": 0, "modified": "", "dirty": False, "writable": True,
        "not_writable_because": "", "controls": 1, "controls_left_out": 0,
        "outline": ["Title"],
    }  # fmt: skip
    assert surface.observe(target).fingerprint == seen.fingerprint
    assert surface.fingerprint(target) == seen.fingerprint
    assert surface.resolve(surface.observe(target), seen.controls[0]) == seen.controls[0]
    call("edit_paragraph", target.id, control_id="heading-1", text="Other")
    assert surface.observe(target).fingerprint != seen.fingerprint
    assert surface.resolve(surface.observe(target), seen.controls[0]) is None


def test_an_application_that_is_not_started_can_not_be_observed(surface: DocumentSurface, call: Call) -> None:
    with pytest.raises(ToolError, match="start the application"):
        surface.observe(call("list_applications")[0])


def test_tool_names_are_unique_per_app_and_app_tools_take_a_document(
    surface: DocumentSurface,
) -> None:
    for root in ("word", "excel", "powerpoint"):
        names = [entry.name for entry in surface.tools() if not entry.roots or root in entry.roots]
        assert len(names) == len(set(names))
    for entry in surface.tools():
        parameters = list(entry.tool.parameters["properties"])
        assert (parameters[:1] == ["document"]) == (AgentKind.APP in entry.agents)
        assert entry.tool.description
        assert all("description" in about for about in entry.tool.parameters["properties"].values())


async def test_reading_tools_are_marked_as_reading_and_deletions_as_destructive(surface: DocumentSurface) -> None:
    alone = {entry.name: entry.annotations for entry in await surface.mcp_server().list_tools()}
    for entry in surface.tools():
        reads = entry.name.startswith(("read_", "get_", "list_", "open_", "select_", "show_", "summarize"))
        assert (entry.effect is Effect.READ) == reads
        annotations = alone.get(entry.name) or alone["_".join([*sorted(entry.roots), entry.name])]
        assert (annotations.read_only_hint, annotations.destructive_hint) == (reads, entry.name.startswith("delete_"))


async def test_alone_the_server_offers_every_tool_under_a_name_of_its_own(surface: DocumentSurface) -> None:
    alone = surface.mcp_server()
    names = [entry.name for entry in await alone.list_tools()]
    assert {"word_insert_table", "excel_insert_table", "pdf_read_table", "move_file"} <= set(names)
    assert len(names) == len(set(names)) == len(surface.tools())
    await alone.call_tool("create_document", {"path": "a.docx"})
    result = await alone.call_tool("insert_heading", {"document": "a.docx", "text": "Title"})
    assert "heading-1" in str(result)


def test_table_copied_from_docx_to_xlsx_keeps_its_numbers_as_numbers(workspace: Path, call: Call) -> None:
    call("create_document", path="sales.docx")
    rows = [["North", "1,234.50"], ["South", "987.25"]]
    call("insert_table", "sales.docx", header=["Region", "Revenue"], rows=rows)
    call("create_document", path="report.xlsx")
    table = call("read_table", "sales.docx", control_id="table-1")
    call("insert_table", "report.xlsx", header=table["header"], rows=table["rows"])
    sheet = openpyxl.load_workbook(workspace / "report.xlsx").active
    assert [(cell.value, cell.data_type) for cell in sheet["B"][1:]] == [(1234.5, "n"), (987.25, "n")]


@pytest.fixture
def soffice() -> str:
    """Find LibreOffice."""
    if SOFFICE is None:
        reason = "soffice is not installed"
        if os.environ.get("REQUIRE_SOFFICE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return SOFFICE


def test_libreoffice_opens_what_was_made(soffice: str, workspace: Path, tmp_path: Path, call: Call) -> None:
    call("create_document", path="report.xlsx")
    rows = [["North", 10, {"date": "2024-05-31"}], ["South", 20.5, {"date": "2024-06-30"}]]
    call("insert_table", "report.xlsx", header=["Region", "Revenue", "Until"], rows=rows)
    call("set_formula", "report.xlsx", cells="B4", formula="=SUM(B2:B3)")
    for kind in ("bar", "line", "pie"):
        call("insert_chart", "report.xlsx", type=kind, cells="A1:B3", title=kind, x_title="Region", y_title="EUR")
    call("create_document", path="letter.docx")
    call("insert_heading", "letter.docx", text="Title", level=0)
    call("insert_table", "letter.docx", header=["Region", "Revenue"], rows=[["North", 10]])
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    for kind, names in (("pdf", ["report.xlsx", "letter.docx"]), ("xlsx", ["report.xlsx"])):
        files = [str(workspace / name) for name in names]
        command = [soffice, profile, "--headless", "--convert-to", kind, "--outdir", str(tmp_path / "out"), *files]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        for name in names:
            assert (tmp_path / "out" / name).with_suffix(f".{kind}").stat().st_size
    computed = openpyxl.load_workbook(tmp_path / "out" / "report.xlsx", data_only=True).active
    assert computed["B4"].value == 30.5
    assert len(computed._charts) == 3


def test_targets_of_all_kinds_are_valid_messages(surface: DocumentSurface, call: Call) -> None:
    call("start_application", name="excel")
    for target in surface.targets():
        assert Target.model_validate_json(target.model_dump_json()) == target
    assert {target.kind for target in surface.targets()} == {TargetKind.WINDOW, TargetKind.APPLICATION}
