"""MEMORY_UPDATE and DATA_COLLECTION: an agent's memory of its steps, and its view."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from callboard import Task
from callboard.messages import (
    CommandResult,
    Decision,
    Observation,
    ResultStatus,
    StepDone,
    StepRecord,
)
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, write


def seen(request):
    return [(record.step, [result.value for result in record.results]) for record in request.memory]


async def test_a_step_leaves_a_typed_record_of_what_was_seen_decided_and_done(stage):
    here = stage([{**write("a"), "Thought": "because"}])
    done = await here.pipeline.process(here.run())
    assert isinstance(done, StepDone)
    record = done.record
    assert isinstance(record, StepRecord)
    assert (record.step, record.status) == (1, "CONTINUE")
    assert isinstance(record.observation, Observation)
    assert [control.detail for control in record.observation.controls] == [{"text": ""}]
    assert isinstance(record.decision, Decision)
    assert (record.decision.status, record.decision.thought) == ("CONTINUE", "because")
    [result] = record.results
    assert isinstance(result, CommandResult)
    assert (result.tool, result.status, result.value) == ("write", ResultStatus.SUCCESS, "a")


async def test_memory_record_can_not_be_changed(stage):
    here = stage([write("a")])
    record = (await here.pipeline.process(here.run())).record
    with pytest.raises(ValidationError, match="frozen"):
        record.step = 2
    with pytest.raises(ValidationError, match="frozen"):
        record.decision.status = "FINISH"


async def test_the_pipeline_keeps_nothing_between_runs(stage):
    here = stage(lambda request: write(str(len(request.memory))))
    first = await here.pipeline.process(here.run())
    again = await here.pipeline.process(here.run())
    after = await here.pipeline.process(here.run().apply(first))
    assert [done.record.results[0].value for done in (first, again, after)] == ["0", "0", "1"]


def test_a_model_sees_all_earlier_steps_of_its_task(start):
    memories = []

    def app(request):
        memories.append(seen(request))
        return [write("a"), write("b"), FINISH][request.call - 1]

    assert start(app=app).submit(Task(request="write", target="memo:one")).result(PATIENCE).ok
    assert memories == [[], [(1, ["a"])], [(1, ["a"]), (2, ["b"])]]


def test_an_app_agent_reused_by_two_tasks_sees_nothing_of_the_other(start):
    memories = {"first": [], "second": []}

    def app(request):
        memories[request.task_id].append((seen(request), request.plan, request.subtasks, request.observation.notes))
        return [{**write(request.task_id), "Plan": [request.task_id]}, FINISH][request.call - 1]

    supervisor = start(app=app)
    for name in memories:
        assert supervisor.submit(Task(id=name, request="write", target="memo:one")).result(PATIENCE).ok
    for name, steps in memories.items():
        assert steps == [([], (), (), ()), ([(1, [name])], (name,), (), ())]


def test_an_app_agent_remembers_its_earlier_subtask_of_the_same_task(start):
    memories = []

    def app(request):
        memories.append((request.step, seen(request)))
        return write(f"text {request.call}", "FINISH")

    assert start(host=[ASSIGN, ASSIGN, FINISH], app=app).submit(Task(request="write")).result(PATIENCE).ok
    assert memories == [(1, []), (1, [(1, ["text 1"])])]


def test_a_host_agent_sees_what_its_subtasks_left(start):
    left = []

    def host(request):
        left.append([(done.number, done.outcome.value, done.output) for done in request.subtasks])
        return [ASSIGN, ASSIGN, FINISH][request.call - 1]

    app = [write("a", "FINISH"), {"Status": "FAIL"}]
    assert start(host=host, app=app).submit(Task(request="write")).result(PATIENCE).ok
    assert left == [[], [(1, "finished", "a")], [(1, "finished", "a"), (2, "failed", None)]]


# An agent's view


async def test_an_agent_of_a_target_sees_its_controls_and_the_systems_notes(stage):
    here = stage([FINISH])
    done = await here.pipeline.process(here.run(notes=("mind the gap",)))
    observation = done.record.observation
    assert [control.id for control in observation.controls] == ["field-1"]
    assert observation.notes == ("mind the gap",)
    assert observation.targets == ()


async def test_a_host_agent_sees_the_targets_and_no_controls(stage):
    here = stage([FINISH], target=None)
    done = await here.pipeline.process(here.run())
    observation = done.record.observation
    assert [target.id for target in observation.targets] == ["memo:one"]
    assert observation.controls == ()


def test_a_surface_that_can_not_be_listed_is_reported_and_hides_no_other(start):
    class Broken(MemoryServer):
        def targets(self):
            msg = "no network"
            raise OSError(msg)

    observed = []

    def host(request):
        observed.append(request.observation)
        return FINISH

    surfaces = [Broken(name="far"), MemoryServer(MemoryServer.window())]
    assert start(host=host, servers=surfaces).submit(Task(request="write")).result(PATIENCE).ok
    assert [target.id for target in observed[0].targets] == ["memo:one"]
    assert observed[0].notes == ("the targets of far can't be listed: no network",)
