"""The terms under which this machine does the work of other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import TaskLimits

if TYPE_CHECKING:
    from callboard.config import Settings
    from callboard.messages import Task

REFUSED = ("secrets", "may_change", "model", "session", "key", "deadline", "priority")
"""The terms of a task that another machine can't set here."""


def narrowed(task: Task, sender: str, settings: Settings) -> Task:
    """Return a task of another machine under the limits of this one.

    Its limits are at most those of the settings. Its budget and its policy narrow those of the settings in any case.
    The machine that sent it is among its labels, and so in each line of the log.

    Args:
        task: The task, as the other machine sent it.
        sender: That machine, as the engine knows it.
        settings: The settings of this machine.

    Raises:
        ValueError: If the task claims to be of another machine, or sets terms that only this machine sets.
    """
    if task.origin is None or task.origin.submitter != sender:
        msg = f"the task {task.id} says that it is of another machine than {sender}"
        raise ValueError(msg)
    if not task.id.startswith("r-"):
        msg = f"the task id {task.id!r} is not one of another machine's: those begin with r-"
        raise ValueError(msg)
    defaults = type(task).model_fields
    terms = [name for name in REFUSED if getattr(task, name) != defaults[name].get_default(call_default_factory=True)]
    if terms:
        msg = f"the task {task.id} sets {', '.join(terms)}, which only this machine sets"
        raise ValueError(msg)
    programs = [check for check in task.all_checks if check.program is not None]
    if programs:
        msg = f"the task {task.id} has a check that runs a program, which only this machine's own tasks may"
        raise ValueError(msg)
    return task.model_copy(update={"limits": _narrower(task.limits, settings), "labels": {"submitter": sender}})


def _narrower(limits: TaskLimits | None, settings: Settings) -> TaskLimits | None:
    """Return limits of which none is larger than that of the settings."""
    if limits is None:
        return None
    order_limits = {name: value for name, value in limits if value is not None}
    machine_limits = {name: getattr(settings.limits, name) for name in order_limits}
    return TaskLimits(
        **{
            name: value if machine_limits[name] is None else min(value, machine_limits[name])
            for name, value in order_limits.items()
        }
    )
