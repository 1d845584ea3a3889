"""Reads world, journal and results after a crash, and reports each violation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import script
import world

from callboard.actors.replay import replay_journal
from callboard.actors.states import OnTheWay
from callboard.journal import JournalReader, Row
from callboard.messages import (
    Answered,
    ApprovalRequest,
    Assign,
    Cancel,
    CommandResult,
    Event,
    EventName,
    Intent,
    JournalError,
    Outcome,
    Pause,
    Probe,
    Recovered,
    ResultStatus,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
    TaskResult,
)

Asked = tuple[str, str, int]
"""A question to a model that must not be asked again: ``call`` or ``step``, the run, and its number."""

SAID = {"outcome", "causes", "output", "comment", "artifacts"}
"""The parts of a result and its subtasks that a kill must not change; usage may change."""


@dataclass
class Figures:
    """The figures of a campaign."""

    kills: int = 0
    full: int = 0
    """The number of times that the disk was full."""
    lives: int = 0
    accepted: int = 0
    ended: int = 0
    lost: int = 0
    repeated: int = 0
    """The number of repeated actions that must not be repeated."""
    again: int = 0
    """The number of repeated actions that may be repeated."""
    done: int = 0
    not_done: int = 0
    unknown: int = 0
    twice: int = 0
    """The number of steps interrupted again during recovery."""
    problems: list[str] = field(default_factory=list)
    """The violations, in words."""

    def add(self, other: Figures) -> None:
        """Add those of another campaign."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        """Put them on one line."""
        ends = f"kills {self.kills}, disk full {self.full}, lives {self.lives}"
        tasks = f"accepted {self.accepted}, ended {self.ended}, lost {self.lost}"
        actions = f"repeated {self.repeated}, idempotent ones run again {self.again}"
        doubt = f"in doubt: done {self.done}, not done {self.not_done}, unknown {self.unknown}"
        return f"{ends}; {tasks}; {actions}; {doubt}; broken off again while recovering: {self.twice}"


@dataclass(frozen=True)
class Without:
    """The figures of the same program without a kill."""

    results: dict[str, Any]
    """By the names of the tasks."""
    contents: dict[str, Any]
    """By the names of the documents."""
    approvals: Counter[tuple[str, str]]
    """The number of questions to a person, by task and tool."""

    @classmethod
    def of(cls, folder: Path) -> Without:
        """Read a folder in which no process was killed."""
        journal = Journal(folder / "journal.db")
        results = {script.name(row.task_id): said(result, folder) for row, result in journal.messages(TaskResult)}
        return cls(results, world.contents(folder / "workspace"), journal.approvals())


class Journal:
    """The contents of a journal file, by task."""

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

    def approvals(self) -> Counter[tuple[str, str]]:
        """Count the approvals that a person was asked for, by task and tool."""
        asked = self.messages(ApprovalRequest)
        return Counter((script.name(row.task_id), ask.actions[0].tool) for row, ask in asked)

    def messages(self, kind: Any) -> Iterator[tuple[Row, Any]]:
        """Go through the messages of a kind, task by task, in order."""
        for rows in self.rows.values():
            yield from ((row, row.message) for row in rows if isinstance(row.message, kind))


def said(result: TaskResult, folder: Path) -> Any:
    """Give the parts of a result that a kill must not change."""
    subtasks = {"number", "request", "address", "made", *SAID}
    text = result.model_dump_json(
        include={"rounds": True, "subtasks": {"__all__": subtasks}} | dict.fromkeys(SAID, True)
    )
    return json.loads(text.replace(str(folder), ""))


def differences(where: str, here: Any, there: Any) -> Iterator[str]:
    """Report the differences from a run without a kill."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            yield from differences(f"{where}/{key}", here.get(key), there.get(key))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from differences(f"{where}/{number}", *pair)
    elif here != there:
        yield f"{where} is {here}, and without a kill {there}"


def left(folder: Path) -> Journal | None:
    """Read a journal between two lives; None, if a process was killed when it made, opened or closed it."""
    try:
        return Journal(folder / "journal.db")
    except JournalError:
        return None  # the next process mends it


