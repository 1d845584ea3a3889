"""ACTION_EXECUTION: lists of actions, the policy before each, and what happens after a failure."""

from __future__ import annotations

import pytest

from callboard import EventName
from callboard.messages import Action, ControlRef, ResultStatus, StepDone
from callboard.testing import MemoryServer

SUCCESS, FAILURE, SKIPPED = ResultStatus.SUCCESS, ResultStatus.FAILURE, ResultStatus.SKIPPED


def write(text):
    return {"function": "write", "arguments": {"control_id": "field-1", "text": text}}


EXPLODE = {"function": "explode"}
APPEND = {"function": "append", "arguments": {"control_id": "field-1", "text": "more"}}
READ = {"function": "read", "arguments": {"control_id": "field-1"}}


def answer(*actions, status="CONTINUE"):
    return [{"Status": status, "Actions": list(actions)}]


async def acted(here, run=None):
    done = await here.pipeline.process(run or here.run())
    assert isinstance(done, StepDone), done
    return done


def statuses(done):
    return [(result.tool, result.status) for result in done.record.results]


async def test_actions_run_in_order(stage):
    here = stage(answer(write("a"), APPEND, READ))
    done = await acted(here)
    assert [(result.status, result.value) for result in done.record.results] == [
        (SUCCESS, "a"),
        (SUCCESS, "amore"),
        (SUCCESS, "amore"),
    ]
    assert [result.call_id for result in done.record.results] == ["t/1.1.0", "t/1.1.1", "t/1.1.2"]
    assert here.surface.deeds == [("memo:one", "field-1", "a"), ("memo:one", "field-1", "more")]


async def test_after_one_bad_command_the_earlier_ones_stand_and_the_later_are_skipped(stage):
    here = stage(answer(write("a"), EXPLODE, APPEND, READ))
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS), ("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]
    assert [result.error for result in done.record.results] == [
        "",
        "out of paper",
        "skipped, because explode failed before it",
        "skipped, because explode failed before it",
    ]
    assert here.surface.deeds == [("memo:one", "field-1", "a")]
    assert done.usage.commands == 2


async def test_every_command_is_told_with_how_it_ended(stage):
    here = stage(answer(write("a"), EXPLODE, APPEND))
    await acted(here)
    told = here.events(EventName.COMMAND_ENDED)
    assert [(event.data["tool"], event.data["status"]) for event in told] == [
        ("write", "success"),
        ("explode", "failure"),
        ("append", "skipped"),
    ]


async def test_an_answer_without_actions_does_nothing(stage):
    done = await acted(stage([{"Status": "CONTINUE"}]))
    assert (done.record.results, done.held, done.usage.commands) == ((), (), 0)


async def test_a_control_that_is_named_beside_the_arguments_is_filled_in(stage):
    here = stage([{"Status": "CONTINUE", "ControlLabel": "field-1", "Function": "write", "Args": {"text": "a"}}])
    done = await acted(here)
    [action] = done.record.decision.actions
    assert action.arguments == {"text": "a", "control_id": "field-1"}
    assert action.control == ControlRef(id="field-1")
    assert here.surface.deeds == [("memo:one", "field-1", "a")]


async def test_under_a_void_lease_nothing_is_changed_and_the_command_failed(stage):
    here = stage(answer(write("a")))
    here.lease.void()
    done = await acted(here)
    assert statuses(done) == [("write", FAILURE)]
    assert "is void: nothing was changed" in done.record.results[0].error
    assert here.surface.deeds == []


# The policy


async def test_the_first_rule_that_matches_decides(stage):
    policy = [{"verdict": "allow", "tool": "wri*"}, {"verdict": "deny"}]
    done = await acted(stage(answer(write("a"), READ), policy=policy))
    assert statuses(done) == [("write", SUCCESS), ("read", FAILURE)]
    assert done.record.results[1].error == "denied: rule 2 of the policy"


@pytest.mark.parametrize(
    ("rule", "denied"),
    [
        ({"agent": "app/memo/*"}, "write"),
        ({"agent": "mobile/*"}, None),
        ({"tool": "append"}, "append"),
        ({"effects": ["read"]}, "read"),
        ({"effects": ["once"], "tool": "write"}, None),
    ],
)
async def test_a_rule_matches_when_all_that_it_names_matches(stage, rule, denied):
    done = await acted(stage(answer(write("a"), APPEND, READ), policy=[{"verdict": "deny", **rule}]))
    failed = [tool for tool, status in statuses(done) if status is FAILURE]
    assert failed == ([denied] if denied else [])


async def test_actions_before_a_denied_one_run_and_those_after_it_are_skipped(stage):
    here = stage(
        answer(write("a"), APPEND, READ), policy=[{"verdict": "deny", "tool": "append", "reason": "once only"}]
    )
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS), ("append", FAILURE), ("read", SKIPPED)]
    assert done.record.results[1].error == "denied: once only"
    assert [result.call_id for result in done.record.results] == ["t/1.1.0", "t/1.1.1", "t/1.1.2"]
    assert here.surface.deeds == [("memo:one", "field-1", "a")]


