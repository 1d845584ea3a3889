"""A fleet in network namespaces loses no task while links are down, and does nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from fleet_campaign import MACHINES, SUBMITTERS, befall
from fleet_lab import Fault, faults
from fleet_namespaces import NamespaceLab, check_for_namespaces
from support import wait_for

KINDS = ("cut", "cut", "degrade", "kill")
FEW = [
    Fault("cut", "alpha", pause=0.2, seconds=2.0),
    Fault("degrade", "beta", pause=0.2, seconds=2.0),
    Fault("cut", "server", pause=0.0, seconds=2.0),
]


@pytest.fixture
def lab(tmp_path):
    """Give machines in namespaces."""
    check_for_namespaces()
    lab = NamespaceLab(tmp_path / "fleet", [*MACHINES, *SUBMITTERS])
    yield lab
    lab.close()


def namespaces(prefix):
    """Return the namespaces whose names begin with a text."""
    command = ("ip", "netns", "list")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.startswith(prefix)]


def test_fleet_survives_links_that_go_down(lab):
    outcomes, _ = befall(lab, FEW, 1, SUBMITTERS[:1], at_once=3, patience=0.1)
    assert outcomes["finished"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", [5, 6])
def test_fleet_survives_many_faults_of_links(lab, seed):
    outcomes, counts = befall(lab, faults(seed, 100, [*MACHINES, *SUBMITTERS], KINDS), seed)
    assert outcomes["finished"] > 100
    assert outcomes["planned"] > 20
    assert outcomes["approved"] > 20
    assert counts.total() == 100


def test_namespaces_are_deleted_after_a_kill():
    check_for_namespaces()
    program = textwrap.dedent(
        """
        import subprocess, sys, time
        from fleet_namespaces import Network
        network = Network(sys.argv[1], ["one", "two"])
        subprocess.Popen([*network.inside("one"), "sleep", "1000"])
        print("ready", flush=True)
        time.sleep(1000)
        """
    )
    prefix = f"cb{os.getpid()}k"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, prefix]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert len(namespaces(prefix)) == 3
        process.send_signal(signal.SIGKILL)
    assert wait_for(lambda: not namespaces(prefix))
