"""A phone, as agents see and touch it."""

import asyncio
import io
from unittest.mock import AsyncMock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from callboard.messages import Hazard, LookBudget, Probe
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.android import AndroidSurface
from callboard.surfaces.android._device import Cached
from callboard.testing import Contact, Phone
from callboard.testing.phone import PhoneScreen, View

both = pytest.mark.parametrize("held", ["stand-in", "adbd"], indirect=True)
"""For tests that also run on Android's own adbd, with the programs of the same phone."""


@both
def test_a_look_tells_what_is_on_the_screen_and_what_the_device_does(held):
    seen = held.look()
    assert [each.name for each in seen.controls if each.kind == "button"] == [
        "Contacts",
        "Notes",
        "Settings",
        "Form",
        "Browser",
        "Phone",
    ]
    assert Image.open(io.BytesIO(seen.picture)).size == (1080, 2400)
    assert seen.window | {"applications": ...} == {
        "device": "Callboard Stand-in",
        "android": "16",
        "application": "com.android.launcher3/.uioverrides.QuickstepLauncher",
        "keyboard": "hidden",
        "orientation": "portrait",
        "applications": ...,
    }
    assert "com.android.contacts" in seen.window["applications"]
    assert seen.notes == ()


@both
def test_a_contact_is_added(held):
    held.do("launch_app", application="contacts")
    held.tap("Create contact")
    for name, text in (("First name", "Ada"), ("Last name", "O'Hara & Søn %s"), ("Phone", "+44 20")):
        held.do("type_text", control_id=held.id(name), text=text)
    assert held.look(picture=False).window["keyboard"] == "shown"
    held.tap("Save")
    assert held.phone.contacts.people[-1] == Contact("Ada", "O'Hara & Søn %s", "+44 20")
    assert held.phone.ime == "com.android.inputmethod.latin/.LatinIME"


@both
@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_plain_text_is_typed_as_it_is(held, text):
    held.phone.start("org.callboard.form")
    form = held.phone.app
    form.name.text = ""
    held.wait(held.surface._of(held.serial).device.shell("true"))
    held.surface._of(held.serial).device.screen.drop()
    held.do("type_text", control_id=held.id("Name (required)"), text=text)
    assert form.name.text == text


@both
def test_lines_and_any_letters_are_typed_where_the_cursor_is(held):
    held.phone.start("org.callboard.notes")
    held.tap("New note")
    (field,) = [each.id for each in held.look().controls if each.kind == "text field"]
    held.do("type_text", control_id=field, text="one\ntwo")
    held.do("type_text", text=" … drei 🙂\n")
    held.tap("Done")
    assert held.phone.apps["org.callboard.notes"].notes[-1].text == "one\ntwo … drei 🙂\n"


@both
def test_a_text_is_replaced(held):
    held.phone.start("com.android.dialer", "tel:555")
    held.do("type_text", control_id=held.id("Number"), text="12", clear=True)
    assert held.phone.app.number.text == "12"


def test_without_its_keyboard_other_letters_are_refused(hold):
    held = hold(Phone(keyboard=False))
    held.phone.start("com.android.dialer")
    with pytest.raises(ToolError, match="type only ASCII"):
        held.do("type_text", control_id=held.id("Number"), text="ä")
    assert held.phone.inputs == []


@pytest.mark.parametrize("told", [True, False])
def test_a_button_under_the_keyboard_is_touched(hold, monkeypatch, told):
    held, touched = hold(), []
    phone = held.phone
    phone.start("org.callboard.form")
    held.tap("Name (required)")
    assert phone.keyboard
    edges = (0, phone.height - 300, phone.width, phone.height - 200)
    save = View("Button", edges, "Keep", tap=lambda: touched.append("Keep"))
    higher = (0, phone.height - 1000, phone.width, phone.height - 700)
    half = View("Button", higher, "Half", tap=lambda: touched.append("Half"))
    monkeypatch.setattr(phone, "screen", lambda: PhoneScreen("org.callboard.form", "", [save, half]))
    if not told:
        monkeypatch.setattr("callboard.surfaces.android._device._keyboard_box", lambda text: None)
    if told:
        held.tap("Half")
        assert phone.keyboard
    held.tap("Keep")
    assert touched == (["Half", "Keep"] if told else ["Keep"])
    assert not phone.keyboard


