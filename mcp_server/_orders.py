"""Tasks of callers: their arguments, narrowed by the callers' rights."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from callboard.config import matches, narrower
from callboard.mcp_server._callers import LABEL
from callboard.messages import Check, Routine, Task, check_schema, did_you_mean, patterns_of, plain_problems, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from callboard.config import Settings
    from callboard.mcp_server._callers import Caller
    from callboard.messages import Reading as CheckReading
    from callboard.messages import Target

_REQUEST_CHARACTERS = 20_000
_MOST_DOCUMENTS = 50
_MOST_CHECKS = 50
_MOST_PARAMETERS = 100
_SCHEMA_CHARACTERS = 20_000
_DOCUMENT_FORMS = ("cells", "table", "text", "chart", "file", "unchanged")
_NAMED = 10
"""The most targets that an error names."""


class RefusedOrderError(ValueError):
    """A caller may not give this task, or its arguments are wrong."""


class Order(BaseModel):
    """The arguments of a task, as a caller gives them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    request: str = Field(min_length=1, max_length=_REQUEST_CHARACTERS)
    key: str | None = Field(default=None, min_length=1, max_length=100)
    documents: tuple[str, ...] = Field(default=(), max_length=_MOST_DOCUMENTS)
    target: str | None = Field(default=None, min_length=1, max_length=400)
    checks: tuple[dict[str, JsonValue], ...] = Field(default=(), max_length=_MOST_CHECKS)
    output_schema: dict[str, JsonValue] | None = None
    may_change: tuple[str, ...] = Field(default=(), max_length=_MOST_DOCUMENTS)
    dry_run: bool = False
    routine: str | None = Field(default=None, min_length=1, max_length=100)
    parameters: dict[str, JsonValue] = Field(default_factory=dict, max_length=_MOST_PARAMETERS)


def task_of(
    order: Order, caller: Caller, settings: Settings, targets: Sequence[Target], routines: Mapping[str, Routine]
) -> Task:
    """Make the task of an order, within the rights of its caller.

    Its id and key are in the caller's own namespace, and its label names the caller.

    Args:
        order: The arguments.
        caller: The caller.
        settings: The settings of the server.
        targets: The targets that are there now.
        routines: The routines that may be repeated, by name.

    Raises:
        RefusedOrderError: If the caller may not give it, or it is no task.
    """
    rights = caller.rights
    own_targets = [target for target in targets if matches(target.id, rights.targets)]
    for name in (*order.documents, *order.may_change):
        _check_document(name, caller, settings)
    for name in order.may_change:
        if not matches(name, rights.may_change):
            msg = f"{caller.name} may not overwrite {name} without an approval: leave it out of may_change"
            raise RefusedOrderError(msg)
    _check_schema(order)
    routine = _routine(order, caller, routines)
    fields: dict[str, Any] = {
        "id": id_of(order, caller),
        "request": _request(order),
        "key": None if order.key is None else f"mcp:{caller.name}:{order.key}",
        "target": _target(order, caller, own_targets),
        "checks": order.checks,
        "output_schema": order.output_schema,
        "may_change": order.may_change,
        "dry_run": order.dry_run,
        "routine": routine,
        "parameters": order.parameters,
        "policy": rights.policy,
        "budget": rights.budget,
        "limits": narrower(rights.limits, settings),
        "labels": {LABEL: caller.name},
    }
    try:
        task = Task.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(plain_problems(error.errors()[:_NAMED]))
        raise RefusedOrderError(problems) from None
    for check in task.checks:
        _check_check(check, caller, own_targets)
        if not _has_all(caller):
            for name in check.unchanged or ():  # a missing file would be answered with the name of another one
                _check_document(name, caller, settings)
    return task


def _routine(order: Order, caller: Caller, routines: Mapping[str, Routine]) -> Routine | None:
    """Return the routine that an order names; None without one.

    Raises:
        RefusedOrderError: If there is none of that name, or the caller has not all targets.
    """
    if order.routine is None:
        return None
    if not _has_all(caller):
        msg = f"{caller.name} has no routines: they choose their targets themselves, and it has only some"
        raise RefusedOrderError(msg)
    if order.routine not in routines:
        msg = f"there is no routine {visible(order.routine)!r}{did_you_mean(order.routine, routines)}"
        raise RefusedOrderError(msg)
    return routines[order.routine]


def id_of(order: Order, caller: Caller) -> str:
    """Return the id of an order's task, made of its key."""
    if order.key is None:
        return f"mcp-{caller.name}-{uuid.uuid4().hex[:16]}"
    return f"mcp-{caller.name}-{hashlib.sha256(order.key.encode()).hexdigest()[:32]}"


def is_same(order: Order, task: Task, targets: Sequence[Target]) -> bool:
    """Return whether an order has the arguments of an earlier task.

    Another name of its target is no other argument, and neither is that of a target that is gone.
    """
    try:
        checks = TypeAdapter(tuple[Check, ...]).validate_python(order.checks)
    except ValidationError:
        return False
    ids = {target.id for target in targets if order.target in _names_of(target)}
    own_checks = task.checks
    if isinstance(task.routine, Routine):  # its checks come first
        own_checks = own_checks[-len(checks) :] if checks else ()
    return (order.target is None or not ids or task.target in ids) and (
        (_request(order), checks, order.output_schema, order.may_change, order.dry_run, order.parameters)
        == (task.request, own_checks, task.output_schema, task.may_change, task.dry_run, task.parameters)
        and order.routine == (task.routine.routine if isinstance(task.routine, Routine) else None)
    )


