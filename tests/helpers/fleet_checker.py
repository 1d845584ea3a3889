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
from fleet_lab import ANY, FleetLab, MachineProcess


class Part(NamedTuple):
    """A task, or a part of it that a HostAgent assigns."""

    name: str
    machines: set[str]
    """Those that may do it; one of them does."""
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
        parts.append(Part(name, _machines_of(target, task), marks, refused))
    return parts


def _machines_of(target: str, task: dict[str, Any]) -> set[str]:
    if target != ANY:
        return {target.partition(":")[0]}
    needs = task.get("needs", {})
    machines = {machine for machine, site in fleet_machine.SITES.items() if needs.get("site", site) == site}
    return machines - {fleet_machine.PICKY} if "checks" in task else machines


def repetitions(lab: FleetLab) -> list[str]:
    """Return the marks that are there twice, on any machines, in words."""
    return [f"{mark} was done twice" for mark, number in Counter(lab.marks()).items() if number > 1]


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
        ends = [end for end in result.subtasks if f"name={part.name} " in end.request]
        told = {end.machine for end in ends if end.machine}
        mine = {place: [mark for mark in of if mark.partition(".")[0] == part.name] for place, of in marks.items()}
        mine = {place: of for place, of in mine.items() if of}
        if len(mine) > 1:
            yield f"{part.name} was done twice: {mine}"
        if not mine.keys() <= told <= part.machines:
            yield f"{part.name} for {part.machines} was done on {mine}, and told to be done on {told}"
        expected, outcome = part.marks, Outcome.REJECTED if part.is_refused else Outcome.FINISHED
        if result.outcome is Outcome.CANCELLED and task.get("cancel"):
            expected = expected[: sum(end.actions for end in ends)]
        elif result.outcome is not outcome:
            yield f"{task['id']} is {result.outcome}: {[cause.reason for cause in result.causes]}"
        done = [*itertools.chain.from_iterable(mine.values())]
        if done != ([] if part.is_refused else expected):
            yield f"{part.name} is {result.outcome} with the marks {done} instead of {expected}"


def _order_problems(lab: FleetLab, name: str) -> Iterator[str]:
    """Compare the order of marks on windows with that of a submitter's tasks, without those that a HostAgent plans."""
    for machine in lab.machines.values():
        for path in machine.folder.glob(f"{machine.name}*.marks"):
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
        subtasks, parts = ends[task["id"]].subtasks, parts_of(task)
        if len(subtasks) != len(parts):
            yield f"{task['id']} has other subtasks than {parts}"
        for end in subtasks:
            source = f"{name}/{identity}"
            parts_of_id = (source, 8), (f"{source}/task/{task['id']}", 12), (f"{source}/{end.run_id}", 16)
            id_there = "r-" + "".join(hashlib.sha256(text.encode()).hexdigest()[:size] for text, size in parts_of_id)
            if (places := [place for place, task_id in results if task_id == id_there]) != [end.machine]:
                yield f"{task['id']} of {end.machine} is in the journals of {places}"
            theirs = results.get((end.machine, id_there))
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
