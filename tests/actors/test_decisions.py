"""The decisions where the documents disagree: at least one test per row, by number."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pykka
import pytest

from callboard import EventName, FunctionModel, ModelRequest, Outcome, PlanStep, Task, ToolError, tool
from callboard.actors.app import AppAgent
from callboard.actors.processing import MACHINES
from callboard.actors.states import By, HostAgentStateManager
from callboard.messages import AgentKind, Control, Effect, Observation, Target
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, HELD, PATIENCE, lone, write

WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
FAIL = {"Status": "FAIL", "Comment": "no such field"}
CONTINUE = {"Status": "CONTINUE"}
PENDING = {"Status": "PENDING", "Questions": ["which file?"]}
CONFIRM = {"Status": "CONFIRM", "Comment": "may I?"}
SCREENSHOT = {"Status": "SCREENSHOT"}
APPROVE_WRITES = [{"verdict": "approve", "tool": "write", "reason": "writes need a nod"}]
NEVER = {"intensity": 0}
"""Supervision without restarts."""


def explode(status="CONTINUE"):
    return {"Status": status, "Function": "explode"}


class Surface(MemoryServer):
    """Counts looks, can be made blind, and has tools that fail or never end."""

    def __init__(self, *targets: Target, **more):
        super().__init__(*(targets or (MemoryServer.window(),)), **more)
        self.looks: Counter[str] = Counter()
        self.blind, self.hanging = threading.Event(), threading.Event()

    def observe(self, target: Target) -> Observation:
        self.looks[target.id] += 1
        if self.blind.is_set():
            msg = "the cable is cut"
            raise OSError(msg)
        return super().observe(target)

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def explode(self, target: str) -> str:
        """Fail, always."""
        msg = "out of paper"
        raise ToolError(msg)

    @tool(effect=Effect.ONCE, agents=WORKERS)
    async def hang(self, target: str) -> str:
        """Never end."""
        self.hanging.set()
        await asyncio.Event().wait()
        return target

    @tool(effect=Effect.ONCE, agents=(AgentKind.HOST,))
    def ring(self) -> str:
        """Fail, always, for a HostAgent."""
        msg = "nobody at home"
        raise ToolError(msg)


def moves(handle, address):
    """List the transitions of an agent's machine, from its beginning to the end of the task."""
    return [
        (event.data["source"], event.data["target"], event.data["by"])
        for event in handle.events()
        if event.name is EventName.STATE_CHANGED and event.agent == address and event.data["source"]
    ]


def host_moves(handle):
    return moves(handle, f"host/{handle.task_id}")


def app_moves(handle):
    return moves(handle, "app/memo/one")


def phases(handle, state):
    return [e.phase for e in handle.events() if e.name is EventName.PHASE_ENDED and e.state == state]


def recorded(answers):
    """Play answers, and keep the requests."""
    requests: list[ModelRequest] = []

    def model(request):
        requests.append(request)
        return answers[request.call - 1]

    return requests, model


def endless_after(*answers):
    """Play answers; the call after the last one never ends. Gives the model and an event set when that call begins."""
    begun = threading.Event()

    async def model(request):
        if request.call <= len(answers):
            return answers[request.call - 1]
        begun.set()
        return await asyncio.Event().wait()

    return FunctionModel(model), begun


def raising(error, cause=None):
    """Give a model that raises."""

    def model(_request):
        raise error from cause

    return model


def text_of(causes):
    return " | ".join(cause.reason for cause in causes)


# 1


def test_row_01_a_failed_app_agent_returns_to_its_host_which_may_retry(start):
    requests, host = recorded([ASSIGN, ASSIGN, FINISH])
    handle = start(host=host, app=[FAIL, FINISH]).submit(Task(request="write"))
    result = handle.result(PATIENCE)
    assert [done.outcome for done in result.subtasks] == [Outcome.FAILED, Outcome.FINISHED]
    assert result.ok
    assert host_moves(handle)[1] == ("ASSIGN", "CONTINUE", "system")
    assert text_of(requests[1].subtasks[0].causes) == "no such field"


def test_row_01_retries_of_one_subtask_are_bounded(start):
    def host(request):
        return {"Status": "FAIL", "Comment": request.reasons[-1]} if request.reasons else ASSIGN

    app = FunctionModel(lambda _: FAIL)
    handle = start(host=host, app=app, limits={"subtask_retries": 1}).submit(Task(request="write"))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert len(result.subtasks) == app.calls == 2
    assert "the subtask 'work' failed 2 times on memo:one, and may not be assigned again" in result.comment


def test_row_01_a_subtask_that_finished_may_be_assigned_again_at_will(start):
    supervisor = start(host=[ASSIGN, ASSIGN, ASSIGN, FINISH], app=lambda _: FINISH, limits={"subtask_retries": 0})
    result = supervisor.submit(Task(request="write")).result(PATIENCE)
    assert (result.outcome, len(result.subtasks), result.usage.repairs) == (Outcome.FINISHED, 3, 0)


def test_row_01_another_way_after_the_retries_is_allowed(start):
    other = {**ASSIGN, "Current Sub-Task": "write it down differently"}
    supervisor = start(host=[ASSIGN, other, FINISH], app=[FAIL, FINISH], limits={"subtask_retries": 0})
    assert supervisor.submit(Task(request="write")).result(PATIENCE).ok


# 2


def test_row_02_an_app_agents_error_ends_the_round_with_all_its_causes(start):
    app = raising(RuntimeError("no model"), cause=OSError("the line is dead"))
    host = FunctionModel(lambda _: ASSIGN)
    handle = start(host=host, app=app).submit(Task(request="write"))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert host_moves(handle) == [("CONTINUE", "ASSIGN", "model"), ("ASSIGN", "FINISH", "system")]
    assert host.calls == 1
    assert [cause.exception for cause in result.causes] == ["", "PhaseError", "RuntimeError", "OSError"]
    assert text_of(result.causes).endswith("the model gave no usable answer: no model | no model | the line is dead")


# 3


def test_row_03_in_follower_mode_a_finished_step_begins_the_next_round(start):
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))
    plan = [PlanStep(request="a", target="memo:one"), PlanStep(request="b", target="memo:two")]
    app = FunctionModel(lambda request: write(request.request, "FINISH"))
    handle = start(app=app, servers=[surface]).submit(Task(plan=plan))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.FINISHED, 2)
    assert host_moves(handle) == [("CONTINUE", "ASSIGN", "model"), ("ASSIGN", "FINISH", "system")] * 2
    assert surface.effects == [("memo:one", "field-1", "a"), ("memo:two", "field-1", "b")]


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([FAIL], Outcome.FAILED),
        ([{"Status": "ERROR", "Comment": "it is broken"}], Outcome.ERROR),
        ([CONTINUE] * 2, Outcome.OUT_OF_BUDGET),
    ],
)
def test_row_03_any_other_outcome_of_a_step_ends_the_task_with_it(start, answers, outcome):
    plan = [PlanStep(request="a", target="memo:one"), PlanStep(request="b", target="memo:one")]
    result = start(app=answers, limits={"steps": 2}).submit(Task(plan=plan)).result(PATIENCE)
    assert (result.outcome, result.rounds) == (outcome, 1)


