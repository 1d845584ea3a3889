"""Events: one vocabulary for the event stream, the log and the journal."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, RunId, Seconds, Term, Timestamp, number_of


class EventName(Term):
    """The names of all events.

    Each event has a class in `callboard.events`, which describes it and its data.
    """

    SUPERVISOR_STARTED = "supervisor.started"
    SUPERVISOR_STOPPED = "supervisor.stopped"
    TASK_SUBMITTED = "task.submitted"
    TASK_ENDED = "task.ended"
    TASK_CANCELLING = "task.cancelling"
    TASK_RECOVERED = "task.recovered"
    TASK_PAUSED = "task.paused"
    TASK_RESUMED = "task.resumed"
    ROUND_STARTED = "round.started"
    ROUND_ENDED = "round.ended"
    SUBTASK_PLANNED = "subtask.planned"
    SUBTASK_QUEUED = "subtask.queued"
    SUBTASK_ASSIGNED = "subtask.assigned"
    SUBTASK_ENDED = "subtask.ended"
    AGENT_STARTED = "agent.started"
    AGENT_STOPPED = "agent.stopped"
    AGENT_CRASHED = "agent.crashed"
    RUN_RECOVERED = "run.recovered"
    RUN_STALLED = "run.stalled"
    STATE_CHANGED = "state.changed"
    STATE_REFUSED = "state.refused"
    STEP_STARTED = "step.started"
    STEP_ENDED = "step.ended"
    STEP_FAILED = "step.failed"
    RUN_FAILED = "run.failed"
    PHASE_ENDED = "phase.ended"
    PHASE_RETRIED = "phase.retried"
    MODEL_ANSWERED = "model.answered"
    MODEL_TRIMMED = "model.trimmed"
    MODEL_REPAIRED = "model.repaired"
    MODEL_FAILED = "model.failed"
    ROUTINE_FOLLOWED = "routine.followed"
    ROUTINE_MISSED = "routine.missed"
    COMMAND_ENDED = "command.ended"
    TOOL_PROGRESS = "tool.progress"
    COMMAND_LATE = "command.late"
    COMMAND_IN_DOUBT = "command.in_doubt"
    POLICY_DECIDED = "policy.decided"
    SECRET_REFUSED = "secret.refused"  # noqa: S105 - a name
    POLICY_UNMATCHED = "policy.unmatched"
    PROVIDER_UNUSED = "provider.unused"
    SERVER_LEFT_OUT = "server.left_out"
    MACHINE_AWAY = "machine.away"
    MACHINE_BACK = "machine.back"
    MACHINE_CHOSEN = "machine.chosen"
    SERVER_SAID = "server.said"
    TOOL_UNMATCHED = "tool.unmatched"
    LIST_CUT = "list.cut"
    LOOP_NOTICED = "loop.noticed"
    CHECK_PASSED = "check.passed"
    CHECK_FAILED = "check.failed"
    JUDGE_ANSWERED = "judge.answered"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_ANSWERED = "approval.answered"
    APPROVAL_ELSEWHERE = "approval.elsewhere"
    QUESTION_ASKED = "question.asked"
    QUESTION_ANSWERED = "question.answered"
    QUESTION_DECLINED = "question.declined"
    MESSAGE_STALE = "message.stale"
    TARGET_ABANDONED = "target.abandoned"
    TARGET_FREED = "target.freed"
    JOURNAL_FAILED = "journal.failed"
    CLOCK_BEHIND = "clock.behind"
    SKILL_LOADED = "skill.loaded"
    THREAD_BLOCKED = "thread.blocked"
    THREAD_FREED = "thread.freed"
    BLACKBOARD_REBUILT = "blackboard.rebuilt"
    EVENTS_MISSED = "events.missed"


class Event(Message):
    """A fact about a task or the supervisor.

    Events are in the order of ``seq``. Those that are read have the classes of `callboard.events`. Only an event of
    another version whose data does not fit its class is a plain `Event`.
    """

    kind: Literal["event"] = "event"
    seq: int = Field(ge=0)
    """Counts up within one supervisor; a subscriber can resume after it."""
    at: Timestamp
    name: EventName
    task_id: str = ""
    run_id: RunId | Literal[""] = ""
    agent: str = ""
    """The agent's address."""
    state: str = ""
    step: int | None = None
    phase: str = ""
    duration: Seconds | None = None
    data: dict[str, JsonValue] = Field(default_factory=dict)
    """Further facts. In the event's class, its keys are fields."""

    @property
    def number(self) -> int:
        """The number of its subtask, from 1; 0 without one."""
        return number_of(self.run_id)
