"""Comparison of tasks of a fleet with the marks of its machines."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fleet_machine
from callboard.journal import JournalReader
from callboard.messages import EventName, Outcome, Task, TaskResult
from fleet_lab import FleetLab, MachineProcess


class Part(NamedTuple):
    """A task, or a part of it that a HostAgent assigns."""

    name: str
    machine: str
    marks: list[str]
    """Those that it makes if nothing stops it."""
    is_refused: bool
    """Whether a person refuses its first mark."""


def parts_of(task: dict[str, Any]) -> list[Part]:
    """Return the parts of a task, in their order."""
    parts = []
    for text in task["request"].split(fleet_machine.BETWEEN):
        words = fleet_machine.words_of(text)
        name, target = words["name"], words.get("target") or task["target"]
        marks = [f"{name}.{number + 1}" for number in range(int(words["marks"]))]
        refused = "sign" in words and fleet_machine.is_refused(name)
        parts.append(Part(name, target.partition(":")[0], marks, refused))
    return parts


def problems(lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str = "desk") -> list[str]:
    """Return every violation of the promises to a submitter, in words."""
    marks = {machine: fleet_machine.marks_of(lab.machines[machine].folder) for machine in lab.machines}
    ended = [task for task in tasks if task["id"] in ends]
    return [
        *itertools.chain.from_iterable(_marks_problems(marks, task, ends[task["id"]]) for task in ended),
        *_order_problems(lab, name),
        *_journal_problems(lab, ended, ends, name),
    ]


def _marks_problems(marks: dict[str, list[str]], task: dict[str, Any], result: TaskResult) -> Iterator[str]:
    for part in parts_of(task):
        mine = {place: [mark for mark in of if mark.partition(".")[0] == part.name] for place, of in marks.items()}
        elsewhere = {place: of for place, of in mine.items() if of and place != part.machine}
        if elsewhere:
            yield f"{part.name} for {part.machine} was done on {elsewhere}"
        expected, outcome = part.marks, Outcome.REJECTED if part.is_refused else Outcome.FINISHED
        if result.outcome is Outcome.CANCELLED and task.get("cancel"):
            done = [end for end in result.subtasks if f"name={part.name} " in end.request]
            expected = expected[: sum(end.actions for end in done)]
        elif result.outcome is not outcome:
            yield f"{task['id']} is {result.outcome}: {[cause.reason for cause in result.causes]}"
        if mine[part.machine] != ([] if part.is_refused else expected):
            yield f"{part.name} is {result.outcome} with the marks {mine[part.machine]} instead of {expected}"


def _order_problems(lab: FleetLab, name: str) -> Iterator[str]:
    """Compare the order of marks with that of a submitter's tasks, without those that a HostAgent plans."""
    for machine in lab.machines.values():
        for path in machine.folder.glob("*.marks"):
            tasks = [mark.partition(".")[0] for mark in path.read_text().split()]
            order = [int(task.partition("-")[2]) for task in tasks if re.fullmatch(rf"{name}-\d+", task)]
            if order != sorted(order):
                yield f"{path.name} has another order: {tasks}"


def _journal_problems(
    lab: FleetLab, tasks: list[dict[str, Any]], ends: dict[str, TaskResult], name: str
) -> Iterator[str]:
    results = dict[tuple[str, str], TaskResult]()
    for machine in lab.machines.values():
        yield from _read(machine, results)
    identity = journal_identity(lab.machines[name].folder / "journal.db")
    for task in tasks:
        if task.get("cancel"):  # the machine may have no task if it was cancelled before
            continue
        subtasks, machines = ends[task["id"]].subtasks, [part.machine for part in parts_of(task)]
        if sorted(end.machine for end in subtasks) != sorted(machines):
            yield f"{task['id']} has subtasks on other machines than {machines}"
        for end in subtasks:
            source = f"{name}/{identity}/{end.run_id}"
            theirs = results.get((end.machine, f"r-{hashlib.sha256(source.encode()).hexdigest()[:24]}"))
            here = (end.outcome, end.output, end.actions)
            if theirs is None or (theirs.outcome, theirs.output, theirs.actions) != here:
                yield f"{task['id']} has another result on {end.machine}: {theirs}"


def _read(machine: MachineProcess, results: dict[tuple[str, str], TaskResult]) -> Iterator[str]:
    """Read the results of a machine's journal, and compare the number of its records."""
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
            results.update(((machine.name, line.id), end) for end in messages if isinstance(end, TaskResult))


def journal_identity(path: Path) -> str:
    """Return the identity of a journal."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT value FROM marks WHERE name = 'identity'").fetchone()
    return f"{number:016x}"
