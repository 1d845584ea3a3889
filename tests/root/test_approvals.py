"""Approvals: a person decides before the action, once, and the first word wins."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.messages import (
    AgentKind,
    AnswerRefusedError,
    AtDeadline,
    Effect,
    NotWaitingError,
    SupervisorStoppedError,
    WouldDeadlockError,
)
from callboard.testing import MemoryServer, VirtualClock
from support import FINISH, HELD, PATIENCE, PNG, lone, told

APPROVE = {"policy": [{"verdict": "approve", "tool": "write", "reason": "writes need a nod"}]}
CONFIRM = {"Status": "CONFIRM", "Comment": "may I?"}
WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
EFFECT = ("memo:one", "field-1", "hello")


def action(text="hello", function="write", field="field-1"):
    return {"control_label": field, "function": function, "arguments": {"text": text}}


def answer(*actions, status="CONTINUE", **more):
    return {"Status": status, "Actions": list(actions or [action()]), **more}


def assign(target="memo:one", subtask="write"):
    return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": subtask}


class Surface(MemoryServer):
    """Can be changed behind the agent's back, and held in the middle of a look or a call."""

    def __init__(self, *targets, **more):
        super().__init__(*(targets or (MemoryServer.window(),)), **more)
        self.seen_as: dict[str, object] = {}
        """The changed property of the field ``field-1``."""
        self.hold_looks = threading.Event()
        self.hold_calls = threading.Event()
        self.held = threading.Event()
        self.go = threading.Event()

    def observe(self, target):
        if self.hold_looks.is_set():
            self._wait()
        seen = super().observe(target)
        controls = tuple(c.model_copy(update=self.seen_as) if c.id == "field-1" else c for c in seen.controls)
        return seen.model_copy(update={"controls": controls, "picture": PNG, "fingerprint": repr(controls)})

    def resolve(self, seen, control):
        found = super().resolve(seen, control)
        if self.hold_calls.is_set():
            self._wait()
        return found

    def _wait(self):
        self.held.set()
        assert self.go.wait(HELD)

    def type(self, text):
        """Write into the field as another program would."""
        self._controls["memo:one"]["field-1"] = text


@pytest.fixture
def asked(until):
    """Wait for a task's first approval, and give it."""

    def wait(handle):
        until(handle, EventName.APPROVAL_REQUESTED)
        (request,) = handle.approvals()
        return request

    return wait


def decide_each(handle, decide=lambda handle, request: handle.approve(request["id"])):
    """Decide on each approval of a task until it is over; return the requests."""
    requests = []
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            requests.append(event.data["request"])
            decide(handle, requests[-1])
    return requests


def events_of(handle, name):
    return [event for event in handle.events() if event.name is name]


def moves(handle, agent="app/memo/one"):
    changes = [event for event in events_of(handle, EventName.STATE_CHANGED) if event.agent == agent]
    return [(event.data["source"], event.data["target"], event.data["by"]) for event in changes]


def tried(act, *arguments, **named):
    """Call something, and return the exception raised."""
    try:
        act(*arguments, **named)
    except Exception as error:  # the test looks at it
        return error
    return None


# Requests


def test_approval_has_agent_action_target_reason_and_deadline(start, asked):
    clock = VirtualClock(1000.0)
    supervisor = start(app=[answer(), FINISH], clock=clock, limits={"approval_seconds": 30}, **APPROVE)
    handle = supervisor.submit(lone())
    request = asked(handle)
    assert (request.task_id, request.run_id, request.address) == (handle.task_id, f"{handle.task_id}~1", "app/memo/one")
    assert request.target.id == "memo:one"
    (wanted,) = request.actions
    assert (wanted.tool, wanted.arguments) == ("write", {"text": "hello", "control_id": "field-1"})
    assert request.reason == "writes need a nod"
    assert (request.deadline, request.at_deadline) == (1030.0, AtDeadline.DENY)