def test_row_03_a_rejected_step_ends_the_task_as_rejected(start, until):
    plan = [PlanStep(request="a", target="memo:one"), PlanStep(request="b", target="memo:one")]
    handle = start(app=[write(status="FINISH")], policy=APPROVE_WRITES).submit(Task(plan=plan))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.reject(handle.approvals()[0].id, "not today")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.REJECTED, 1)


# 4


def test_row_04_a_rejected_confirm_finishes_an_app_subtask_as_rejected(start, until):
    requests, host = recorded([ASSIGN, FINISH])
    handle = start(host=host, app=[write(status="CONFIRM")]).submit(Task(request="write"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.reject(handle.approvals()[0].id, "too risky", by="ann")
    result = handle.result(PATIENCE)
    assert app_moves(handle)[-1] == ("CONFIRM", "FINISH", "user")
    assert result.subtasks[0].outcome is Outcome.REJECTED
    assert text_of(result.subtasks[0].causes) == "rejected by ann: too risky"
    assert [done.outcome for done in requests[1].subtasks] == [Outcome.REJECTED]


def test_row_04_a_rejected_confirm_of_a_host_fails_the_task_as_rejected(start, until):
    handle = start(host=[CONFIRM]).submit(Task(request="write"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.reject(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert host_moves(handle)[1:] == [("CONFIRM", "FAIL", "user"), ("FAIL", "FINISH", "system")]


# 5


def test_row_05_an_action_waits_for_its_approval_and_then_exactly_it_runs(start, until):
    surface = Surface()
    app = [write("exactly this", "CONFIRM"), FINISH]
    handle = start(app=app, servers=[surface]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert surface.effects == []
    asked = handle.approvals()[0]
    assert [(action.tool, action.arguments) for action in asked.actions] == [
        ("write", {"text": "exactly this", "control_id": "field-1"})
    ]
    looks = surface.looks["memo:one"]
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", "exactly this")]
    assert surface.looks["memo:one"] > looks + 1
    assert app_moves(handle) == [
        ("CONTINUE", "CONFIRM", "model"),
        ("CONFIRM", "CONTINUE", "user"),
        ("CONTINUE", "FINISH", "model"),
    ]


def test_row_05_a_rejected_action_never_runs(start, until):
    surface = Surface()
    handle = start(app=[write(status="CONFIRM")], servers=[surface]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.reject(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert surface.effects == []


def test_row_05_an_approved_action_is_not_run_if_its_control_is_gone(start, until):
    surface = Surface(controls={"field-1": "", "field-2": ""})
    requests, app = recorded([write(status="CONFIRM"), FINISH])
    handle = start(app=app, servers=[surface]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    surface.remove("memo:one", "field-1")
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == []
    told = requests[1].observation.notes[0]
    assert told.startswith("write was not run: ")
    assert "field field-1 (field-1) is gone or another one by now; nothing was done" in told
    assert [event.data["ran"] for event in handle.events() if event.name is EventName.LIST_CUT] == [0]


# 6


def test_row_06_screenshot_runs_all_four_phases_on_a_fresh_capture(start):
    surface = Surface()
    looks = []

    def app(request):
        looks.append(surface.looks["memo:one"])
        return [SCREENSHOT, write(), FINISH][request.call - 1]

    handle = start(app=app, servers=[surface]).submit(lone())
    assert handle.result(PATIENCE).ok
    assert phases(handle, "SCREENSHOT") == ["data_collection", "llm_interaction", "action_execution", "memory_update"]
    before_the_action, after_it = 1, 2  # its control is looked for; then two equal looks say that all is quiet
    assert looks == [1, 2, 2 + before_the_action + after_it]
    assert surface.looks["memo:one"] == looks[-1]
    assert surface.effects == [("memo:one", "field-1", "hello")]


def test_row_06_what_screenshot_does_not_annotate_is_there_all_the_same(start):
    names = ["field-1", "field-2", "field-3"]  # tests/pictures/test_pictures.py checks the annotations
    surface = Surface(controls=dict.fromkeys(names, ""))
    requests, app = recorded([{**SCREENSHOT, "ControlReannotate": ["field-2", "field-3"]}, write(), FINISH])
    assert start(app=app, servers=[surface]).submit(lone()).result(PATIENCE).ok
    seen = [(request.status, [control.id for control in request.observation.controls]) for request in requests]
    assert seen == [("CONTINUE", names), ("SCREENSHOT", names), ("CONTINUE", names)]
    assert surface.effects == [("memo:one", "field-1", "hello")]


def test_row_06_screenshot_lasts_while_controls_are_named_up_to_the_limit(start):
    named = {**SCREENSHOT, "ControlReannotate": ["field-1"]}
    handle = start(app=[named, named, named, named, FINISH], limits={"reannotations": 3}).submit(lone())
    assert handle.result(PATIENCE).ok
    assert app_moves(handle) == [
        ("CONTINUE", "SCREENSHOT", "model"),
        ("SCREENSHOT", "SCREENSHOT", "model"),
        ("SCREENSHOT", "SCREENSHOT", "model"),
        ("SCREENSHOT", "CONTINUE", "system"),
        ("CONTINUE", "FINISH", "model"),
    ]


def test_row_06_screenshot_offers_screenshot_continue_and_confirm(start):
    requests, app = recorded([SCREENSHOT, CONTINUE, FINISH])
    assert start(app=app).submit(lone()).result(PATIENCE).ok
    assert (requests[1].status, requests[1].statuses) == ("SCREENSHOT", ("SCREENSHOT", "CONTINUE", "CONFIRM"))


@pytest.mark.parametrize("said", ["FINISH", "FAIL", "PENDING", "ERROR"])
def test_row_06_any_other_status_leads_from_screenshot_to_continue(start, said):
    requests, app = recorded([SCREENSHOT, write(status=said), FINISH])
    handle = start(app=app).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.repairs) == (Outcome.FINISHED, 0)
    assert app_moves(handle)[1:] == [("SCREENSHOT", "CONTINUE", "system"), ("CONTINUE", "FINISH", "model")]
    assert requests[2].observation.notes == (
        f"{said} was not followed: SCREENSHOT is for one more look; say {said} now if it still holds",
    )


def test_row_06_a_status_that_no_machine_has_is_sent_back_in_screenshot(start):
    result = start(app=[SCREENSHOT, {"Status": "DANCE"}, CONTINUE, FINISH]).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.usage.repairs) == (Outcome.FINISHED, 1)


def test_row_06_an_action_in_screenshot_can_need_approval_too(start, until):
    surface = Surface()
    handle = start(app=[SCREENSHOT, write(), FINISH], servers=[surface], policy=APPROVE_WRITES).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert surface.effects == []
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert app_moves(handle)[1] == ("SCREENSHOT", "CONFIRM", "system")
    assert surface.effects == [("memo:one", "field-1", "hello")]


# 7


def test_row_07_an_answer_leads_from_pending_to_continue_without_a_phase(start, until):
    requests, app = recorded([PENDING, FINISH])
    handle = start(app=app).submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "the blue one")
    assert handle.result(PATIENCE).ok
    assert app_moves(handle)[:2] == [("CONTINUE", "PENDING", "model"), ("PENDING", "CONTINUE", "user")]
    assert phases(handle, "PENDING") == []
    assert requests[1].observation.notes == ("asked 'which file?', a person answered 'the blue one'",)


@pytest.mark.parametrize("kind", ["host", "app"])
def test_row_07_an_unanswered_question_fails_by_timeout(start, until, kind):
    clock = VirtualClock()
    supervisor = start(**{kind: [PENDING]}, clock=clock, limits={"question_seconds": 30})
    handle = supervisor.submit(lone() if kind == "app" else Task(request="write"))
    until(handle, EventName.QUESTION_ASKED)
    clock.advance(29)
    assert not handle.done()
    clock.advance(1)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT
    agent = "app/memo/one" if kind == "app" else f"host/{handle.task_id}"
    assert moves(handle, agent)[1:] == [("PENDING", "FAIL", "timeout"), ("FAIL", "FINISH", "system")]


def test_row_07_agent_continues_with_a_note_when_questions_are_off(start):
    requests, app = recorded([PENDING, FINISH])
    handle = start(app=app, system={"ask_question": False}).submit(lone())
    assert handle.result(PATIENCE).ok
    assert app_moves(handle)[1] == ("PENDING", "CONTINUE", "system")
    assert requests[1].observation.notes == ("nobody will answer questions: decide yourself, or say FAIL",)
    assert all(event.name is not EventName.QUESTION_ASKED for event in handle.events())


# 8


def test_row_08_a_host_agents_model_may_say_that_the_task_is_impossible(start):
    handle = start(host=[FAIL]).submit(Task(request="square the circle"))
    result = handle.result(PATIENCE)
    assert (result.outcome, text_of(result.causes)) == (Outcome.FAILED, "no such field")
    assert host_moves(handle) == [("CONTINUE", "FAIL", "model"), ("FAIL", "FINISH", "system")]


# 9


@pytest.mark.parametrize("kind", [AgentKind.HOST, AgentKind.APP])
def test_row_09_error_is_reached_by_the_system_from_every_state_at_work(kind):
    ended = {"FAIL", "ERROR", "FINISH"}
    table = MACHINES[kind].transitions
    assert {status for status, row in table.items() if By.SYSTEM in row.get("ERROR", By(0))} == table.keys() - ended


def test_row_09_an_exception_in_screenshot_is_an_error(start):
    surface = Surface()

    def app(request):
        surface.blind.set()
        return SCREENSHOT

    handle = start(app=app, servers=[surface]).submit(lone())
    assert handle.result(PATIENCE).outcome is Outcome.ERROR
    assert app_moves(handle)[1:] == [("SCREENSHOT", "ERROR", "system"), ("ERROR", "FINISH", "system")]


def test_row_09_an_exception_in_confirm_is_an_error(start, until):
    surface = Surface()
    handle = start(app=[write(status="CONFIRM")], servers=[surface]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    surface.blind.set()
    handle.approve(handle.approvals()[0].id)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "the cable is cut" in text_of(result.causes)
    assert app_moves(handle)[1:] == [("CONFIRM", "ERROR", "system"), ("ERROR", "FINISH", "system")]


def test_row_09_an_app_agents_model_may_say_error_itself(start):
    handle = start(app=[{"Status": "ERROR", "Comment": "the window is broken"}]).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, text_of(result.causes)) == (Outcome.ERROR, "the window is broken")
    assert app_moves(handle) == [("CONTINUE", "ERROR", "model"), ("ERROR", "FINISH", "system")]


# 10


@pytest.mark.parametrize(("said", "outcome"), [("FAIL", Outcome.FAILED), ("ERROR", Outcome.ERROR)])
def test_row_10_cleanup_looks_once_more_and_the_outcome_stays(start, said, outcome):
    surface = Surface()
    handle = start(app=[{"Status": said}], servers=[surface]).submit(lone())
    assert handle.result(PATIENCE).outcome is outcome
    assert app_moves(handle)[-1] == (said, "FINISH", "system")
    assert phases(handle, said) == ["data_collection"]
    assert surface.looks["memo:one"] == 2


def test_row_10_a_last_look_that_fails_does_not_change_the_outcome(start):
    surface = Surface()

    def app(_request):
        surface.blind.set()
        return FAIL

    handle = start(app=app, servers=[surface]).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, text_of(result.causes)) == (Outcome.FAILED, "no such field")
    assert app_moves(handle)[-1] == ("FAIL", "FINISH", "system")


def test_row_10_after_cleanup_the_target_goes_to_the_next_task(start):
    supervisor = start(app=lambda request: FAIL if request.request == "write" else FINISH)
    first = supervisor.submit(lone(request="write"))
    second = supervisor.submit(Task(request="then this", target="memo:one"))
    assert (first.result(PATIENCE).outcome, second.result(PATIENCE).outcome) == (Outcome.FAILED, Outcome.FINISHED)


# 11


@pytest.mark.parametrize(
    ("kind", "target"), [("mobile", MemoryServer.device()), ("linux", MemoryServer.shell())], ids=["mobile", "linux"]
)
def test_row_11_a_mobile_or_linux_exception_fails_it_after_a_last_look(start, kind, target):
    surface = Surface(target)
    handle = start(**{kind: raising(OSError("adb is gone"))}, servers=[surface]).submit(lone(target.id))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert moves(handle, target.address) == [("CONTINUE", "FAIL", "system"), ("FAIL", "FINISH", "system")]
    assert "adb is gone" in text_of(result.causes)
    logged = next(event for event in handle.events() if event.name is EventName.STEP_FAILED)
    assert "adb is gone" in logged.data["causes"]
    assert surface.looks[target.id] == 2


# 12


def test_row_12_an_app_agent_has_seven_states():
    assert len(MACHINES[AgentKind.APP].transitions) == 7


# 13


def test_row_13_a_second_assignment_to_an_application_reaches_its_actor(start):
    supervisor = start(app=lambda _: FINISH)
    supervisor.submit(lone()).result(PATIENCE)
    first = {ref.actor_urn for ref in pykka.ActorRegistry.get_by_class(AppAgent)}
    supervisor.submit(lone()).result(PATIENCE)
    assert {ref.actor_urn for ref in pykka.ActorRegistry.get_by_class(AppAgent)} == first
    assert len(first) == 1
    assert supervisor.status().agents == ("app/memo/one",)


def test_row_13_memory_carries_over_within_a_task_but_not_between_tasks(start):
    requests: list[ModelRequest] = []

    def app(request):
        requests.append(request)
        return {**write(request.task_id, "FINISH"), "Plan": [f"plan of {request.task_id}"]}

    supervisor = start(host=[ASSIGN, ASSIGN, FINISH], app=app)
    for task in ("a", "b"):
        assert supervisor.submit(Task(id=task, request="write")).result(PATIENCE).ok
    assert [(r.task_id, len(r.memory), r.plan, r.call) for r in requests] == [
        ("a", 0, (), 1),
        ("a", 1, ("plan of a",), 2),
        ("b", 0, (), 1),
        ("b", 1, ("plan of b",), 2),
    ]


# 14


def test_row_14_two_approvals_at_once_do_not_share_their_answers(start, until):
    surface = Surface(MemoryServer.window("one"), MemoryServer.window("two"))
    app = FunctionModel(lambda request: FINISH if request.memory else write(request.task_id, "CONFIRM"))
    supervisor = start(app=app, servers=[surface])
    yes = supervisor.submit(Task(id="yes", request="write", target="memo:one"))
    no = supervisor.submit(Task(id="no", request="write", target="memo:two"))
    for handle in (yes, no):
        until(handle, EventName.APPROVAL_REQUESTED)
    yes.approve(yes.approvals()[0].id)
    assert yes.result(PATIENCE).outcome is Outcome.FINISHED
    no.reject(no.approvals()[0].id)
    assert no.result(PATIENCE).outcome is Outcome.REJECTED
    assert surface.effects == [("memo:one", "field-1", "yes")]


# 15


def test_row_15_an_unknown_status_is_looked_up_as_the_none_state():
    assert HostAgentStateManager.get_state("continue") is HostAgentStateManager.none_state


@pytest.mark.parametrize("said", ["finish", " Finish ", "FINISHED", "done", "Completed", "success"])
def test_row_15_case_and_known_aliases_of_a_status_are_repaired_at_once(start, said):
    result = start(app=[{"Status": said}]).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.usage.model_calls, result.usage.repairs) == (Outcome.FINISHED, 1, 0)


def test_row_15_any_other_status_is_sent_back_with_the_reason(start):
    requests, app = recorded([{"Status": "ALMOST"}, FINISH])
    result = start(app=app).submit(lone()).result(PATIENCE)
    assert (result.outcome, result.usage.model_calls, result.usage.repairs) == (Outcome.FINISHED, 2, 1)
    assert requests[1].reasons == (
        "Status: 'ALMOST' is not legal now; legal are: CONTINUE, SCREENSHOT, FINISH, FAIL, PENDING, CONFIRM, ERROR",
    )


@pytest.mark.parametrize(("repairs", "words"), [(1, "(after 1 repair)"), (2, "(after 2 repairs)")])
def test_row_15_after_all_repairs_an_unusable_answer_is_an_error(start, repairs, words):
    app = FunctionModel(lambda _: {"Status": "ALMOST"})
    handle = start(app=app, limits={"repairs": repairs}).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, app.calls) == (Outcome.ERROR, repairs + 1)
    assert words in text_of(result.causes)
    assert app_moves(handle)[0] == ("CONTINUE", "ERROR", "system")


# 16


@pytest.mark.parametrize("kind", ["host", "app"])
def test_row_16_out_of_steps_is_an_outcome_of_its_own(start, kind):
    model = FunctionModel(lambda _: CONTINUE)
    supervisor = start(**{kind: model}, limits={"steps": 3})
    result = supervisor.submit(lone() if kind == "app" else Task(request="write")).result(PATIENCE)
    assert (result.outcome, model.calls) == (Outcome.OUT_OF_BUDGET, 3)
    assert text_of(result.causes) == "the limit of 3 steps was reached"


def test_row_16_a_subtask_that_is_out_of_steps_returns_to_the_host_agent(start):
    supervisor = start(host=[ASSIGN, FINISH], app=lambda _: CONTINUE, limits={"steps": 3})
    result = supervisor.submit(Task(request="write")).result(PATIENCE)
    assert [done.outcome for done in result.subtasks] == [Outcome.OUT_OF_BUDGET]
    assert result.ok


# 17


def test_row_17_delegate_to_app_is_read_as_assign(start):
    handle = start(host=[{**ASSIGN, "Status": "DELEGATE_TO_APP"}, FINISH], app=[FINISH]).submit(Task(request="write"))
    assert handle.result(PATIENCE).ok
    assert host_moves(handle)[0] == ("CONTINUE", "ASSIGN", "model")
    assert "DELEGATE_TO_APP" not in HostAgentStateManager.offered("CONTINUE")


# 18


def test_row_18_an_unknown_target_makes_no_agent_and_names_the_valid_ones(start):
    requests, host = recorded([{**ASSIGN, "ControlText": "excel"}, FINISH])
    handle = start(host=host).submit(Task(request="write"))
    result = handle.result(PATIENCE)
    assert requests[1].reasons == ("there is no target 'excel'; there are: memo:one (memo:one)",)
    assert (result.usage.repairs, result.subtasks) == (1, ())
    assert host_moves(handle) == [("CONTINUE", "FINISH", "model")]


def test_row_18_assignments_to_nothing_but_unknown_targets_are_an_error(start):
    host = FunctionModel(lambda _: {**ASSIGN, "ControlText": "excel"})
    result = start(host=host, limits={"repairs": 1}).submit(Task(request="write")).result(PATIENCE)
    assert (result.outcome, host.calls) == (Outcome.ERROR, 2)


# 19

HOST_SAMPLE = """{
  "Observation": "Desktop shows Word and Excel. User wants to extract data from Word.",
  "Thought": "I should start with Word to extract the table data first.",
  "Current Sub-Task": "Extract table data from Word document",
  "ControlLabel": "0",
  "ControlText": "Microsoft Word - Document1",
  "Status": "ASSIGN",
  "Comment": "Delegating data extraction to Word AppAgent"
}"""
APP_SAMPLE = """{
  "Observation": "Word document with Export button [12] visible",
  "Thought": "I should click the Export button to extract table data",
  "ControlLabel": "12",
  "ControlText": "Export",
  "Function": "click_input",
  "Args": {"button": "left"},
  "Status": "SCREENSHOT",
  "Comment": "Clicking Export will open a dialog"
}"""
FINISH_SAMPLE = '{"Status": "FINISH", "Comment": "Table data successfully extracted and saved"}'
MOBILE_SAMPLE = """{
  "action": {
    "function": "click_control",
    "arguments": {"control_id": "5", "control_name": "Search"},
    "status": "CONTINUE"
  },
  "thought": "Need to click the search button to proceed"
}"""


class SampleSurface(MemoryServer):
    """The subjects of the specification's samples."""

    def observe(self, target: Target) -> Observation:
        return Observation(
            controls=(
                Control(id="12", name="Export", kind="button"),
                Control(id="5", name="Search", kind="button"),
            )
        )

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def click_input(self, target: str, control_id: str, button: str) -> str:
        """Click."""
        self.effects.append((target, control_id, button))
        return "clicked"

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def click_control(self, target: str, control_id: str, control_name: str) -> str:
        """Tap."""
        self.effects.append((target, control_id, control_name))
        return "tapped"


def test_row_19_upper_case_host_and_app_samples_are_understood_verbatim(start):
    word = MemoryServer.window("document1", "word").model_copy(update={"name": "Microsoft Word - Document1"})
    surface = SampleSurface(word)
    app = [APP_SAMPLE, '{"Status": "CONTINUE"}', FINISH_SAMPLE]
    handle = start(host=[HOST_SAMPLE, FINISH_SAMPLE], app=app, servers=[surface]).submit(Task(request="export"))
    result = handle.result(PATIENCE)
    assert result.ok
    assert result.usage.repairs == 0
    assert [done.request for done in result.subtasks] == ["Extract table data from Word document"]
    assert result.subtasks[0].comment == "Table data successfully extracted and saved"
    assert surface.effects == [("word:document1", "12", "left")]
    assert moves(handle, "app/word/document1")[0] == ("CONTINUE", "SCREENSHOT", "model")


def test_row_19_a_nested_lower_case_mobile_sample_is_understood_verbatim(start):
    surface = SampleSurface(MemoryServer.device())
    handle = start(mobile=[MOBILE_SAMPLE, FINISH], servers=[surface]).submit(lone("emulator"))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.repairs) == (Outcome.FINISHED, 0)
    assert surface.effects == [("emulator", "5", "Search")]
    thoughts = [event.data["thought"] for event in handle.events() if event.name is EventName.STEP_ENDED]
    assert thoughts[0] == "Need to click the search button to proceed"


# 20


@pytest.mark.parametrize("kind", ["host", "app"])
def test_row_20_an_exception_inside_a_phase_is_an_error(start, kind):
    supervisor = start(**{kind: raising(ZeroDivisionError("by zero"))})
    handle = supervisor.submit(lone() if kind == "app" else Task(request="write"))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert [cause.exception for cause in result.causes] == ["PhaseError", "ZeroDivisionError"]


def test_row_20_past_the_restarts_a_crash_ends_subtask_and_round_in_error(start):
    app, begun = endless_after()
    host = FunctionModel(lambda _: ASSIGN)
    handle = start(host=host, app=app, supervision=NEVER).submit(Task(request="write"))
    assert begun.wait(PATIENCE)
    [agent] = pykka.ActorRegistry.get_by_class(AppAgent)
    agent.tell("what no agent understands")
    result = handle.result(PATIENCE)
    assert (result.outcome, host.calls) == (Outcome.ERROR, 1)
    assert result.subtasks[0].outcome is Outcome.ERROR
    assert "AttributeError" in [cause.exception for cause in result.causes]
    assert host_moves(handle)[-1] == ("ASSIGN", "FINISH", "system")


def test_row_20_an_agent_whose_handler_raises_is_restarted_and_resumes(start, until):
    begun, asked = threading.Event(), []

    async def app(request):
        asked.append(request.step)
        if asked == [1, 2]:
            begun.set()
            await asyncio.Event().wait()
        return write(status="CONTINUE") if request.step == 1 else FINISH

    surface = Surface()
    supervisor = start(
        host=[ASSIGN, FINISH], app=FunctionModel(app), servers=[surface], supervision={"backoff": 0, "max_backoff": 0}
    )
    handle = supervisor.submit(Task(request="write"))
    assert begun.wait(PATIENCE)
    [agent] = pykka.ActorRegistry.get_by_class(AppAgent)
    agent.tell("what no agent understands")
    assert handle.result(PATIENCE).ok
    assert (asked, len(surface.effects)) == ([1, 2, 2], 1)
    assert until(handle, EventName.RUN_RECOVERED, steps=1).agent == "app/memo/one"


def test_row_20_after_a_crash_the_next_work_gets_a_new_agent(start):
    begun = threading.Event()

    async def app(request):
        if request.task_id == "second":
            return FINISH
        begun.set()
        return await asyncio.Event().wait()

    supervisor = start(app=FunctionModel(app), supervision=NEVER)
    first = supervisor.submit(Task(id="first", request="write", target="memo:one"))
    assert begun.wait(PATIENCE)
    [agent] = pykka.ActorRegistry.get_by_class(AppAgent)
    agent.tell("what no agent understands")
    assert first.result(PATIENCE).outcome is Outcome.ERROR
    assert supervisor.submit(Task(id="second", request="write", target="memo:one")).result(PATIENCE).ok
    assert [ref.actor_urn for ref in pykka.ActorRegistry.get_by_class(AppAgent)] != [agent.actor_urn]


# 21


@pytest.mark.parametrize(
    ("state", "answers"),
    [("CONTINUE", []), ("SCREENSHOT", [SCREENSHOT]), ("PENDING", [PENDING]), ("CONFIRM", [write(status="CONFIRM")])],
)
def test_row_21_a_cancel_fails_an_app_agent_in_any_state_and_cleans_up(start, until, state, answers):
    app, begun = endless_after(*answers)
    handle = start(app=app).submit(lone())
    if state in {"CONTINUE", "SCREENSHOT"}:
        assert begun.wait(PATIENCE)
    else:
        until(handle, EventName.QUESTION_ASKED if state == "PENDING" else EventName.APPROVAL_REQUESTED)
    handle.cancel("enough")
    result = handle.result(PATIENCE)
    assert (result.outcome, text_of(result.causes)) == (Outcome.CANCELLED, "enough")
    assert result.subtasks[0].outcome is Outcome.CANCELLED
    assert app_moves(handle)[-2:] == [(state, "FAIL", "system"), ("FAIL", "FINISH", "system")]


def test_row_21_a_cancel_fails_a_host_agent_that_waits_for_its_subtask(start):
    app, begun = endless_after()
    handle = start(host=[ASSIGN], app=app).submit(Task(request="write"))
    assert begun.wait(PATIENCE)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert [done.outcome for done in result.subtasks] == [Outcome.CANCELLED]
    assert host_moves(handle)[-2:] == [("ASSIGN", "FAIL", "system"), ("FAIL", "FINISH", "system")]


def test_row_21_a_tasks_deadline_fails_it_as_timed_out(start):
    clock = VirtualClock()
    app, begun = endless_after()
    handle = start(app=app, clock=clock, limits={"task_seconds": 60}).submit(lone())
    assert begun.wait(PATIENCE)
    clock.advance(60)
    result = handle.result(PATIENCE)
    assert (result.outcome, text_of(result.causes)) == (Outcome.TIMED_OUT, "the task took longer than 60 s")
    assert app_moves(handle) == [("CONTINUE", "FAIL", "system"), ("FAIL", "FINISH", "system")]


TIMEOUT_FAILS = [("CONFIRM", "FAIL", "timeout"), ("FAIL", "FINISH", "system")]
HOST_DENIED = Outcome.REJECTED, TIMEOUT_FAILS
APP_DENIED = Outcome.REJECTED, [("CONFIRM", "FINISH", "timeout")]
EITHER_FAILS = Outcome.TIMED_OUT, TIMEOUT_FAILS


@pytest.mark.parametrize(
    ("kind", "then", "expected"),
    [
        pytest.param("host", {}, HOST_DENIED, id="host-default"),
        pytest.param("app", {}, APP_DENIED, id="app-default"),
        pytest.param("host", {"at_approval_deadline": "deny"}, HOST_DENIED, id="host-deny"),
        pytest.param("app", {"at_approval_deadline": "deny"}, APP_DENIED, id="app-deny"),
        pytest.param("host", {"at_approval_deadline": "fail"}, EITHER_FAILS, id="host-fail"),
        pytest.param("app", {"at_approval_deadline": "fail"}, EITHER_FAILS, id="app-fail"),
    ],
)
def test_row_21_an_approval_past_its_deadline_counts_as_rejected_or_fails(start, until, kind, then, expected):
    clock = VirtualClock()
    supervisor = start(**{kind: [CONFIRM]}, clock=clock, limits={"approval_seconds": 30, **then})
    handle = supervisor.submit(lone() if kind == "app" else Task(request="write"))
    until(handle, EventName.APPROVAL_REQUESTED)
    clock.advance(29)
    assert not handle.done()
    clock.advance(1)
    result = handle.result(PATIENCE)
    agent = "app/memo/one" if kind == "app" else f"host/{handle.task_id}"
    assert (result.outcome, moves(handle, agent)[1:]) == expected
    assert text_of(result.causes) == "nobody decided on the approval in time"


def test_row_21_the_clock_may_approve_what_may_be_repeated(start, until):
    clock, surface = VirtualClock(), Surface()
    limits = {"approval_seconds": 30, "at_approval_deadline": "allow"}
    handle = start(app=[write(status="CONFIRM"), FINISH], servers=[surface], clock=clock, limits=limits).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert surface.effects == []
    clock.advance(30)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", "hello")]
    assert app_moves(handle)[1] == ("CONFIRM", "CONTINUE", "system")


def test_row_21_the_clock_never_approves_what_must_not_be_repeated(start, until):
    clock, surface = VirtualClock(), Surface()
    both = {
        "Status": "CONFIRM",
        "Actions": [
            {"function": "write", "arguments": {"control_id": "field-1", "text": "a"}},
            {"function": "append", "arguments": {"control_id": "field-1", "text": "b"}},
        ],
    }
    limits = {"approval_seconds": 30, "at_approval_deadline": "allow"}
    handle = start(app=[both], servers=[surface], clock=clock, limits=limits).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    clock.advance(30)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert surface.effects == []
    assert app_moves(handle)[-1] == ("CONFIRM", "FINISH", "timeout")


@pytest.mark.parametrize("kind", ["host", "app", "mobile", "linux"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stop", (Outcome.OUT_OF_BUDGET, [("CONTINUE", "FAIL", "user"), ("FAIL", "FINISH", "system")])),
        ("go on", (Outcome.FINISHED, [("CONTINUE", "FINISH", "model")])),
        (None, (Outcome.OUT_OF_BUDGET, [("CONTINUE", "FAIL", "timeout"), ("FAIL", "FINISH", "system")])),
    ],
    ids=["stop", "go-on", "nobody-answers"],
)
def test_row_21_a_person_may_be_asked_to_continue_at_a_budget_limit(start, until, kind, text, expected):
    clock, target = VirtualClock(), TARGETS.get(kind, MemoryServer.window())
    supervisor = start(
        **{kind: [CONTINUE, CONTINUE, FINISH]},
        servers=[Surface(target)],
        clock=clock,
        budget={"subtask": {"steps": 2}, "at_limit": "ask"},
        limits={"question_seconds": 30},
    )
    handle = supervisor.submit(Task(request="write") if kind == "host" else lone(target.id))
    until(handle, EventName.QUESTION_ASKED)
    asked = handle.questions()[0]
    assert asked.questions[0].choices == ("go on", "stop")
    if text is None:
        clock.advance(30)
    else:
        handle.answer(asked.id, text)
    outcome = handle.result(PATIENCE).outcome
    agent = f"host/{handle.task_id}" if kind == "host" else target.address
    before, after = moves(handle, agent)[:2], moves(handle, agent)[2:]
    assert before == [("CONTINUE", "CONTINUE", "model")] * 2
    assert (outcome, after) == expected


@pytest.mark.parametrize("kind", ["host", "app", "mobile", "linux"])
def test_row_21_at_the_limit_of_a_budget_the_work_ends_as_out_of_budget(start, kind):
    target = TARGETS.get(kind, MemoryServer.window())
    model = FunctionModel(lambda _: CONTINUE)
    supervisor = start(**{kind: model}, servers=[Surface(target)], budget={"subtask": {"model_calls": 2}})
    handle = supervisor.submit(Task(request="write") if kind == "host" else lone(target.id))
    result = handle.result(PATIENCE)
    assert (result.outcome, model.calls) == (Outcome.OUT_OF_BUDGET, 2)
    assert "has used its 2 model calls" in text_of(result.causes)
    agent = f"host/{handle.task_id}" if kind == "host" else target.address
    assert moves(handle, agent)[-2:] == [("CONTINUE", "FAIL", "system"), ("FAIL", "FINISH", "system")]


def test_row_21_the_first_outcome_stays_when_a_deadline_follows_a_cancel(start):
    clock = VirtualClock()
    app, begun = endless_after()
    handle = start(app=app, clock=clock, limits={"task_seconds": 60}).submit(lone())
    assert begun.wait(PATIENCE)
    handle.cancel()
    clock.advance(60)
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_row_21_a_cancel_does_not_wait_for_a_last_look_that_hangs(start):
    looking, release = threading.Event(), threading.Event()

    class Stuck(Surface):
        def observe(self, target: Target) -> Observation:
            if self.looks[target.id]:
                looking.set()
                release.wait(HELD)
            return super().observe(target)

    handle = start(app=[FAIL], servers=[Stuck()]).submit(lone())
    assert looking.wait(PATIENCE)
    handle.cancel()
    try:
        assert handle.result(PATIENCE).subtasks[0].outcome is Outcome.FAILED
    finally:
        release.set()


def test_row_21_a_tools_timeout_is_a_failed_result_that_the_model_sees(start):
    requests, app = recorded([{"Status": "CONTINUE", "Function": "hang"}, FINISH])
    clock, surface = VirtualClock(), Surface()
    handle = start(app=app, servers=[surface], clock=clock, limits={"command_seconds": 60}).submit(lone())
    assert surface.hanging.wait(PATIENCE)
    clock.advance(61)
    assert handle.result(PATIENCE).ok
    assert requests[1].observation.notes[0].startswith("hang failed: took longer than 60 s")


def test_row_21_a_models_timeout_is_an_error(start):
    clock, (app, asked) = VirtualClock(), endless_after()
    handle = start(app=app, clock=clock, limits={"model_seconds": 60}).submit(lone())
    assert asked.wait(PATIENCE)
    clock.advance(61)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "ModelTimeoutError" in [cause.exception for cause in result.causes]
    assert app_moves(handle)[0] == ("CONTINUE", "ERROR", "system")


# 22


@pytest.mark.parametrize("state", ["CONTINUE", "SCREENSHOT"])
@pytest.mark.parametrize(("said", "by"), [("CONFIRM", "model"), ("CONTINUE", "system")])
def test_row_22_confirm_is_entered_by_the_model_or_by_the_policy(start, until, state, said, by):
    before = [SCREENSHOT] if state == "SCREENSHOT" else []
    policy = APPROVE_WRITES if by == "system" else []
    handle = start(app=[*before, write(status=said), FINISH], policy=policy).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert app_moves(handle)[len(before)] == (state, "CONFIRM", by)


def test_row_22_a_host_agents_own_actions_can_need_approval_too(start, until):
    host = [{**CONTINUE, "Function": "ring"}, FINISH]
    handle = start(host=host, servers=[Surface()], policy=[{"verdict": "approve", "agent": "host/*"}]).submit(
        Task(request="write")
    )
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert host_moves(handle)[:2] == [("CONTINUE", "CONFIRM", "system"), ("CONFIRM", "CONTINUE", "user")]


@pytest.mark.parametrize("said", ["CONTINUE", "FINISH", "FAIL", "PENDING", "SCREENSHOT", "ERROR"])
def test_row_22_the_policy_wants_its_approval_whatever_the_models_status(start, until, said):
    surface = Surface()
    handle = start(app=[write(status=said), FINISH], servers=[surface], policy=APPROVE_WRITES).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    asked = handle.approvals()[0]
    assert (asked.reason, surface.effects) == ("writes need a nod", [])
    handle.approve(asked.id)
    until(handle, EventName.STATE_CHANGED, source="CONFIRM", target="CONTINUE")
    assert len(surface.effects) == 1


def test_row_22_where_approvals_are_switched_off_what_would_need_one_runs(start):
    surface = Surface()
    supervisor = start(app=[write(), FINISH], servers=[surface], policy=APPROVE_WRITES, system={"safe_guard": False})
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert len(surface.effects) == 1


@pytest.mark.parametrize("safe_guard", [True, False])
@pytest.mark.parametrize("said", ["CONTINUE", "CONFIRM"])
def test_row_22_a_denied_action_never_runs_and_its_model_gets_a_note(start, safe_guard, said):
    surface = Surface()
    requests, app = recorded([write(status=said), FINISH])
    policy = [{"verdict": "deny", "tool": "write", "reason": "read only"}]
    supervisor = start(app=app, servers=[surface], policy=policy, system={"safe_guard": safe_guard})
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert surface.effects == []
    assert requests[1].observation.notes[0] == "write failed: denied: read only"


def test_row_22_a_list_that_has_a_denied_action_is_not_put_before_a_person(start):
    surface = Surface()
    both = {
        "Status": "CONTINUE",
        "Actions": [
            {"function": "write", "arguments": {"control_id": "field-1", "text": "approved"}},
            {"function": "append", "arguments": {"control_id": "field-1", "text": "denied"}},
        ],
    }
    requests, app = recorded([both, FINISH])
    policy = [*APPROVE_WRITES, {"verdict": "deny", "tool": "append", "reason": "write once"}]
    handle = start(app=app, servers=[surface], policy=policy).submit(lone())
    assert handle.result(PATIENCE).ok
    assert EventName.APPROVAL_REQUESTED not in [event.name for event in handle.events()]
    assert surface.effects == []
    assert requests[1].observation.notes == (
        "write was not run: skipped, because append is denied",
        "append failed: denied: write once",
    )


@pytest.mark.parametrize(("kind", "target"), [("mobile", MemoryServer.device()), ("linux", MemoryServer.shell())])
@pytest.mark.parametrize("approved", [True, False])
def test_row_22_an_agent_that_has_no_confirm_asks_from_continue(start, until, kind, target, approved):
    surface = Surface(target)
    supervisor = start(**{kind: [write(status="FINISH")]}, servers=[surface], policy=APPROVE_WRITES)
    handle = supervisor.submit(lone(target.id))
    until(handle, EventName.APPROVAL_REQUESTED)
    asked = handle.approvals()[0]
    assert (asked.reason, asked.address, surface.effects) == ("writes need a nod", target.address, [])
    if approved:
        handle.approve(asked.id)
        expected = Outcome.FINISHED, [("CONTINUE", "FINISH", "model")], [(target.id, "field-1", "hello")]
    else:
        handle.reject(asked.id, "not today", by="ann")
        expected = Outcome.REJECTED, [("CONTINUE", "FAIL", "user"), ("FAIL", "FINISH", "system")], []
    result = handle.result(PATIENCE)
    assert (result.outcome, moves(handle, target.address), surface.effects) == expected
    assert text_of(result.causes) == ("" if approved else "rejected by ann: not today")


@pytest.mark.parametrize("kind", ["mobile", "linux"])
@pytest.mark.parametrize(("then", "outcome"), [("deny", Outcome.REJECTED), ("fail", Outcome.TIMED_OUT)])
def test_row_22_an_agent_that_has_no_confirm_fails_by_timeout(start, until, kind, then, outcome):
    target = TARGETS[kind]
    clock, surface = VirtualClock(), Surface(target)
    limits = {"approval_seconds": 30, "at_approval_deadline": then}
    supervisor = start(**{kind: [write()]}, servers=[surface], policy=APPROVE_WRITES, clock=clock, limits=limits)
    handle = supervisor.submit(lone(target.id))
    until(handle, EventName.APPROVAL_REQUESTED)
    clock.advance(30)
    assert handle.result(PATIENCE).outcome is outcome
    assert moves(handle, target.address) == [("CONTINUE", "FAIL", "timeout"), ("FAIL", "FINISH", "system")]
    assert surface.effects == []


@pytest.mark.parametrize(("kind", "target"), [("mobile", MemoryServer.device()), ("linux", MemoryServer.shell())])
def test_row_22_what_is_denied_never_runs_without_confirm_either(start, kind, target):
    surface = Surface(target)
    requests, model = recorded([write(), FINISH])
    policy = [{"verdict": "deny", "tool": "write", "reason": "read only"}]
    assert start(**{kind: model}, servers=[surface], policy=policy).submit(lone(target.id)).result(PATIENCE).ok
    assert surface.effects == []
    assert requests[1].observation.notes[0] == "write failed: denied: read only"


# 23


def test_row_23_a_finish_does_not_hold_if_an_action_of_its_answer_failed(start):
    requests, app = recorded([explode("FINISH"), FAIL])
    handle = start(app=app, servers=[Surface()]).submit(lone())
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert app_moves(handle)[0] == ("CONTINUE", "CONTINUE", "system")
    assert requests[1].observation.notes == (
        "explode failed: out of paper",
        "FINISH does not hold, because an action of the same answer failed",
    )


def test_row_23_an_assign_does_not_hold_if_an_action_of_its_answer_failed(start):
    requests, host = recorded([{**ASSIGN, "Function": "ring"}, FINISH])
    handle = start(host=host, servers=[Surface()]).submit(Task(request="write"))
    assert handle.result(PATIENCE).subtasks == ()
    assert host_moves(handle)[0] == ("CONTINUE", "CONTINUE", "system")
    assert requests[1].observation.notes[0] == "ring failed: nobody at home"


def test_row_23_repeated_action_failures_fail(start):
    app = FunctionModel(lambda _: explode())
    handle = start(app=app, servers=[Surface()], limits={"action_failures": 3}).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, app.calls) == (Outcome.FAILED, 3)
    assert text_of(result.causes) == "repeated action failures: 3 in a row"


def test_row_23_a_step_repeated_without_a_change_is_reported_then_fails(start):
    requests, app = recorded([write()] * 5)
    surface = Surface(controls={"field-1": "hello"})
    handle = start(app=app, servers=[surface], limits={"repeats": 3}).submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, len(requests)) == (Outcome.FAILED, 4)
    assert text_of(result.causes) == "no progress: the same 4 times, and nothing changed"
    told = "you did the same 3 times, and nothing changed: do something else, or say FAIL"
    assert [told in request.observation.notes for request in requests] == [False, False, False, True]
    counts = [event.data["count"] for event in handle.events() if event.name is EventName.LOOP_NOTICED]
    assert counts == [3, 4]


