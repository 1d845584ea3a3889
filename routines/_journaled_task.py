"""The work of a finished task in its journal, without failed parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from callboard.messages import (
    REMOTE,
    Action,
    AgentStatus,
    Answer,
    Answered,
    Assign,
    AssignGroup,
    CommandResult,
    Event,
    EventName,
    Hazard,
    Outcome,
    Question,
    ResultStatus,
    RoutineError,
    StepDone,
    StepFailure,
    StepRecord,
    SubtaskEnding,
    SubtaskResult,
    Task,
    TaskResult,
    agent_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from callboard.journal import Row
    from callboard.messages import RoutineMiss


@dataclass
class JournaledStep:
    """A step that decided, with its actions that succeeded."""

    record: StepRecord
    answer: Answered | None
    calls: list[tuple[Action, CommandResult]] = field(default_factory=list)
    """The actions that succeeded, also after an approval, in order."""
    ended: tuple[int, ...] = ()
    """For a HostAgent: the subtasks that had ended before, by their numbers in the journal."""
    final: bool = False
    """Whether it ended the work."""


@dataclass
class JournaledRun:
    """The work of one agent."""

    assign: Assign
    steps: list[JournaledStep] = field(default_factory=list)
    sees: tuple[int, ...] = ()
    """The subtasks whose results it got, by their numbers in the journal."""
    records: list[StepRecord] = field(default_factory=list)
    """All records of its agent in this task up to its end, by which a model's references count."""
    failed_actions: int = 0
    result: SubtaskResult | None = None


@dataclass
class JournaledTask:
    """A finished task that a routine can be made of."""

    task: Task
    result: TaskResult
    host: JournaledRun | None
    subtasks: list[JournaledRun]
    """The subtasks that finished, in the order of their hand-over."""
    left_out: list[JournaledRun]
    """The subtasks that did not finish."""
    answers: list[tuple[str, str]]
    """Each question that a person answered, with the answer; those about a routine are left out."""
    misses: dict[str, RoutineMiss] = field(default_factory=dict)
    """The first step of a routine that could not be repeated, by run."""
    hazards: dict[tuple[str, int, str], frozenset[Hazard]] = field(default_factory=dict)
    """The hazards that the policy saw, by run, step and tool; empty if the events were not read."""

    def hazards_of(self, run: JournaledRun, step: JournaledStep, tool: str) -> frozenset[Hazard]:
        """Return the hazards of the calls of a tool in a step."""
        return self.hazards.get((run.assign.run_id, step.record.step, tool), frozenset())

    @property
    def runs(self) -> list[JournaledRun]:
        """All runs with steps, the HostAgent's first."""
        return [*([] if self.host is None else [self.host]), *self.subtasks]


def journaled_task(rows: Iterable[Row]) -> JournaledTask:
    """Read the work of a task from its rows.

    Raises:
        RoutineError: If no routine can be made of it: it did not finish, was a dry run, continues a conversation, or
            was partly done by another machine or from pictures alone.
    """
    reading = _Reading()
    for row in rows:
        reading.add(row)
    task = reading.task
    if task is None:
        msg = "the journal has no such task"
        raise RoutineError(msg)
    result = _finished(task, reading.result)
    runs = [run for run in reading.runs.values() if run.assign.number]
    runs.sort(key=lambda run: run.assign.number)
    subtasks = [run for run in runs if run.result is not None and run.result.outcome is Outcome.FINISHED]
    host = next((run for run in reading.runs.values() if not run.assign.number), None)
    journaled = JournaledTask(
        task,
        result,
        host,
        subtasks,
        [run for run in runs if run not in subtasks],
        reading.answers,
        reading.misses,
        reading.hazards,
    )
    _check_work(journaled)
    for run in journaled.runs:
        for step in run.steps[-1:]:
            step.final = step.record.decision.status == AgentStatus.FINISH
    return journaled


def _finished(task: Task, result: TaskResult | None) -> TaskResult:
    if result is None:
        problem = "is not over: a routine is made of a finished task"
    elif result.outcome is not Outcome.FINISHED:
        problem = f"ended as {result.outcome.value.replace('_', ' ')}: a routine is made of a finished task"
    elif task.dry_run:
        problem = "was a dry run, which did nothing: run it without --dry-run first"
    elif task.session not in {None, task.id}:
        problem = (
            f"continues the conversation of {task.session}, whose work its agents remembered, and a routine could not "
            "repeat: run the request as a task of its own first"
        )
    elif task.origin is not None and task.origin.subtasks:
        problem = f"got the results of earlier subtasks from the machine {task.origin.submitter}, which are not here"
    else:
        return result
    msg = f"the task {task.id} {problem}"
    raise RoutineError(msg)


