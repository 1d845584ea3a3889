"""Dry runs: agents look, decide and ask the policy, and nothing is executed."""

from __future__ import annotations

import pytest
from docx import Document

from callboard import EventName, Outcome, PlanStep, Settings, Supervisor, Task, tool
from callboard.messages import Effect, PlannedAction
from callboard.models.prompt import prompt_of
from callboard.testing import MemoryServer, assert_replays
from support import ASSIGN, FINISH, PATIENCE, action, actions, append, lone, told, write

APPROVE = {"verdict": "approve", "tool": "append", "reason": "a person looks first"}
DENY = {"verdict": "deny", "tool": "write", "reason": "not here"}
ALLOWED = "dry run: not executed; the policy would have allowed it"


def dry(**fields):
    return lone(dry_run=True, **fields)


def statuses(handle):
    return [event.data["status"] for event in handle.events() if event.name is EventName.COMMAND_ENDED]


def test_dry_run_executes_no_action_and_lists_all_in_its_result(start):
    surface, notes = MemoryServer(MemoryServer.window()), []
    model = told([write("a"), append("b", "FINISH")], notes)
    handle = start(app=model, servers=[surface]).submit(dry())
    result = handle.result(PATIENCE)
    assert result.ok
    assert (result.dry_run, result.actions, result.changed, result.usage.commands) == (True, 0, (), 0)
    assert [(each.tool, each.arguments["text"], each.note) for each in result.would_do] == [
        ("write", "a", ALLOWED),
        ("append", "b", ALLOWED),
    ]
    assert isinstance(result.would_do[0], PlannedAction)
    assert result.would_do[0].target == "memo:one"
    assert statuses(handle) == ["dry_run", "dry_run"]
    assert f"write: {ALLOWED}. Go on as if it was done" in notes[1]
    assert surface.effects == []


def test_tools_that_only_read_are_executed(start):
    seen = []

    def model(request):
        seen.extend(result.value for record in request.memory for result in record.results)
        return FINISH if seen else actions(action("read", "field-1"), action("write", "field-1", text="x"))

    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "before"})
    handle = start(app=model, servers=[surface]).submit(dry())
    assert handle.result(PATIENCE).ok
    assert seen == ["before", None]
    assert statuses(handle) == ["success", "dry_run"]


def test_no_person_is_asked_for_an_approval(start):
    surface = MemoryServer(MemoryServer.window())
    handle = start(app=[append("a", "FINISH")], servers=[surface], policy=[APPROVE]).submit(dry())
    (planned,) = handle.result(PATIENCE).would_do
    assert "a person would have been asked: a person looks first" in planned.note
    names = {event.name for event in handle.events()}
    assert EventName.APPROVAL_REQUESTED not in names
    assert EventName.POLICY_DECIDED in names
    assert surface.effects == []


def test_an_approval_that_the_model_wants_is_passed_over(start):
    surface = MemoryServer(MemoryServer.window())
    confirm = {**write("a"), "Status": "CONFIRM"}
    handle = start(app=[confirm, FINISH], servers=[surface]).submit(dry())
    (planned,) = handle.result(PATIENCE).would_do
    assert "asked: the agent's model asks for approval" in planned.note
    assert EventName.APPROVAL_REQUESTED not in {event.name for event in handle.events()}
    assert surface.effects == []


def test_a_denied_action_fails_as_ever(start):
    notes = []
    handle = start(app=told([write("a"), append("b", "FINISH")], notes), policy=[DENY]).submit(dry())
    result = handle.result(PATIENCE)
    assert [each.tool for each in result.would_do] == ["append"]
    assert notes[1] == ("write failed: denied: not here",)
    assert statuses(handle) == ["failure", "dry_run"]


