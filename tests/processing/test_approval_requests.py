"""Approval requests of a step, and their deadlines."""

from __future__ import annotations

import dataclasses

import pytest

from callboard.messages import (
    Action,
    ApprovalAnswer,
    ApprovalRequest,
    AtDeadline,
    Decision,
    Held,
    Observation,
    StepRecord,
)

RECORD = StepRecord(
    step=1,
    status="CONTINUE",
    observation=Observation(text="what is seen"),
    decision=Decision(status="CONTINUE", comment="so it goes"),
)


async def test_an_approval_is_asked_for_with_what_the_agent_sees_and_holds(stage):
    here = stage(limits={"approval_seconds": 60})
    held = (Action(tool="write", arguments={"text": "a"}),)
    run = here.run("CONFIRM", held=held, held_by=Held.POLICY, held_why="rule 1", job=4)
    asked = await here.pipeline.process_confirmation(run)
    assert isinstance(asked, ApprovalRequest)
    assert (asked.id, asked.task_id, asked.run_id, asked.token) == ("t~1~ask-1.4", "t", "t~1", 7)
    assert (asked.address, asked.target, asked.actions) == ("app/memo/one", here.target, held)
    assert (asked.reason, asked.deadline) == ("rule 1", 1060.0)
    assert [control.id for control in asked.observation.controls] == ["field-1"]


async def test_the_id_of_a_request_is_safe_in_a_run_of_an_earlier_journal(stage):
    here = stage()
    run = here.run("CONFIRM", memory=(RECORD,), steps=1, job=4)
    earlier = dataclasses.replace(run, assign=run.assign.model_copy(update={"run_id": "t/1"}))
    assert (await here.pipeline.process_confirmation(earlier)).id == "t~1~ask-1.4"


@pytest.mark.parametrize(
    ("said", "tools", "then"),
    [
        ("deny", ("write",), AtDeadline.DENY),
        ("fail", ("write", "append"), AtDeadline.FAIL),
        ("allow", ("write", "read"), AtDeadline.ALLOW),
        ("allow", ("write", "append"), AtDeadline.DENY),
    ],
)
async def test_an_approvals_deadline_allows_only_what_may_be_repeated(stage, said, tools, then):
    here = stage(limits={"at_approval_deadline": said})
    held = tuple(Action(tool=name) for name in tools)
    asked = await here.pipeline.process_confirmation(here.run("CONFIRM", held=held, held_by=Held.POLICY))
    assert asked.at_deadline is then


async def test_approval_for_the_rest_of_the_task_is_not_asked_for_again(stage):
    here = stage()
    once, again = (Action(tool="write", arguments={"text": text}) for text in "ab")
    here.services.approved.remember("t", "app/memo/one", here.target, once)
    said = await here.pipeline.process_confirmation(here.run("CONFIRM", held=(once,)))
    assert isinstance(said, ApprovalAnswer)
    assert (said.approved, said.unattended, said.reason) == (True, True, "approved for the rest of the task")
    asked = await here.pipeline.process_confirmation(here.run("CONFIRM", held=(once, again)))
    assert isinstance(asked, ApprovalRequest)


async def test_an_approval_that_the_model_wants_gives_its_comment_as_the_reason(stage):
    here = stage()
    asked = await here.pipeline.process_confirmation(here.run("CONFIRM", memory=(RECORD,), steps=1))
    assert asked.reason == "so it goes"


async def test_where_approvals_are_switched_off_the_approval_is_unattended(stage):
    here = stage(system={"safe_guard": False})
    said = await here.pipeline.process_confirmation(here.run("CONFIRM"))
    assert isinstance(said, ApprovalAnswer)
    assert (said.approved, said.unattended, said.by) == (True, True, "")
