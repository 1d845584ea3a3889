"""ACTION_EXECUTION: lists of actions, the policy before each, and the course after a failure."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from callboard import EventName, tool
from callboard.actors.runtime import Lease
from callboard.messages import (
    Action,
    ActionFacts,
    AgentKind,
    ApprovalAnswer,
    ControlRef,
    Effect,
    Hazard,
    Held,
    Observation,
    Phase,
    ResultStatus,
    StepDone,
    StepFailure,
    Target,
    TargetKind,
)
from callboard.testing import MemoryServer

WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
SUCCESS, FAILURE, SKIPPED = ResultStatus.SUCCESS, ResultStatus.FAILURE, ResultStatus.SKIPPED


class Restless(MemoryServer):
    """Controls look different from the second look on where a test wants it; tools change the controls."""

    def __init__(self, *targets: Target, **more: Any) -> None:
        super().__init__(*targets, **more)
        self.looks = 0
        self.changes: dict[str, dict[str, Any]] = {}
        self.lease: Lease | None = None

    def observe(self, target: Target) -> Observation:
        seen = super().observe(target)
        self.looks += 1
        if self.looks == 1:
            return seen
        now = tuple(control.model_copy(update=self.changes.get(control.id, {})) for control in seen.controls)
        return seen.model_copy(update={"controls": now})

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def vanish(self, target: str, victim: str) -> None:
        """Take a control away."""
        self.remove(target, victim)

    @tool(effect=Effect.ONCE, agents=WORKERS, hazards=(Hazard.DELETES, Hazard.LEAVES))
    def wipe(self, target: str) -> None:
        """Make a change that a person may want to see first."""

    @tool(effect=Effect.IDEMPOTENT, agents=WORKERS, takes_disabled=True)
    def scroll(self, target: str, control_id: str) -> None:
        """Show another part of a control."""

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def halt(self, target: str) -> None:
        """Let the task be paused in the middle of a list."""
        self.lease.paused = True


class Desktop(MemoryServer):
    """An application that a HostAgent starts; a test sets the answer to its start."""

    def __init__(self, *targets: Target, **more: Any) -> None:
        super().__init__(*targets, **more)
        self.opened: dict[str, Any] = {}

    def targets(self) -> tuple[Target, ...]:
        address, kind = "app/memo/*", TargetKind.APPLICATION
        return (Target(id="memo", name="Memo", kind=kind, address=address, server=self.name, start="launch"),)

    @tool(effect=Effect.ONCE, agents=(AgentKind.HOST,), offered=False)
    def launch(self, name: str) -> dict[str, Any]:
        """Start an application."""
        return self.opened


def write(text):
    return {"function": "write", "arguments": {"control_id": "field-1", "text": text}}


EXPLODE = {"function": "explode"}
APPEND = {"function": "append", "arguments": {"control_id": "field-1", "text": "more"}}
READ = {"function": "read", "arguments": {"control_id": "field-1"}}
VANISH = {"function": "vanish", "arguments": {"victim": "field-2"}}
AT_2 = {"function": "write", "arguments": {"control_id": "field-2", "text": "b"}}
TWO = {"field-1": "", "field-2": ""}
WIPE, HALT = {"function": "wipe"}, {"function": "halt"}
APPROVE_ALL = [{"verdict": "approve"}]


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
    assert [result.call_id for result in done.record.results] == ["t~1.1.0", "t~1.1.1", "t~1.1.2"]
    assert here.surface.effects == [("memo:one", "field-1", "a"), ("memo:one", "field-1", "more")]


async def test_after_a_failed_command_earlier_ones_stand_and_later_are_skipped(stage):
    here = stage(answer(write("a"), EXPLODE, APPEND, READ))
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS), ("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]
    assert [result.error for result in done.record.results] == [
        "",
        "out of paper",
        "skipped, because explode failed before it",
        "skipped, because explode failed before it",
    ]
    assert here.surface.effects == [("memo:one", "field-1", "a")]
    assert done.usage.commands == 2


async def test_command_event_has_its_status(stage):
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
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_under_a_void_lease_nothing_is_changed_and_the_command_failed(stage):
    here = stage(answer(write("a")))
    here.lease.void()
    done = await acted(here)
    assert statuses(done) == [("write", FAILURE)]
    assert "is void: nothing was changed" in done.record.results[0].error
    assert here.surface.effects == []


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
    assert [result.call_id for result in done.record.results] == ["t~1.1.0", "t~1.1.1", "t~1.1.2"]
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_a_denial_after_a_failed_action_is_skipped_like_the_rest(stage):
    here = stage(answer(EXPLODE, APPEND, READ), policy=[{"verdict": "deny", "tool": "append"}])
    assert statuses(await acted(here)) == [("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]


async def test_a_denied_action_is_in_the_results_of_a_step_that_fails_later(stage):
    class Forgetful:
        phases = frozenset({Phase.MEMORY_UPDATE})

        async def __call__(self, phase, proceed):
            msg = "no memory"
            raise RuntimeError(msg)

    here = stage(answer(APPEND, READ), policy=[{"verdict": "deny", "tool": "append"}])
    pipeline = dataclasses.replace(here.pipeline, middleware=(Forgetful(),))
    failed = await pipeline.process(here.run())
    assert [(result.tool, result.status) for result in failed.results] == [("append", FAILURE), ("read", SKIPPED)]


async def test_denied_action_does_not_count_as_sent(stage):
    done = await acted(stage(answer(write("a")), policy=[{"verdict": "deny"}]))
    assert done.usage.commands == 0


async def test_actions_before_one_that_needs_approval_run_and_the_rest_is_held(stage):
    here = stage(answer(write("a"), APPEND, READ), policy=[{"verdict": "approve", "tool": "append", "reason": "ask"}])
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS)]
    assert ([action.tool for action in done.held], done.held_why) == (["append", "read"], "ask")
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_after_a_failed_action_nothing_is_held_and_the_rest_is_skipped(stage):
    here = stage(answer(EXPLODE, APPEND, READ), policy=[{"verdict": "approve", "tool": "append"}])
    done = await acted(here)
    assert statuses(done) == [("explode", FAILURE), ("append", SKIPPED), ("read", SKIPPED)]
    assert (done.held, done.held_why) == ((), "")


async def test_a_models_confirm_holds_all_actions(stage):
    here = stage(answer(write("a"), APPEND, status="CONFIRM"))
    done = await acted(here)
    assert (done.record.results, done.held_why) == ((), "")
    assert [action.tool for action in done.held] == ["write", "append"]
    assert here.surface.effects == []


async def test_verdict_event_has_tool_effect_and_reason(stage):
    policy = [{"verdict": "allow", "tool": "write"}, {"verdict": "deny", "tool": "append", "reason": "no"}]
    here = stage(answer(write("a"), APPEND, READ), policy=policy)
    await acted(here)
    told = [event.data for event in here.events(EventName.POLICY_DECIDED)]
    common = {"control": "field-1", "hazards": [], "waived": "", "canonical": {}, "inexact": [], "resources": {}}
    common |= {"may_change": [], "own_files": [], "recipient": ""}
    assert [{key: value for key, value in verdict.items() if key != "arguments"} for verdict in told] == [
        {"tool": "write", "effect": "idempotent", "verdict": "allow", "reason": "rule 1 of the policy", **common},
        {"tool": "append", "effect": "once", "verdict": "deny", "reason": "no", **common},
    ]
    assert json.loads(told[0]["arguments"]) == {"control_id": "field-1", "text": "a"}


async def test_the_default_asks_before_hazards_and_the_verdict_names_them(stage):
    here = stage(answer(WIPE), surface=Restless)
    done = await acted(here)
    why = "it may do harm (wipe deletes, leaves the workspace)"
    assert ([action.tool for action in done.held], done.held_by, done.held_why) == (["wipe"], Held.POLICY, why)
    [told] = here.events(EventName.POLICY_DECIDED)
    assert (told.data["verdict"], told.data["hazards"]) == ("approve", ["deletes", "leaves"])
    assert here.surface.effects == []


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({"defaults": False}, id="no-defaults"),
        pytest.param([{"verdict": "allow", "hazards": ["deletes"]}], id="a-rule-of-the-operators-comes-first"),
    ],
)
async def test_without_the_default_what_is_hazardous_runs(stage, policy):
    assert statuses(await acted(stage(answer(WIPE), policy=policy, surface=Restless))) == [("wipe", SUCCESS)]


async def test_verdict_is_marked_as_waived_when_approvals_are_off(stage):
    here = stage(answer(write("a")), policy=APPROVE_ALL, system={"safe_guard": False})
    assert statuses(await acted(here)) == [("write", SUCCESS)]
    [told] = here.events(EventName.POLICY_DECIDED)
    assert (told.data["verdict"], told.data["waived"]) == ("approve", "safe_guard is off")


async def test_approval_for_the_rest_of_the_task_lets_only_the_same_action_run(stage):
    here = stage(answer(write("a"), write("b")), policy=APPROVE_ALL)
    same = Action(tool="write", arguments=write("a")["arguments"], control=ControlRef(id="field-1"))
    seen = here.surface.observe(here.surface.targets()[0])
    here.services.approved.remember("t", "app/memo/one", here.target, same, seen)
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS)]
    assert [action.arguments["text"] for action in done.held] == ["b"]
    waived = [event.data["waived"] for event in here.events(EventName.POLICY_DECIDED)]
    assert waived == ["approved for the rest of the task", ""]


@pytest.mark.parametrize("target", [MemoryServer.device(), MemoryServer.shell()], ids=["mobile", "linux"])
async def test_an_agent_without_confirm_holds_what_needs_approval_as_well(stage, target):
    here = stage(answer(write("a")), target=target, policy=[{"verdict": "approve", "reason": "ask"}])
    done = await acted(here)
    assert (done.record.results, here.surface.effects) == ((), [])
    assert ([action.tool for action in done.held], done.held_by, done.held_why) == (["write"], Held.POLICY, "ask")


# An application that is started

ASSIGN = [{"Status": "ASSIGN", "ControlText": "Memo", "Current Sub-Task": "write"}]
OPENED = {
    "id": "memo:new",
    "name": "Untitled",
    "kind": "window",
    "address": "app/memo/new",
    "server": "memory",
    "binds": {"target": "memo:new", "size": [3, 0.5], "view": {"zoom": None, "on": True}},
}
"""A window as JSON has it: a text for its kind, and any JSON for the values that it binds."""


async def test_the_window_that_a_start_answers_with_in_json_gets_the_subtask(stage):
    here = stage(ASSIGN, target=None, surface=Desktop)
    here.surface.opened = OPENED
    done = await acted(here, here.run())
    window = done.record.decision.target
    assert window == Target(**{**OPENED, "kind": TargetKind.WINDOW})
    assert window.kind is TargetKind.WINDOW
    assert statuses(done) == [("launch", SUCCESS)]


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "tab"}, {"id": 7}, {"name": None}, {"address": "mobile/new"}, {"binds": [["target", "x"]]}, {"more": 1}],
)
async def test_a_start_that_answers_with_no_target_fails_its_step(stage, wrong):
    here = stage(ASSIGN, target=None, surface=Desktop)
    here.surface.opened = {**OPENED, **wrong}
    failed = await here.pipeline.process(here.run())
    assert isinstance(failed, StepFailure)
    assert any(cause.reason.startswith("launch answered with no target: ") for cause in failed.causes)


# The look before each action


async def test_missing_control_cuts_the_list_before_its_action(stage):
    here = stage(answer(write("a"), VANISH, AT_2, READ), controls=TWO, surface=Restless)
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS), ("vanish", SUCCESS), ("write", SKIPPED), ("read", SKIPPED)]
    assert [result.error for result in done.record.results[2:]] == [
        "field field-2 (field-2) is gone or another one by now; nothing was done",
        "skipped, because the list was cut before it",
    ]
    assert here.surface.effects == [("memo:one", "field-1", "a")]
    assert (done.usage.commands, done.usage.cuts, done.usage.calls_saved) == (2, 1, 1)
    [told] = here.events(EventName.LIST_CUT)
    assert (told.data["ran"], told.data["reason"]) == (2, done.record.results[2].error)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"name": "Send"}, "is gone or another one by now"),
        ({"kind": "button"}, "is gone or another one by now"),
        ({"enabled": False}, "is disabled now"),
        ({"visible": False}, "is hidden now"),
    ],
)
async def test_a_control_that_is_not_the_same_any_more_is_left_alone(stage, now, why):
    here = stage(answer(write("a")), surface=Restless)
    here.surface.changes["field-1"] = now
    done = await acted(here)
    [result] = done.record.results
    assert (result.status, result.error) == (SKIPPED, f"field field-1 (field-1) {why}; nothing was done")
    assert here.surface.effects == []


async def test_a_disabled_control_is_scrolled(stage):
    here = stage(answer({"function": "scroll", "arguments": {"control_id": "field-1"}}), surface=Restless)
    here.surface.changes["field-1"] = {"enabled": False}
    assert statuses(await acted(here)) == [("scroll", SUCCESS)]


async def test_an_action_that_names_no_control_needs_no_look(stage):
    here = stage(answer(WIPE), policy={"defaults": False}, surface=Restless)
    here.surface.changes["field-1"] = {"enabled": False}
    assert statuses(await acted(here)) == [("wipe", SUCCESS)]


# A pause


async def test_a_pause_holds_all_actions_that_did_not_run_yet(stage):
    here = stage(answer(write("a"), HALT, APPEND), surface=Restless)
    here.surface.lease = here.lease
    done = await acted(here)
    assert statuses(done) == [("write", SUCCESS), ("halt", SUCCESS)]
    assert ([action.tool for action in done.held], done.held_by) == (["append"], Held.PAUSE)
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_after_a_pause_only_the_held_actions_run_and_the_policy_is_asked(stage):
    here = stage(answer(HALT, write("a"), APPEND), policy=[{"verdict": "approve", "tool": "append"}], surface=Restless)
    here.surface.lease = here.lease
    run = await held(here)
    here.lease.paused = False
    done = await here.pipeline.process_resume(run)
    assert statuses(done) == [("write", SUCCESS)]
    assert ([action.tool for action in done.held], done.held_by) == (["append"], Held.POLICY)


# After an approval


async def held(here):
    """Let a step run up to the action that it holds, and give the run that holds it."""
    run = here.run()
    return run.apply(await here.pipeline.process(run))


async def test_exactly_the_held_actions_run_after_an_approval(stage):
    here = stage(answer(write("a"), APPEND, status="CONFIRM"))
    done = await here.pipeline.process_resume(await held(here))
    assert statuses(done) == [("write", SUCCESS), ("append", SUCCESS)]
    assert done.held == ()
    assert here.surface.effects == [("memo:one", "field-1", "a"), ("memo:one", "field-1", "more")]


async def test_if_a_control_of_one_held_action_is_gone_none_of_them_runs(stage):
    both = [write("a"), {"function": "write", "arguments": {"control_id": "field-2", "text": "b"}}]
    here = stage(answer(*both, status="CONFIRM"), controls={"field-1": "", "field-2": ""})
    run = await held(here)
    here.surface.remove("memo:one", "field-2")
    done = await here.pipeline.process_resume(run)
    assert statuses(done) == [("write", SKIPPED)] * 2
    assert here.surface.effects == []
    assert (done.usage.commands, done.usage.cuts) == (0, 1)


async def test_a_held_action_that_removes_a_later_ones_control_cuts_the_list(stage):
    here = stage(answer(write("a"), VANISH, AT_2, APPEND, status="CONFIRM"), controls=TWO, surface=Restless)
    done = await here.pipeline.process_resume(await held(here))
    assert statuses(done) == [("write", SUCCESS), ("vanish", SUCCESS), ("write", SKIPPED), ("append", SKIPPED)]
    assert here.surface.effects == [("memo:one", "field-1", "a")]


async def test_after_a_failed_held_action_the_later_are_skipped(stage):
    here = stage(answer(EXPLODE, APPEND, status="CONFIRM"))
    done = await here.pipeline.process_resume(await held(here))
    assert statuses(done) == [("explode", FAILURE), ("append", SKIPPED)]


async def test_an_approved_action_runs_without_asking_for_approval_again(stage):
    here = stage(answer(write("a")), policy=[{"verdict": "approve"}])
    run = await held(here)
    control = ControlRef(id="field-1")
    told = write("a")["arguments"]
    (action,) = run.held
    assert action == Action(
        tool="write", arguments=told, control=control, call_id="t~1.1.0", program=True, facts=ActionFacts()
    )
    approved = run.apply(ApprovalAnswer(id="ask", task_id="t", approved=True))
    assert statuses(await here.pipeline.process_resume(approved)) == [("write", SUCCESS)]
