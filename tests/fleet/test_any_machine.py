"""Work that any machine of the fleet may do, which one of them does."""

from __future__ import annotations

import threading

import pytest

from callboard import EventName, Outcome, PlanStep, Task
from callboard.fleet import Bucket, MemoryEngine
from callboard.messages import TargetKind, TaskRefusedError
from callboard.testing import MemoryServer
from support import PATIENCE, wait_for


def finish(request):
    """Say where the work was done."""
    return {"Status": "FINISH", "Result": request.target.name}


class Shells(MemoryServer):
    """A surface with one shell, ``build``, on each machine."""

    def __init__(self) -> None:
        super().__init__(MemoryServer.shell("build"))


@pytest.fixture
def pair(fleet):
    """Give two machines with the shell ``build``, and a third one that submits."""
    fleet.machine("alpha", surface=Shells(), linux=finish, fleet={"labels": {"site": "berlin"}})
    fleet.machine("beta", surface=Shells(), linux=finish, fleet={"labels": {"site": "paris"}})
    return fleet.machine("desk", serves=False, linux=finish)


def known(desk, count=2):
    """Wait until a number of machines have told their targets."""
    wait_for(lambda: sum(target.machine not in {"", "any"} for target in desk.targets()) >= count)


def heard(desk, name):
    """Collect the machines that events of a name tell of."""
    machines = []
    desk.subscribe(lambda event: machines.append(event.data["machine"]) if event.name is name else None)
    return machines


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    monkeypatch.setattr("callboard.fleet._machines.BEAT_SECONDS", 0.2)
    for module in ("_served_work", "_own_state"):
        monkeypatch.setattr(f"callboard.fleet.{module}.BEAT_SECONDS", 0.1)


@pytest.fixture
def away_after(monkeypatch):
    """Change the time after which a machine counts as away: ``away_after(0.5)``."""
    return lambda seconds: monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", seconds)


def on_build(number, **terms):
    """Make a task for the shell of any machine."""
    return Task(id=f"build-{number}", request="Build it", target="any:build", **terms)


def test_any_machine_with_a_target_does_the_work(fleet, pair):
    result = fleet.submit(pair, on_build(1)).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "build")
    assert result.subtasks[0].machine in {"alpha", "beta"}


def test_any_machine_is_a_target_of_its_own(fleet, pair):
    known(pair)
    offered = {target.id: target for target in pair.targets() if target.machine == "any"}
    assert set(offered) == {"any:build", "any:site=berlin", "any:site=paris"}
    assert offered["any:build"].kind is TargetKind.SHELL


def test_label_chooses_the_machine(fleet, pair):
    known(pair)
    tasks = [on_build(number, needs={"site": "paris"}) for number in range(4)]
    results = [pair.submit(task).result(PATIENCE) for task in tasks]
    assert {result.subtasks[0].machine for result in results} == {"beta"}


def test_labels_count_on_a_machine_that_offers_some_targets(fleet):
    """They choose it for a target; work without one, which it refuses, is not offered."""
    accept = {"accept": {"targets": ["build"]}, "labels": {"site": "rome"}}
    fleet.machine("alpha", surface=Shells(), linux=finish, fleet={"labels": {"os": "linux"}})
    fleet.machine("gamma", surface=Shells(), linux=finish, fleet=accept)
    desk = fleet.machine("desk", serves=False, linux=finish)
    known(desk)
    for number in range(2):
        result = desk.submit(on_build(number, needs={"site": "rome"})).result(PATIENCE)
        assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "gamma")
    assert {target.id for target in desk.targets() if target.machine == "any"} == {"any:build", "any:os=linux"}


def test_label_that_no_machine_has_fails_the_work(fleet, pair):
    known(pair)
    result = pair.submit(on_build(1, needs={"site": "rome"})).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no machine of the fleet has build, site=rome" in result.causes[0].reason


def test_needs_are_refused_for_a_target_of_one_machine(fleet, pair):
    known(pair)
    with pytest.raises(TaskRefusedError, match="belongs to one"):
        pair.submit(Task(request="Build it", target="alpha:build", needs={"site": "paris"}))
    with pytest.raises(ValueError, match="name the target"):
        PlanStep(request="Build it", needs={"site": "paris"})


