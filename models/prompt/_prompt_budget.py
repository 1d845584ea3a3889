"""Cut the history and the lists of a prompt to its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from callboard.messages import ResultStatus, is_of_task, people_notes
from callboard.models._references import is_plain
from callboard.models.prompt._fence import cut, shortened, written

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from pydantic import JsonValue

    from callboard.messages import Action, CommandResult, StepRecord, SubtaskResult
    from callboard.models._model import ModelRequest


_T = TypeVar("_T")
_LEAST = 200
"""Minimum number of characters for an entry in full."""


class PromptHistory(NamedTuple):
    """The lines of a history, in chronological order."""

    lines: tuple[str, ...]
    summarised: int = 0
    """Number of steps or subtasks cut to one line."""
    dropped: int = 0
    """Number of the oldest ones left out."""

    @property
    def characters(self) -> int:
        """The total length of the lines."""
        return sum(map(len, self.lines))


def steps(request: ModelRequest, characters: int) -> PromptHistory:
    """Format an agent's steps in at most `characters`.

    The last one is always included, at least in part. Steps are numbered through the whole memory, across subtasks, as
    in references.
    """

    def in_full(step: tuple[int, StepRecord], room: int) -> str:
        return _in_full(*step, room // 2, request.task_id)

    return _within(characters, list(enumerate(request.memory, 1)), in_full, lambda step: _in_a_line(*step))


def subtasks(request: ModelRequest, characters: int, named: Container[str] = ()) -> PromptHistory:
    """Format subtasks in at most `characters`.

    The last one is always included, at least in part. Values with one of the references `named` are replaced by the
    reference.
    """

    def in_a_line(result: SubtaskResult) -> str:
        request_text = cut(written(result.request), 80)
        return f"- subtask {result.number} ({result.address}): {request_text} → {_ended(result, request.task_id)}"

    def in_full(result: SubtaskResult, room: int) -> str:
        return _subtask(result, room // 2, named, request.task_id)

    return _within(characters, request.subtasks, in_full, in_a_line)


def bounded(lines: list[str], room: int) -> Iterator[str]:
    """Yield the first lines that fit, and the number of the others.

    The first one is always included.
    """
    for index, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0 and index:
            yield f"({len(lines) - index} more are not shown)"
            return
        yield line


def _within(
    characters: int, things: Sequence[_T], full: Callable[[_T, int], str], line: Callable[[_T], str]
) -> PromptHistory:
    """Format new entries in full, and older ones in a line.

    The oldest are dropped.
    """
    lines: list[str] = []
    room, short = characters, 0
    for age, thing in enumerate(reversed(things)):
        text = full(thing, max(_LEAST, room))
        if short or (age and len(text) > room):
            short += 1
            text = line(thing)
            if len(text) > room:
                short -= 1
                break
        text = text if age else cut(text, max(2 * _LEAST, room))
        lines.append(text)
        room -= len(text)
    return PromptHistory(tuple(reversed(lines)), short, len(things) - len(lines))


def _ended(result: SubtaskResult, task_id: str) -> str:
    """Name a subtask's outcome.

    The actions of a dry run count as done within it, but not for later tasks of the conversation.
    """
    if not result.would_do:
        return result.outcome.value
    dry = "only planned (dry run)"
    return f"{result.outcome.value}, {dry if is_of_task(result.run_id, task_id) else f'NOT done: {dry}'}"


def _subtask(result: SubtaskResult, most: int, named: Container[str], task_id: str) -> str:
    request_text = cut(written(result.request), 300)
    ended = f"subtask {result.number} ({result.address}): {request_text} → {_ended(result, task_id)}"
    why = f"; {cut(written(result.causes[0].reason), 300)}" if result.causes else ""
    comment = f"; it says {cut(written(result.comment), 300)}" if result.comment else ""
    output = _by_name(result.output, f"subtasks.{result.number}.output", named)
    output_text = f"; it left {shortened(output, most)}" if output is not None else ""
    files = f"; files: {cut(written(list(result.artifacts)), 300)}" if result.artifacts else ""
    return f"- {ended}{why}{comment}{files}{output_text}"


def _by_name(value: JsonValue, path: str, named: Container[str]) -> JsonValue:
    """Replace values by their references."""
    reference = f"${{{path}}}"
    if reference in named:
        return reference
    if not isinstance(value, dict):
        return value
    return {key: _by_name(part, f"{path}.{key}", named) if is_plain(key) else part for key, part in value.items()}


def _in_full(number: int, record: StepRecord, most: int, task_id: str) -> str:
    decision = record.decision
    lines = [f"- step {number}: {cut(' '.join(decision.thought.split()), 300)}".rstrip()]
    lines += [f"    before it, {cut(' '.join(note.split()), 500)}" for note in people_notes(record.observation)]
    if decision.plan:
        lines.append(f"    planned then: {cut('; '.join(' '.join(line.split()) for line in decision.plan), 300)}")
    if record.results:
        share = max(100, most // len(record.results))
        lines += [f"    {_outcome(action, result, share, task_id)}" for action, result in record.calls]
    if record.not_run:
        lines.append(f"    not run: {', '.join(_call(action, 400) for action in record.not_run)}")
    if decision.target is not None:
        lines.append(f"    assigned to {written(decision.target.name)}: {cut(written(decision.subtask), 300)}")
    lines.append(f"    said {decision.status}")
    return "\n".join(lines)


def _in_a_line(number: int, record: StepRecord) -> str:
    done = ", ".join(f"{result.tool} ({result.status.value})" for result in record.results)
    target = record.decision.target
    done = done or (f"assigned to {written(target.name)}" if target is not None else "nothing done")
    notes = "".join(f"; before it, {cut(' '.join(note.split()), 300)}" for note in people_notes(record.observation))
    return f"- step {number}: {cut(done, 200)}; said {record.decision.status}{notes}"


def _call(action: Action, most: int) -> str:
    control = f" on {written(action.control.name or action.control.id)}" if action.control is not None else ""
    hidden = () if action.control is None else ("control_id", "control_name")
    arguments = {name: value for name, value in action.arguments.items() if name not in hidden}
    return f"{action.tool}{control} {cut(written(arguments), most)}"


def _outcome(action: Action | None, result: CommandResult, most: int, task_id: str) -> str:
    call = _call(action, 400) if action is not None else result.tool
    match result.status:
        case ResultStatus.SUCCESS:
            return f"{call} → returned {shortened(result.value, most)}"
        case ResultStatus.FAILURE:
            return f"{call} → FAILED: {cut(written(result.error), most)}"
        case ResultStatus.DRY_RUN:
            counts = "counts as done" if is_of_task(result.call_id, task_id) else "NOT done"
            return f"{call} → {counts}: {cut(written(result.error), 300)}"
        case ResultStatus.SKIPPED:
            return f"{call} → not run: {cut(written(result.error), 300)}"
        case _:
            return f"{call} → nothing to do"
