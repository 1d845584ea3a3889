"""The work of one agent on one assignment, as one frozen value. `apply` makes the next one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never

from callboard.actors.states._evolve import evolve
from callboard.actors.states._notes import answer_notes, repeats, step_notes
from callboard.messages import (
    Action,
    AgentStatus,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Assign,
    AtDeadline,
    Cancel,
    Captured,
    Cause,
    CommandResult,
    Held,
    Limit,
    Message,
    Observation,
    Outcome,
    Pause,
    Probe,
    Question,
    RequestExpired,
    ResultStatus,
    Resume,
    StepDone,
    StepFailed,
    StepRecord,
    SubtaskEnded,
    SubtaskResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from callboard.actors.states._machine import Move
    from callboard.actors.states._unfinished import Unfinished
    from callboard.config import Limits

STOPPED = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET})
"""Endings that come from outside of the agent's work."""

Applied = (
    Pause
    | Resume
    | StepDone
    | StepFailed
    | Captured
    | Assign
    | Question
    | ApprovalRequest
    | Answer
    | ApprovalAnswer
    | RequestExpired
    | SubtaskEnded
    | Cancel
)
"""What can happen to a run."""

TOO_LATE = "nobody decided on the approval in time"

GO_ON, STOP = "go on", "stop"
"""The answers to the question at the limit of a budget."""

WAS_DONE, WAS_NOT_DONE = "it was done", "it was not done"
"""The answers to the question about an action in doubt, beside `STOP`."""