def test_approval_that_the_model_asks_for_has_the_models_comment(start, asked):
    request = asked(start(app=[answer(status="CONFIRM", Comment="may I?"), FINISH]).submit(lone()))
    assert request.reason == "may I?"


def test_an_approval_shows_what_the_agent_sees_when_it_asks(start, asked):
    surface = Surface()

    def app(_request):
        surface.type("typed while the model was thinking")
        return answer()

    request = asked(start(app=app, servers=[surface], **APPROVE).submit(lone()))
    (control,) = request.observation.controls
    assert control.detail == {"text": "typed while the model was thinking"}
    assert request.observation.picture == PNG


def test_an_approval_is_an_event_without_the_picture(start, asked, until):
    handle = start(app=[answer(), FINISH], servers=[Surface()], **APPROVE).submit(lone())
    request = asked(handle)
    told = until(handle, EventName.APPROVAL_REQUESTED).data["request"]
    assert (told["id"], told["reason"], told["address"]) == (request.id, request.reason, request.address)
    assert told["actions"][0]["arguments"] == {"text": "hello", "control_id": "field-1"}
    assert "observation" not in told


def test_the_supervisor_lists_the_approvals_of_all_tasks(start, asked):
    windows = MemoryServer.window("one"), MemoryServer.window("two")
    supervisor = start(app=FunctionModel(lambda _: answer()), servers=[Surface(*windows)], **APPROVE)
    waiting = {asked(supervisor.submit(lone(window.id))).id for window in windows}
    assert {request.id for request in supervisor.status().approvals} == waiting


