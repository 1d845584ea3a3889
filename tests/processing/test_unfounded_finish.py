"""A language model's FINISH after failed actions only, or after a failed subtask."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from callboard import EventName, Model, ModelAnswer, Outcome, Task, tool
from callboard.messages import AgentKind, Effect, JournalError
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import ASSIGN, FINISH, PATIENCE, action, actions, append, call, lone, write

TEAR = call("tear")
GLANCE = call("glance")
FAIL = {"Status": "FAIL", "Comment": "the field is locked"}
TORN = "none of the actions so far succeeded (tear: RuntimeError: it is torn)"
LAST = "the last subtask, 'work', ended as failed (the field is locked)"


class Torn(MemoryServer):
    """A surface with a tool that always fails, and one that only looks."""

    EVERY = tuple(AgentKind)

    @tool(effect=Effect.ONCE, agents=EVERY)
    def tear(self) -> str:
        """Break."""
        msg = "it is torn"
        raise RuntimeError(msg)

    @tool(effect=Effect.READ, agents=EVERY)
    def glance(self) -> str:
        """Look."""
        return "a field"


class Live(Model):
    """A model that is no program; it repeats its last answer."""

    def __init__(self, *answers, **fields):
        self.answers, self.fields, self.asked = answers, fields, 0

    async def answer(self, _request):
        self.asked += 1
        content = self.answers[min(self.asked, len(self.answers)) - 1]
        return ModelAnswer(content=content, **self.fields)


def reasons(handle):
    return [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]


@pytest.fixture
def alone(begin):
    """Run a task on one window."""

    def run(*answers, task=None, **given):
        supervisor = begin(servers=[Torn(Torn.window())], app=Live(*answers), **given)
        return supervisor.submit(task or lone())

    return run


@pytest.fixture
def led(begin):
    """Run a task with a HostAgent; its AppAgent's model is a program."""

    def run(*answers, app=(), task=None, **given):
        supervisor = begin(servers=[Torn(Torn.window())], host=Live(*answers), app=app, **given)
        return supervisor.submit(task or Task(request="do it", id="t"))

    return run


def refused(handle, reason, exception="UnfoundedFinishError"):
    """Check that a FINISH was sent back once, and then failed the work."""
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, exception)
    assert reason in result.causes[-1].reason
    assert [reason in each and "or say FAIL" in each for each in reasons(handle)] == [True]


# Agents of a target


@pytest.mark.parametrize("kind", ["app", "mobile", "linux", "operator"])
def test_an_agent_of_any_kind_is_held_to_its_failed_actions(start, kind):
    place = {"mobile": Torn.device, "linux": Torn.shell}.get(kind, Torn.window)()
    surface = Torn(place.model_copy(update={"kinds": (kind,)}))
    surface.pictures = kind == "operator"
    supervisor = start(servers=[surface], **{kind: Live(TEAR, FINISH)})
    name = f"operator:{place.id}" if kind == "operator" else place.id
    handle = supervisor.submit(lone(name))
    refused(handle, TORN)
    assert handle.result(0).failed_actions == 1


def test_a_finish_with_the_failing_action_does_not_count_either(alone):
    refused(alone(call("tear", "FINISH"), FINISH), TORN)


def test_a_finish_before_any_action_is_sent_back_for_each_model(alone):
    handle = alone(FINISH)
    assert handle.result(PATIENCE).ok
    assert [reason[:46] for reason in reasons(handle)] == ["it says FINISH, and nothing was done yet: no a"]


@pytest.mark.parametrize("first", [TEAR, GLANCE])
@pytest.mark.parametrize("second", [GLANCE, append("a")])
def test_a_success_makes_up_for_failed_actions(alone, first, second):
    handle = alone(first, second, FINISH)
    assert (handle.result(PATIENCE).outcome, reasons(handle)) == (Outcome.FINISHED, [])
    assert handle.result(0).failed_actions == (first is TEAR)


