"""Events of agents, their work and their targets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Seconds, Timestamp
from callboard.messages._command import ResultStatus
from callboard.messages._event import EventName
from callboard.messages._outcome import Outcome
from callboard.messages.events._typed_event import Datum, Part, TypedEvent

MovedBy = Literal["model", "user", "system", "timeout"]
"""The origin of a move of a state machine."""


class PhaseTime(Part):
    """One phase of a step."""

    phase: str
    """Its name."""
    at: Timestamp
    """Its end."""
    duration: Seconds
    """Its length."""
    error: str = ""
    """Why it failed."""


class TriedAction(Part):
    """An action that an agent attempted; all empty if there was none."""

    tool: str = ""
    """The tool's name."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """The arguments, as the model gave them."""
    status: ResultStatus | Literal[""] = ""
    """The result."""
    error: str = ""
    """Why it failed or was skipped."""


class AgentStarted(TypedEvent):
    """An agent's actor was started."""

    name: Literal[EventName.AGENT_STARTED] = EventName.AGENT_STARTED


class AgentStopped(TypedEvent):
    """An agent's actor was stopped because its task is over."""

    name: Literal[EventName.AGENT_STOPPED] = EventName.AGENT_STOPPED


class AgentCrashed(TypedEvent):
    """An agent's message handler raised, or one of its jobs hung."""

    name: Literal[EventName.AGENT_CRASHED] = EventName.AGENT_CRASHED
    causes: Datum[tuple[str, ...]]
    """The exception and its causes, the nearest first."""
    restart: Datum[Seconds | None] = None
    """The time until its work resumes from the journal; nothing if the work ends as an error."""


class RunRecovered(TypedEvent):
    """An agent resumes work that a crash interrupted, from the journal."""

    name: Literal[EventName.RUN_RECOVERED] = EventName.RUN_RECOVERED
    steps: Datum[int]
    """The number of steps that are done."""
    broken_off: Datum[bool]
    """Whether a step was interrupted, and resumes where it was."""


class RunStalled(TypedEvent):
    """Nothing would have continued an agent's work: its next message was lost.

    It is restarted from the journal, or ends as an error.
    """

    name: Literal[EventName.RUN_STALLED] = EventName.RUN_STALLED
    reason: Datum[str]
    """The state in which it was."""
    token: Datum[int]
    """The fencing token of its lease; 0 without one."""


class RunFailed(TypedEvent):
    """An agent's work ended by FAIL or ERROR, its `state`."""

    name: Literal[EventName.RUN_FAILED] = EventName.RUN_FAILED
    outcome: Datum[Outcome | Literal[""]]
    """Its outcome."""
    reason: Datum[str]
    """The causes, the nearest first."""
    action: Datum[TriedAction]
    """The last attempted action."""
    controls: Datum[dict[str, str]]
    """The names of the visible controls, by their ids."""
    picture: Datum[str]
    """The file of the last picture; empty without one."""


class StateChanged(TypedEvent):
    """An agent's machine moved."""

    name: Literal[EventName.STATE_CHANGED] = EventName.STATE_CHANGED
    source: Datum[str]
    """The status before; empty at the beginning of a run."""
    target: Datum[str]
    """The status after."""
    by: Datum[MovedBy]
    """The origin of the move."""


class StateRefused(TypedEvent):
    """An illegal move was refused; nothing changed."""

    name: Literal[EventName.STATE_REFUSED] = EventName.STATE_REFUSED
    source: Datum[str]
    """The status, which stays."""
    target: Datum[str]
    """The status that was refused."""
    by: Datum[MovedBy]
    """The origin of the move."""


class StepStarted(TypedEvent):
    """An agent begins a step."""

    name: Literal[EventName.STEP_STARTED] = EventName.STEP_STARTED


class StepEnded(TypedEvent):
    """A step ran."""

    name: Literal[EventName.STEP_ENDED] = EventName.STEP_ENDED
    status: Datum[str]
    """The status that the model chose."""
    thought: Datum[str]
    """The model's reasoning."""
    comment: Datum[str]
    """The model's words to people."""
    actions: Datum[tuple[str, ...]]
    """The tools of the actions that the model decided on."""
    results: Datum[tuple[ResultStatus, ...]]
    """The results of these actions, as far as they came."""
    phases: Datum[tuple[PhaseTime, ...]]
    """The phases that ran."""


