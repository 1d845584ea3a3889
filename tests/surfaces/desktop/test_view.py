"""The view of a program's objects, without a program."""

import pytest

from callboard.messages import Box, LookBudget

pytest.importorskip("jeepney")

from callboard.surfaces.desktop._tree import AccessibleNode, ObjectState
from callboard.surfaces.desktop._view import Ids, program_view

SCREEN = Box(x=0, y=0, width=400, height=300)
MENU = Box(x=0, y=20, width=100, height=200)
SHOWN = 1 << ObjectState.SHOWING | 1 << ObjectState.SENSITIVE


def node(role, name, box, parent=None):
    x, y, width, height = box
    depth = 0 if parent is None else parent.depth + 1
    return AccessibleNode(
        path=f"/{name}",
        parent=parent,
        depth=depth,
        role=role,
        name=name,
        states=SHOWN,
        box=Box(x=x, y=y, width=width, height=height),
    )


def test_controls_under_an_open_menu_have_no_place_in_the_picture():
    """Leave it unlabelled, as part of the menu; a secret stays black."""
    frame = node("frame", "Letter", (0, 0, 400, 300))
    menu = node("menu", "File", (0, 0, 40, 20), frame)
    nodes = [
        frame,
        menu,
        node("menu item", "New", (0, 20, 100, 20), menu),
        node("push button", "Under", (10, 40, 40, 20), frame),
        node("push button", "Beside", (200, 40, 40, 20), frame),
        node("password text", "Pin", (10, 80, 40, 20), frame),
        node("entry", "Card", (10, 120, 40, 20), frame),
    ]
    ids = Ids()
    names = {each.name: each for each in program_view(nodes, ids, SCREEN, LookBudget(), popups=[MENU]).controls}
    assert {name for name, each in names.items() if each.box is None} == {"Under", "Card"}
    masked = {names["Card"].id}
    again = program_view(nodes, ids, SCREEN, LookBudget(), popups=[MENU], masked=masked).controls
    assert [each.name for each in again if each.box is None] == ["Under"]
    assert all(each.box for each in program_view(nodes, ids, SCREEN, LookBudget()).controls)
