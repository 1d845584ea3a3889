"""LLM_INTERACTION: what the model is asked, and what becomes of an answer that can't be used."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from callboard import EventName, FunctionModel, ModelAnswer, Outcome, Task
from callboard.actors.models import Expected
from callboard.messages import Cause, Phase, StepDone, StepFailed, SubtaskResult
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
    subtask = SubtaskResult(run_id="t/1", number=1, request="x", address="app/a/b", outcome=Outcome.FINISHED)
    run = here.run(subtasks=(subtask,), plan=("later",), asked=4, notes=("a remark",), steps=0)
    await here.pipeline.process(run)
    [request] = asked
    assert (request.address, request.kind, request.task_id, request.run_id) == ("app/memo/one", "app", "t", "t/1")
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


UNUSABLE = [
    pytest.param("certainly!", "the answer is not JSON", id="no-json"),
    pytest.param("[]", "the answer must be one JSON object, not a list", id="no-object"),
    pytest.param({}, "the answer has no Status; legal now are: CONTINUE", id="no-status"),
    pytest.param({"Status": "ASSIGN"}, "Status: 'ASSIGN' is not legal now; legal are: CONTINUE", id="illegal-status"),
    pytest.param({"Status": "FINISH", "Mood": "good"}, "Mood: unknown key", id="unknown-key"),
    pytest.param(
        {"Status": "FINISH", "Function": "print"},
        "there is no tool 'print'; there are: append, explode, read, write",
        id="unknown-tool",
    ),
    pytest.param(
        {"Status": "FINISH", "Function": "write", "ControlLabel": "field-9", "Args": {"text": "a"}},
        "there is no control 'field-9'; there are: field-1 (field-1)",
        id="unknown-control",
    ),
    pytest.param(
        {"Status": "FINISH", "Function": "write", "ControlLabel": "field-1", "ControlText": "Name"},
        "there is no control 'field-1' with the name 'Name'; there are: field-1 (field-1)",
        id="another-control",
    ),
    pytest.param(
        {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1"}},
        "write: text: Field required",
        id="missing-argument",
    ),
    pytest.param(
        {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "a", "target": "x"}},
        "write has no argument 'target'; it takes: control_id, text",
        id="bound-argument",
    ),
    pytest.param(
        {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": ["a"]}},
        "write: text: Input should be a valid string",
        id="wrong-type",
    ),
]


@pytest.mark.parametrize(("answer", "reason"), UNUSABLE)
async def test_an_unusable_answer_goes_back_with_the_reason_and_nothing_is_done(stage, answer, reason):
    reasons = []

    def model(request):
        reasons.append(request.reasons)
        return FINISH if request.reasons else answer

    here = stage(model)
    assert (await decided(here)).status == "FINISH"
    assert reasons[0] == ()
    assert len(reasons[1]) == 1
    assert reasons[1][0].startswith(reason)
    assert here.surface.effects == []


async def test_each_repair_is_told_counted_and_added_to_the_reasons(stage):
    asked = []

    def model(request):
        asked.append((request.call, len(request.reasons)))
        return FINISH if request.call == 3 else {"Status": f"WISH {request.call}"}

    here = stage(model, limits={"repairs": 2})
    done = await here.pipeline.process(here.run())
    assert asked == [(1, 0), (2, 1), (3, 2)]
    assert (done.usage.model_calls, done.usage.repairs) == (3, 2)
    told = here.events(EventName.MODEL_REPAIRED)
    assert [event.data["attempt"] for event in told] == [1, 2]
    assert "'WISH_1' is not legal now" in told[0].data["reason"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
async def test_after_the_last_repair_the_phase_fails_and_nothing_is_done(stage, repairs):
    calls = []

    def model(request):
        calls.append(request.call)
        return {"Status": "ALMOST", "Function": "write", "Args": {"control_id": "field-1", "text": "a"}}

    here = stage(model, limits={"repairs": repairs})
    failed = await here.pipeline.process(here.run())
    assert isinstance(failed, StepFailed)
    assert failed.phase is Phase.LLM_INTERACTION
    assert failed.causes[1].exception == "InvalidAnswerError"
    assert f"(after {repairs} repairs)" in failed.causes[1].reason
    assert len(calls) == repairs + 1
    assert here.surface.effects == []


async def test_the_calls_of_a_model_that_gave_no_usable_answer_count(stage):
    answer = ModelAnswer(content={"Status": "ALMOST"}, input_tokens=10, output_tokens=3)
    here = stage(lambda _: answer, limits={"repairs": 2})
    failed = await here.pipeline.process(here.run())
    used = failed.usage
    assert (used.model_calls, used.repairs, used.input_tokens, used.output_tokens) == (3, 2, 30, 9)


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


async def test_without_a_model_the_phase_fails_and_says_which_setting_is_missing(stage):
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
    runs = [dataclasses.replace(r, assign=r.assign.model_copy(update={"run_id": f"t/{n}"})) for n, r in enumerate(runs)]
    steps = [asyncio.create_task(here.pipeline.process(run)) for run in runs]
    refused = await steps[2]
    assert refused.outcome is Outcome.OUT_OF_BUDGET
    asked.set()
    assert [type(await step) for step in steps[:2]] == [StepDone, StepDone]
    assert calls == ["t/0", "t/1"]


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


def test_the_number_of_a_call_goes_on_after_a_failed_step(start):
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
