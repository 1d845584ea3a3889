"""What is killed: a host program whose tasks work on documents, with models that decide by what they are asked alone.

    python program.py

reads orders from its standard input, a JSON line each, runs each in a fork of its own (to import takes a second, to
fork nothing), and answers with a line: how that life ended, or what killed it, as a negative number.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from docx import Document
from openpyxl import Workbook, load_workbook

from callboard import Event, EventName, ModelRequest, PlanStep, Settings, Supervisor, Task, TaskHandle
from callboard.actors.processing import Context
from callboard.actors.states import WAS_DONE, WAS_NOT_DONE
from callboard.messages import Intent, Question
from callboard.testing import Faults, kill_process

SECONDS = 30.0
"""How long a life may stand still."""

DONE, BROKEN, SUSPENDED = 0, 1, 3
"""How a life ends that is not killed."""


def do(function: str, **arguments: Any) -> dict[str, Any]:
    """Decide on one action; texts with a `#` are marks, each of them stands in the documents once."""
    return {"function": function, "arguments": arguments}


def assign(target: str) -> dict[str, Any]:
    """Hand a document to its agent."""
    return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": f"work on {target}"}


TASKS = {
    task.id: task
    for task in (
        Task(id="plan", request="make a document, then add to the book"),
        Task(id="note", request="add to the shared document", target="shared.docx"),
        Task(id="memo", request="add to the shared document too", target="shared.docx"),
        Task(id="book", request="add to the shared book", target="shared.xlsx"),
        Task(id="gone", request="ask, and be cancelled", target="gone.docx"),
        Task(id="turn", plan=[PlanStep(request=f"turn {n}", target="turn.docx") for n in (1, 2)]),
    )
}
"""The tasks. Some take turns on one document, others wait for a person."""

ROWS = {"header": ["name", "mark"]}
SCRIPTS: dict[tuple[str, str], list[list[dict[str, Any]] | dict[str, Any]]] = {
    ("plan", "host/plan"): [
        [do("create_document", path="plan.docx")],
        assign("plan.docx"),
        assign("shared.xlsx"),
    ],
    ("plan", "app/word/plan.docx"): [
        [
            do("insert_heading", text="plan#1"),
            do("insert_table", **ROWS, rows=[["a", "plan#2"]]),
        ],
        [
            do("append_rows", control_id="table-1", rows=[["b", "plan#3"], ["c", "plan#4"]]),
            do("insert_paragraph", text="plan#5"),
            do("save_as", path="copy of plan.docx"),
        ],
    ],
    ("plan", "app/excel/shared.xlsx"): [
        [do("add_sheet", title="plan#6"), do("insert_table", sheet="plan#6", **ROWS, rows=[["a", "plan#7"]])],
    ],
    ("note", "app/word/shared.docx"): [
        [do("insert_paragraph", text="note#1"), do("insert_paragraph", text="note#2")],
        [do("edit_paragraph", control_id="paragraph-1", text="note")],
        [do("append_rows", control_id="table-1", rows=[["note", "note#3"]])],
    ],
    ("memo", "app/word/shared.docx"): [
        [do("insert_heading", text="memo#1")],
        [do("append_rows", control_id="table-1", rows=[["memo", "memo#2"]]), do("insert_paragraph", text="memo#3")],
    ],
    ("book", "app/excel/shared.xlsx"): [
        [do("add_sheet", title="book#1")],
        {"Status": "PENDING", "Questions": ["Which one?"]},
        [
            do("insert_table", sheet="book#1", **ROWS, rows=[["a", "book#2"], ["b", "book#3"]]),
            do("write_range", sheet="book#1", cell="D1", values=[["book#4"]]),
        ],
    ],
    ("gone", "app/word/gone.docx"): [
        [do("insert_paragraph", text="gone#1")],
        {"Status": "PENDING", "Questions": ["Shall I go on?"]},
    ],
    ("turn", "host/turn"): [],
    ("turn", "app/word/turn.docx"): [
        [do("insert_paragraph", text="turn#1")],
        {"Status": "FINISH"},
        [do("insert_paragraph", text="turn#2")],
    ],
}
"""What the model of an agent decides at its steps of a task: actions, or an answer; then it finishes."""


def prepare(workspace: Path) -> None:
    """Make the documents that the tasks find."""
    workspace.mkdir()
    for name in ("gone.docx", "turn.docx"):
        Document().save(str(workspace / name))
    document = Document()
    document.add_paragraph("shared")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = ROWS["header"]
    document.save(str(workspace / "shared.docx"))
    Workbook().save(workspace / "shared.xlsx")


def marks_in(workspace: Path) -> list[str]:
    """Read all marks that stand in the documents; the copy of one repeats none."""
    found: list[str] = []
    for path in workspace.glob("[!.c]*.docx"):
        document = Document(str(path))
        texts = [paragraph.text for paragraph in document.paragraphs]
        texts += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        found += [text for text in texts if "#" in text]
    for path in workspace.glob("[!.]*.xlsx"):
        book = load_workbook(path)
        cells = (value for sheet in book.worksheets for row in sheet.iter_rows(values_only=True) for value in row)
        found += [text for text in (*book.sheetnames, *cells) if isinstance(text, str) and "#" in text]
        book.close()
    return found


def note(path: Path, **fields: Any) -> None:
    """Write a line that outlives this process."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")
        file.flush()
        os.fsync(file.fileno())