class StepFailed(TypedEvent):
    """A phase failed, and its step with it."""

    name: Literal[EventName.STEP_FAILED] = EventName.STEP_FAILED
    causes: Datum[tuple[str, ...]]
    """Why, the nearest cause first."""
    phases: Datum[tuple[PhaseTime, ...]]
    """The phases that ran."""


class PhaseEnded(TypedEvent):
    """One of the four phases of a step ran, in `duration`.

    It comes with the end of its step, is derived from that event, and has no `seq` of its own but the one before that
    event's. A phase whose step did not end, or that belongs to no step, has an event of its own.
    """

    name: Literal[EventName.PHASE_ENDED] = EventName.PHASE_ENDED
    error: Datum[str] = ""
    """Why it failed."""


class PhaseRetried(TypedEvent):
    """A phase failed and is tried again."""

    name: Literal[EventName.PHASE_RETRIED] = EventName.PHASE_RETRIED
    error: Datum[str]
    """Why it failed."""


class LoopNoticed(TypedEvent):
    """The agent repeats the same actions on the same surface."""

    name: Literal[EventName.LOOP_NOTICED] = EventName.LOOP_NOTICED
    count: Datum[int]
    """The number of repetitions."""


class CheckedValue(Part):
    """A check and what it found."""

    name: str
    """Its name."""
    reading: str
    """The reading, in words."""
    expected: JsonValue = None
    """The expectation; a second reading has its value beside it."""
    found: JsonValue = None
    """The value that was read; null if it can't be read."""
    problem: str = ""
    """The reason why it can't be read."""
    source: Literal["task", "model"] = "task"
    """`model` for a proposal of the HostAgent, which never counts."""


class CheckPassed(TypedEvent):
    """A check of a FINISH held."""

    name: Literal[EventName.CHECK_PASSED] = EventName.CHECK_PASSED
    check: Datum[CheckedValue]
    """The check."""


class CheckFailed(TypedEvent):
    """A check did not hold, so that the FINISH does not hold."""

    name: Literal[EventName.CHECK_FAILED] = EventName.CHECK_FAILED
    check: Datum[CheckedValue]
    """The check."""


class JudgedQuestion(Part):
    """A judge's answer to one question."""

    question: str
    """The question."""
    answer: Literal["yes", "no", "unsure"]
    """The answer; a no refuses the FINISH."""
    reason: str = ""
    """The reason, in the judge's words."""
    problem: str = ""
    """The reason why there is no valid answer."""


class JudgeAnswered(TypedEvent):
    """The judge of a task answered, or gave no valid answer."""

    name: Literal[EventName.JUDGE_ANSWERED] = EventName.JUDGE_ANSWERED
    answers: Datum[tuple[JudgedQuestion, ...]]
    """The answers, in the order of the questions."""
    model: Datum[str]
    """The judge's model; empty if there is none."""
    calls: Datum[int]
    """The number of its calls that gave an answer, valid or not."""
    cost: Datum[float | None]
    """The cost of its calls; null if unknown."""
    input_tokens: Datum[int]
    """The tokens that it was given."""
    output_tokens: Datum[int]
    """The tokens that it wrote."""


class MessageStale(TypedEvent):
    """A message came too late and was dropped."""

    name: Literal[EventName.MESSAGE_STALE] = EventName.MESSAGE_STALE
    message: Datum[str]
    """The class of the message."""


class TargetAbandoned(TypedEvent):
    """A tool call on a target can't be stopped.

    The target is not leased until the call returns.
    """

    name: Literal[EventName.TARGET_ABANDONED] = EventName.TARGET_ABANDONED
    stack: Datum[str]
    """The place where the call hangs; empty if it is not known."""


class TargetFreed(TypedEvent):
    """The call on an abandoned target returned."""

    name: Literal[EventName.TARGET_FREED] = EventName.TARGET_FREED
