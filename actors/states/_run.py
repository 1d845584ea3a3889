"""One agent's work on one assignment, as an immutable value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never

from callboard.actors.states._evolve import evolve
from callboard.actors.states._loop_detection import repeats
from callboard.actors.states._notes import step_notes
from callboard.actors.states._unfinished import files_of
from callboard.messages import (
    Action,
    AgentStatus,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Assign,
    AssignGroup,
    AtDeadline,
    Cancel,
    Captured,
    Cause,
    Check,
    CheckResult,
    CommandResult,
    Decision,
    Effect,
    Foreseen,
    Held,
    JudgeResult,
    Limit,
    Message,
    Observation,
    Outcome,
    Pause,
    PlannedAction,
    Probe,
    Question,
    RemoteEnded,
    RequestExpired,
    ResultStatus,
    Resume,
    StepDone,
    StepFailure,
    StepRecord,
    SubtaskEnding,
    SubtaskResult,
    Usage,
    answer_notes,
    is_of_task,
    open_failures,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from callboard.actors.states._move import Move
    from callboard.actors.states._unfinished import Unfinished
    from callboard.config import Limits

STOPPED = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET})
"""Outcomes with a cause outside the agent's work."""

Applied = (
    Pause
    | Resume
    | StepDone
    | StepFailure
    | Captured
    | Assign
    | AssignGroup
    | Question
    | ApprovalRequest
    | Answer
    | ApprovalAnswer
    | RequestExpired
    | SubtaskEnding
    | RemoteEnded
    | Cancel
)
"""The messages that `Run.apply` accepts."""

TOO_LATE = "nobody decided on the approval in time"

UNVERIFIED = "it ended without its checks"

GO_ON, STOP = "go on", "stop"
"""The answers to the question at the limit of a budget."""

WAS_DONE, WAS_NOT_DONE = "it was done", "it was not done"
"""The answers to the question about an action in doubt, beside `STOP`."""

_PROBES = {WAS_DONE: Probe.DONE, WAS_NOT_DONE: Probe.NOT_DONE}


