"""An answer that the policy holds keeps its status: once its actions were approved and done, it is followed."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome, Task, tool
from callboard.messages import AgentKind, Effect, PlanStep, Target, TargetKind
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, action, actions, lone, write

HOST = (AgentKind.HOST,)
WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
MEMO = Target(
    id="memo", name="Memo", kind=TargetKind.APPLICATION, address="app/memo/*", server="memory", start="launch"
)
ASKS = [{"verdict": "approve", "tool": name} for name in ("write", "announce", "launch", "tear")]
DONE = [("memo:one", "field-1", "hello")]


class Memo(MemoryServer):
    """An application with one window, a device and a shell; a HostAgent may announce its work."""

    def __init__(self):
        super().__init__(self.window(), self.device(), self.shell())

    def targets(self):
        return (*super().targets(), MEMO)

    @tool(effect=Effect.ONCE, agents=HOST)
    def announce(self, text: str) -> str:
        """Tell everybody."""
        self.effects.append(("", "", text))
        return text

    @tool(effect=Effect.ONCE, agents=HOST, offered=False)
    def launch(self, name: str) -> Target:
        """Start an application."""
        self.effects.append(("", "", f"launched {name}"))
        return self.window()

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def tear(self, target: str) -> str:
        """Fail, always."""
        msg = "the paper is too thick"
        raise OSError(msg)


@pytest.fixture(params=[True, False], ids=["approved", "safe_guard off"])
def run(start, until, request):
    """Run a task to its end with everything approved, or without approvals; give its surface, and its handle."""

    def submit(task=None, *, approvals=1, **models):
        surface = Memo()
        supervisor = start(servers=[surface], policy=ASKS, system={"safe_guard": request.param}, **models)
        handle = supervisor.submit(task or lone())
        if request.param:
            events = handle.events()
            for _ in range(approvals):
                next(event for event in events if event.name is EventName.APPROVAL_REQUESTED)
                handle.approve(handle.approvals()[0].id)
        return surface, handle

    return submit


def moves(handle, address="app/memo/one"):
    changed = [e for e in handle.events() if e.name is EventName.STATE_CHANGED and e.agent == address]
    return [f"{e.data['source']} {e.data['target']}" for e in changed if e.data["source"]]


def test_a_host_agents_assign_is_followed(run):
    host = [{**ASSIGN, "Function": "announce", "Args": {"text": "I begin"}}, FINISH]
    surface, handle = run(Task(request="x"), host=host, app=[FINISH])
    result = handle.result(PATIENCE)
    assert (result.outcome, len(result.subtasks)) == (Outcome.FINISHED, 1)
    assert surface.effects == [("", "", "I begin")]
    assert "CONTINUE ASSIGN" in moves(handle, f"host/{handle.task_id}")


def test_an_application_that_was_assigned_to_is_started_once(run):
    host = [{**ASSIGN, "ControlText": "memo"}, FINISH]
    surface, handle = run(Task(request="x"), host=host, app=[FINISH])
    assert [done.address for done in handle.result(PATIENCE).subtasks] == ["app/memo/one"]
    assert surface.effects == [("", "", "launched memo")]


def test_a_plans_step_is_begun_once_its_application_may_be_started(run):
    surface, handle = run(Task(plan=[PlanStep(request="a", target="memo")]), app=[FINISH])
    assert [done.request for done in handle.result(PATIENCE).subtasks] == ["a"]
    assert surface.effects == [("", "", "launched memo")]


@pytest.mark.parametrize("target", ["memo:one", "emulator", "local"])
def test_a_finish_is_followed_and_the_model_is_not_asked_again(run, target):
    kind = {"memo:one": "app", "emulator": "mobile", "local": "linux"}[target]
    surface, handle = run(lone(target), **{kind: [write(status="FINISH")]})
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.model_calls, result.usage.steps) == (Outcome.FINISHED, 1, 1)
    assert surface.effects == [(target, "field-1", "hello")]


def test_a_finish_does_not_hold_if_an_approved_action_failed(run):
    told = []

    def app(request):
        told.append(request.observation.notes)
        return FINISH if request.memory else {"Status": "FINISH", "Function": "tear"}

    _, handle = run(app=app)
    assert handle.result(PATIENCE).usage.model_calls == 2
    assert told[1] == (
        "tear failed: OSError: the paper is too thick",
        "FINISH does not hold, because an action of the same answer failed",
    )


def test_a_fail_is_followed(run):
    surface, handle = run(app=[write(status="FAIL")])
    assert (handle.result(PATIENCE).outcome, surface.effects) == (Outcome.FAILED, DONE)


def test_a_question_is_asked_after_the_approved_action(run, until):
    surface, handle = run(app=[write(status="PENDING", Questions=["and now?"]), FINISH])
    until(handle, EventName.QUESTION_ASKED)
    (asked,) = handle.questions()
    assert ([each.text for each in asked.questions], surface.effects) == (["and now?"], DONE)
    handle.answer(asked.id, "no more")
    assert handle.result(PATIENCE).ok


def test_a_screenshot_is_taken_after_the_approved_action(run):
    app = [write(status="SCREENSHOT", ControlReannotate=["field-1"]), {"Status": "CONTINUE"}, FINISH]
    _, handle = run(app=app)
    assert handle.result(PATIENCE).ok
    assert "CONTINUE SCREENSHOT" in moves(handle)


def test_a_list_that_is_held_twice_is_followed_at_its_end(run):
    both = [action("write", "field-1", text=text) for text in ("a", "b")]
    surface, handle = run(app=[actions(*both, status="FINISH")])
    assert handle.result(PATIENCE).usage.model_calls == 1
    assert [text for _, _, text in surface.effects] == ["a", "b"]


def test_each_result_stays_with_its_action(run):
    """The cost before the hold is not reported again with the held actions' result."""
    told = []

    def app(request):
        told.extend(request.memory)
        pays = [action("append", "field-1", text="ALICE "), action("write", "field-1", text="BOB")]
        return FINISH if request.memory else actions(*pays)

    _, handle = run(app=app)
    assert handle.result(PATIENCE).ok
    paired = [(action.arguments["text"], result.value) for record in told for action, result in record.calls]
    assert paired == [("ALICE ", "ALICE "), ("BOB", "BOB")]
    assert [action.arguments["text"] for action in told[0].not_run] == ["BOB"] * (len(told) - 1)
    assert len({result.call_id for record in told for result in record.results}) == 2


def test_a_models_own_confirm_leads_back_to_work(run):
    _, handle = run(app=[write(status="CONFIRM"), FINISH])
    assert handle.result(PATIENCE).usage.model_calls == 2
    assert moves(handle)[:3] == ["CONTINUE CONFIRM", "CONFIRM CONTINUE", "CONTINUE FINISH"]
