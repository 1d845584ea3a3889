"""Proposed changes of routines: write, show and promote them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from callboard import routines
from callboard.history import plain
from callboard.journal import JournalReader
from callboard.messages import RoutineError, reason_of
from callboard.terminal._commands import fail, warn
from callboard.terminal._journals import find_task, journal_at, print_json
from callboard.terminal._text import BAD, GOOD, short

if TYPE_CHECKING:
    from rich.console import Console

    from callboard.messages import Task, TaskResult
    from callboard.routines import RoutineProposal, StoredProposal

_LABEL = 9


def keep_repair(console: Console, task: Task, result: TaskResult, journal: Path | None, promote_after: int) -> None:
    """Write the proposal of a repaired task.

    It is promoted after enough verified runs with the same one. A problem is a warning: the task itself is over.

    Args:
        console: The terminal.
        task: The task.
        result: Its result.
        journal: Its journal; None without one.
        promote_after: The setting `routines.promote_after`.
    """
    if task.routine is None or task.dry_run or not (result.ok and result.usage.missed):
        return
    if journal is None:
        warn(["the routine was repaired, but there is no journal to propose a change from: set journal.path"])
        return
    try:
        with JournalReader.open(journal, pictures=False) as reader:
            proposal = routines.propose(reader.rows(task.id))
            if proposal is None:
                return
            file = _file(proposal, None)
            path = routines.write_proposal(proposal, file)
            count = routines.verified_runs(reader, proposal) if promote_after and proposal.verified else 0
    except (RoutineError, OSError) as error:
        warn([f"no change of the routine is proposed: {_reason(error)}"])
        return
    if promote_after and count >= promote_after:
        try:
            version = routines.promote(file, without_person=True)
        except (RoutineError, OSError) as error:
            warn(_reason(error).splitlines())
        else:
            _print(console, "promoted", f"{short(file)}, after {count} verified runs; before: {short(version)}")
            return
    _print(console, "repair", f"{short(path)}; see it with: callboard routine diff {short(file)}")


def propose_change(console: Console, task_id: str, path: Path | None, file: Path | None, *, as_json: bool) -> None:
    """Write the proposal of a task, and print its path and difference."""
    with JournalReader.open(journal_at(path), pictures=False) as reader:
        full_id = find_task(reader, task_id)
        proposal = routines.propose(reader.rows(full_id))
    if proposal is None:
        fail(f"the task {full_id} has no repair: it repeats no routine, or no model went on after a miss")
    routine_file = _file(proposal, file)
    proposed = routines.write_proposal(proposal, routine_file)
    stored = routines.stored_proposal(routine_file)
    if as_json:
        print_json({"task": full_id, "remarks": list(proposal.remarks), **_as_json(stored)})
        return
    _print(console, "repair", short(proposed))
    _print_stored(console, stored)
    warn(proposal.remarks)


def print_difference(console: Console, file: Path, *, as_json: bool) -> None:
    """Print a routine's proposed change, and the reasons against its promotion."""
    stored = routines.stored_proposal(file)
    if as_json:
        print_json(_as_json(stored))
    else:
        _print_stored(console, stored)


def promote_change(console: Console, file: Path, *, yes: bool) -> None:
    """Show a routine's proposed change, ask a person, and promote it.

    With `yes` no person is asked, and a change with new values is refused.
    """
    stored = routines.stored_proposal(file)
    _print_stored(console, stored)
    if not yes and not stored.refusals:
        if not is_attended():
            fail("promoting needs a person at a terminal, or --yes, which refuses changes with new values")
        if not typer.confirm(f"Replace {plain(short(file))} by this?", default=False):
            fail(f"{file}: is unchanged")
    version = routines.promote(file, without_person=yes)
    _print(console, "promoted", f"{short(file)}; before: {short(version)}")


def is_attended() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


def _reason(error: RoutineError | OSError) -> str:
    return reason_of(error) if isinstance(error, OSError) else str(error)


def _file(proposal: RoutineProposal, file: Path | None) -> Path:
    if file is not None:
        return file
    if not proposal.file:
        msg = f"the routine of the task {proposal.task} has no file: write it to one, and name it with --file"
        raise RoutineError(msg)
    return Path(proposal.file)


def _as_json(stored: StoredProposal) -> dict[str, object]:
    return {
        "file": str(stored.file),
        "proposal": str(routines.proposal_path(stored.file)),
        "difference": stored.difference,
        "refusals": stored.refusals,
        "concerns": stored.concerns,
    }


def _print_stored(console: Console, stored: StoredProposal) -> None:
    styles = {"+": GOOD, "-": BAD, "@": "cyan"}
    for line in stored.difference.splitlines():
        console.print(Text(plain(line), style=styles.get(line[:1], "")), soft_wrap=True)
    for label, reasons in (("refused", stored.refusals), ("look at", stored.concerns)):
        for reason in reasons:
            _print(console, label, reason)


def _print(console: Console, label: str, text: str) -> None:
    console.print(Text(f"{label:<{_LABEL}}", style="dim").append(plain(text), "default"), soft_wrap=True)