def test_row_23_repeated_failures_of_approved_actions_fail_too(start):
    surface = Surface()
    policy = [{"verdict": "approve", "tool": "explode"}]
    limits = {"action_failures": 2, "steps": 12}
    supervisor = start(app=lambda _: explode(), servers=[surface], policy=policy, limits=limits)
    handle = supervisor.submit(lone())
    asked = 0
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            asked += 1
            handle.approve(event.data["request"]["id"])
    result = handle.result(PATIENCE)
    assert (result.outcome, asked) == (Outcome.FAILED, 2)


# 24

TARGETS = {
    "app": MemoryServer.window(),
    "mobile": MemoryServer.device(),
    "linux": MemoryServer.shell(),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(("said", "outcome"), [(FINISH, Outcome.FINISHED), (FAIL, Outcome.FAILED)])
def test_row_24_an_agent_works_alone_and_its_end_is_the_tasks_end(start, kind, said, outcome):
    target = TARGETS[kind]
    handle = start(**{kind: [said]}, servers=[Surface(target)]).submit(lone(target.id))
    assert handle.result(PATIENCE).outcome is outcome
    assert {event.agent for event in handle.events() if event.name is EventName.STATE_CHANGED} == {target.address}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("said", [FINISH, FAIL])
def test_row_24_every_agents_finish_and_fail_return_to_its_hosts_continue(start, kind, said):
    target = TARGETS[kind]
    host = [{**ASSIGN, "ControlText": target.id}, FINISH]
    handle = start(host=host, **{kind: [said]}, servers=[Surface(target)]).submit(Task(request="write"))
    assert handle.result(PATIENCE).ok
    assert host_moves(handle) == [
        ("CONTINUE", "ASSIGN", "model"),
        ("ASSIGN", "CONTINUE", "system"),
        ("CONTINUE", "FINISH", "model"),
    ]


@pytest.mark.parametrize(("kind", "target"), [("mobile", "phone"), ("linux", "box"), ("app", "memo:one")])
def test_row_11_the_last_look_after_a_failure_is_kept_in_the_result(start, kind, target):
    surface = MemoryServer(MemoryServer.window(), MemoryServer.device("phone"), MemoryServer.shell("box"))
    supervisor = start(**{kind: [{"Status": "FAIL", "Comment": "no"}]}, servers=[surface])
    result = supervisor.submit(Task(request="x", target=target)).result(PATIENCE)
    seen = result.subtasks[0].last_seen
    assert seen is not None
    assert [control.id for control in seen.controls] == ["field-1"]
