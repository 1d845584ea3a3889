"""Measure the FINISH that goes back for an omission.

``python -m benchmarks.finish_model`` runs short tasks on one document each, and prints one row for each run. A FINISH
that goes back leaves a copy of the workspace, so one run shows the outcome with and without the rule: the columns
``first`` and ``last`` say if the files, or the answer, were right at the first FINISH and at the end. The weights come
from ``tests/local_llm/fetch.py``, the server is ``xllamacpp`` (``pip install '.[local-llm]'``).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

import docx
import openpyxl

from benchmarks.document_tasks import server
from callboard import EventName, Settings, Supervisor, Task

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from weights import WEIGHTS  # noqa: E402 - a file of the tests, not a package

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard import TaskHandle

    Check = Callable[[Path, str], bool]

SECONDS = 1800
ORDERS = [
    ["Order", "Customer", "Amount"],
    ["P-7", "Weber", 240],
    ["P-8", "Costa", 90],
    ["P-9", "Weber", 415],
    ["P-10", "Lind", 130],
    ["P-11", "Okoye", 75],
]
MEMO = [
    ("Heading 1", "Team meeting"),
    ("Normal", "The meeting is on Friday in the room Maple."),
    ("Normal", "Please bring the figures by Friday noon."),
    ("Heading 1", "Tasks"),
]
PEOPLE = [["Name", "Task", "Days"], ["Rossi", "Budget", "4"], ["Novak", "Venue", "9"], ["Haas", "Catering", "3"]]
NOTES = "Rent contract\nIt ends on 31 March 2028.\nPhone of the landlord: 555-0140\nKeys: two\n"


def write_documents(folder: Path) -> None:
    """Write the documents of all tasks."""
    book = openpyxl.Workbook()
    book.active.title = "Orders"
    for row in ORDERS:
        book.active.append(row)
    book.save(folder / "orders.xlsx")
    memo = docx.Document()
    for style, text in MEMO:
        memo.add_paragraph(text, style)
    table = memo.add_table(0, 3)
    for row in PEOPLE:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    memo.save(str(folder / "memo.docx"))
    (folder / "notes.txt").write_text(NOTES, encoding="utf-8")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "vera@example.org", "office@example.org", "Repair of the roof"
    message.set_content("Hello,\nthe repair costs 1,280 euros. Please confirm it by Monday.\nVera\n")
    (folder / "roof.eml").write_bytes(message.as_bytes())


@dataclass(frozen=True)
class OfficeTask:
    """A request, and the check of its folder and Result."""

    target: str
    request: str
    check: Check


def has_cells(changes: dict[str, object], title: str = "Orders", file: str = "orders.xlsx", sheets: int = 1) -> Check:
    """Check that a sheet has only the present and given cells."""

    def check(folder: Path, _result: str) -> bool:
        book = openpyxl.load_workbook(folder / file)
        if title not in book.sheetnames or len(book.sheetnames) != sheets:
            return False
        expected = {
            f"{'ABC'[column]}{row}": value for row, cells in enumerate(ORDERS, 1) for column, value in enumerate(cells)
        }
        cells = {
            cell.coordinate: cell.value for row in book[title].iter_rows() for cell in row if cell.value is not None
        }
        return cells == expected | changes

    return check


def has_sum(folder: Path, _result: str) -> bool:
    """Check the sum of the amounts in C9."""
    formula = str(openpyxl.load_workbook(folder / "orders.xlsx")["Orders"]["C9"].value).replace("$", "").upper()
    allowed = {"=SUM(C2:C6)", "=SUM(C2:C7)", "=SUM(C2:C8)", "950"}
    return formula in allowed and has_cells({"C9": formula if formula != "950" else 950})(folder, "")


def has_largest(folder: Path, _result: str) -> bool:
    """Check the largest amount in B8."""
    value = openpyxl.load_workbook(folder / "orders.xlsx")["Orders"]["B8"].value
    allowed = {"=MAX(C2:C6)", "=MAX(C2:C7)", "=MAX(C:C)", "415"}
    return str(value).replace("$", "").upper() in allowed and has_cells({"B8": value})(folder, "")


def has_empty_sheet(folder: Path, result: str) -> bool:
    """Check that there is an empty sheet Returns."""
    book = openpyxl.load_workbook(folder / "orders.xlsx")
    return (
        has_cells({}, sheets=2)(folder, result) and "Returns" in book.sheetnames and book["Returns"]["A1"].value is None
    )


def has_text(edit: Callable[[list[tuple[str, str]], list[list[str]]], None], file: str = "memo.docx") -> Check:
    """Check the paragraphs and the table of the edited memo."""

    def check(folder: Path, _result: str) -> bool:
        paragraphs, rows = list(MEMO), [list(row) for row in PEOPLE]
        edit(paragraphs, rows)
        memo = docx.Document(str(folder / file))
        texts = [paragraph.text for paragraph in memo.paragraphs if paragraph.text.strip()]
        table = [[cell.text for cell in row.cells] for row in memo.tables[0].rows]
        return texts == [text for _, text in paragraphs] and table == rows

    return check


def has_notes(text: str) -> Check:
    """Check the text of the notes, but for empty lines."""
    return lambda folder, _result: (folder / "notes.txt").read_text("utf-8").split() == text.split()


def answers(pattern: str) -> Check:
    """Check the Result, and that no file has changed."""

    def check(folder: Path, result: str) -> bool:
        unchanged = has_cells({})(folder, "") and has_text(lambda _paragraphs, _rows: None)(folder, "")
        return bool(re.search(pattern, result)) and unchanged and has_notes(NOTES)(folder, "")

    return check


def has_subject(folder: Path, _result: str) -> bool:
    """Check the subject and the text of the message."""
    message = message_from_bytes((folder / "roof.eml").read_bytes())
    return message["Subject"] == "Invoice 2093" and "1,280" in str(message.get_payload())


def _to_thursday(paragraphs: list[tuple[str, str]], _rows: list[list[str]]) -> None:
    paragraphs[:] = [(style, text.replace("Friday", "Thursday")) for style, text in paragraphs]


def _to_oak(paragraphs: list[tuple[str, str]], _rows: list[list[str]]) -> None:
    paragraphs[1] = ("Normal", "The meeting is on Friday in the room Oak.")


def _to_open_tasks(paragraphs: list[tuple[str, str]], _rows: list[list[str]]) -> None:
    paragraphs[3] = ("Heading 1", "Open tasks")


RENAMED = {f"B{row}": "Webber" for row in (2, 4)}
TASKS = (
    OfficeTask("orders.xlsx", 'Write "Paid" into cell D3', has_cells({"D3": "Paid"})),
    OfficeTask("orders.xlsx", "Add a sheet called Returns", has_empty_sheet),
    OfficeTask("orders.xlsx", "Rename the sheet to Orders 2027", has_cells({}, "Orders 2027")),
    OfficeTask("orders.xlsx", "Set the amount of order P-8 to 260", has_cells({"C3": 260})),
    OfficeTask("orders.xlsx", "Append a row: P-12, Meyer, 310", has_cells({"A7": "P-12", "B7": "Meyer", "C7": 310})),
    OfficeTask("orders.xlsx", "Write the sum of the amounts into cell C9", has_sum),
    OfficeTask("orders.xlsx", "How many orders are from Weber?", answers(r"(?i)^\D*(?:2|two)\b(?!\d)")),
    OfficeTask("orders.xlsx", "What is the amount of order P-9?", answers(r"\b415\b")),
    OfficeTask("orders.xlsx", "Save a copy of this workbook as archive.xlsx", has_cells({}, file="archive.xlsx")),
    OfficeTask("orders.xlsx", 'Replace "Weber" with "Webber" everywhere', has_cells(RENAMED)),
    OfficeTask(
        "memo.docx",
        'Add the paragraph "The minutes are confidential." at the end',
        has_text(lambda paragraphs, _rows: paragraphs.append(("Normal", "The minutes are confidential."))),
    ),
    OfficeTask(
        "memo.docx",
        'Add the heading "Next steps" at the end of the document',
        has_text(lambda paragraphs, _rows: paragraphs.append(("Heading 1", "Next steps"))),
    ),
    OfficeTask("memo.docx", 'Change "Friday" to "Thursday" in the whole text', has_text(_to_thursday)),
    OfficeTask("memo.docx", "In which room is the meeting?", answers("Maple")),
    OfficeTask("memo.docx", "Who does the task Budget?", answers("Rossi")),
    OfficeTask(
        "memo.docx",
        "In the table, change the days of Novak to 12",
        has_text(lambda _paragraphs, rows: rows[2].__setitem__(2, "12")),
    ),
    OfficeTask(
        "notes.txt", 'Add the line "Call the plumber" at the end of the file', has_notes(f"{NOTES}Call the plumber")
    ),
    OfficeTask("notes.txt", "When does the contract end?", answers("31 March 2028|2028-03-31|March 31, 2028")),
    OfficeTask("roof.eml", "How much does the repair cost?", answers(r"1[,.]?280")),
    OfficeTask("roof.eml", 'Change the subject to "Invoice 2093"', has_subject),
)


HELD_OUT = (
    OfficeTask("orders.xlsx", 'Write "Currency" as the heading of column D', has_cells({"D1": "Currency"})),
    OfficeTask("orders.xlsx", "Change the customer of order P-10 to Lindqvist", has_cells({"B5": "Lindqvist"})),
    OfficeTask("orders.xlsx", "Which customer has order P-11?", answers("Okoye")),
    OfficeTask("orders.xlsx", "Put the largest amount into cell B8", has_largest),
    OfficeTask("orders.xlsx", 'Write "checked" in column D for order P-9', has_cells({"D4": "checked"})),
    OfficeTask("memo.docx", 'Replace the room "Maple" by "Oak"', has_text(_to_oak)),
    OfficeTask("memo.docx", "How many days does Haas have?", answers(r"\b3\b|[Tt]hree")),
    OfficeTask("memo.docx", 'Change the heading "Tasks" to "Open tasks"', has_text(_to_open_tasks)),
    OfficeTask("notes.txt", "What is the phone number of the landlord?", answers("555-0140")),
    OfficeTask("roof.eml", "By which day must the offer be confirmed?", answers("Monday")),
)
"""Tasks that no prompt or rule was made for."""


@dataclass
class Outcome:
    """The outcome of a run without and with the rule."""

    outcome: str
    is_right_first: bool
    is_right_last: bool
    reason: str
    seconds: float


def run(folder: Path, url: str, task: OfficeTask, seed: int) -> Outcome:
    """Run a task, and check it at both points."""
    workspace, copy = folder / "workspace", folder / "first"
    workspace.mkdir(parents=True)
    write_documents(workspace)
    provider = {"url": url, "temperature": 0.2, "seed": seed, "actions": 1, "short": True, "max_tokens": 400}
    limits = {
        "steps": 5,
        "model_seconds": SECONDS,
        "step_seconds": SECONDS,
        "history_tokens": 800,
        "question_seconds": 1,
    }
    settings = Settings.load(
        models={"app": "local:model", "record": folder / "recording.jsonl"},
        providers={"local": {**provider, "seconds": SECONDS, "input_price": 0, "output_price": 0}},
        documents={"workspace": workspace},
        limits=limits,
        policy=[{"verdict": "allow"}],
    )
    begin = time.monotonic()
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(request=task.request, target=task.target))
        omitted, reason = _follow(handle, workspace, copy)
        result = handle.result(SECONDS * 5)
    results = [_result(line) for line in (folder / "recording.jsonl").read_text("utf-8").splitlines()]
    last = result.ok and _is_right(task, workspace, results[-1])
    first = _is_right(task, copy, results[omitted]) if omitted is not None else last
    return Outcome(result.outcome.value, first, last, reason, time.monotonic() - begin)


def _follow(handle: TaskHandle, workspace: Path, copy: Path) -> tuple[int | None, str]:
    """Copy the workspace when a FINISH goes back for an omission.

    Returns the number of its answer, and the reason.
    """
    answered = 0
    omitted, reason = None, ""
    for event in handle.events():
        if event.name is EventName.MODEL_REPAIRED and "it says FINISH, but" in event.data["reason"]:
            shutil.copytree(workspace, copy)
            omitted, reason = answered, event.data["reason"]
        answered += event.name in {EventName.MODEL_REPAIRED, EventName.MODEL_ANSWERED}
    return omitted, reason


def _result(line: str) -> str:
    """Return the Result of a recorded answer."""
    content = json.loads(line).get("answer", {}).get("content", "")
    with contextlib.suppress(ValueError, TypeError):
        content = json.loads(content)
    if not isinstance(content, dict):
        return ""
    decision = content.get("Decision", content)
    value = decision.get("Result") if isinstance(decision, dict) else None
    return "" if value is None else str(value)


def _is_right(task: OfficeTask, folder: Path, result: str) -> bool:
    try:
        return task.check(folder, result)
    except (OSError, KeyError, IndexError, ValueError):
        return False


def main() -> None:
    """Run the tasks, and print a row for each run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.finish_model")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--url", help="a server that runs already, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--task", type=int, action="append", help="the number of a task, from 1; repeatable")
    parser.add_argument("--held-out", action="store_true", help="run the tasks that no prompt or rule was made for")
    parser.add_argument("--folder", type=Path, help="the folder of the runs, which is kept")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    print("| seed | request | outcome | first | last | reason | seconds |\n|--:|---|---|---|---|---|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder, server(options.url, options.model) as url:
        for seed in range(1, options.seeds + 1):
            for number, task in enumerate(HELD_OUT if options.held_out else TASKS, 1):
                if options.task and number not in options.task:
                    continue
                outcome = run((options.folder or Path(folder)) / f"{seed}-{number}", url, task, seed)
                first, last = ("yes" if right else "no" for right in (outcome.is_right_first, outcome.is_right_last))
                row = (seed, task.request, outcome.outcome, first, last, outcome.reason, f"{outcome.seconds:.0f}")
                print(f"| {' | '.join(map(str, row))} |", flush=True)
                counts.update(
                    runs=1, first=outcome.is_right_first, last=outcome.is_right_last, back=bool(outcome.reason)
                )
    print(dict(counts))


if __name__ == "__main__":
    main()
