"""Clicks that arrive at their control, on real windows, or are refused."""

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.desktop._desktop_applications import DesktopApplication


@pytest.fixture
def open_at(surface, start):
    """Start a program at a scale of its window."""

    def start_at(scale, *command):
        application = DesktopApplication("scaled", "scaled", ("env", f"GDK_SCALE={scale}", *command))
        surface._require_desktop().applications["scaled"] = application
        return start("scaled")

    return start_at


def item(window, name):
    """Find an item of the open menu: mousepad pads its names with spaces."""
    return next(each for each in window.look().controls if each.name.strip() == name)


def test_a_click_meets_its_control_at_double_scale(open_at):
    window = open_at(2, "mousepad")
    assert window.do("click", "Search")["changed"]
    window.do("click", item(window, "Find and Replace..."))
    window.control("Replace", "push button")


def test_a_drag_selects_text_at_double_scale(open_at):
    window = open_at(2, "mousepad")
    field = next(each for each in window.look().controls if each.kind == "text")
    window.do("type_text", field, text="words\n" * 12)
    window.do("drag", field, to=window.control("File", "menu").id)
    assert "words" in window.do("copy")["text"]


def test_a_control_below_the_edge_of_the_screen_is_not_clicked(surface, start):
    window = start("form")
    moved = next(each for each in window.desktop.screen.of_process(window.pid) if not each.popup)
    window.desktop.screen._object(moved.frame).configure(y=780)
    window.desktop.screen.display.sync()
    assert window.desktop.wait(
        lambda: window.look().controls and not any(c.box for c in window.look().controls if c.name == "OK"), 5
    )
    with pytest.raises(ToolError, match="'OK' is outside the screen of 1280 by 800 pixels"):
        window.do("click", "OK")
    assert not window.has_ended()


def test_a_control_under_an_open_menu_is_not_clicked(start):
    window = start("editor")
    field = window.desktop.node(window.pid, next(each.id for each in window.look().controls if each.kind == "text"))
    window.do("click", "Search")
    box, corner = item(window, "Find").box, window.desktop.area(window.pid)[1]
    point = corner.x + box.x + 5, corner.y + box.y + 5
    window.desktop.pointer.move(*point)
    with pytest.raises(ToolError, match="an open menu, list or tooltip covers text"):
        window.surface._acting()._pointed.settle(window.pid, point, field)
    window.surface._acting()._pointed.settle(
        window.pid, point, window.desktop.node(window.pid, item(window, "Find").id)
    )


def test_a_pointer_that_does_not_arrive_clicks_nothing(start, monkeypatch):
    window = start("form")
    monkeypatch.setattr(window.desktop.pointer, "move", lambda x, y: None)
    with pytest.raises(ToolError, match="something else moves it; nothing was done"):
        window.do("click", "OK")
    assert not window.has_ended()