def test_held_actions_that_failed_once_approved_are_no_success(alone):
    policy = [{"verdict": "approve", "tool": "tear"}]
    handle = alone(call("tear", "FINISH"), FINISH, policy=policy, system={"safe_guard": False})
    refused(handle, TORN)
    assert handle.result(0).failed_actions == 1


def test_actions_held_by_the_model_that_failed_are_no_success(alone):
    refused(alone(actions(action("tear"), status="CONFIRM"), FINISH, system={"safe_guard": False}), TORN)


def test_a_denied_action_is_a_failed_one_in_a_dry_run_too(alone):
    handle = alone(write(), FINISH, policy=[{"verdict": "deny", "tool": "write"}], task=lone(dry_run=True))
    refused(handle, "none of the actions so far succeeded (write: denied")
    assert handle.result(0).failed_actions == 1


def test_an_action_of_a_dry_run_counts_as_done(alone):
    handle = alone(TEAR, FINISH, task=lone(dry_run=True))
    assert (handle.result(PATIENCE).outcome, handle.result(0).failed_actions) == (Outcome.FINISHED, 0)
    assert reasons(handle) == []


def test_skipped_actions_are_no_success_and_did_not_fail(start):
    surface = Torn(Torn.window())

    class Late(Live):
        async def answer(self, request):
            surface._controls["memo:one"].clear()
            return await super().answer(request)

    handle = start(servers=[surface], app=Late(write(), FINISH)).submit(lone())
    refused(handle, "none of the actions so far succeeded (write: ")
    assert handle.result(0).failed_actions == 0


def test_a_question_at_a_limit_does_not_use_up_the_second_chance(alone, until):
    budget = {"task": {"model_calls": 1}, "at_limit": "ask"}
    handle = alone(FINISH, TEAR, FINISH, budget=budget)
    answered = set()
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            (question,) = [each for each in handle.questions() if each.id not in answered]
            answered.add(question.id)
            handle.answer(question.id, "go on")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, "UnfoundedFinishError")
    assert [TORN in reason for reason in reasons(handle)] == [False, True]


@pytest.mark.parametrize("fields", [{"program": True}, {"must_succeed": False}])
def test_a_model_class_may_say_that_its_finish_holds(start, fields):
    supervisor = start(servers=[Torn(Torn.window())], app=Live(TEAR, FINISH, **fields))
    result = supervisor.submit(lone()).result(PATIENCE)
    assert (result.outcome, result.failed_actions) == (Outcome.FINISHED, 1)


def test_recording_of_a_program_keeps_the_programs_finish(start, tmp_path):
    models = {"record": tmp_path / "recording.jsonl"}
    assert start(servers=[Torn(Torn.window())], app=[TEAR, FINISH], models=models).submit(lone()).result(PATIENCE).ok
    played = start(servers=[Torn(Torn.window())], models={"app": f"recorded:{models['record']}"})
    assert played.submit(lone()).result(PATIENCE).ok


# HostAgents


def test_a_host_agent_whose_subtasks_failed_is_sent_back_once(led, tmp_path):
    handle = led(ASSIGN, FINISH, app=[FAIL])
    refused(handle, LAST, "FailedSubtaskError")
    assert handle.result(0).usage.repairs == 0
    assert_replays(tmp_path / "journal.db")


def test_a_host_agent_may_make_up_for_a_failed_subtask(led):
    handle = led(ASSIGN, FINISH, ASSIGN, FINISH, app=[FAIL, append("a", "FINISH")])
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)
    assert [done.outcome.value for done in handle.result(0).subtasks] == ["failed", "finished"]


def test_a_subtask_that_failed_after_another_finished_counts(led):
    refused(led(ASSIGN, ASSIGN, FINISH, app=[append("a", "FINISH"), FAIL]), LAST, "FailedSubtaskError")


def test_a_host_agents_own_action_after_a_failed_subtask_makes_up(led):
    handle = led(ASSIGN, GLANCE, FINISH, app=[FAIL])
    assert (handle.result(PATIENCE).outcome, reasons(handle)) == (Outcome.FINISHED, [])


