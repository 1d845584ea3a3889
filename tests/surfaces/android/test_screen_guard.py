"""Places of a screen's controls, its dialogs, and the guard of a routine on changed screens."""

from __future__ import annotations

import pytest
from guard_changes import STOP, control_of, decision, recorded_step

from callboard.messages import Look, Observation, Target, TargetKind
from callboard.surfaces.android._hierarchy import Hierarchy

PHONE = Target(id="p", name="Pixel", kind=TargetKind.DEVICE, address="mobile/p", server="android")
PEOPLE = "com.android.contacts/.activities.PeopleActivity"


def part(name: str, *inside: str, **values: str) -> str:
    properties = {"class": f"android.widget.{name}", "package": "com.android.contacts", "bounds": "[0,0][100,50]"}
    properties |= {key.replace("_", "-"): value for key, value in values.items()}
    written = " ".join(f'{key}="{value}"' for key, value in properties.items())
    return f"<node {written}>{''.join(inside)}</node>"


def person(name: str, index: int) -> str:
    return part(
        "LinearLayout",
        part("LinearLayout", part("TextView", text=name), clickable="true", index="0"),
        part("ImageButton", content_desc="Call", clickable="true", index="1"),
        index=str(index),
    )


def button(text: str, index: int = 0, **values: str) -> str:
    return part("Button", text=text, clickable="true", index=str(index), **values)


def people(*names: str, bar: str = "", index: int = 0) -> str:
    rows = [person(name, number) for number, name in enumerate(names)]
    entries = part("RecyclerView", *rows, scrollable="true", resource_id="com.android.contacts:id/list", index="1")
    tools = part(
        "LinearLayout",
        bar or (button("Search") + button("Create contact", 1) + button("More", 2)),
        resource_id="com.android.contacts:id/floating_tool_bar",
        index="0",
    )
    return part("FrameLayout", tools, entries, index=str(index))


def dialog(title: str, message: str) -> str:
    return part(
        "FrameLayout",
        part("TextView", text=title, resource_id="com.android.contacts:id/alertTitle"),
        part("TextView", text=message, resource_id="android:id/message"),
        button("Create contact", resource_id="android:id/button1"),
        resource_id="com.android.contacts:id/parentPanel",
    )


def observed(*parts: str, application: str = PEOPLE) -> Observation:
    hierarchy = Hierarchy(f"<hierarchy rotation='0'>{''.join(parts)}</hierarchy>")
    facts = {"device": "Pixel", "application": application}
    if hierarchy.dialog:
        facts["dialog"] = hierarchy.dialog
    return Observation(controls=hierarchy.controls(Look().budget)[0], window=facts)


SCREEN = people("Ada", "Grace")


def test_controls_name_their_entry_or_the_part_around_them():
    places = [(control.name, control.place) for control in observed(SCREEN).controls]
    assert places == [
        ("Search", "floating tool bar"),
        ("Create contact", "floating tool bar"),
        ("More", "floating tool bar"),
        ("", ""),
        ("Ada", "Ada"),
        ("Call", "Ada"),
        ("Grace", "Grace"),
        ("Call", "Grace"),
    ]


def test_a_row_without_labels_is_named_by_its_first_text_but_no_field():
    row = part("FrameLayout", part("EditText", text="typed", clickable="true"), button("Send"))
    entries = part("ListView", row, scrollable="true")
    assert [control.place for control in observed(entries).controls] == ["", "Send", "Send"]


def test_the_description_around_a_control_is_its_place_and_cut():
    group = part("FrameLayout", button("Go"), content_desc="x" * 300)
    assert len(control_of(observed(group), "Go", "button").place) == 80


