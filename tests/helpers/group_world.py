"""A task with groups of subtasks, its models, and processes that are killed while they work on it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from callboard import EventName, FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.actors.agent import Agent
from callboard.actors.late_results import JobReturned
from callboard.messages import JournalError, PlanStep, SubtaskResult, TaskResult
from callboard.testing import Faults, MemoryServer, disk_full
from subtask_graphs import MOST, Case, Ending
from support import FINISH, PATIENCE, append

WINDOWS = tuple(f"w{number}" for number in range(1, MOST + 1))
RESTARTS = {"backoff": 0.0, "max_backoff": 0.0, "intensity": 1000}


@dataclass
class GroupWorld:
    """Models, windows, and what the models saw; it outlives the processes of the task."""

    case: Case
    ended: list[int] = field(default_factory=list)
    seen: dict[int, list[tuple[SubtaskResult, ...]]] = field(default_factory=dict)
    """The results that each request had, by the number of the subtask; 0 for the HostAgent."""
    working: set[int] = field(default_factory=set)
    width: int = 0
    """The most models of subtasks that worked at once."""
    kills: int = 0
    surface: MemoryServer = field(default_factory=lambda: MemoryServer(*map(MemoryServer.window, WINDOWS)))
    _crashed: set[int] = field(default_factory=set)
    _events: dict[int, asyncio.Event] = field(default_factory=dict)

    def __post_init__(self):
        """Number the members of all groups."""
        self.members = dict(enumerate((member for group in self.case.groups for member in group), 1))

    def plan(self, request):
        """Assign the next group, as a HostAgent's model."""
        self.seen.setdefault(0, []).append(request.subtasks)
        first = 0
        for group in self.case.groups:
            if first == len(request.subtasks):
                return self._assign(first, group)
            first += len(group)
        return FINISH

    def _assign(self, first, group):
        subtasks = [
            {
                "Current Sub-Task": str(first + place),
                "ControlText": f"memo:w{place}",
                "After": sorted(member.after),
                "AfterAny": sorted(member.after_any),
            }
            for place, member in enumerate(group, 1)
        ]
        return {"Status": "ASSIGN", "Sub-Tasks": subtasks, "StopAtFailure": self.case.stops}

    async def work(self, request):
        """Work on a subtask: a question, one action that tells what it sees, and the end."""
        number = int(request.request)
        self.seen.setdefault(number, []).append(request.subtasks)
        self.working.add(number)
        self.width = max(self.width, len(self.working))
        try:
            await self._pause(self.members[number])
        finally:
            self.working.discard(number)
        return self._answer(number, request.step - self.members[number].asks)

    async def _pause(self, member):
        for _ in range(member.pauses):
            await asyncio.sleep(0)
        if member.waits_for:
            await self._events.setdefault(member.waits_for, asyncio.Event()).wait()

    def _answer(self, number, step):
        member = self.members[number]
        if step == 0:
            return {"Status": "PENDING", "Comment": f"may {number} go on?"}
        if step == 1:
            return append(mark(number, self.seen[number][-1]))
        if member.breaks:
            msg = f"broken {number}"
            raise ValueError(msg)
        self.ended.append(number)
        self._events.setdefault(number, asyncio.Event()).set()
        return {"Status": "FINISH", "Result": f"result {number}"} if member.finishes else {"Status": "FAIL"}

    @property
    def task(self) -> Task:
        """The task, always with the same id."""
        if not self.case.planned:
            return Task(id="t", request="all")
        (group,) = self.case.groups
        steps = [
            PlanStep(request=str(place), target=f"memo:w{place}", after=tuple(sorted(member.after)))
            for place, member in enumerate(group, 1)
        ]
        return Task(id="t", plan=steps)

    def run(self, journal: Path | None = None, **options: Any) -> TaskResult:
        """Run the task to its end, after the kills of its case."""
        for place in self.case.kills:
            result = self.live(journal, place, **options)
            if result is not None:
                return result  # its life has no such place
            self.kills += 1
        result = self.live(journal, **options)
        assert result is not None
        return result

    def live(self, journal=None, kill=None, **options):
        """Run up to a kill, or to the end; return the result, None after a kill."""
        path = {} if journal is None else {"journal": {"path": journal, "durability": "process"}}
        limits = {"parallel_subtasks": self.case.width, "subtask_retries": 99}
        loaded = Settings.load(
            **{"log": {"stream": "off"}, "limits": limits, "supervision": RESTARTS, **path, **options}
        )
        host = {} if self.case.planned else {"host": FunctionModel(self.plan)}
        models = {**host, "app": FunctionModel(self.work)}
        self.working.clear()
        with self._crashes(), Faults() as faults:
            if kill is not None:
                getattr(faults, kill.when)("row", disk_full, nth=kill.nth)
            try:
                with Supervisor.start(loaded, models=models, servers=[self.surface]) as supervisor:
                    handle = supervisor.submit(self.task)
                    _answer_questions(handle)
                    return handle.result(PATIENCE)
            except (JournalError, OSError):
                assert kill is not None
                return None

    @contextmanager
    def _crashes(self):
        """Crash agents once, when a job of certain subtasks returns."""
        receive = Agent.receive

        def crash(agent, message):
            number = message.run.assign.number if isinstance(message, JobReturned) else 0
            if number and self.members[number].crashes and number not in self._crashed:
                self._crashed.add(number)
                msg = f"{number} crashes once"
                raise ValueError(msg)
            receive(agent, message)

        with mock.patch.object(Agent, "receive", crash):
            yield


def ending_of(result):
    """Give the parts of a result that the plain model works out."""
    reason = result.causes[0].reason if result.causes else ""
    return Ending(result.number, result.outcome, reason, result.output if result.outcome is Outcome.FINISHED else None)


def mark(number, results):
    """Give the text that a subtask writes: its number, and the results that it sees."""
    return f"[{number}: {', '.join(ending.output or ending.outcome.value for ending in map(ending_of, results))}]"


def _answer_questions(handle):
    for question in handle.questions():
        handle.answer(question.id, "go on")
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            for question in handle.questions():
                handle.answer(question.id, "go on")