def test_a_keyboard_that_stays_over_a_button_is_named(hold, monkeypatch):
    held = hold()
    held.phone.start("org.callboard.form")
    held.tap("Name (required)")
    save = View(
        "Button", (0, held.phone.height - 300, held.phone.width, held.phone.height - 200), "Keep", tap=lambda: None
    )
    monkeypatch.setattr(held.phone, "screen", lambda: PhoneScreen("org.callboard.form", "", [save]))
    monkeypatch.setattr(held.phone, "back", lambda: None)
    monkeypatch.setattr("callboard.surfaces.android._device_actions._POLLS", 2)
    with pytest.raises(ToolError, match="the keyboard covers button 'Keep', and can't be hidden"):
        held.tap("Keep")


@both
def test_a_list_is_swiped_and_an_entry_found(held):
    contacts = held.phone.contacts
    contacts.people += [Contact(f"Person {number:02}") for number in range(40)]
    held.do("launch_app", application="com.android.contacts")
    names = {each.name for each in held.look(picture=False).controls}
    assert "Person 30" not in names
    (list_,) = [each.id for each in held.look(picture=False).controls if each.kind == "list"]
    held.do("swipe", direction="up", control_id=list_)
    held.do("swipe", direction="up")
    held.tap("Person 30")
    assert contacts.shown == Contact("Person 30")


@both
def test_points_long_presses_and_drags(held):
    held.look()
    held.do("tap", x=200, y=400)
    assert held.phone.app.label == "Contacts"
    held.do("long_press", x=500, y=300)
    held.do("drag", x=500, y=1500, to_x=500, to_y=300)
    held.do("double_tap", x=500, y=2000)
    assert held.phone.inputs[1:] == [
        "swipe 500 300 500 300 800",
        "draganddrop 500 1500 500 300 1000",
        "tap 500 2000",
        "tap 500 2000",
    ]
    for arguments, why in (
        ({}, "give either a control or a point"),
        ({"control_id": "1", "x": 1, "y": 1}, "give either a control or a point"),
        ({"x": 1, "y": 5000}, r"\(1, 5000\) is outside the screen, which has 1080 by 2400 pixels"),
        ({"control_id": "none"}, "the control 'none' is no longer on the screen"),
    ):
        with pytest.raises(ToolError, match=why):
            held.do("tap", **arguments)


def test_long_press_on_an_entry_is_distinguished_from_a_tap(held):
    held.do("launch_app", application="contacts")
    held.do("long_press", control_id=held.id("Alan Turing"))
    held.tap("Delete")
    assert [each.name for each in held.phone.contacts.people] == ["Grace Hopper"]


def test_a_turned_screen_has_other_places(held):
    held.phone.rotation = 1
    assert held.look().window["orientation"] == "landscape"
    held.do("tap", x=2300, y=5)
    with pytest.raises(ToolError, match="2400 by 1080"):
        held.do("tap", x=5, y=2300)


@both
def test_keys_are_pressed(held):
    held.do("launch_app", application="settings")
    held.do("press_key", key="back")
    assert held.phone.app.label == "Home"
    held.do("press_key", key="KEYCODE_SLEEP")
    assert not held.phone.awake


@both
def test_screen_that_is_off_is_reported_and_not_touched(held):
    held.phone.awake = False
    seen = held.look()
    assert (seen.window["screen"], seen.picture) == ("off", None)
    assert seen.notes == ("The screen is off. The key WAKEUP turns it on.",)
    with pytest.raises(ToolError, match="the screen is off: press the key WAKEUP first"):
        held.do("tap", x=5, y=5)
    held.do("press_key", key="WAKEUP")
    assert "screen" not in held.look().window


