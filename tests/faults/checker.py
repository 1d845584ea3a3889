"""Reads world, journal and results after a crash, and says what does not hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callboard.actors.journal import JournalReader, Row
from callboard.messages import (
    Answered,
    Assign,
    Event,
    EventName,
    Intent,
    JournalError,
    Outcome,
    Probe,
    StepDone,
    TaskResult,
)

Asked = tuple[str, str, int]
"""A question to a model that must not be asked again: ``call`` or ``step``, the run, and its number."""


@dataclass
class Figures:
    """What a campaign comes to."""

    kills: int = 0
    lives: int = 0
    accepted: int = 0
    ended: int = 0
    lost: int = 0
    repeated: int = 0
    done: int = 0
    not_done: int = 0
    unknown: int = 0
    problems: list[str] = field(default_factory=list)
    """What must not be, in words."""

    def add(self, other: Figures) -> None:
        """Add those of another campaign."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        """Put them on one line."""
        doubt = f"in doubt: done {self.done}, not done {self.not_done}, unknown {self.unknown}"
        tasks = f"accepted {self.accepted}, ended {self.ended}, lost {self.lost}, repeated {self.repeated}"
        return f"kills {self.kills}, lives {self.lives}; {tasks}; {doubt}"


class Journal:
    """What a journal file says of its tasks."""

    def __init__(self, path: Path) -> None:
        with JournalReader.open(path) as reader:
            self.rows = {line.id: list(reader.rows(line.id)) for line in reader.tasks()}

    def steps(self) -> Iterator[tuple[Row, int, int]]:
        """Go through the steps that were done, with their round, in which they are counted."""
        rounds: dict[str, int] = {}
        for row, message in self.messages(StepDone | Assign):
            if isinstance(message, Assign):
                rounds[message.run_id] = message.round
            else:
                yield row, rounds[row.run_id], message.record.step

    def messages(self, kind: Any) -> Iterator[tuple[Row, Any]]:
        """Go through the messages of a kind, task by task, in order."""
        for rows in self.rows.values():
            yield from ((row, row.message) for row in rows if isinstance(row.message, kind))


def left(folder: Path) -> Journal | None:
    """Read a journal between two lives; None, if a process was killed when it made, opened or closed it."""
    try:
        return Journal(folder / "journal.db")
    except JournalError:
        return None  # the next process mends it


def forgotten(folder: Path) -> list[str]:
    """Say which tasks were accepted that the journal does not know; they may be submitted again, and found no more."""
    journal = left(folder)
    if journal is None:
        return []
    return [task for task in {line["task"] for line in lines(folder / "accepted.jsonl")} if task not in journal.rows]


def answered(folder: Path) -> set[Asked]:
    """Say what models need not be asked again."""
    journal = left(folder)
    if journal is None:
        return set()
    calls: set[Asked] = {("call", row.run_id, answer.call) for row, answer in journal.messages(Answered)}
    return calls | {("step", row.run_id, step) for row, turn, step in journal.steps() if turn == 1}


def lines(path: Path) -> list[dict[str, Any]]:
    """Read what outlived a life; the last line may be cut off."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def check(folder: Path, marks: list[str], expected: set[str], known: dict[int, set[Asked]]) -> Figures:
    """Check a folder when all of its tasks should be over.

    Args:
        folder: Where the program worked.
        marks: What stands in its documents.
        expected: What should stand there, once each.
        known: What models had answered, by the life that began with it.
    """
    journal = Journal(folder / "journal.db")
    figures = Figures()
    figures.problems += _tasks(folder, journal, figures)
    figures.problems += _world(marks, expected, figures)
    figures.problems += _intents(journal, figures)
    figures.problems += _models(folder, known)
    return figures


def _tasks(folder: Path, journal: Journal, figures: Figures) -> Iterator[str]:
    accepted = {line["task"] for line in lines(folder / "accepted.jsonl")}
    results = {row.task_id: result for row, result in journal.messages(TaskResult)}
    figures.accepted = len(accepted)
    figures.ended = len(results)
    for task_id in sorted(accepted):
        if task_id not in results:
            figures.lost += 1
            there = "it is open" if task_id in journal.rows else "the journal does not know it"
            yield f"{task_id} was accepted and has no result: {there}"
    for told in lines(folder / "told.jsonl"):
        result = results.get(told["task"])
        if result is None or result.outcome != told["outcome"]:
            yield f"{told['task']} was told to be {told['outcome']}, and is kept as {result and result.outcome}"
    for row, result in journal.messages(TaskResult):
        if result.outcome is not (Outcome.CANCELLED if row.task_id == "gone" else Outcome.FINISHED):
            yield f"{row.task_id} ended as {result.outcome}: {'; '.join(cause.reason for cause in result.causes)}"
        for path in (path for path in result.artifacts if not Path(path).exists()):
            figures.lost += 1
            yield f"the result of {row.task_id} names {path}, which is not there"
    for task_id, count in Counter(row.task_id for row, _ in journal.messages(TaskResult)).items():
        if count > 1:
            yield f"{task_id} has {count} results"


def _world(marks: list[str], expected: set[str], figures: Figures) -> Iterator[str]:
    for mark, count in sorted(Counter(marks).items()):
        if count > 1:
            figures.repeated += 1
            yield f"{mark} was done {count} times"
    for mark in sorted(expected - set(marks)):
        yield f"{mark} was not done"


def _intents(journal: Journal, figures: Figures) -> Iterator[str]:
    """Check that no action was intended a second time before a look had said that it was not done."""
    for _, event in _doubts(journal):
        probe = Probe(event.data["probe"])
        setattr(figures, probe.value, getattr(figures, probe.value) + 1)
    for rows in journal.rows.values():
        pending: dict[str, bool] = {}  # by call: whether it may be tried anew
        for row in rows:
            match row.message:
                case Intent(call_id=call):
                    if not pending.get(call, True):
                        yield f"{call} was intended twice, and nobody had looked"
                    pending[call] = False
                case Event(name=EventName.COMMAND_IN_DOUBT, data=data):
                    pending[str(data["call"])] = data["probe"] == Probe.NOT_DONE
                case _:
                    pass
    done = Counter((row.run_id, turn, step) for row, turn, step in journal.steps())
    yield from (f"step {step} of {run} was done {count} times" for (run, _, step), count in done.items() if count > 1)


def _doubts(journal: Journal) -> Iterator[tuple[Row, Event]]:
    found = journal.messages(Event)
    return ((row, event) for row, event in found if event.name is EventName.COMMAND_IN_DOUBT)


def _models(folder: Path, known: dict[int, set[Asked]]) -> Iterator[str]:
    for call in lines(folder / "calls.jsonl"):
        life, run, step, number = call["life"], call["run"], call["step"], call["call"]
        again = ("call", run, number), ("step", run, step)
        if known[life].intersection(again if call["round"] == 1 else again[:1]):
            yield f"life {life} asked the model of {run} again: step {step}, call {number}"
