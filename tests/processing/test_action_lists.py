"""Action lists: several actions in one answer, each checked before it runs against the surface as it is then."""

from __future__ import annotations

import functools
import threading

import pytest

import support
from callboard import EventName, Outcome, Task, ToolError, tool
from callboard.messages import Control, Effect, Observation, ResultStatus
from callboard.testing import MemoryServer, VirtualClock
from support import HELD, PATIENCE, action, lone

FAIL = {"Status": "FAIL"}
actions = functools.partial(support.actions, status="FINISH")


def fill(control, text="x"):
    return action("write", control, text=text)


class Moody(MemoryServer):
    """A window whose second field changes, in a way of its own, once its first field was written to."""

    def __init__(self, **change):
        super().__init__(self.window(), controls={"field-1": "", "field-2": "", "field-3": ""})
        self.change = change

    def observe(self, target: object) -> Observation:
        seen = super().observe(target)
        if not self.effects:
            return seen
        second = seen.controls[1].model_copy(update=self.change)
        return seen.model_copy(update={"controls": (seen.controls[0], second, seen.controls[2])})

    @tool(effect=Effect.ONCE)
    def break_down(self, target: str) -> str:
        """Break."""
        msg = f"{target} broke down"
        raise ToolError(msg)


CHANGES = {
    "another name": {"name": "another"},
    "another kind": {"kind": "button"},
    "another id": {"id": "field-9"},
    "disabled": {"enabled": False},
    "hidden": {"visible": False},
}


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": "", "field-3": ""})


def written(surface):
    return [control for _, control, _ in surface.effects]


def run(start, surface, *answers, **settings):
    """Run a task to its end; give its result and each call's request."""
    requests = []

    def app(request):
        requests.append(request)
        return answers[request.call - 1]

    return start(app=app, servers=[surface], **settings).submit(lone()).result(PATIENCE), requests


def test_all_actions_of_an_answer_run_in_order_with_one_model_call(start, surface):
    result, _ = run(start, surface, actions(fill("field-2"), fill("field-1"), fill("field-3")))
    assert result.outcome is Outcome.FINISHED
    assert written(surface) == ["field-2", "field-1", "field-3"]
    assert result.usage.model_calls == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_first_action_whose_control_no_longer_holds_cuts_the_list(start, change):
    surface = Moody(**change)
    _, requests = run(
        start,
        surface,
        actions(fill("field-1"), fill("field-2"), fill("field-3")),
        FAIL,
    )
    assert written(surface) == ["field-1"]
    statuses = [result.status for result in requests[1].memory[0].results]
    assert statuses == [ResultStatus.SUCCESS, ResultStatus.SKIPPED, ResultStatus.SKIPPED]


def test_without_a_change_nothing_is_cut(start):
    surface = Moody()
    result, _ = run(start, surface, actions(fill("field-1"), fill("field-2"), fill("field-3")))
    assert written(surface) == ["field-1", "field-2", "field-3"]
    assert result.usage.cuts == 0


