"""Recovery: the next supervisor on a journal continues the work of the one before it. Nothing is done twice."""

from __future__ import annotations

import threading

import pytest
from held_surface import Held

from callboard import EventName, Outcome, Task, tool
from callboard.actors.commands import TargetLookup
from callboard.messages import (
    Effect,
    JournalInUseError,
    NotAllTakenError,
    NotWaitingError,
    SupervisorStoppedError,
    TaskRefusedError,
    UnknownTaskError,
)
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, append, lone, stop_blocked


class Stage:
    """Supervisors one after the other on one journal and one surface, and the calls to their models."""

    def __init__(self, start, path):
        self._start, self._path = start, path
        self.surface = MemoryServer(MemoryServer.window())
        self.calls = []

    def begin(self, *, surface=None, **given):
        for kind in ("host", "app"):
            if kind in given:
                given[kind] = self._noted(kind, given[kind])
        surface = surface or self.surface
        journal = {"path": self._path, **given.pop("journal", {})}
        return self._start(servers=[surface], journal=journal, **given)

    def _noted(self, kind, answers):
        def answer(request):
            self.calls.append((kind, request.call))
            return answers(request) if callable(answers) else answers[request.call - 1]

        return answer

    @property
    def texts(self):
        return [text for _, _, text in self.surface.effects]


@pytest.fixture
def stage(start, tmp_path):
    return Stage(start, tmp_path / "journal.db")


class Blocks:
    """A model that answers until a certain call, in which it hangs until it is let go."""

    def __init__(self, at, answers):
        self.at, self.answers = at, answers
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self, request):
        if request.call == self.at and not self.go.is_set():
            self.reached.set()
            self.go.wait(HELD)
        return self.answers[request.call - 1]


def test_task_continues_where_it_was_and_repeats_no_action(stage):
    answers = [append("1"), append("2"), append("3", "FINISH")]
    blocked = Blocks(3, answers)
    first = stage.begin(app=blocked, host=[ASSIGN, FINISH])
    handle = first.submit(Task(id="t", request="do it"))
    assert blocked.reached.wait(PATIENCE)
    assert first.stop() == ("callboard-model-app/memo/one",)
    blocked.go.set()
    with pytest.raises(SupervisorStoppedError, match="is kept in the journal"):
        handle.result(PATIENCE)
    assert stage.texts == ["1", "2"]
    stage.calls.clear()
    second = stage.begin(app=answers, host=[ASSIGN, FINISH])
    assert [left.task_id for left in second.pending()] == ["t"]
    result = second.handle("t").result(PATIENCE)
    assert result.ok, result.causes
    assert stage.texts == ["1", "2", "3"]
    assert stage.calls == [("app", 3), ("host", 2)]
    assert (result.usage.model_calls, result.usage.commands, len(result.subtasks)) == (5, 3, 1)


def test_the_events_of_both_processes_have_one_order_and_can_all_be_read(stage):
    blocked = Blocks(2, [append("1"), FINISH])
    first = stage.begin(app=blocked)
    first.submit(lone(id="t"))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    second = stage.begin(app=[append("1"), FINISH])
    handle = second.handle("t")
    assert handle.result(PATIENCE).ok
    events = list(handle.events())
    numbers = [event.seq for event in events if event.name is not EventName.PHASE_ENDED]  # those have none of their own
    assert numbers == sorted(set(numbers))
    names = [event.name for event in events]
    assert names.count(EventName.TASK_SUBMITTED) == names.count(EventName.TASK_RECOVERED) == 1
    assert names[-1] is EventName.TASK_ENDED
    assert EventName.RUN_RECOVERED in names


def test_a_task_that_is_over_is_known_by_its_id_and_by_its_key(stage):
    first = stage.begin(app=[FINISH])
    done = first.submit(lone(id="t", key="order-17")).result(PATIENCE)
    first.stop()
    second = stage.begin(app=[])
    assert second.handle("t").result(0) == done
    assert second.submit(lone(id="t", key="order-17")).result(0) == done
    assert second.submit(lone(key="order-17")).task_id == "t"
    assert second.pending() == ()
    with pytest.raises(TaskRefusedError, match="was used before, for another task"):
        second.submit(lone(id="t"))
    with pytest.raises(UnknownTaskError):
        second.handle("u")


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_key_that_was_used_for_another_request_is_refused(stage, ended, restarted):
    blocked = Blocks(2 if ended else 1, [FINISH, FINISH])
    supervisor = stage.begin(app=blocked)
    first = supervisor.submit(lone(id="t", key="order-17", request="order 1", labels={"by": "me"}))
    if ended:
        first.result(PATIENCE)
    if restarted:
        supervisor.stop(0.1)
        blocked.go.set()
        supervisor = stage.begin(app=[FINISH, FINISH])
    assert supervisor.submit(lone(key="order-17", request="order 1", labels={"by": "you"})).task_id == "t"
    refused = (
        "the key 'order-17' was used before: the task t was to 'order 1' on memo:one, this one is to 'order 1000000'"
    )
    with pytest.raises(TaskRefusedError, match=refused):
        supervisor.submit(lone(key="order-17", request="order 1000000"))
    blocked.go.set()