_SAID = {WAS_DONE: Probe.DONE, WAS_NOT_DONE: Probe.NOT_DONE}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that one agent knows and decided on one assignment: its status, memory and plan, what it waits for.

    Nothing in it is shared or mutable: a restart, a recovery and a replay fold the same messages to the same value.
    """

    assign: Assign
    limits: Limits
    status: str
    job: int = 0
    """The number of the job that runs or ran last; a word of an earlier one is stale."""
    busy: bool = False
    """Whether a job runs."""
    memory: tuple[StepRecord, ...] = ()
    subtasks: tuple[SubtaskResult, ...] = ()
    """What the task's subtasks left, the earlier rounds' included."""
    notes: tuple[str, ...] = ()
    """What the model has to be told at the next step."""
    held: tuple[Action, ...] = ()
    """Actions that wait for an approval, or for the end of a pause."""
    held_by: Held = Held.NOT
    held_why: str = ""
    """The rule that holds them."""
    left: str = ""
    """The fingerprint of the surface as it was left, where a pause holds what would change it."""
    shown: Observation | None = None
    """What a person was shown with the approval of what is held."""
    paused: bool = False
    """Whether no job may start."""
    asked_person: tuple[AskedQuestion, ...] = ()
    """The questions that were put last."""
    at_limit: Limit | None = None
    """The limit of a budget that the last question was about; None for a model's own."""
    sent_back: bool = False
    """Whether a FINISH was sent back in a step that a question broke off."""
    grants: tuple[Limit, ...] = ()
    """The limits at which a person said "go on", once for each time."""
    repeats: int = 0
    """How often a step like the last one was taken since the surface changed, that one included."""
    waiting: str = ""
    """The id of the question, approval or subtask that is waited for."""
    answer: ApprovalAnswer | None = None
    """The approval that was given and is not used up yet."""
    due: str = ""
    """The status of an answer whose held actions ran after an approval, until it is followed."""
    last: Applied | None = None
    """What was applied last; what the state decides on."""
    lost: tuple[CommandResult, ...] = ()
    """What was done in steps that failed later: files that it wrote are there all the same."""
    plan: tuple[str, ...] = ()
    asked: int = 0
    """Calls to the model at this address within the task, those of earlier assignments included."""
    steps: int = 0
    failures: int = 0
    """Failed actions in a row."""
    reannotations: int = 0
    """Steps in a row in SCREENSHOT."""
    outcome: Outcome | None = None
    """How it ends; written once."""
    causes: tuple[Cause, ...] = ()
    usage: Usage = field(default_factory=Usage)
    last_seen: Observation | None = None
    """The look that was taken after a failure; where there was none, the last one before it."""
    over: bool = False
    """Whether the ending was sent."""
    unfinished: Unfinished | None = None
    """After a crash: how far the step came that it broke off."""

    @classmethod
    def begin(cls, assign: Assign, limits: Limits, initial: str, before: Run | None = None) -> Run:
        """Begin an assignment; memory of the same conversation goes on, that of any other does not."""
        known = before if before is not None and memory_key(before.assign) == memory_key(assign) else None
        counted = known is not None and (not assign.number or known.assign.task_id == assign.task_id)
        return cls(
            assign=assign,
            limits=limits,
            status=initial,
            subtasks=known.subtasks if known and not assign.number else assign.subtasks,
            memory=known.memory if known else (),
            plan=known.plan if known else (),
            asked=known.asked if known and counted else 0,
            grants=known.grants if known and known.assign.run_id == assign.run_id else (),
        )

    @property
    def output(self) -> JsonValue:
        """What the work produced: the model's own word, else the last successful action's value."""
        for record in reversed(self.records):
            if record.decision.result is not None:
                return record.decision.result
            for result in reversed(record.results):
                if result.status is ResultStatus.SUCCESS and result.value is not None:
                    return result.value
        return None

    @property
    def own_subtasks(self) -> tuple[SubtaskResult, ...]:
        """Those of the task itself, not of the conversation before it."""
        return tuple(done for done in self.subtasks if done.run_id.rpartition("/")[0] == self.assign.task_id)

    @property
    def broken_off(self) -> bool:
        """Whether a crash broke off a step after its decision: then it goes on from there."""
        return self.unfinished is not None and self.unfinished.decided is not None

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The steps of this assignment alone."""
        return self.memory[len(self.memory) - self.steps :] if self.steps else ()

    @property
    def decided(self) -> int:
        """How many steps of this assignment had a decision of their own; going on with held actions is none."""
        return sum(not record.resumed for record in self.records)

    @property
    def decision_comment(self) -> str:
        """What the model said last."""
        return self.records[-1].decision.comment if self.records else ""

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The files that were written, each once, in order."""
        return unique([path for result in self._done for path in result.artifacts])

    @property
    def effects(self) -> tuple[CommandResult, ...]:
        """The results of actions that changed something, or may have."""
        return tuple([result for result in self._done if result.changed])

    @property
    def changed(self) -> tuple[str, ...]:
        """What they changed: the files that they wrote; of one that wrote none its target, or what it was."""
        target, found = self.assign.target, list[str]()
        for result in self.effects:
            found += result.artifacts or (result.tool if target is None else target.id,)
        return unique(found)

    @property
    def made(self) -> tuple[str, ...]:
        """Those of them that were not there before, and what the task had made already."""
        found = [*self.assign.made]
        for subtask in self.subtasks:
            found += subtask.made
        for result in self._done:
            found += result.made
        return unique(found)

    @property
    def _done(self) -> tuple[CommandResult, ...]:
        done: list[CommandResult] = []
        for record in self.records:
            done += record.results
        return (*done, *self.lost)

    def expects(self, message: Message) -> bool:
        """Say whether a message still concerns this run; otherwise it came too late."""
        match message:
            case Cancel():
                mine = message.run_id in {"*", self.assign.run_id}
                last_look = self.status != AgentStatus.FINISH and self.outcome not in STOPPED
                return mine and (self.outcome is None or last_look or self.paused)
            case Answer() | ApprovalAnswer() | RequestExpired():
                return self.waiting == message.id
            case SubtaskEnded():
                return self.waiting == message.run_id
            case _:
                return True

    def apply(self, message: Applied) -> Run:  # noqa: C901, PLR0911, PLR0912 - one match, a case a message
        """Make the run that follows a message. Pure; the status does not change here."""
        if isinstance(message, StepDone):
            return evolve(self, last=message, busy=False, unfinished=None, **self._remembered(message))
        run = evolve(self, last=message, busy=False, unfinished=self._still_unfinished(message))
        match message:
            case StepFailed(usage=usage):
                lost, asked = (*self.lost, *message.results), run.asked + usage.model_calls
                return evolve(run, usage=run.usage + usage, asked=asked, lost=lost, last_seen=message.seen)
            case Question(usage=usage, sent_back=back):
                used, asked = run.usage + usage, run.asked + usage.model_calls
                run = evolve(run, usage=used, asked=asked, sent_back=run.sent_back or back)
                return evolve(run, waiting=message.id, asked_person=message.questions, at_limit=message.limit)
            case ApprovalRequest():
                return evolve(run, waiting=message.id, shown=message.observation)
            case Assign(run_id=awaited):
                return evolve(run, waiting=awaited)
            case Answer() if run.unfinished is not None and self.at_limit is None:
                said = _SAID.get(*message.texts) if len(message.texts) == 1 else None
                return evolve(run, waiting="", unfinished=replace(run.unfinished, said=said))
            case Answer():
                limit = self.at_limit
                more = (limit,) if limit is not None and message.texts == (GO_ON,) else ()
                notes = (*run.notes, *answer_notes(() if self.at_limit is not None else self.asked_person, message))
                return evolve(run, waiting="", grants=(*self.grants, *more), notes=notes)
            case ApprovalAnswer():
                return evolve(run, waiting="", answer=message)
            case RequestExpired(at_deadline=AtDeadline.ALLOW):
                allowed = ApprovalAnswer(
                    id=message.id, task_id=message.task_id, approved=True, unattended=True, reason=TOO_LATE
                )
                return evolve(run, waiting="", answer=allowed)
            case RequestExpired():
                return evolve(run, waiting="")
            case Pause() | Resume():
                return evolve(self, paused=isinstance(message, Pause))  # a step that was broken off still is
            case SubtaskEnded(result=result):
                return evolve(run, waiting="", subtasks=(*run.subtasks, result))
            case Cancel():
                return evolve(run, **self._stopped(message))
            case Captured():
                return evolve(run, last_seen=message.observation or run.last_seen)
            case _:
                assert_never(message)

    def _still_unfinished(self, message: Message) -> Unfinished | None:
        """Keep what a crash broke off while a person is asked about it; anything else ends it."""
        asking = isinstance(message, Question | Answer | RequestExpired)
        left = self.unfinished
        return left if asking and left is not None and left.decided is not None else None

    def with_lost(self, usage: Usage, results: tuple[CommandResult, ...]) -> Run:
        """Add what a step had used and done when it was broken off."""
        return evolve(self, usage=self.usage + usage, lost=(*self.lost, *results))

    def _stopped(self, cancel: Cancel) -> dict[str, Any]:
        stopped = {"waiting": "", "held": (), "held_by": Held.NOT, "paused": False, "job": self.job + 1}
        if self.outcome is not None:  # it ended before; only the last look is given up
            return stopped
        cause = Cause(reason=cancel.reason, where=self.assign.address)
        return {**stopped, "outcome": cancel.outcome, "causes": (cause,)}

    def _remembered(self, done: StepDone) -> dict[str, Any]:
        record = done.record
        ran = [result.status for result in record.results]
        failed = ResultStatus.FAILURE in ran
        same = self.repeats if record.resumed else repeats(self.records, record)
        followed = self.status != AgentStatus.CONFIRM or bool(done.follows)
        return {
            "memory": (*self.memory, record),
            "steps": self.steps + 1,
            "plan": record.decision.plan or self.plan,
            "held": done.held,
            "held_by": done.held_by,
            "held_why": done.held_why,
            "left": done.left,
            "answer": self.answer if self.status == AgentStatus.CONFIRM or done.held_by is Held.PAUSE else None,
            "shown": self.shown if done.held else None,
            "repeats": same,
            "failures": self.failures + 1 if failed else (0 if ResultStatus.SUCCESS in ran else self.failures),
            "notes": step_notes(record, same, self.limits.repeats, followed=followed),
            "usage": self.usage + done.usage,
            "asked": self.asked + done.usage.model_calls,
        }

    def moved(self, move: Move, *, reannotating: bool) -> Run:
        """Make the run in another status, with the outcome that the move decides, if none was written before."""
        left = self.unfinished  # who moves on from there does not go on with it
        run = evolve(
            self if left is None else self.with_lost(left.usage, left.done),
            unfinished=None,
            status=str(move.target),
            due=self.last.follows if isinstance(self.last, StepDone) and self.status == AgentStatus.CONFIRM else "",
            last=None,
            answer=None,
            held=self.held if move.target == AgentStatus.CONFIRM else (),
            reannotations=self.reannotations + 1 if reannotating else 0,
        )
        if move.outcome is None or run.outcome is not None:
            return run
        causes = self._causes(move)
        return evolve(run, outcome=move.outcome, causes=causes)

    def _causes(self, move: Move) -> tuple[Cause, ...]:
        if move.outcome is Outcome.FINISHED:
            return ()
        here = self.assign.address
        match self.last:
            case StepFailed() as failed:
                return failed.causes
            case SubtaskEnded() as ended:
                reason = f"the subtask {ended.run_id} ended as {ended.result.outcome.value}"
                return (Cause(reason=reason, where=ended.result.address), *ended.result.causes)
            case _:
                return (Cause(reason=move.reason or "the agent gave up", where=here),)


def memory_key(assign: Assign) -> str:
    """Name the conversation whose memory an assignment continues: its first task, or the task itself."""
    return assign.session or assign.task_id


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Drop repeated items, keeping the order."""
    return tuple(dict.fromkeys(items))
