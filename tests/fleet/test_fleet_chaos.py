"""A fleet under faults loses no task, and does nothing twice."""

from __future__ import annotations

import os

import pytest

from fleet_campaign import MACHINES, SUBMITTERS, befall
from fleet_lab import Fault, FleetLab, faults

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are killed with SIGKILL")

FEW = [
    Fault("kill", "alpha", pause=0.3, seconds=0.2),
    Fault("kill", "server", pause=0.8, seconds=0.3),
    Fault("kill", "desk", pause=0.3, seconds=0.2),
    Fault("cut", "beta", pause=0.5, seconds=2.0),
    Fault("halt", "alpha", pause=0.0, seconds=1.0),
]


@pytest.fixture
def lab(nats_server, tmp_path):
    """Give a fleet without machines."""
    lab = FleetLab(tmp_path / "fleet", nats_server)
    yield lab
    lab.close()


def test_fleet_survives_a_few_faults(lab):
    outcomes, _ = befall(lab, FEW, seed=1, at_once=3, patience=0.1)
    assert outcomes["finished"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", [3, 4])
def test_fleet_survives_many_faults(lab, seed):
    outcomes, counts = befall(lab, faults(seed, 110, [*MACHINES, *SUBMITTERS]), seed)
    assert outcomes["finished"] > 100
    assert outcomes["planned"] > 20
    assert outcomes["approved"] > 20
    assert outcomes["rejected"] > 0
    assert counts.total() == 110