def model(folder: Path, life: int) -> Callable[[ModelRequest], Any]:
    """Make the model of all agents. It decides by the request alone, and what it was asked outlives it."""

    def decide(request: ModelRequest) -> Any:
        turn = 1 + sum(record.step == 1 for record in request.memory[1:]) if request.address == "host/turn" else 1
        asked = {"run": request.run_id, "round": turn, "step": request.step, "call": request.call}
        note(folder / "calls.jsonl", life=life, **asked)
        if request.step == 1 and request.task_id == "memo" and not request.reasons:
            return {"Status": "PERHAPS"}  # it is sent back, and both answers are kept
        script = SCRIPTS[request.task_id, request.address]
        decided = sum(not record.resumed for record in request.memory)
        if decided >= len(script):
            return {"Status": "FINISH", "Comment": "done", "Result": f"{request.task_id} is done"}
        said = script[decided]
        return said if isinstance(said, dict) else {"Status": "CONTINUE", "Actions": said}

    return decide


def live(folder: Path, order: dict[str, Any]) -> int:
    """Submit tasks, or the same ones again, and wait until all are over, or for the time that was ordered."""
    settings = Settings.load(
        journal={"path": folder / "journal.db", "durability": order.get("durability", "full")},
        documents={"workspace": folder / "workspace"},
        log={"format": "off"},
    )
    decide = model(folder, order["life"])
    heard: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    if "stop_after" in order:
        threading.Timer(order["stop_after"], heard.put, [None]).start()
    supervisor = Supervisor.start(settings, models={"host": decide, "app": decide})
    status = DONE
    with supervisor:
        supervisor.subscribe(heard.put)
        handles: dict[str, TaskHandle] = {}
        for task_id in order.get("tasks", list(TASKS)):
            handles[task_id] = supervisor.submit(TASKS[task_id])
            note(folder / "accepted.jsonl", task=task_id)
        while True:
            for task_id in [task_id for task_id, handle in handles.items() if handle.done()]:
                result = handles.pop(task_id).result(0)
                note(folder / "told.jsonl", task=task_id, outcome=result.outcome, artifacts=result.artifacts)
            if not handles:
                break
            for handle in handles.values():
                attend(handle, folder)
            event = heard.get(timeout=SECONDS)
            if event is None:
                status = SUSPENDED
                break
            if event.name is EventName.TASK_ENDED and event.task_id in handles:
                handles[event.task_id].result(SECONDS)
    left = supervisor.stop()
    if left:
        msg = f"left behind: {left}"
        raise RuntimeError(msg)
    return status


def attend(handle: TaskHandle, folder: Path) -> None:
    """Do what a person does: pause, approve, answer, cancel; and look, where nobody else knows what was done."""
    handle.resume()  # whoever had paused it was killed
    for approval in handle.approvals():
        handle.pause()
        handle.approve(approval.id, by="a person")
        handle.resume()
    for question in handle.questions():
        if handle.task_id == "gone" and WAS_DONE not in question.questions[0].choices:
            handle.cancel("a person has no use for it")
        else:
            handle.answer(question.id, said_of(question, folder), by="a person")


def said_of(question: Question, folder: Path) -> str:
    """Answer an agent's question; of an action in doubt, say whether it stands in the documents."""
    text = question.questions[0].text
    if WAS_DONE not in question.questions[0].choices:
        return "this one"
    there = {*marks_in(folder / "workspace"), *(path.name for path in (folder / "workspace").iterdir())}
    return WAS_DONE if any(f"'{mark}'" in text for mark in there) else WAS_NOT_DONE


@contextlib.contextmanager
def forgetful() -> Iterator[None]:
    """Be the mutant: steps are written down after they ran, as usual elsewhere, and nobody looks what was begun."""
    keep = Context.keep

    async def keep_but_intents(self: Context, run: Any, *notes: Any) -> None:
        await keep(self, run, *(note for note in notes if not isinstance(note, Intent)))

    def foresees(*_: Any) -> Callable[..., None]:
        return lambda *_: None

    with (
        mock.patch.object(Context, "keep", keep_but_intents),
        mock.patch.object(Context, "foresees", foresees),
        mock.patch("callboard.actors.processing._recover._is_other", return_value=False),
    ):
        yield


def begin(order: dict[str, Any]) -> int:
    """Live one life, as ordered; write down which places it passed, if it gets so far. Returns how it ended."""
    folder = Path(order["folder"])
    with contextlib.ExitStack() as around:
        faults = around.enter_context(Faults())
        for when, kind, nth in order.get("kills", ()):
            getattr(faults, when)(kind, kill_process, nth=nth)
        if order.get("mutant"):
            around.enter_context(forgetful())
        status = live(folder, order)
        passed = sorted([*place, count] for place, count in faults.passed.items())
        (folder / f"passed-{order['life']}.json").write_text(json.dumps(passed), encoding="utf-8")
    return status


def main() -> None:
    """Run orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            status = BROKEN
            try:
                status = begin(order)
            except BaseException:  # noqa: BLE001 - whatever it is, it is the end of this life
                with (Path(order["folder"]) / "failures.txt").open("a", encoding="utf-8") as file:
                    traceback.print_exc(file=file)
            os._exit(status)
        if order.get("kill_after") is not None:
            with contextlib.suppress(ProcessLookupError):
                time.sleep(order["kill_after"])
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
