"""Messages of a task's history in lines for people."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from callboard.history._check_words import described
from callboard.history._phrases import numbered
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    Cancel,
    Event,
    EventName,
    Note,
    Pause,
    Phase,
    Probe,
    Question,
    Recovered,
    RequestExpired,
    ResultStatus,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
    number_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.history._task_history import Reply
    from callboard.messages import Action, Cause, CommandResult, Control, Message, PlannedSubtask, StepRecord


class Tone(StrEnum):
    """The meaning of a line, which a display gives a colour."""

    PLAIN = ""
    GOOD = "good"
    BAD = "bad"
    WAITING = "waiting"
    """It waits for something, or is in doubt."""
    QUIET = "quiet"
    """A detail."""
    SPOKEN = "spoken"
    """Words of a model."""


_SHOWN = 300
"""The longest part of a value that is shown, in characters."""

_PROBES = {
    Probe.DONE: "it was done",
    Probe.NOT_DONE: "it was not done",
    Probe.BEGUN: "it was begun, and is resumed",
    Probe.UNKNOWN: "the surface does not show it",
}

_STYLES = {
    ResultStatus.SUCCESS: Tone.GOOD,
    ResultStatus.FAILURE: Tone.BAD,
    ResultStatus.SKIPPED: Tone.WAITING,
    ResultStatus.NONE: Tone.QUIET,
    ResultStatus.DRY_RUN: Tone.WAITING,
}

_PHASES = {
    Phase.DATA_COLLECTION: "observing",
    Phase.LLM_INTERACTION: "asking the model",
    Phase.ACTION_EXECUTION: "acting",
    Phase.MEMORY_UPDATE: "recording the results",
}

Line = tuple[str, Tone]
"""A line and its tone."""


def lines_of(message: Message) -> Iterator[Line]:  # noqa: C901, PLR0912 - one match, a case a message
    """Yield the lines of a message; the first is its summary."""
    match message:
        case Assign(number=0):
            yield f"begins round {message.round}", Tone.PLAIN
        case Assign():
            yield f"is assigned subtask {message.number}: {message.request}", Tone.PLAIN
        case StepDone(record=record):
            yield f"step {record.step}, {_moved(record)}", Tone.PLAIN
            yield from _decided(record)
        case StepFailure():
            where = f" while {_PHASES[message.phase]}" if message.phase is not None else ""
            yield f"a step failed{where}: {message.outcome.value.replace('_', ' ')}", Tone.BAD
            yield from _causes(message.causes)
            yield from (line for result in message.results for line in lines_of_result(None, result))
        case SubtaskEnding(result=result):
            there = f" on {result.machine}, {numbered(result.usage.steps, 'step')}" if result.machine else ""
            yield (
                f"ends subtask {result.number}: {result.outcome.value}{there}",
                Tone.GOOD if not result.causes else Tone.BAD,
            )
            yield from _causes(result.causes)
        case RoundEnding():
            yield f"ends its round: {message.outcome.value}", Tone.GOOD if not message.causes else Tone.BAD
            yield from _causes(message.causes)
        case Question():
            doubt = " (an action is in doubt)" if message.in_doubt else ""
            yield f"asks a person{doubt}", Tone.WAITING
            yield asked(message), Tone.PLAIN
        case ApprovalRequest():
            yield f"asks for approval: {message.reason}", Tone.WAITING
            yield from ((called(action, control_of(message, action)), Tone.PLAIN) for action in message.actions)
        case Cancel():
            subtask = number_of(message.run_id)
            yield f"{f'subtask {subtask} ' if subtask else ''}is stopped: {message.reason}", Tone.BAD
        case Pause(lacks=lacks):
            yield f"is paused: {lacks}" if lacks else "is paused", Tone.PLAIN
        case Resume():
            yield "goes on", Tone.PLAIN
        case Note(author=author, text=text):
            yield f"{author} notes: {_short(text)}", Tone.PLAIN
        case Recovered():
            yield "resumed in another process", Tone.WAITING
        case Event(name=EventName.COMMAND_IN_DOUBT, data=data):
            yield f"{data['tool']} may have been done before a crash: {probe_words(str(data['probe']))}", Tone.WAITING
        case Event(name=EventName.POLICY_DECIDED, data=data):
            yield f"{data['tool']} is allowed: {data['reason']}", Tone.PLAIN
        case Event():
            yield "resumed from the journal", Tone.WAITING
        case _:
            yield type(message).__name__, Tone.PLAIN


def _moved(record: StepRecord) -> str:
    decision = record.decision
    moved = record.status if record.status == decision.status else f"{record.status} → {decision.status}"
    resumed = ", with the held actions" if record.resumed else ""
    return f"{moved} {decision.target.label}{resumed}" if decision.target is not None else f"{moved}{resumed}"


def _decided(record: StepRecord) -> Iterator[Line]:
    yield from step_words(record)
    for action, result in record.calls:
        yield from lines_of_result(action, result)
    yield from ((f"{called(action)}: not run yet", Tone.QUIET) for action in record.not_run)
    yield from step_checks(record)


def step_words(record: StepRecord) -> Iterator[Line]:
    """Yield the words of a step's model, and the notes to it."""
    decision = record.decision
    if not record.resumed:
        yield from ((text, Tone.SPOKEN) for text in (decision.observation, decision.thought) if text)
        yield from [(f"subtask: {decision.subtask}", Tone.PLAIN)] if decision.subtask else []
        yield from ((_planned(number, planned), Tone.PLAIN) for number, planned in enumerate(decision.group, 1))
        yield from [(f"says: {decision.comment}", Tone.PLAIN)] if decision.comment else []
    yield from ((f"note: {note}", Tone.QUIET) for note in record.observation.notes)


