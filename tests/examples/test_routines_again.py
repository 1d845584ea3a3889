"""The examples are run once, recorded, and repeated for other data without a model."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import os
import shutil
import socket
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import docx
import openpyxl
import pytest

from callboard import ModelRequest, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.config import load_yaml
from callboard.journal import JournalReader
from callboard.messages import Check
from callboard.routines import RoutineRecording, dump, record
from callboard.surfaces import Need
from callboard.surfaces.browser import BrowserSurface
from callboard.surfaces.desktop import DesktopSurface
from callboard.testing import Phone, plugged_in

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS = 200
"""The longest run, of the desktop's on a busy machine."""
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
ALONE = {"ask_question": False}
OTHERS = [
    ("First name", "Last name", "Phone"),
    ("Grace", "Hopper & Sons", "555-0100"),
    ("Alan", "Kay", "123"),
    ("Emmy", "Noether", "555-77"),
    ("Ada", "Lovelace", "+44 20 7946 0001"),
    ("Katherine", "Johnson", "+1 757 864 1000"),
]


def recording_of(journal: Path, **parameters: str) -> RoutineRecording:
    """Record the only task of a journal."""
    with JournalReader.open(journal) as reader:
        (task_id,) = reader.ids()
        return record(reader.rows(task_id, events=False), name="again", parameters=parameters)


def saved(recording: RoutineRecording, file: Path, **changes: Any) -> str:
    """Write a routine, as a person may have edited it."""
    file.write_text(dump(recording.routine.model_copy(update=changes)), encoding="utf-8")
    return str(file)


def repeated(result: TaskResult) -> bool:
    """Return whether a run was verified without a model."""
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True), result.causes
    assert result.usage.replayed > 0
    return result.usage.model_calls == 0


def run_folder(folder: Path, **given: Any) -> TaskResult:
    """Run an example that is a folder with settings; a routine has no model behind it."""
    settings = Settings.load(folder / "callboard.yaml", system=ALONE)
    if "routine" in given:
        settings = settings.model_copy(update={"models": type(settings.models)()})
    with Supervisor.start(settings) as supervisor:
        return supervisor.submit(Task.model_validate(given)).result(SECONDS)


def more_expenses(workspace: Path) -> None:
    path = workspace / "expenses.csv"
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    rows = [*reversed(rows), ["2026-06-01", "Taxi", "17.30"], ["2026-06-02", "Toner", "64.00"]]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def more_cities(workspace: Path) -> None:
    document = docx.Document(str(workspace / "north.docx"))
    header, *rows = document.element.body.tbl_lst[0].tr_lst
    header.addnext(rows[-1])
    for cell, text in zip(document.tables[0].add_row().cells, ["Kiel", "10", "2,000.5", "0", "7.25"], strict=True):
        cell.text = text
    document.save(str(workspace / "north.docx"))


def other_regions(workspace: Path) -> None:
    book = openpyxl.load_workbook(workspace / "figures.xlsx")
    (table,) = book.active.tables.values()
    _, *rows = book.active[table.ref]
    values = [[cell.value for cell in row] for row in rows]
    for row, cells in zip(reversed(values), rows, strict=True):
        for cell, value in zip(cells, row, strict=True):
            cell.value = value
    book.save(workspace / "figures.xlsx")


def more_logs(workspace: Path) -> None:
    logs = workspace / "logs"
    (logs / "audit.log").write_text("2026-03-04 06:00:00 ERROR disk full\n" * 7, encoding="utf-8")
    (logs / "mail.log").write_text("2026-03-04 06:00:00 INFO ready\n", encoding="utf-8")


def more_regions(workspace: Path) -> None:
    document = docx.Document(str(workspace / "sales.docx"))
    for cell, text in zip(document.tables[0].add_row().cells, ["Islands", "10", "20.5", "0", "7.25"], strict=True):
        cell.text = text
    document.save(str(workspace / "sales.docx"))


def again(name: str, tmp_path: Path, change: Callable[[Path], None]) -> tuple[RoutineRecording, Path]:
    """Run an example, and repeat it in another folder, whose documents are changed."""
    first, second = (Path(shutil.copytree(EXAMPLES / name, tmp_path / folder)) for folder in ("first", "second"))
    assert run_folder(first, **load_yaml(first / "task.yaml")).verified
    recording = recording_of(first / "journal.db")
    shutil.rmtree(first)  # nothing of the second run may be there
    change(second / "workspace")
    assert repeated(run_folder(second, routine=saved(recording, tmp_path / "again.routine.yaml")))
    assert not first.exists()
    return recording, second / "workspace"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("expenses", more_expenses),
        ("sales_by_region", more_cities),
        ("quarterly_deck", other_regions),
        ("log_report", more_logs),
        ("sales_report", more_regions),
    ],
)
def test_documents_with_other_rows_need_no_model(tmp_path: Path, name: str, change: Callable[[Path], None]) -> None:
    recording, _ = again(name, tmp_path, change)
    assert recording.old_data == ()


@pytest.mark.slow
def test_desktop_with_more_rows_needs_no_model(tmp_path: Path) -> None:
    needs = [*DesktopSurface.needs({"display": "private"}), Need.program("soffice")]
    skip_without(needs, "REQUIRE_DESKTOP")
    recording, workspace = again("sales_report_desktop", tmp_path, more_regions)
    assert recording.old_data == ()
    assert str(tmp_path) not in recording.routine.model_dump_json()
    rows = list(openpyxl.load_workbook(workspace / "report.xlsx").active.values)
    assert rows[-1] == ("Islands", 10, 20.5, 0, 7.25)


def skip_without(needs: list[Need], variable: str) -> None:
    """Skip where a program is missing; if a variable requires it, fail."""
    missing = "; ".join(need.told for need in needs if not need.met)
    if missing and os.environ.get(variable):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture
