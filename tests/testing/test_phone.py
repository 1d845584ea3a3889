"""The phone for tests: one state, seen as a hierarchy and as a picture, and used by means of the hierarchy."""

import io
import re
import sys
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from callboard.config import install_command
from callboard.testing import Contact, Phone

PEOPLE = [Contact(f"Person {number:02}") for number in range(30)]


def picture(phone):
    return Image.open(io.BytesIO(phone.picture()))


def changed(before, after):
    """Give the box in which two pictures differ."""
    return ImageChops.difference(before, after).getbbox()


def test_the_hierarchy_has_the_form_of_uiautomator(person):
    told = person.phone.hierarchy()
    assert told.startswith(
        "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">"
        '<node index="0" text="" resource-id="" class="android.widget.FrameLayout" '
        'package="com.android.launcher3" content-desc="" checkable="false" checked="false" clickable="false" '
        'enabled="true" focusable="false" focused="false" scrollable="false" long-clickable="false" password="false" '
        'selected="false" bounds="[0,0][1080,2400]" drawing-order="0" hint=""><node index="0" '
    )
    assert told.endswith("</node></node></hierarchy>")
    assert (person.find("Contacts").get("class"), person.find("Contacts").get("bounds")) == (
        "android.widget.Button",
        "[40,300][320,560]",
    )


@pytest.mark.parametrize(("android", "told"), [(13, False), (15, False), (16, True)])
def test_hints_and_drawing_orders_are_dumped_from_android_16_on(hold, android, told):
    person = hold(android=android)
    person.phone.start("org.callboard.form")
    assert [each in person.find("name").attrib for each in ("hint", "drawing-order")] == [told] * 2
    assert person.find("name").get("text") == "Name (required)"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a<b>&c", 'text="a&lt;b&gt;&amp;c"'),
        ('say "hi"', "text='say \"hi\"'"),
        ('"don\'t"', "text='\"don&apos;t\"'"),
        ("one\ttwo", 'text="one&#9;two"'),
        ("Grüße 🙂", 'text="Grüße &#128578;"'),
        ("bell\a", 'text="bell."'),
    ],
)
def test_texts_are_escaped_as_androids_serializer_does(person, text, written):
    person.phone.notes.notes[0].text = text
    person.phone.start("org.callboard.notes")
    assert written in person.phone.hierarchy()
    assert text.replace("\a", ".") in person.texts()


def test_a_touch_is_seen_in_the_hierarchy_and_in_the_picture(person):
    person.phone.start("com.android.settings")
    before, place = picture(person.phone), person.middle("Bluetooth")
    person.tap("Bluetooth")
    assert person.find("Bluetooth").get("checked") == "true"
    left, top, right, bottom = changed(before, picture(person.phone))
    assert left > 900
    assert top < place[1] < bottom
    assert right <= 1080


@pytest.mark.parametrize(
    "taps",
    [
        (),
        ("Contacts",),
        ("Contacts", "Alan Turing", "Delete"),
        ("Contacts", "Create contact", "first_name"),
        ("Notes", "New note", "note"),
        ("Settings", "Bluetooth"),
        ("Form", "Newsletter", "large", "volume"),
        ("Form", "Colour"),
        ("Form", "date"),
        ("Phone", "5"),
    ],
)
@pytest.mark.parametrize("turns", [0, 1])
def test_all_that_the_hierarchy_tells_is_drawn(hold, taps, turns):
    person = hold()
    person.tap(*taps)
    person.phone.rotation = turns
    if person.phone.field is not None:
        person.phone.type("typed")
    drawn = picture(person.phone).convert("L")
    told = [node for node in person.nodes() if node.get("text") or node.get("content-desc")]
    assert told
    for node in told:
        left, top, right, bottom = map(int, re.findall(r"\d+", node.get("bounds")))
        low, high = drawn.crop((left, top, right, bottom)).getextrema()
        assert high - low > 60 or bottom - top < 100, (node.get("text"), node.get("bounds"))


def test_the_picture_is_the_same_for_the_same_state():
    assert Phone().picture() == Phone().picture()
    assert picture(Phone()).size == (1080, 2400)


def test_a_long_list_scrolls_by_as_much_as_the_finger_goes(hold):
    person = hold(contacts=PEOPLE)
    person.tap("Contacts")
    assert person.find("list").get("scrollable") == "true"
    first = person.middle("Person 08")
    person.phone.swipe(500, 1500, 500, 1000)
    assert person.middle("Person 08") == (first[0], first[1] - 500)
    with pytest.raises(pytest.fail.Exception, match="no 'Person 00'"):
        person.find("Person 00")
    for _ in range(9):
        person.phone.swipe(500, 1500, 500, 500)
    person.tap("Person 29")
    assert person.phone.contacts.shown == PEOPLE[29]


