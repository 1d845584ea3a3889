"""Save finished tasks as routines."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.history import plain
from callboard.journal import JournalReader
from callboard.messages import Task
from callboard.routines import dump, record
from callboard.surfaces import publish_file, replace_file, spare_file
from callboard.terminal._commands import fail, warn
from callboard.terminal._journals import find_task, journal_at, print_json
from callboard.terminal._text import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.journal import Row
    from callboard.routines import RoutineRecording

SUFFIX = ".routine.yaml"
"""The end of the names of routines' files."""
_LONGEST_NAME = 40


def save_routine(
    console: Console,
    task_id: str,
    path: Path | None,
    *,
    output: Path | None,
    name: str | None,
    parameters: Sequence[str],
    yes: bool,
    force: bool,
    keep_data: bool,
    as_json: bool,
) -> None:
    """Save a task as a routine, and print its parameters and remarks.

    The task is found by the beginning of its id. An existing file is replaced only if `force` is set, and a routine
    that holds data of this run is refused unless `keep_data` is.
    """
    given = _parameters(parameters)
    with JournalReader.open(journal_at(path), pictures=False) as reader:
        rows = list(reader.rows(find_task(reader, task_id)))
    name = name or _name(output, rows)
    recording = record(rows, name=name, parameters=given)
    if yes and recording.proposals:
        recording = record(rows, name=name, parameters=given | recording.proposals)
    if recording.old_data and not keep_data:
        fail("\n".join((*recording.old_data, "nothing is saved; --keep-data saves it as it is")))
    file = output or Path(f"{name}{SUFFIX}")
    _write(file, dump(recording.routine), force=force)
    if as_json:
        print_json(
            {
                "file": str(file),
                "parameters": {key: value.value for key, value in recording.routine.parameters.items()},
                "proposals": recording.proposals,
                "remarks": [*recording.old_data, *recording.remarks],
            }
        )
        return
    _print(console, file, recording)
    warn((*recording.old_data, *recording.remarks))


def _parameters(options: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name or not value:
            fail(f"--parameter {option}: write NAME=VALUE, with the value that it had in the task")
        if name in given:
            fail(f"--parameter {option}: there is already a parameter {name}: choose another name")
        given[name] = value
    return given


def _name(output: Path | None, rows: Sequence[Row]) -> str:
    """Name a routine after its file, or after the request."""
    task = next((row.message for row in rows if isinstance(row.message, Task)), None)
    text = output.name.removesuffix(SUFFIX).removesuffix(".yaml").removesuffix(".yml") if output is not None else ""
    request = "" if task is None else task.request or task.id
    for source in (text, request, "" if task is None else task.id):
        name = re.sub(r"[^a-z0-9_.-]+", "-", source.lower()).strip("-._")
        if len(name) > _LONGEST_NAME:
            name = re.sub(r"-[^-]*$", "", name[:_LONGEST_NAME])
        if name:
            return name
    return "routine"


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write a file."""
    taken = f"{file}: already exists; name another file with --output, or replace it with --force"
    if file.is_dir():
        fail(f"{file}: is a folder: name a file in it")
    if os.path.lexists(file) and not force:
        fail(taken)
    with spare_file(file, text.encode(), None) as spare:
        if force:
            replace_file(spare, file)
            return
        try:
            publish_file(spare, file)
        except FileExistsError:  # since the check
            fail(taken)


def _print(console: Console, file: Path, recording: RoutineRecording) -> None:
    """Print a file's name, and its parameters with their values."""
    console.print(Text("routine  ", style="dim").append(plain(short(file.absolute())), "default"), soft_wrap=True)
    for name, parameter in recording.routine.parameters.items():
        line = Text(f"  {name}", style="cyan").append(f" = {plain(str(parameter.value))}", "default")
        console.print(line.append("  (a document)" if parameter.document else "", "dim"), soft_wrap=True)
    for name, value in recording.proposals.items():
        option = shlex.join(["--parameter", f"{name}={value}"])
        console.print(Text(f"  perhaps a parameter: {plain(option)}", style="dim"), soft_wrap=True)
    if recording.proposals:
        console.print(Text("  --yes takes all of these; --force replaces the file", style="dim"), soft_wrap=True)
