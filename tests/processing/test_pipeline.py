"""The pipeline: four phases in order, the values handed on, and their failures."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from callboard.actors.processing import AGENTS, Acted, Strategies, pipeline
from callboard.messages import (
    Action,
    Answer,
    AskedQuestion,
    Captured,
    Cause,
    CommandResult,
    Decision,
    EventName,
    Held,
    Observation,
    Outcome,
    Phase,
    Question,
    ResultStatus,
    StepDone,
    StepFailure,
    StepRecord,
)

SEEN = Observation(text="what is seen")
DECISION = Decision(status="CONTINUE", comment="so it goes")
RESULTS = tuple(
    CommandResult(call_id=str(number), tool="write", status=status)
    for number, status in enumerate((ResultStatus.SUCCESS, ResultStatus.FAILURE, ResultStatus.SKIPPED))
)
ACTED = Acted(DECISION, results=RESULTS, held=(Action(tool="write"),), held_by=Held.POLICY, held_why="rule 1")
RECORD = StepRecord(step=1, status="CONTINUE", observation=SEEN, decision=DECISION, results=RESULTS)


class Phases:
    """Strategies that note their input, and raise where a test wants it."""

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
        context.meter.amounts["model_calls"] += 2
        context.meter.amounts["repairs"] += 1
        self._note(Phase.LLM_INTERACTION, observation)
        return DECISION

    async def act(self, context, run, observation, decision):
        context.meter.amounts["commands"] += 2
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
    assert (done.record, done.held, done.held_why) == (RECORD, ACTED.held, "rule 1")
    used = done.usage
    assert (used.steps, used.model_calls, used.repairs, used.commands) == (1, 2, 1, 2)
    assert used.seconds > 0


MEANS = ("the target could not be observed", "the model gave no usable answer", "the actions could not be run")
MEANS = dict(zip(Phase, (*MEANS, "the step could not be recorded"), strict=True))


@pytest.mark.parametrize("phase", Phase)
async def test_a_phase_that_raises_fails_the_step_and_skips_the_later_phases(stage, phase):
    here, phases = stage(), Phases(phase, OSError("disk full"))
    failed = await with_phases(here, phases).process(here.run())
    assert isinstance(failed, StepFailure)
    assert failed.phase is phase
    assert failed.causes == (
        Cause(reason=f"{MEANS[phase]}: disk full", where="app/memo/one", exception="PhaseError"),
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
    assert [cause.reason for cause in failed.causes] == ["the model gave no usable answer: ValueError", "ValueError"]


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


# Budgets and time


CONTINUES = {"Status": "CONTINUE"}


@pytest.mark.parametrize("node", ["task", "subtask", "step"])
async def test_a_model_is_not_called_past_any_budget_above_it(stage, node):
    asked = []
    here = stage(lambda request: asked.append(request) or CONTINUES, budget={node: {"model_calls": 0}})
    failed = await here.pipeline.process(here.run())
    assert isinstance(failed, StepFailure)
    assert (failed.phase, failed.outcome) == (Phase.LLM_INTERACTION, Outcome.OUT_OF_BUDGET)
    assert failed.causes[-1].exception == "OutOfBudgetError"
    assert asked == []


async def test_a_step_past_its_budget_does_nothing(stage):
    here, phases = stage(budget={"subtask": {"steps": 1}}), Phases()
    here_with = with_phases(here, phases)
    assert isinstance(await here_with.process(here.run()), StepDone)
    ran = len(phases.ran)
    failed = await here_with.process(here.run())
    assert (type(failed), failed.phase, failed.outcome) == (StepFailure, None, Outcome.OUT_OF_BUDGET)
    assert len(phases.ran) == ran


async def test_held_action_is_resumed_although_the_budget_is_used_up(stage):
    here = stage([{**CONTINUES, "Function": "read", "Args": {"control_id": "field-1"}}], budget={"task": {"steps": 1}})
    run = here.run(held=(Action(tool="read", arguments={"control_id": "field-1"}),))
    run = run.apply(await here.pipeline.process(run))
    held = dataclasses.replace(run, held=run.records[-1].decision.actions)
    done = await here.pipeline.process_resume(held)
    assert isinstance(done, StepDone)
    assert [result.status for result in done.record.results] == [ResultStatus.SUCCESS]
    assert done.record.resumed


async def test_at_a_budget_limit_a_person_is_asked_if_the_settings_say_so(stage):
    budget = {"subtask": {"model_calls": 0}, "at_limit": "ask"}
    here = stage([CONTINUES], budget=budget, limits={"question_seconds": 60})
    asked = await here.pipeline.process(here.run(job=3))
    assert isinstance(asked, Question)
    [question] = asked.questions
    assert "has used its 0 model calls" in question.text
    assert (asked.id, asked.deadline, question.choices) == ("t~1~ask-1.3", 1060.0, ("go on", "stop"))


async def test_budget_limit_ends_the_work_when_questions_are_off(stage):
    budget = {"subtask": {"model_calls": 0}, "at_limit": "ask"}
    here = stage([CONTINUES], budget=budget, system={"ask_question": False})
    failed = await here.pipeline.process(here.run())
    assert (type(failed), failed.outcome) == (StepFailure, Outcome.OUT_OF_BUDGET)


async def test_going_on_gives_as_much_again_and_no_more(stage):
    here = stage([CONTINUES] * 9, budget={"subtask": {"model_calls": 2}, "at_limit": "ask"})
    ended = []
    run = here.run()
    for _ in range(7):
        said = await here.pipeline.process(run)
        ended.append(type(said))
        if isinstance(said, StepDone):
            run = run.apply(said)
        else:
            answer = Answer(id=said.id, task_id="t", texts=("go on",))
            run = run.apply(said).apply(answer)
    assert ended == [StepDone, StepDone, Question, StepDone, StepDone, Question, StepDone]


async def test_a_step_that_takes_too_long_is_timed_out_and_keeps_what_was_done(stage):
    here = stage(
        [{**CONTINUES, "Function": "write", "Args": {"control_id": "field-1", "text": "a"}}],
        limits={"step_seconds": 60},
    )

    async def never(context, run, observation, acted):
        here.services.clock.advance(61)
        await asyncio.Event().wait()

    strategies = dataclasses.replace(here.pipeline.strategies, remember=never)
    failed = await dataclasses.replace(here.pipeline, strategies=strategies).process(here.run())
    assert (type(failed), failed.outcome) == (StepFailure, Outcome.TIMED_OUT)
    assert failed.causes[0].reason == "the step took longer than 60 s"
    assert [(result.tool, result.status) for result in failed.results] == [("write", ResultStatus.SUCCESS)]
    assert failed.usage.commands == 1


async def test_an_approval_of_what_can_not_be_seen_fails_the_step(stage):
    here, phases = stage(), Phases(Phase.DATA_COLLECTION, OSError("dark"))
    failed = await with_phases(here, phases).process_confirmation(here.run("CONFIRM"))
    assert (type(failed), failed.phase) == (StepFailure, Phase.DATA_COLLECTION)


async def test_a_question_is_asked_with_its_deadline_and_no_phase_runs(stage):
    here, phases = stage(limits={"question_seconds": 60}), Phases()
    questions = (AskedQuestion(text="which?", choices=("a", "b")),)
    record = RECORD.model_copy(update={"decision": Decision(status="PENDING", questions=questions)})
    asked = await with_phases(here, phases).process_asker(here.run("PENDING", memory=(record,), steps=1, job=2))
    assert isinstance(asked, Question)
    assert (asked.id, asked.questions, asked.deadline) == ("t~1~ask-1.2", questions, 1060.0)
    assert phases.ran == []


async def test_question_has_an_empty_answer_when_questions_are_off(stage):
    here = stage(system={"ask_question": False})
    said = await here.pipeline.process_asker(here.run("PENDING", job=2))
    assert said == Answer(id="t~1~ask-1.2", task_id="t", nobody=True)


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
    assert here.events(EventName.PHASE_ENDED) == []  # the end of the step tells them
    assert [ended["phase"] for ended in here.pipeline.context.lease.spent.phases] == [
        "data_collection",
        "action_execution",
        "memory_update",
    ]
    assert (done.record.step, done.record.status, done.usage.commands) == (2, "CONFIRM", 1)
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_a_pipeline_that_is_under_no_lease_changes_nothing(stage):
    here = stage([{"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "a"}}])
    done = await pipeline(AGENTS[here.pipeline.context.kind], here.services).process(here.run())
    assert [result.status for result in done.record.results] == [ResultStatus.FAILURE]
    assert here.surface.effects == []
