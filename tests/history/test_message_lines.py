"""Approvals in the terminal: the calls that are asked about, each with its control."""

from __future__ import annotations

from callboard.history import calls_of, lines_of, plain
from callboard.messages import Action, ApprovalRequest, Control, Observation


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
