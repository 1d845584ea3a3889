"""The phone's applications, used by means of the hierarchy alone."""

import pytest

from callboard.testing import Contact


def test_a_contact_is_added_changed_found_called_and_deleted(person):
    phone = person.phone
    person.tap("Contacts", "Create contact")
    person.fill("First name", "Ada")
    person.fill("Phone", "555-0199")
    person.tap("Save")
    assert phone.contacts.people[-1] == Contact("Ada", "", "555-0199")
    person.tap("Call", "Message", "Edit")
    person.fill("Last name", "Lovelace")
    person.tap("Save", "Navigate up", "Search")
    person.fill("search", "LOVE")
    assert [text for text in person.texts() if " " in text] == ["Ada Lovelace"]
    person.tap("Ada Lovelace", "Delete")
    assert person.texts() == ["Delete Ada Lovelace?", "Delete", "Cancel"]
    person.tap("Cancel", "Delete", "Delete")
    assert [each.first for each in phone.contacts.listed] == ["Alan", "Grace"]
    assert phone.done == [("call", "555-0199"), ("message", "555-0199")]


def test_a_contact_needs_a_name(person):
    person.tap("Contacts", "Create contact", "Save")
    assert "Enter a name" in person.texts()
    assert len(person.phone.contacts.people) == 2


def test_a_note_has_lines_and_any_letters(person):
    person.tap("Notes", "New note")
    person.fill("note", "Liste\n* Äpfel 🍎")
    assert person.find("note").get("text") == "Liste\n* Äpfel 🍎"
    person.tap("Done")
    assert person.phone.notes.notes[-1].text == "Liste\n* Äpfel 🍎"
    person.tap("Liste")
    person.phone.back()
    assert "Liste" in person.texts()


def test_a_note_is_deleted_by_a_long_touch_and_moved_by_dragging(person):
    person.tap("Notes", "New note")
    person.fill("note", "second")
    person.tap("Done")
    person.phone.drag(*person.middle("second"), *person.middle("Shopping"))
    assert [each.title for each in person.phone.notes.notes] == ["second", "Shopping"]
    person.tap("second", long=True)
    person.tap("Delete")
    assert [each.title for each in person.phone.notes.notes] == ["Shopping"]


@pytest.mark.parametrize(
    ("label", "key", "on"),
    [
        ("Wi-Fi", "global/wifi_on", "0"),
        ("Dark theme", "secure/ui_night_mode", "2"),
        ("Location", "secure/location_mode", "3"),
    ],
)
def test_a_switch_is_a_setting_of_the_phone(person, label, key, on):
    person.tap("Settings", label)
    assert person.phone.settings[key] == on


def test_the_settings_scroll_to_the_last_entry(person):
    person.tap("Settings")
    for _ in range(2):
        person.phone.swipe(500, 2000, 500, 600)
    person.tap("About phone")
    assert {"Model: Stand-in", "Android version: 16"} <= set(person.texts())
    person.tap("Navigate up")
    assert "Wi-Fi" in person.texts() or "About phone" in person.texts()


def test_the_form_takes_one_of_each_control(person):
    phone = person.phone
    person.tap("Form")
    person.fill("name", "Ada")
    person.fill("password", "s3cret")
    assert person.find("password").get("text") == "••••••"
    phone.back()
    person.tap("Newsletter", "Submit")
    assert "Accept the terms" in person.texts()
    person.tap("terms", "large", "Colour", "blue")
    x, y = person.middle("volume")
    phone.swipe(x, y, 294, y)
    assert person.find("volume").get("text") == "25.0"
    person.tap("date", "Previous month", "28 February 2026", "Next month", "Next month", "OK", "Submit")
    assert "Thank you" in person.texts()
    assert phone.form.sent == [
        {
            "name": "Ada",
            "password": "s3cret",
            "news": True,
            "terms": True,
            "size": "large",
            "colour": "blue",
            "volume": 0.25,
            "date": "2026-04-28",
        }
    ]


def test_a_date_is_set_on_a_turned_phone(person):
    person.tap("Form", "date")
    person.phone.rotation = 1
    assert person.find("Cancel").get("bounds") == "[760,860][1640,990]"
    person.tap("31 March 2026", "OK")
    assert person.phone.form.date.isoformat() == "2026-03-31"


def test_a_month_with_fewer_days_keeps_the_day_in_it(person):
    person.tap("Form", "date", "31 March 2026", "Next month", "OK")
    assert person.phone.form.date.isoformat() == "2026-04-30"


def test_the_dialler_calls_a_number_from_its_keys(person):
    person.tap("Phone")
    assert person.find("Call").get("enabled") == "false"
    person.tap("Call", "key_5", "key_5", "#", "Call")
    assert person.phone.done == [("call", "55#")]


def test_the_browser_shows_its_address(person):
    person.phone.start("org.callboard.browser", "https://example.org/?q=1&r=<2>")
    assert "https://example.org/?q=1&r=<2>" in person.texts()
    assert person.phone.browser.history == ["https://example.org/?q=1&r=<2>"]


def test_the_applications_that_run_are_listed_the_last_one_first(person):
    person.tap("Notes")
    person.phone.start("org.callboard.form")
    person.phone.show_recents()
    assert person.texts() == ["Recent apps", "Form", "Notes"]
    person.tap("Notes")
    assert person.phone.app.label == "Notes"
