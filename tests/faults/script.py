"""The tasks, and their models' decisions, which depend on the request alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from callboard import ModelRequest, PlanStep, Task
from callboard.messages import CommandResult, Outcome, ResultStatus, Routine

Said = list[dict[str, Any]] | dict[str, Any]
"""A model's decision at a step: actions, or an answer."""


def do(function: str, **arguments: Any) -> dict[str, Any]:
    """Decide on one action. A text with a ``#`` is a mark of an action that must not be repeated, one with a ``~`` of
    one that may be; each of them stands in the documents once at the end."""
    return {"function": function, "arguments": arguments}


def of(tool: str, key: str = "control_id") -> dict[str, str]:
    """Stand for the answer of a tool's latest call; the model has it from its memory."""
    return {"answer of": tool, "key": key}


def assign(target: str | dict[str, str]) -> dict[str, Any]:
    """Hand a document to its agent."""
    return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": "work on it"}


def ask(text: str) -> dict[str, Any]:
    """Ask a person."""
    return {"Status": "PENDING", "Questions": [text]}


FINISH = {"Status": "FINISH"}
SILENCE = {"Status": "SILENCE"}
"""The model does not answer any more."""


def _written(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments, **({"control": 0} if "control_id" in arguments else {})}


_TABLE = {"kind": "table", "name": "name | mark", "id": "table-1"}
_DRAFT = {"kind": "paragraph", "name": "a draft", "id": "paragraph-1"}
ROUTINE = Routine.model_validate(
    {
        "routine": "again",
        "request": "note the numbers",
        "host": [
            {"status": "CONTINUE", "actions": [_written("create_document", path="copy of again.docx")]},
            {"status": "ASSIGN", "assign": [{"subtask": 1}]},
            {"status": "ASSIGN", "assign": [{"subtask": 2}]},
            {"status": "FINISH", "result": "${subtasks.2.output}"},
        ],
        "subtasks": [
            {
                "target": "again.csv",
                "kind": "app",
                "request": "read the numbers",
                "steps": [
                    {"status": "CONTINUE", "actions": [_written("read_table")]},
                    {"status": "FINISH", "result": "${steps.1.results.0.value.rows}"},
                ],
            },
            {
                "target": "again.docx",
                "kind": "app",
                "request": "write them",
                "steps": [
                    {
                        "each": "subtasks.1.output",
                        "steps": [
                            {"status": "CONTINUE", "actions": [_written("insert_paragraph", text="again#${item.0}")]},
                            {
                                "status": "CONTINUE",
                                "controls": [_TABLE],
                                "actions": [
                                    _written(
                                        "append_rows",
                                        control_id="${controls.0.id}",
                                        rows=[["${item.1}", "again#${item.2}"]],
                                    )
                                ],
                            },
                        ],
                    },
                    {
                        "status": "CONTINUE",
                        "controls": [_DRAFT],
                        "actions": [_written("edit_paragraph", control_id="${controls.0.id}", text="again~1")],
                    },
                    {"status": "FINISH", "result": "${subtasks.1.output.0.1}"},
                ],
            },
        ],
        "checks": [{"text": "again.docx", "contains": f"again#{number}"} for number in (1, 2, 3)],
    }
)


SIDE = {1: (), 2: (), 3: (1,), 4: (1, 2)}
"""The steps of a plan whose subtasks work side by side, and those that each comes after."""


def tasks(life: int) -> dict[str, Task]:
    """Make the tasks by their names; some take turns on one document, others wait for a person.

    The book is the same one by its key alone: each life has another id for it.
    """
    given = (
        Task(id="plan", request="make a document, then add to the book"),
        Task(id="note", request="add to the shared document", target="shared.docx"),
        Task(id="memo", request="add to the shared document too", target="shared.docx"),
        Task(id=f"book-{life}", key="book", request="add to the shared book", target="shared.xlsx"),
        Task(id="gone", request="ask, and be cancelled", target="gone.docx"),
        Task(id="held", request="ask, be paused and answered, and then be cancelled", target="held.docx"),
        Task(id="turn", plan=[PlanStep(request=f"turn {n}", target="turn.docx") for n in (1, 2)]),
        Task(id="side", plan=[PlanStep(request=f"side {n}", target=f"side{n}.docx", after=SIDE[n]) for n in SIDE]),
        Task(id="open", request="start an application, and work in its window"),
        Task(id="late", request="ask, and hear nothing", target="late.docx"),
        Task(id="slow", request="take too long", target="slow.docx"),
        Task(id="grid", request="change a workbook", target="grid.xlsx"),
        Task(id="item", request="change a document", target="item.docx"),
        Task(id="rows", request="change a table", target="rows.csv"),
        Task(id="letter", request="write a message", target="letter.eml"),
        Task(id="date", request="change a calendar", target="date.ics"),
        Task(id="page", request="change a text", target="page.txt"),
        Task(id="shot", request="convert a picture", target="shot.bmp"),
        Task(id="paper", request="make a PDF", target="paper.docx"),
        Task(id="again", routine=ROUTINE),
    )
    return {name(task.id): task for task in given}


