"""From an answer to a decision: a thing meant is found, by name too; a missing one goes back."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from callboard import FunctionModel, ModelAnswer, Outcome, Task, tool
from callboard.messages import AgentKind, Control, Effect, EventName, Observation
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE


class Form(MemoryServer):
    """A window with controls that are alike, and a tool with arguments that may be left out."""

    controls = (("f-1", "Total"), ("f-2", "Name"), ("f-3", "Name"), ("f-4", ""))

    def observe(self, target):
        seen = tuple(Control(id=key, name=name, kind="field") for key, name in self.controls)
        return Observation(controls=seen, fingerprint=repr(self.effects))

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP,))
    def fill(
        self,
        target: str,
        control_id: Annotated[str, Field(description="The field.")],
        text: str | None,
        control_name: str = "",
        times: int = 1,
    ) -> str:
        """Fill a field."""
        self.effects.append((control_id, control_name, f"{text}*{times}"))
        return control_id

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP,))
    def save(self, target: str) -> str:
        """Save."""
        self.effects.append((target, "", "saved"))
        return "saved"


@pytest.fixture
def do(start):
    """Let an AppAgent take one action, and give the effects and why it was sent back."""

    def run(**action):
        surface = Form(MemoryServer.window())
        answers = [{"Status": "CONTINUE", "Actions": [{"Function": "fill", "Args": {"text": "x"}, **action}]}, FINISH]
        handle = start(app=answers, servers=[surface]).submit(Task(request="fill it in", target="memo:one"))
        assert handle.result(PATIENCE).outcome is Outcome.FINISHED
        back = [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]
        return surface.effects, back

    return run


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"ControlText": "Total"}, ("f-1", "Total")),
        ({"ControlText": "total "}, ("f-1", "Total")),
        ({"ControlText": "f-1"}, ("f-1", "Total")),
        ({"ControlLabel": "Total"}, ("f-1", "Total")),
        ({"ControlLabel": "f-1"}, ("f-1", "")),
        ({"ControlLabel": "f-1", "ControlText": "Total"}, ("f-1", "Total")),
        ({"ControlText": "Name [f-3]"}, ("f-3", "Name")),
        ({"ControlLabel": "f-2", "ControlText": "Name"}, ("f-2", "Name")),
        ({"ControlText": "f-4"}, ("f-4", "")),
        ({"Args": {"text": "x", "control_name": "Total"}}, ("f-1", "Total")),
        ({"Args": {"text": "x", "control_id": "Total"}}, ("f-1", "Total")),
        ({"ControlText": "Total", "Args": {"text": "x", "control_id": None}}, ("f-1", "Total")),
    ],
    ids=str,
)
def test_a_control_is_found_by_its_label_its_name_or_its_id(do, said, found):
    effects, back = do(**said)
    assert (effects, back) == ([(*found, "x*1")], [])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"ControlText": "Name"}, "there is no control 'Name'"),
        ({"ControlText": "Sum"}, "there is no control 'Sum'"),
        ({"ControlLabel": "f-9"}, "there is no control 'f-9'"),
        ({"ControlLabel": "f-1", "ControlText": "Name"}, "there is no control 'f-1' with the name 'Name'"),
        ({"ControlLabel": "f-2", "ControlText": "Total"}, "there is no control 'f-2' with the name 'Total'"),
        ({}, "fill acts on a control: name it as ControlText; there are: 'Total', 'Name [f-2]', 'Name [f-3]', 'f-4'"),
    ],
    ids=str,
)
def test_a_control_that_is_not_beyond_doubt_goes_back(do, said, why):
    effects, back = do(**said)
    assert effects == []
    assert [why in reason for reason in back] == [True]


def test_null_for_an_argument_that_may_be_left_out_leaves_it_out(do):
    assert do(ControlText="Total", Args={"text": "x", "times": None})[0] == [("f-1", "Total", "x*1")]


def test_null_for_an_argument_that_is_required_is_its_value(do):
    assert do(ControlText="Total", Args={"text": None, "times": 2})[0] == [("f-1", "Total", "None*2")]


@pytest.mark.parametrize("name", ["Fill", "FILL", " fill "])
def test_a_tool_is_found_in_any_case(do, name):
    assert do(Function=name, ControlText="Total")[0] == [("f-1", "Total", "x*1")]


def test_a_name_beside_a_tool_that_acts_on_no_control_does_no_harm(do):
    assert do(Function="save", Args={}, ControlText="the document") == ([("memo:one", "", "saved")], [])


def test_a_host_names_a_target_as_it_is_listed(start):
    twins = [MemoryServer.window(name).model_copy(update={"name": "Memo"}) for name in ("one", "two")]
    answers = [{"Status": "ASSIGN", "ControlText": "Memo [memo:two]", "Current Sub-Task": "write"}, FINISH]
    handle = start(host=answers, app=[FINISH], servers=[MemoryServer(*twins)]).submit(Task(request="write"))
    result = handle.result(PATIENCE)
    assert (result.outcome, [done.address for done in result.subtasks]) == (Outcome.FINISHED, ["app/memo/two"])


@pytest.mark.parametrize(
    ("label", "text"), [("memo:one", "memo:two"), ("two", "One"), ("Memo [memo:one]", "memo:two")], ids=str
)
def test_a_host_that_names_two_targets_is_asked_which(start, label, text):
    names = {"one": "Memo", "two": "Memo"} if "[" in label else {"one": "One", "two": "two"}
    both = [MemoryServer.window(each).model_copy(update={"name": name}) for each, name in names.items()]
    twice = {"Status": "ASSIGN", "ControlLabel": label, "ControlText": text, "Current Sub-Task": "write"}
    once = {**twice, "ControlLabel": "0", "ControlText": "memo:two"}  # a number in a list of their own names none
    handle = start(host=[twice, once, FINISH], app=[FINISH], servers=[MemoryServer(*both)]).submit(Task(request="w"))
    result = handle.result(PATIENCE)
    assert [done.address for done in result.subtasks] == ["app/memo/two"]
    (back,) = [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]
    assert f"{label!r} and {text!r} are two targets" in back


def test_a_target_may_have_the_name_that_is_anothers_id(start):
    one, two = MemoryServer.window("one").model_copy(update={"name": "memo:two"}), MemoryServer.window("two")
    answers = [{"Status": "ASSIGN", "ControlLabel": "memo:one", "ControlText": "memo:two", "Subtask": "write"}, FINISH]
    handle = start(host=answers, app=[FINISH], servers=[MemoryServer(one, two)]).submit(Task(request="write"))
    assert [done.address for done in handle.result(PATIENCE).subtasks] == ["app/memo/one"]


def test_screenshot_answer_may_name_controls_as_they_are_listed(start):
    named = []

    def decide(request):
        named.extend(record.decision.reannotate for record in request.memory)
        again = {"Status": "SCREENSHOT", "ControlReannotate": ["Name [f-3]", "Total"]}
        return {1: again, 2: {"Status": "CONTINUE"}}.get(request.call, FINISH)

    handle = start(app=decide, servers=[Form(MemoryServer.window())]).submit(Task(request="look", target="memo:one"))
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert named[0] == ("f-3", "f-1")


def test_trimmed_history_has_an_event(start):
    said = ModelAnswer(content=FINISH, summarised=3, dropped=7)
    handle = start(app=FunctionModel(lambda _: said)).submit(Task(request="look", target="memo:one"))
    handle.result(PATIENCE)
    told = [event.data for event in handle.events() if event.name is EventName.MODEL_TRIMMED]
    assert told == [{"summarised": 3, "dropped": 7}]
