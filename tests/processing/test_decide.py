"""LLM_INTERACTION: the model's requests, and the cost of its calls."""

from __future__ import annotations

import asyncio
import dataclasses

from callboard import EventName, FunctionModel, ModelAnswer, Outcome, Task
from callboard.messages import Cause, StepDone, SubtaskResult
from callboard.models import Expected
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE


async def decided(here, run=None):
    done = await here.pipeline.process(run or here.run())
    assert isinstance(done, StepDone), done
    return done.record.decision


async def test_the_model_is_asked_with_all_that_it_may_decide_on(stage):
    asked = []

    def model(request):
        asked.append(request)
        return FINISH

    here = stage(model)
    subtask = SubtaskResult(run_id="t~1", number=1, request="x", address="app/a/b", outcome=Outcome.FINISHED)
    run = here.run(subtasks=(subtask,), plan=("later",), asked=4, notes=("a remark",), steps=0)
    await here.pipeline.process(run)
    [request] = asked
    assert (request.address, request.kind, request.task_id, request.run_id) == ("app/memo/one", "app", "t", "t~1")
    assert (request.step, request.call, request.status) == (1, 5, "CONTINUE")
    assert request.statuses == ("CONTINUE", "SCREENSHOT", "FINISH", "FAIL", "PENDING", "CONFIRM", "ERROR")
    assert (request.instructions, request.task_request, request.request) == (
        "the prompt",
        "the whole task",
        "write it down",
    )
    assert (request.target, request.plan, request.subtasks) == (here.target, ("later",), (subtask,))
    assert request.observation.notes == ("a remark",)
    assert [control.id for control in request.observation.controls] == ["field-1"]
    assert [tool.name for tool in request.tools] == ["append", "explode", "read", "write"]
    assert "target" not in request.tools[0].schema["properties"]


async def test_the_tokens_of_all_calls_are_counted(stage):
    def model(request):
        content = FINISH if request.reasons else {}
        return ModelAnswer(content=content, input_tokens=10, output_tokens=3)

    here = stage(model)
    done = await here.pipeline.process(here.run())
    assert (done.usage.input_tokens, done.usage.output_tokens) == (20, 6)
    [answered] = here.events(EventName.MODEL_ANSWERED)
    assert answered.data["status"] == "FINISH"


async def test_an_exception_of_the_model_fails_the_phase_and_is_not_repaired(stage):
    calls = []

    def model(request):
        calls.append(request)
        msg = "quota"
        raise ConnectionError(msg)

    here = stage(model)
    failed = await here.pipeline.process(here.run())
    assert failed.causes[1] == Cause(reason="quota", where="app/memo/one", exception="ConnectionError")
    assert len(calls) == 1


async def test_decide_without_a_model_names_the_missing_setting(stage):
    here = stage()
    failed = await here.pipeline.process(here.run())
    assert failed.causes[1].reason == "no model is set for app agents: set models.app, or pass one"


async def test_a_model_that_takes_too_long_fails_the_phase(stage):
    async def model(_request):
        here.services.clock.advance(61)
        await asyncio.Event().wait()

    here = stage(model, limits={"model_seconds": 60})
    failed = await here.pipeline.process(here.run())
    assert failed.causes[1].exception == "ModelTimeoutError"
    assert failed.causes[1].reason.startswith("the model gave no answer within 60 s")


async def test_agents_of_one_task_that_ask_at_once_can_not_overspend_together(stage):
    calls, asked = [], asyncio.Event()

    async def model(request):
        calls.append(request.run_id)
        await asked.wait()
        return ModelAnswer(content=FINISH, input_tokens=10, cost=0.0)

    here = stage(FunctionModel(model, expects=lambda _request: Expected(tokens=10)), budget={"task": {"tokens": 20}})
    runs = [here.run() for _ in range(3)]
    runs = [dataclasses.replace(r, assign=r.assign.model_copy(update={"run_id": f"t~{n}"})) for n, r in enumerate(runs)]
    steps = [asyncio.create_task(here.pipeline.process(run)) for run in runs]
    refused = await steps[2]
    assert refused.outcome is Outcome.OUT_OF_BUDGET
    asked.set()
    assert [type(await step) for step in steps[:2]] == [StepDone, StepDone]
    assert calls == ["t~0", "t~1"]


async def test_a_timeout_of_the_models_own_keeps_its_words(stage):
    def model(_request):
        msg = "the provider's gateway"
        raise TimeoutError(msg)

    here = stage(model)
    failed = await here.pipeline.process(here.run())
    assert (failed.causes[1].exception, failed.causes[1].reason) == ("TimeoutError", "the provider's gateway")


# The plan


async def test_a_plan_is_read_from_a_list_or_one_line_without_blank_lines(stage):
    assert (await decided(stage([{**FINISH, "Plan": ["a", " ", "b"]}]))).plan == ("a", "b")
    assert (await decided(stage([{**FINISH, "Plan": "a"}]))).plan == ("a",)


def test_a_plan_is_kept_and_shown_to_the_model_until_it_gives_another(start):
    plans = []
    answers = [
        {"Status": "CONTINUE", "Plan": ["a", "b"]},
        {"Status": "CONTINUE"},
        {"Status": "CONTINUE", "Plan": ["c"]},
        FINISH,
    ]

    def app(request):
        plans.append(request.plan)
        return answers[request.call - 1]

    assert start(app=app).submit(Task(request="write", target="memo:one")).result(PATIENCE).ok
    assert plans == [(), ("a", "b"), ("a", "b"), ("c",)]


# Calls


def test_call_numbers_continue_after_a_failed_step(start):
    calls = []
    device = MemoryServer.device()

    def mobile(request):
        calls.append(request.call)
        return FINISH if len(calls) > 2 else {"Status": "ALMOST"}

    assign = {"Status": "ASSIGN", "ControlText": device.id}
    host = [assign, assign, FINISH]
    supervisor = start(host=host, mobile=mobile, servers=[MemoryServer(device)], limits={"repairs": 1})
    assert supervisor.submit(Task(request="write")).result(PATIENCE).ok
    assert calls == [1, 2, 3]