def test_only_what_was_not_run_is_asked_about(start, asked):
    surface = Surface(controls={"field-1": "", "field-2": ""})
    listed = answer(action("first", "append"), action("second"), action("third", "append", "field-2"))
    handle = start(app=[listed, FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    assert [wanted.arguments["text"] for wanted in request.actions] == ["second", "third"]
    assert [text for _, _, text in surface.effects] == ["first"]
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("kind", "target"),
    [("app", MemoryServer.window()), ("mobile", MemoryServer.device()), ("linux", MemoryServer.shell())],
)
@pytest.mark.parametrize("says", ["approve", "reject"])
def test_every_agent_asks(start, asked, kind, target, says):
    surface = Surface(target)
    handle = start(**{kind: [answer(), FINISH]}, servers=[surface], **APPROVE).submit(lone(target.id))
    request = asked(handle)
    assert surface.effects == []
    getattr(handle, says)(request.id)
    outcome, effects = (Outcome.FINISHED, 1) if says == "approve" else (Outcome.REJECTED, 0)
    assert (handle.result(PATIENCE).outcome, len(surface.effects)) == (outcome, effects)


# Who answers, and from where


def test_a_thread_of_the_host_program_may_answer(start, asked):
    handle = start(app=[answer(), FINISH], **APPROVE).submit(lone())
    thread = threading.Thread(target=handle.approve, args=(asked(handle).id,))
    thread.start()
    thread.join(PATIENCE)
    assert handle.result(PATIENCE).ok


def test_a_callback_may_answer(start):
    supervisor = start(app=[answer(), FINISH], **APPROVE)
    handle = supervisor.submit(lone())

    def decide(event):
        if event.name is EventName.APPROVAL_REQUESTED:
            handle.approve(event.data["request"]["id"])

    supervisor.subscribe(decide, after=0, task_id=handle.task_id)
    assert handle.result(PATIENCE).ok


async def test_a_coroutine_may_answer(start):
    handle = start(app=[answer(), FINISH], **APPROVE).submit(lone())
    async for event in handle:
        if event.name is EventName.APPROVAL_REQUESTED:
            await asyncio.to_thread(handle.approve, event.data["request"]["id"])
    assert (await handle).ok


def test_a_thread_that_the_answer_needs_is_refused_instead_of_blocked(start, asked):
    said = []

    async def host(_request):
        said.append(tried(handle.approve, request.id))
        return FINISH

    supervisor = start(host=FunctionModel(host), app=[answer(), FINISH], **APPROVE)
    handle = supervisor.submit(lone())
    request = asked(handle)
    assert supervisor.submit(Task(request="approve it")).result(PATIENCE).ok
    assert [type(error) for error in said] == [WouldDeadlockError]
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok


@pytest.mark.parametrize("says", ["approve", "reject"])
def test_record_names_the_person_who_decided(start, asked, says):
    supervisor = start(app=[answer(), FINISH], **APPROVE)
    handle = supervisor.submit(lone())
    getattr(handle, says)(asked(handle).id, by="ada")
    handle.result(PATIENCE)
    (told,) = events_of(handle, EventName.APPROVAL_ANSWERED)
    assert (told.data["answer"]["by"], told.data["answer"]["approved"]) == ("ada", says == "approve")
    assert [row.author for row in supervisor.blackboard(handle.task_id).questions] == ["app/memo/one", "ada"]


def test_a_rejection_tells_who_rejected_and_why(start, asked):
    handle = start(app=[answer()], **APPROVE).submit(lone())
    handle.reject(asked(handle).id, "the books are closed", by="ada")
    assert handle.result(PATIENCE).causes[0].reason == "rejected by ada: the books are closed"


# Remembered


def twice(*actions):
    return [answer(each) for each in actions] + [FINISH]


def remember_the_first(handle):
    """Approve each request, the first for the rest of the task; return the number of requests."""
    decided = []

    def decide(handle, request):
        decided.append(request["id"])
        handle.approve(request["id"], remember=len(decided) == 1)

    return len(decide_each(handle, decide))


def test_without_remember_each_is_asked_for(start):
    handle = start(app=twice(action(), action()), **APPROVE).submit(lone())
    assert len(decide_each(handle)) == 2


def test_a_remembered_approval_covers_the_same_tool_target_and_arguments(start):
    surface = Surface()
    handle = start(app=twice(action(), action(), action()), servers=[surface], **APPROVE).submit(lone())
    assert remember_the_first(handle) == 1
    assert surface.effects == [EFFECT] * 3


@pytest.mark.parametrize(
    "other",
    [action("bye"), action(field="field-2"), action(function="append")],
    ids=["arguments", "control", "tool"],
)
def test_a_remembered_approval_does_not_hold_for_anything_else(start, other):
    surface = Surface(controls={"field-1": "", "field-2": ""})
    policy = [{"verdict": "approve"}]
    handle = start(app=twice(action(), other), servers=[surface], policy=policy).submit(lone())
    assert remember_the_first(handle) == 2


def test_a_remembered_approval_does_not_hold_for_another_target(start):
    windows = MemoryServer.window("one"), MemoryServer.window("two")
    host = [assign("memo:one"), assign("memo:two"), FINISH]
    app = FunctionModel(lambda request: FINISH if request.memory else answer())
    handle = start(host=host, app=app, servers=[Surface(*windows)], **APPROVE).submit(Task(request="both"))
    assert remember_the_first(handle) == 2


def test_a_remembered_approval_holds_for_a_later_subtask_of_the_same_task(start):
    host = [assign(subtask="first"), assign(subtask="second"), FINISH]
    app = [answer(status="FINISH"), FINISH, answer(status="FINISH"), FINISH]
    handle = start(host=host, app=app, **APPROVE).submit(Task(request="twice"))
    assert remember_the_first(handle) == 1
    assert handle.result(PATIENCE).ok


def test_a_remembered_approval_does_not_hold_for_the_next_task(start):
    app = FunctionModel(lambda request: FINISH if request.memory else answer())
    supervisor = start(app=app, **APPROVE)
    assert [remember_the_first(supervisor.submit(lone())) for _ in range(2)] == [1, 1]


def test_a_remembered_approval_is_for_what_the_model_itself_asks_about_too(start):
    handle = start(app=[answer(status="CONFIRM"), answer(status="CONFIRM"), FINISH]).submit(lone())
    assert remember_the_first(handle) == 1
    waived = [event.data["waived"] for event in events_of(handle, EventName.POLICY_DECIDED)]
    assert waived == ["", "", "", ""]


def test_a_remembered_approval_is_in_the_log_of_what_it_lets_run(start):
    handle = start(app=twice(action(), action()), **APPROVE).submit(lone())
    remember_the_first(handle)
    waived = [event.data["waived"] for event in events_of(handle, EventName.POLICY_DECIDED)]
    assert waived == ["", "approved", "approved for the rest of the task"]


def test_a_remembered_approval_does_not_cover_another_control_with_the_id(start):
    surface = Surface()

    def decide(handle, request):
        surface.seen_as = {"name": "another"}
        handle.approve(request["id"], remember=True)

    def app(request):
        return FINISH if len(request.memory) == 4 else answer()

    handle = start(app=app, servers=[surface], **APPROVE).submit(lone())
    assert len(decide_each(handle, decide)) == 2


# The look after an approval


@pytest.mark.parametrize(
    ("by_now", "why"),
    [
        ({"name": "another"}, "is gone or another one by now"),
        ({"kind": "button"}, "is gone or another one by now"),
        ({"id": "field-9"}, "is gone or another one by now"),
        ({"enabled": False}, "is disabled now"),
        ({"visible": False}, "is hidden now"),
    ],
    ids=["name", "kind", "gone", "disabled", "hidden"],
)
def test_changed_control_is_not_touched_and_the_model_is_asked_again(start, asked, by_now, why):
    surface, notes = Surface(), []
    handle = start(app=told([answer(), FINISH], notes), servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    surface.seen_as = by_now
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == []
    assert [why in note for note in notes[1]] == [True]


def test_if_one_of_several_approved_is_not_the_same_none_runs(start, asked):
    surface = Surface(controls={"field-2": "", "field-1": ""})
    listed = answer(action("fine", field="field-2"), action("changed"))
    handle = start(app=[listed, FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    surface.seen_as = {"enabled": False}
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == []


def test_approved_action_is_skipped_on_a_missing_target_with_a_note(start, asked):
    surface = Surface()
    seen = []

    def app(request):
        seen.append(request.observation.notes)
        return answer() if request.call == 1 else {"Status": "FAIL", "Comment": "the window is gone"}

    handle = start(app=app, servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    surface.remove("memo:one")
    handle.approve(request.id)
    result = handle.result(PATIENCE)
    assert (result.outcome, surface.effects) == (Outcome.FAILED, [])
    assert result.causes[0].reason == "the window is gone"
    assert any("memo:one is gone" in note for note in seen[1])
    assert result.usage.cuts == 1


def test_approved_action_runs_although_another_control_changed(start, asked):
    surface = Surface(controls={"field-1": "", "field-2": ""})
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    surface.remove("memo:one", "field-2")
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [EFFECT]


def test_exactly_the_approved_action_runs_once_and_without_the_model(start, asked):
    surface = Surface()
    app = FunctionModel(lambda request: FINISH if request.memory else answer())
    handle = start(app=app, servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    calls = app.calls
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [EFFECT]
    assert (calls, app.calls) == (1, 2)


# Rejections


def test_a_rejected_action_never_runs_and_its_subtask_is_no_success(start, asked):
    surface = Surface()
    handle = start(host=[assign(), {"Status": "FAIL"}], app=[answer()], servers=[surface], **APPROVE).submit(
        Task(request="write")
    )
    handle.reject(asked(handle).id, "no")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.subtasks[0].outcome) == (Outcome.FAILED, Outcome.REJECTED)
    assert surface.effects == []
    assert moves(handle)[-1] == ("CONFIRM", "FINISH", "user")


def test_a_rejected_host_agent_fails_as_rejected(start, asked):
    handle = start(host=[CONFIRM]).submit(Task(request="plan"))
    handle.reject(asked(handle).id, "no")
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert moves(handle, f"host/{handle.task_id}")[-2:] == [("CONFIRM", "FAIL", "user"), ("FAIL", "FINISH", "system")]


# The deadline


@pytest.mark.parametrize(
    "then",
    [
        ("deny", "write", Outcome.REJECTED, 0),
        ("fail", "write", Outcome.TIMED_OUT, 0),
        ("allow", "write", Outcome.FINISHED, 1),
        ("deny", "append", Outcome.REJECTED, 0),
        ("fail", "append", Outcome.TIMED_OUT, 0),
        ("allow", "append", Outcome.REJECTED, 0),
    ],
)
@pytest.mark.parametrize(
    "agent",
    [("app", MemoryServer.window()), ("mobile", MemoryServer.device()), ("linux", MemoryServer.shell())],
)
def test_the_settings_say_what_happens_at_the_deadline(start, asked, agent, then):
    (kind, target), (at_deadline, function, outcome, effects) = agent, then
    clock, surface = VirtualClock(), Surface(target)
    handle = start(
        **{kind: [answer(action(function=function)), FINISH]},
        servers=[surface],
        clock=clock,
        limits={"approval_seconds": 30, "at_approval_deadline": at_deadline},
        policy=[{"verdict": "approve"}],
    ).submit(lone(target.id))
    asked(handle)
    clock.advance(29)
    assert len(handle.approvals()) == 1
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert (result.outcome, len(surface.effects)) == (outcome, effects)


def test_one_unrepeatable_action_keeps_the_deadline_from_allowing_a_list(start, asked):
    listed = answer(action("a"), action("b", "append"))
    limits = {"at_approval_deadline": "allow"}
    request = asked(start(app=[listed, FINISH], limits=limits, **APPROVE).submit(lone()))
    assert request.at_deadline is AtDeadline.DENY


@pytest.mark.parametrize("at_deadline", ["deny", "fail"])
def test_approval_that_timed_out_is_the_cause(start, asked, at_deadline):
    clock = VirtualClock()
    limits = {"at_approval_deadline": at_deadline}
    supervisor = start(app=[answer()], clock=clock, limits=limits, **APPROVE)
    handle = supervisor.submit(lone())
    asked(handle)
    clock.advance(supervisor.settings.limits.approval_seconds)
    assert handle.result(PATIENCE).causes[0].reason == "nobody decided on the approval in time"


@pytest.mark.parametrize(
    ("at_deadline", "outcome"),
    [("deny", Outcome.REJECTED), ("fail", Outcome.TIMED_OUT), ("allow", Outcome.FINISHED)],
)
def test_the_deadline_of_a_host_agents_approval(start, asked, at_deadline, outcome):
    clock = VirtualClock()
    limits = {"approval_seconds": 30, "at_approval_deadline": at_deadline}
    handle = start(host=[CONFIRM, FINISH], clock=clock, limits=limits).submit(Task(request="plan"))
    asked(handle)
    clock.advance(30)
    assert handle.result(PATIENCE).outcome is outcome


def test_approval_by_the_deadline_is_not_logged_as_a_persons(start, asked):
    clock = VirtualClock()
    limits = {"approval_seconds": 30, "at_approval_deadline": "allow"}
    handle = start(app=[answer(), FINISH], clock=clock, limits=limits, **APPROVE).submit(lone())
    asked(handle)
    clock.advance(30)
    assert handle.result(PATIENCE).ok
    waived = [event.data["waived"] for event in events_of(handle, EventName.POLICY_DECIDED)]
    assert waived == ["", "nobody decided on the approval in time"]
    assert moves(handle)[2] == ("CONFIRM", "CONTINUE", "system")


def test_task_and_subtask_clocks_stand_still_while_a_person_is_asked(start, asked):
    clock = VirtualClock()
    limits = {"task_seconds": 60, "subtask_seconds": 60, "approval_seconds": 10_000}
    handle = start(app=[answer(), FINISH], clock=clock, limits=limits, **APPROVE).submit(lone())
    request = asked(handle)
    clock.advance(9_999)
    assert not handle.done()
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok


def test_clocks_continue_after_the_answer(start, asked):
    clock, model = VirtualClock(), threading.Event()

    async def app(request):
        if not request.memory:
            return answer()
        model.set()
        return await asyncio.Event().wait()

    limits = {"task_seconds": 60, "approval_seconds": 10_000, "model_seconds": 3600}
    handle = start(app=FunctionModel(app), clock=clock, limits=limits, **APPROVE).submit(lone())
    request = asked(handle)
    clock.advance(1000)
    handle.approve(request.id)
    assert model.wait(PATIENCE)
    clock.advance(59)
    assert not handle.done()
    clock.advance(1)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


# Races: the first word wins


def test_of_two_answers_the_first_wins_and_the_second_gets_a_clear_error(start, asked):
    surface = Surface()
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    handle.approve(request.id, by="ada")
    with pytest.raises(NotWaitingError, match="is not open"):
        handle.reject(request.id, by="bob")
    assert handle.result(PATIENCE).ok
    assert surface.effects == [EFFECT]


@pytest.mark.parametrize("_round", range(5))
def test_of_many_answers_at_once_exactly_one_wins(start, asked, _round):
    surface = Surface()
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request, barrier, said = asked(handle), threading.Barrier(10), []

    def decide(number):
        act = handle.approve if number % 2 else handle.reject
        barrier.wait(PATIENCE)
        said.append((number % 2, tried(act, request.id, by=str(number))))

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(type(error).__name__ for _, error in said) == ["NoneType", *["NotWaitingError"] * 9]
    approved = next(approves for approves, error in said if error is None)
    assert handle.result(PATIENCE).outcome is (Outcome.FINISHED if approved else Outcome.REJECTED)
    assert surface.effects == [EFFECT] * approved


def test_an_answer_just_before_the_deadline_counts(start, asked):
    clock = VirtualClock()
    handle = start(app=[answer(), FINISH], clock=clock, limits={"approval_seconds": 30}, **APPROVE).submit(lone())
    request = asked(handle)
    clock.advance(29.999)
    handle.approve(request.id)
    clock.advance(1)
    assert handle.result(PATIENCE).ok


def test_an_answer_after_the_deadline_gets_a_clear_error(start, asked):
    clock, surface = VirtualClock(), Surface()
    limits = {"approval_seconds": 30}
    handle = start(app=[answer()], servers=[surface], clock=clock, limits=limits, **APPROVE).submit(lone())
    request = asked(handle)
    clock.advance(30)
    with pytest.raises(NotWaitingError, match="reached its deadline"):
        handle.approve(request.id)
    assert (handle.result(PATIENCE).outcome, surface.effects) == (Outcome.REJECTED, [])


@pytest.mark.parametrize("_round", range(10))
def test_an_answer_at_the_deadline_is_either_in_time_or_refused(start, asked, _round):
    clock, surface = VirtualClock(), Surface()
    limits = {"approval_seconds": 30}
    handle = start(app=[answer(), FINISH], servers=[surface], clock=clock, limits=limits, **APPROVE).submit(lone())
    request, barrier = asked(handle), threading.Barrier(2)

    def pass_the_deadline():
        barrier.wait(PATIENCE)
        clock.advance(30)

    thread = threading.Thread(target=pass_the_deadline)
    thread.start()
    barrier.wait(PATIENCE)
    error = tried(handle.approve, request.id)
    thread.join(PATIENCE)
    outcome = handle.result(PATIENCE).outcome
    if error is None:
        assert (outcome, surface.effects) == (Outcome.FINISHED, [EFFECT])
    else:
        assert isinstance(error, NotWaitingError)
        assert (outcome, surface.effects) == (Outcome.REJECTED, [])
    assert len(events_of(handle, EventName.APPROVAL_ANSWERED)) == 1


def test_an_approval_after_a_cancel_gets_a_clear_error(start, asked):
    surface = Surface()
    handle = start(app=[answer()], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    handle.cancel()
    with pytest.raises(NotWaitingError, match="was cancelled"):
        handle.approve(request.id)
    assert (handle.result(PATIENCE).outcome, surface.effects) == (Outcome.CANCELLED, [])
    assert handle.approvals() == ()


@pytest.mark.parametrize("hold", ["hold_looks", "hold_calls"])
def test_a_cancel_while_the_approval_is_on_its_way_stops_the_action(start, asked, hold):
    surface = Surface()
    handle = start(app=[answer()], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    getattr(surface, hold).set()
    handle.approve(request.id)
    assert surface.held.wait(PATIENCE)
    handle.cancel()
    surface.go.set()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert surface.effects == []


@pytest.mark.parametrize("_round", range(10))
def test_a_cancel_at_the_time_of_an_approval_ends_as_cancelled_or_finished(start, asked, _round):
    surface = Surface()
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request, barrier, said = asked(handle), threading.Barrier(2), []

    def approve():
        barrier.wait(PATIENCE)
        said.append(tried(handle.approve, request.id))

    thread = threading.Thread(target=approve)
    thread.start()
    barrier.wait(PATIENCE)
    cancelled = handle.cancel()
    thread.join(PATIENCE)
    outcome = handle.result(PATIENCE).outcome
    assert outcome is (Outcome.CANCELLED if cancelled else Outcome.FINISHED)
    assert surface.effects in ([], [EFFECT])
    if said[0] is not None:
        assert isinstance(said[0], NotWaitingError)
        assert surface.effects == []


def test_an_approval_after_the_end_gets_a_clear_error(start, asked):
    handle = start(app=[answer(), FINISH], **APPROVE).submit(lone())
    request = asked(handle)
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    with pytest.raises(NotWaitingError):
        handle.approve(request.id)


def test_an_approval_after_the_supervisor_stopped_gets_a_clear_error(start, asked):
    surface = Surface()
    supervisor = start(app=[answer()], servers=[surface], **APPROVE)
    handle = supervisor.submit(lone())
    request = asked(handle)
    supervisor.stop()
    with pytest.raises(SupervisorStoppedError):
        handle.approve(request.id)
    assert (handle.result(0).outcome, surface.effects) == (Outcome.CANCELLED, [])


def test_an_approval_belongs_to_its_task(start, asked):
    windows = MemoryServer.window("one"), MemoryServer.window("two")
    app = FunctionModel(lambda _: answer())
    supervisor = start(app=app, servers=[Surface(*windows)], **APPROVE)
    one, two = (supervisor.submit(lone(window.id)) for window in windows)
    request = asked(one)
    with pytest.raises(NotWaitingError):
        two.approve(request.id)
    assert one.approvals() == (request,)


def test_an_approval_is_not_answered_as_a_question(start, asked):
    handle = start(app=[answer(), FINISH], **APPROVE).submit(lone())
    request = asked(handle)
    with pytest.raises(AnswerRefusedError, match="approve or reject"):
        handle.answer(request.id, "yes")
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok


def test_the_answer_is_written_down_before_the_agent_hears_of_it(start, asked):
    handle = start(app=[answer(), FINISH], **APPROVE).submit(lone())
    handle.approve(asked(handle).id)
    assert handle.result(PATIENCE).ok
    (answered,) = events_of(handle, EventName.APPROVAL_ANSWERED)
    ran = next(event for event in events_of(handle, EventName.COMMAND_ENDED) if event.data["tool"] == "write")
    assert answered.seq < ran.seq


def test_an_approval_is_in_the_log_with_the_person(start, asked, tmp_path):
    log = tmp_path / "callboard.log"
    supervisor = start(app=[answer(), FINISH], log={"file": str(log)}, **APPROVE)
    handle = supervisor.submit(lone())
    handle.approve(asked(handle).id, by="ada")
    handle.result(PATIENCE)
    supervisor.stop()
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (line,) = [line for line in lines if line["event"] == "approval.answered"]
    assert line["answer"]["by"] == "ada"


# Other work meanwhile


def test_a_subtask_that_waits_for_an_approval_keeps_its_target(start, asked, until):
    surface = Surface()

    def app(request):
        if request.request == "second":
            return {**answer(action("second", "append")), "Status": "FINISH"}
        return FINISH if request.memory else answer()

    supervisor = start(app=app, servers=[surface], **APPROVE)
    first = supervisor.submit(lone())
    request = asked(first)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    until(second, EventName.SUBTASK_QUEUED)
    assert [run.leased for task in supervisor.status().tasks for run in task.runs] == [True, False]
    first.approve(request.id)
    assert first.result(PATIENCE).ok
    assert second.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["hello", "second"]


def test_a_rejected_subtask_gives_its_target_back(start, asked):
    supervisor = start(app=FunctionModel(lambda r: answer() if r.request == "write" else FINISH), **APPROVE)
    first = supervisor.submit(lone(request="write"))
    request = asked(first)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    first.reject(request.id)
    assert second.result(PATIENCE).ok


def test_other_tasks_continue_while_one_waits(start, asked):
    windows = MemoryServer.window("one"), MemoryServer.window("two")
    app = FunctionModel(lambda request: answer() if request.target.id == "memo:one" else FINISH)
    supervisor = start(app=app, servers=[Surface(*windows)], **APPROVE)
    waiting = supervisor.submit(lone("memo:one"))
    asked(waiting)
    assert supervisor.submit(lone("memo:two")).result(PATIENCE).ok
    assert not waiting.done()


def test_approved_action_runs_after_a_pause(start, asked, until):
    surface = Surface()
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    handle.pause()
    handle.approve(request.id)
    until(handle, EventName.APPROVAL_ANSWERED)
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert surface.effects == [EFFECT]


def test_a_pause_between_approval_and_action_holds_exactly_that_action(start, asked, until):
    surface = Surface()
    handle = start(app=[answer(), FINISH], servers=[surface], **APPROVE).submit(lone())
    request = asked(handle)
    surface.hold_looks.set()
    handle.approve(request.id)
    assert surface.held.wait(PATIENCE)
    handle.pause()
    surface.hold_looks.clear()
    surface.go.set()
    until(handle, EventName.STEP_ENDED, results=[])
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert surface.effects == [EFFECT]
    assert len(events_of(handle, EventName.APPROVAL_REQUESTED)) == 1


@pytest.mark.parametrize("says", ["stop", "nothing"])
def test_approved_action_runs_although_no_step_is_left_in_the_budget(start, asked, until, says):
    clock, surface = VirtualClock(), Surface()
    budget = {"task": {"steps": 1}, "at_limit": "ask"}
    supervisor = start(app=[answer()], servers=[surface], clock=clock, budget=budget, **APPROVE)
    handle = supervisor.submit(lone())
    handle.approve(asked(handle).id)
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert surface.effects == [EFFECT]
    if says == "stop":
        handle.answer(question.id, "stop")
    else:
        clock.advance(question.deadline - clock.now())
    assert handle.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET


def test_a_tool_of_the_host_program_is_approved_like_any_other(start, asked):
    class Doors(MemoryServer):
        @tool(effect=Effect.ONCE, agents=WORKERS)
        def unlock(self, door: str) -> str:
            """Unlock a door."""
            self.effects.append(("house", door, "unlocked"))
            return door

    surface = Doors(MemoryServer.window())
    unlock = {"Status": "FINISH", "Function": "unlock", "Args": {"door": "front"}}
    policy = [{"verdict": "approve", "tool": "unlock", "arguments": {"door": "re:front|back"}}]
    handle = start(app=[unlock, FINISH], servers=[surface], policy=policy).submit(lone())
    handle.approve(asked(handle).id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("house", "front", "unlocked")]
