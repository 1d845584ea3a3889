"""What happened: one vocabulary for the event stream, the log and the journal."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, RunId, Seconds, Term, Timestamp


class EventName(Term):
    """Every event there is. The docstring of each is its line in the catalogue."""

    SUPERVISOR_STARTED = "supervisor.started"
    """The supervisor takes tasks."""
    SUPERVISOR_STOPPED = "supervisor.stopped"
    """The supervisor is down; ``left`` names what could not be ended."""
    TASK_SUBMITTED = "task.submitted"
    """A task was accepted; ``labels`` are the host program's own."""
    TASK_ENDED = "task.ended"
    """A task is over; ``outcome`` and ``causes`` say how. The last event of a task."""
    TASK_CANCELLING = "task.cancelling"
    """A cancel, a deadline or a budget stops a task; ``outcome`` says which."""
    TASK_RECOVERED = "task.recovered"
    """A task that another process began goes on from the journal; `runs` counts what was under way, ``labels`` are the
    host program's own."""
    TASK_PAUSED = "task.paused"
    """A task stops before its next action."""
    TASK_RESUMED = "task.resumed"
    """A paused task goes on."""
    ROUND_STARTED = "round.started"
    """A HostAgent begins a request, or the next step of a plan."""
    ROUND_ENDED = "round.ended"
    """A HostAgent ended a round."""
    SUBTASK_QUEUED = "subtask.queued"
    """A subtask waits for its target, which another one uses; ``ahead`` counts those before it."""
    SUBTASK_ASSIGNED = "subtask.assigned"
    """A subtask went to its agent, with a lease on its target."""
    SUBTASK_ENDED = "subtask.ended"
    """A subtask is over; ``outcome`` says how."""
    AGENT_STARTED = "agent.started"
    """An agent's actor was started."""
    AGENT_STOPPED = "agent.stopped"
    """An agent's actor was stopped because its task is over."""
    AGENT_CRASHED = "agent.crashed"
    """An exception escaped an agent's message handler, or one of its jobs hung; ``restart`` says in how many seconds
    its work goes on from the journal, or that it ends as an error."""
    RUN_RECOVERED = "run.recovered"
    """An agent goes on from the journal with work that a crash broke off."""
    STATE_CHANGED = "state.changed"
    """An agent's machine moved; ``source``, ``target`` and ``by`` (model, user, system, timeout)."""
    STATE_REFUSED = "state.refused"
    """An illegal move was refused; nothing changed."""
    STEP_STARTED = "step.started"
    """An agent begins a step."""
    STEP_ENDED = "step.ended"
    """A step ran; ``thought``, ``comment`` and ``actions`` tell what the model decided, and ``phases`` how long each
    phase took."""
    STEP_FAILED = "step.failed"
    """A phase failed, and its step with it; ``causes``, and the ``phases`` that ran."""
    RUN_FAILED = "run.failed"
    """An agent's work ended by FAIL or ERROR, its ``state``; ``reason`` says why, ``action`` is the last one that it
    tried, ``controls`` what there was to see, and ``picture`` the file of the last picture."""
    PHASE_ENDED = "phase.ended"
    """One of the four phases of a step ran, with its duration, and its ``error`` if it failed. It comes with the end of
    its step, made from what that event tells, and has no ``seq`` of its own but the one before that event's; a phase
    whose step did not end, or that belongs to no step, is told by itself."""
    PHASE_RETRIED = "phase.retried"
    """A phase failed and is tried again; ``error``."""
    MODEL_ANSWERED = "model.answered"
    """A model gave a valid answer; ``model`` was asked, and ``answered_by`` answered, where that is another one. No
    duration: the answer is one of before a crash."""
    MODEL_TRIMMED = "model.trimmed"
    """What was done before is too long for a prompt: of `summarised` steps and subtasks the model was told one line, of
    `dropped` ones nothing."""
    MODEL_REPAIRED = "model.repaired"
    """A model's answer was invalid and went back with the reason."""
    MODEL_FAILED = "model.failed"
    """A model gave no answer; ``error``, and what it took all the same, if that is known."""
    COMMAND_ENDED = "command.ended"
    """A tool call ended; ``status``, and ``error`` where it failed."""
    TOOL_PROGRESS = "tool.progress"
    """A tool tells how far its call is: ``text``, and ``share`` from 0 to 1 where that is known."""
    COMMAND_LATE = "command.late"
    """A tool call returned after its task was stopped or its time was over; what it says is dropped."""
    COMMAND_IN_DOUBT = "command.in_doubt"
    """A crash came between an action's intent and its outcome; ``probe`` is what a look, or a person, says of it."""
    POLICY_DECIDED = "policy.decided"
    """A rule gave its verdict on an action."""
    SECRET_REFUSED = "secret.refused"  # noqa: S105 - a name
    """A model's answer named a `secret` where it was not granted; its action was not run."""
    POLICY_UNMATCHED = "policy.unmatched"
    """A rule of the operator's can match nothing that there is, by a mistyped name for instance; `rule` is its number,
    `reason` says which name."""
    SERVER_LEFT_OUT = "server.left_out"
    """An optional MCP server could not be started, and its tools are missing; `server` names it, `reason` says why."""
    SERVER_SAID = "server.said"
    """The program of an MCP `server` wrote a line to its standard error, `text`; `dropped` lines before it were too
    many to be told."""
    TOOL_UNMATCHED = "tool.unmatched"
    """The settings of an MCP `server` name a tool that it does not have; `reason` says which, and the nearest name."""
    LIST_CUT = "list.cut"
    """What an action was meant for is no longer the same; it and the later ones of its list are skipped."""
    LOOP_NOTICED = "loop.noticed"
    """The same actions on the same surface again; ``count`` says how often."""
    APPROVAL_REQUESTED = "approval.requested"
    """An agent waits for a person's approval; ``picture`` is the file that shows what is meant, if there is one."""
    APPROVAL_ANSWERED = "approval.answered"
    """An approval was given or refused, its deadline passed, or it was withdrawn with its work."""
    QUESTION_ASKED = "question.asked"
    """An agent waits for a person's answer; ``picture`` is the file that shows what is meant, if there is one."""
    QUESTION_ANSWERED = "question.answered"
    """A question was answered, its deadline passed, or it was withdrawn with its work."""
    QUESTION_DECLINED = "question.declined"
    """An MCP `server` wanted to ask a person something while it ran the call of `tool`, and got no answer; `reason`
    says why."""
    MESSAGE_STALE = "message.stale"
    """A message came too late and was dropped."""
    TARGET_ABANDONED = "target.abandoned"
    """A tool call on a target can't be stopped; nobody gets the target until it returns."""
    TARGET_FREED = "target.freed"
    """The call on an abandoned target returned."""
    JOURNAL_FAILED = "journal.failed"
    """The journal can't be written: no more tasks are taken, and agents stop before their next action."""
    THREAD_BLOCKED = "thread.blocked"
    """A thread on which nothing may block is held up: the event loop's, where agents decide, the switchboard's, the
    journal's; `thread` names it, `stack` says where it hangs, `seconds` for how long by now."""
    THREAD_FREED = "thread.freed"
    """It goes on."""
    BLACKBOARD_REBUILT = "blackboard.rebuilt"
    """The blackboard's actor died, and was made anew from the journal."""
    EVENTS_MISSED = "events.missed"
    """A slow subscriber lost ``count`` events."""


class Event(Message):
    """Something that happened, in the order of ``seq``."""

    kind: Literal["event"] = "event"
    seq: int = Field(ge=0)
    """Counts up within one supervisor; a subscriber can go on after it."""
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
    """What else there is to know; the keys are in the catalogue."""
