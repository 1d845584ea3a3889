"""What was done before, as a model is told it within a bound: the newest in full, what is older in a line, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.models._fence import cut, shortened, written
from callboard.messages import ResultStatus

if TYPE_CHECKING:
    from callboard.messages import Action, CommandResult, StepRecord, SubtaskResult


class History(NamedTuple):
    """The lines that tell of an agent's steps."""

    lines: tuple[str, ...]
    summarised: int = 0
    """Steps that got one line."""
    dropped: int = 0
    """Steps that got none."""


def steps(memory: tuple[StepRecord, ...], characters: int) -> History:
    """Tell an agent's steps within so many characters; the last one always, if only in part."""
    told: list[str] = []
    room, short = characters, 0
    for age, record in enumerate(reversed(memory)):
        text = _in_full(record, max(200, room // 2))
        if short or (age and len(text) > room):
            short += 1
            text = _in_a_line(record)
            if len(text) > room:
                short -= 1
                break
        told.append(text)
        room -= len(text)
    return History(tuple(reversed(told)), short, len(memory) - len(told))


def subtasks(done: tuple[SubtaskResult, ...], characters: int) -> tuple[tuple[str, ...], int]:
    """Tell what subtasks left within so many characters, and how many characters that took; the last ones in full."""
    told: list[str] = []
    room = characters
    for result in reversed(done):
        text = _subtask(result, max(120, room * 2 // 3))
        told.append(text)
        room = max(0, room - len(text))
    return tuple(reversed(told)), characters - room


def _subtask(result: SubtaskResult, most: int) -> str:
    ended = f"subtask {result.number} ({result.address}): {cut(written(result.request), 300)} → {result.outcome.value}"
    why = f"; {cut(written(result.causes[0].reason), 300)}" if result.causes else ""
    said = f"; it says {cut(written(result.comment), 300)}" if result.comment else ""
    left = f"; it left {shortened(result.output, most)}" if result.output is not None else ""
    files = f"; files: {cut(written(list(result.artifacts)), 300)}" if result.artifacts else ""
    return f"- {ended}{why}{said}{files}{left}"


def _in_full(record: StepRecord, most: int) -> str:
    decision = record.decision
    lines = [f"- step {record.step}: {cut(' '.join(decision.thought.split()), 300) or 'no thought'}"]
    if decision.plan:
        lines.append(f"    planned then: {cut('; '.join(' '.join(line.split()) for line in decision.plan), 300)}")
    calls = [_call(action, 400) for action in decision.actions]
    if record.results:
        share = max(100, most // len(record.results))
        lines += [f"    {_outcome(result, calls, place, share)}" for place, result in enumerate(record.results)]
    elif calls:
        lines.append(f"    not run: {', '.join(calls)}")
    if decision.target is not None:
        lines.append(f"    assigned to {written(decision.target.name)}: {cut(written(decision.subtask), 300)}")
    lines.append(f"    said {decision.status}")
    return "\n".join(lines)


def _in_a_line(record: StepRecord) -> str:
    done = ", ".join(f"{result.tool} ({result.status.value})" for result in record.results)
    target = record.decision.target
    done = done or (f"assigned to {written(target.name)}" if target is not None else "nothing done")
    return f"- step {record.step}: {cut(done, 200)}; said {record.decision.status}"


def _call(action: Action, most: int) -> str:
    control = f" on {written(action.control.name or action.control.id)}" if action.control is not None else ""
    given = {name: value for name, value in action.arguments.items() if name not in {"control_id", "control_name"}}
    return f"{action.tool}{control} {cut(written(given), most)}"


def _outcome(result: CommandResult, calls: list[str], place: int, most: int) -> str:
    call = calls[place] if place < len(calls) else result.tool
    match result.status:
        case ResultStatus.SUCCESS:
            return f"{call} → returned {shortened(result.value, most)}"
        case ResultStatus.FAILURE:
            return f"{call} → FAILED: {cut(written(result.error), most)}"
        case ResultStatus.SKIPPED:
            return f"{call} → not run: {cut(written(result.error), 300)}"
        case _:
            return f"{call} → nothing to do"
