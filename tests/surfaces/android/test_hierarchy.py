"""A device's screen, parsed from its hierarchy dump."""

import pytest

from callboard.messages import Box, Hazard, LookBudget
from callboard.surfaces.android._hazards import of_address, of_key, of_text, of_touch
from callboard.surfaces.android._hierarchy import Hierarchy, HierarchyError


def node(name="View", inside="", **values):
    given = {"index": "0", "class": f"android.widget.{name}", "package": "org.example", "bounds": "[0,0][100,50]"}
    told = {**given, **{key.replace("_", "-"): value for key, value in values.items()}}
    return f"<node {' '.join(f'{key}={chr(34)}{value}{chr(34)}' for key, value in told.items())}>{inside}</node>"


def screen(*nodes, rotation=0):
    return Hierarchy(
        f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"{rotation}\">"
        f"{''.join(nodes)}</hierarchy>"
    )


def only(*nodes):
    (control,) = screen(*nodes).controls(LookBudget())[0]
    return control


@pytest.mark.parametrize(
    ("name", "more", "kind"),
    [
        ("Button", {"text": "Go", "clickable": "true"}, "button"),
        ("EditText", {"resource_id": "a:id/first_name", "clickable": "true"}, "text field"),
        ("Switch", {"checkable": "true", "clickable": "true"}, "switch"),
        ("TextView", {"text": "Hello"}, "label"),
        ("RecyclerView", {"scrollable": "true"}, "list"),
        ("LinearLayout", {"clickable": "true"}, "item"),
    ],
)
def test_class_of_a_node_gives_its_kind(name, more, kind):
    assert only(node(name, **more)).kind == kind


def test_a_control_tells_its_states_and_where_it_is():
    control = only(node("CheckBox", text="Wi-Fi", checkable="true", checked="true", enabled="false"))
    assert (control.name, control.states, control.enabled) == ("Wi-Fi", ("checked",), False)
    assert control.box == Box(x=0, y=0, width=100, height=50)


def test_an_entry_is_called_by_the_texts_in_it():
    entry = node(
        "LinearLayout",
        node("TextView", text="Ada")
        + node("TextView", text="555")
        + node("ImageButton", content_desc="Call", clickable="true"),
        clickable="true",
    )
    assert [each.name for each in screen(entry).controls(LookBudget())[0]] == ["Ada, 555", "Call"]


def test_a_fields_text_is_no_part_of_its_name():
    field = only(node("EditText", text="Ada", resource_id="a:id/first_name", focused="true"))
    assert (field.name, field.detail, field.states) == ("first name", {"text": "Ada"}, ("focused",))


def test_password_is_not_shown():
    field = only(node("EditText", text="secret", content_desc="Password", password="true"))  # noqa: S106 - a property
    assert (field.name, field.detail, field.states) == ("Password", {}, ("password",))


def test_node_without_an_area_is_omitted():
    assert screen(node("Button", text="Go", clickable="true", bounds="[5,5][5,5]")).controls(LookBudget()) == ((), ())


def test_an_id_stays_while_other_things_change():
    first = only(node("Button", text="Go", clickable="true"))
    assert only(node("Button", text="Stop", clickable="true")).id == first.id


def test_identical_controls_have_distinct_ids():
    button = node("Button", text="Go", clickable="true")
    assert len({each.id for each in screen(button, button, button).controls(LookBudget())[0]}) == 3


def test_the_fingerprint_is_about_what_is_shown_and_not_where():
    one = screen(node("Button", text="Go", clickable="true"))
    assert one.fingerprint() == screen(node("Button", text="Go", clickable="true", bounds="[9,9][50,50]")).fingerprint()
    assert one.fingerprint() == screen(node("Button", text="Go", clickable="true", focused="true")).fingerprint()
    assert one.fingerprint() != screen(node("Button", text="No", clickable="true")).fingerprint()


def test_controls_beyond_the_budget_are_omitted_with_a_note():
    shown, notes = screen(*[node("Button", text=str(each), clickable="true") for each in range(9)]).controls(
        LookBudget(controls=5)
    )
    assert (len(shown), notes) == (5, ("There are more controls than fit: scroll.",))