def forgotten(folder: Path) -> list[str]:
    """Say which tasks were accepted that the journal does not know; they may be submitted again, and found no more."""
    journal = left(folder)
    return [] if journal is None else [task for task in _accepted(folder) if task not in journal.rows]


def answered(folder: Path) -> set[Asked]:
    """Give the questions that models need not be asked again."""
    journal = left(folder)
    if journal is None:
        return set()
    calls: set[Asked] = {("call", row.run_id, answer.call) for row, answer in journal.messages(Answered)}
    return calls | {("step", row.run_id, step) for row, turn, step in journal.steps() if turn == 1}


def lines(path: Path) -> list[dict[str, Any]]:
    """Read the lines that outlived a life; a line that was cut off is skipped, and the next one follows it."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def check(folder: Path, names: list[str], known: dict[int, set[Asked]], without: Without) -> Figures:
    """Check a folder when all of its tasks should be over.

    Args:
        folder: Where the program worked.
        names: Of its tasks.
        known: The questions that models had answered, by the life that began with it.
        without: The outcome without a kill.
    """
    journal = Journal(folder / "journal.db")
    figures = Figures()
    figures.problems += _tasks(folder, journal, figures)
    figures.problems += _results(folder, journal, without)
    figures.problems += _world(folder, names, without, figures)
    figures.problems += _effects(folder, journal, figures)
    figures.problems += _intents(journal, figures)
    figures.problems += _people(journal, without)
    figures.problems += _models(folder, known)
    figures.problems += _replays(folder, journal)
    figures.twice = sum(_broken_off_again(rows) for rows in journal.rows.values())
    return figures


def _accepted(folder: Path) -> list[str]:
    return sorted({line["task"] for line in lines(folder / "accepted.jsonl")})


def _tasks(folder: Path, journal: Journal, figures: Figures) -> Iterator[str]:
    """Check that each accepted task has ended, once, and that its caller was told the same."""
    results = {row.task_id: result for row, result in journal.messages(TaskResult)}
    figures.accepted = len(_accepted(folder))
    figures.ended = len(results)
    for task_id in _accepted(folder):
        if task_id not in results:
            figures.lost += 1
            there = "it is open" if task_id in journal.rows else "the journal does not know it"
            yield f"{task_id} was accepted and has no result: {there}"
    for told in lines(folder / "told.jsonl"):
        result = results.get(told["task"])
        kept = None if result is None else result.model_dump(mode="json")
        if kept != told["result"]:
            yield f"of {told['task']} was told {told['result']}, and kept {kept}"
    for task_id, count in Counter(row.task_id for row, _ in journal.messages(TaskResult)).items():
        if count > 1:
            yield f"{task_id} has {count} results"
    for name, count in Counter(map(script.name, journal.rows)).items():
        if count > 1:
            yield f"{name} was taken {count} times"


def _results(folder: Path, journal: Journal, without: Without) -> Iterator[str]:
    """Check that each result is the one without a kill."""
    for row, result in journal.messages(TaskResult):
        name = script.name(row.task_id)
        if result.outcome is not script.OUTCOMES.get(name, Outcome.FINISHED):
            yield f"{name} ended as {result.outcome}: {'; '.join(cause.reason for cause in result.causes)}"
        elif name in script.FOLLOWED and (result.verified, result.usage.model_calls) != (True, 0):
            yield f"{name} called {result.usage.model_calls} models, and is verified: {result.verified}"
        else:
            yield from differences(f"the result of {name}", said(result, folder), without.results[name])


def _world(folder: Path, names: list[str], without: Without, figures: Figures) -> Iterator[str]:
    """Check that each document has the same content as without a kill, and each mark stands there once."""
    read = world.contents(folder / "workspace")
    marks, expected = Counter(world.marks(read)), script.marks(names)
    for mark, count in sorted(marks.items()):
        if count > 1:
            figures.repeated += count - 1
            yield f"{mark} stands there {count} times"
    for mark in sorted(marks.keys() ^ expected):
        yield f"{mark} {'stands there' if mark in marks else 'is not there'}"
    yield from differences("", read, without.contents)


def _effects(folder: Path, journal: Journal, figures: Figures) -> Iterator[str]:
    """Check that unrepeatable actions were done once; count the repetitions of repeatable ones."""
    once = {intent.call_id for _, intent in journal.messages(Intent)}
    for (call, tool), count in Counter(
        (line["call"], line["tool"]) for line in lines(folder / "effects.jsonl")
    ).items():
        if call not in once:
            figures.again += count - 1
        elif count > 1:
            yield f"{tool} of {call} was done {count} times"


def _intents(journal: Journal, figures: Figures) -> Iterator[str]:
    """Check that no action was intended a second time before a look had said that it was not done."""
    for _, event in _doubts(journal):
        probe = Probe(event.data["probe"])
        setattr(figures, probe.value, getattr(figures, probe.value) + 1)
    for rows in journal.rows.values():
        pending: dict[str, bool] = {}  # by call: whether it may be tried again
        for row in rows:
            match row.message:
                case Intent(call_id=call):
                    if not pending.get(call, True):
                        yield f"{call} was intended twice, and nobody had looked"
                    pending[call] = False
                case Event(name=EventName.COMMAND_IN_DOUBT, data=data):
                    pending[str(data["call"])] = data["probe"] in {Probe.NOT_DONE, Probe.BEGUN}
                case _:
                    pass
    done = Counter((row.run_id, turn, step) for row, turn, step in journal.steps())
    yield from (f"step {step} of {run} was done {count} times" for (run, _, step), count in done.items() if count > 1)


def _broken_off_again(rows: Iterable[Row]) -> int:
    """Count the crashes of a task in steps that went on after a crash; only those that left a row of it are seen."""
    begun: set[str] = set()
    going_on: dict[str, bool] = {}  # by run: whether its step was seen at work since the crash
    count = 0
    for row in rows:
        match row.message:
            case Recovered():
                count += sum(going_on.values())
                going_on = dict.fromkeys(begun, False)
            case StepDone() | StepFailure() | SubtaskEnding() | RoundEnding():
                begun.discard(row.run_id)
                going_on.pop(row.run_id, None)
            case message if row.run_id:
                if isinstance(message, OnTheWay):
                    begun.add(row.run_id)
                if row.run_id in going_on and not isinstance(message, Assign):
                    going_on[row.run_id] = True
            case _:
                pass
    return count


def _doubts(journal: Journal) -> Iterator[tuple[Row, Event]]:
    found = journal.messages(Event)
    return ((row, event) for row, event in found if event.name is EventName.COMMAND_IN_DOUBT)


def _people(journal: Journal, without: Without) -> Iterator[str]:
    """Check that a task paused by a person began nothing in another process, and that no more was asked of a person."""
    for rows in journal.rows.values():
        paused = elsewhere = False
        begun: set[str] = set()
        for row in rows:
            match row.message:
                case Pause() | Resume() | Cancel() if not row.run_id:
                    paused, elsewhere = isinstance(row.message, Pause), False
                case Recovered():
                    elsewhere = paused
                case Intent(call_id=call) | CommandResult(call_id=call, status=ResultStatus.SUCCESS):
                    if elsewhere and call not in begun:
                        yield f"{call} was begun while its task was paused"
                    begun.add(call)
                case _:
                    pass
    for (name, tool), count in journal.approvals().items():
        if count > (asked := without.approvals[name, tool]):
            yield f"{name} asked for {count} approvals of {tool}, and without a kill for {asked}"


def _models(folder: Path, known: dict[int, set[Asked]]) -> Iterator[str]:
    for call in lines(folder / "calls.jsonl"):
        life, run, step, number = call["life"], call["run"], call["step"], call["call"]
        again = ("call", run, number), ("step", run, step)
        if known[life].intersection(again if call["round"] == 1 else again[:1]):
            yield f"life {life} asked the model of {run} again: step {step}, call {number}"


def _replays(folder: Path, journal: Journal) -> Iterator[str]:
    """Check that a task that was broken off and resumed is replayed as it was recorded."""
    for task_id in journal.rows:
        difference = replay_journal(folder / "journal.db", task_id).difference
        if difference is not None:
            yield f"{task_id} is replayed in another way: {difference}"
