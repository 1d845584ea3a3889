"""Remarks for the person who saves a recording."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.routines._origins import parts
from callboard.routines._reference_check import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from callboard.messages import Routine, RoutineStep
    from callboard.routines._journaled_task import JournaledTask

_RANGE = re.compile(r"\$?[A-Z]{1,3}\$?\d+:\$?[A-Z]{1,3}\$?\d+")
_ROW = re.compile(r"((?:steps\.\d+\.results\.\d+\.value|subtasks\.\d+\.output).*?)\.(\d+)(?:\.|$)")
_SHORTEST = 4
"""The fewest characters of data that a text may quote."""
_MOST = 20
"""The number of remarks of one kind."""


def remarks_on(routine: Routine, task: JournaledTask, unseen: list[str]) -> Iterator[str]:
    """Yield remarks on the parts that may not fit other data."""
    if not routine.recorded.verified:
        yield (
            f"the task {task.task.id} was not verified: it has no checks that held, so that nothing shows whether the "
            "routine does the right thing; add `checks`"
        )
    for run in task.left_out:
        changed = run.result is not None and run.result.actions
        effect = "; it changed something, which the routine will not do" if changed else ""
        yield f"subtask {run.assign.number} ({run.assign.request!r}) did not finish and is left out{effect}"
    for run in task.runs:
        if run.failed_actions:
            count = "1 failed action" if run.failed_actions == 1 else f"{run.failed_actions} failed actions"
            yield f"{run.assign.address}: {count} left out"
    for place in unseen[:_MOST]:
        yield f"{place} acts on a control that it had not seen: its id stays as it is"
    for place, _, step in routine.placed_steps():
        yield from _of_step(place, step)
    yield from list(_quotes(routine, task))[:_MOST]
    yield from _of_task(task)


def _of_step(place: str, step: RoutineStep) -> Iterator[str]:
    fixed = [
        (tail, value)
        for tail, value in parts("", step.result)
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    for tail, number in fixed[:1]:
        more = f", and so are {len(fixed) - 1} more numbers of it" if len(fixed) > 1 else ""
        yield f"{place}.result{tail} is always {number}{more}: if it counts rows, refer to a result instead"
    rows: dict[str, set[str]] = {}
    for number, action in enumerate(step.actions):
        for tail, value in parts("", action.arguments):
            if isinstance(value, str) and _RANGE.search(value) and not REFERENCE.search(value):
                argument = f"{place}.actions.{number}.arguments{tail}"
                yield f"{argument} has the fixed cells {value!r}, however many rows there are"
            for path, row in _rows_in(value):
                rows.setdefault(path, set()).add(row)
    for path, numbers in rows.items():
        if len(numbers) > 1:
            yield f"{place} names {len(numbers)} items of {path} one by one: further ones are left out"


def _rows_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield each item of a list that a text refers to.

    It is the list and the number.
    """
    for match in REFERENCE.finditer(value) if isinstance(value, str) else ():
        row = _ROW.match(match[1] or "")
        if row is not None:
            yield row[1], row[2]


def _quotes(routine: Routine, task: JournaledTask) -> Iterator[str]:
    """Yield the texts that quote data of this run.

    No reference replaces a value within a longer text.
    """
    texts = dict(_literals(routine))
    own = {*texts.values(), *(str(parameter.value) for parameter in routine.parameters.values())}
    data = sorted({text for text in _data(task) if text not in own}, key=len, reverse=True)
    for place, text in texts.items():
        quoted = next((part for part in data if part != text and _has(text, part)), None)
        if quoted is not None:
            yield f"{place} quotes {quoted!r}, which was read in this run, and stays as it is"


def _literals(routine: Routine) -> Iterator[tuple[str, str]]:
    """Yield the texts in a routine with their places, without references."""
    values: list[tuple[str, JsonValue]] = []
    for place, _, step in routine.placed_steps():
        values += [
            (f"{place}.actions.{number}.arguments", action.arguments) for number, action in enumerate(step.actions)
        ]
        values.append((f"{place}.result", step.result))
    values += [(f"checks.{number}", check) for number, check in enumerate(routine.checks, 1)]
    for place, value in values:
        for tail, part in parts("", value):
            if isinstance(part, str):
                yield f"{place}{tail}", REFERENCE.sub(" ", part)


def _data(task: JournaledTask) -> Iterator[str]:
    """Yield the texts and the larger numbers that agents read."""
    for run in task.subtasks:
        for step in run.steps:
            for _, result in step.calls:
                for _, value in parts("", result.value):
                    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
                        yield from [str(value)] if len(str(value)) >= _SHORTEST else []


def _has(text: str, part: str) -> bool:
    return part in text and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _of_task(task: JournaledTask) -> Iterator[str]:
    fields = ("judge", "output_schema", "may_change", "policy", "budget", "limits", "secrets")
    own = [name for name in fields if getattr(task.task, name)]
    if own:
        yield f"the task's {', '.join(own)} are no part of the routine: give them with each run"
