"""A fleet under faults loses no task, and does nothing twice."""

from __future__ import annotations

import contextlib
import os

import pytest

from fleet_campaign import MACHINES, SUBMITTERS, befall
from fleet_lab import Fault, FleetLab, faults, halts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are killed with SIGKILL")

TIMES = {
    **{f"callboard.fleet.{module}.BEAT_SECONDS": 0.5 for module in ("_machines", "_placements", "_served_work")},
    **{f"callboard.fleet.{module}.AWAY_SECONDS": 2.0 for module in ("_fleet_link", "_machines", "_own_name")},
    "callboard.fleet._placements.REFUSER_SECONDS": 0.5,
}
"""Machines count as away, and take work after a refusal, sooner: so more work is given to others."""
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
    lab = FleetLab(tmp_path / "fleet", nats_server, order={"times": TIMES})
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
    assert outcomes["any"] > 50
    assert outcomes["refused"] > 0
    assert counts.total() == 110


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("careless", [False, True])
@pytest.mark.parametrize("seed", [7, 8])
def test_compare_and_set_keeps_work_from_being_repeated(lab, seed, careless):
    """Machines go away with work in their queues, and come back after it was given to others.

    Nothing is approved: no one would answer for work that a machine does in vain, and it would wait forever.
    """
    lab.order["careless"] = careless
    expected = pytest.raises(AssertionError, match="was done twice") if careless else contextlib.nullcontext()
    with expected:
        befall(lab, halts(seed, 20, MACHINES), seed, approves=False)