def step_checks(record: StepRecord) -> Iterator[Line]:
    """Yield the results of a step's checks, and the judge's answers."""
    for check in record.checks:
        yield (
            f"check {'holds' if check.held else 'does not hold'}: {described(check)}",
            Tone.GOOD if check.held else Tone.BAD,
        )
    for judge_result in record.judged:
        yield f"the judge of {judge_result.told()}", Tone.BAD if judge_result.answer == "no" else Tone.PLAIN


def _planned(number: int, planned: PlannedSubtask) -> str:
    """Describe one of several subtasks, by its number in the answer."""
    after = [str(other) for other in planned.after] + [f"the end of {other}" for other in planned.after_any]
    order = f", after {', '.join(after)}" if after else ""
    return f"{number}. {planned.target.label}: {planned.request}{order}"


def lines_of_result(action: Action | None, result: CommandResult) -> Iterator[Line]:
    """Yield the lines of a call and its result."""
    call = called(action) if action is not None else result.tool
    doubt = ", in doubt" if result.in_doubt else ""
    yield f"{call}: {result.status.value}{doubt}", _STYLES[result.status]
    if result.error:
        yield f"  {result.error}", Tone.PLAIN
    if result.value is not None:
        yield f"  {_short(result.value)}", Tone.QUIET


def called(action: Action, control: Control | None = None) -> str:
    """Describe a call in one line, with the control that was shown."""
    target = control or action.control
    on = f" on {target.name or target.id}" if target is not None else ""
    return f"{action.tool}{on} {_short(action.arguments)}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def _causes(causes: tuple[Cause, ...]) -> Iterator[Line]:
    return ((f"because {cause.reason}", Tone.PLAIN) for cause in causes)


def lines_of_reply(message: Message, reply: Reply | None) -> Iterator[Line]:
    """Yield the line of the reply to a request."""
    match reply:
        case Answer(nobody=True):
            yield "no person will answer", Tone.WAITING
        case Answer():
            yield f"answered{_by(reply.by)}: {' / '.join(reply.texts)}", Tone.GOOD
        case ApprovalAnswer(approved=True):
            for_good = ", and the same again in this task" if reply.remember else ""
            unattended = " without a person" if reply.unattended else ""
            yield f"approved{_by(reply.by)}{unattended}{for_good}", Tone.GOOD
        case ApprovalAnswer():
            yield f"rejected{_by(reply.by)}{f': {reply.reason}' if reply.reason else ''}", Tone.BAD
        case RequestExpired():
            yield f"no answer in time: {reply.at_deadline.value}", Tone.BAD
        case None if isinstance(message, Question | ApprovalRequest):
            yield "not answered", Tone.WAITING


def _by(who: str) -> str:
    return f" by {who}" if who else ""


def asked(ask: Question) -> str:
    """Describe an agent's request in one line."""
    parts = (part.text + (f" ({' / '.join(part.choices)})" if part.choices else "") for part in ask.questions)
    return "; ".join(parts)


def calls_of(ask: ApprovalRequest) -> list[str]:
    """Describe the actions that are asked about, each with its control."""
    lines = []
    for action in ask.actions:
        call = f"{action.tool} {json.dumps(action.arguments, ensure_ascii=False)}"
        control = control_of(ask, action)
        lines.append(call if control is None else f"{call} on {control.kind} {control.name!r}")
    return lines


def control_of(ask: ApprovalRequest, action: Action) -> Control | None:
    """Return the control of an action, as the person was shown it."""
    control_id = action.control.id if action.control is not None else action.arguments.get("control_id")
    return next((control for control in ask.observation.controls if control.id == control_id), None)


def probe_words(probe: str) -> str:
    """Describe the finding about an action in doubt."""
    return _PROBES.get(Probe(probe), probe)
