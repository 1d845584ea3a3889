"""Targets that any machine of a fleet may work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import ANY_MACHINE, LOCAL_POOL, REMOTE, Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from callboard.fleet._machines import Machine

DEVICES = "device"
"""The pool of all Android devices."""


@dataclass(frozen=True)
class Candidate:
    """A target of a machine that may do work of a pool."""

    machine: Machine
    target_id: str
    """Its id there; empty for the whole machine, whose HostAgent chooses."""


def pools_of(targets: Iterable[Target], labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the pools of a machine, each with a target's id.

    Applications and shells of one id are one pool, all devices are one, and each label is one. Open windows are in
    none: those of two machines are two documents, even if their names are equal.

    Args:
        targets: The machine's targets, as it knows them.
        labels: Its labels, if it takes work without a target.
    """
    for target in targets:
        if target.kind is TargetKind.DEVICE:
            yield DEVICES, target.id
        elif target.kind is not TargetKind.WINDOW:
            yield target.id, target.id
    for name, value in labels.items():
        yield f"{name}={value}", ""


def remote_target(machine: str, target: Target) -> Target:
    """Return a target of another machine as agents here see it."""
    form = _remote_form(target, machine)
    binds = {**form.binds, "target": target.id}
    return form.model_copy(update={"id": f"{machine}:{target.id}", "binds": binds, "group": "", "machine": machine})


def local_target(target: Target) -> Target:
    """Return a local machine's target as agents here see it.

    It keeps its id, and the lease that it has with others: on whichever machine, one subtask uses it at a time.
    """
    group = f"{LOCAL_POOL}:{target.group}" if target.group else ""
    return _remote_form(target, LOCAL_POOL).model_copy(update={"pool": target.id, "group": group})


def _remote_form(target: Target, root: str) -> Target:
    """Return a target as RemoteAgents see it.

    Its address begins with a machine or a pool. An application is started there, so here it is worked on like a window.
    """
    is_application = target.kind is TargetKind.APPLICATION
    return target.model_copy(
        update={
            "kind": TargetKind.WINDOW if is_application else target.kind,
            "kinds": (REMOTE,),
            "address": f"{REMOTE}/{root}/{target.address}",
            "server": "fleet",
            "binds": {"starts": is_application},
            "start": None,
            "takes": {},
            "base": "",
            "copies": is_application,
        }
    )


def pool_target(pool: str, target: Target | None) -> Target:
    """Return the target that stands for a pool, for RemoteAgents.

    Args:
        pool: The pool.
        target: One of its targets, as its machine knows it; None for a label.
    """
    is_application = target is not None and target.kind is TargetKind.APPLICATION
    name = pool if target is None or target.kind is TargetKind.DEVICE else target.name
    return Target(
        id=f"{ANY_MACHINE}:{pool}",
        name=name,
        kind=TargetKind.WINDOW if is_application or target is None else target.kind,
        kinds=(REMOTE,),
        address=f"{REMOTE}/{ANY_MACHINE}/{pool}",
        server="fleet",
        binds={"starts": is_application},
        pool=pool,
        copies=True,
        machine=ANY_MACHINE,
    )
