"""The history of one task, for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.journal import JournalReader
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
    paired,
)
from callboard.terminal._board import probe_words
from callboard.terminal._check_words import described
from callboard.terminal._commands import fail
from callboard.terminal._journals import (
    ending,
    find_task,
    holder_text,
    journal_at,
    moment,
    print_json,
    resume_hint,
)
from callboard.terminal._people import asked
from callboard.terminal._results import print_head, print_result
from callboard.terminal._task_history import history_of
from callboard.terminal._text import BAD, GOOD, agent_label, numbered, plain, wrapped
from callboard.terminal._timeline import print_chart
from callboard.terminal._undo_commands import undo_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from callboard.actors.states import Unfinished
    from callboard.messages import Action, Cause, CheckResult, CommandResult, Message, PlannedSubtask, StepRecord
    from callboard.terminal._task_history import Reply, TaskHistory


_SHOWN = 300
"""The longest part of a value that is shown, in characters; `--json` has all of them."""

_INDENT, _NARROWEST = 12, 20
_STYLES = {
    ResultStatus.SUCCESS: GOOD,
    ResultStatus.FAILURE: BAD,
    ResultStatus.SKIPPED: "yellow",
    ResultStatus.NONE: "dim",
    ResultStatus.DRY_RUN: "yellow",
}

_PHASES = {
    Phase.DATA_COLLECTION: "observing",
    Phase.LLM_INTERACTION: "asking the model",
    Phase.ACTION_EXECUTION: "acting",
    Phase.MEMORY_UPDATE: "recording the results",
}

Line = tuple[str, str]
"""A line and its style."""


def show_task(console: Console, task_id: str, path: Path | None, *, as_json: bool) -> None:
    """Print the history of a task.

    The task is found by the beginning of its id.
    """
    journal = journal_at(path)
    with JournalReader.open(journal) as reader:
        full_id = find_task(reader, task_id)
        history, held = history_of(reader.rows(full_id)), holder_text(reader)
    if history is None:
        fail(f"the journal {journal} has no history of {full_id}")
    if as_json:
        print_json(history.as_json())
    else:
        _print_history(console, history, held, path, journal)


def _print_history(console: Console, history: TaskHistory, held: str, path: Path | None, journal: Path) -> None:
    task, result = history.task, history.result
    console.print(Text(plain(task.id), style="cyan"))
    print_head(console, task, None, "")
    console.print(Text(f"submitted {moment(history.submitted):%Y-%m-%d %H:%M:%S}", style="dim"))
    if history.ended is not None:
        console.print(Text(f"ended     {moment(history.ended):%Y-%m-%d %H:%M:%S}", style="dim"))
    console.print()
    day = moment(history.submitted).date()
    has_host = any(not assign.number for assign in history.assigned)
    for entry in history.entries:
        at = moment(entry.at)
        if at.date() != day:
            day = at.date()
            console.print(Text(f"{day:%Y-%m-%d}", style="dim"))
        head, *lines = _lines(entry.message)
        number = number_of(entry.run_id) if has_host else 0
        title = Text(f"{number} " if number else "", style="cyan").append(agent_label(entry.agent) or "the task")
        title.append(f"  {plain(head[0])}", style=head[1] or "default")
        _print_beside(console, f"{at:%H:%M:%S}.{at.microsecond // 100_000}  ", title)
        for line in (*lines, *_replied(entry.message, entry.reply)):
            _print_below(console, line)
    for run_id, unfinished in history.broken_off.items():
        _print_broken_off(console, history.agents.get(run_id, run_id), unfinished)
    for assigned, group in history.groups:
        console.print()
        print_chart(console, history, assigned, group.assigns)
    console.print()
    if result is not None:
        print_result(console, result, undo_command(task, result, path or journal))
        return
    for ask in history.waiting:
        console.print(Text(f"{agent_label(ask.address)} waits for a person", style="yellow"))
    state = held or plain(f"no process works on it; resume it with: {resume_hint(path, journal)}")
    console.print(ending(None).append(f": {state}", style="default"), soft_wrap=True)


def _print_below(console: Console, line: Line) -> None:
    text = plain(line[0])
    stripped = text.lstrip(" ")
    _print_beside(console, " " * (_INDENT + len(text) - len(stripped)), Text(stripped, style=line[1]))


def _print_beside(console: Console, margin: str, text: Text) -> None:
    """Print a text of any number of lines beside a margin."""
    for number, line in enumerate(wrapped(text, max(_NARROWEST, console.width - len(margin)))):
        line.rstrip()
        console.print(Text(margin if number == 0 else " " * len(margin), style="dim").append_text(line), soft_wrap=True)


def _lines(message: Message) -> Iterator[Line]:  # noqa: C901, PLR0912 - one match, a case a message
    match message:
        case Assign(number=0):
            yield f"begins round {message.round}", ""
        case Assign():
            yield f"is assigned subtask {message.number}: {message.request}", ""
        case StepDone(record=record):
            yield f"step {record.step}, {_moved(record)}", ""
            yield from _decided(record)
        case StepFailure():
            where = f" while {_PHASES[message.phase]}" if message.phase is not None else ""
            yield f"a step failed{where}: {message.outcome.value.replace('_', ' ')}", BAD
            yield from _causes(message.causes)
            yield from (line for result in message.results for line in _result(None, result))
        case SubtaskEnding(result=result):
            there = f" on {result.machine}, {numbered(result.usage.steps, 'step')}" if result.machine else ""
            yield f"ends subtask {result.number}: {result.outcome.value}{there}", GOOD if not result.causes else BAD
            yield from _causes(result.causes)
        case RoundEnding():
            yield f"ends its round: {message.outcome.value}", GOOD if not message.causes else BAD
            yield from _causes(message.causes)
        case Question():
            doubt = " (an action is in doubt)" if message.in_doubt else ""
            yield f"asks a person{doubt}", "yellow"
            yield asked(message), ""
        case ApprovalRequest():
            yield f"asks for approval: {message.reason}", "yellow"
            yield from ((_call(action), "") for action in message.actions)
        case Cancel():
            subtask = number_of(message.run_id)
            yield f"{f'subtask {subtask} ' if subtask else ''}is stopped: {message.reason}", BAD
        case Pause(lacks=lacks):
            yield f"is paused: {lacks}" if lacks else "is paused", ""
        case Resume():
            yield "goes on", ""
        case Note(author=author, text=text):
            yield f"{author} notes: {_short(text)}", ""
        case Recovered():
            yield "resumed in another process", "yellow"
        case Event(name=EventName.COMMAND_IN_DOUBT, data=data):
            yield f"{data['tool']} may have been done before a crash: {probe_words(str(data['probe']))}", "yellow"
        case Event(name=EventName.POLICY_DECIDED, data=data):
            yield f"{data['tool']} is allowed: {data['reason']}", ""
        case Event():
            yield "resumed from the journal", "yellow"
        case _:
            yield type(message).__name__, ""


def _moved(record: StepRecord) -> str:
    decision = record.decision
    moved = record.status if record.status == decision.status else f"{record.status} → {decision.status}"
    resumed = ", with the held actions" if record.resumed else ""
    return f"{moved} {decision.target.label}{resumed}" if decision.target is not None else f"{moved}{resumed}"


def _decided(record: StepRecord) -> Iterator[Line]:
    decision = record.decision
    if not record.resumed:
        yield from ((text, "italic") for text in (decision.observation, decision.thought) if text)
        yield from [(f"subtask: {decision.subtask}", "")] if decision.subtask else []
        yield from ((_planned(number, planned), "") for number, planned in enumerate(decision.group, 1))
        yield from [(f"says: {decision.comment}", "")] if decision.comment else []
    yield from ((f"note: {note}", "dim") for note in record.observation.notes)
    for action, result in record.calls:
        yield from _result(action, result)
    yield from ((f"{_call(action)}: not run yet", "dim") for action in record.not_run)
    yield from _checked(record.checks)
    for judge_result in record.judged:
        yield f"the judge of {judge_result.told()}", BAD if judge_result.answer == "no" else ""


def _planned(number: int, planned: PlannedSubtask) -> str:
    """Describe one of several subtasks, by its number in the answer."""
    after = [str(other) for other in planned.after] + [f"the end of {other}" for other in planned.after_any]
    order = f", after {', '.join(after)}" if after else ""
    return f"{number}. {planned.target.label}: {planned.request}{order}"


def _checked(checks: tuple[CheckResult, ...]) -> Iterator[Line]:
    for check in checks:
        yield f"check {'holds' if check.held else 'does not hold'}: {described(check)}", GOOD if check.held else BAD


def _result(action: Action | None, result: CommandResult) -> Iterator[Line]:
    called = _call(action) if action is not None else result.tool
    doubt = ", in doubt" if result.in_doubt else ""
    yield f"{called}: {result.status.value}{doubt}", _STYLES[result.status]
    if result.error:
        yield f"  {result.error}", ""
    if result.value is not None:
        yield f"  {_short(result.value)}", "dim"


def _call(action: Action) -> str:
    on = f" on {action.control.name or action.control.id}" if action.control is not None else ""
    return f"{action.tool}{on} {_short(action.arguments)}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def _causes(causes: tuple[Cause, ...]) -> Iterator[Line]:
    return ((f"because {cause.reason}", "") for cause in causes)


def _replied(message: Message, reply: Reply | None) -> Iterator[Line]:
    match reply:
        case Answer(nobody=True):
            yield "no person will answer", "yellow"
        case Answer():
            yield f"answered{_by(reply.by)}: {' / '.join(reply.texts)}", GOOD
        case ApprovalAnswer(approved=True):
            for_good = ", and the same again in this task" if reply.remember else ""
            unattended = " without a person" if reply.unattended else ""
            yield f"approved{_by(reply.by)}{unattended}{for_good}", GOOD
        case ApprovalAnswer():
            yield f"rejected{_by(reply.by)}{f': {reply.reason}' if reply.reason else ''}", BAD
        case RequestExpired():
            yield f"no answer in time: {reply.at_deadline.value}", BAD
        case None if isinstance(message, Question | ApprovalRequest):
            yield "not answered", "yellow"


def _by(who: str) -> str:
    return f" by {who}" if who else ""


def _print_broken_off(console: Console, agent: str, unfinished: Unfinished) -> None:
    decided = unfinished.decided
    if decided is None:
        return
    title = Text(agent_label(agent), style="cyan")
    _print_beside(console, " " * _INDENT, title.append(f"  step {decided.step}, in progress", style="yellow"))
    lines = [line for action, result in paired(decided.actions, unfinished.results) for line in _result(action, result)]
    for number, action in enumerate(decided.after(unfinished.results)):
        running = number == 0 and unfinished.intent is not None
        lines.append(
            (
                f"{_call(action)}: {'started, no outcome yet' if running else 'not run yet'}",
                "yellow" if running else "dim",
            )
        )
    for line in lines:
        _print_below(console, line)
