"""Operators in a browser: points of the picture, keys, and the hazards of what they press."""

from __future__ import annotations

import pytest

from callboard.messages import AgentKind
from callboard.surfaces import ToolError

POINTS = """<title>Points</title><style>body { margin: 0 } div { position: absolute; left: 0; top: 100px;
width: 300px; height: 200px }</style><div onclick="log.push(`${event.button} ${event.detail} ${event.ctrlKey}`)"
onmousemove="moved = [event.clientX, event.clientY]" onmousedown="log.push(`down ${event.clientX}`)"
onmouseup="log.push(`up ${event.clientX}`)" oncontextmenu="log.push('menu'); event.preventDefault()"></div>
<input style="position: absolute; left: 0; top: 0"><script>var log = [], moved;</script>"""
FORM = """<title>Form</title><style>body {{ margin: 0 }} * {{ position: absolute; left: 0 }}</style>
<form method="post" action="/confirm"><input name="a" style="top: 0"><button style="top: 50px">{label}</button></form>
<a href="/order" style="top: 100px">Order</a>"""


@pytest.fixture
def points(visit, shop):
    shop.pages["/points"] = POINTS
    return visit(f"{shop.url}/points")


def at(control):
    """Give the middle of a control."""
    box = control.box
    return {"x": box.x + box.width // 2, "y": box.y + box.height // 2}


def test_a_tab_is_offered_to_operators(visit, shop):
    tab = visit(shop.url)
    assert set(tab.target.kinds) == {AgentKind.APP, AgentKind.OPERATOR}
    offered = {entry.name for entry in tab.surface.tools() if AgentKind.OPERATOR in entry.agents}
    assert {"click_at", "move_to", "drag_at", "scroll_at", "type_text", "press_keys", "wait"} <= offered
    assert {"open", "back", "accept_dialog", "dismiss_dialog"} <= offered


def test_click_at_clicks_a_place_without_a_control(points):
    points.do("click_at", x=20, y=120, count=2, modifiers=["ctrl"])
    points.do("click_at", x=20, y=120, button="right")
    log = points.script("() => log.filter(line => !line.includes(' 20'))")
    assert log == ["0 1 true", "0 2 true", "menu"]


def test_move_to_and_drag_at_move_the_pointer(points):
    points.do("move_to", x=33, y=144)
    assert points.script("() => moved") == [33, 144]
    points.do("drag_at", x=20, y=120, to_x=80, to_y=160)
    assert points.script("() => log")[:2] == ["down 20", "up 80"]
    assert points.script("() => moved") == [80, 160]


def test_scroll_at_turns_the_wheel(visit, shop):
    shop.pages["/tall"] = "<title>Tall</title><div style='height: 9000px'>x</div>"
    tab = visit(f"{shop.url}/tall")
    tab.do("scroll_at", x=10, y=10, dy=3)
    tab.script("() => new Promise(done => { (function wait() { scrollY === 300 ? done() : setTimeout(wait, 20) })() })")


def test_type_text_and_press_keys_go_to_the_focus(points):
    points.do("click_at", x=10, y=10)
    points.do("type_text", text="hello you")
    points.do("press_keys", keys="BackSpace")
    assert points.look().controls[0].detail["value"] == "hello yo"


def test_a_point_outside_the_picture_is_refused(points):
    with pytest.raises(ToolError, match=r"\(5000, 1\) is outside the picture, which has \d+ by \d+ pixels"):
        points.do("click_at", x=5000, y=1)


def test_hazards_are_of_the_parts_at_the_points(visit, shop):
    shop.pages["/form"] = FORM.format(label="Buy")
    tab = visit(f"{shop.url}/form")
    assert tab.hazards("click_at", **at(tab.control("Buy"))) == {"sends", "spends"}
    assert tab.hazards("click_at", x=900, y=700) == set()
    point = at(tab.control("Buy"))
    assert "sends" in tab.hazards("drag_at", x=900, y=700, to_x=point["x"], to_y=point["y"])


def test_hazards_are_of_the_keys_that_press(visit, shop):
    shop.pages["/form"] = FORM.format(label="Send")
    tab = visit(f"{shop.url}/form")
    tab.do("click_at", x=5, y=5)
    assert tab.hazards("press_keys", keys="Return") == {"sends"}
    assert tab.hazards("type_text", text="a\n") == {"sends"}
    assert tab.hazards("type_text", text="a b") == set()
    tab.do("press_keys", keys="Tab")
    assert tab.hazards("press_keys", keys="space") == {"sends"}


def test_a_press_that_was_not_ruled_on_is_not_done(visit, shop):
    shop.pages["/form"] = FORM.format(label="Send")
    tab, count = visit(f"{shop.url}/form"), len(shop.orders)
    point = at(tab.control("Send"))
    tab.hazards("click_at", x=900, y=700)
    with pytest.raises(ToolError, match="the page has changed since the policy ruled on this, and now it sends"):
        tab.do("click_at", **point)
    assert len(shop.orders) == count


def test_resources_are_of_the_link_at_the_point(visit, shop):
    shop.pages["/form"] = FORM.format(label="Send")
    tab = visit(f"{shop.url}/form")
    names = tab.run(tab.surface.resources(tab.target, "click_at", at(tab.control("Order"))))
    assert f"url:{shop.url}/order" in names