def test_a_touch_acts_on_what_was_drawn_last():
    below, above = node("Button", text="Old", clickable="true"), node("Button", text="New", clickable="true", index="1")
    found = screen(below, above).at(10, 10)
    assert found is not None
    assert found.text == "New"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ERROR: null root node returned by UiTestAutomationBridge.",
        "<hierarchy><node></hierarchy>",
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><hierarchy rotation="0"><node text="&a;"/></hierarchy>',
        "<hierarchy>" + "<node>" * 500 + "</node>" * 500 + "</hierarchy>",
        "<hierarchy>" + "<node/>" * 10_001 + "</hierarchy>",
        "<hierarchy>" + " " * 10_000_000 + "</hierarchy>",
    ],
)
def test_invalid_hierarchy_is_refused(text):
    with pytest.raises(HierarchyError, match="the device's hierarchy"):
        Hierarchy(text)


def test_characters_not_allowed_in_xml_do_not_hide_other_text():
    control = only(node("Button", text="a\x1b[2Jb&#0;c&#55357;d&#x110000;e&#x1F642;", clickable="true"))
    assert control.name == "a\ufffd[2Jb\ufffdc\ufffdd\ufffde\U0001f642"


@pytest.mark.parametrize(
    "bounds", ["[0,0]", "[0,0][9999999999,5]", f"[0,0][{'9' * 5_000},5]", "[²,0][5,5]", "[5,5][0,0]"]
)
def test_impossible_bounds_give_no_place(bounds):
    assert screen(node("Button", text="Go", clickable="true", bounds=bounds)).nodes[0].box is None


@pytest.mark.parametrize(("told", "turns"), [("1", 1), ("3", 3), ("4", 0), ("²", 0), ("9" * 5_000, 0), ("-1", 0)])
def test_a_rotation_that_no_screen_has_is_none(told, turns):
    assert screen(rotation=told).rotation == turns


def test_a_gigantic_text_leaves_room_for_what_follows():
    label = node("TextView", text="x" * 300_000)
    field = node("EditText", text="y" * 300_000, content_desc="Note")
    shown, notes = screen(label, field, node("Button", text="Go", clickable="true")).controls(LookBudget())
    assert [len(each.name) for each in shown] == [500, 4, 2]
    assert len(str(shown[1].detail["text"])) == 5_000
    assert notes == ()


def test_many_that_look_alike_and_deep_ones_are_listed_at_once():
    assert len(screen(*[node("Button", clickable="true")] * 9_000).nodes) == 9_000
    deep = "<node class='%s'>" % ("x" * 20_000) + "<node>" * 390 + "</node>" * 391
    assert len(screen(deep).nodes) == 391


def touched(name="Button", **values):
    (found,) = screen(node(name, clickable="true", **values)).nodes
    return of_touch(found)


@pytest.mark.parametrize(
    ("values", "hazard"),
    [
        ({"text": "Call"}, Hazard.SENDS),
        ({"text": "Send message"}, Hazard.SENDS),
        ({"content_desc": "Call Ada"}, Hazard.SENDS),
        ({"resource_id": "a:id/send_button"}, Hazard.SENDS),
        ({"resource_id": "a:id/sendButton"}, Hazard.SENDS),
        ({"text": "Emergency call"}, Hazard.SENDS),
        ({"text": "Place your order"}, Hazard.SPENDS),
        ({"text": "Proceed to checkout"}, Hazard.SPENDS),
        ({"text": "Buy now"}, Hazard.SPENDS),
        ({"text": "Install"}, Hazard.INSTALLS),
        ({"text": "Delete contact"}, Hazard.DELETES),
        ({"text": "Allow"}, Hazard.CONFIGURES),
        ({"text": "Open", "package": "com.google.android.packageinstaller"}, Hazard.INSTALLS),
        ({"text": "OK", "package": "com.android.settings"}, Hazard.CONFIGURES),
        ({"text": "Contact löschen"}, Hazard.DELETES),
        ({"text": "支付"}, Hazard.SPENDS),
        ({"text": "Overwrite"}, Hazard.OVERWRITES),
    ],
)
def test_a_touch_that_a_person_may_want_to_see_first(values, hazard):
    assert touched(**values) == {hazard}


