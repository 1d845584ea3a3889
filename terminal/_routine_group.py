"""The commands of `callboard routine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import callboard.terminal as parts
from callboard.terminal._commands import existing_path, mistakes
from callboard.terminal._options import AsJson, Journal, TaskId

routine_app = typer.Typer(help="Repeat finished work without a model.", no_args_is_help=True, rich_markup_mode=None)

RoutineFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", callback=existing_path, show_default=False, help="A routine, such as monthly.routine.yaml."
    ),
]


@routine_app.command("save")
def save(
    task: TaskId,
    journal: Journal = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file.", show_default="NAME.routine.yaml"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The routine's name.", show_default="that of the file, or of the request")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A value of the task that differs from run to run, such as 'month=May 2026'. May be repeated.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Make parameters of all proposed values.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Save it also if its steps hold data that was read in this run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Save a finished task as a routine.

    The file has the task's steps, with references in place of the values that
    came from documents, results and controls. The documents that the task worked
    on are parameters; values of the request are proposed as further ones. Failed
    actions are left out. Read it before you use it: it can be edited.
    """
    with mistakes():
        parts.save_routine(
            parts.terminal(quiet=as_json),
            task,
            journal,
            output=output,
            name=name,
            parameters=parameter or (),
            yes=yes,
            force=force,
            keep_data=keep_data,
            as_json=as_json,
        )


@routine_app.command("propose")
def propose(
    task: TaskId,
    journal: Journal = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", callback=existing_path, help="The routine's file.", show_default="the one that the task read"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Propose the repair of a task as a change of its routine.

    It is written beside the routine, as NAME.routine.proposed.yaml, and printed.
    `callboard run` does this by itself at its end.
    """
    with mistakes():
        parts.propose_change(parts.terminal(), task, journal, file, as_json=as_json)


@routine_app.command("promote")
def promote(
    file: RoutineFile,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask no person. A change that brings new values is refused then.")
    ] = False,
) -> None:
    """Replace a routine by its proposed change.

    The change is printed, and a person is asked. The former version is kept, as
    NAME.routine.1.yaml. A change is refused if it adds a target, a tool, a hazard
    or a secret, or drops a guard or a check: edit the routine by hand for that.
    """
    with mistakes():
        parts.promote_change(parts.terminal(), file, yes=yes)


@routine_app.command("list")
def list_routines(
    folder: Annotated[Path, typer.Argument(help="The folder.", show_default="the current one")] = Path(),
    *,
    as_json: AsJson = False,
) -> None:
    """List the routines in a folder.

    Each has its parameters, and whether a change is proposed.
    """
    with mistakes():
        parts.list_routines(parts.terminal(), folder, as_json=as_json)


@routine_app.command("show")
def show_routine(file: RoutineFile, *, as_json: AsJson = False) -> None:
    """Print a routine in words.

    It has the parameters, the subtasks with their steps, and the guard of each.
    """
    with mistakes():
        parts.show_routine(parts.terminal(), file, as_json=as_json)


@routine_app.command("diff")
def diff(file: RoutineFile, *, as_json: AsJson = False) -> None:
    """Print the proposed change of a routine.

    The reasons against its promotion come after it.
    """
    with mistakes():
        parts.print_difference(parts.terminal(), file, as_json=as_json)


@routine_app.command("stats")
def stats(
    file: RoutineFile,
    *,
    journal: Annotated[
        list[Path] | None,
        typer.Option(
            "--journal",
            help="A run's folder, a settings file or a journal. May be repeated.",
            show_default="that of ./callboard.yaml, and those of the newest runs in ./runs",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the runs of a routine.

    It has the finished, verified, followed and repaired runs, and the model calls,
    the time and the cost saved beside the run that was recorded. Of each journal,
    the newest 1,000 runs are read.
    """
    with mistakes():
        parts.print_stats(parts.terminal(), file, journal or (), as_json=as_json)
