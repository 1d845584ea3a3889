"""Lines of messages: approvals with their controls, steps of routines that did not fit."""

from __future__ import annotations

from callboard.history import calls_of, lines_of, plain, used
from callboard.messages import Action, ApprovalRequest, Control, Event, EventName, Observation, Usage


def asks_to_click(name):
    """Make a request for a click on the last of many controls, and for a key."""
    controls = [Control(id=f"e{number}", name=f"Line {number}", kind="link") for number in range(100)]
    controls.append(Control(id="e100", name=name, kind="button"))
    return ApprovalRequest(
        id="a",
        task_id="t",
        run_id="t~1",
        token=1,
        address="app/browser/tab-1",
        actions=(Action(tool="click", arguments={"control_id": "e100"}), Action(tool="press", arguments={"keys": "x"})),
        reason="a rule",
        observation=Observation(controls=tuple(controls)),
    )


def test_a_call_names_its_control_though_the_page_is_long():
    assert list(map(plain, calls_of(asks_to_click("Del\u200bete \u202ell")))) == [
        r"""click {"control_id": "e100"} on button 'Del\u200bete \u202ell'""",
        'press {"keys": "x"}',
    ]


def test_history_names_the_control_of_an_approval():
    _, *lines = lines_of(asks_to_click("Send order"))
    assert [text for text, _ in lines] == ['click on Send order {"control_id": "e100"}', 'press {"keys": "x"}']


def test_history_tells_which_step_of_a_routine_did_not_fit():
    data = {"routine": "routine:fill", "place": 2, "expected": "the button 'Save'", "found": "no control of that kind"}
    [(line, _)] = lines_of(Event(seq=1, at=0.0, name=EventName.ROUTINE_MISSED, task_id="t", data=data))
    assert line == "routine:fill does not fit at its step 2: expected the button 'Save'; found no control of that kind"


def test_answers_of_a_routine_are_counted_apart():
    usage = Usage(steps=4, model_calls=1, replayed=3, missed=1, commands=2)
    assert used(usage) == "4 steps, 1 model call, 3 answers of a routine, 1 step that did not fit, 2 tool calls"
