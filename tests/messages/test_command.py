"""Controls and actions: the control that a reference finds, and the results that count as failures."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from callboard.messages import (
    Action,
    AgentKind,
    Command,
    CommandResult,
    Control,
    ControlRef,
    Decision,
    Observation,
    ResultStatus,
    StepRecord,
    Target,
    TargetKind,
    agent_kind,
)

SEEN = Observation(controls=(Control(id="1", name="Save", kind="button"), Control(id="2", name="Quit", kind="button")))


def test_a_control_is_found_by_its_id_alone():
    assert SEEN.control(ControlRef(id="2")) == SEEN.controls[1]


def test_a_control_is_found_by_id_and_name():
    assert SEEN.control(ControlRef(id="2", name="Quit")) == SEEN.controls[1]


@pytest.mark.parametrize("ref", [ControlRef(id="2", name="Save"), ControlRef(id="3"), ControlRef(id="", name="Save")])
def test_a_control_with_another_name_or_id_is_not_found(ref):
    assert SEEN.control(ref) is None


def test_only_failures_count_as_failures():
    results = tuple(CommandResult(call_id=status, tool="save", status=status) for status in ResultStatus)
    record = StepRecord(
        step=1, status="CONTINUE", observation=SEEN, decision=Decision(status="FINISH"), results=results
    )
    assert record.failures == 1


def test_an_action_names_its_tool():
    with pytest.raises(ValidationError, match="tool"):
        Action(tool="")


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_a_command_has_some_time(timeout):
    with pytest.raises(ValidationError, match="timeout"):
        Command(task_id="t", run_id="t~1", token=1, call_id="1.0", tool="save", timeout=timeout)


@pytest.mark.parametrize("kind", AgentKind)
def test_the_first_part_of_an_address_tells_the_kind_of_agent(kind):
    assert agent_kind(f"{kind}/some/where") == kind


def test_the_kind_of_an_address_may_be_one_that_does_not_ship():
    assert agent_kind("operator/some/where") == "operator"


@pytest.mark.parametrize("address", ["", "/", "/x", "app", "Root/x", "7/x", f"{41 * 'a'}/x"])
def test_an_address_that_begins_with_no_kind_is_refused(address):
    with pytest.raises(ValueError, match="is not an address"):
        agent_kind(address)


def test_window_at_another_kinds_address_must_name_that_kind():
    fields = {"id": "w", "name": "w", "kind": TargetKind.WINDOW, "address": "operator/x/1", "server": "s"}
    assert Target(kinds=("operator",), **fields).address == "operator/x/1"
    with pytest.raises(ValidationError, match="a window is worked on by app agents"):
        Target(**fields)


@pytest.mark.parametrize(
    ("tool", "arguments", "points"),
    [
        ("click_at", {"x": 1, "y": 2, "count": 2}, ((1, 2),)),
        ("drag_at", {"x": 1, "y": 2, "to_x": 3, "to_y": 4}, ((1, 2), (3, 4))),
        ("scroll_at", {"x": 1, "y": 2, "dx": 0, "dy": 3}, ((1, 2),)),
        ("type_text", {"text": "1"}, ()),
        ("plot", {"x": 1, "y": 2}, ()),
        ("click_at", {"x": 1}, ()),
    ],
)
def test_an_action_points_if_its_tool_does(tool, arguments, points):
    assert Action(tool=tool, arguments=arguments).points == points