def name(task_id: str) -> str:
    """Tell which task it is."""
    return task_id.partition("-")[0]


DEADLINES = ("late", "slow")
"""Tasks that end when a time is over: they need `limits` that are short."""
FORMATS = ("grid", "item", "rows", "letter", "date", "page", "shot")
"""Tasks on a document of each format."""
PRINTED = (*FORMATS, "paper")
"""These, and one that needs LibreOffice."""
FOLLOWED = ("again",)
"""Tasks that repeat a routine: no model is called, and their checks hold."""
ALL = tuple(known for known in tasks(0) if known not in (*DEADLINES, *PRINTED, *FOLLOWED))
TWICE = ("note", "book")
"""Tasks that are submitted twice in each life: by the same id, and by the same key."""
OUTCOMES = {
    "gone": Outcome.CANCELLED,
    "held": Outcome.CANCELLED,
    "late": Outcome.TIMED_OUT,
    "slow": Outcome.TIMED_OUT,
}
"""The outcomes of tasks that do not finish."""

HEADER = ["name", "mark"]
DAY = "2026-06-02"
SCRIPTS: dict[tuple[str, str], list[Said]] = {
    ("plan", "host/plan"): [
        [do("create_document", path="plan.docx")],
        assign(of("create_document", "id")),
        assign("shared.xlsx"),
    ],
    ("plan", "app/word/plan.docx"): [
        [do("insert_heading", text="plan#1"), do("insert_table", header=HEADER, rows=[["a", "plan#2"]])],
        [
            do("append_rows", control_id=of("insert_table"), rows=[["b", "plan#3"], ["c", "plan#4"]]),
            do("write_cell", control_id=of("insert_table"), row=2, column=1, value="a draft"),
            do("insert_paragraph", text="plan#5"),
        ],
        [
            do("write_cell", control_id=of("append_rows"), row=2, column=1, value="plan~1"),
            do("set_font", control_id=of("insert_paragraph"), bold=True),
            do("save_as", path="copy of plan.docx"),
            do("read_table", control_id=of("write_cell")),
        ],
    ],
    ("plan", "app/excel/shared.xlsx"): [
        [
            do("add_sheet", title="plan#6"),
            do("insert_table", sheet="plan#6", header=HEADER, rows=[["a", "plan#7"]]),
        ],
    ],
    ("note", "app/word/shared.docx"): [
        [do("insert_paragraph", text="note#1"), do("insert_paragraph", text="note#2")],
        [do("edit_paragraph", control_id="paragraph-1", text="note~1")],
        [do("append_rows", control_id="table-1", rows=[["note", "note#3"]])],
    ],
    ("memo", "app/word/shared.docx"): [
        [do("insert_heading", text="memo#1")],
        [do("append_rows", control_id="table-1", rows=[["memo", "memo#2"]]), do("insert_paragraph", text="memo#3")],
    ],
    ("book", "app/excel/shared.xlsx"): [
        [do("add_sheet", title="book#1")],
        ask("Which one?"),
        [
            do("insert_table", sheet=of("add_sheet", "sheet"), header=HEADER, rows=[["a", "book#2"], ["b", "book#3"]]),
            do("write_range", sheet=of("add_sheet", "sheet"), cell="D1", values=[["book~1", 0.25]]),
            do("format_cells", sheet=of("add_sheet", "sheet"), cells="E1", number_format="0%"),
        ],
    ],
    ("gone", "app/word/gone.docx"): [[do("insert_paragraph", text="gone#1")], ask("Shall I go on?")],
    ("held", "app/word/held.docx"): [
        [do("insert_paragraph", text="held#1")],
        ask("Shall I go on?"),
        [do("insert_paragraph", text="what a task does that was paused, and then cancelled")],
    ],
    ("turn", "host/turn"): [],
    ("turn", "app/word/turn.docx"): [
        [do("insert_paragraph", text="turn#1")],
        ask("Shall I go on?"),
        [do("insert_paragraph", text="turn#2")],
        FINISH,
        [do("insert_paragraph", text="turn#3", control_id=of("insert_paragraph"))],
    ],
    ("side", "host/side"): [],
    **{("side", f"app/word/side{n}.docx"): [[do("insert_paragraph", text=f"side#{n}")]] for n in SIDE},
    ("open", "host/open"): [assign("word")],
    ("open", "app/word/Document1.docx"): [[do("insert_paragraph", text="open#1")]],
    ("late", "app/word/late.docx"): [[do("insert_paragraph", text="late#1")], ask("Is somebody there?")],
    ("slow", "app/word/slow.docx"): [[do("insert_paragraph", text="slow#1")], SILENCE],
    ("grid", "app/excel/grid.xlsx"): [
        [
            do("append_rows", sheet="Data", values=[["grid#1", 2], ["grid#2", 1]]),
            do("insert_rows_or_columns", sheet="Data", what="rows", at="2", count=2),
            do("write_range", sheet="Data", cell="A2", values=[["grid~1", 9]]),
        ],
        [
            do("set_formula", sheet="Data", cells="C2", formula="=SUM(B2:B6)"),
            do("insert_chart", sheet="Data", cells="A4:B6", type="bar", header=False),
            do("delete_rows_or_columns", sheet="Data", what="rows", at="3"),
            do("sort_range", sheet="Data", cells="A3:B5", by=[{"column": "B"}], header=False),
        ],
        [do("rename_sheet", sheet="Data", title="grid#3")],
    ],
    ("item", "app/word/item.docx"): [
        [
            do("insert_paragraph", text="item#1", more_texts=["item#2"], list_type="number"),
            do("replace_text", find_text="draft", new_text="draft draft"),
        ],
        [do("delete_from_table", control_id="table-1", columns=[2])],
        [do("append_rows", control_id="table-1", rows=[["item#3"]]), do("delete_control", control_id="paragraph-1")],
    ],
    ("rows", "app/csv/rows.csv"): [
        [do("append_rows", rows=[["a", "rows#1"]]), do("append_rows", rows=[["b", "rows#2"], ["c", "rows#3"]])],
        [do("write_cell", row=1, column=2, value="rows~1"), do("append_rows", rows=[["d", "rows#4"]])],
    ],
    ("letter", "app/mail/letter.eml"): [
        [do("write_message", to=["ada@example.org"], subject="letter~1", text="letter~2")],
        [do("write_message", attachments=["letter#1.md"]), do("save_as", path="copy of letter.eml")],
    ],
    ("date", "app/calendar/date.ics"): [
        [do("write_event", summary="date#1", start="2026-06-01T09:00"), do("write_event", summary="date#2", start=DAY)],
        [do("delete_control", control_id="event-1")],
        [
            do("write_event", control_id="event-1", location="date~1"),
            do("write_event", summary="date#3", start=DAY),
        ],
    ],
    ("page", "app/text/page.txt"): [
        [do("write_text", text="page#1"), do("write_text", text="page#2")],
        [do("replace_text", find_text="draft", new_text="draft draft"), do("write_text", text="page#3")],
    ],
    ("shot", "app/picture/shot.bmp"): [
        [do("save_as", path="copy of shot.png", width=16)],
        [do("save_as", path="copy of shot.jpg")],
    ],
    ("paper", "app/word/paper.docx"): [
        [do("insert_paragraph", text="paper#1"), do("save_as", path="copy of paper.pdf")],
        [do("insert_paragraph", text="paper#2")],
    ],
}
"""The decisions of an agent's model at the steps of a task, before it finishes."""


