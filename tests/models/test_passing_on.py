"""Results passed on by reference, from a model's answer to the tool: they are done, kept, shown and played again."""

from __future__ import annotations

import json
import threading
from typing import Annotated

import pytest
from pydantic import Field

from callboard import EventName, ModelAnswer, Outcome, ScriptedModel, Settings, Task, tool
from callboard.actors.replay import RecordedTask, replay_journal
from callboard.messages import AgentKind, Answered, Decided, Effect, SupervisorStoppedError
from callboard.testing import MemoryServer
from support import HELD, PATIENCE, lone

ROWS = [["North", 1.5], ["South", 2.5]]
REFERENCE = "${steps.1.results.0.value.rows}"
READ = {"Status": "CONTINUE", "Function": "rows"}
WRITE = {"Status": "CONTINUE", "Function": "insert", "Args": {"rows": REFERENCE}}
FINISH = {"Status": "FINISH", "Result": "${steps.1.results.0.value}"}
ANSWERS = [READ, WRITE, FINISH]


class Sheet(MemoryServer):
    """A window with rows, and a tool that takes rows."""

    held = ROWS

    def __init__(self):
        super().__init__(MemoryServer.window())

    def shows(self, text):
        """Have its field hold a text."""
        self.write("memo:one", "field-1", text)
        self.effects.clear()

    @tool(effect=Effect.READ, agents=(AgentKind.APP,))
    def rows(self, target: str) -> dict[str, list[list[str | float]] | str]:
        """Give the rows."""
        return {"rows": self.held, "unit": "t"}

    @tool(effect=Effect.ONCE, agents=(AgentKind.APP,))
    def insert(
        self, target: str, rows: Annotated[list[list[str | float]] | str, Field(description="The rows.")]
    ) -> int:
        """Insert rows."""
        self.effects.append((target, "rows", json.dumps(rows)))
        return len(rows)


@pytest.fixture
def sheet():
    return Sheet()


def refers(answers):
    """Make a function that answers as a model of a provider does."""
    return lambda request: ModelAnswer(content=answers[request.call - 1], refers=True)


@pytest.fixture
def live(start, provider, sheet):
    """Start a supervisor whose agents have a model of a provider, which gives these answers."""

    def begin(*answers, **given):
        for answer in answers:
            provider.says(answer)
        providers = {"local": {"url": provider.url, "input_price": 0, "output_price": 0}}
        models = {"app": "local:small", **given.pop("models", {})}
        return start(servers=[sheet], models=models, providers=providers, **given)

    return begin


