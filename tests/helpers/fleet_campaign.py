"""Faults of a fleet, with a comparison of all that was done."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from fleet_checker import problems, repetitions
from fleet_lab import ANY, Chaos, Fault, FleetLab, random_tasks
from fleet_machine import APPROVED, PICKY
from support import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MACHINES, SUBMITTERS = ["alpha", "beta", "gamma"], ["desk", "office"]
ENGINE = {"ack_seconds": 4.0}


def befall(
    lab: FleetLab,
    some_faults: Iterable[Fault],
    seed: int,
    submitters: Sequence[str] = SUBMITTERS,
    *,
    approves: bool = True,
    **order: Any,
) -> tuple[Counter[str], Counter[str]]:
    """Inject faults while three machines do the tasks of others, and check the results.

    Args:
        lab: The fleet, without machines.
        some_faults: The faults.
        seed: That of the tasks.
        submitters: The machines that submit.
        approves: Whether people approve a part of the tasks.
        order: A part of the orders of the submitters.

    Returns:
        The numbers of outcomes, and of faults.
    """
    for name in MACHINES:
        lab.add(name, serves=True, engine=ENGINE)
    tasks = {name: random_tasks(seed, 3_000, MACHINES, name) for name in submitters}
    for task in itertools.chain(*tasks.values()) if not approves else ():
        task["request"] = task["request"].replace(" sign=1", "")
    for name in submitters:
        lab.submitter(tasks[name], name, engine=ENGINE, **order)
    wait_for(lab.marks)
    chaos = Chaos(lab)
    for fault in some_faults:
        chaos.befall(fault)
    chaos.end()
    outcomes: Counter[str] = Counter()
    _check(repetitions(lab))  # what is begun twice may also keep others from an end
    ends = {name: lab.ends(name) for name in submitters}
    found = repetitions(lab)
    for name in submitters:
        found += problems(lab, tasks[name], ends[name], name)
        outcomes.update(end.outcome.value for end in ends[name].values())
        outcomes["planned"] += sum(len(end.subtasks) > 1 for end in ends[name].values())
        outcomes["any"] += sum(ANY in str(task) and task["id"] in ends[name] for task in tasks[name])
        checked = {task["id"] for task in tasks[name] if "checks" in task}
        outcomes["refused"] += sum(task in checked and machine == PICKY for task, machine in _choices(lab, name))
        approved = lab.machines[name].folder / APPROVED
        outcomes["approved"] += len(set(approved.read_text().split())) if approved.exists() else 0
    _check(found)
    return outcomes, chaos.counts


def _choices(lab: FleetLab, name: str) -> list[tuple[str, str]]:
    """Return the machines that a submitter has chosen, each with its task."""
    lines = (lab.machines[name].folder / "machine.log").read_text().splitlines()
    events = [json.loads(line) for line in lines if '"machine.chosen"' in line and line.endswith("}")]
    return [(event["task"], event["machine"]) for event in events]


def _check(found: list[str]) -> None:
    assert not found, "\n".join(found)