@dataclass(frozen=True, kw_only=True)
class Run:
    """The status, memory, plan and pending request of one agent's assignment.

    Nothing in it is shared or mutable: a restart, a recovery and a replay fold the same messages into an equal value.
    """

    assign: Assign
    limits: Limits
    status: str
    job: int = 0
    """The number of the current or latest job; the result of an earlier one is stale."""
    busy: bool = False
    """Whether a job is running."""
    memory: tuple[StepRecord, ...] = ()
    subtasks: tuple[SubtaskResult, ...] = ()
    """The results of the task's subtasks, earlier rounds included."""
    notes: tuple[str, ...] = ()
    """The notes for the model's next step."""
    held: tuple[Action, ...] = ()
    """The actions that wait for an approval or the end of a pause."""
    held_by: Held = Held.NOT
    held_why: str = ""
    """The policy rule that holds them."""
    held_writes: tuple[Foreseen, ...] = ()
    """The writes that held calls had announced before a crash broke them off."""
    left: str = ""
    """The fingerprint of the surface when a pause held the actions that would change it."""
    shown: Observation | None = None
    """The observation sent with the approval request for the held actions."""
    paused: bool = False
    """Whether no job may start."""
    asked_person: tuple[AskedQuestion, ...] = ()
    """The latest questions to a person."""
    at_limit: Limit | None = None
    """The budget limit that the last question was about; None for a model's own question."""
    sent_back: int | None = None
    """The number of steps before a FINISH that was sent back in a step which a question interrupted."""
    grants: tuple[Limit, ...] = ()
    """The limits that a person extended; a limit is repeated for each extension."""
    repeats: int = 0
    """The number of steps like the last one since the surface changed, that one included."""
    waiting: str = ""
    """The id of the pending question, approval or subtask."""
    awaited: tuple[str, ...] = ()
    """The assigned subtasks that have not ended."""
    replies: tuple[str, ...] = ()
    """A person's answers to the model's own questions, until the next step."""
    answer: ApprovalAnswer | None = None
    """The approval that was granted and is not used yet."""
    due: str = ""
    """The status of an answer whose held actions ran after an approval, until the status is followed."""
    last: Applied | None = None
    """The message that was applied last; the state decides on it."""
    lost: tuple[CommandResult, ...] = ()
    """The results of steps that failed later: their side effects, such as written files, remain."""
    plan: tuple[str, ...] = ()
    proposed: tuple[Check, ...] = ()
    """The checks that a HostAgent proposed in its first answer."""
    asked: int = 0
    """Model calls at this address within the task, earlier assignments included."""
    steps: int = 0
    failures: int = 0
    """Failed actions in a row."""
    reannotations: int = 0
    """Steps in a row in SCREENSHOT."""
    outcome: Outcome | None = None
    """The outcome; written once."""
    causes: tuple[Cause, ...] = ()
    usage: Usage = field(default_factory=Usage)
    last_seen: Observation | None = None
    """The observation after a failure, or the last one before it."""
    remote_result: SubtaskResult | None = None
    """The result of the machine that did the work, if that is another one."""
    over: bool = False
    """Whether the final message was sent."""
    unfinished: Unfinished | None = None
    """After a crash: the progress of the interrupted step."""

    @classmethod
    def begin(cls, assign: Assign, limits: Limits, initial: str, earlier_run: Run | None = None) -> Run:
        """Create the run of a new assignment.

        It keeps the memory of `earlier_run` if that belongs to the same conversation.
        """
        past = earlier_run if earlier_run is not None and memory_key(earlier_run.assign) == memory_key(assign) else None
        counted = past is not None and (not assign.number or past.assign.task_id == assign.task_id)
        return cls(
            assign=assign,
            limits=limits.under(assign.limits),
            status=initial,
            subtasks=past.subtasks if past and not assign.number else assign.subtasks,
            memory=past.memory if past else (),
            plan=past.plan if past else (),
            proposed=past.proposed if past and not assign.number and past.assign.task_id == assign.task_id else (),
            asked=past.asked if past and counted else 0,
            grants=past.grants if past and past.assign.run_id == assign.run_id else (),
        )

    @property
    def output(self) -> JsonValue:
        """The result: the model's own, or the last successful action's value.

        The output of a task with a schema is the result of the answer that ended it.
        """
        if self.assign.output_schema is not None:
            return self.records[-1].decision.result if self.outcome is Outcome.FINISHED else None
        for record in reversed(self.records):
            if record.decision.result is not None:
                return record.decision.result
            for result in reversed(record.results):
                if result.status is ResultStatus.SUCCESS and result.value is not None:
                    return result.value
        return None

    @property
    def own_subtasks(self) -> tuple[SubtaskResult, ...]:
        """The results of this task's subtasks, without the conversation's earlier tasks."""
        return tuple(done for done in self.subtasks if is_of_task(done.run_id, self.assign.task_id))

    @property
    def next_number(self) -> int:
        """The number of the next subtask; those of cancelled ones leave gaps."""
        return 1 + max((result.number for result in self.subtasks), default=0)

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """The results of the checks, as they were read last."""
        own_checks = next((record.checks for record in reversed(self.records) if record.checks), ())
        if self.assign.plan:
            return (*(check for result in self.own_subtasks for check in result.checks), *own_checks)
        if own_checks or self.assign.plan_step is None or not self.own_subtasks:
            return own_checks
        return self.own_subtasks[-1].checks

    @property
    def judged(self) -> tuple[JudgeResult, ...]:
        """The judge's answers, as they were given last."""
        own_answers = next((record.judged for record in reversed(self.records) if record.judged), ())
        if own_answers or self.assign.plan_step is None or not self.own_subtasks:
            return own_answers
        return self.own_subtasks[-1].judged

    @property
    def may_propose(self) -> bool:
        """True for the first answer of a HostAgent to its task."""
        return not (self.steps or self.assign.number) and self.assign.round == 1

    def checks_of(self, decision: Decision) -> tuple[Check, ...]:
        """Return the checks of a FINISH; the proposed ones are last."""
        ends = self.assign.last_round and not self.assign.number
        return (*self.assign.checks, *((decision.checks or self.proposed) if ends else ()))

    @property
    def verified(self) -> bool:
        """True if all checks held at its FINISH, without a judge's no."""
        task_checks = [check for check in self.assign.checks if check.source == "task"]
        ended_by: StepRecord | SubtaskResult | None = self.records[-1] if self.records else None
        if isinstance(self.last, SubtaskEnding | RemoteEnded):
            ended_by = self.last.result
        judged = () if ended_by is None else ended_by.judged
        if self.assign.judge is not None and (not judged or any(result.answer == "no" for result in judged)):
            return False
        if not task_checks:
            return True
        read = () if ended_by is None else ended_by.checks
        counted = [result for result in read if result.source == "task"]
        return len(counted) == len(task_checks) and all(result.held for result in counted)

    @property
    def broken_off(self) -> bool:
        """True if a crash interrupted a step after its decision."""
        return self.unfinished is not None and self.unfinished.decided is not None

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The steps of this assignment, without the conversation's earlier ones."""
        return self.memory[len(self.memory) - self.steps :] if self.steps else ()

    @property
    def decided(self) -> int:
        """The number of this assignment's steps that are not resumed ones."""
        return sum(not record.resumed for record in self.records)

    @property
    def decision_comment(self) -> str:
        """The comment of the model's last answer."""
        return self.records[-1].decision.comment if self.records else ""

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The written files, without repetitions, in order."""
        return unique([path for result in self._done for path in result.artifacts])

    @property
    def effects(self) -> tuple[CommandResult, ...]:
        """The results of actions with a certain or possible side effect.

        Opening an application is none: it is the means of a change.
        """
        alone = self.assign.target is None
        return tuple([result for result in self._done if result.changed and not (alone and result.opens)])

    @property
    def failed_actions(self) -> int:
        """The number of actions that failed, the denied ones included."""
        return sum(result.status is ResultStatus.FAILURE for result in self._done)

    @property
    def would_do(self) -> tuple[PlannedAction, ...]:
        """The actions that a dry run did not execute."""
        target = "" if self.assign.target is None else self.assign.target.id
        return tuple(
            [
                PlannedAction(
                    tool=result.tool,
                    arguments=action.arguments,
                    control=action.control,
                    target=target,
                    note=result.error,
                )
                for record in self.records
                for action, result in record.calls
                if result.status is ResultStatus.DRY_RUN and action is not None
            ]
        )

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that the side effects wrote.

        An action that wrote none is listed by its target, or by its tool if there is no target.
        """
        target, names = self.assign.target, list[str]()
        for result in self.effects:
            names += result.artifacts or (result.tool if target is None else target.id,)
        return unique(names)

    @property
    def made(self) -> tuple[str, ...]:
        """The created files, including those that the task had created before."""
        paths = [*self.assign.made]
        for subtask in self.subtasks:
            paths += subtask.made
        for result in self._done:
            paths += result.made
        return unique(paths)

    @property
    def _done(self) -> tuple[CommandResult, ...]:
        done: list[CommandResult] = []
        for record in self.records:
            done += record.results
        return (*done, *self.lost)

    def expects(self, message: Message) -> bool:
        """Report whether a message still concerns this run or is late."""
        match message:
            case Cancel():
                mine = message.run_id in {"*", self.assign.run_id}
                last_look = self.status != AgentStatus.FINISH and self.outcome not in STOPPED
                return mine and (self.outcome is None or last_look or self.paused)
            case Answer() | ApprovalAnswer() | RequestExpired():
                return self.waiting == message.id
            case SubtaskEnding():
                return message.run_id in self.awaited
            case _:
                return True

    def apply(self, message: Applied) -> Run:  # noqa: C901, PLR0912 - one match, a case a message
        """Return the run after a message. Pure; the status does not change."""
        if isinstance(message, StepDone):
            return evolve(self, last=message, busy=False, unfinished=None, **self._remembered(message))
        run = evolve(self, last=message, busy=False, unfinished=self._still_unfinished(message))
        match message:
            case StepFailure(usage=usage):
                lost_results, asked_count = (*self.lost, *message.results), run.asked + usage.answers
                return evolve(
                    run, usage=run.usage + usage, asked=asked_count, lost=lost_results, last_seen=message.seen
                )
            case Question(usage=usage, sent_back=back):
                used, asked_count = run.usage + usage, run.asked + usage.answers
                run = evolve(run, usage=used, asked=asked_count, sent_back=run.steps if back else run.sent_back)
                return evolve(run, waiting=message.id, asked_person=message.questions, at_limit=message.limit)
            case ApprovalRequest():
                return evolve(run, waiting=message.id, shown=message.observation)
            case Assign(run_id=run_id):
                return evolve(run, waiting=run_id, awaited=(run_id,))
            case AssignGroup(assigns=assigns):
                awaited = tuple(assign.run_id for assign in assigns)
                return evolve(run, waiting=awaited[0], awaited=awaited)
            case Answer() if run.unfinished is not None and self.at_limit is None:
                probe = _PROBES.get(*message.texts) if len(message.texts) == 1 else None
                return evolve(run, waiting="", unfinished=replace(run.unfinished, probe=probe))
            case Answer():
                limit = self.at_limit
                more = (limit,) if limit is not None and message.texts == (GO_ON,) else ()
                notes = (*run.notes, *answer_notes(() if self.at_limit is not None else self.asked_person, message))
                replies = self.replies if limit is not None or message.nobody else message.texts
                return evolve(run, waiting="", grants=(*self.grants, *more), notes=notes, replies=replies)
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
                return evolve(self, paused=isinstance(message, Pause))  # an interrupted step stays interrupted
            case SubtaskEnding(result=result):
                awaited = tuple(run_id for run_id in run.awaited if run_id != message.run_id)
                results = tuple(sorted((*run.subtasks, result), key=lambda ended: ended.number))
                return evolve(run, waiting=awaited[0] if awaited else "", awaited=awaited, subtasks=results)
            case Cancel():
                return evolve(run, **self._stopped(message))
            case RemoteEnded(result=result):
                return evolve(run, usage=run.usage + result.usage, remote_result=result)
            case Captured():
                return evolve(run, last_seen=message.observation or run.last_seen)
            case _:
                assert_never(message)

    def _still_unfinished(self, message: Message) -> Unfinished | None:
        """Return the interrupted step while a person is asked about it."""
        asking = isinstance(message, Question | Answer | RequestExpired)
        unfinished = self.unfinished
        return unfinished if asking and unfinished is not None and unfinished.decided is not None else None

    def with_lost(self, usage: Usage, results: tuple[CommandResult, ...]) -> Run:
        """Add the usage and the results of an interrupted step."""
        return evolve(self, usage=self.usage + usage, lost=(*self.lost, *results))

    def _stopped(self, cancel: Cancel) -> dict[str, Any]:
        # The job number goes up although no job starts: it makes the result of the cancelled job stale.
        stopped = {
            "waiting": "",
            "awaited": (),
            "held": (),
            "held_by": Held.NOT,
            "held_writes": (),
            "lost": (*self.lost, *self._dropped),
            "paused": False,
            "job": self.job + 1,
        }
        if self.outcome is not None:  # the work had ended before; only the last observation is given up
            return stopped
        cause = Cause(reason=cancel.reason, where=self.assign.address)
        return {**stopped, "outcome": cancel.outcome, "causes": (cause,)}

    def _remembered(self, done: StepDone) -> dict[str, Any]:
        record = done.record
        ran = [result.status for result in record.results]
        failed = ResultStatus.FAILURE in ran
        same = self.repeats if record.resumed else repeats(self.records, record)
        if record.refused:
            same = 0  # `check_retries` limits these
        is_approved = self.status == AgentStatus.CONFIRM or done.held_by is Held.PAUSE
        followed = self.status != AgentStatus.CONFIRM or bool(done.follows)
        return {
            "memory": (*self.memory, record),
            "replies": (),
            "steps": self.steps + 1,
            "plan": record.decision.plan or self.plan,
            "proposed": record.decision.checks or self.proposed,
            "held": done.held,
            "held_by": done.held_by,
            "held_why": done.held_why,
            "held_writes": self._held_writes(done),
            "left": done.left,
            "answer": self.answer if is_approved and done.held_by is not Held.POLICY else None,
            "shown": self.shown if done.held else None,
            "repeats": same,
            "failures": self.failures + 1 if failed else (0 if ResultStatus.SUCCESS in ran else self.failures),
            "notes": step_notes(record, same, self.limits.repeats, followed=followed),
            "usage": self.usage + done.usage,
            "asked": self.asked + done.usage.answers - record.judge_calls,
        }

    def _held_writes(self, done: StepDone) -> tuple[Foreseen, ...]:
        """Return the writes of the calls that are held now.

        The last one of a call that a crash broke off was not done, or it would not be held.
        """
        unfinished = self.unfinished
        notes = () if unfinished is None else (*unfinished.earlier, *unfinished.foreseen[:-1])
        held_ids = {action.call_id for action in done.held}
        return tuple(note for note in (*self.held_writes, *notes) if note.call_id in held_ids)

    @property
    def _dropped(self) -> tuple[CommandResult, ...]:
        """The results of held calls that wrote files and will not run."""
        results = []
        for action in self.held:
            artifacts, made = files_of(note for note in self.held_writes if note.call_id == action.call_id)
            if artifacts:
                result = CommandResult(
                    call_id=action.call_id,
                    tool=action.tool,
                    status=ResultStatus.SKIPPED,
                    effect=Effect.ONCE,
                    arguments=action.arguments,
                    error="was broken off, and not run again",
                    artifacts=artifacts,
                    made=made,
                    in_doubt=True,
                )
                results.append(result)
        return tuple(results)

    def moved(self, move: Move, *, reannotating: bool) -> Run:
        """Return the run in another status, with the move's outcome.

        An outcome that was written before stays.
        """
        unfinished = self.unfinished  # after a move the interrupted step is not resumed
        run = self if unfinished is None else self.with_lost(unfinished.usage, unfinished.done)
        if move.target != AgentStatus.CONFIRM:
            run = evolve(run, held=(), held_writes=(), lost=(*run.lost, *self._dropped))
        run = evolve(
            run,
            unfinished=None,
            status=move.target,
            due=self.last.follows if isinstance(self.last, StepDone) and self.status == AgentStatus.CONFIRM else "",
            last=None,
            answer=None,
            reannotations=self.reannotations + 1 if reannotating else 0,
        )
        if move.outcome is None or run.outcome is not None:
            return run
        outcome = move.outcome
        if outcome is Outcome.FINISHED and not (self.assign.dry_run or self.verified):
            outcome = Outcome.FAILED  # whatever the machine says: a FINISH counts once it was read back
        return evolve(run, outcome=outcome, causes=self._causes(move, outcome))

    def _causes(self, move: Move, outcome: Outcome) -> tuple[Cause, ...]:
        if outcome is Outcome.FINISHED:
            return ()
        here = self.assign.address
        match self.last:
            case StepFailure() as failed:
                return failed.causes
            case RemoteEnded(result=result) if result.causes:
                return result.causes
            case SubtaskEnding() as ended if ended.result.group:
                failures = open_failures(self.own_subtasks)
                ends = [
                    Cause(reason=f"the subtask {result.run_id} ended as {result.outcome.value}", where=result.address)
                    for result in failures
                ]
                deciding = [result for result in failures if result.outcome is outcome]
                return (*ends, *(cause for result in deciding[:1] for cause in result.causes))
            case SubtaskEnding() as ended:
                reason = f"the subtask {ended.run_id} ended as {ended.result.outcome.value}"
                return (Cause(reason=reason, where=ended.result.address), *ended.result.causes)
            case _:
                if move.reason == UNVERIFIED or outcome is not move.outcome:
                    checks = self.records[-1].failed_checks if self.records else ()
                    reasons = [f"a check does not hold: {check.told('all')}" for check in checks]
                    denials = self.records[-1].denials if self.records else ()
                    reasons += [f"the judge says no to {denial.told()}" for denial in denials]
                    return tuple(Cause(reason=reason, where=here) for reason in reasons or [UNVERIFIED])
                return (Cause(reason=move.reason or "the agent gave up", where=here),)


def memory_key(assign: Assign) -> str:
    """Return the id of the conversation whose memory an assignment continues.

    It is the conversation's first task, or the task itself.
    """
    return assign.session or assign.task_id


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Remove repeated items and keep the order."""
    return tuple(dict.fromkeys(items))
