"""Events: one vocabulary for the event stream, the log and the journal."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, RunId, Seconds, Term, Timestamp


class EventName(Term):
    """The names of all events.

    The docstring of each is its line in the catalogue.
    """

    SUPERVISOR_STARTED = "supervisor.started"
    """The supervisor accepts tasks."""
    SUPERVISOR_STOPPED = "supervisor.stopped"
    """The supervisor is down; ``left`` names the parts that could not be ended."""
    TASK_SUBMITTED = "task.submitted"
    """A task was accepted; ``labels`` are the host program's own."""
    TASK_ENDED = "task.ended"
    """A task is over; ``outcome`` and ``causes`` describe the end. The last event of a task."""
    TASK_CANCELLING = "task.cancelling"
    """A cancel, a deadline or a budget stops a task; ``outcome`` names which."""
    TASK_RECOVERED = "task.recovered"
    """A task that another process began resumes from the journal; `runs` counts its unfinished runs, ``labels`` are the
    host program's own."""
    TASK_PAUSED = "task.paused"
    """A task stops before its next action."""
    TASK_RESUMED = "task.resumed"
    """A paused task resumes."""
    ROUND_STARTED = "round.started"
    """A HostAgent begins a request, or the next step of a plan."""
    ROUND_ENDED = "round.ended"
    """A HostAgent ended a round."""
    SUBTASK_QUEUED = "subtask.queued"
    """A subtask waits for its target, which another one uses; ``ahead`` counts those before it."""
    SUBTASK_ASSIGNED = "subtask.assigned"
    """A subtask went to its agent, with a lease on its target."""
    SUBTASK_ENDED = "subtask.ended"
    """A subtask is over; ``outcome`` describes the end."""
    AGENT_STARTED = "agent.started"
    """An agent's actor was started."""
    AGENT_STOPPED = "agent.stopped"
    """An agent's actor was stopped because its task is over."""
    AGENT_CRASHED = "agent.crashed"
    """An exception escaped an agent's message handler, or one of its jobs hung; ``restart`` is the number of seconds
    until its work resumes from the journal, or states that the work ends as an error."""
    RUN_RECOVERED = "run.recovered"
    """An agent resumes work that a crash interrupted, from the journal."""
    STATE_CHANGED = "state.changed"
    """An agent's machine moved; ``source``, ``target`` and ``by`` (model, user, system, timeout)."""
    STATE_REFUSED = "state.refused"
    """An illegal move was refused; nothing changed."""
    STEP_STARTED = "step.started"
    """An agent begins a step."""
    STEP_ENDED = "step.ended"
    """A step ran; ``thought``, ``comment`` and ``actions`` hold the model's decision, and ``phases`` the duration of
    each phase."""
    STEP_FAILED = "step.failed"
    """A phase failed, and its step with it; ``causes``, and the ``phases`` that ran."""
    RUN_FAILED = "run.failed"
    """An agent's work ended by FAIL or ERROR, its ``state``; ``reason`` has the cause, ``action`` the last attempted
    action, ``controls`` the visible controls, and ``picture`` the file of the last picture."""
    PHASE_ENDED = "phase.ended"
    """One of the four phases of a step ran, with its duration, and its ``error`` if it failed. It comes with the end of
    its step, is derived from that event, and has no ``seq`` of its own but the one before that event's. A phase whose
    step did not end, or that belongs to no step, has an event of its own."""
    PHASE_RETRIED = "phase.retried"
    """A phase failed and is tried again; ``error``."""
    MODEL_ANSWERED = "model.answered"
    """A model gave a valid answer; ``model`` was asked, and ``answered_by`` answered, where that is another one.
    Without a duration, the answer dates from before a crash."""
    MODEL_TRIMMED = "model.trimmed"
    """The history is too long for a prompt: `summarised` steps and subtasks were reduced to one line each, `dropped`
    ones were left out."""
    MODEL_REPAIRED = "model.repaired"
    """A model's answer was invalid and went back with the reason."""
    MODEL_FAILED = "model.failed"
    """A model gave no answer; ``error``, and the usage of the failed calls, if it is known."""
    COMMAND_ENDED = "command.ended"
    """A tool call ended; ``status``, and ``error`` where it failed."""
    TOOL_PROGRESS = "tool.progress"
    """A tool reports the progress of its call: ``text``, and ``share`` from 0 to 1 where that is known."""
    COMMAND_LATE = "command.late"
    """A tool call returned after its task was stopped or its time was over; its result is dropped."""
    COMMAND_IN_DOUBT = "command.in_doubt"
    """A crash came between an action's intent and its outcome; ``probe`` is the finding of a look, or of a person."""
    POLICY_DECIDED = "policy.decided"
    """A rule gave its verdict on an action."""
    SECRET_REFUSED = "secret.refused"  # noqa: S105 - a name
    """A model's answer named a `secret` where it was not granted; its action was not run."""
    POLICY_UNMATCHED = "policy.unmatched"
    """A rule of the operator's can't match anything, because of a mistyped name for instance; `rule` is its number,
    `reason` names the mismatch."""
    SERVER_LEFT_OUT = "server.left_out"
    """An optional MCP server could not be started, and its tools are missing; `server` names it, `reason` has the
    cause."""
    SERVER_SAID = "server.said"
    """The program of an MCP `server` wrote a line to its standard error, `text`; `dropped` counts the lines before it
    that exceeded the limit."""
    TOOL_UNMATCHED = "tool.unmatched"
    """The settings of an MCP `server` name a tool that it does not have; `reason` has the name, and the nearest
    existing one."""
    LIST_CUT = "list.cut"
    """The thing that an action was meant for has changed; the action and the later ones of its list are skipped."""
    LOOP_NOTICED = "loop.noticed"
    """The agent repeats the same actions on the same surface; ``count`` is the number of repetitions."""
    APPROVAL_REQUESTED = "approval.requested"
    """An agent waits for a person's approval; ``picture`` is the file that shows the action, if there is one."""
    APPROVAL_ANSWERED = "approval.answered"
    """An approval was given or refused, its deadline passed, or it was withdrawn with its work."""
    QUESTION_ASKED = "question.asked"
    """An agent waits for a person's answer; ``picture`` is the file that shows the action, if there is one."""
    QUESTION_ANSWERED = "question.answered"
    """A question was answered, its deadline passed, or it was withdrawn with its work."""
    QUESTION_DECLINED = "question.declined"
    """An MCP `server` wanted to ask a person something while it ran the call of `tool`, and got no answer; `reason` has
    the cause."""
    MESSAGE_STALE = "message.stale"
    """A message came too late and was dropped."""
    TARGET_ABANDONED = "target.abandoned"
    """A tool call on a target can't be stopped; the target is not leased until the call returns."""
    TARGET_FREED = "target.freed"
    """The call on an abandoned target returned."""
    JOURNAL_FAILED = "journal.failed"
    """The journal can't be written: no more tasks are accepted, and agents stop before their next action."""
    THREAD_BLOCKED = "thread.blocked"
    """A thread that must not block is held up: the event loop's, where agents decide, the root's, the journal's;
    `thread` names it, `stack` is the place where it hangs, `seconds` the time so far."""
    THREAD_FREED = "thread.freed"
    """The blocked thread runs again."""
    BLACKBOARD_REBUILT = "blackboard.rebuilt"
    """The blackboard's actor died, and was rebuilt from the journal."""
    EVENTS_MISSED = "events.missed"
    """A slow subscriber lost ``count`` events."""


class Event(Message):
    """A fact about a task or the supervisor.

    Events are in the order of ``seq``.
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
    """Further facts; the catalogue lists the keys."""
