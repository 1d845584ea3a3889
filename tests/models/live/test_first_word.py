"""A live model that says FINISH before anything was done is not simply believed, and changes are counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3

import pytest

from callboard import EventName, Model, ModelAnswer, Outcome, Task, tool
from callboard.messages import AgentKind, Effect, JournalError
from callboard.testing import Faults, MemoryServer, VirtualClock, assert_replays, disk_full
from support import ASSIGN, FINISH, PATIENCE, Unread, action, append, call, full_answer, lone, write

NOTHING = full_answer(Actions=[], Result="42")


def reasons(handle):
    return [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]


@pytest.fixture
def readable():
    return MemoryServer(MemoryServer.window())


@pytest.mark.parametrize("output", ["native", "tool", "prompted"])
def test_a_finish_that_was_not_offered_is_repaired_and_then_an_error(run, provider, readable, output):
    for _ in range(3):
        if output == "tool":
            provider.calls("answer", NOTHING)
        else:
            provider.says(NOTHING)
    handle = run(surface=readable, output=output)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.repairs, result.changed) == (Outcome.ERROR, 2, ())
    assert [reason.startswith("Status: 'FINISH' is not legal now") for reason in reasons(handle)] == [True] * 3


def test_a_finish_that_was_not_offered_may_be_mended(run, provider, readable):
    for answer in (NOTHING, full_answer("CONTINUE", action("read", "field-1")), NOTHING):
        provider.says(answer)
    result = run(surface=readable).result(PATIENCE)
    assert (result.outcome, result.output, result.usage.repairs) == (Outcome.FINISHED, "42", 1)
    assert (result.changed, result.actions, result.usage.commands) == ((), 0, 1)


def test_a_finish_before_any_action_is_sent_back_once_without_a_repair(run, provider):
    provider.says(NOTHING)
    handle = run(limits={"repairs": 0})
    result = handle.result(PATIENCE)
    assert (result.outcome, result.output, result.usage.repairs) == (Outcome.FINISHED, "42", 0)
    assert (result.changed, result.actions) == ((), 0)
    (reason,) = reasons(handle)
    assert reason.startswith("it says FINISH, and nothing was done yet")
    assert reason in json.dumps(provider.requests[1])


def test_finish_without_changes_is_sent_back_once_in_all_steps(run, provider):
    for answer in (NOTHING, full_answer("CONTINUE"), NOTHING):
        provider.says(answer)
    handle = run()
    assert handle.result(PATIENCE).ok
    assert (len(reasons(handle)), len(provider.requests)) == (1, 3)


@pytest.mark.parametrize("first", [NOTHING, "no JSON"])
def test_repair_is_counted_apart_from_a_finish_sent_back(run, provider, first):
    for answer in (first, "no JSON" if first is NOTHING else NOTHING, NOTHING):
        provider.says(answer)
    handle = run(limits={"repairs": 1})
    assert (handle.result(PATIENCE).usage.repairs, len(reasons(handle))) == (1, 2)


def test_finish_without_changes_but_with_a_plan_is_sent_back_once(run, provider):
    provider.says(NOTHING | {"Plan": ["write it down"]})
    handle = run(limits={"repairs": 0})
    assert (handle.result(PATIENCE).outcome, handle.result(0).usage.repairs) == (Outcome.FINISHED, 0)
    assert len(reasons(handle)) == 1


def test_a_budget_that_is_raised_does_not_send_it_back_again(run, provider, until):
    provider.says(NOTHING)
    handle = run(budget={"task": {"model_calls": 1}, "at_limit": "ask"})
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "go on")
    assert handle.result(PATIENCE).ok
    assert len(reasons(handle)) == 1


def test_agent_that_changed_something_may_finish_without_a_question(run, provider):
    provider.says(full_answer("CONTINUE", action("write", "field-1", text="a")))
    provider.says(NOTHING)
    handle = run()
    assert (handle.result(PATIENCE).changed, handle.result(0).actions) == (("memo:one",), 1)
    assert reasons(handle) == []


def test_a_program_may_finish_at_once(start):
    handle = start(app=[FINISH]).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.model_calls, result.changed) == (Outcome.FINISHED, 1, ())


@pytest.mark.parametrize("place", [("answered", 1), ("answered", 2), ("step_done", 1), ("subtask_finished", 1)])
def test_a_crash_does_not_ask_once_more(begin, provider, tmp_path, place):
    provider.says(NOTHING)
    given = {"models": {"app": "local:small"}, "providers": {"local": {"url": provider.url}}}
    given["servers"] = [Unread(MemoryServer.window())]
    kind, nth = place
    with Faults() as faults:
        faults.before(kind, disk_full, nth=nth)
        supervisor = begin(**given)
        with pytest.raises(JournalError):
            supervisor.submit(lone(id="t")).result(PATIENCE)
        supervisor.stop()
    again = begin(**given)
    result = again.handle("t").result(PATIENCE)
    assert (result.outcome, result.usage.repairs, result.output) == (Outcome.FINISHED, 0, "42")
    again.stop()
    assert_replays(tmp_path / "journal.db")


class Moving(Unread):
    """A surface that changes of itself."""

    settles = False


def test_after_a_crash_the_answer_on_the_new_look_counts(begin, provider):
    provider.says(NOTHING)
    provider.says(full_answer())
    surface = Moving(MemoryServer.window())
    given = {"models": {"app": "local:small"}, "providers": {"local": {"url": provider.url}}, "servers": [surface]}
    with Faults() as faults:
        faults.before("answered", disk_full, nth=2)
        supervisor = begin(**given)
        with pytest.raises(JournalError):
            supervisor.submit(lone(id="t")).result(PATIENCE)
        supervisor.stop()
    surface._controls["memo:one"]["field-1"] = "somebody else's"
    handle = begin(**given).handle("t")
    assert handle.result(PATIENCE).ok
    assert EventName.LIST_CUT not in {event.name for event in handle.events()}


# FINISH after failed actions only

LOCKED = full_answer("CONTINUE", action("tear"))
UNFOUNDED = "it says FINISH, and none of the actions so far succeeded (tear: RuntimeError: it is torn)"


class Torn(Unread):
    """A surface with a tool that always fails."""

    @tool(effect=Effect.ONCE, agents=(AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX))
    def tear(self) -> str:
        """Break."""
        msg = "it is torn"
        raise RuntimeError(msg)


@pytest.mark.parametrize("answers", [[LOCKED, NOTHING], [LOCKED, NOTHING, LOCKED, NOTHING], [NOTHING, LOCKED, NOTHING]])
def test_a_finish_after_failed_actions_only_fails_when_insisted_on(run, provider, answers):
    for answer in answers:
        provider.says(answer)
    handle = run(surface=Torn(Torn.window()), limits={"repairs": 0})
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, "UnfoundedFinishError")
    assert "none of the actions so far succeeded (tear" in result.causes[-1].reason
    assert any(reason.startswith(UNFOUNDED) and "or say FAIL" in reason for reason in reasons(handle))


def test_a_finish_after_failed_actions_is_accepted_after_a_success(run, provider):
    for answer in (LOCKED, NOTHING, full_answer("CONTINUE", action("write", "field-1", text="a")), NOTHING):
        provider.says(answer)
    handle = run(surface=Torn(Torn.window()))
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)


def test_model_that_saw_its_failed_actions_may_answer_fail(run, provider):
    for answer in (LOCKED, NOTHING, full_answer("FAIL")):
        provider.says(answer)
    assert run(surface=Torn(Torn.window())).result(PATIENCE).outcome is Outcome.FAILED


def test_an_action_that_the_policy_denies_did_not_succeed(on_window, provider):
    for answer in (full_answer("CONTINUE", action("write", "field-1", text="a")), NOTHING):
        provider.says(answer)
    deny = [{"verdict": "deny", "tool": "write"}]
    handle = on_window(models={"app": "local:small"}, providers={"local": {"url": provider.url}}, policy=deny)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert "none of the actions so far succeeded (write: " in handle.result(0).causes[-1].reason


@pytest.mark.parametrize(("target", "kind"), [("device", "mobile"), ("shell", "linux")])
def test_every_kind_of_agent_is_held_to_its_failed_actions(start, provider, target, kind):
    for answer in (LOCKED, NOTHING):
        provider.says({key: value for key, value in answer.items() if key != "ControlReannotate"})
    place = getattr(Torn, target)()
    supervisor = start(servers=[Torn(place)], models={kind: "local:small"}, providers={"local": {"url": provider.url}})
    result = supervisor.submit(lone(place.id)).result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, "UnfoundedFinishError")


def test_a_program_may_finish_after_failed_actions(start):
    result = start(app=[call("tear"), FINISH], servers=[Torn(Torn.window())]).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED


def in_doubt(begin, provider, place):
    for answer in (LOCKED, NOTHING):
        provider.says(answer)
    kind, nth = place
    given = {"models": {"app": "local:small"}, "providers": {"local": {"url": provider.url}}}
    given["servers"] = [Torn(Torn.window())]
    with Faults() as faults:
        faults.before(kind, disk_full, nth=nth)
        supervisor = begin(**given)
        with pytest.raises(JournalError):
            supervisor.submit(lone(id="t")).result(PATIENCE)
        supervisor.stop()
    return begin(**given)


@pytest.mark.parametrize("place", [("answered", 2), ("answered", 3), ("step_failed", 1), ("subtask_failed", 1)])
def test_a_crash_does_not_make_it_a_success(begin, provider, tmp_path, place):
    again = in_doubt(begin, provider, place)
    result = again.handle("t").result(PATIENCE)
    assert (result.outcome, result.causes[-1].exception) == (Outcome.FAILED, "UnfoundedFinishError")
    again.stop()
    assert_replays(tmp_path / "journal.db")


class Earlier(Model):
    """A model as an earlier version knew it, without the rule."""

    async def answer(self, request):
        answer = NOTHING if request.memory else LOCKED
        return ModelAnswer(content=answer, offered=("CONTINUE", "FINISH"), must_succeed=False)


def test_a_journal_without_the_rule_replays_as_it_ran(begin, tmp_path):
    unruled = {"offered": ("CONTINUE", "FINISH"), "must_succeed": False}
    answers = [ModelAnswer(content=answer, **unruled) for answer in (LOCKED, NOTHING)]
    supervisor = begin(app=answers, servers=[Torn(Torn.window())])
    assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    supervisor.stop()
    path = tmp_path / "journal.db"
    with contextlib.closing(sqlite3.connect(path)) as older, older:
        newest = ',"must_succeed":false'
        changed = older.execute("UPDATE rows SET body = replace(body, ?1, '') WHERE instr(body, ?1)", (newest,))
        assert changed.rowcount == 2
    assert assert_replays(path)


# A HostAgent


@pytest.fixture
def led(start, provider):
    def submit(*contents, **agents):
        for content in contents:
            provider.says({"Observation": "", "Thought": "", "Plan": [], "Comment": "", **content})
        models = {"host": "local:small"}
        providers = {"local": {"url": provider.url}}
        return start(models=models, providers=providers, **agents).submit(Task(request="do it"))

    return submit


def test_a_host_agent_that_calls_a_failed_subtask_finished_ends_as_failed(led):
    handle = led(ASSIGN, FINISH, app=[{"Status": "FAIL", "Comment": "the field is locked"}])
    result = handle.result(PATIENCE)
    assert (result.outcome, result.changed) == (Outcome.FAILED, ())
    assert "the last subtask, 'work', ended as failed" in result.causes[0].reason


def test_host_agent_that_insists_in_different_wording_ends_as_failed(led, provider):
    provider.says({"Observation": "", "Thought": "", "Plan": [], "Comment": "", **ASSIGN})
    for content in (FINISH, FINISH, "no JSON"):
        provider.says(content)
    assert led(app=[{"Status": "FAIL"}]).result(PATIENCE).outcome is Outcome.FAILED


def test_host_agent_is_questioned_once_in_a_round_of_a_plan(start, provider):
    for content in (ASSIGN, FINISH, FINISH):
        provider.says({"Observation": "", "Thought": "", "Plan": [], "Comment": "", **content})
    models, providers = {"host": "local:small"}, {"local": {"url": provider.url}}
    supervisor = start(models=models, providers=providers, app=[append("a", "FINISH")])
    handle = supervisor.submit(Task(plan=["one", "two"]))
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)


def test_a_host_agent_that_did_nothing_is_asked_once_more(led):
    handle = led(FINISH, app=[])
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)


def test_a_host_agent_whose_subtask_did_something_is_believed(led):
    handle = led(ASSIGN, FINISH, app=[append("a", "FINISH")])
    result = handle.result(PATIENCE)
    assert (result.outcome, result.changed, result.actions) == (Outcome.FINISHED, ("memo:one",), 1)
    assert reasons(handle) == []


def test_an_agent_with_a_second_subtask_is_asked_once_more_too(start, provider):
    provider.says({key: value for key, value in NOTHING.items() if key != "ControlReannotate"})
    answers = [ASSIGN, ASSIGN | {"ControlText": "room"}, FINISH]
    surface = MemoryServer(MemoryServer.window(), MemoryServer.shell("room"))
    handle = start(
        servers=[surface],
        host=answers,
        app=[append("a", "FINISH")],
        models={"linux": "local:small"},
        providers={"local": {"url": provider.url}},
    ).submit(Task(request="do it"))
    assert (handle.result(PATIENCE).outcome, len(reasons(handle))) == (Outcome.FINISHED, 1)


def test_a_finish_not_offered_after_anothers_failure_is_an_error(start, provider):
    provider.says(NOTHING)
    supervisor = start(
        servers=[MemoryServer(MemoryServer.window(), MemoryServer.device("phone"))],
        host=[ASSIGN | {"ControlText": "phone"}, ASSIGN],
        mobile=[{"Status": "FAIL"}],
        models={"app": "local:small"},
        providers={"local": {"url": provider.url}},
    )
    result = supervisor.submit(Task(request="do it")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "is not legal now" in str(result.causes)


def test_a_host_agent_that_assigns_a_failed_subtask_again_and_again_fails(start):
    handle = start(host=lambda _: ASSIGN, app=lambda _: {"Status": "FAIL"}).submit(Task(request="do it"))
    result = handle.result(PATIENCE)
    assert (result.outcome, len(result.subtasks)) == (Outcome.FAILED, 3)
    assert "failed 3 times on memo:one" in result.causes[0].reason


# Changes


@pytest.mark.parametrize(
    ("answer", "changed"),
    [(write("a", "FINISH"), 1), (call("read", "FINISH", control_id="field-1"), 0), (append("a", "FINISH"), 1)],
)
def test_only_what_does_more_than_read_has_changed_something(start, answer, changed):
    result = start(app=[answer]).submit(lone()).result(PATIENCE)
    assert (result.changed, result.actions) == (("memo:one",) * changed, changed)


class Odd(MemoryServer):
    """A surface with a tool that reads for too long, and one that breaks when it has changed something."""

    def __init__(self, clock=None):
        super().__init__(self.window())
        self.clock = clock

    @tool(effect=Effect.READ, agents=(AgentKind.APP,))
    async def stare(self) -> str:
        """Read for ever."""
        self.clock.advance(100)
        await asyncio.Event().wait()

    @tool(effect=Effect.ONCE, agents=(AgentKind.APP,))
    def tear(self) -> str:
        """Break."""
        msg = "it is torn"
        raise RuntimeError(msg)


def test_reading_tool_that_times_out_has_changed_nothing(start):
    clock = VirtualClock()
    surface = Odd(clock)
    result = (
        start(servers=[surface], clock=clock, app=[call("stare"), {"Status": "FAIL"}]).submit(lone()).result(PATIENCE)
    )
    assert (result.outcome, result.changed, result.actions) == (Outcome.FAILED, (), 0)


def test_tool_that_raises_may_have_changed_something(start):
    result = start(servers=[Odd()], app=[call("tear"), {"Status": "FAIL"}]).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.changed, result.actions) == (Outcome.FAILED, ("memo:one",), 1)


def test_a_failed_action_has_changed_nothing(start):
    broken = write("a") | {"Args": {"text": "a", "control_id": "field-9"}, "ControlLabel": ""}
    result = start(app=[broken, {"Status": "FAIL"}]).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.changed, result.actions) == (Outcome.FAILED, (), 0)