@pytest.mark.parametrize(
    ("screen", "title"),
    [
        (SCREEN, ""),
        (dialog("Discard changes?", "They are lost."), "Discard changes?"),
        (dialog("", "They are lost."), "They are lost."),
        (dialog("", ""), "dialog"),
        (
            part(
                "FrameLayout",
                part(
                    "TextView",
                    text="Allow calls?",
                    resource_id="com.android.permissioncontroller:id/permission_message",
                ),
                resource_id="com.android.permissioncontroller:id/grant_dialog",
            ),
            "Allow calls?",
        ),
    ],
)
def test_a_dialog_is_known_by_its_parts(screen, title):
    assert Hierarchy(f"<hierarchy rotation='0'>{screen}</hierarchy>").dialog == title


CREATE = "Create contact"
RELABELLED = button("Search") + button("Kontakt anlegen", 1) + button("More", 2)
SWAPPED = button(CREATE) + button("Search", 1) + button("More", 2)
DISABLED = button("Search") + button(CREATE, 1, enabled="false") + button("More", 2)
TWICE = button("Search") + button(CREATE, 1) + button("More", 2) + button(CREATE, 3)
MORE = part("FrameLayout", button(CREATE), resource_id="a:id/empty_view", index="1")


@pytest.mark.parametrize(
    ("parts", "stays"),
    [
        ((SCREEN,), True),
        ((people("Ada", "Grace", index=1),), True),
        ((people("Ada", "Grace", bar=SWAPPED),), False),
        ((people("Ada", "Grace", bar=RELABELLED),), True),
        ((people("Ada", "Grace Hopper"),), True),
        ((people("Ada", "Alan", "Grace"),), True),
        ((people("Ada", "Grace", bar=DISABLED),), False),
        ((SCREEN, MORE), True),
        ((people("Ada", "Grace", bar=TWICE),), False),
        ((people("Ada", "Grace", bar=button("Search")), MORE), False),
        ((dialog("Discard changes?", "They are lost."),), False),
        ((SCREEN, dialog("Discard changes?", "They are lost.")), False),
    ],
    ids=[
        *("unchanged", "ids renumbered", "order", "label translated", "value", "extra row", "disabled"),
        *("look-alike elsewhere", "look-alike beside it", "only a look-alike remains"),
        *("dialog alone", "dialog in front"),
    ],
)
def test_guard_on_a_changed_screen(parts, stays):
    seen, now = observed(SCREEN), observed(*parts)
    step = recorded_step(seen, PHONE, control_of(seen, CREATE, "button"))
    names = {CREATE, "Kontakt anlegen"}
    right = [control.id for control in now.controls if control.place == "floating tool bar" and control.name in names]
    assert decision(step, now, PHONE) == (right[0] if stays else STOP)


def test_guard_calls_the_recorded_person_in_another_order():
    seen = observed(SCREEN)
    step = recorded_step(seen, PHONE, control_of(seen, "Call", "button", "Ada"))
    now = observed(people("Aaron", "Ada", "Grace"))
    assert decision(step, now, PHONE) == control_of(now, "Call", "button", "Ada").id
    assert decision(step, observed(people("Grace", "Alan")), PHONE) == STOP


def test_guard_takes_no_other_entry_for_a_relabelled_one():
    seen = observed(SCREEN)
    step = recorded_step(seen, PHONE, control_of(seen, "Ada", "item"))
    assert decision(step, observed(people("Alan", "Grace")), PHONE) == STOP


def test_guard_on_another_activity():
    seen = observed(SCREEN)
    step = recorded_step(seen, PHONE, control_of(seen, CREATE, "button"))
    assert decision(step, observed(SCREEN, application="org.evil/.Fake"), PHONE) == STOP


def test_guard_tells_two_questions_with_one_title_apart():
    seen = observed(dialog("Contacts", "Discard changes?"))
    step = recorded_step(seen, PHONE, control_of(seen, CREATE, "button"))
    assert decision(step, seen, PHONE) == control_of(seen, CREATE, "button").id
    assert decision(step, observed(dialog("Contacts", "Delete 3 contacts?")), PHONE) == STOP