def test_locked_device_is_reported(held):
    held.phone.locked = True
    seen = held.look()
    assert seen.window["locked"]
    assert seen.notes == ("The device is locked. A person has to unlock it, unless a swipe up does.",)
    held.do("swipe", direction="up")
    assert "locked" not in held.look().window


def test_a_permission_is_asked_for_and_is_a_hazard(hold):
    held = hold(Phone(asks_permission=True))
    held.do("launch_app", application="contacts")
    allow = held.id("Allow")
    assert held.surface.hazards(held.target, "tap", {"control_id": allow}, ()) == {Hazard.CONFIGURES}
    held.do("tap", control_id=allow)
    assert held.phone.done == [("permission", "True")]


@both
def test_a_screen_that_moves_has_no_controls_but_a_picture(held):
    held.phone.moving = 1
    seen = held.look()
    assert (seen.controls, bool(seen.picture)) == ((), True)
    assert seen.notes == (
        "The controls can't be listed: something on the screen keeps moving. Points of the picture can be tapped.",
    )
    assert held.surface.hazards(held.target, "tap", {"x": 1, "y": 1}, ()) == {Hazard.UNKNOWN}
    held.do("wait", seconds=0.01)
    assert held.look().controls


@both
def test_missing_application_error_lists_the_installed_ones(held):
    with pytest.raises(ToolError, match="no application 'mail' is installed that can be started; there are"):
        held.do("launch_app", application="mail")


@both
def test_applications_are_opened_with_an_address_and_ended(held):
    held.do("open_url", url="https://example.org/?a=1&b='2'")
    assert held.phone.app.url == "https://example.org/?a=1&b='2'"
    with pytest.raises(ToolError, match="no application on the device opens 'odd:thing'"):
        held.do("open_url", url="odd:thing")
    held.do("stop_app", application="browser")
    assert held.phone.app.label == "Home"


def test_a_call_a_deletion_and_a_setting_are_hazards(held):
    held.do("launch_app", application="contacts")
    held.tap("Alan Turing")
    for name, hazard in (("Call", Hazard.SENDS), ("Message", None), ("Delete", Hazard.DELETES)):
        call = {"control_id": held.id(name)}
        assert held.surface.hazards(held.target, "tap", call, ()) == ({hazard} if hazard else set())
        box = next(each.box for each in held.look().controls if each.name == name)
        point = {"x": box.x + 5, "y": box.y + 5}
        assert held.surface.hazards(held.target, "tap", point, ()) == ({hazard} if hazard else set())
    assert held.surface.resources(held.target, "tap", call) == ("application:com.android.contacts",)
    held.do("launch_app", application="settings")
    wifi = {"control_id": held.id("Wi-Fi")}
    assert held.surface.hazards(held.target, "click_control", wifi, ()) == {Hazard.CONFIGURES}
    assert held.surface.hazards(held.target, "press_key", {"key": "call"}, ()) == {Hazard.SENDS}


def test_the_host_agent_lists_devices_and_applications(held):
    assert {"device": held.serial, "model": "Stand in", "state": "device"} in held.do("list_devices")
    assert "com.android.settings" in held.do("list_apps")
    assert "com.android.systemui" in held.do("list_apps", all=True)


def test_answers_are_cached_for_as_long_as_they_hold(hold):
    now = [0.0]
    held = hold(elapsed=lambda: now[0])
    held.look()
    held.phone.start("com.android.settings")
    held.phone.others.append("org.example")
    held.phone.model = "Other"
    assert held.look().window["application"].startswith("com.android.launcher3")
    now[0] += 5
    seen = held.look()
    assert (seen.window["application"], seen.window["device"]) == (
        "com.android.settings/.MainActivity",
        "Callboard Stand-in",
    )
    now[0] += 60
    assert held.look().window["device"] == "Callboard Other"
    assert "org.example" not in held.do("list_apps", all=True)
    now[0] += 300
    assert "org.example" in held.do("list_apps", all=True)