def test_a_model_that_repeats_itself_is_stopped_by_the_limits(start):
    surface = MemoryServer(MemoryServer.window())
    result = start(app=lambda _: write("a"), servers=[surface]).submit(dry()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no progress" in result.causes[0].reason
    assert len(result.would_do) == 4
    result = start(app=lambda request: write(str(request.call))).submit(dry(limits={"steps": 5})).result(PATIENCE)
    assert (result.outcome, len(result.would_do)) == (Outcome.OUT_OF_BUDGET, 5)


def test_subtasks_are_dry_and_other_tasks_are_not(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(
        host=lambda request: FINISH if request.subtasks else ASSIGN,
        app=lambda _: append("x", "FINISH"),
        servers=[surface],
    )
    result = supervisor.submit(Task(request="x", dry_run=True)).result(PATIENCE)
    assert [each.tool for each in result.subtasks[0].would_do] == ["append"]
    assert result.would_do == result.subtasks[0].would_do
    assert surface.effects == []
    wet = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert (wet.dry_run, wet.would_do, len(surface.effects)) == (False, (), 1)


def test_follow_up_knows_that_a_dry_run_did_no_action(start):
    prompts = []

    def host(request):
        prompts.append("".join(map(str, prompt_of(request).user)))
        return FINISH if any(done.run_id.startswith(request.task_id) for done in request.subtasks) else ASSIGN

    def app(request):
        prompts.append("".join(map(str, prompt_of(request).user)))
        return append("x", "FINISH")

    surface = MemoryServer(MemoryServer.window())
    supervisor = start(host=host, app=app, servers=[surface])
    dry_task = supervisor.submit(Task(request="Add x", dry_run=True))
    assert dry_task.result(PATIENCE).ok
    assert "→ finished, only planned (dry run)" in prompts[-1]
    assert not [prompt for prompt in prompts if "NOT done" in prompt]
    prompts.clear()
    assert supervisor.submit(Task(request="now do it", session=dry_task.task_id)).result(PATIENCE).ok
    assert len(surface.effects) == 1
    told_host, told_app, _ = prompts
    for prompt in (told_host, told_app):
        assert "→ finished, NOT done: only planned (dry run)" in prompt
        assert "as if it was done" not in prompt
        assert "counts as done" not in prompt
    assert f'→ NOT done: "{ALLOWED}"' in told_app


def test_a_dry_run_stays_dry_after_a_restart_and_in_a_replay(begin, until, tmp_path):
    surface = MemoryServer(MemoryServer.window())
    before = begin(app=lambda _: {"Status": "PENDING", "Comment": "which?"}, servers=[surface])
    handle = before.submit(dry())
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    after = begin(app=lambda _: append("x", "FINISH"), servers=[surface]).handle(handle.task_id)
    after.answer(after.questions()[0].id, "this one")
    result = after.result(PATIENCE)
    assert result.dry_run
    assert len(result.would_do) == 1
    assert surface.effects == []
    assert_replays(tmp_path / "journal.db", handle.task_id)


def test_an_answer_can_not_end_a_dry_run(start):
    surface, reasons = MemoryServer(MemoryServer.window()), []

    def model(request):
        reasons.extend(request.reasons)
        if not request.reasons:
            return {**append("x"), "dry_run": False}
        return actions(action("append", "field-1", text="dry_run: false"), status="FINISH")

    result = start(app=model, servers=[surface]).submit(dry()).result(PATIENCE)
    assert "dry_run" in reasons[0]
    assert [each.tool for each in result.would_do] == ["append"]
    assert surface.effects == []


class Pretender(MemoryServer):
    """A surface whose reading tool reports another effect for a call."""

    @tool(effect=Effect.READ)
    def read_all(self, target: str) -> str:
        """Read."""
        self.effects.append((target, "read_all", ""))
        return "text"

    @tool(effect=Effect.ONCE)
    def get_title(self, target: str) -> str:
        """Only read the title: this tool changes nothing, and is to be executed in a dry run."""
        self.effects.append((target, "get_title", ""))
        return "title"


def test_a_tool_that_only_seems_to_read_is_not_executed(start):
    surface = Pretender(MemoryServer.window())
    answer = actions(action("get_title"), action("read_all"), status="FINISH")
    supervisor = start(app=lambda _: answer, servers=[surface], policy=[{"verdict": "approve", "tool": "read_all"}])
    result = supervisor.submit(dry()).result(PATIENCE)
    assert [each.tool for each in result.would_do] == ["get_title", "read_all"]
    assert surface.effects == []


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    document = Document()
    document.add_paragraph("This is a draft.")
    document.save(str(folder / "offer.docx"))
    return folder


def test_no_file_is_changed(workspace):
    before = (workspace / "offer.docx").read_bytes()
    call = {"Status": "FINISH", "Function": "replace_text", "Args": {"find_text": "draft", "new_text": "final"}}
    settings = Settings.load(documents={"workspace": workspace})
    with Supervisor.start(settings, models={"app": lambda _: call}) as supervisor:
        result = supervisor.submit(Task(request="x", target="offer.docx", dry_run=True)).result(PATIENCE)
    assert result.ok
    assert "a person would have been asked" in result.would_do[0].note  # it overwrites text that the task did not write
    assert (workspace / "offer.docx").read_bytes() == before
    assert [file.name for file in workspace.iterdir()] == ["offer.docx"]


@pytest.mark.parametrize(
    ("output", "outcome", "why"),
    [({}, Outcome.FINISHED, ""), ({"output_schema": {"type": "integer"}}, Outcome.FAILED, "this step has no output")],
)
def test_a_plan_may_name_an_application(workspace, output, outcome, why):
    plan = (PlanStep(request="write it", target="word"), PlanStep(request="add it up", target="excel"))
    task = Task(request="make them", plan=plan, dry_run=True, **output)
    settings = Settings.load(documents={"workspace": workspace})
    with Supervisor.start(settings, models={"app": lambda _: FINISH}) as supervisor:
        result = supervisor.submit(task).result(PATIENCE)
    assert result.outcome is outcome
    assert why in "".join(cause.reason for cause in result.causes)
    names = [(each.tool, each.arguments) for each in result.would_do]
    assert names == [("start_application", {"name": "word"}), ("start_application", {"name": "excel"})]
    assert [file.name for file in workspace.iterdir()] == ["offer.docx"]


MAKE = {"Status": "CONTINUE", "Actions": [{"function": "create_document", "arguments": {"path": "sum.xlsx"}}]}
"""A HostAgent's answer that makes a document."""


def make_then(workspace, answer, **task):
    """Dry-run a HostAgent that makes a document, then gives an answer.

    It finishes if the answer is sent back.
    """

    def host(request):
        return FINISH if request.reasons else answer if request.memory else MAKE

    settings = Settings.load(documents={"workspace": workspace})
    with Supervisor.start(settings, models={"host": host, "app": lambda _: FINISH}) as supervisor:
        return supervisor.submit(Task(request="sum up", dry_run=True, **task)).result(PATIENCE)


@pytest.mark.parametrize(
    "answer",
    [
        {"Status": "ASSIGN", "ControlText": "sum.xlsx", "Current Sub-Task": "fill it"},
        {
            "Status": "ASSIGN",
            "Sub-Tasks": [
                {"ControlText": "offer.docx", "Current Sub-Task": "read it"},
                {"ControlText": "sum.xlsx", "Current Sub-Task": "fill it"},
            ],
        },
    ],
    ids=["one", "several"],
)
def test_dry_run_ends_where_a_document_was_not_made(workspace, answer):
    result = make_then(workspace, answer)
    assert result.ok
    assert result.comment == "the dry run ends here: sum.xlsx is not there, because create_document was not executed"
    assert [planned.tool for planned in result.would_do] == ["create_document"]
    failed = make_then(workspace, answer, output_schema={"type": "integer"})
    assert failed.outcome is Outcome.FAILED
    assert "the dry run ends here" in failed.causes[0].reason


def test_dry_run_sends_back_a_target_that_no_action_makes(workspace):
    result = make_then(workspace, {"Status": "ASSIGN", "ControlText": "some.xlsx", "Current Sub-Task": "fill it"})
    assert result.ok
    assert "the dry run ends" not in result.comment


def test_no_application_is_started(workspace):
    def host(request):
        applications = [target.id for target in request.observation.targets if target.kind == "application"]
        if not request.memory:
            return {"Status": "ASSIGN", "ControlText": applications[0], "Current Sub-Task": "write it"}
        return {"Status": "FINISH", "Comment": request.observation.notes[-1]}

    settings = Settings.load(documents={"workspace": workspace})
    with Supervisor.start(settings, models={"host": host, "app": lambda _: FINISH}) as supervisor:
        result = supervisor.submit(Task(request="make a new one", dry_run=True)).result(PATIENCE)
    assert result.ok, result.causes
    assert len(result.would_do) == 1
    assert result.subtasks == ()
    assert "dry run: not executed" in result.comment
    assert [file.name for file in workspace.iterdir()] == ["offer.docx"]
