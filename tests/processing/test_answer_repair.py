"""Repairs of invalid answers, and their limit."""

from __future__ import annotations

import pytest

from callboard import EventName, ModelAnswer
from callboard.messages import Phase, StepDone, StepFailure
from support import FINISH


async def decided(here):
    done = await here.pipeline.process(here.run())
    assert isinstance(done, StepDone), done
    return done.record.decision


UNUSABLE = [
    pytest.param("certainly!", "the answer is not JSON", id="no-json"),
    pytest.param("[]", "the answer must be one JSON object, and is a list", id="no-object"),
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


async def test_repair_has_an_event_is_counted_and_adds_its_reason(stage):
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
    assert isinstance(failed, StepFailure)
    assert failed.phase is Phase.LLM_INTERACTION
    assert failed.causes[1].exception == "InvalidAnswerError"
    assert f"(after {repairs} repair" in failed.causes[1].reason
    assert len(calls) == repairs + 1
    assert here.surface.effects == []


async def test_the_calls_of_a_model_that_gave_no_usable_answer_count(stage):
    answer = ModelAnswer(content={"Status": "ALMOST"}, input_tokens=10, output_tokens=3)
    here = stage(lambda _: answer, limits={"repairs": 2})
    failed = await here.pipeline.process(here.run())
    used = failed.usage
    assert (used.model_calls, used.repairs, used.input_tokens, used.output_tokens) == (3, 2, 30, 9)
