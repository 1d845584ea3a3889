"""Work that other machines send: what is refused, narrowed, and not believed."""

from __future__ import annotations

import asyncio
import re

import pytest

from callboard import Outcome, Settings, Task
from callboard.fleet import Bucket, MemoryEngine
from callboard.fleet._narrowed_orders import narrowed, refused_targets
from callboard.fleet._work_messages import WorkOrder, WorkResult
from callboard.messages import Budget, Check, Judge, PlanStep, TaskLimits, TaskOrigin, TaskResult
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, lone, wait_for

ORIGIN = TaskOrigin(submitter="desk", run_id="t~1", number=1, task_request="x")


def order(**fields):
    """Give a task as the machine ``desk`` sends it."""
    return Task(**{"id": "r-1", "request": "x", "target": "memo:finance-3", "origin": ORIGIN, **fields})


REFUSED = {
    "of nobody": ({"origin": None}, "says that it is of another machine than desk"),
    "of another": ({"origin": ORIGIN.model_copy(update={"submitter": "boss"})}, "of another machine than desk"),
    "an id of its own": ({"id": "report"}, "is not one of another machine's"),
    "secrets": ({"secrets": {"pin": "4711-0815"}}, "sets secrets, which only this machine sets"),
    "an id with dots": ({"id": "r-1.x"}, "is not one of another machine's"),
    "a conversation": ({"target": None, "session": "other"}, "sets session"),
    "a routine": ({"request": "", "target": None, "routine": "monthly.routine.yaml"}, "sets routine"),
    "a key": ({"key": "k"}, "sets key"),
    "a priority": ({"priority": 9}, "sets priority"),
    "a program": ({"checks": [Check(program="shutdown")]}, "has a check that runs a program"),
}


@pytest.mark.parametrize(("fields", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_terms_that_only_the_machine_itself_sets_are_refused(fields, reason):
    with pytest.raises(ValueError, match=reason):
        narrowed(order(**fields), "desk", Settings())


def accepting(**accept):
    """Give the settings of a machine that accepts something."""
    return Settings.load(fleet={"name": "finance-3", "accept": accept})


NOT_ACCEPTED = {
    "a machine": ({"machines": ["boss"]}, {}, "the machine finance-3 does no work of desk (fleet.accept.machines"),
    "a model": ({"models": ["openai:small"]}, {"model": "openai:large"}, "names the model openai:large, which this"),
    "a judge's model": (
        {"models": ["openai:small"]},
        {"judge": Judge(question=["Good?"], model="openai:large")},
        "names the model openai:large, which this machine does not take",
    ),
    "checks": ({"checks": False}, {"checks": [Check(file="a.csv")]}, "has checks, which this machine does not take"),
    "a judge": ({"checks": False}, {"judge": Judge(question=["Good?"])}, "has checks, which this machine does not"),
    "checks of a step": (
        {"checks": False},
        {"plan": [PlanStep(request="x", checks=[Check(file="a.csv")])], "request": "", "target": None},
        "has checks",
    ),
    "a program beside a file": (
        {"checks": True},
        {"checks": [Check(file="a.csv"), Check(program="shutdown")]},
        "has a check that runs a program",
    ),
}


@pytest.mark.parametrize(("accept", "fields", "reason"), NOT_ACCEPTED.values(), ids=NOT_ACCEPTED.keys())
def test_terms_that_are_not_accepted_are_refused(accept, fields, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        narrowed(order(**fields), "desk", accepting(**accept))


def test_model_counts_only_where_models_are_accepted():
    fields = {"model": "openai:small", "judge": Judge(question=["Good?"], model="openai:small")}
    ignored = narrowed(order(**fields), "desk", accepting())
    assert (ignored.model, ignored.judge.model) == (None, None)
    taken = narrowed(order(**fields), "desk", accepting(models=["openai:small"]))
    assert (taken.model, taken.judge.model) == ("openai:small", "openai:small")


def test_program_is_read_where_programs_are_accepted():
    checks = (Check(program="totals_match"),)
    assert narrowed(order(checks=checks), "desk", accepting(programs=True)).checks == checks


def test_files_to_change_are_those_that_both_machines_name(tmp_path):
    for name in ("report.csv", "secret.csv", "notes.txt"):
        (tmp_path / "workspace" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "workspace" / name).touch()
    (tmp_path / "outside.csv").touch()
    asked = ["report.csv", "secret.csv", "missing.csv", "../outside.csv", "workspace/../report.csv"]

    def taken(*patterns):
        settings = Settings.load(
            fleet={"accept": {"may_change": patterns}}, documents={"workspace": tmp_path / "workspace"}
        )
        return narrowed(order(may_change=asked), "desk", settings).may_change

    assert taken() == ()
    assert taken("report.*", "*.txt") == ("report.csv",)
    assert taken("*") == ("report.csv", "secret.csv")


def test_limits_and_budget_are_at_most_those_that_are_accepted():
    settings = accepting(limits={"steps": 10, "repairs": 1}, budget={"tokens": 1_000, "cost": 1.0})
    fields = {"limits": TaskLimits(steps=5, repairs=2), "budget": Budget(tokens=5_000, model_calls=3)}
    taken = narrowed(order(**fields), "desk", settings)
    assert (taken.limits.steps, taken.limits.repairs) == (5, 1)
    assert taken.budget == Budget(tokens=1_000, model_calls=3, cost=1.0)
    bare = narrowed(order(), "desk", settings)
    assert (bare.limits.steps, bare.budget) == (10, Budget(tokens=1_000, cost=1.0))


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"target": "memo:finance-3"}, False),
        ({"target": "memo:other"}, True),
        ({"target": "finance-3"}, True),  # by its name
        ({"target": None}, True),
        ({"plan": [PlanStep(request="x")], "request": "", "target": None}, True),
        ({"plan": [PlanStep(request="x", target="memo:finance-3")], "request": "", "target": None}, False),
    ],
)
def test_targets_are_those_that_are_offered(fields, is_refused):
    assert bool(refused_targets(order(**fields), {"memo:finance-3"})) is is_refused