def test_a_control_that_is_gone_cuts_the_list(start):
    class Vanishing(MemoryServer):
        @tool(effect=Effect.ONCE)
        def close(self, target: str) -> str:
            """Close the second field."""
            self.remove(target, "field-2")
            return "closed"

    surface = Vanishing(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
    _, requests = run(
        start,
        surface,
        actions({"Function": "close"}, fill("field-2"), fill("field-1")),
        FAIL,
    )
    assert surface.effects == []
    assert "gone" in requests[1].memory[0].results[1].error


def test_the_first_action_is_checked_too(start):
    """The surface changes while the model thinks."""
    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": ""})

    def app(request):
        if request.call == 1:
            surface.remove("memo:one", "field-1")
            return actions(fill("field-1"), fill("field-2"))
        return FAIL

    start(app=app, servers=[surface]).submit(lone()).result(PATIENCE)
    assert surface.effects == []


@pytest.mark.parametrize("control", [{"enabled": False}, {"visible": False}])
def test_a_control_that_was_disabled_or_hidden_all_along_is_not_acted_on(start, control):
    class Grey(MemoryServer):
        def observe(self, target):
            seen = super().observe(target)
            return seen.model_copy(update={"controls": tuple(c.model_copy(update=control) for c in seen.controls)})

    surface = Grey(MemoryServer.window())
    _, requests = run(start, surface, actions(fill("field-1")), FAIL)
    assert surface.effects == []
    assert requests[1].memory[0].results[0].status is ResultStatus.SKIPPED


def test_a_control_that_is_named_among_the_arguments_alone_is_checked_too(start):
    surface = Moody(name="another")
    second = {"Function": "write", "Args": {"control_id": "field-2", "text": "x"}}
    run(start, surface, actions(fill("field-1"), second), FAIL)
    assert written(surface) == ["field-1"]


def test_control_with_another_text_is_still_the_same(start):
    surface = Moody(detail={"text": "new"})
    result, _ = run(start, surface, actions(fill("field-1"), fill("field-2")))
    assert result.ok
    assert written(surface) == ["field-1", "field-2"]


def test_the_model_sees_what_was_done_and_why_the_rest_was_not(start):
    surface = Moody(enabled=False)
    _, requests = run(
        start,
        surface,
        actions(fill("field-1", "a"), fill("field-2"), fill("field-3")),
        FAIL,
    )
    first, second, third = requests[1].memory[0].results
    assert (first.status, first.value) == (ResultStatus.SUCCESS, "a")
    assert "disabled" in second.error
    assert "cut" in third.error
    assert any("disabled" in note for note in requests[1].observation.notes)


@pytest.mark.parametrize("status", ["FINISH", "CONFIRM"])
def test_a_claim_holds_only_when_the_whole_list_ran(start, until, status):
    surface = Moody(visible=False)
    requests = []

    def app(request):
        requests.append(request.status)
        return [
            actions(fill("field-1"), fill("field-2"), status=status),
            FAIL,
        ][request.call - 1]

    supervisor = start(app=app, servers=[surface])
    handle = supervisor.submit(lone())
    if status == "CONFIRM":
        until(handle, EventName.APPROVAL_REQUESTED)
        handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert requests == ["CONTINUE", "CONTINUE"]
    assert written(surface) == ["field-1"]


def test_finish_does_not_hold_after_a_cut_and_the_model_gets_a_note(start):
    _, requests = run(
        start,
        Moody(visible=False),
        actions(fill("field-1"), fill("field-2")),
        FAIL,
    )
    assert any("FINISH does not hold" in note for note in requests[1].observation.notes)


def test_a_cut_is_no_failed_action(start):
    answers = [actions(fill("field-1"), fill("field-2")), FAIL]
    _, requests = run(start, Moody(visible=False), *answers, limits={"action_failures": 1})
    assert len(requests) == 2


def test_a_failed_action_stops_the_list_and_is_no_cut(start):
    surface = Moody()
    answer = actions(fill("field-1"), {"Function": "break_down"}, fill("field-2"))
    result, requests = run(start, surface, answer, FAIL)
    statuses = [done.status for done in requests[1].memory[0].results]
    assert statuses == [ResultStatus.SUCCESS, ResultStatus.FAILURE, ResultStatus.SKIPPED]
    assert result.usage.cuts == 0


def test_the_saved_calls_are_counted_one_for_each_action_after_the_first(start, surface):
    answers = [
        actions(
            fill("field-1"),
            fill("field-2"),
            fill("field-3"),
            status="CONTINUE",
        )
    ] * 1
    result, _ = run(start, surface, *answers, actions(fill("field-1")))
    assert result.usage.calls_saved == 2


def test_skipped_actions_save_no_calls(start):
    result, _ = run(
        start,
        Moody(visible=False),
        actions(fill("field-1"), fill("field-2"), fill("field-3")),
        FAIL,
    )
    assert (result.usage.calls_saved, result.usage.cuts) == (0, 1)


def test_cuts_and_saved_calls_of_all_subtasks_are_in_the_tasks_usage(start):
    surface = Moody(visible=False)
    assign = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}
    app = [
        actions(fill("field-1"), fill("field-3"), fill("field-2")),
        {"Status": "FINISH"},
    ]
    supervisor = start(host=[assign, {"Status": "FINISH"}], app=app, servers=[surface])
    usage = supervisor.submit(Task(request="x")).result(PATIENCE).usage
    assert (usage.calls_saved, usage.cuts) == (1, 1)


def test_a_cut_is_in_the_events(start):
    supervisor = start(
        app=[actions(fill("field-1"), fill("field-2")), FAIL],
        servers=[Moody(kind="button")],
    )
    handle = supervisor.submit(lone())
    handle.result(PATIENCE)
    (cut,) = (event for event in handle.events() if event.name is EventName.LIST_CUT)
    assert cut.data["ran"] == 1
    assert "field-2" in cut.data["reason"]


