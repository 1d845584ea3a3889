"""Presses on a page: each is done once, and has the hazards of all that it may send."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.browser import _page_actions
from callboard.surfaces.browser._page_actions import put

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


def test_busy_browser_gets_time_to_tell_whether_a_control_is_ready(page, monkeypatch):
    monkeypatch.setattr(_page_actions, "_CHECK_MS", 1)  # too short to tell anything
    tab = page(f"{COUNT}</script><button>Go</button>")
    tab.do("click", "Go")
    assert tab.look().window["title"] == "1"
    cover = "<div style='position: fixed; inset: 0'>cover</div>"
    tab = page(f"{COUNT}</script><button>Go</button>{cover}")
    with pytest.raises(ToolError, match=r"is covered by another part of the page .*; nothing was done"):
        tab.do("click", "Go")
    assert tab.look().window["title"] == "0"


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


def test_each_name_of_a_key_is_ruled_on(page):
    tab = page("<button>Pay now</button>")
    button = tab.control("Pay now")
    for keys in (" ", "\n", "\r", "space", "Return", "NumpadEnter", "shift+\n"):
        assert tab.hazards("press", button, keys=keys) == {"spends"}, keys


def test_a_key_by_another_name_is_refused(page):
    tab = page("<input aria-label='Field'>")
    for keys in ("Entr", "ctrl+Enterr", "NumpadEnter2", "\x00"):
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


ENDS = {
    "a text area": ("<textarea aria-label=x>one\ntwo\n\nthree</textarea>", "textbox", "one\ntwo\n\nthree a b"),
    "a paragraph": ("<div contenteditable><p>one<p>two", "paragraph", "one a b\n\ntwo"),
    "a whole editor": ("<div contenteditable role=textbox><p>one<p>two", "textbox", "one\n\ntwo a b"),
    "a part of a line": ("<div contenteditable><b role=textbox>one</b><i> two", "textbox", "one a b two"),
    "an empty paragraph": ("<div contenteditable><p>one<p role=textbox><br>", "textbox", "one\n\n\u00a0a b"),
    "a line with a break": ("<div contenteditable role=textbox>one<div>two<br></div>", "textbox", "one\ntwo a b"),
}
SHADOW_ROOT = "document.querySelector('div').attachShadow({mode: 'open'})"


@pytest.mark.parametrize(("text", "role", "result"), ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("root", ["document.querySelector('div')", SHADOW_ROOT], ids=["page", "shadow root"])
def test_a_text_is_typed_at_the_end_of_the_part(page, text, role, result, root):
    tab = page("<div></div><script>window.pressed = []; onkeydown = event => pressed.push(event.code)</script>")
    tab.script(f"() => {{ window.root = {root}; root.innerHTML = {json.dumps(text)} }}")
    tab.script("() => root.firstElementChild.focus()")
    snapshot = tab.run(tab.tab.snapshot())
    part = next(node for node in snapshot.nodes if node.role == role)
    tab.do("type", snapshot._control(part, ""), text=" a b")
    result_text = tab.script("() => root.firstElementChild.value ?? root.firstElementChild.innerText")
    assert result_text.rstrip("\n").replace("\u00a0", " ") == result.replace("\u00a0", " ")
    assert tab.script("() => pressed")[-4:] == ["Space", "KeyA", "Space", "KeyB"]


def test_a_space_presses_no_button_that_gets_the_focus_meanwhile(page):
    tab = page(f"{COUNT}</script><input aria-label='Code' oninput='go.focus()'><button id='go'>Go</button>")
    tab.do("type", "Code", text="a b")
    assert tab.look().window["title"] == "0"


def test_a_page_that_listens_to_keys_gets_those_of_a_text(page):
    tab = page("<title>x</title><input aria-label='Line' onkeydown='document.title += `-${event.code}`'>")
    tab.do("type", "Line", text="rm a")
    assert tab.look().window["title"] == "x-End-KeyR-KeyM-Space-KeyA"


def test_a_text_without_keys_has_the_events_of_one_with_keys(page):
    """Secrets are put in so. Of their events only `input` leaves a shadow root, as those of the browser."""
    tab = page(
        "<title>x</title><div id='host'></div><script>const root = host.attachShadow({mode: 'open'});"
        "root.innerHTML = '<input>'; for (const kind of ['input', 'change'])"
        "for (const [part, name] of [[document, 'out'], [root, 'in']])"
        "part.addEventListener(kind, () => document.title += ` ${name}-${kind}`)</script>"
    )
    field = tab.run(tab.tab.page.locator("input").element_handle())
    tab.run(put(field, "a"))
    events = tab.look().window["title"]
    assert events == "x in-input out-input in-change"
    tab.script("() => { document.title = 'x' }")
    tab.run(field.type("b"))
    tab.run(field.evaluate("field => field.blur()"))
    assert tab.look().window["title"] == events


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
    "after a hidden value": (
        PAYMENT.format("<label style='cursor: pointer'>Go on<input type='hidden'><button>Next</button></label>"),
        {"sends", "logs_in"},
    ),
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
    assert "If the last click was meant to send it, repeat it with the same arguments" in notes[0]
    assert len(shop.orders) == count
    assert tab.hazards("click", link) == {"sends"}
    tab.do("click", link)
    tab.wait_for(text="Thank you")
    assert shop.orders[count:] == [{"name": "Ada"}]


@pytest.mark.parametrize("kind", ["checkbox", "radio"])
def test_a_form_that_a_box_sends_is_sent_once_the_box_is_set_again(page, shop, kind):
    part = "<input type={} name=name value={} aria-label={} onchange='this.form.submit()'>"
    text = "".join(part.format(kind, value, value) for value in ("Ada", "Eve"))
    tab, count = page(f"<form method='post' action='/confirm'>{text}</form>"), len(shop.orders)
    other = {"checked": False} if kind == "checkbox" else {}
    for name, arguments in (("Ada", {}), ("Ada" if other else "Eve", other)):
        tab.hazards("check", name, **arguments)
        tab.do("check", name, **arguments)
        while not (notes := tab.look().notes):
            pass
        assert "If the last check was meant to send it, set it otherwise, and then so again" in notes[0]
    tab.hazards("check", name, **arguments)
    with pytest.raises(ToolError, match="is so already, so the page sends nothing"):
        tab.do("check", name, **arguments)
    assert tab.hazards("check", "Ada") == {"sends"}
    tab.do("check", "Ada")
    tab.wait_for(text="Thank you")
    assert shop.orders[count:] == [{"name": "Ada"}]


def test_a_box_that_its_page_replaces_is_set(page):
    tab = page("<input type='checkbox' aria-label='Box' onchange='this.replaceWith(this.cloneNode())'>")
    tab.do("check", "Box")
    assert tab.control("Box").states == ("checked",)


UPLOADS = """<iframe name="upload"></iframe><form method="post" action="/confirm" onsubmit="other.submit()">
    <input name="name" value="Ada"><button>Go</button></form>
    <form method="post" action="/confirm" id="other" target="upload"><input name="name" value="Eve"></form>"""
REDIRECTED = """<form method="post" action="/again"><input name="name" value="Ada"><button>Go</button></form>"""


def sent_by_press(page, shop, text):
    """Press a button that was ruled on, and wait for the end of its page; give what the shop got."""
    tab, count = page(text), len(shop.orders)
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    tab.wait_for(text="Thank you")
    return [order["name"] for order in shop.orders[count:]]


def test_approved_press_sends_one_form(page, shop):
    shop.posts_to["/quiet"] = 204, ""  # its page stays
    form = "<form method='post' action='/quiet'><input name='name' value='{}'><button>{}</button></form>"
    tab, count = page(form.format("Ada", "Go") + form.format("Eve", "Other")), len(shop.orders)
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    while len(shop.orders) == count:
        pass
    tab.script("() => document.forms[1].submit()")
    while not (notes := tab.look().notes):
        pass
    assert f"tried to send a form to {shop.url}/quiet" in notes[0]
    assert [order["name"] for order in shop.orders[count:]] == ["Ada"]
    assert tab.hazards("click", "Other") == {"sends"}
    tab.do("click", "Other")
    while len(shop.orders) == count + 1:
        pass
    assert shop.orders[-1]["name"] == "Eve"


def test_changed_address_is_no_page_after_an_approved_form(page, shop):
    shop.received.clear()
    shop.released.clear()
    tab, count = (
        page(
            f"<form method='post' action='/slow'><input name='name' value='Ada'><button>Go</button></form>"
            f"<form method='post' action='{shop.other_url}/confirm'><input name='name' value='Eve'></form><script>"
            "onsubmit = () => setTimeout(() => { location.hash = 'x'; document.forms[1].submit() }, 300)</script>"
        ),
        len(shop.orders),
    )
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    while not (notes := [note for note in tab.look().notes if "tried to send a form" in note]):
        pass
    shop.released.set()
    assert f"tried to send a form to {shop.other_url}/confirm" in notes[0]
    assert [order["name"] for order in shop.orders[count:]] == ["Ada"]


def test_approved_press_may_also_send_a_form_into_a_frame(page, shop):
    names = sent_by_press(page, shop, UPLOADS)
    assert sorted(names) == ["Ada", "Eve"]


def test_approved_press_may_send_its_form_to_a_window(page, shop, surface, tabs_of):
    opens = "window.open('about:blank', 'sent'); setTimeout(() => document.forms[0].submit(), 300); return false"
    form = "<form method='post' action='/confirm' target='sent'><input name='name' value='Ada'>"
    tab, count = page(f'{form}<button onclick="{opens}">Go</button>'), len(shop.orders)
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    while not any("Thank you" in other.look().text for other in tabs_of(surface)):
        pass
    window = next(other for other in tabs_of(surface) if other.target.name.endswith("/confirm"))
    window.script("() => opener.document.forms[0].submit()")
    while not (notes := tab.look().notes):
        pass
    assert "tried to send a form" in notes[0]
    assert [order["name"] for order in shop.orders[count:]] == ["Ada"]


@pytest.mark.parametrize("status", [307, 308])
def test_form_that_a_redirect_repeats_is_one_form(page, shop, status):
    shop.posts_to["/again"] = status, "/confirm"
    names = sent_by_press(page, shop, REDIRECTED)
    assert names == ["Ada", "Ada"]


def test_each_page_after_an_approved_form_may_send_one(page, shop):
    forms = "<form method='post' action='{}'><input name='name' value='{}'></form>"
    submits = "<script>document.forms[0].submit()</script>"
    for number in range(3):
        shop.answers[f"/login{number}"] = forms.format(f"/login{number + 1}", number) + submits
    text = "<form method='post' action='/login0'><input name='name' value='Ada'><button>Go</button></form>"
    names = sent_by_press(page, shop, text)
    assert names == ["Ada", "0", "1", "2"]


def test_call_without_a_ruling_of_its_own_sends_nothing(page, shop, monkeypatch):
    form = "<form method='post' action='/confirm' target='_blank'><button>Go</button></form>"
    tab, count = page(f"{form}<button onclick='document.forms[0].submit()'>Next</button>"), len(shop.orders)
    monkeypatch.setattr("callboard.surfaces.browser._tab.current_call", lambda: SimpleNamespace(id="a supervisor's"))
    with pytest.raises(ToolError, match="now it sends"):  # never ruled on
        tab.do("click", "Go")
    tab.do("click", "Next")
    while not (notes := tab.look().notes):
        pass
    assert "tried to send a form" in notes[0]
    assert len(shop.orders) == count
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    while len(shop.orders) == count:
        pass
    with pytest.raises(ToolError, match="now it sends"):  # the ruling is used up
        tab.do("click", "Go")
    assert len(shop.orders) == count + 1


WITHOUT_CONTROL = {
    "press": {"keys": "Enter"},
    "press_keys": {"keys": "Return"},
    "type_text": {"text": "a\n"},
    "click_at": {"x": 300, "y": 300},
}


@pytest.mark.parametrize(("tool", "arguments"), WITHOUT_CONTROL.items(), ids=WITHOUT_CONTROL.keys())
def test_a_form_sent_by_a_call_without_a_control_is_ruled_on_too(page, shop, tool, arguments):
    tab, count = (
        page(
            "<body onclick='f.submit()' onkeydown='if (event.key === `Enter`) f.submit()'>"
            "<textarea autofocus></textarea><form method='post' action='/confirm' id='f'>"
            "<input name='name' value='Ada'></form>"
        ),
        len(shop.orders),
    )
    assert tab.hazards(tool, **arguments) == set()
    tab.do(tool, **arguments)
    while not (notes := tab.look().notes):
        pass
    assert f"If the last {tool} was meant to send it" in notes[0]
    assert tab.hazards("press_keys", keys="Tab") == set()
    assert tab.hazards(tool, **arguments) == {"sends"}
    tab.do(tool, **arguments)
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
