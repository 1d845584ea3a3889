"""Messages of a task's history in lines for people."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from callboard.config import term, text
from callboard.history._check_words import checked, judge_words
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
    from callboard.messages import (
        Action,
        Cause,
        CommandResult,
        Control,
        Message,
        PlannedSubtask,
        StepRecord,
        SubtaskResult,
    )


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

_STYLES = {
    ResultStatus.SUCCESS: Tone.GOOD,
    ResultStatus.FAILURE: Tone.BAD,
    ResultStatus.SKIPPED: Tone.WAITING,
    ResultStatus.NONE: Tone.QUIET,
    ResultStatus.DRY_RUN: Tone.WAITING,
}

Line = tuple[str, Tone]
"""A line and its tone."""


def lines_of(message: Message) -> Iterator[Line]:  # noqa: C901, PLR0912 - one match, a case a message
    """Yield the lines of a message; the first is its summary."""
    match message:
        case Assign(number=0):
            yield text("round_begins", number=message.round), Tone.PLAIN
        case Assign():
            yield text("subtask_assigned", number=message.number, request=message.request), Tone.PLAIN
        case StepDone(record=record):
            step = "step_continued" if record.resumed else "step_done"
            yield text(step, step=record.step, move=_moved(record)), Tone.PLAIN
            yield from _decided(record)
        case StepFailure():
            yield _step_failure(message), Tone.BAD
            yield from _causes(message.causes)
            yield from (line for result in message.results for line in lines_of_result(None, result))
        case SubtaskEnding(result=result):
            yield _subtask_ending(result), Tone.GOOD if not result.causes else Tone.BAD
            yield from _causes(result.causes)
        case RoundEnding():
            ending = text("round_ended", outcome=term("outcome", message.outcome))
            yield ending, Tone.GOOD if not message.causes else Tone.BAD
            yield from _causes(message.causes)
        case Question():
            yield text("doubt_asked" if message.in_doubt else "question_asked"), Tone.WAITING
            yield asked(message), Tone.PLAIN
        case ApprovalRequest():
            yield text("approval_asked", reason=message.reason), Tone.WAITING
            yield from ((called(action, control_of(message, action)), Tone.PLAIN) for action in message.actions)
        case Cancel():
            yield _stop(message), Tone.BAD
        case Pause(lacks=lacks):
            yield text("is_paused_for", lacks=lacks) if lacks else text("is_paused"), Tone.PLAIN
        case Resume():
            yield text("goes_on"), Tone.PLAIN
        case Note():
            yield text("noted", author=message.author, text=_short(message.text)), Tone.PLAIN
        case Recovered():
            yield text("resumed_elsewhere"), Tone.WAITING
        case Event(name=EventName.COMMAND_IN_DOUBT, data=data):
            yield text("action_in_doubt", tool=data["tool"], probe=probe_words(str(data["probe"]))), Tone.WAITING
        case Event(name=EventName.ROUTINE_MISSED, data=data):
            yield text("routine_missed", **data), Tone.WAITING
        case Event(name=EventName.POLICY_DECIDED, data=data):
            yield text("action_allowed", tool=data["tool"], reason=data["reason"]), Tone.PLAIN
        case Event():
            yield text("resumed_from_journal"), Tone.WAITING
        case _:
            yield type(message).__name__, Tone.PLAIN


def _step_failure(failure: StepFailure) -> str:
    outcome = term("outcome", failure.outcome)
    if failure.phase is None:
        return text("step_failed", outcome=outcome)
    return text("step_failed_while", phase=term("phase", failure.phase), outcome=outcome)


def _stop(stop: Cancel) -> str:
    number = number_of(stop.run_id)
    if not number:
        return text("task_stopped", reason=stop.reason)
    return text("subtask_stopped", number=number, reason=stop.reason)


def _subtask_ending(result: SubtaskResult) -> str:
    outcome = term("outcome", result.outcome)
    if not result.machine:
        return text("subtask_ended", number=result.number, outcome=outcome)
    steps = text("step_count", count=result.usage.steps)
    return text("subtask_ended_on", number=result.number, outcome=outcome, machine=result.machine, steps=steps)


def _moved(record: StepRecord) -> str:
    decision = record.decision
    moved = record.status if record.status == decision.status else f"{record.status} → {decision.status}"
    return f"{moved} {decision.target.label}" if decision.target is not None else moved


def _decided(record: StepRecord) -> Iterator[Line]:
    yield from step_words(record)
    for action, result in record.calls:
        yield from lines_of_result(action, result)
    yield from ((text("call_not_run", call=called(action)), Tone.QUIET) for action in record.not_run)
    yield from step_checks(record)


def step_words(record: StepRecord) -> Iterator[Line]:
    """Yield the words of a step's model, and the notes to it."""
    decision = record.decision
    if not record.resumed:
        yield from ((words, Tone.SPOKEN) for words in (decision.observation, decision.thought) if words)
        yield from [(text("subtask_of_step", request=decision.subtask), Tone.PLAIN)] if decision.subtask else []
        yield from ((_planned(number, planned), Tone.PLAIN) for number, planned in enumerate(decision.group, 1))
        yield from [(text("said", comment=decision.comment), Tone.PLAIN)] if decision.comment else []
    yield from ((text("note", note=note), Tone.QUIET) for note in record.observation.notes)