def _request(order: Order) -> str:
    if not order.documents or (len(order.documents) == 1 and order.documents[0] == order.target):
        return order.request
    return f"{order.request}\n\nDocuments: {', '.join(order.documents)}"


def _target(order: Order, caller: Caller, own_targets: Sequence[Target]) -> str | None:
    """Return the id of the order's target; without one a HostAgent chooses.

    Raises:
        RefusedOrderError: If the target is not the caller's, or it must name one.
    """
    name = order.target
    if name is None and not _has_all(caller) and len(order.documents) == 1:
        name = order.documents[0]
    if name is None:
        if not _has_all(caller):
            msg = f"name one target: {caller.name} has the targets {_listed(own_targets)}"
            raise RefusedOrderError(msg)
        return None
    for target in own_targets:
        if name in _names_of(target):
            return target.id
    hint = did_you_mean(name, [target.id for target in own_targets], f"there are: {_listed(own_targets)}")
    msg = f"there is no target {visible(name)!r}{hint}"
    raise RefusedOrderError(msg)


def _has_all(caller: Caller) -> bool:
    """Return whether a caller has all targets."""
    return "*" in caller.rights.targets


def _names_of(target: Target) -> tuple[str, str, str]:
    """Return the names by which a caller may name a target."""
    return target.id, target.name, target.address


def _listed(targets: Sequence[Target]) -> str:
    more = " …" if len(targets) > _NAMED else ""
    return f"{', '.join(target.id for target in targets[:_NAMED]) or 'none'}{more}"


def _check_document(name: str, caller: Caller, settings: Settings) -> None:
    """Refuse a name that is no document of the caller's.

    Raises:
        RefusedOrderError: If it leads out of the workspace, also by a link, is no file, or is not the caller's.
    """
    unknown = f"there is no document {visible(name)!r}: name it by its path in the workspace"
    workspace = settings.documents.workspace
    path = PurePosixPath(name)
    if workspace is None or not is_inside(name) or str(path) != name or not matches(name, caller.rights.targets):
        raise RefusedOrderError(unknown)
    folder = os.path.realpath(settings.path(workspace))
    file = os.path.realpath(os.path.join(folder, name))  # noqa: PTH118 - realpath takes a text
    if os.path.commonpath([folder, file]) != folder or not os.path.isfile(file):  # noqa: PTH113 - as above
        raise RefusedOrderError(unknown)


def is_inside(name: str) -> bool:
    """Return whether a path's words stay inside the workspace."""
    is_plain = name.isprintable() and "\\" not in name and ":" not in name and not name.startswith(("/", "~"))
    return bool(name) and is_plain and ".." not in name.split("/")


def _check_schema(order: Order) -> None:
    """Refuse a large or slow schema, and a quoted secret.

    Raises:
        RefusedOrderError: If it is.
    """
    text = json.dumps(order.output_schema)
    if len(text) > _SCHEMA_CHARACTERS:
        msg = f"output_schema: has {len(text)} characters of JSON, and the most are {_SCHEMA_CHARACTERS}"
        raise RefusedOrderError(msg)
    if order.output_schema is not None:
        try:
            check_schema(order.output_schema)
        except ValueError as error:
            msg = f"output_schema: {error}"
            raise RefusedOrderError(msg) from None
        if any(patterns_of(order.output_schema)):
            msg = "output_schema: has a pattern, which a caller's schema may not: it could take for ever"
            raise RefusedOrderError(msg)
    if "${secret:" in text or "${secret:" in json.dumps(order.checks):
        msg = "a caller's checks and schemas may not quote a secret"
        raise RefusedOrderError(msg)


def _check_check(check: Check, caller: Caller, own_targets: Sequence[Target]) -> None:
    """Refuse a check that reads others' targets, or runs something.

    Raises:
        RefusedOrderError: If it does.
    """
    if not caller.rights.checks:
        msg = f"{caller.name} may have no checks (mcp_server.callers)"
        raise RefusedOrderError(msg)
    reason = _refusal(check, caller, own_targets)
    if not reason and check.same_as is not None:
        reason = _refusal(check.same_as, caller, own_targets)
    if reason:
        msg = f"the check {check.title!r}: {reason}"
        raise RefusedOrderError(msg)


def _refusal(reading: CheckReading, caller: Caller, own_targets: Sequence[Target]) -> str:
    """Return the reason against a reading; empty without one."""
    form = reading.form
    if form in {"program", "command"}:
        return f"`{form}` runs something, which a caller's checks may not"
    if _has_all(caller):
        known_names = {name for target in own_targets for name in _names_of(target)}
        return "" if form != "tool" or reading.target in known_names else "`tool` needs a `target` of the caller's"
    if form in _DOCUMENT_FORMS:
        value = getattr(reading, form)
        names = [name.partition("!")[0] for name in ((value,) if isinstance(value, str) else value)]
        others = [name for name in names if not matches(name, caller.rights.targets)]
        return f"{others[0]} is not the caller's" if others else ""
    if form == "control" and reading.control is not None:
        own_ids = {target.id for target in own_targets}  # a window's title, which is a page's, may be another's id
        return "" if reading.control.target in own_ids else f"name a target by its id: {reading.control.target} is none"
    return "" if form == "downloaded" else f"`{form}` reads more than the targets of the caller"
