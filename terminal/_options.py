"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import callboard.terminal as parts
from callboard.terminal._commands import existing_path, task_name


def _task_ids(incomplete: str) -> list[str]:
    return parts.task_ids(incomplete)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Approve all requests for approval; still ask questions.")]
NoInput = Annotated[
    bool,
    typer.Option("--no-input", help="Never ask: reject requests for approval, and tell agents that no person answers."),
]
WithConsole = Annotated[
    bool,
    typer.Option(
        "--console",
        help="Show the work in the browser, too, and answer there. The console stays until Ctrl-C after the work has "
        "ended. It needs a journal.",
    ),
]
Abandon = Annotated[
    bool,
    typer.Option(
        "--abandon", help="On Ctrl-C, do not wait for other machines of the fleet; what they did is in doubt."
    ),
]
Log = Annotated[bool, typer.Option("--log", help="Write the log to standard error.")]
LogFile = Annotated[
    Path | None, typer.Option(help="Append the log to a file, one JSON object per line.", show_default=False)
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record", help="Record the models' requests and answers in a file, for playback.", show_default=False
    ),
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="[KIND=]NAME",
        help="Use this model, such as host=openai:gpt-5, instead of the settings'; without a kind of agent, for all. "
        "Repeat the option, or separate several models with commas.",
        show_default=False,
    ),
]
MayChange = Annotated[
    list[str] | None,
    typer.Option(
        "--may-change",
        metavar="FILE",
        help="A document, by its path in the workspace, that the task may overwrite without an approval; "
        "`callboard undo` brings it back. May be repeated; adds to the task's own.",
        show_default=False,
    ),
]
Checks = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        metavar="CHECK",
        help="An expectation that is read back before the task finishes, such as 'file: report.xlsx', "
        "'cells: report.xlsx!Sales!B8 = 412.5', or '{cells: report.xlsx!Sales!B8, equals: 412.5}'. "
        "May be repeated; adds to the task's own.",
        show_default=False,
    ),
]
SettingsPath = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        callback=existing_path,
        help="A settings file, or a folder with one.",
        show_default="./callboard.yaml",
    ),
]
JournalFile = Annotated[
    Path | None, typer.Option("--journal", help="The journal; overrides the settings.", show_default=False)
]
SettingsPlace = Annotated[
    Path | None,
    typer.Argument(
        callback=existing_path, show_default="./callboard.yaml", help="A settings file, or a folder with one."
    ),
]
TaskId = Annotated[
    str,
    typer.Argument(
        callback=task_name,
        show_default=False,
        help="A task's id, its first characters, or its key.",
        autocompletion=_task_ids,
    ),
]
Journal = Annotated[
    Path | None,
    typer.Argument(
        callback=existing_path,
        show_default="the journal of ./callboard.yaml",
        help="A run's folder, such as runs/sales_report-1; a settings file; or the journal itself.",
    ),
]