def example(request: pytest.FixtureRequest) -> ModuleType:
    """Load the program of an example."""
    spec = importlib.util.spec_from_file_location("again_example", EXAMPLES / request.param / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Program:
    """The supervisor and the task of an example's program, which may follow a routine instead of its models."""

    def __init__(self, example: ModuleType, monkeypatch: pytest.MonkeyPatch, journal: Path) -> None:
        self.journal = journal
        self.given: dict[str, Any] = {}
        self.checks: tuple[Check, ...] | None = None
        """Those in place of the example's."""
        monkeypatch.setattr(example, "Supervisor", self)
        monkeypatch.setattr(example, "Task", self.task)

    def start(self, settings: Settings, models: dict[str, Any]) -> Supervisor:
        """Start a supervisor on the own journal."""
        sections = {"journal": {"path": self.journal}, "system": ALONE}
        given = {name: getattr(settings, name).model_copy(update=section) for name, section in sections.items()}
        return Supervisor.start(settings.model_copy(update=given), models={} if self.given else models)

    def task(self, request: str, checks: tuple[Any, ...]) -> Task:
        """Make the task."""
        return Task(checks=checks if self.checks is None else self.checks, **self.given or {"request": request})


@pytest.mark.slow
@pytest.mark.usefixtures("adb_program")
@pytest.mark.parametrize("example", ["phone_contacts"], indirect=True)
def test_phone_gets_other_contacts_without_a_model(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOME": tmp_path, "TMPDIR": tmp_path, "ADB_LOCAL_TRANSPORT_MAX_PORT": 0}.items():
        monkeypatch.setenv(name, str(value))
    program = Program(example, monkeypatch, tmp_path / "first.db")

    def run(people: list[tuple[str, ...]], **routine: str) -> tuple[TaskResult, str, list[tuple[str, str]]]:
        monkeypatch.setattr(example, "PEOPLE", people)
        folder = tmp_path / str(len(people))
        folder.mkdir()
        example.write_document(folder / "people.docx", people)
        phone = Phone()
        with plugged_in(phone) as device, contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
            free.close()
            if routine:
                program.given = {**routine, "parameters": {"device": device.serial}}
            result = example.add_contacts(folder, device.serial, port)
        return result, device.serial, [(person.name, person.phone) for person in phone.contacts.people]

    result, serial, _ = run(example.PEOPLE)
    assert result.verified
    recording = recording_of(program.journal, device=serial)
    assert recording.old_data == ()
    program.journal = tmp_path / "second.db"
    file = saved(recording, tmp_path / "again.routine.yaml", checks=())  # they are of other people
    result, _, contacts = run(OTHERS, routine=file)
    assert repeated(result)
    assert {(f"{first} {last}", number) for first, last, number in OTHERS[1:]} <= set(contacts)


def pages_apart(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the models hand over the rows of each page as they are, and write them one page after the other."""
    on_page = example.on_page

    def as_read(request: ModelRequest) -> dict[str, Any]:
        answer: dict[str, Any] = on_page(request)
        if answer["Status"] == "FINISH":
            tables = [
                result.value for step in request.memory for result in step.results if isinstance(result.value, dict)
            ]
            answer["Result"] = [table["rows"] for table in tables if "rows" in table]
        return answer

    def in_workbook(request: ModelRequest) -> dict[str, Any]:
        first, second = request.subtasks[0].output  # type: ignore[misc] # a list of two pages
        calls = [
            example.call("insert_table", name="Cities", header=list(example.HEADER), rows=first),
            example.call("append_rows", control_name="Cities", values=second),
        ]
        done = len(request.memory)
        return calls[done] if done < len(calls) else {"Status": "FINISH"}

    monkeypatch.setattr(example, "on_page", as_read)
    monkeypatch.setattr(example, "in_workbook", in_workbook)


def checks_of(cities: list[tuple[str, int, int]]) -> tuple[Check, ...]:
    """Expect the texts of the page in the workbook."""
    rows: Any = [[city, f"{visitors:,}", f"{nights:,}"] for city, visitors, nights in cities]
    return (Check(table="cities.xlsx!Cities", equals=rows),)


@pytest.mark.slow
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("example", ["web_to_excel"], indirect=True)
def test_website_at_another_address_needs_no_model(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    skip_without(list(BrowserSurface.needs({"executable": "chromium"})), "REQUIRE_BROWSER")
    browser = {"executable": "chromium", "sandbox": not IS_ROOT, "network": {"allow": ["127.0.0.1:*"]}}
    program = Program(example, monkeypatch, tmp_path / "first.db")

    def run(name: str, **routine: str) -> tuple[TaskResult, str]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), example.Website)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/cities"
        program.given = {**routine, "parameters": {"site": address}} if routine else {}
        program.checks = None if joined else checks_of(example.CITIES)
        (tmp_path / name).mkdir()
        try:
            return example.fill_workbook(tmp_path / name, address, browser), address
        finally:
            server.shutdown()
            server.server_close()

    if not joined:
        pages_apart(example, monkeypatch)
    result, address = run("first")
    assert result.verified, result.causes
    recording = recording_of(program.journal, site=address)
    if joined:
        (reason,) = recording.old_data  # the model joined both pages, and converted their numbers
        assert reason.startswith(
            "subtasks.1.steps.5.result.rows holds 12 values that were read in this run, such as 412"
        )
    else:
        assert recording.old_data == ()
        monkeypatch.setattr(example, "CITIES", [("Graz", 295_400, 600_100), *reversed(example.CITIES)])
    program.journal = tmp_path / "second.db"
    result, _ = run("second", routine=saved(recording, tmp_path / "again.routine.yaml", checks=()))
    assert repeated(result)
