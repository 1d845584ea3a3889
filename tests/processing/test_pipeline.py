"""The pipeline: four phases in order, what one hands to the next, and what becomes of a failure."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from callboard.actors.processing import Acted, Strategies, pipeline
from callboard.messages import (
    Action,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Captured,
    Cause,
    CommandResult,
    Decision,
    EventName,
    Observation,
    Phase,
    Question,
    ResultStatus,
    StepDone,
    StepFailed,
    StepRecord,
)

SEEN = Observation(text="what is seen")
DECISION = Decision(status="CONTINUE", comment="so it goes")
RESULTS = tuple(
    CommandResult(call_id=str(number), tool="write", status=status)
    for number, status in enumerate((ResultStatus.SUCCESS, ResultStatus.FAILURE, ResultStatus.SKIPPED))
)
ACTED = Acted(DECISION, results=RESULTS, held=(Action(tool="write"),), held_by_policy="rule 1")
RECORD = StepRecord(step=1, status="CONTINUE", observation=SEEN, decision=DECISION, results=RESULTS)


class Phases:
    """Strategies that note what they get, and raise where a test wants it."""

    def __init__(self, failing=None, error=None):
        self.ran = []
        self._failing = failing
        self._error = error

    def _note(self, phase, *given):
        self.ran.append((phase, *given))
        if phase is self._failing:
            raise self._error

    async def collect(self, context, run):
        self._note(Phase.DATA_COLLECTION)
        return SEEN

    async def decide(self, context, run, observation):
        context.meter.add(model_calls=2, repairs=1)
        self._note(Phase.LLM_INTERACTION, observation)
        return DECISION

    async def act(self, context, run, observation, decision):
        context.meter.add(commands=2)
        self._note(Phase.ACTION_EXECUTION, observation, decision)
        return ACTED

    async def remember(self, context, run, observation, acted):
        self._note(Phase.MEMORY_UPDATE, observation, acted)
        return RECORD

    @property
    def strategies(self):
        return Strategies(collect=self.collect, decide=self.decide, act=self.act, remember=self.remember)


def with_phases(stage, phases, middleware=()):
    return dataclasses.replace(stage.pipeline, strategies=phases.strategies, middleware=middleware)


async def test_the_phases_run_in_order_and_hand_on_what_they_made(stage):
    here, phases = stage(), Phases()
    await with_phases(here, phases).process(here.run())
    assert phases.ran == [
        (Phase.DATA_COLLECTION,),
        (Phase.LLM_INTERACTION, SEEN),
        (Phase.ACTION_EXECUTION, SEEN, DECISION),
        (Phase.MEMORY_UPDATE, SEEN, ACTED),
    ]


async def test_a_step_that_ran_gives_its_record_what_is_held_and_what_it_used(stage):
    here = stage()
    done = await with_phases(here, Phases()).process(here.run())
    assert isinstance(done, StepDone)
    assert (done.record, done.held, done.held_by_policy) == (RECORD, ACTED.held, "rule 1")
    used = done.usage
    assert (used.steps, used.model_calls, used.repairs, used.commands) == (1, 2, 1, 2)
    assert used.seconds > 0


@pytest.mark.parametrize("phase", Phase)
async def test_a_phase_that_raises_fails_the_step_and_is_named_and_no_later_one_runs(stage, phase):
    here, phases = stage(), Phases(phase, OSError("disk full"))
    failed = await with_phases(here, phases).process(here.run())
    assert isinstance(failed, StepFailed)
    assert failed.phase is phase
    assert failed.causes == (
        Cause(reason=f"{phase.value} failed: disk full", where="app/memo/one", exception="PhaseError"),
        Cause(reason="disk full", where="app/memo/one", exception="OSError"),
    )
    assert [ran for ran, *_ in phases.ran] == list(Phase)[: list(Phase).index(phase) + 1]


async def test_a_failed_step_keeps_the_chain_of_causes(stage):
    error = RuntimeError("outer")
    error.__cause__ = KeyError("inner")
    here = stage()
    failed = await with_phases(here, Phases(Phase.LLM_INTERACTION, error)).process(here.run())
    assert [cause.exception for cause in failed.causes] == ["PhaseError", "RuntimeError", "KeyError"]


async def test_an_exception_without_a_text_is_named_by_its_class(stage):
    here = stage()
    failed = await with_phases(here, Phases(Phase.LLM_INTERACTION, ValueError())).process(here.run())
    assert [cause.reason for cause in failed.causes] == ["llm_interaction failed: ValueError", "ValueError"]


@pytest.mark.parametrize(
    ("phase", "calls"),
    [
        (Phase.DATA_COLLECTION, 0),
        (Phase.LLM_INTERACTION, 2),
        (Phase.ACTION_EXECUTION, 2),
        (Phase.MEMORY_UPDATE, 2),
    ],
)
async def test_a_failed_step_counts_what_the_phases_before_used(stage, phase, calls):
    here = stage()
    failed = await with_phases(here, Phases(phase, OSError("disk full"))).process(here.run())
    assert (failed.usage.steps, failed.usage.model_calls) == (1, calls)


@pytest.mark.parametrize("phase", Phase)
async def test_a_cancel_is_no_failure_and_goes_through(stage, phase):
    here = stage()
    with pytest.raises(asyncio.CancelledError):
        await with_phases(here, Phases(phase, asyncio.CancelledError())).process(here.run())


async def test_middleware_wraps_every_phase_the_first_one_outermost(stage):
    here, noted = stage(), []

    def named(name):
        async def wrap(call, proceed):
            noted.append((name, "before", call.phase))
            made = await proceed()
            noted.append((name, "after", call.phase))
            return made

        return wrap

    await with_phases(here, Phases(), (named("outer"), named("inner"))).process(here.run())
    assert noted == [
        (name, when, phase)
        for phase in Phase
        for name, when in (("outer", "before"), ("inner", "before"), ("inner", "after"), ("outer", "after"))
    ]


async def test_middleware_that_raises_fails_the_phase_that_it_wraps(stage):
    async def refuse(call, proceed):
        if call.phase is Phase.ACTION_EXECUTION:
            msg = "not on a Sunday"
            raise PermissionError(msg)
        return await proceed()

    here, phases = stage(), Phases()
    failed = await with_phases(here, phases, (refuse,)).process(here.run())
    assert failed.phase is Phase.ACTION_EXECUTION
    assert len(phases.ran) == 2


# What the other states ask


async def test_an_approval_is_asked_for_with_what_the_agent_sees_and_holds(stage):
    here = stage(limits={"approval_seconds": 60})
    held = (Action(tool="write", arguments={"text": "a"}),)
    run = here.run("CONFIRM", held=held, held_by_policy="rule 1", job=4)
    asked = await here.pipeline.process_confirmation(run)
    assert isinstance(asked, ApprovalRequest)
    assert (asked.id, asked.task_id, asked.run_id, asked.token) == ("t/1/ask-4", "t", "t/1", 7)
    assert (asked.address, asked.target, asked.actions) == ("app/memo/one", here.target, held)
    assert (asked.reason, asked.deadline) == ("rule 1", 1060.0)
    assert [control.id for control in asked.observation.controls] == ["field-1"]


async def test_an_approval_that_the_model_wants_gives_its_comment_as_the_reason(stage):
    here = stage()
    asked = await here.pipeline.process_confirmation(here.run("CONFIRM", memory=(RECORD,), steps=1))
    assert asked.reason == "so it goes"


async def test_where_approvals_are_switched_off_the_approval_is_unattended(stage):
    here = stage(system={"safe_guard": False})
    said = await here.pipeline.process_confirmation(here.run("CONFIRM"))
    assert isinstance(said, ApprovalAnswer)
    assert (said.approved, said.unattended, said.by) == (True, True, "")


async def test_an_approval_of_what_can_not_be_seen_fails_the_step(stage):
    here, phases = stage(), Phases(Phase.DATA_COLLECTION, OSError("dark"))
    failed = await with_phases(here, phases).process_confirmation(here.run("CONFIRM"))
    assert (type(failed), failed.phase) == (StepFailed, Phase.DATA_COLLECTION)


async def test_a_question_is_asked_with_its_deadline_and_no_phase_runs(stage):
    here, phases = stage(limits={"question_seconds": 60}), Phases()
    questions = (AskedQuestion(text="which?", choices=("a", "b")),)
    record = RECORD.model_copy(update={"decision": Decision(status="PENDING", questions=questions)})
    asked = await with_phases(here, phases).process_asker(here.run("PENDING", memory=(record,), steps=1, job=2))
    assert isinstance(asked, Question)
    assert (asked.id, asked.questions, asked.deadline) == ("t/1/ask-2", questions, 1060.0)
    assert phases.ran == []


async def test_where_questions_are_switched_off_the_answer_is_nobody(stage):
    here = stage(system={"ask_question": False})
    said = await here.pipeline.process_asker(here.run("PENDING", job=2))
    assert said == Answer(id="t/1/ask-2", task_id="t", nobody=True)


async def test_a_capture_only_looks(stage):
    here, phases = stage(), Phases()
    said = await with_phases(here, phases).capture(here.run("FAIL"))
    assert isinstance(said, Captured)
    assert said.observation == SEEN
    assert phases.ran == [(Phase.DATA_COLLECTION,)]


async def test_a_capture_of_what_can_not_be_seen_is_empty_and_no_failure(stage):
    here, phases = stage(), Phases(Phase.DATA_COLLECTION, OSError("dark"))
    said = await with_phases(here, phases).capture(here.run("FAIL"))
    assert isinstance(said, Captured)
    assert said.observation is None


async def test_resuming_looks_again_acts_and_remembers_and_asks_no_model(stage):
    here = stage()
    held = (Action(tool="write", arguments={"control_id": "field-1", "text": "a"}),)
    run = here.run("CONFIRM", held=held, memory=(RECORD,), steps=1)
    done = await here.pipeline.process_resume(run)
    assert isinstance(done, StepDone)
    assert [event.phase for event in here.events(EventName.PHASE_ENDED)] == [
        "data_collection",
        "action_execution",
        "memory_update",
    ]
    assert (done.record.step, done.record.status, done.usage.commands) == (2, "CONFIRM", 1)
    assert here.surface.deeds == [("memo:one", "field-1", "a")]


async def test_a_pipeline_that_is_under_no_lease_changes_nothing(stage):
    here = stage([{"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "a"}}])
    done = await pipeline(here.pipeline.context.kind, here.services).process(here.run())
    assert [result.status for result in done.record.results] == [ResultStatus.FAILURE]
    assert here.surface.deeds == []
