"""Places of a window's controls, its dialogs, and the guard of a routine on changed windows."""

from __future__ import annotations

import pytest
from guard_changes import STOP, control_of, decision, recorded_step

from callboard.messages import Box, LookBudget, Observation, Target, TargetKind

pytest.importorskip("jeepney")

from callboard.surfaces.desktop._tree import AccessibleNode, ObjectState
from callboard.surfaces.desktop._view import Ids, program_view

SHOWN = 1 << ObjectState.SHOWING | 1 << ObjectState.SENSITIVE
GEDIT = Target(id="people-7", name="People", kind=TargetKind.WINDOW, address="app/people/7", server="desktop")


class Window:
    """A program's objects, numbered in order as toolkits do."""

    def __init__(self, first: int = 1, title: str = "a.txt - People") -> None:
        self.nodes: list[AccessibleNode] = []
        self.next = first
        self.frame = self.add("frame", title)

    def add(self, role: str, name: str = "", parent: AccessibleNode | None = None, **more: object) -> AccessibleNode:
        depth = 0 if parent is None else parent.depth + 1
        node = AccessibleNode(path=f"/org/{self.next}", parent=parent, depth=depth, role=role, name=name, states=SHOWN)
        node.box = Box(x=0, y=10 * self.next, width=100, height=10)
        for key, value in more.items():
            setattr(node, key, value)
        self.next += 1
        self.nodes.append(node)
        if parent is not None:
            parent.children.append(node)
        return node

    def observed(self) -> Observation:
        view = program_view(self.nodes, Ids(), None, LookBudget())
        facts = {"titles": [self.frame.name], "folder": "/home/ada/files"}
        facts |= {"dialog": view.dialog} if view.dialog else {}
        facts |= {"dialogs": [*view.dialogs]} if view.dialogs else {}
        return Observation(controls=view.controls, window=facts, fingerprint=view.fingerprint)


def people(
    *extra: str, first: int = 1, buttons: tuple[str, ...] = ("Clear", "Save", "Delete"), text: str = "", **save: object
) -> Window:
    window = Window(first)
    bar = window.add("tool bar", "", window.frame)
    window.add("push button", "Save", bar)
    group = window.add("panel", "Personal", window.frame)
    window.add("entry", "Phone", window.add("filler", "", group), text=text)
    for name in buttons:
        window.add("push button", name, group, **(save if name == "Save" else {}))
    entries = window.add("list box", "", window.frame)
    for name in ("Ada", "Grace", *extra):
        row = window.add("list item", "", entries)
        window.add("label", name, row)
        window.add("push button", "Call", row)
    window.add("document text", "a.txt", window.frame)
    window.add("paragraph", "Hello", window.nodes[-1], text="Hello")
    return window


def with_columns(*headers: str) -> Window:
    window = Window()
    table = window.add("table", "Prices", window.frame, size=(9, len(headers)))
    for header in headers:
        window.add("table column header", header, table)
    return window


def test_controls_name_their_entry_group_or_bar():
    places = [(control.name, control.place) for control in people().observed().controls if control.kind != "label"]
    assert places == [
        ("Save", "tool bar"),
        ("Phone", "Personal"),
        ("Clear", "Personal"),
        ("Save", "Personal"),
        ("Delete", "Personal"),
        ("", ""),
        ("Ada", ""),
        ("Call", "Ada"),
        ("Grace", ""),
        ("Call", "Grace"),
        ("a.txt", ""),
        ("Hello", ""),
    ]


def test_a_dialogs_title_is_the_place_of_its_controls():
    window = people()
    dialog = window.add("dialog", "Options")
    window.add("push button", "Close", dialog)
    assert control_of(window.observed(), "Close", "push button").place == "Options"
    assert window.observed().window["dialogs"] == ["Options"]
    window.nodes = [node for node in window.nodes if node is dialog or node.parent is dialog]
    assert "dialogs" not in window.observed().window  # the dialog is all of the program


def test_columns_of_a_table_are_its_headers():
    table = control_of(with_columns("Item", "Net").observed(), "Prices", "table")
    assert (table.columns, table.detail) == (("Item", "Net"), {"rows": 9, "columns": 2})


def test_places_are_no_part_of_the_fingerprint():
    window = people()
    before = window.observed().fingerprint
    window.nodes[3].name = "Person"  # the panel, which is no control
    assert window.observed().fingerprint == before


def modal(message: str, title: str = "Question") -> Window:
    window = people()
    alert = window.add("alert", title, states=SHOWN | 1 << ObjectState.MODAL)
    window.add("label", message, alert)
    window.add("push button", "Save", alert)
    return window


def beside(role: str, name: str) -> Window:
    window = people()
    window.add("push button", "Save", window.add(role, name))
    return window


CHANGES: dict[str, tuple[Window, bool]] = {
    "unchanged": (people(), True),
    "ids renumbered": (people(first=20), True),
    "order": (people(buttons=("Save", "Clear", "Delete")), False),
    "label translated": (people(buttons=("Clear", "Sichern", "Delete")), True),
    "label translated, ids renumbered": (people(first=20, buttons=("Clear", "Sichern", "Delete")), False),
    "value": (people(text="555"), True),
    "extra row": (people("Alan"), True),
    "disabled": (people(states=1 << ObjectState.SHOWING), False),
    "look-alike beside it": (people(buttons=("Clear", "Save", "Save", "Delete")), False),
    "only the look-alike remains": (people(buttons=("Clear", "Delete")), False),
    "modal dialog in front": (modal("Discard changes?"), False),
    "other dialog": (beside("dialog", "Find"), False),
    "look-alike in another window": (beside("frame", "b.txt - People"), True),
}


@pytest.mark.parametrize(("window", "stays"), CHANGES.values(), ids=CHANGES)
def test_guard_on_a_changed_window(window, stays):
    seen, now = people().observed(), window.observed()
    step = recorded_step(seen, GEDIT, control_of(seen, "Save", "push button", "Personal"))
    names = {"Save", "Sichern"}
    right = [control.id for control in now.controls if control.place == "Personal" and control.name in names]
    assert decision(step, now, GEDIT) == (right[0] if stays else STOP)


def test_guard_calls_the_recorded_person_among_more():
    seen, now = people().observed(), people("Alan", first=30).observed()
    step = recorded_step(seen, GEDIT, control_of(seen, "Call", "push button", "Grace"))
    assert decision(step, now, GEDIT) == control_of(now, "Call", "push button", "Grace").id


def test_guard_tells_two_questions_with_one_title_apart():
    seen = modal("Discard changes?").observed()
    step = recorded_step(seen, GEDIT, control_of(seen, "Save", "push button"))
    assert decision(step, modal("Discard changes?").observed(), GEDIT)
    assert decision(step, modal("Delete 3 people?").observed(), GEDIT) == STOP


@pytest.mark.parametrize(
    ("headers", "stays"), [(("Item", "Net"), True), (("Item", "Gross"), False), (("Item",), False)]
)
def test_guard_on_other_columns(headers, stays):
    seen, now = with_columns("Item", "Net").observed(), with_columns(*headers).observed()
    step = recorded_step(seen, GEDIT, control_of(seen, "Prices", "table"))
    assert bool(decision(step, now, GEDIT)) is stays
