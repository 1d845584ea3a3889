"""Fill in a task that names a routine.

It gets the routine's request, target and checks, with the values of this run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.messages import Check, Routine, RoutineError, did_you_mean, keys_of, plain_problems
from callboard.models import resolve
from callboard.routines._reference_check import check_references
from callboard.routines._routine_file import load_routine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.messages import RoutineParameter, Task


def with_routine(task: Task, path_of: Callable[[str], Path]) -> Task:
    """Return a task with the parts that its routine gives it.

    Args:
        task: The task. Without a routine it is returned as it is.
        path_of: Gives the path of a file that a task names.

    Raises:
        RoutineError: If the file is no routine, a parameter is missing, unknown or of another type, the task has
            another target, or a check is invalid with these values.
    """
    if task.routine is None:
        return task
    file = task.routine_file
    if isinstance(task.routine, Routine):
        routine = task.routine
        for problem in check_references(routine):
            msg = f"the routine {routine.routine}: {problem}"
            raise RoutineError(msg)
    else:
        path = path_of(task.routine)
        routine, file = load_routine(path), str(path.absolute())
    values = _values(routine, task.parameters)
    target = task.target
    if not routine.host:
        target = str(resolve(routine.subtasks[0].target, values))
    if task.target not in {None, target}:
        msg = f"the routine {routine.routine} works on {target or 'targets of its own'}: leave out `target`"
        raise RoutineError(msg)
    checks = _checks(routine, values)
    return task.model_copy(
        update={
            "routine": routine,
            "routine_file": file,
            "request": task.request or str(resolve(routine.request, values)),
            "target": target,
            "checks": (*checks, *(check for check in task.checks if check not in checks)),
        }
    )


def _values(routine: Routine, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    problems = list(_problems(routine.parameters, given))
    if problems:
        known = ", ".join(routine.parameters) or "none"
        msg = f"the routine {routine.routine}: {'; '.join(problems)}. Its parameters are: {known}"
        raise RoutineError(msg)
    values = routine.values(given)
    for name in values:
        try:
            resolve(f"${{{name}}}", values)
        except LookupError:
            msg = (
                f"the routine {routine.routine}: the parameter {name!r} names a secret: write it into the argument "
                "that gets it"
            )
            raise RoutineError(msg) from None
    return values


def _problems(parameters: Mapping[str, RoutineParameter], given: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, value in given.items():
        if name not in parameters:
            yield f"it has no parameter {name!r}{did_you_mean(name, parameters)}"
            continue
        usual = parameters[name].value
        wants_text = parameters[name].document or isinstance(usual, str)
        if wants_text and not isinstance(value, str):
            yield f"the parameter {name!r} is a text: put {value!r} into quotes"
        elif usual is not None and not wants_text and not _is_like(value, usual):
            yield f"the parameter {name!r} is to be like {usual!r}, not {value!r}"
    missing = [name for name, parameter in parameters.items() if parameter.value is None and name not in given]
    yield from (f"the parameter {name!r} has no value: give one" for name in missing)


def _is_like(value: JsonValue, usual: JsonValue) -> bool:
    """Return whether a value has the type of the usual one.

    Whole numbers and others are one type.
    """
    numbers = {int, float}
    return type(value) is type(usual) or {type(value), type(usual)} == numbers


def _checks(routine: Routine, values: Mapping[str, JsonValue]) -> tuple[Check, ...]:
    checks: list[Check] = []
    for number, check in enumerate(routine.checks, 1):
        try:
            checks.append(Check.model_validate(resolve(check, values)))
        except LookupError as error:
            msg = f"the routine {routine.routine}: checks.{number}: {error.args[0]}"
            raise RoutineError(msg) from None
        except ValidationError as error:
            problems = [{**problem, "loc": ("checks", number, *problem["loc"])} for problem in error.errors()]
            lines = plain_problems(problems, keys_of(Check))
            raise RoutineError("\n".join(f"the routine {routine.routine}: {line}" for line in lines)) from None
    return tuple(checks)