def test_bounds_of_a_row_are_cut_at_the_edge_of_the_list(hold):
    person = hold(contacts=PEOPLE)
    person.tap("Contacts")
    person.phone.swipe(500, 1500, 500, 1400)
    assert person.find("Person 00").get("bounds") == "[0,200][1080,250]"


def test_the_keyboard_takes_place_and_touches_on_it_do_nothing(person):
    person.phone.start("org.callboard.form")
    person.tap("name")
    assert person.phone.keyboard
    with pytest.raises(pytest.fail.Exception, match="no 'Submit'"):
        person.find("Submit")
    person.phone.tap(500, 1900)
    assert person.phone.field is person.phone.form.name
    person.phone.back()
    assert not person.phone.keyboard
    person.tap("Submit")
    assert "Enter a name" in person.texts()


def test_a_field_below_the_keyboard_is_scrolled_into_view(person):
    person.phone.rotation = 1
    person.tap("Contacts", "Create contact")
    assert person.find("email").get("bounds") == "[0,650][2400,800]"
    person.tap("email")
    assert person.find("email").get("bounds") == "[0,450][2400,600]"
    assert person.find("email").get("focused") == "true"


def test_a_turned_phone_is_wide(person):
    person.phone.rotation = 3
    assert picture(person.phone).size == (2400, 1080)
    assert '<hierarchy rotation="3">' in person.phone.hierarchy()
    assert '[0,0][2400,1080]"' in person.phone.hierarchy()
    person.tap("Settings")
    person.tap("Auto-rotate")
    assert person.phone.rotation == 0


def test_a_locked_phone_is_unlocked_by_a_swipe_up(hold):
    person = hold(locks=True)
    person.phone.sleep()
    assert picture(person.phone).getextrema() == ((0, 0),) * 3
    person.phone.awake = True
    assert "Swipe up to unlock" in person.texts()
    person.phone.tap(200, 400)
    person.phone.swipe(500, 1000, 500, 1500)
    assert person.phone.locked
    person.phone.swipe(500, 1500, 500, 500)
    person.tap("Contacts")
    assert person.phone.app.label == "Contacts"


@pytest.mark.parametrize("answer", ["Allow", "Don’t allow"])  # noqa: RUF001 - as Android writes it
def test_a_permission_is_asked_for_above_the_application(hold, answer):
    person = hold(asks_permission=True)
    person.tap("Contacts")
    assert {node.get("package") for node in person.nodes()} == {"com.android.permissioncontroller"}
    person.phone.tap(500, 2000)
    person.tap(answer)
    assert person.phone.done == [("permission", str(answer == "Allow"))]
    assert ("Alan Turing" in person.texts()) == (answer == "Allow")


def test_a_touch_beside_a_dialog_closes_it(person):
    person.phone.start("org.callboard.form")
    person.tap("Colour")
    assert person.texts() == ["red", "green", "blue"]
    person.phone.tap(500, 2300)
    assert "Submit" in person.texts()


def test_two_phones_have_nothing_in_common(hold):
    one, other = hold(), hold()
    one.phone.contacts.people.clear()
    one.phone.start("com.android.contacts")
    assert "No contacts" in one.texts()
    assert other.phone.app.label == "Home"
    assert len(other.phone.contacts.people) == 2


def test_clickable_control_without_a_name_is_marked(person):
    person.phone.notes.notes[0].text = "x"
    person.phone.start("org.callboard.notes")
    assert "NAF" not in person.phone.hierarchy()
    person.phone.apps["com.android.dialer"].label = ""
    person.phone.start("com.android.launcher3")
    assert re.search(r'<node NAF="true" index="6" text="" ', person.phone.hierarchy())


def test_picture_without_pillow_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(RuntimeError, match=re.escape(f"need Pillow: {install_command('pictures')}")):
        Phone().picture()


@given(
    touches=st.lists(
        st.tuples(st.integers(-10, 2500), st.integers(-10, 2500), st.integers(0, 2400), st.integers(0, 900)),
        max_size=20,
    ),
    turns=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_touched_there_is_a_screen(touches, turns):
    phone = Phone(contacts=PEOPLE, asks_permission=True)
    phone.rotation = turns
    for x, y, to_y, milliseconds in touches:
        phone.swipe(x, y, x, to_y if milliseconds > 600 else y, milliseconds=milliseconds)
        phone.type("é")
        root = ET.fromstring(phone.hierarchy())  # noqa: S314 - the phone's own
        assert [node.get("package") for node in root]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda: Phone(android=9), "the phone knows the formats of Android 13 to 16, not of 9"),
        (lambda: setattr(Phone(), "rotation", 90), "turned 0 to 3 times by 90 degrees, not 90 times"),
        (lambda: Phone().start("com.example"), "has no application 'com.example', but com.android.launcher3, "),
    ],
)
def test_wrong_use_raises_a_plain_error(use, told):
    with pytest.raises(ValueError, match=told):
        use()
