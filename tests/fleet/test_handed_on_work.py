"""Work of another machine, which is not handed on to a third one."""

from __future__ import annotations

import asyncio

import pytest

from callboard import Outcome, Task
from callboard.fleet import Bucket, MemoryEngine
from callboard.fleet._work_messages import TaskSignals, WorkOrder, WorkResult
from callboard.messages import TaskOrigin
from callboard.testing import MemoryServer
from support import PATIENCE, wait_for


def finish(request):
    """Say where the work was done."""
    return {"Status": "FINISH", "Result": request.target.name}


class Planner:
    """A HostAgent that has some targets do the work, one after the other, and notes what it was shown."""

    def __init__(self, *targets):
        self.targets = targets
        self.shown = []
        self.reasons = []

    def __call__(self, request):
        """Assign the next one."""
        self.shown.append({target.id for target in request.observation.targets})
        self.reasons += request.reasons
        if request.subtasks:
            return {"Status": "FINISH", "Result": request.subtasks[-1].output}
        target = self.targets[min(len(self.reasons), len(self.targets) - 1)]
        return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": "Build it"}


@pytest.fixture
def machines(fleet):
    """Give a function that starts a machine that plans, another one, and a submitter."""

    def start(planner):
        work = {"linux": finish, "host": planner}
        alpha = fleet.machine(
            "alpha", surface=MemoryServer(MemoryServer.shell("build")), fleet={"labels": {"site": "berlin"}}, **work
        )
        fleet.machine("beta", surface=MemoryServer(MemoryServer.shell("test")), **work)
        desk = fleet.machine("desk", serves=False, **work)
        wait_for(lambda: {"any:site=berlin"} <= {target.id for target in desk.targets()})
        wait_for(lambda: {"beta:test", "any:test"} <= {target.id for target in alpha.targets()})
        return alpha, desk

    return start


@pytest.mark.parametrize("named", ["beta:test", "any:test"])
def test_work_of_another_machine_shows_no_targets_elsewhere(machines, named):
    """A model that names one anyway is told of those that there are."""
    planner = Planner(named, "build")
    _, desk = machines(planner)
    result = desk.submit(Task(request="Build it", target="any:site=berlin")).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "build")
    assert planner.shown[0] == {"build"}
    assert f"there is no target '{named}'; there are: build (build)" in planner.reasons[0]


def test_own_work_shows_targets_elsewhere(machines):
    planner = Planner("any:test")
    alpha, _ = machines(planner)
    assert alpha.submit(Task(request="Test it")).result(PATIENCE).output == "test"
    assert {"build", "beta:test", "any:test"} <= planner.shown[0]


def test_work_for_a_third_machine_is_not_handed_on(fleet, machines):
    """A machine sends it anyway: its target is known here, but no work is given to it."""
    machines(finish)
    origin = TaskOrigin(submitter="thief", run_id="t~1", number=1, task_request="x")
    order = WorkOrder(task=Task(id="r-1", request="Test it", target="beta:test", origin=origin))

    results = []

    async def take():
        engine = MemoryEngine(fleet.hub, "thief")
        await engine.open()
        await engine.put(Bucket.SIGNALS, "alpha.thief.r-1", TaskSignals().model_dump_json().encode())
        await engine.send("alpha", "r-1", order.model_dump_json().encode())
        async for entry in engine.watch(Bucket.RESULTS, "thief"):
            if entry is not None and entry.value is not None:
                results.append(WorkResult.model_validate_json(entry.value).result)
                break
        await engine.close()

    asyncio.run(asyncio.wait_for(take(), PATIENCE))
    (result,) = results
    assert result.outcome is Outcome.FAILED
    assert "is another machine's work: it is done here, or assigned there to a third machine" in str(result.causes)