def test_submitter_is_told_that_its_work_is_not_accepted(fleet):
    fleet.machine("finance-3", app=lambda _: FINISH, fleet={"accept": {"machines": ["boss"]}})
    here = fleet.machine("desk", serves=False)
    result = fleet.submit(here, lone("finance-3:memo:finance-3")).result(PATIENCE)
    assert not result.ok
    assert "the machine finance-3 does no work of desk (fleet.accept.machines there)" in result.causes[0].reason


def test_target_that_is_not_offered_is_neither_listed_nor_worked_on(fleet):
    windows = [MemoryServer.window(name) for name in ("finance-3", "private")]
    surface = MemoryServer(*windows)
    work = lambda request: append(request.request) if request.step == 1 else FINISH  # noqa: E731 - a model
    accept = {"accept": {"targets": ["memo:fin*"]}}
    fleet.machine("finance-3", surface=surface, app=work, fleet=accept)
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone("finance-3:memo:finance-3", request="sum")).result(PATIENCE).ok
    assert [target.id for target in here.targets() if target.machine] == ["finance-3:memo:finance-3"]
    send(fleet, "desk", WorkOrder(task=order(target="memo:private", request="theirs")).model_dump_json().encode())
    assert [text for _, _, text in surface.effects] == ["sum"]


def test_terms_of_a_task_are_sent_to_the_other_machine(fleet):
    taken = []
    there = fleet.machine("finance-3", app=lambda _: FINISH, fleet={"accept": {"models": ["app"]}})
    here = fleet.machine("desk", app=lambda _: FINISH, serves=False)
    there.subscribe(lambda event: taken.append(event.task_id))
    handle = fleet.submit(here, lone("finance-3:memo:finance-3", model="app"))
    assert handle.result(PATIENCE).ok
    task_id = next(task_id for task_id in taken if task_id.startswith("r-"))
    assert there.handle(task_id).task.model == "app"