def _check_work(journaled: JournaledTask) -> None:
    for run in journaled.subtasks:
        machine = "" if run.result is None else run.result.machine
        if machine or agent_kind(run.assign.address) == REMOTE:
            where = f"the machine {machine}" if machine else "another process"
            msg = (
                f"subtask {run.assign.number} of the task {journaled.task.id} ran on {where}, and its steps are in the "
                "journal there: a routine can be made only of tasks whose steps are all in one journal"
            )
            raise RoutineError(msg)
    for run in journaled.runs:
        for step in run.steps:
            pointing = next((action.tool for action, _ in step.calls if action.points), None)
            if pointing is not None:
                msg = (
                    f"{run.assign.address}, step {step.record.step}, calls {pointing} with a point of the picture: a "
                    "routine could not see that the same thing is there the next time. Let an agent that names "
                    "controls do this subtask"
                )
                raise RoutineError(msg)
    if not journaled.subtasks:
        msg = (
            f"the task {journaled.task.id} has no subtask that finished: its HostAgent did the work alone, and a "
            "routine has at least one subtask"
        )
        raise RoutineError(msg)


class _Reading:
    """Collects the rows of a task."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.result: TaskResult | None = None
        self.runs: dict[str, JournaledRun] = {}
        self.answers: list[tuple[str, str]] = []
        self.misses: dict[str, RoutineMiss] = {}
        self.hazards: dict[tuple[str, int, str], frozenset[Hazard]] = {}
        self._routine_questions: set[str] = set()
        self._questions: dict[str, Question] = {}
        self._latest: dict[str, Answered] = {}
        self._memory: dict[str, list[StepRecord]] = {}
        self._actions: dict[str, Action] = {}
        self._deciding: dict[str, JournaledStep] = {}
        self._ended: list[int] = []

    def add(self, row: Row) -> None:
        """Add a row."""
        match row.message:
            case Task() as task:
                self.task = task
            case TaskResult() as result:
                self.result = result
            case Assign() as assign:
                self._assigned(assign)
            case AssignGroup() as group:
                for assign in group.assigns:
                    self._assigned(assign)
            case SubtaskEnding(result=result):
                self._subtask_ended(result)
            case Question() as question:
                self._questions[question.id] = question
            case Answer() as answer:
                self._answered(answer)
            case _ if row.run_id in self.runs:
                self._add_to_run(row)
            case _:
                pass

    def _add_to_run(self, row: Row) -> None:
        match row.message:
            case Answered() as answered:
                self._latest[row.run_id] = answered
                if answered.routine_miss is not None:
                    self.misses.setdefault(row.run_id, answered.routine_miss)
            case Event(name=EventName.POLICY_DECIDED, step=int(step), data=data):
                call = (row.run_id, step, str(data["tool"]))
                hazards = map(Hazard, cast("list[str]", data["hazards"]))
                self.hazards[call] = self.hazards.get(call, frozenset()) | frozenset(hazards)
            case StepDone(record=record):
                self._stepped(row.run_id, record)
            case StepFailure(results=results):
                self.runs[row.run_id].failed_actions += len(results)
            case _:
                pass

    def _assigned(self, assign: Assign) -> None:
        if assign.run_id in self.runs:
            return  # the next round of a plan, or its start once its target is free
        memory = self._memory.setdefault(assign.address, [])
        member = assign.member
        ended = self._ended if member is None else [number for number in self._ended if number < member.first]
        sees = (*ended, *(() if member is None else member.sees))
        self.runs[assign.run_id] = JournaledRun(assign, sees=sees, records=memory)

    def _stepped(self, run_id: str, record: StepRecord) -> None:
        run = self.runs[run_id]
        run.records.append(record)
        if record.decision.routine_step:
            self._routine_questions |= {question.text for question in record.decision.questions}
        run.failed_actions += record.failures
        self._actions |= {action.call_id: action for action in record.decision.actions}
        if not record.resumed:
            step = JournaledStep(record, self._latest.pop(run_id, None), ended=tuple(self._ended))
            run.steps.append(step)
            self._deciding |= {action.call_id: step for action in record.decision.actions}
        for result in record.results:
            action = self._actions.get(result.call_id)
            if action is not None and result.status is ResultStatus.SUCCESS:
                self._deciding[result.call_id].calls.append((action, result))

    def _subtask_ended(self, result: SubtaskResult) -> None:
        if result.number not in self._ended:
            self._ended.append(result.number)
        if result.run_id in self.runs:
            self.runs[result.run_id].result = result

    def _answered(self, answer: Answer) -> None:
        question = self._questions.get(answer.id)
        if question is None or question.limit is not None or question.in_doubt or answer.nobody:
            return
        pairs: Iterator[Any] = zip(question.questions, answer.texts, strict=False)
        self.answers += [(asked.text, text) for asked, text in pairs if asked.text not in self._routine_questions]