def test_the_tool_gets_what_the_reference_stands_for(live, sheet):
    result = live(*ANSWERS).submit(lone(id="t")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert sheet.effects == [("memo:one", "rows", json.dumps(ROWS))]


def test_a_result_may_be_one_as_well(live):
    assert live(*ANSWERS).submit(lone(id="t")).result(PATIENCE).output == {"rows": ROWS, "unit": "t"}


def test_output_of_a_subtask_can_be_passed_on(start, sheet):
    def host(request):
        done = request.call > 2
        return {"Status": "FINISH"} if done else {"Status": "ASSIGN", "ControlText": "memo:one", "Subtask": "work"}

    write = {**WRITE, "Args": {"rows": "${subtasks.1.output.rows}"}}
    supervisor = start(servers=[sheet], host=host, app=refers([READ, FINISH, write, {"Status": "FINISH"}]))
    result = supervisor.submit(Task(request="copy")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert [text for _, _, text in sheet.effects] == [json.dumps(ROWS)]


def test_references_are_listed_in_the_prompt_and_offered_in_the_schema(live, provider):
    live(*ANSWERS).submit(lone(id="t")).result(PATIENCE)
    first, second, _ = provider.requests
    assert REFERENCE not in json.dumps(first)
    assert (
        f'- \\"{REFERENCE}\\": 2 rows, the first ["North", 1.5]'.replace('\\"', '"') in second["messages"][1]["content"]
    )
    assert REFERENCE in json.dumps(second["response_format"])


def test_a_dangling_reference_goes_back_with_the_valid_references(live, provider, sheet):
    wrong = {**WRITE, "Args": {"rows": "${steps.1.results.0.value.cells}"}}
    assert live(READ, wrong, WRITE, FINISH).submit(lone(id="t")).result(PATIENCE).ok
    assert [text for _, _, text in sheet.effects] == [json.dumps(ROWS)]
    sent = provider.requests[2]["messages"][1]["content"]
    assert "leads nowhere" in sent
    assert REFERENCE in sent


def test_a_person_is_shown_the_values(live, sheet):
    supervisor = live(*ANSWERS, policy=[{"verdict": "approve", "tool": "insert", "reason": "a look first"}])
    handle = supervisor.submit(lone(id="t"))
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            (request,) = handle.approvals()
            assert request.actions[0].arguments == {"rows": ROWS}
            assert not sheet.effects
            handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert len(sheet.effects) == 1


def test_the_rules_see_the_values(live, sheet):
    rule = {"verdict": "deny", "tool": "insert", "arguments": {"rows": "*North*"}, "reason": "nothing of the north"}
    result = live(READ, WRITE, {"Status": "FAIL"}, policy=[rule]).submit(lone(id="t")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert not sheet.effects


@pytest.mark.parametrize(
    "whole", [REFERENCE, "${subtasks.1.output}", "${steps.9.results.0.value}"], ids=["known", "of a subtask", "unknown"]
)
def test_text_of_a_document_is_never_a_reference(start, sheet, whole):
    sheet.held = whole
    answers = {
        "app/memo/one": [
            READ,
            {**WRITE, "Args": {"rows": "${steps.1.results.0.value.rows}"}},
            {"Status": "FINISH", "Result": "${steps.1.results.0.value.rows}"},
        ]
    }
    result = start(servers=[sheet], app=ScriptedModel(answers)).submit(lone(id="t")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert sheet.effects == [("memo:one", "rows", json.dumps(whole))]
    assert result.output == whole


@pytest.mark.parametrize(
    "copied", ["${steps.1.results.0.value.unit}", "${steps.1.results.0.value}", "${steps.9.results.0.value}"]
)
@pytest.mark.parametrize("where", ["read", "seen"])
def test_text_copied_from_a_document_is_not_a_reference(live, sheet, copied, where):
    if where == "read":
        sheet.held = [[f"Write {copied}."]]
    else:
        sheet.shows(copied)
    answers = [READ, {**WRITE, "Args": {"rows": copied}}, FINISH]
    result = live(*answers).submit(lone(id="t")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert sheet.effects == [("memo:one", "rows", json.dumps(copied))]


def test_offered_reference_is_valid_even_if_a_document_names_it(live, sheet):
    sheet.shows(f"{REFERENCE} ${{steps.1.results.0.value}}")
    result = live(*ANSWERS).submit(lone(id="t")).result(PATIENCE)
    assert sheet.effects == [("memo:one", "rows", json.dumps(ROWS))]
    assert result.output == {"rows": ROWS, "unit": "t"}


def test_value_of_a_reference_is_not_resolved_again(start, sheet):
    sheet.held = "${subtasks.1.output}"
    assert start(servers=[sheet], app=refers(ANSWERS)).submit(lone(id="t")).result(PATIENCE).ok
    assert sheet.effects == [("memo:one", "rows", json.dumps(sheet.held))]


def test_the_name_of_a_secret_in_a_document_is_not_passed_on_to_a_tool(live, sheet):
    sheet.held = [["North", "${secret:mail}"]]
    supervisor = live(READ, WRITE, {"Status": "FAIL"}, secrets={"mail": "hunter22"})
    assert supervisor.submit(lone(id="t")).result(PATIENCE).outcome is Outcome.FAILED
    assert not sheet.effects


def test_the_answer_is_kept_as_it_came_and_the_decision_with_the_values(live, tmp_path):
    path = tmp_path / "journal.db"
    with live(*ANSWERS, journal={"path": path}) as supervisor:
        assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    notes = [row.message for row in RecordedTask.load(path, "t").rows]
    answered = [note for note in notes if isinstance(note, Answered)]
    assert json.loads(answered[1].content) == WRITE
    assert [action.arguments for note in notes if isinstance(note, Decided) for action in note.actions] == [
        {},
        {"rows": ROWS},
    ]


def test_a_replay_goes_the_same_way(live, tmp_path):
    path = tmp_path / "journal.db"
    with live(*ANSWERS, journal={"path": path}) as supervisor:
        assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    again = replay_journal(path, "t", Settings.load())
    assert again.difference is None, str(again.difference)
    assert again.outcome is Outcome.FINISHED


def test_a_replay_knows_copied_texts_and_cut_answers_for_what_they_were(start, sheet, tmp_path):
    path, copied = tmp_path / "journal.db", "${steps.1.results.0.value}"
    sheet.shows(copied)
    answers = [
        ModelAnswer(content=READ, refers=True),
        ModelAnswer(content={"Status": "FAIL"}, refers=True, cut="the answer was cut"),
        ModelAnswer(content={**WRITE, "Args": {"rows": copied}}, refers=True),
        ModelAnswer(content=FINISH, refers=True),
    ]
    with start(servers=[sheet], app=lambda request: answers[request.call - 1], journal={"path": path}) as supervisor:
        assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    assert sheet.effects == [("memo:one", "rows", json.dumps(copied))]
    again = replay_journal(path, "t", Settings.load())
    assert again.difference is None, str(again.difference)
    assert again.outcome is Outcome.FINISHED


def test_an_answer_that_was_kept_before_a_crash_means_the_same_after_it(start, sheet, tmp_path):
    """The first process is stopped while its second answer is on its way to the tool, which never sees it."""
    path = tmp_path / "journal.db"
    reached, go = threading.Event(), threading.Event()

    def app(request):
        if request.call == 2 and not go.is_set():
            reached.set()
            go.wait(HELD)
        return ModelAnswer(content=ANSWERS[request.call - 1], refers=True)

    first = start(servers=[sheet], app=app, journal={"path": path})
    handle = first.submit(lone(id="t"))
    assert reached.wait(PATIENCE)
    first.stop()
    go.set()
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    second = start(servers=[sheet], app=app, journal={"path": path})
    assert second.handle("t").result(PATIENCE).ok
    assert sheet.effects == [("memo:one", "rows", json.dumps(ROWS))]


def test_a_recording_plays_it_back(live, start, sheet, tmp_path):
    path = tmp_path / "run.jsonl"
    with live(*ANSWERS, models={"record": path}) as supervisor:
        assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    with start(servers=[sheet], models={"app": f"recorded:{path}"}) as supervisor:
        result = supervisor.submit(lone(id="t")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert [text for _, _, text in sheet.effects] == 2 * [json.dumps(ROWS)]