@pytest.mark.parametrize("own", [[GLANCE, ASSIGN], [ASSIGN, TEAR], [GLANCE | ASSIGN]])
def test_no_other_action_of_its_own_makes_up_for_a_failed_subtask(led, own):
    handle = led(*own, FINISH, app=[FAIL])
    refused(handle, LAST, "FailedSubtaskError")
    assert handle.result(0).failed_actions == (TEAR in own)


def test_a_host_agent_whose_own_actions_failed_is_sent_back_once(led):
    handle = led(TEAR, FINISH)
    refused(handle, TORN)
    assert handle.result(0).failed_actions == 1


def test_an_earlier_round_does_not_make_up_for_failed_actions(led):
    handle = led(ASSIGN, TEAR, FINISH, app=[append("a", "FINISH")], task=Task(plan=["one", "two"]))
    refused(handle, TORN)
    assert (handle.result(0).rounds, handle.result(0).failed_actions) == (2, 1)


def test_a_plans_step_that_names_a_target_is_held_to_its_agents_actions(begin):
    supervisor = begin(servers=[Torn(Torn.window())], app=Live(TEAR, FINISH), host=[])
    handle = supervisor.submit(Task(plan=[{"request": "one", "target": "memo:one"}, "two"]))
    refused(handle, TORN)
    assert (handle.result(0).rounds, handle.result(0).failed_actions) == (1, 1)


def test_a_subtask_whose_actions_failed_fails_for_its_host_agent(begin):
    supervisor = begin(servers=[Torn(Torn.window())], app=Live(TEAR, FINISH), host=Live(ASSIGN, FINISH))
    result = supervisor.submit(Task(request="do it")).result(PATIENCE)
    assert (result.outcome, result.failed_actions, result.subtasks[0].failed_actions) == (Outcome.FAILED, 1, 1)
    assert TORN in result.causes[-1].reason


def test_a_follow_up_does_not_rest_on_what_was_done_before(begin):
    app, host = Live(append("a"), FINISH, TEAR, FINISH), Live(ASSIGN, FINISH)
    handle = begin(servers=[Torn(Torn.window())], app=app, host=host).submit(Task(request="do it"))
    assert handle.result(PATIENCE).ok
    host.asked = 0
    handle = handle.follow_up("and now?")
    assert (handle.result(PATIENCE).outcome, handle.result(0).failed_actions) == (Outcome.FAILED, 1)
    assert TORN in handle.result(0).subtasks[0].causes[-1].reason
    assert [reason.partition(" (")[0] for reason in reasons(handle)] == [
        "it says FINISH, and none of the actions so far succeeded",
        "it says FINISH, and the last subtask, 'work', ended as failed",
    ]


# Crashes and journals


@pytest.mark.parametrize("place", [("answered", 2), ("answered", 3), ("step_failed", 1), ("round_ended", 1)])
def test_a_crash_does_not_send_a_host_agent_back_again(begin, tmp_path, place):
    kind, nth = place
    surface = Torn(Torn.window())
    with Faults() as faults:
        faults.before(kind, disk_full, nth=nth)
        supervisor = begin(servers=[surface], host=Live(TEAR, FINISH))
        with pytest.raises(JournalError):
            supervisor.submit(Task(request="do it", id="t")).result(PATIENCE)
        supervisor.stop()
    again = begin(servers=[surface], host=Live(FINISH))
    result = again.handle("t").result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, "UnfoundedFinishError")
    assert result.failed_actions == 1
    again.stop()
    assert_replays(tmp_path / "journal.db")


def test_a_journal_without_a_models_statuses_replays_as_it_ran(begin, tmp_path):
    supervisor = begin(servers=[Torn(Torn.window())], app=Live(TEAR, FINISH, must_succeed=False))
    assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    supervisor.stop()
    path = tmp_path / "journal.db"
    with contextlib.closing(sqlite3.connect(path)) as older, older:
        marks = '"must_succeed":false', '"must_succeed":true'
        changed = older.execute("UPDATE rows SET body = replace(body, ?1, ?2) WHERE instr(body, ?1)", marks)
        assert changed.rowcount == 2
    assert assert_replays(path)
