"""Events of calls: to models, and to tools under the policy."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from callboard.messages._command import CommandType, Coverage, Effect, Hazard, ResultStatus
from callboard.messages._event import EventName
from callboard.messages._step_records import Probe
from callboard.messages._terms import Verdict
from callboard.messages.events._typed_event import Datum, TypedEvent


class ModelAnswered(TypedEvent):
    """A model gave a valid answer.

    Without a `duration`, the answer dates from before a crash.
    """

    name: Literal[EventName.MODEL_ANSWERED] = EventName.MODEL_ANSWERED
    status: Datum[str]
    """The status that it chose."""
    model: Datum[str]
    """The model that was asked."""
    answered_by: Datum[str]
    """The model that answered; empty if it is not known."""
    cost: Datum[float | None]
    """The price of the call; nothing if it is not known."""
    input_tokens: Datum[int]
    """The tokens of the prompt."""
    output_tokens: Datum[int]
    """The tokens of the answer."""


class ModelTrimmed(TypedEvent):
    """The history is too long for a prompt."""

    name: Literal[EventName.MODEL_TRIMMED] = EventName.MODEL_TRIMMED
    summarised: Datum[int]
    """The number of steps and subtasks that were reduced to one line each."""
    dropped: Datum[int]
    """The number of those that were left out."""


class ModelRepaired(TypedEvent):
    """A model's answer was invalid and went back with the reason.

    So may that of a routine, named as the model: it was no call, and has no duration, so that no metric counts it.
    """

    name: Literal[EventName.MODEL_REPAIRED] = EventName.MODEL_REPAIRED
    reason: Datum[str]
    """Why it was invalid."""
    attempt: Datum[int]
    """The number of the answer within its step, from 1."""
    model: Datum[str]
    """The model that was asked."""
    answered_by: Datum[str]
    """The model that answered; empty if it is not known."""
    cost: Datum[float | None]
    """The price of the call; nothing if it is not known."""
    input_tokens: Datum[int]
    """The tokens of the prompt."""
    output_tokens: Datum[int]
    """The tokens of the answer."""


class ModelFailed(TypedEvent):
    """A model gave no answer."""

    name: Literal[EventName.MODEL_FAILED] = EventName.MODEL_FAILED
    error: Datum[str]
    """Why."""
    model: Datum[str]
    """The model that was asked."""
    cost: Datum[float | None] = None
    """The price of the failed calls; nothing if it is not known."""
    input_tokens: Datum[int | None] = None
    """The tokens of their prompts; nothing if they are not known."""
    output_tokens: Datum[int | None] = None
    """The tokens of their answers; nothing if they are not known."""


class RoutineFollowed(TypedEvent):
    """A routine gave an answer in place of a model."""

    name: Literal[EventName.ROUTINE_FOLLOWED] = EventName.ROUTINE_FOLLOWED
    routine: Datum[str]
    """The routine's name."""
    place: Datum[int]
    """The place of the step among those of this agent, from 1, with each repetition of a loop counted; 0 if it gives
    up."""
    status: Datum[str]
    """The status of the answer."""


class RoutineMissed(TypedEvent):
    """The guard of a routine's step did not hold."""

    name: Literal[EventName.ROUTINE_MISSED] = EventName.ROUTINE_MISSED
    routine: Datum[str]
    """The routine's name."""
    place: Datum[int]
    """The number of the step in the routine's list of this agent's steps, from 1."""
    expected: Datum[str]
    """The recorded fact."""
    found: Datum[str]
    """The present one."""


class CommandEnded(TypedEvent):
    """A tool call ended."""

    name: Literal[EventName.COMMAND_ENDED] = EventName.COMMAND_ENDED
    call: Datum[str]
    """The id of the call."""
    tool: Datum[str]
    """The tool's name."""
    type: Datum[CommandType]
    """The purpose of the call."""
    status: Datum[ResultStatus]
    """The result."""
    error: Datum[str]
    """Why it failed or was skipped."""
    artifacts: Datum[tuple[str, ...]]
    """Files that it wrote."""


class ToolProgress(TypedEvent):
    """A tool reports the progress of its call."""

    name: Literal[EventName.TOOL_PROGRESS] = EventName.TOOL_PROGRESS
    call: Datum[str]
    """The id of the call."""
    tool: Datum[str]
    """The tool's name."""
    text: Datum[str]
    """The tool's words."""
    share: Datum[float | None] = None
    """The share that is done, from 0 to 1; nothing if it is not known."""


class CommandLate(TypedEvent):
    """A tool call returned too late; its result is dropped.

    Its task was stopped, or its time was over.
    """

    name: Literal[EventName.COMMAND_LATE] = EventName.COMMAND_LATE
    tool: Datum[str]
    """The tool's name."""


class CommandInDoubt(TypedEvent):
    """A crash came between an action's intent and its outcome."""

    name: Literal[EventName.COMMAND_IN_DOUBT] = EventName.COMMAND_IN_DOUBT
    tool: Datum[str]
    """The tool's name."""
    call: Datum[str]
    """The id of the call."""
    probe: Datum[Probe]
    """The finding of a look, or of a person."""


class PolicyDecided(TypedEvent):
    """A rule gave its verdict on an action."""

    name: Literal[EventName.POLICY_DECIDED] = EventName.POLICY_DECIDED
    tool: Datum[str]
    """The tool's name."""
    arguments: Datum[str]
    """The arguments as the model gave them, as JSON that may be cut."""
    control: Datum[str]
    """The id of the control that the tool acts on; empty without one."""
    effect: Datum[Effect]
    """The effect of repeating the call."""
    verdict: Datum[Verdict]
    """The verdict of the rules."""
    reason: Datum[str]
    """The rule's reason."""
    hazards: Datum[tuple[Hazard, ...]]
    """The reasons why a person may want to approve the action."""
    canonical: Datum[dict[str, JsonValue]]
    """The arguments that rules match, in canonical form."""
    inexact: Datum[tuple[str, ...]]
    """The names of arguments that the tool may read in unknown ways."""
    resources: Datum[dict[str, dict[str, Coverage]]]
    """The resources that the call touches, each with its coverage by the rules' patterns."""
    waived: Datum[str]
    """Why a required approval is not asked for; empty otherwise."""
    may_change: Datum[tuple[str, ...]]
    """The files that the call overwrites, if its task may change all of them."""
    own_files: Datum[tuple[str, ...]] = ()
    """The files that the call deletes, if its task created all of them and none has changed since."""
    recipient: Datum[str] = ""
    """The recipient of what the call sends, if it needs an approval; empty if it is unknown."""


class SecretRefused(TypedEvent):
    """A model's answer named a secret where it was not granted.

    Its action was not run.
    """

    name: Literal[EventName.SECRET_REFUSED] = EventName.SECRET_REFUSED
    secret: Datum[str]
    """The name of the secret."""
    tool: Datum[str]
    """The tool's name."""
    parameter: Datum[str]
    """The parameter's name."""


class ListCut(TypedEvent):
    """The thing that an action was meant for has changed.

    The action and the later ones of its list are skipped.
    """

    name: Literal[EventName.LIST_CUT] = EventName.LIST_CUT
    ran: Datum[int]
    """The number of actions before it."""
    reason: Datum[str]
    """The change."""