def step_checks(record: StepRecord) -> Iterator[Line]:
    """Yield the results of a step's checks, and the judge's answers."""
    for check in record.checks:
        yield checked(check), Tone.GOOD if check.held else Tone.BAD
    for judge_result in record.judged:
        yield judge_words(judge_result), Tone.BAD if judge_result.answer == "no" else Tone.PLAIN


def _planned(number: int, planned: PlannedSubtask) -> str:
    """Describe one of several subtasks, by its number in the answer."""
    after = [*map(str, planned.after), *(text("the_end_of", numbers=other) for other in planned.after_any)]
    subtask = {"number": number, "target": planned.target.label, "request": planned.request}
    return text("planned_after", order=", ".join(after), **subtask) if after else text("planned", **subtask)


def lines_of_result(action: Action | None, result: CommandResult) -> Iterator[Line]:
    """Yield the lines of a call and its result."""
    call = called(action) if action is not None else result.tool
    yield text("call_result", call=call, status=status_words(result)), _STYLES[result.status]
    if result.error:
        yield f"  {result.error}", Tone.PLAIN
    if result.value is not None:
        yield f"  {_short(result.value)}", Tone.QUIET


def status_words(result: CommandResult) -> str:
    """Describe the status of a call."""
    status = term("status", result.status)
    return text("call_in_doubt", status=status) if result.in_doubt else status


def called(action: Action, control: Control | None = None) -> str:
    """Describe a call in one line, with the control that was shown."""
    target = control or action.control
    arguments = _short(action.arguments)
    if target is None:
        return text("call", tool=action.tool, arguments=arguments)
    return text("call_on", tool=action.tool, control=target.name or target.id, arguments=arguments)


def _short(value: object) -> str:
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} …"


def _causes(causes: tuple[Cause, ...]) -> Iterator[Line]:
    return ((text("because", reason=cause.reason), Tone.PLAIN) for cause in causes)


def lines_of_reply(message: Message, reply: Reply | None) -> Iterator[Line]:
    """Yield the line of the reply to a request."""
    match reply:
        case Answer(nobody=True):
            yield text("no_person"), Tone.WAITING
        case Answer():
            yield _by("answered", reply.by, texts=" / ".join(reply.texts)), Tone.GOOD
        case ApprovalAnswer(approved=True):
            approved = _by("approved", reply.by)
            approved = text("approved_unattended", approved=approved) if reply.unattended else approved
            yield text("approved_remembered", approved=approved) if reply.remember else approved, Tone.GOOD
        case ApprovalAnswer():
            rejected = _by("rejected", reply.by)
            yield text("rejected_for", rejected=rejected, reason=reply.reason) if reply.reason else rejected, Tone.BAD
        case RequestExpired():
            yield text("expired", verdict=term("deadline", reply.at_deadline)), Tone.BAD
        case None if isinstance(message, Question | ApprovalRequest):
            yield text("not_answered"), Tone.WAITING


def _by(reply: str, person: str, **values: object) -> str:
    """Describe a reply, with the person who gave it."""
    return text(f"{reply}_by", person=person, **values) if person else text(reply, **values)


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
        on_control = {} if control is None else {"kind": control.kind, "name": control.name}
        lines.append(text("control_of_call", call=call, **on_control) if on_control else call)
    return lines


def control_of(ask: ApprovalRequest, action: Action) -> Control | None:
    """Return the control of an action, as the person was shown it."""
    control_id = action.control.id if action.control is not None else action.arguments.get("control_id")
    return next((control for control in ask.observation.controls if control.id == control_id), None)


def probe_words(probe: str) -> str:
    """Describe the finding about an action in doubt."""
    return term("probe", probe)