def test_of_one_key_in_one_call_the_second_request_is_refused(stage):
    supervisor = stage.begin(app=lambda _: FINISH)
    tasks = [lone(key="k", request=request) for request in ("one", "two")]
    with pytest.raises(NotAllTakenError) as refused:
        supervisor.submit_all(tasks)
    assert "the key 'k' was used before" in str(refused.value.__cause__ or refused.value)


def test_the_same_task_twice_is_one_task_while_it_runs(stage):
    blocked = Blocks(1, [append("1", "FINISH")])
    supervisor = stage.begin(app=blocked)
    handles = [supervisor.submit(lone(id="t")), supervisor.submit(lone(id="t"))]
    keyed = [supervisor.submit(lone(key="k")), supervisor.submit(lone(key="k"))]
    assert keyed[0].task_id == keyed[1].task_id
    blocked.go.set()
    assert [handle.result(PATIENCE).ok for handle in (*handles, *keyed)] == [True] * 4
    assert stage.texts == ["1", "1"]


def test_a_second_supervisor_can_not_have_the_same_journal(stage):
    stage.begin(app=[FINISH])
    with pytest.raises(JournalInUseError, match="is in use by process"):
        stage.begin(app=[FINISH])


def test_an_open_question_survives_and_can_be_answered(stage, until):
    first = stage.begin(app=[ASK, FINISH])
    until(first.submit(lone(id="t")), EventName.QUESTION_ASKED)
    first.stop()
    stage.calls.clear()
    notes = []

    def app(request):
        notes[:] = request.observation.notes
        return FINISH

    handle = stage.begin(app=app).handle("t")
    (question,) = handle.questions()
    handle.answer(question.id, "the left one", by="Ada")
    assert handle.result(PATIENCE).ok
    assert stage.calls == [("app", 2)]
    assert any("the left one" in note for note in notes)
    with pytest.raises(NotWaitingError):
        handle.answer(question.id, "the other one")


def test_an_open_approval_survives_and_the_approved_action_runs_once(stage, until):
    rules = [{"tool": "append", "verdict": "approve"}]
    first = stage.begin(app=[append("1", "FINISH")], policy=rules)
    until(first.submit(lone(id="t")), EventName.APPROVAL_REQUESTED)
    first.stop()
    handle = stage.begin(app=[], policy=rules, limits={"steps": 1}).handle("t")
    (approval,) = handle.approvals()
    assert [action.arguments["text"] for action in approval.actions] == ["1"]
    handle.approve(approval.id, by="Ada")
    handle.result(PATIENCE)
    assert stage.texts == ["1"]