def test_plan_gives_steps_to_any_machine_side_by_side(fleet):
    both = threading.Barrier(2, timeout=PATIENCE)

    def meet(request):
        both.wait()
        return finish(request)

    for name in ("alpha", "beta"):
        fleet.machine(name, surface=Shells(), linux=meet, fleet={"slots": 1})
    desk = fleet.machine("desk", serves=False, linux=meet, host=finish)
    known(desk)
    steps = [PlanStep(request=f"Build {part}", target="any:build", after=()) for part in ("one", "two")]
    result = desk.submit(Task(plan=steps)).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result
    assert {done.machine for done in result.subtasks} == {"alpha", "beta"}


def test_label_alone_has_the_host_agent_there_choose(fleet):
    def plan(request):
        if request.subtasks:
            return {"Status": "FINISH", "Result": request.subtasks[-1].output}
        return {"Status": "ASSIGN", "ControlText": "build", "Current Sub-Task": "Build it"}

    fleet.machine("alpha", surface=Shells(), linux=finish, host=plan, fleet={"labels": {"site": "berlin"}})
    desk = fleet.machine("desk", serves=False, linux=finish)
    result = fleet.submit(desk, Task(request="Build it", target="any:site=berlin")).result(PATIENCE)
    assert (result.outcome, result.output, result.subtasks[0].machine) == (Outcome.FINISHED, "build", "alpha")


def test_work_goes_to_another_machine_until_it_is_begun(fleet, away_after):
    """A machine that is away has the work in its queue: another one does it, and it does not do it later."""
    engines = {name: MemoryEngine(fleet.hub, name) for name in ("alpha", "beta")}
    done = []

    def note(request):
        done.append(request.run_id)
        return finish(request)

    fleet.machine("alpha", surface=Shells(), linux=note, engine=engines["alpha"])
    desk = fleet.machine("desk", serves=False, linux=finish)
    known(desk, 1)
    away_after(PATIENCE)
    engines["alpha"].cut(off=True)
    chosen = heard(desk, EventName.MACHINE_CHOSEN)
    handle = desk.submit(on_build(1))
    assert wait_for(lambda: chosen) == ["alpha"]
    away_after(0.5)
    fleet.machine("beta", surface=Shells(), linux=note, engine=engines["beta"])
    assert handle.result(PATIENCE).subtasks[0].machine == "beta"
    engines["alpha"].cut(off=False)
    later = desk.submit(Task(request="Build it", target="alpha:build")).result(PATIENCE)  # behind it in the queue
    assert later.outcome is Outcome.FINISHED
    assert len(done) == 2


def test_machine_gets_work_again_that_was_taken_back(fleet, monkeypatch):
    """The server drops what is sent twice; work that is given back to a machine is sent again."""
    monkeypatch.setattr("callboard.fleet._placements.BEAT_SECONDS", 0.1)
    engine, busy, release = MemoryEngine(fleet.hub, "alpha"), threading.Event(), threading.Event()

    def wait(request):
        busy.set()
        release.wait(PATIENCE)
        return finish(request)

    fleet.machine("alpha", surface=Shells(), linux=finish, engine=engine)
    fleet.machine("beta", surface=Shells(), linux=wait, fleet={"slots": 1})
    desk = fleet.machine("desk", serves=False, linux=finish)
    known(desk)
    blocker = desk.submit(Task(request="Build it", target="beta:build"))
    assert busy.wait(PATIENCE)
    engine.cut(off=True)
    chosen = heard(desk, EventName.MACHINE_CHOSEN)
    handle = desk.submit(on_build(1))
    wait_for(lambda: "beta" in chosen)
    engine.cut(off=False)
    assert handle.result(PATIENCE).subtasks[0].machine == "alpha"
    release.set()
    assert blocker.result(PATIENCE).outcome is Outcome.FINISHED


def test_cancel_before_the_begin_leaves_nothing_behind(fleet, away_after):
    away_after(PATIENCE)
    engine = MemoryEngine(fleet.hub, "alpha")
    fleet.machine("alpha", surface=Shells(), linux=finish, engine=engine)
    desk = fleet.machine("desk", serves=False, linux=finish)
    known(desk, 1)
    engine.cut(off=True)
    handle = desk.submit(on_build(1))
    wait_for(lambda: fleet.hub.queues["alpha"])
    handle.cancel("no longer")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED

    def kept():
        entries = dict(fleet.hub.entries).items()
        return [key for (bucket, key), entry in entries if bucket is not Bucket.MACHINES and entry.value is not None]

    assert wait_for(lambda: not kept())


