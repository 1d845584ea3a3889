"""Check boxes that pages draw themselves, over an input that is not seen."""

from __future__ import annotations

import pytest

from callboard.surfaces import ToolError

NO_AREA = "label { padding-left: 30px } input { position: absolute; opacity: 0; width: 0; height: 0 }"
BOXES = {
    "no area": (f"<style>{NO_AREA}</style><label>One<input type=checkbox><span>x</span></label>"),
    "no area, in a link's neighbourhood": (
        f"<style>{NO_AREA}</style><label><input type=checkbox><b>I accept</b><a href=/x style='padding: 0 9em'>them</a>"
    ),
    "below its label": (
        "<style>label::before { content: 'x'; position: absolute; left: 0; width: 40px; background: red } "
        "input { position: absolute; z-index: -1; opacity: 0 }</style><input type=checkbox id=a><label for=a>One"
    ),
    "clipped": (
        "<style>input { position: absolute; width: 1px; height: 1px; margin: -1px; clip: rect(0 0 0 0) }</style>"
        "<label><input type=checkbox><span>x</span> One</label>"
    ),
    "off the page": (
        "<style>input { position: absolute; left: -9999px }</style><input type=checkbox id=a><label for=a>One</label>"
    ),
}


@pytest.fixture
def page(visit, shop):
    """Give the function that opens a page."""

    def opened(text):
        shop.pages["/box"] = f"<title>x</title>{text}"
        return visit(f"{shop.url}/box")

    return opened


def box_of(tab):
    """Find the box."""
    return next(control for control in tab.look().controls if control.kind in {"checkbox", "radio"})


@pytest.mark.parametrize("text", BOXES.values(), ids=BOXES.keys())
def test_a_drawn_box_is_checked_clicked_and_pressed(page, quick_checks, text):
    tab = page(text)
    for tool, arguments, is_checked in (
        ("check", {}, True),
        ("click", {}, False),
        ("press", {"keys": "space"}, True),
    ):
        tab.do(tool, box_of(tab), **arguments)
        assert ("checked" in box_of(tab).states) is is_checked
    assert tab.tab.page.url.endswith("/box")


def test_a_drawn_radio_button_is_chosen(page):
    part = "<label><input type=radio name=size value={0}><span>{0}</span></label>"
    tab = page(f"<style>{NO_AREA}</style>{part.format('small')}{part.format('large')}")
    assert [control.name for control in tab.look().controls] == ["small", "large"]
    tab.do("check", "large")
    assert tab.control("large").states == ("checked", "focused")


def test_a_drawn_box_behind_another_part_is_not_checked(page, quick_checks):
    tab = page(f"{BOXES['no area']}<div style='position: fixed; inset: 0'>Wait</div>")
    with pytest.raises(ToolError, match=r"checkbox 'One.*' is covered by another part of the page \(<div"):
        tab.do("check", box_of(tab))
    assert box_of(tab).states == ()


def test_a_press_on_a_label_presses_no_button_around_it(page, quick_checks):
    inner = "<button onclick=\"document.title = 'pressed'\"><label for=a>Pay now</label></button>"
    tab = page(f"<input type=checkbox id=a style='position: absolute; left: -99px'>{inner}")
    with pytest.raises(ToolError, match="off the screen"):
        tab.do("check", box_of(tab))
    assert tab.look().window["title"] == "x"


UNSEEN = "<input type=checkbox id={} aria-label=One style='position: absolute; left: -99px'>"
OTHERS = {
    "by id": f"<label for=b>{UNSEEN.format('a')}<span>One</span></label><input type=checkbox id=b>",
    "by order": f"<label><input type=checkbox style='display: none'>{UNSEEN.format('a')}<span>One</span></label>",
    "by the same id": f"<input type=checkbox id=a><div>{UNSEEN.format('a')}<label for=a>One</label>",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_a_label_of_another_box_is_not_pressed(page, quick_checks, text):
    tab = page(text)
    for tool in ("check", "click"):
        unseen = next(control for control in tab.look().controls if control.box.x < 0)
        with pytest.raises(ToolError, match="off the screen"):
            tab.do(tool, unseen)
    assert tab.script("() => document.querySelectorAll(':checked').length") == 0


def test_a_hidden_value_before_a_box_is_not_what_its_label_is_for(page):
    tab = page(f"<style>{NO_AREA}</style><label><input type=hidden><input type=checkbox><span>One</span></label>")
    tab.do("check", box_of(tab))
    assert "checked" in box_of(tab).states


def test_enter_in_a_drawn_box_has_the_hazards_of_its_form(page):
    tab = page(f"<form method=post>{BOXES['no area']}<button>Pay now</button></form>")
    assert tab.hazards("press", box_of(tab), keys="Enter") == {"sends", "spends"}


def test_a_part_with_several_boxes_is_no_label_of_one(page):
    tab = page(
        f"<style>{NO_AREA}</style><label>One<input type=checkbox><input type=checkbox></label><div>a<input type=radio>"
    )
    assert tab.look().controls == ()
