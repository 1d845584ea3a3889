"""Parts of tasks, and whole tasks, that are not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ModelAnswer, PlanStep, Server, Task
from callboard.errors import RoutineError
from callboard.journal import JournalReader
from callboard.messages import (
    Check,
    Control,
    Effect,
    Observation,
    Outcome,
    RoutineAssignment,
    SubtaskEnding,
    Target,
    TargetKind,
    steps_of,
)
from callboard.routines import RoutineRecording, record
from callboard.surface import ToolError, tool
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, action, actions, append, call, lone, wait_for, write

TWO = (MemoryServer.window(), MemoryServer.window("two"))


@pytest.fixture
def saved(begin, tmp_path):
    """Run a task, and record it."""

    def save(task: Task, *, supervised: Any = lambda handle: None, outcome=Outcome.FINISHED, **given: Any):
        parameters = given.pop("parameters", {})
        with begin(**given) as supervisor:
            handle = supervisor.submit(task)
            supervised(handle)
            assert handle.result(PATIENCE).outcome is outcome
        return recording_of(tmp_path / "journal.db", task.id, **parameters)

    return save


def recording_of(journal, task_id, **parameters) -> RoutineRecording:
    with JournalReader.open(journal) as reader:
        return record(reader.rows(task_id, events=False), name="r", parameters=parameters)


def calls(entries) -> list[tuple[str, dict[str, Any]]]:
    """List the calls of steps."""
    return [(action.tool, action.arguments) for step in steps_of(*entries) for action in step.actions]


def refused(save, *arguments, **given) -> str:
    with pytest.raises(RoutineError) as error:
        save(*arguments, **given)
    return str(error.value)


def test_a_task_with_a_target_has_no_host(saved):
    routine = saved(lone(request="Write hello"), app=[write(), FINISH]).routine
    assert (routine.host, routine.subtasks[0].target, routine.subtasks[0].kind) == ((), "memo:one", "app")
    assert calls(routine.subtasks[0].steps) == [("write", {"control_id": "${controls.0.id}", "text": "hello"})]
    assert [step.status for step in routine.subtasks[0].steps] == ["CONTINUE", "FINISH"]


class Desk(Server):
    """Applications to start, and a page to read or tear."""

    name = "desk"
    settles = False

    def __init__(self):
        self.windows = []

    def targets(self):
        address = "app/writer/*"
        application = Target(id="writer", name="Writer", kind=TargetKind.APPLICATION, address=address, server=self.name)
        return (application, *self.windows)

    def start(self, target, arguments):
        name = f"{target.id}-{42 + len(self.windows)}"
        given = {"address": f"app/writer/{name}", "server": self.name, "binds": {"target": name}}
        self.windows.append(Target(id=name, name=name, kind=TargetKind.WINDOW, **given))
        return self.windows[-1]

    def observe(self, target, look):
        return Observation(controls=(Control(id="page-1", name="Page", kind="page"),))

    @tool(effect=Effect.READ, agents=("app",))
    def read(self, target: str, control_id: str) -> dict[str, str]:
        """Read a page."""
        return {"text": f"page of {target}"}

    @tool(effect=Effect.READ, agents=("app",))
    def tear(self, target: str, control_id: str) -> str:
        """Tear a page."""
        msg = "it does not tear"
        raise ToolError(msg)

    @tool(effect=Effect.IDEMPOTENT, agents=("app",))
    def note(self, target: str, text: str) -> int:
        """Note a text."""
        return len(text)


def on_desk(saved, *answers, **given):
    host = [{"Status": "ASSIGN", "ControlText": "writer", "Current Sub-Task": "work"}, FINISH]
    policy = [{"verdict": "allow"}]
    return saved(Task(id="t", request="work"), host=host, app=[*answers], servers=[Desk()], policy=policy, **given)


def test_failed_actions_are_left_out_and_results_renumbered(saved):
    answers = [
        call("tear", control_id="page-1"),
        actions(action("read", "page-1"), action("tear", "page-1"), action("note", text="never")),
        actions(action("read", "page-1")),
        call("note", text="page of writer-42"),
        {"Status": "FINISH", "Result": "page of writer-42"},
    ]
    recording = on_desk(saved, *answers)
    steps = recording.routine.subtasks[0].steps
    assert [tool for tool, _ in calls(steps)] == ["read", "read", "note"]
    assert calls(steps)[-1][1] == {"text": "${steps.2.results.0.value.text}"}
    assert steps[-1].result == "${steps.2.results.0.value.text}"
    assert "app/writer/writer-42: 2 failed actions left out" in recording.remarks


def test_an_application_that_an_assignment_started_is_the_target(saved):
    routine = on_desk(saved, call("read", control_id="page-1"), FINISH).routine
    assert (routine.subtasks[0].target, calls(routine.host)) == ("writer", [])


def test_a_window_that_the_host_opened_is_named_by_that_step(saved):
    host = [
        call("open_in_desk", application="writer"),
        {"Status": "ASSIGN", "ControlLabel": "writer-42", "Current Sub-Task": "work"},
        FINISH,
    ]
    given = {"servers": [Desk()], "policy": [{"verdict": "allow"}]}
    routine = saved(Task(id="t", request="work"), host=host, app=[call("read", control_id="page-1"), FINISH], **given)
    assert routine.routine.subtasks[0].target == "${steps.1.results.0.value.id}"


def test_a_subtask_that_failed_is_left_out_and_others_are_renumbered(saved):
    def host(request):
        if len(request.subtasks) < 3:
            return {**ASSIGN, "Current Sub-Task": f"try {len(request.subtasks) + 1}"}
        return {"Status": "FINISH", "Result": request.subtasks[1].output}

    def app(request):
        if request.request == "try 1":
            return append("a") if request.step == 1 else {"Status": "FAIL", "Comment": "no"}
        if request.request == "try 2":
            return {"Status": "FINISH", "Result": "the result of the second"}
        return write(request.subtasks[-1].output) if request.step == 1 else {**FINISH, "Result": "done"}

    recording = saved(Task(id="t", request="work"), host=host, app=app)
    routine = recording.routine
    assert [part.request for part in routine.subtasks] == ["try 2", "try 3"]
    assert [step.assign for step in routine.host] == [
        (RoutineAssignment(subtask=1),),
        (RoutineAssignment(subtask=2),),
        (),
    ]
    assert calls(routine.subtasks[1].steps)[0][1]["text"] == "${subtasks.1.output}"
    assert routine.host[-1].result == "${subtasks.1.output}"
    assert "subtask 1 ('try 1') did not finish and is left out; it changed something" in "\n".join(recording.remarks)


def test_a_finish_that_its_checks_refused_is_left_out(saved):
    check = Check.model_validate(
        {"control": {"target": "memo:one", "name": "field-1"}, "contains": {"detail": {"text": "hello"}}}
    )
    recording = saved(lone(checks=(check,)), app=[FINISH, write(), FINISH])
    steps = recording.routine.subtasks[0].steps
    assert [step.status for step in steps] == ["CONTINUE", "FINISH"]
    assert recording.routine.recorded.verified
    assert recording.routine.checks == (
        {"control": {"target": "memo:one", "name": "field-1"}, "contains": {"detail": {"text": "hello"}}},
    )


def test_an_approved_action_is_recorded_once(saved):
    def approve(handle):
        wait_for(handle.approvals)
        handle.approve(handle.approvals()[0].id)

    policy = [{"verdict": "approve", "tool": "append"}]
    steps = saved(lone(), app=[append("x"), FINISH], policy=policy, supervised=approve).routine.subtasks[0].steps
    assert [tool for tool, _ in calls(steps)] == ["append"]
    assert [step.status for step in steps] == ["CONTINUE", "FINISH"]


ASKS = {"Status": "PENDING", "Comment": "Which city?"}


def answer_with(text):
    def answer(handle):
        wait_for(handle.questions)
        handle.answer(handle.questions()[0].id, text)

    return answer


def test_a_persons_answer_becomes_a_parameter(saved):
    given = {"app": [ASKS, write("Hamburg"), FINISH], "supervised": answer_with("Hamburg")}
    routine = saved(lone(), **given).routine
    assert routine.parameters["answer"].model_dump() == {
        "value": "Hamburg",
        "document": False,
        "description": "Which city?",
    }
    assert calls(routine.subtasks[0].steps)[0][1]["text"] == "${answer}"
    assert [step.status for step in routine.subtasks[0].steps] == ["CONTINUE", "FINISH"]


def test_an_answer_that_is_in_no_argument_is_refused(saved):
    says = refused(saved, lone(id="t"), app=[ASKS, write("Hamburg"), FINISH], supervised=answer_with("the first"))
    assert "the task t asked a person 'Which city?', and the answer 'the first' is in no argument" in says


def test_other_outcomes_dry_runs_and_unfinished_tasks_are_refused(saved, tmp_path, begin):
    failed = {"app": [{"Status": "FAIL", "Comment": "no"}], "outcome": Outcome.FAILED}
    assert refused(saved, lone(id="a"), **failed) == "the task a ended as failed: a routine is made of a finished task"
    assert "was a dry run" in refused(saved, lone(id="b", dry_run=True), app=[FINISH])
    handle = begin(app=[ASKS]).submit(lone(id="c"))
    wait_for(handle.questions)
    with pytest.raises(RoutineError, match="the task c is not over"):
        recording_of(tmp_path / "journal.db", "c")
    with pytest.raises(RoutineError, match="the journal has no such task"):
        recording_of(tmp_path / "journal.db", "d")


def test_a_follow_up_is_refused(saved):
    saved(Task(id="first", request="one"), host=[ASSIGN, FINISH], app=[write(), FINISH])
    says = refused(saved, Task(id="next", request="two", session="first"), host=[FINISH] * 4)
    assert "continues the conversation of first" in says


def test_work_of_a_host_alone_is_refused(saved):
    assert "has no subtask that finished" in refused(saved, Task(id="t", request="nothing"), host=[FINISH])


def test_a_subtask_of_another_machine_is_refused(saved, tmp_path):
    saved(lone(id="t"), app=[write(), FINISH])
    with JournalReader.open(tmp_path / "journal.db") as reader:
        rows = list(reader.rows("t", events=False))
    elsewhere = [
        row._replace(message=row.message.model_copy(update={"result": away(row.message.result)}))
        if isinstance(row.message, SubtaskEnding)
        else row
        for row in rows
    ]
    with pytest.raises(RoutineError, match="subtask 1 of the task t ran on the machine finance-3"):
        record(elsewhere, name="r")


def away(result):
    return result.model_copy(update={"machine": "finance-3"})


def test_a_plan_that_is_followed_becomes_the_steps_of_a_host(saved):
    plan = [PlanStep(request="first", target="memo:one"), PlanStep(request="second", target="memo:two")]

    def app(request):
        if request.request == "first":
            return {"Status": "FINISH", "Result": "the first result"}
        return write(request.subtasks[0].output) if request.step == 1 else FINISH

    routine = saved(Task(id="t", plan=plan), app=app, servers=[MemoryServer(*TWO)]).routine
    assert (routine.request, [part.target for part in routine.subtasks]) == ("first; second", ["memo:one", "memo:two"])
    assert [step.status for step in routine.host] == ["ASSIGN", "ASSIGN", "FINISH"]
    assert calls(routine.subtasks[1].steps)[0][1]["text"] == "${subtasks.1.output}"


def test_a_plan_with_an_order_becomes_one_handover(saved):
    plan = [
        PlanStep(request="first", target="memo:one", after=[]),
        PlanStep(request="second", target="memo:two", after=1),
    ]
    given = {"app": lambda request: write() if request.step == 1 else FINISH, "servers": [MemoryServer(*TWO)]}
    routine = saved(Task(id="t", request="Both", plan=plan), **given).routine
    assert routine.host[0].assign == (RoutineAssignment(subtask=1), RoutineAssignment(subtask=2, after=(1,)))
    assert [step.status for step in routine.host] == ["ASSIGN", "FINISH"]


def test_secrets_are_named_and_their_values_are_not_kept(saved):
    task = lone(secrets={"PIN": "sesame-4711"})
    recording = saved(task, app=[write("${secret:PIN}"), FINISH])
    assert calls(recording.routine.subtasks[0].steps)[0][1]["text"] == "${secret:PIN}"
    assert "sesame" not in recording.routine.model_dump_json()
    assert "the task's secrets are no part of the routine: give them with each run" in recording.remarks


def test_references_of_the_model_are_preferred(saved):
    answers = [
        call("read", control_id="page-1"),
        call("read", control_id="page-1"),
        call("note", text="${steps.1.results.0.value.text}"),
        FINISH,
    ]

    def app(request):
        return ModelAnswer(content=answers[request.call - 1], refers=True)

    host = [{"Status": "ASSIGN", "ControlText": "writer", "Current Sub-Task": "work"}, FINISH]
    given = {"servers": [Desk()], "policy": [{"verdict": "allow"}]}
    routine = saved(Task(id="t", request="work"), host=host, app=app, **given).routine
    assert calls(routine.subtasks[0].steps)[-1][1] == {"text": "${steps.1.results.0.value.text}"}


def test_a_parameter_that_occurs_nowhere_or_has_an_invalid_name_is_refused(saved):
    given = {"app": [write("Hamburg"), FINISH]}
    assert "the parameter city: 'Ulm' occurs in no request" in refused(
        saved, lone(), parameters={"city": "Ulm"}, **given
    )
    assert refused(saved, lone(), parameters={"item": "Hamburg"}, **given).startswith("parameters: 'item' has another")
    assert "parameters.1: the key has the wrong form" in refused(saved, lone(), parameters={"1": "Hamburg"}, **given)
    assert saved(lone(), parameters={"city": "Hamburg"}, **given).routine.parameters["city"].value == "Hamburg"


def test_an_unverified_task_is_remarked(saved):
    assert any("was not verified" in remark for remark in saved(lone(), app=[write(), FINISH]).remarks)
