"""Settling: after an action an observation waits until the surface is quiet; SCREENSHOT annotates named controls."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import EventName, Outcome, Settings, Supervisor
from callboard.actors.processing import _collect
from callboard.testing import FunctionModel, MemoryServer
from support import FINISH, PATIENCE, lone

WRITE = {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "x"}}


class Restless(MemoryServer):
    """A window that looks different for some looks after an action; None: for ever."""

    def __init__(self, moves):
        super().__init__(self.window(), controls={"field-1": "", "field-2": ""})
        self.moves = moves
        self.looks = []

    def observe(self, target, look):
        seen = super().observe(target)
        if not look.shown:  # before an action: it counts as no look of the agent's
            return seen
        acted = len(self.effects)
        after = sum(done == acted for done, _ in self.looks)
        moving = acted > 0 and (self.moves is None or after < self.moves)
        fingerprint = f"{acted}-{after if moving else 'quiet'}"
        self.looks.append((acted, fingerprint))
        return seen.model_copy(update={"fingerprint": fingerprint})

    def after(self, acted):
        """The number of looks after a number of actions."""
        return [fingerprint for done, fingerprint in self.looks if done == acted]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Look again almost at once; with the real pauses, a property would wait for seconds."""
    monkeypatch.setattr(_collect, "_FIRST_PAUSE", 0.001)


def shown(start, surface, *answers, **limits):
    """Run a task; give the fingerprint of each observation that the model was shown."""
    prints = []

    def app(request):
        prints.append(request.observation.fingerprint)
        return answers[request.call - 1]

    supervisor = start(app=app, servers=[surface], limits=limits)
    assert supervisor.submit(lone()).result(PATIENCE).ok
    return prints


@pytest.mark.parametrize("moves", [0, 1, 2, 3])
def test_after_an_action_the_model_is_shown_a_surface_that_is_quiet(start, moves):
    surface = Restless(moves)
    assert shown(start, surface, WRITE, FINISH) == ["0-quiet", "1-quiet"]
    assert surface.after(1)[-2:] == ["1-quiet", "1-quiet"]


def test_a_quiet_surface_is_looked_at_twice_and_no_more(start):
    surface = Restless(0)
    shown(start, surface, WRITE, FINISH)
    assert len(surface.after(1)) == 2


def test_without_an_action_one_look_is_enough(start):
    surface = Restless(0)
    shown(start, surface, {"Status": "CONTINUE"}, FINISH)
    assert len(surface.after(0)) == 2  # one for each step


def test_a_surface_that_is_never_quiet_is_shown_as_it_is_at_the_bound(start):
    surface = Restless(None)
    prints = shown(start, surface, WRITE, FINISH, settle_seconds=0.5)
    assert prints[1] == surface.after(1)[-1]
    assert len(surface.after(1)) > 1


def test_a_bound_of_nothing_takes_the_first_look(start):
    surface = Restless(None)
    shown(start, surface, WRITE, FINISH, settle_seconds=0)
    assert len(surface.after(1)) == 1


def test_a_surface_that_does_not_settle_is_looked_at_once(start):
    surface = Restless(None)
    surface.settles = False
    shown(start, surface, WRITE, FINISH)
    assert len(surface.after(1)) == 1


def test_an_action_that_failed_or_was_not_run_needs_no_settling(start):
    surface = Restless(None)
    gone = {"Status": "CONTINUE", "Function": "write", "Args": {"text": "x", "control_id": "field-1"}}
    surface.resolve = lambda _seen, _control: None
    shown(start, surface, gone, FINISH)
    assert len(surface.after(0)) == 2


def test_a_cancel_ends_the_waiting_for_quiet(start):
    seen = threading.Semaphore(0)

    class Endless(Restless):
        def observe(self, target, look):
            if self.effects:
                seen.release()
            return super().observe(target, look)

    supervisor = start(app=[WRITE, FINISH], servers=[Endless(None)], limits={"settle_seconds": 3600})
    handle = supervisor.submit(lone())
    assert seen.acquire(timeout=PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_the_picture_for_an_approval_is_of_a_quiet_surface(start, until):
    surface = Restless(2)
    answers = [WRITE, {**WRITE, "Status": "CONFIRM"}, FINISH]
    supervisor = start(app=answers, servers=[surface])
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    (approval,) = handle.approvals()
    assert approval.observation.fingerprint == "1-quiet"
    handle.approve(approval.id)
    assert handle.result(PATIENCE).ok


@settings(max_examples=20)
@given(moves=st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_whatever_moves_after_each_action_the_model_sees_it_quiet(moves):
    surface = Restless(0)
    prints = []

    def app(request):
        prints.append(request.observation.fingerprint)
        surface.moves = moves[min(request.call, len(moves)) - 1]
        if request.call > len(moves):
            return FINISH
        return {**WRITE, "Args": {"control_id": "field-1", "text": f"{request.call}"}}

    quiet = Settings.load()
    with Supervisor.start(quiet, models={"app": FunctionModel(app)}, servers=[surface]) as supervisor:
        assert supervisor.submit(lone()).result(PATIENCE).ok
    assert prints == [f"{number}-quiet" for number in range(len(moves) + 1)]


# Re-annotation


def look_again(*controls):
    return {"Status": "SCREENSHOT", "ControlReannotate": list(controls)}


class Annotated(MemoryServer):
    """A window with pictures, as far as the purposes of looks tell."""

    pictures = True

    def __init__(self):
        super().__init__(self.window(), controls={"field-1": "", "field-2": "", "field-3": ""})
        self.annotated = []

    def observe(self, target, look):
        self.annotated.append(sorted(look.annotate))
        return super().observe(target)


def controls_annotated(start, *answers, **limits):
    """Return the states in which a model was asked, each with the controls to label in its picture; none: all."""
    surface, shown = Annotated(), []

    def app(request):
        shown.append((request.status, surface.annotated[-1]))
        return answers[request.call - 1]

    supervisor = start(app=app, servers=[surface], limits=limits)
    assert supervisor.submit(lone()).result(PATIENCE).ok
    return shown


def test_a_fresh_capture_annotates_only_the_controls_that_were_named(start):
    shown = controls_annotated(start, look_again("field-1", "field-3"), {"Status": "CONTINUE"}, FINISH)
    assert shown == [("CONTINUE", []), ("SCREENSHOT", ["field-1", "field-3"]), ("CONTINUE", [])]


def test_each_capture_is_for_the_controls_that_were_named_last(start):
    shown = controls_annotated(start, look_again("field-1"), look_again("field-2"), {"Status": "CONTINUE"}, FINISH)
    assert [ids for _, ids in shown[1:3]] == [["field-1"], ["field-2"]]


def test_captures_in_a_row_are_bounded(start):
    answers = [look_again("field-1"), look_again("field-2"), look_again("field-3"), FINISH]
    shown = controls_annotated(start, *answers, reannotations=2)
    assert [status for status, _ in shown] == ["CONTINUE", "SCREENSHOT", "SCREENSHOT", "CONTINUE"]