def test_begun_work_is_never_given_to_another_machine(fleet):
    engine, release = MemoryEngine(fleet.hub, "alpha"), threading.Event()
    done = []

    def wait(request):
        done.append("alpha")
        release.wait(PATIENCE)
        return finish(request)

    def note(request):
        done.append("beta")
        return finish(request)

    fleet.machine("alpha", surface=Shells(), linux=wait, engine=engine)
    desk = fleet.machine("desk", serves=False, linux=finish)
    handle = fleet.submit(desk, on_build(1))
    wait_for(lambda: done)
    away = heard(desk, EventName.MACHINE_AWAY)
    engine.cut(off=True)
    fleet.machine("beta", surface=Shells(), linux=note)
    assert wait_for(lambda: away) == ["alpha"]
    assert fleet.submit(desk, on_build(2)).result(PATIENCE).subtasks[0].machine == "beta"
    assert not handle.done()
    engine.cut(off=False)
    release.set()
    assert handle.result(PATIENCE).subtasks[0].machine == "alpha"
    assert done == ["alpha", "beta"]


def test_result_reaches_its_submitter_after_a_restart_there(fleet):
    engine, done = MemoryEngine(fleet.hub, "alpha"), []

    def end_alone(request):
        done.append(request.run_id)
        engine.cut(off=True)
        return finish(request)

    first = fleet.machine("alpha", surface=Shells(), linux=end_alone, engine=engine)
    desk = fleet.machine("desk", serves=False, linux=finish)
    handle = fleet.submit(desk, on_build(1))
    wait_for(lambda: done and not first.pending())
    first.stop()
    fleet.machine("alpha", surface=Shells(), linux=end_alone)
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert len(done) == 1


def test_work_is_cancelled_by_a_submitter_that_restarts(fleet):
    """Nothing was said to the work before: its claim alone tells that a machine has it."""
    busy, release = threading.Event(), threading.Event()

    def wait(request):
        busy.set()
        release.wait(PATIENCE)
        return finish(request)

    there = fleet.machine("alpha", surface=Shells(), linux=wait)
    desk = fleet.machine("desk", serves=False, linux=finish)
    handle = fleet.submit(desk, on_build(1))
    assert busy.wait(PATIENCE)
    assert not any(bucket is Bucket.SIGNALS for bucket, _ in fleet.hub.entries)
    desk.stop()
    again = fleet.machine("desk", serves=False, linux=finish).handle(handle.task_id)
    again.cancel("enough")
    result = again.result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.CANCELLED, "alpha")
    wait_for(lambda: not there.pending())
    release.set()


class CarelessEngine(MemoryEngine):
    """An engine whose claims are written without compare-and-set."""

    async def update(self, bucket, key, value, revision):
        """Overwrite whatever is there."""
        return await self.put(bucket, key, value)


@pytest.mark.parametrize(("engine_class", "times"), [(MemoryEngine, 1), (CarelessEngine, 2)])
def test_compare_and_set_keeps_work_from_being_done_twice(fleet, away_after, engine_class, times):
    """A machine begins at the moment at which its work is taken back: without the comparison, both machines do it."""
    done = []

    def note(request):
        done.append(request.task_id)
        return finish(request)

    engine = engine_class(fleet.hub, "alpha")
    fleet.machine("alpha", surface=Shells(), linux=note, engine=engine)
    desk = fleet.machine("desk", serves=False, linux=finish)
    known(desk, 1)
    away_after(PATIENCE)
    engine.cut(off=True)
    handle = desk.submit(on_build(1))
    wait_for(lambda: fleet.hub.queues["alpha"])
    away_after(0.5)
    fleet.machine("beta", surface=Shells(), linux=note)
    assert handle.result(PATIENCE).subtasks[0].machine == "beta"
    engine.cut(off=False)
    later = desk.submit(Task(request="Build it", target="alpha:build")).result(PATIENCE)
    assert later.outcome is Outcome.FINISHED
    assert len(done) == times + 1
