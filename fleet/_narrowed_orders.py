"""The terms under which this machine does the work of other machines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.config import least, matches, narrower

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.config import AcceptSettings, Settings
    from callboard.messages import Check, Task

REFUSED = ("secrets", "session", "key", "deadline", "priority", "routine")
"""The terms of a task that another machine can't set here."""
_ID = re.compile(r"r-[A-Za-z0-9]{1,60}")


def narrowed(task: Task, sender: str, settings: Settings) -> Task:
    """Return a task of another machine under the terms of this one.

    Its limits are at most those of the settings, and its limits, budget, model and files to change are at most those of
    `fleet.accept`. Its policy narrows that of the settings in any case. The machine that sent it is among its labels,
    and so in each line of the log.

    Args:
        task: The task, as the other machine sent it.
        sender: That machine, as the engine knows it.
        settings: The settings of this machine.

    Raises:
        ValueError: If the task claims to be of another machine, or sets terms that it may not set here.
    """
    accept, machine = settings.fleet.accept, settings.fleet.machine
    check_sender(task, sender)
    if accept.machines != "all" and sender not in accept.machines:
        msg = f"the machine {machine} does no work of {sender} (fleet.accept.machines there)"
        raise ValueError(msg)
    defaults = type(task).model_fields
    terms = [name for name in REFUSED if getattr(task, name) != defaults[name].get_default(call_default_factory=True)]
    if terms:
        msg = f"the task {task.id} sets {', '.join(terms)}, which only this machine sets"
        raise ValueError(msg)
    _check_checks(task, accept)
    limits = least(task.limits, accept.limits)
    return task.model_copy(
        update={
            "limits": narrower(limits, settings),
            "budget": least(task.budget, accept.budget),
            "may_change": tuple(_files_to_change(task, settings)),
            "labels": {"submitter": sender},
            **_models(task, accept),
        }
    )


def check_sender(task: Task, sender: str) -> None:
    """Check that a task is of the machine that sent it.

    Raises:
        ValueError: If it names another one, or has no id of another machine's task.
    """
    if task.origin is None or task.origin.submitter != sender:
        msg = f"the task {task.id} says that it is of another machine than {sender}"
        raise ValueError(msg)
    if not is_foreign_id(task.id):
        msg = f"the task id {task.id!r} is not one of another machine's: those begin with r-"
        raise ValueError(msg)


def is_foreign_id(task_id: str) -> bool:
    """Return whether an id may be one of another machine's task."""
    return _ID.fullmatch(task_id) is not None


def refused_targets(task: Task, offered_ids: Iterable[str]) -> str:
    """Return the reason against a task's target; empty without one.

    A target may also be named otherwise than by its id, and a step without one leaves the choice to a model, so only
    the ids of offered targets do.
    """
    names = [step.target for step in task.plan] if task.plan else [task.target]
    others = [name or "any target" for name in names if name not in set(offered_ids)]
    return f"the machine offers no {', '.join(others)} (fleet.accept.targets there)" if others else ""


def _check_checks(task: Task, accept: AcceptSettings) -> None:
    """Check the kinds of a task's checks.

    Raises:
        ValueError: If it has others.
    """
    checks: tuple[Check, ...] = task.all_checks
    if not accept.checks and (checks or task.judge is not None):
        msg = f"the task {task.id} has checks, which this machine does not take (fleet.accept.checks)"
        raise ValueError(msg)
    if not accept.programs and any(check.program is not None for check in checks):
        msg = f"the task {task.id} has a check that runs a program, which only this machine's own tasks may"
        raise ValueError(msg)


def _models(task: Task, accept: AcceptSettings) -> dict[str, object]:
    """Return the changed fields of a task that name models.

    Raises:
        ValueError: If it names one that is not accepted.
    """
    if not accept.models:
        return {"model": None, "judge": task.judge and task.judge.model_copy(update={"model": None})}
    others = [name for name in task.models if not matches(name, accept.models)]
    if others:
        msg = f"the task {task.id} names the model {others[0]}, which this machine does not take (fleet.accept.models)"
        raise ValueError(msg)
    return {}


def _files_to_change(task: Task, settings: Settings) -> Iterable[str]:
    """Yield the files that a task may change, which are here."""
    workspace = settings.documents.workspace
    if workspace is None:
        return
    for name in task.may_change:
        is_accepted = matches(name, settings.fleet.accept.may_change)
        if is_accepted and ".." not in name.split("/") and (settings.path(workspace) / name).is_file():
            yield name