def test_a_list_saves_as_many_calls_with_an_approval_in_the_middle(start, until, surface):
    supervisor = start(
        app=[
            actions(fill("field-1"), fill("field-2"), fill("field-3")),
            {"Status": "FINISH"},
        ],
        servers=[surface],
        policy=[{"verdict": "approve", "arguments": {"control_id": "field-2"}}],
    )
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert written(surface) == ["field-1"]
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert written(surface) == ["field-1", "field-2", "field-3"]
    assert result.usage.calls_saved == 2


def test_held_actions_are_checked_against_the_surface_after_the_approval(start, until, surface):
    supervisor = start(
        app=[
            actions(fill("field-1"), fill("field-2"), status="CONFIRM"),
            FAIL,
        ],
        servers=[surface],
    )
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    surface.remove("memo:one", "field-1")
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert surface.effects == []
    assert (result.outcome, result.usage.cuts) == (Outcome.FAILED, 1)


def test_a_cancel_in_the_middle_of_a_list_stops_before_the_next_action(start):
    begun, let_go = threading.Event(), threading.Event()

    class Press(MemoryServer):
        @tool(effect=Effect.ONCE)
        def press(self, target: str) -> str:
            """Press."""
            begun.set()
            assert let_go.wait(HELD)
            return target

    surface = Press(MemoryServer.window())
    supervisor = start(app=[actions({"Function": "press"}, fill("field-1"))], servers=[surface])
    handle = supervisor.submit(lone())
    assert begun.wait(PATIENCE)
    handle.cancel()
    let_go.set()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert surface.effects == []


def test_controls_with_the_same_id_are_separated_by_their_names(start):
    """A name in the answer decides which of two controls of one id is meant, and that one is looked for again."""

    class Twins(MemoryServer):
        def observe(self, target):
            twins = [Control(id="field-1", name=name, kind="field") for name in ("left", "right")]
            kept = twins[:1] if self.effects else twins
            return Observation(controls=tuple(kept), fingerprint=str(len(kept)))

    surface = Twins(MemoryServer.window())

    def named(name):
        return {"Function": "write", "ControlLabel": "field-1", "ControlText": name, "Args": {"text": name}}

    run(start, surface, actions(named("left"), named("right")), FAIL)
    assert [text for _, _, text in surface.effects] == ["left"]


class Closing(MemoryServer):
    """A window with a button that closes it."""

    def __init__(self):
        super().__init__(self.window(), self.window("two"))

    @tool(effect=Effect.ONCE)
    def close_window(self, target: str) -> str:
        """Close the window."""
        self.remove(target)
        return "closed"


def test_list_that_closes_its_window_is_cut_and_the_model_gets_a_note(start):
    seen = []

    def app(request):
        seen.append(request.observation.notes)
        return actions({"Function": "close_window"}, fill("field-1")) if request.call == 1 else {"Status": "FINISH"}

    result = start(app=app, servers=[Closing()]).submit(lone()).result(PATIENCE)
    assert result.ok, result.causes
    assert result.usage.cuts == 1
    assert any("memo:one is gone" in note for note in seen[1])


class Foretelling(MemoryServer):
    """A window that delays its forecast of an action until it is let go."""

    def __init__(self):
        super().__init__(self.window())
        self.asked, self.let_go = threading.Event(), threading.Event()

    def expected(self, target, tool, arguments):
        self.asked.set()
        self.let_go.wait(HELD)
        return super().expected(target, tool, arguments)


APPEND = {"Function": "append", "Args": {"control_id": "field-1", "text": "x"}}


def test_a_pause_stops_an_action_that_is_just_being_announced(start, until):
    surface = Foretelling()
    handle = start(app=[actions(APPEND)], servers=[surface]).submit(lone())
    assert surface.asked.wait(PATIENCE)
    handle.pause()
    surface.let_go.set()
    until(handle, EventName.STEP_ENDED)
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


def test_a_forecast_that_takes_too_long_is_a_failure_that_the_model_sees(start, until):
    clock, surface, notes = VirtualClock(), Foretelling(), []

    def app(request):
        notes.extend(request.observation.notes)
        return actions(APPEND, status="CONTINUE") if request.call == 1 else {"Status": "FINISH"}

    handle = start(app=app, servers=[surface], clock=clock, limits={"command_seconds": 60}).submit(lone())
    assert surface.asked.wait(PATIENCE)
    clock.advance(61)
    until(handle, EventName.STEP_ENDED, results=["failure"])
    surface.let_go.set()
    assert handle.result(PATIENCE).ok
    assert any("asking what append will do took longer than 60 s" in note for note in notes)
    assert surface.effects == []
