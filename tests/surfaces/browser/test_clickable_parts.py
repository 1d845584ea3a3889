"""Parts of a page that are controls though they have no role of one."""

from __future__ import annotations


def test_a_part_with_a_name_and_no_role_is_a_control(visit, shop):
    shop.pages["/named"] = (
        '<title>Named</title><a title="Next month" onclick="document.title = `hit`"><i>&gt;</i></a><p>Text <b>bold</b>'
    )
    tab = visit(f"{shop.url}/named")
    assert [(control.kind, control.name) for control in tab.look().controls] == [("clickable", "Next month")]
    tab.do("click", "Next month")
    assert tab.look().window["title"] == "hit"


def test_the_items_of_a_list_in_a_clickable_part_are_controls(visit, shop):
    shop.pages["/drawn"] = (
        '<title>Drawn</title><div style="cursor: pointer">Size<ul><li onclick="document.title = `small`">small'
        "<li>large</ul></div><ul><li>no control</ul>"
    )
    tab = visit(f"{shop.url}/drawn")
    assert [control.name for control in tab.look().controls if control.kind == "listitem"] == ["small", "large"]
    tab.do("click", "small")
    assert tab.look().window["title"] == "small"


def test_words_of_a_named_part_are_hazards(visit, shop):
    shop.pages["/named"] = '<title>Named</title><a title="Delete all"><i>x</i></a><p>Text'
    tab = visit(f"{shop.url}/named")
    assert tab.hazards("click", "Delete all") == {"deletes"}


def test_wait_for_finds_a_control_by_the_name_it_is_listed_with(visit, shop):
    shop.pages["/start"] = '<title>Start</title><p>Text<div style="cursor: pointer">Start</div>'
    tab = visit(f"{shop.url}/start")
    assert tab.control("Start").kind == "clickable"
    tab.wait_for(control="start")
