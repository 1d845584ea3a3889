"""Places of objects on the screen, without a program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import Box

pytest.importorskip("jeepney")
pytest.importorskip("Xlib")

from callboard.surfaces.desktop._places import covering, scale_of, scaled, visible_part, window_of
from callboard.surfaces.desktop._tree import AccessibleNode
from callboard.surfaces.desktop._xscreen import XWindow

SCREEN = (400, 300)


def area(x, y, width, height):
    return Box(x=x, y=y, width=width, height=height)


def node(role, place, parent=None, name=""):
    child = AccessibleNode(f"/{role}{name}", parent, 0, role=role, name=name, box=area(*place))
    if parent is not None:
        parent.children.append(child)
    return child


def window(number, title, place, *, popup=False):
    return XWindow(number, number, 1, title, area(*place), area(*place), popup)


@given(
    scale=st.sampled_from([1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0]),
    x=st.integers(0, 2000),
    y=st.integers(0, 2000),
    width=st.integers(60, 3000),
    height=st.integers(60, 2000),
)
def test_a_point_is_mapped_to_its_pixel_at_any_scale(scale, x, y, width, height):
    logical = Box(x=round(x / scale), y=round(y / scale), width=round(width / scale), height=round(height / scale))
    measured = scale_of([window(1, "", (x, y, width, height))], logical)
    assert measured is not None
    pixels = scaled(logical, measured)
    ends = [pixels.x - x, pixels.y - y, pixels.x + pixels.width - x - width, pixels.y + pixels.height - y - height]
    assert all(abs(end) <= 2 + scale + abs(measured - scale) * (2000 / scale) for end in ends)
    assert abs(measured - scale) <= 0.1


def test_no_scale_is_measured_by_another_shape():
    assert scale_of([window(1, "", (0, 0, 452, 352))], Box(x=0, y=0, width=400, height=300)) is None
    assert scale_of([], Box(x=0, y=0, width=400, height=300)) is None


def test_a_popup_with_the_title_of_a_window_is_not_that_window():
    windows = [window(1, "galculator", (0, 0, 300, 300)), window(2, "galculator", (50, 50, 80, 20), popup=True)]
    assert window_of(windows, node("frame", (0, 0, 300, 300), name="galculator")) == 1


def test_a_window_without_a_title_is_known_by_its_place():
    windows = [window(1, "a", (0, 0, 300, 300)), window(2, "zenity", (50, 50, 200, 200))]
    assert window_of(windows, node("file chooser", (50, 50, 200, 200))) == 2


@pytest.mark.parametrize(
    ("box", "part"),
    [
        ((10, 10, 20, 20), (10, 10, 20, 20)),
        ((10, 190, 20, 20), (10, 190, 20, 10)),
        ((10, 230, 20, 20), None),
        ((380, 10, 50, 20), None),
    ],
)
def test_the_visible_part_ends_at_the_scroll_pane_and_the_screen(box, part):
    pane = node("scroll pane", (0, 0, 300, 200), node("frame", (0, 0, 400, 300)))
    found = visible_part(node("push button", box, node("filler", (0, 0, 500, 900), pane)), SCREEN)
    assert (found and (found.x, found.y, found.width, found.height)) == part


def test_a_button_in_front_covers_and_one_behind_does_not():
    frame = node("frame", (0, 0, 400, 300))
    under = node("push button", (0, 0, 200, 200), node("filler", (0, 0, 400, 300), frame), name="under")
    menu = node("menu", (0, 0, 50, 20), frame, name="open")
    node("menu item", (0, 0, 400, 300), menu)
    over = node("push button", (50, 50, 50, 50), frame, name="over")
    assert covering(under, (60, 60), {"push button", "menu item"}) is over
    assert covering(under, (10, 10), {"push button", "menu item"}) is None
    assert covering(over, (60, 60), {"push button", "menu item"}) is None