@pytest.mark.parametrize("values", [{"text": "Save"}, {"text": "Next"}, {"text": "Caller"}, {"text": "Orders"}])
def test_any_other_touch_has_no_hazard(values):
    assert touched(**values) == set()


def test_an_entry_of_a_list_counts_by_its_beginning():
    assert touched("LinearLayout", content_desc="Ada, please delete this") == set()
    assert touched("LinearLayout", content_desc="Delete all") == {Hazard.DELETES}


@pytest.mark.parametrize("more", [{}, {"resource_id": "android:id/message"}])
def test_an_answer_has_the_hazards_of_its_question(more):
    label = node("TextView", text="Delete this contact?", **more)
    yes, no = (node("Button", text=each, clickable="true") for each in ("OK", "Cancel"))
    others = node("CheckBox", clickable="true") * (3 if more else 0)
    nodes = screen(node(inside=label + yes + no + others)).nodes
    assert [of_touch(each) for each in nodes if each.kind == "button"] == [{Hazard.DELETES}, set()]
    nodes = screen(node(inside=label + yes)).nodes
    assert [of_touch(each) for each in nodes if each.kind == "button"] == [set()]


@pytest.mark.parametrize(
    ("text", "hazards"), [("a b", set()), ("a\n", {Hazard.SENDS}), ("a\t ", {Hazard.SPENDS, Hazard.SENDS})]
)
def test_a_typed_text_has_the_hazards_of_the_keys_in_it(text, hazards):
    field, send, buy = (
        node("EditText", focused="true"),
        node("Button", text="Send", clickable="true"),
        node("Button", text="Buy", clickable="true"),
    )
    assert of_text(text, screen(field, send, buy)) == hazards
    assert of_text(text, None) == ({Hazard.UNKNOWN} if hazards else set())


def test_an_entry_of_the_settings_only_leads_to_others():
    assert touched("LinearLayout", package="com.android.settings", content_desc="Network") == set()


@pytest.mark.parametrize("key", ["KEYCODE_ENTER", "66", "160"])
def test_enter_may_press_the_button_that_sends(key):
    field = node("EditText", text="hi", focused="true")
    send = node("ImageButton", content_desc="Send", clickable="true")
    assert of_key(key, screen(field, send)) == {Hazard.SENDS}
    assert of_key(key, screen(field)) == set()
    assert of_key(key, None) == {Hazard.UNKNOWN}


@pytest.mark.parametrize("key", ["KEYCODE_ENTER", "KEYCODE_SPACE", "KEYCODE_DPAD_CENTER", "23", "62", "96"])
def test_some_keys_press_what_has_the_focus(key):
    buy = {"name": "Button", "text": "Buy now", "clickable": "true"}
    assert of_key(key, screen(node(**buy, focused="true"))) == {Hazard.SPENDS}
    assert of_key(key, screen(node(**buy))) == set()


@pytest.mark.parametrize(
    ("url", "hazards"),
    [
        ("TEL:555", {Hazard.SENDS}),
        ("sms:555", {Hazard.SENDS}),
        ("market://details?id=x", {Hazard.INSTALLS}),
        ("bitcoin:1A1z", {Hazard.SPENDS}),
        ("https://example.org", set()),
        ("intent:#Intent;component=a/.B;end", {Hazard.UNKNOWN}),
        ("javascript:alert(1)", {Hazard.UNKNOWN}),
        ("file:///sdcard/x", {Hazard.UNKNOWN}),
        ("whatsapp://send?text=x", {Hazard.UNKNOWN}),
    ],
)
def test_an_address_may_do_anything_unless_it_shows_a_page(url, hazards):
    assert of_address(url) == hazards


def test_keys_may_call():
    assert of_key("KEYCODE_CALL", None) == of_key("5", None) == {Hazard.SENDS}
    assert of_key("KEYCODE_BACK", None) == set()
