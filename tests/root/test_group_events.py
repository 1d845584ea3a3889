"""The events of subtasks that work side by side: each carries its run, its number and its agent."""

from __future__ import annotations

import pytest

from callboard import FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.events import Event, SubtaskEnded, SubtaskPlanned
from callboard.messages import EventName, PlanStep
from callboard.testing import MemoryServer
from support import PATIENCE

OF_NO_RUN = {EventName.AGENT_STARTED, EventName.AGENT_STOPPED, EventName.SUPERVISOR_STARTED}


def planned(*after, **fields):
    """Make a task with a step for each list of earlier steps."""
    steps = [PlanStep(request=str(place), target=f"memo:w{place}", after=names) for place, names in enumerate(after, 1)]
    return Task(id="t", plan=steps, **fields)


def works(request):
    """Ask, write with an approval, and finish; the second subtask fails."""
    if request.step == 1:
        return {"Status": "PENDING", "Questions": ["which?"]}
    if request.step == 2:
        return {"Status": "CONTINUE", "Function": "write", "Args": {"text": request.request}, "ControlText": "field-1"}
    return {"Status": "FAIL" if request.request == "2" else "FINISH"}


@pytest.fixture
def run_plan():
    """Run a plan; returns its result and all events."""

    def run(task, model, **options):
        events: list[Event] = []
        windows = MemoryServer(*(MemoryServer.window(f"w{number}") for number in range(1, len(task.plan) + 1)))
        loaded = Settings.load(**{"log": {"stream": "off"}, **options})
        with Supervisor.start(loaded, models={"app": FunctionModel(model)}, servers=[windows]) as supervisor:
            supervisor.subscribe(events.append, after=0)
            handle = supervisor.submit(task)
            for event in handle.events():
                request = event.data.get("request")
                if event.name is EventName.QUESTION_ASKED:
                    choices = request["questions"][0].get("choices") or [f"{event.number}"]
                    handle.answer(request["id"], choices[0], by="ann")
                elif event.name is EventName.APPROVAL_REQUESTED:
                    handle.approve(request["id"], by="ann")
            result = handle.result(PATIENCE)
        return result, events

    return run


def test_each_event_of_a_subtask_carries_its_run_and_number(run_plan):
    policy = [{"verdict": "approve", "tool": "write", "reason": "look first"}]
    result, events = run_plan(planned((), (), (), (2,)), works, policy=policy)
    assert [subtask.outcome.value for subtask in result.subtasks] == ["finished", "failed", "finished", "cancelled"]
    of_subtasks = [event for event in events if event.agent.startswith("app/") and event.name not in OF_NO_RUN]
    for event in of_subtasks:
        number = int(event.agent.removeprefix("app/memo/w"))
        assert (event.run_id, event.number, event.task_id) == (f"t~{number}", number, "t"), event
    names = {event.name for event in of_subtasks if event.number == 1}
    assert names >= {
        EventName.SUBTASK_PLANNED,
        EventName.SUBTASK_ASSIGNED,
        EventName.SUBTASK_ENDED,
        EventName.STATE_CHANGED,
        EventName.STEP_STARTED,
        EventName.STEP_ENDED,
        EventName.PHASE_ENDED,
        EventName.MODEL_ANSWERED,
        EventName.COMMAND_ENDED,
        EventName.POLICY_DECIDED,
        EventName.APPROVAL_REQUESTED,
        EventName.APPROVAL_ANSWERED,
        EventName.QUESTION_ASKED,
        EventName.QUESTION_ANSWERED,
    }
    assert {event.number for event in events if event.agent.startswith("host/")} == {0}


def test_planned_subtasks_are_told_with_their_order(run_plan):
    _, events = run_plan(planned((), (), (1, 2)), lambda _: {"Status": "FINISH"})
    told = [event for event in events if isinstance(event, SubtaskPlanned)]
    assert [(event.number, event.request, event.group, event.after) for event in told] == [
        (1, "1", 1, ()),
        (2, "2", 1, ()),
        (3, "3", 1, (1, 2)),
    ]


def test_subtask_that_never_began_is_told_to_have_ended(run_plan):
    _, events = run_plan(planned((), (1,)), lambda _: {"Status": "FAIL"})
    ended = {event.number: event for event in events if isinstance(event, SubtaskEnded)}
    assert (ended[2].outcome, ended[2].duration) == (Outcome.CANCELLED, 0)
    assert ended[2].causes == ("it comes after subtask 1, which ended as failed",)
    assert not [event for event in events if event.name is EventName.SUBTASK_ASSIGNED and event.number == 2]


def test_question_at_the_limit_of_a_share_carries_its_subtask(run_plan):
    def writes(request):
        if request.step < 3:
            return {"Status": "CONTINUE", "Function": "write", "Args": {"text": "x"}, "ControlText": "field-1"}
        return {"Status": "FINISH"}

    budget = {"at_limit": "ask", "task": {"steps": 4}}
    _, events = run_plan(planned((), ()), writes, budget=budget)
    asked = [event for event in events if event.name is EventName.QUESTION_ASKED]
    assert {event.number for event in asked} <= {1, 2}
    assert asked


def test_log_lines_of_a_subtask_name_its_run(run_plan, tmp_path):
    run_plan(planned((), ()), lambda _: {"Status": "FINISH"}, log={"stream": "off", "file": tmp_path / "log.jsonl"})
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    of_agent = [line for line in lines if '"app/memo/w2"' in line and "agent.st" not in line]
    assert of_agent
    assert all('"subtask":"t~2"' in line for line in of_agent)