def test_an_action_has_the_controls_listed_again(hold):
    held = hold(elapsed=lambda: 0.0)
    held.look()
    held.tap("Settings")
    assert held.look().window["application"].startswith("com.android.settings")


def test_missing_device_gives_a_clear_error(held):
    held.look()
    with pytest.raises(ToolError, match="the device nobody is not connected"):
        held.surface._of("nobody")


def test_closing_cleans_the_device_and_restores_its_keyboard(hold):
    held = hold(lasting=False)
    held.phone.start("com.android.dialer")
    held.do("type_text", control_id=held.id("Number"), text="é")
    held.wait(held.surface.close())
    assert list((held.phone.programs.parent / "tmp").iterdir()) == []
    assert held.phone.ime == "com.android.inputmethod.latin/.LatinIME"
    assert held.surface._keyboards.lent == ()


def test_a_keyboard_that_a_crash_left_is_given_back_by_the_next_process(hold, tmp_path):
    first = hold()
    first.wait(first.surface._keyboards.note(first.surface._of(first.serial).device))
    first.phone.ime = "com.android.adbkeyboard/.AdbIME"
    second = AndroidSurface([first.serial], port=first.surface._adb.port)
    first.wait(second.open(Stage("android", tmp_path / "j")))
    assert first.phone.ime == "com.android.inputmethod.latin/.LatinIME"
    assert second._keyboards.lent == ()
    first.wait(second.close())


@pytest.mark.parametrize("left", [b"", b"{", b"[1]", b"\xff"])
def test_broken_keyboard_note_does_not_stop_the_surface(hold, tmp_path, left):
    folder = tmp_path / "j.surfaces" / "android"
    folder.mkdir(parents=True)
    (folder / "keyboards.json").write_bytes(left)
    (folder / "mark").write_bytes(left)
    held = hold()
    assert held.surface._keyboards.lent == ()
    assert len(held.surface._of(held.serial).device.name) == 8


def test_the_users_keyboard_is_not_forgotten_while_the_device_is_away(held, monkeypatch):
    held.phone.start("com.android.dialer")
    number = held.id("Number")
    with monkeypatch.context() as patched:
        patched.setattr(held.surface._keyboards, "restore", AsyncMock(side_effect=ToolError("it is away")))
        with pytest.raises(ToolError, match="it is away"):
            held.do("type_text", control_id=number, text="é")
    assert held.phone.ime == "com.android.adbkeyboard/.AdbIME"
    held.do("type_text", control_id=number, text="é")
    assert held.phone.ime == "com.android.inputmethod.latin/.LatinIME"


def test_typing_is_refused_while_the_keyboard_does_not_change(held, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.android._key_tools._KEYBOARD_SECONDS", 0.1)
    held.phone.start("com.android.dialer")
    number = held.id("Number")
    reports = held.phone._shell._programs._commands["dumpsys"]
    slow = {"dumpsys": lambda words: reports(words).replace("mCurMethodId=", "was=")}
    monkeypatch.setattr(held.phone._shell._programs, "_commands", held.phone._shell._programs._commands | slow)
    with pytest.raises(ToolError, match="nothing was typed: the device does not switch its keyboard"):
        held.do("type_text", control_id=number, text="é")
    assert held.phone.inputs == []


@pytest.mark.parametrize(
    ("mark", "probe"),
    [
        ("", Probe.NOT_DONE),
        ("run.1.00 0 done\nother.run.1.0 1 done", Probe.NOT_DONE),
        ("run.1.0 0 done\nother 1 begun", Probe.BEGUN),
        ("run.1.0 0 begun", Probe.UNKNOWN),
        ("run.1.0 0 done", Probe.BEGUN),
        ("run.1.0 2 done", Probe.DONE),
    ],
)
def test_the_mark_tells_how_far_an_action_came(held, monkeypatch, mark, probe):
    monkeypatch.setattr("callboard.surfaces.android._device_actions._POLL_SECONDS", 0.01)
    actions = held.surface._of(held.serial)
    if mark:
        path = held.phone.programs.parent / "tmp" / f"callboard-{actions.device.name}.calls"
        path.write_text(f"{mark}\n", encoding="utf-8")
    assert held.wait(actions.probe("run.1.0", 3)) is probe


def program(held, name, *lines):
    """Have a program of the phone's shell do something else."""
    path = held.phone.programs / name
    path.unlink(missing_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines)), encoding="utf-8")
    path.chmod(0o755)


