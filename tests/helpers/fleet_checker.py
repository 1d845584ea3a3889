"""Comparison of tasks of a fleet with the marks of its machines."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet_machine
from callboard.journal import JournalReader
from callboard.messages import EventName, Outcome, Task, TaskResult
from fleet_lab import FleetLab


def problems(lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str = "desk") -> list[str]:
    """Return every violation of the promises, in words."""
    marks = {machine: fleet_machine.marks_of(lab.machines[machine].folder) for machine in lab.machines}
    return [
        *_marks_problems(marks, tasks, ends),
        *_order_problems(lab, tasks),
        *_journal_problems(lab, tasks, ends, name),
    ]


def _words(task: dict[str, Any]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in task["request"].split())


def _marks_problems(
    marks: dict[str, list[str]], tasks: list[dict[str, Any]], ends: dict[str, TaskResult]
) -> Iterator[str]:
    for task in tasks:
        if task["id"] not in ends:
            continue
        result, machine, most = ends[task["id"]], task["target"].partition(":")[0], int(_words(task)["marks"])
        mine = {place: [mark for mark in of if mark.partition(".")[0] == task["id"]] for place, of in marks.items()}
        elsewhere = {place: of for place, of in mine.items() if of and place != machine}
        if elsewhere:
            yield f"{task['id']} for {machine} was done on {elsewhere}"
        expected = [f"{task['id']}.{number + 1}" for number in range(most)]
        if result.outcome is Outcome.CANCELLED and task.get("cancel"):
            expected = expected[: result.actions]
        elif result.outcome is not Outcome.FINISHED:
            yield f"{task['id']} is {result.outcome}: {[cause.reason for cause in result.causes]}"
        if mine[machine] != expected:
            yield f"{task['id']} is {result.outcome} with the marks {mine[machine]} instead of {expected}"


def _order_problems(lab: FleetLab, tasks: list[dict[str, Any]]) -> Iterator[str]:
    numbers = {task["id"]: number for number, task in enumerate(tasks)}
    for machine in lab.machines.values():
        for path in machine.folder.glob("*.marks"):
            marks = path.read_text().split()
            order = [numbers[mark.partition(".")[0]] for mark in marks]
            if order != sorted(order):
                yield f"{path.name} has another order: {marks}"


def _journal_problems(
    lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str
) -> Iterator[str]:
    results = dict[str, TaskResult]()
    for machine in lab.machines.values():
        with JournalReader.open(machine.folder / "journal.db") as reader:
            for line in reader.tasks():
                messages = [row.message for row in reader.rows(line.id)]
                kinds = Counter(type(message) for message in messages if isinstance(message, Task | TaskResult))
                if kinds != {Task: 1, TaskResult: 1}:
                    yield f"the journal of {machine.name} has of {line.id} {dict(kinds)}"
                events = Counter(message.name for message in messages if getattr(message, "kind", "") == "event")
                for event in (EventName.TASK_SUBMITTED, EventName.TASK_ENDED):
                    if events[event] > 1:  # a kill may come between an end and its event
                        yield f"{machine.name} has told {event} of {line.id} {events[event]} times"
                results.update({f"{machine.name} {line.id}": end for end in messages if isinstance(end, TaskResult)})
    for task in tasks:
        here = ends.get(task["id"])
        if here is None or task.get("cancel"):  # the machine may have no task if it was cancelled before
            continue
        machine = task["target"].partition(":")[0]
        theirs = [
            end
            for key, end in results.items()
            if key.startswith(f"{machine} r-") and end.task_id == _id_there(lab, name, task)
        ]
        if [(end.outcome, end.output, end.actions) for end in theirs] != [(here.outcome, here.output, here.actions)]:
            yield f"{task['id']} has other results on {machine}: {theirs}"


def _id_there(lab: FleetLab, name: str, task: dict[str, Any]) -> str:
    source = f"{name}/{journal_identity(lab.machines[name].folder / 'journal.db')}/{task['id']}~1"
    return f"r-{hashlib.sha256(source.encode()).hexdigest()[:24]}"


def journal_identity(path: Path) -> str:
    """Return the identity of a journal."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT value FROM marks WHERE name = 'identity'").fetchone()
    return f"{number:016x}"