def marks(names: Iterable[str]) -> set[str]:
    """Give the marks of some tasks: each of them stands in the documents once, when they are over."""
    said = json.dumps([script for (task, _), script in SCRIPTS.items() if task in names])
    followed = {"again~1", *(f"again#{number}" for number in range(1, 7))} if "again" in names else set()
    return followed | set(re.findall(r'"(\w+[#~]\d)(?:\.md)?"', said))


def decided(request: ModelRequest) -> Said:
    """Decide by the agent's request alone."""
    if request.step == 1 and request.task_id == "memo" and not request.reasons:
        return {"Status": "PERHAPS"}  # it is sent back, and both answers are kept
    script = SCRIPTS[name(request.task_id), request.address]
    done = sum(not record.resumed for record in request.memory)
    results = [result for record in request.memory for result in record.results]
    if done < len(script):
        return _filled(script[done], results)
    answers = [[result.tool, _known(result.value)] for result in results if result.status is ResultStatus.SUCCESS]
    return {**FINISH, "Comment": f"{name(request.task_id)} is done", "Result": answers}


def _known(value: Any) -> Any:
    """Leave out of an answer the parts that other tasks share."""
    shared = {"sheets", "table"}
    return {key: part for key, part in value.items() if key not in shared} if isinstance(value, dict) else value


def _filled(said: Any, results: list[CommandResult]) -> Any:
    """Put answers where they are stood for."""
    if isinstance(said, list):
        return [_filled(part, results) for part in said]
    if not isinstance(said, dict):
        return said
    if "answer of" not in said:
        return {key: _filled(part, results) for key, part in said.items()}
    value: Any = next(result.value for result in reversed(results) if result.tool == said["answer of"])
    if not isinstance(value, dict):
        msg = f"{said['answer of']} answered: {value}"
        raise TypeError(msg)
    return value[said["key"]]