def test_a_picture_of_another_size_than_the_screen_is_not_taken(held, monkeypatch):
    picture = held.phone.picture()
    monkeypatch.setattr(held.phone, "picture", lambda: b"[Warning] Multiple displays were found\n" + picture)
    assert held.look().picture == picture
    small = io.BytesIO()
    Image.new("RGB", (720, 1600)).save(small, "PNG")
    monkeypatch.setattr(held.phone, "picture", small.getvalue)
    seen = held.look()
    assert seen.picture is None
    assert "has 720 by 1600 pixels, the screen 1080 by 2400" in seen.notes[0]
    program(held, "wm", "echo 'Physical size: 1080x2400'", "echo 'Override size: 720x1600'")
    assert held.look().picture == small.getvalue()


def test_a_secret_whose_place_is_not_known_is_in_no_picture(held):
    id_ = held.id("Contacts")
    held.phone.moving = 1
    held.surface._of(held.serial).device.screen.drop()
    seen = held.look(masked=(id_,))
    assert seen.picture is None
    assert seen.notes[-1].startswith("The picture is not shown: a control that holds a secret")
    held.surface._of(held.serial).device.screen.drop()
    assert held.look(masked=(id_,)).picture
    first = held.look().controls[0].id
    assert held.look(masked=(first,), budget=LookBudget(controls=1)).picture
    assert held.look(masked=("gone",), budget=LookBudget(controls=1)).picture is None


def test_the_application_of_a_second_display_is_found(held):
    program(
        held,
        "dumpsys",
        "echo ' mCurrentFocus=null'",
        "echo ' mFocusedApp=null'",
        "echo ' mCurrentFocus=Window{1 u0 a.b/.C}'",
    )
    assert held.look(picture=False).window["application"] == "a.b/.C"


def test_a_tablet_is_held_in_landscape_without_a_turn(held):
    program(held, "wm", "echo 'Physical size: 2560x1600'")
    assert held.look(picture=False).window["orientation"] == "landscape"


def test_packages_are_listed_though_a_profile_is_closed_to_the_shell(held):
    program(
        held,
        "pm",
        'case "$*" in *--user*) echo package:org.a ;; *) echo "SecurityException: user 150" >&2; exit 255 ;; esac',
    )
    program(held, "cmd", "echo org.a/.First", "echo org.a/.Second")
    assert held.do("list_apps", all=True) == ["org.a"]


def test_other_user_of_uiautomator_is_reported(held):
    program(held, "uiautomator", "echo 'java.lang.IllegalStateException: already registered!' >&2; echo '\tat a.b' >&2")
    assert "another program on the device uses uiautomator" in held.look(picture=False).notes[0]


@both
def test_refused_touch_gives_a_clear_error(held):
    program(
        held,
        "input",
        "printf 'Exception occurred while executing:\\njava.lang.SecurityException: INJECT_EVENTS\\n\\tat a.b\\n' >&2",
        "exit 255",
    )
    with pytest.raises(ToolError, match=r"the device refused: java.lang.SecurityException: INJECT_EVENTS$"):
        held.do("double_tap", x=5, y=5)


def test_a_device_over_the_network_that_went_away_is_connected_again(held):
    held.wait(held.surface._adb.ask(f"host:disconnect:{held.serial}"))
    assert held.surface._of(held.serial).device.screen.last is None
    assert held.look(picture=False).controls


@pytest.mark.parametrize(("key", "hazards"), [("005", {Hazard.SENDS}), ("0026", {Hazard.CONFIGURES}), ("4", set())])
def test_a_number_with_zeros_is_the_same_key(held, key, hazards):
    assert held.surface.hazards(held.target, "press_key", {"key": key}, ()) == hazards


