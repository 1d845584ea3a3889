"""A fleet under faults loses no task, and does nothing twice."""

from __future__ import annotations

import collections
import os

import pytest

from fleet_checker import problems
from fleet_lab import Chaos, Fault, FleetLab, faults, random_tasks
from support import wait_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are killed with SIGKILL")

MACHINES = ["alpha", "beta"]
ENGINE = {"ack_seconds": 4.0}
FEW = [
    Fault("kill", "alpha", pause=0.5, seconds=0.2),
    Fault("kill", "server", pause=1.0, seconds=0.3),
    Fault("kill", "desk", pause=0.5, seconds=0.2),
    Fault("cut", "beta", pause=0.5, seconds=2.0),
    Fault("halt", "alpha", pause=0.0, seconds=1.0),
]


@pytest.fixture
def lab(nats_server, tmp_path):
    """Give a fleet without machines."""
    lab = FleetLab(tmp_path / "fleet", nats_server)
    yield lab
    lab.close()


def befall(lab, some_faults, seed):
    """Inject faults while two machines do tasks, and check the results."""
    for name in MACHINES:
        lab.add(name, serves=True, engine=ENGINE)
    tasks = random_tasks(seed, 5_000, MACHINES)
    lab.submitter(tasks, engine=ENGINE)
    wait_for(lab.marks)
    chaos = Chaos(lab)
    for fault in some_faults:
        chaos.befall(fault)
    chaos.end()
    ends = lab.ends()
    found = problems(lab, tasks, ends)
    assert not found, "\n".join(found)
    return collections.Counter(end.outcome.value for end in ends.values()), chaos.counts


def test_fleet_survives_a_few_faults(lab):
    outcomes, _ = befall(lab, FEW, seed=1)
    assert outcomes["finished"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", [3, 4])
def test_fleet_survives_many_faults(lab, seed):
    outcomes, counts = befall(lab, faults(seed, 110, [*MACHINES, "desk"]), seed)
    assert outcomes["finished"] > 50
    assert counts.total() == 110