def test_limits_are_at_most_those_of_the_machine():
    settings = Settings.load(limits={"steps": 20})
    taken = narrowed(order(limits=TaskLimits(steps=1_000, repairs=0, task_seconds=5)), "desk", settings)
    assert (taken.limits.steps, taken.limits.repairs, taken.limits.task_seconds) == (20, 0, 5)
    assert narrowed(order(), "desk", settings).limits is None


def test_labels_name_the_machine_that_sent_it_and_nothing_else():
    assert narrowed(order(labels={"team": "boss"}), "desk", Settings()).labels == {"submitter": "desk"}


@pytest.fixture
def served(fleet):
    """Start a machine whose agent appends to its window; give it, and its surface."""
    surface = MemoryServer(MemoryServer.window("finance-3"))
    work = lambda request: append(request.request) if request.step == 1 else FINISH  # noqa: E731 - a model
    return fleet.machine("finance-3", surface=surface, app=work), surface


def send(fleet, sender, body):
    """Send something to the machine's queue, and wait until it is gone from it."""

    async def run():
        engine = MemoryEngine(fleet.hub, sender)
        await engine.open()
        await engine.send("finance-3", "r-1", body)
        await engine.close()

    asyncio.run(run())
    wait_for(lambda: not fleet.hub.queues["finance-3"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(WorkOrder(task=order()).model_dump_json().encode(), id="another-submitter"),
        pytest.param(b"{}", id="nothing"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b'{"version": 2, "task": {}}', id="a-later-version"),
        pytest.param(b'file:{"name": "x", "sha256": "' + b"0" * 64 + b'", "size": 1, "owner": "r-1"}', id="no-file"),
    ],
)
def test_work_that_is_not_valid_is_dropped_and_the_next_is_done(fleet, served, body):
    supervisor, surface = served
    send(fleet, "intruder", body)
    assert supervisor.pending() == ()
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone("finance-3:memo:finance-3", request="sum")).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["sum"]


def test_id_of_a_task_of_the_machine_itself_can_not_be_taken(fleet, served):
    supervisor, surface = served
    own = supervisor.submit(Task(id="r-1", request="mine", target="memo:finance-3"))
    assert own.result(PATIENCE).ok
    send(fleet, "desk", WorkOrder(task=order(request="theirs")).model_dump_json().encode())
    assert [text for _, _, text in surface.effects] == ["mine"]

    async def result():
        engine = MemoryEngine(fleet.hub, "desk")
        await engine.open()
        entry = await engine.get(Bucket.RESULTS, "desk.finance-3.r-1")
        await engine.close()
        return entry

    said = WorkResult.model_validate_json(asyncio.run(result()).value).result
    assert said.outcome is Outcome.FAILED
    assert "the task id 'r-1' was used before" in said.causes[0].reason


def test_result_of_another_machine_does_not_count(fleet, served):
    _, surface = served
    here = fleet.machine("desk", serves=False)
    fleet.hub.most_work = 0  # nothing reaches the machine itself
    assert not fleet.submit(here, lone("finance-3:memo:finance-3")).result(PATIENCE).ok
    fleet.hub.most_work = 10
    lie = WorkResult(result=TaskResult(task_id="x", outcome=Outcome.FINISHED, output="a lie"))

    async def lies():
        engine = MemoryEngine(fleet.hub, "intruder")
        await engine.open()
        async for entry in engine.watch(Bucket.SIGNALS, "finance-3"):
            if entry is not None and entry.value is not None:
                task_id = entry.key.rpartition(".")[2]
                await engine.put(Bucket.RESULTS, f"desk.intruder.{task_id}", lie.model_dump_json().encode())
                break
        await engine.close()

    async def both():
        lying = asyncio.ensure_future(lies())
        handle = await asyncio.to_thread(here.submit, lone("finance-3:memo:finance-3", request="sum"))
        await asyncio.wait_for(lying, PATIENCE)
        return await asyncio.to_thread(handle.result, PATIENCE)

    result = asyncio.run(both())
    assert (result.ok, result.output) != (True, "a lie")
    wait_for(lambda: [text for _, _, text in surface.effects] == ["sum"])