def test_a_keys_other_names_are_understood(held):
    held.phone.start("com.android.dialer", "tel:555")
    held.tap("Number")
    held.do("press_key", key="backspace")
    assert held.phone.app.number.text == "55"


def test_an_application_that_calls_itself_another_is_named_as_both(held):
    program(held, "dumpsys", "echo ' mCurrentFocus=Window{1 u0 org.real/.Main}'")
    held.look(picture=False)
    both = ("application:com.android.launcher3", "application:org.real")
    for tool, arguments in (("tap", {"control_id": "1"}), ("swipe", {"direction": "up"}), ("press_key", {"key": "4"})):
        assert held.surface.resources(held.target, tool, arguments) == both
    assert held.surface.resources(held.target, "wait", {}) == ()


def test_a_swipe_over_a_slider_of_the_settings_is_a_hazard(held):
    held.do("launch_app", application="settings")
    wifi = {"control_id": held.id("Wi-Fi"), "direction": "right"}
    assert held.surface.hazards(held.target, "swipe", wifi, ()) == {Hazard.CONFIGURES}
    assert held.surface.hazards(held.target, "swipe", {"direction": "up"}, ()) == set()


def test_the_specifications_sample_runs_as_it_is_given(held):
    held.do("click_control", control_id=held.id("Contacts"), control_name="Contacts")
    assert held.phone.app.label == "Contacts"


def test_a_text_is_replaced_wherever_the_cursor_is(held):
    held.phone.start("org.callboard.notes")
    held.tap("New note")
    (field,) = [each.id for each in held.look().controls if each.kind == "text field"]
    held.do("type_text", control_id=field, text="one\ntwo")
    held.phone.cursor = 2
    held.do("type_text", text="new", clear=True)
    held.tap("Done")
    assert held.phone.apps["org.callboard.notes"].notes[-1].text == "new"


def test_a_long_text_that_is_replaced_may_take_its_time(held, monkeypatch):
    held.phone.start("com.android.dialer", f"tel:{'5' * 2_000}")
    device, limits = held.surface._of(held.serial).device, []
    shell = device.shell

    async def noted(command, seconds=30.0, *rest, **options):
        limits.append(seconds)
        return await shell(command, seconds, *rest, **options)

    monkeypatch.setattr(device, "shell", noted)
    held.do("type_text", control_id=held.id("Number"), text="1", clear=True)
    assert held.phone.app.number.text == "1"
    assert max(limits) > 100


def test_an_application_that_starts_slowly_has_started(held):
    program(held, "am", "echo 'Starting: Intent { }'", "echo 'Status: timeout'", "echo Complete")
    assert held.do("launch_app", application="contacts")["activity"].startswith("com.android.contacts/")


def test_an_action_in_an_installer_has_the_applications_listed_again(hold):
    held = hold(Phone(asks_permission=True), elapsed=lambda: 0.0)
    held.do("list_apps", all=True)
    held.phone.others.append("org.example")
    held.do("press_key", key="VOLUME_UP")
    assert "org.example" not in held.do("list_apps", all=True)
    held.look(picture=False)
    last = held.surface._of(held.serial).device.screen.last
    last.hierarchy.nodes[0].values["package"] = "com.google.android.packageinstaller"
    held.do("press_key", key="VOLUME_UP")
    assert "org.example" in held.do("list_apps", all=True)


def test_answer_dropped_while_it_is_fetched_is_not_cached(held):
    asked, go = [], asyncio.Event()

    async def ask():
        asked.append(len(asked))
        if len(asked) == 1:
            await go.wait()
        return len(asked)

    async def work():
        kept = Cached(5.0, ask, lambda: 0.0)
        first = asyncio.ensure_future(kept.get())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        kept.drop()
        go.set()
        return [await first, await kept.get(), await kept.get()]

    assert held.wait(work()) == [1, 2, 2]