def test_approval_for_the_rest_of_a_task_holds_in_the_next_process(stage, until):
    rules = [{"tool": "append", "verdict": "approve"}]
    answers = [append("1"), append("1"), FINISH]
    blocked = Blocks(2, answers)
    first = stage.begin(app=blocked, policy=rules)
    handle = first.submit(lone(id="t"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id, remember=True)
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    assert stage.begin(app=answers, policy=rules).handle("t").result(PATIENCE).ok
    assert stage.texts == ["1", "1"]


def test_a_paused_task_stays_paused(stage):
    blocked = Blocks(2, [append("1"), append("2", "FINISH")])
    first = stage.begin(app=blocked)
    handle = first.submit(lone(id="t"))
    assert blocked.reached.wait(PATIENCE)
    handle.pause()
    stop_blocked(first)
    blocked.go.set()
    second = stage.begin(app=[append("1"), append("2", "FINISH")])
    assert second.status().tasks[0].paused
    second.handle("t").resume()
    assert second.handle("t").result(PATIENCE).ok
    assert stage.texts == ["1", "2"]


def test_cancel_holds_in_the_next_process(stage, until):
    first = stage.begin(app=[ASK])
    handle = first.submit(lone(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    handle.cancel("not needed any more")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    first.stop()
    assert stage.begin(app=[]).handle("t").result(0).causes[0].reason == "not needed any more"


def test_queued_work_is_begun_by_the_next_process_in_the_same_order(stage):
    blocked = Blocks(1, [append("1", "FINISH")])
    first = stage.begin(app=blocked)
    for number in "abc":
        first.submit(lone(id=number))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    second = stage.begin(app=lambda request: append(request.task_id, "FINISH"))
    assert [second.handle(each).result(PATIENCE).ok for each in "abc"] == [True] * 3
    assert stage.texts == ["a", "b", "c"]


def test_budgets_count_what_was_used_before(stage):
    blocked = Blocks(3, [append("1"), append("2"), append("3"), append("4"), append("5")])
    first = stage.begin(app=blocked, budget={"task": {"model_calls": 4}})
    first.submit(lone(id="t"))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    handle = stage.begin(app=blocked.answers, budget={"task": {"model_calls": 4}}).handle("t")
    assert handle.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET
    assert stage.texts == ["1", "2", "3", "4"]


def test_a_follow_up_that_was_under_way_remembers_the_task_before(stage):
    blocked = Blocks(2, [FINISH, FINISH])
    first = stage.begin(host=blocked)
    handle = first.submit(Task(id="t", request="one"))
    handle.result(PATIENCE)
    after = handle.follow_up("two", id="u")
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    memories = []

    def host(request):
        memories.append([record.decision.comment for record in request.memory])
        return {**FINISH, "Comment": "again"}

    assert stage.begin(host=host).handle(after.task_id).result(PATIENCE).ok
    assert memories == [[""]]


def test_an_agent_remembers_its_earlier_subtask_of_the_task(stage):
    def host(request):
        return [ASSIGN, {**ASSIGN, "Current Sub-Task": "more"}, FINISH][request.call - 1]

    blocked = Blocks(2, [append("1", "FINISH"), append("2", "FINISH")])
    first = stage.begin(host=host, app=blocked)
    first.submit(Task(id="t", request="x"))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    memories = []

    def app(request):
        memories.append(len(request.memory))
        return append("2", "FINISH")

    assert stage.begin(host=host, app=app).handle("t").result(PATIENCE).ok
    assert (memories, stage.texts) == ([1], ["1", "2"])


def test_plan_continues_with_the_next_round(stage):
    blocked = Blocks(2, [FINISH] * 3)
    first = stage.begin(host=blocked)
    first.submit(Task(id="t", plan=["one", "two", "three"]))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    stage.calls.clear()
    result = stage.begin(host=[FINISH] * 3).handle("t").result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.FINISHED, 3)
    assert stage.calls == [("host", 2), ("host", 3)]


STAMP = {"Status": "CONTINUE", "Function": "stamp"}


def killed_in_the_middle(stage, held, answers):
    """Leave a supervisor in the middle of a tool call."""
    first = stage.begin(app=answers, surface=held)
    first.submit(lone(id="t"))
    assert held.reached.wait(PATIENCE)
    assert "jobs" in first.stop(timeout=0.1)


@pytest.fixture
def in_doubt(stage):
    """A task whose process ended after its action was done, and before anybody heard of it."""
    held = Held(stage.surface.effects, "after")
    killed_in_the_middle(stage, held, [STAMP, FINISH])
    yield Held(stage.surface.effects, "")
    held.go.set()


@pytest.mark.parametrize(
    ("said", "stamps", "outcome"),
    [
        ("it was done", 1, Outcome.FINISHED),
        ("it was not done", 2, Outcome.FINISHED),
        ("stop", 1, Outcome.FAILED),
    ],
)
def test_unclear_action_is_put_to_a_person(stage, until, in_doubt, said, stamps, outcome):
    handle = stage.begin(app=[STAMP, FINISH], surface=in_doubt).handle("t")
    event = until(handle, EventName.COMMAND_IN_DOUBT)
    assert (event.data["tool"], event.data["probe"]) == ("stamp", "unknown")
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert question.in_doubt == "t~1.1.0"
    assert question.questions[0].choices == ("it was done", "it was not done", "stop")
    handle.answer(question.id, said)
    assert handle.result(PATIENCE).outcome is outcome
    assert len(stage.surface.effects) == stamps


def test_the_question_about_a_doubt_survives_another_restart(stage, until, in_doubt):
    second = stage.begin(app=[STAMP, FINISH], surface=in_doubt)
    until(second.handle("t"), EventName.QUESTION_ASKED)
    second.stop()
    handle = stage.begin(app=[STAMP, FINISH], surface=in_doubt).handle("t")
    handle.answer(handle.questions()[0].id, "it was done")
    assert handle.result(PATIENCE).ok
    assert len(stage.surface.effects) == 1


@pytest.mark.parametrize("settings", [{"journal": {"in_doubt": "fail"}}, {"system": {"ask_question": False}}])
def test_unclear_action_fails_its_work_when_no_person_may_be_asked(stage, in_doubt, settings):
    result = stage.begin(app=[STAMP, FINISH], surface=in_doubt, **settings).handle("t").result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "stamp may have been done before a crash, or not" in result.causes[-1].reason
    assert len(stage.surface.effects) == 1


def test_unanswered_question_about_a_doubt_times_out(start, stage, until, in_doubt):
    handle = stage.begin(app=[STAMP, FINISH], surface=in_doubt, limits={"question_seconds": 0.05}).handle("t")
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT
    assert len(stage.surface.effects) == 1


class HeldAppend(MemoryServer):
    """A window whose `append` stops in the middle."""

    where = ""

    def __init__(self):
        super().__init__(self.window())
        self.reached, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def append(self, target: str, control_id: str, text: str) -> str:
        """Add to a field's text, and stop before or after it."""
        if self.where == "before":
            self._hang()
        whole = super().append(target, control_id, text)
        if self.where == "after":
            self._hang()
        return whole

    def _hang(self):
        self.where = ""
        self.reached.set()
        self.go.wait(HELD)


@pytest.mark.parametrize(("where", "probe"), [("after", "done"), ("before", "not_done")])
def test_visible_action_is_probed_and_the_rest_of_its_list_continues(stage, until, where, probe):
    surface = HeldAppend()
    surface.where = where
    actions = [{"Function": "append", "Args": append(text)["Args"]} for text in "12"]
    answers = [{"Status": "FINISH", "Actions": actions}]
    first = stage.begin(app=answers, surface=surface)
    first.submit(lone(id="t"))
    assert surface.reached.wait(PATIENCE)
    assert "jobs" in first.stop(timeout=0.1)
    stage.calls.clear()
    handle = stage.begin(app=answers, surface=surface).handle("t")
    assert until(handle, EventName.COMMAND_IN_DOUBT).data["probe"] == probe
    assert handle.result(PATIENCE).ok, handle.result(0).causes
    surface.go.set()
    assert [text for _, _, text in surface.effects] == ["1", "2"]
    assert stage.calls == []


def test_expired_task_is_dropped_at_the_start_and_repeatedly(stage):
    clock = VirtualClock()
    supervisor = stage.begin(app=[FINISH], clock=clock, journal={"days": 1e-9})
    supervisor.submit(lone(id="t")).result(PATIENCE)
    assert supervisor.handle("t").result(0).ok
    clock.advance(24 * 3600)
    with pytest.raises(UnknownTaskError):
        supervisor.handle("t")


@pytest.mark.parametrize("host", [True, False])
def test_a_task_paused_before_a_restart_can_be_cancelled_after_it(stage, until, host):
    blocked = Blocks(1, [append("1")])
    first = stage.begin(app=blocked, host=[ASSIGN])
    handle = first.submit(Task(id="t", request="x") if host else lone(id="t"))
    assert blocked.reached.wait(PATIENCE)
    handle.pause()
    stop_blocked(first)
    blocked.go.set()
    second = stage.begin(app=[append("1")], host=[ASSIGN])
    handle = second.handle("t")
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_stop_lets_no_action_begin(stage):
    blocked = Held(stage.surface.effects, "before")
    first = stage.begin(app=lambda _request: {"Status": "FINISH", "Function": "stamp"}, surface=blocked)
    for number in range(3):
        first.submit(lone(id=f"t{number}"))
    assert blocked.reached.wait(PATIENCE)
    stopped = threading.Thread(target=first.stop)
    stopped.start()
    while first.status().accepting:
        continue
    blocked.go.set()
    stopped.join(PATIENCE)
    assert len(stage.surface.effects) == 1
    second = stage.begin(
        app=lambda _request: {"Status": "FINISH", "Function": "stamp"}, surface=Held(stage.surface.effects, "")
    )
    assert all(handle.result(PATIENCE).ok for handle in second.pending())
    assert len(stage.surface.effects) == 3


def test_the_conversation_of_a_follow_up_that_is_not_over_is_kept(stage):
    memories = []
    blocked = Blocks(2, [FINISH, FINISH])
    first = stage.begin(host=blocked)
    handle = first.submit(Task(id="t", request="one"))
    handle.result(PATIENCE)
    handle.follow_up("two", id="u")
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()

    def host(request):
        memories.append(len(request.memory))
        return FINISH

    second = stage.begin(host=host, journal={"days": 1e-9, "max_bytes": 1})
    assert second.handle("u").result(PATIENCE).ok
    assert memories == [1]


def test_a_key_reused_as_its_task_ends_is_that_task_and_holds_no_window(stage, monkeypatch):
    supervisor, found = stage.begin(app=lambda _request: FINISH), []
    looked, go, look = threading.Event(), threading.Event(), TargetLookup.targets

    def held_up(lookup, tasks):
        targets = look(lookup, tasks)
        if threading.current_thread() is second:
            looked.set()
            assert go.wait(HELD)
        return targets

    monkeypatch.setattr(TargetLookup, "targets", held_up)
    second = threading.Thread(target=lambda: found.append(supervisor.submit(lone(key="k"))))
    second.start()
    assert looked.wait(PATIENCE)
    first = supervisor.submit(lone(key="k"))
    assert first.result(PATIENCE).ok
    go.set()
    second.join(PATIENCE)
    assert found[0].task_id == first.task_id
    assert supervisor.pending() == ()
    assert supervisor.submit(lone()).result(PATIENCE).ok


@pytest.fixture
def begun(stage):
    """Three tasks for one window, one with a step done, left to the next process."""
    blocked = Blocks(2, [append("1"), FINISH])
    first = stage.begin(app=blocked)
    for task_id in ("a", "b", "c"):
        first.submit(lone(id=task_id))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    return stage


def wrong_start(start, path, stage, what):
    given = {"servers": [stage.surface]} if what == "model" else {"servers": [], "app": [FINISH]}
    return start(journal={"path": path}, **given)


@pytest.mark.parametrize(
    ("what", "lacks"), [("model", "no model is set for app agents"), ("surface", "no surface is called 'memory'")]
)
def test_a_process_without_a_tasks_model_or_surface_leaves_it_to_another(start, begun, until, tmp_path, what, lacks):
    for left in ("abc", "ab"):
        wrong = wrong_start(start, tmp_path / "journal.db", begun, what)
        assert [(task.task_id, task.paused, task.lacks) for task in wrong.status().tasks] == [
            (task_id, True, lacks) for task_id in left
        ]
        assert until(wrong.handle("a"), EventName.TASK_PAUSED, reason=lacks)
        if "c" in left:
            wrong.handle("c").cancel()
            assert wrong.handle("c").result(PATIENCE).outcome is Outcome.CANCELLED
        wrong.stop()
    right = begun.begin(app=[append("1"), FINISH])
    assert [right.handle(task_id).result(PATIENCE).outcome for task_id in "abc"] == [
        Outcome.FINISHED,
        Outcome.FINISHED,
        Outcome.CANCELLED,
    ]
    assert begun.texts == ["1", "1"]
    right.stop()
    assert all(replay.same for replay in assert_replays(tmp_path / "journal.db"))


def test_task_continues_without_its_missing_model_when_it_is_resumed(start, begun, tmp_path):
    handle = wrong_start(start, tmp_path / "journal.db", begun, "model").handle("a")
    assert handle.resume()
    assert "no model is set" in handle.result(PATIENCE).causes[-1].reason


def test_a_task_that_lacks_something_and_that_a_person_pauses_stays_paused(start, begun, tmp_path):
    wrong = wrong_start(start, tmp_path / "journal.db", begun, "model")
    assert wrong.handle("a").pause()
    assert not wrong.handle("a").pause()
    wrong.stop()
    right = begun.begin(app=[append("1"), FINISH])
    assert [task.paused for task in right.status().tasks] == [True, False, False]
    assert right.handle("a").resume()
    assert right.handle("a").result(PATIENCE).ok


@pytest.mark.parametrize(("target", "paused"), [("memo:one", False), (None, True)])
def test_host_model_is_needed_unless_the_plan_names_all_targets(start, stage, tmp_path, target, paused):
    blocked = Blocks(1, [FINISH])
    first = stage.begin(app=blocked, host=[ASSIGN, FINISH])
    handle = first.submit(Task(id="t", plan=({"request": "write", "target": target},)))
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    second = start(app=[FINISH], servers=[stage.surface], journal={"path": tmp_path / "journal.db"})
    handle = second.handle("t")
    if paused:
        assert second.status().tasks[0].lacks == "no model is set for host agents"
    else:
        assert handle.result(PATIENCE).ok