async def test_a_denial_after_a_failed_action_is_skipped_like_the_rest(stage):
    here = stage(answer(EXPLODE, APPEND, READ), policy=[{"verdict": "deny", "tool": "append"}])
    assert statuses(await acted(here)) == [("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]


async def test_what_was_denied_does_not_count_as_sent(stage):
    done = await acted(stage(answer(write("a")), policy=[{"verdict": "deny"}]))
    assert done.usage.commands == 0


async def test_actions_before_one_that_needs_approval_run_and_the_rest_is_held_whole(stage):
    here = stage(answer(write("a"), APPEND, READ), policy=[{"verdict": "approve", "tool": "append", "reason": "ask"}])
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS)]
    assert ([action.tool for action in done.held], done.held_by_policy) == (["append", "read"], "ask")
    assert here.surface.deeds == [("memo:one", "field-1", "a")]


async def test_after_a_failed_action_nothing_is_held_and_the_rest_is_skipped(stage):
    here = stage(answer(EXPLODE, APPEND, READ), policy=[{"verdict": "approve", "tool": "append"}])
    done = await acted(here)
    assert statuses(done) == [("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]
    assert (done.held, done.held_by_policy) == ((), "")


async def test_a_models_confirm_holds_all_actions(stage):
    here = stage(answer(write("a"), APPEND, status="CONFIRM"))
    done = await acted(here)
    assert (done.record.results, done.held_by_policy) == ((), "")
    assert [action.tool for action in done.held] == ["write", "append"]
    assert here.surface.deeds == []


async def test_each_verdict_is_told(stage):
    policy = [{"verdict": "allow", "tool": "write"}, {"verdict": "deny", "tool": "append", "reason": "no"}]
    here = stage(answer(write("a"), APPEND, READ), policy=policy)
    await acted(here)
    told = [event.data for event in here.events(EventName.POLICY_DECIDED)]
    assert told == [
        {"tool": "write", "verdict": "allow", "reason": "rule 1 of the policy"},
        {"tool": "append", "verdict": "deny", "reason": "no"},
    ]


async def test_an_agent_that_can_not_ask_is_denied_what_needs_approval(stage):
    here = stage(answer(write("a")), target=MemoryServer.device(), policy=[{"verdict": "approve", "reason": "ask"}])
    done = await acted(here)
    assert statuses(done) == [("write", FAILURE)]
    assert done.record.results[0].error == "denied, because it needs approval and this agent can't ask: ask"
    assert (done.held, here.surface.deeds) == ((), [])


# After an approval


async def held(here):
    """Let the model ask for approval of what it wants, and give the run that holds it."""
    run = here.run()
    return run.apply(await here.pipeline.process(run))


async def test_exactly_the_held_actions_run_after_an_approval(stage):
    here = stage(answer(write("a"), APPEND, status="CONFIRM"))
    done = await here.pipeline.process_resume(await held(here))
    assert statuses(done) == [("write", SUCCESS), ("append", SUCCESS)]
    assert done.held == ()
    assert here.surface.deeds == [("memo:one", "field-1", "a"), ("memo:one", "field-1", "more")]


async def test_if_a_control_of_one_held_action_is_gone_none_of_them_runs(stage):
    both = [write("a"), {"function": "write", "arguments": {"control_id": "field-2", "text": "b"}}]
    here = stage(answer(*both, status="CONFIRM"), controls={"field-1": "", "field-2": ""})
    run = await held(here)
    here.surface.remove("memo:one", "field-2")
    done = await here.pipeline.process_resume(run)
    assert statuses(done) == [("write", SKIPPED)] * 2
    assert here.surface.deeds == []
    assert done.usage.commands == 0


async def test_after_a_failed_held_action_the_later_are_skipped(stage):
    here = stage(answer(EXPLODE, APPEND, status="CONFIRM"))
    done = await here.pipeline.process_resume(await held(here))
    assert statuses(done) == [("explode", FAILURE), ("append", SKIPPED)]


async def test_an_approved_action_runs_without_another_verdict_that_wants_approval(stage):
    here = stage(answer(write("a")), policy=[{"verdict": "approve"}])
    run = await held(here)
    assert run.held == (Action(tool="write", arguments=write("a")["arguments"], control=ControlRef(id="field-1")),)
    assert statuses(await here.pipeline.process_resume(run)) == [("write", SUCCESS)]
