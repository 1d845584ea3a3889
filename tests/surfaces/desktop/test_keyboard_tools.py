"""The keyboard and the clipboard, in real programs."""

import json
import os
import signal
import threading
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.messages import Intent, Probe
from callboard.surfaces import ToolError
from callboard.surfaces.desktop._clipboard import Clipboard
from support import PATIENCE

TYPED = st.text(st.characters(codec="utf-8", exclude_categories=["C", "M", "Z"]), min_size=1, max_size=10)
"""Characters that stand for themselves: none that join with the one before, and none that is not to be seen."""


@pytest.fixture(scope="module")
def shared(share):
    return share("editor")


@pytest.fixture
def editor(shared):
    shared.surface._acting().focus(shared.pid)
    shared.do("set_text", next(each for each in shared.look().controls if each.kind == "text"), text="")
    return shared


@pytest.fixture
def press(monkeypatch):
    """Press keys after which nothing is to be seen, and don't wait for it."""

    def press(window, keys):
        with monkeypatch.context() as patch:
            patch.setattr("callboard.surfaces.desktop._window_actions.CHANGED_SECONDS", 0)
            window.do("press_keys", keys=keys)

    return press


@pytest.fixture
def person(start, press):
    """Give an editor in which a person has copied a text."""
    person = start("editor")
    person.do("type_text", text="of a person")
    press(person, "ctrl+a")
    press(person, "ctrl+c")
    assert person.desktop.wait(lambda: person.desktop.clipboard.text() == "of a person", PATIENCE)
    return person


def intent(text, **noted):
    note = json.dumps(noted)
    return Intent(call_id="1.1.0", tool="type_text", arguments={"text": text}, noted=(note,))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(text=TYPED)
def test_any_text_is_typed_as_it_is(editor, text):
    before = editor.text()
    editor.do("type_text", text=text)
    assert editor.text() == before + text


def test_more_foreign_characters_than_there_are_free_keys_are_typed(editor):
    text = "".join(chr(0x4E00 + place) + chr(0x3041 + place % 7) for place in range(30))  # new ones, and some again
    editor.do("type_text", text=text)
    assert editor.text() == text
    editor.desktop.keyboard.restore()
    assert editor.desktop.keyboard._mapped == {}


def test_a_line_break_and_a_tab_are_keys(editor):
    editor.do("type_text", text="one\ttwo\nthree")
    assert editor.text() == "one\ttwo\nthree"


def test_capitals_are_those_of_the_text_whatever_was_locked(editor, press):
    press(editor, "Caps_Lock")
    editor.do("type_text", text="one Two é")
    assert editor.text() == "one Two é"


def test_typing_is_refused_while_caps_lock_is_on(editor, press, monkeypatch):
    monkeypatch.setattr(editor.desktop, "session", None)
    press(editor, "Caps_Lock")
    with pytest.raises(ToolError, match="Caps Lock is on; 0 of 3 characters were typed"):
        editor.do("type_text", text="abc")
    press(editor, "Caps_Lock")
    editor.do("type_text", text="abc")
    assert editor.text() == "abc"


def test_typing_is_refused_in_another_keyboard_layout(editor, monkeypatch):
    monkeypatch.setattr(editor.desktop.screen.root, "query_pointer", lambda: SimpleNamespace(mask=1 << 13))
    with pytest.raises(ToolError, match="another keyboard layout is in use; 0 of 3 characters were typed"):
        editor.do("type_text", text="abc")
    monkeypatch.undo()
    assert editor.text() == ""


@pytest.mark.parametrize("text", ["\x07", "a\x00b", "\u200b"])
def test_text_without_keys_is_refused_before_anything_is_typed(editor, text):
    with pytest.raises(ToolError, match="can't be typed"):
        editor.do("type_text", text=text)
    assert editor.text() == ""


def test_combinations_of_keys_do_what_they_do(editor, press):
    editor.do("type_text", text="first second")
    press(editor, "ctrl+shift+Left")
    editor.do("press_keys", keys="Delete")
    assert editor.text() == "first "
    assert editor.do("press_keys", keys="ctrl+z")["changed"]
    assert editor.text() == "first second"


@pytest.mark.parametrize("keys", ["Nokey", "hyper+a", "", "ctrl+"])
def test_unknown_keys_give_a_clear_error(editor, keys):
    with pytest.raises(ToolError, match=r"no key|not a modifier key"):
        editor.do("press_keys", keys=keys)


def test_typing_stops_when_another_window_takes_the_focus(editor, start, monkeypatch):
    other = start("editor")
    actions = editor.surface._acting()
    window = actions.focus(editor.pid)
    actions.focus(other.pid)
    monkeypatch.setattr(actions, "focus", lambda *_: window)
    with pytest.raises(ToolError, match="another window has taken the focus; 0 of 5 characters were typed"):
        editor.do("type_text", text="wrong")
    assert (editor.text(), other.text()) == ("", "")


def test_typing_stops_where_the_focus_is_lost(editor, start, monkeypatch):
    other = start("editor")
    screen, calls = editor.desktop.screen, []

    def stolen():
        calls.append(1)
        return (window, editor.pid) if len(calls) <= 6 else (0, other.pid)

    window = editor.surface._acting().focus(editor.pid)
    monkeypatch.setattr(screen, "active", stolen)
    with pytest.raises(ToolError, match=r"\d of 10 characters were typed") as told:
        editor.do("type_text", text="0123456789")
    monkeypatch.undo()
    typed = int(str(told.value).rpartition("; ")[2].split()[0])
    assert editor.desktop.wait(lambda: len(editor.text()) == typed, PATIENCE)
    assert editor.text() == "0123456789"[:typed]
    assert other.text() == ""


@pytest.fixture
def windows(start):
    """Give one process with two windows: the text fields of both, the second one in front."""
    process = start("editor")
    assert process.do("press_keys", keys="ctrl+shift+n")["changed"]

    def fields():
        found = sorted((each for each in process.look().controls if each.kind == "text"), key=lambda each: int(each.id))
        return process, [each.detail["text"] for each in found], [each.id for each in found]

    assert process.desktop.wait(lambda: len(fields()[1]) == 2, PATIENCE)
    return fields


def test_typing_stops_where_another_window_of_the_process_comes_up(windows, monkeypatch):
    process, *_ = windows()
    screen = process.desktop.screen
    first, second = screen.clients_of(process.pid)
    press, pressed = process.desktop.keyboard.press, []

    def press_and_switch(symbols):
        press(symbols)
        pressed.append(symbols)
        if len(pressed) == 4:
            screen.activate(first)

    monkeypatch.setattr(process.desktop.keyboard, "press", press_and_switch)
    with pytest.raises(ToolError, match=r"another window has taken the focus; 4 of 10 characters were typed"):
        process.do("type_text", text="0123456789")
    assert process.desktop.has_taken_keys(process.pid, PATIENCE)
    assert windows()[1] == ["", "0123"]
    assert screen.active()[0] == first != second


def test_a_menu_is_chosen_in_the_window_that_has_the_focus(windows):
    process, *_ = windows()
    process.do("type_text", text="second")
    process.do("choose_menu", path=["Edit", "Select All"])
    process.do("choose_menu", path=["Edit", "Delete Selection"])
    assert process.desktop.wait(lambda: windows()[1] == ["", ""], PATIENCE)
    process.do("type_text", text="first", control_id=windows()[2][0])
    assert process.do("choose_menu", path=["Edit", "Undo"])["changed"]
    assert windows()[1] == ["", ""]


def field(window):
    path = window.desktop.ids(window.pid).path
    return path(next(each.id for each in window.look().controls if each.kind == "text"))


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ("before:", Probe.NOT_DONE),
        ("before:some", Probe.BEGUN),
        ("before:some words", Probe.DONE),
        ("before:sume words", Probe.UNKNOWN),
        ("before", Probe.UNKNOWN),
        ("before:some words and more", Probe.UNKNOWN),
    ],
)
def test_probe_reads_the_text_typed_before_a_crash(editor, there, found):
    editor.do("set_text", next(each for each in editor.look().controls if each.kind == "text"), text=there)
    broken_off = intent("some words", field=field(editor), at=7, length=7)
    assert editor.surface.probe(editor.target, broken_off, (), "") is found


def test_keys_on_their_way_at_a_crash_count_as_typed(editor):
    text = "0123456789" * 20
    actions = editor.surface._acting()
    window = actions.focus(editor.pid)
    os.kill(editor.pid, signal.SIGSTOP)
    actions.type(window, text)
    os.kill(editor.pid, signal.SIGCONT)
    broken_off = intent(text, field=field(editor), at=0, length=0)
    assert editor.surface.probe(editor.target, broken_off, (), "") is Probe.DONE


def test_probe_is_unknown_while_keys_may_still_arrive(editor, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._keyboard_tools.ANSWER_SECONDS", 0.1)
    broken_off = intent("some words", field=field(editor), at=0, length=0)
    os.kill(editor.pid, signal.SIGSTOP)
    try:
        assert editor.surface.probe(editor.target, broken_off, (), "") is Probe.UNKNOWN
    finally:
        os.kill(editor.pid, signal.SIGCONT)


def test_the_rest_of_a_text_is_typed_after_a_crash(editor):
    editor.do("type_text", text="before:some")
    assert editor.surface.probe(editor.target, intent("some words", field=field(editor), at=7, length=7), (), "")
    editor.surface._keyboard._typed[""] = editor.surface._keyboard._typed.pop("1.1.0")  # a call without an agent
    assert editor.do("type_text", text="some words") == {"typed": 10}
    assert editor.text() == "before:some words"


def test_copy_and_paste_leave_the_clipboard_as_it_was(editor, person, press):
    assert editor.do("paste", text="päste 東京")["changed"]
    assert editor.text() == "päste 東京"
    press(editor, "ctrl+a")
    assert editor.do("copy") == {"text": "päste 東京"}
    assert editor.desktop.clipboard.text() == "of a person"
    press(person, "ctrl+End")
    person.do("press_keys", keys="ctrl+v")
    assert person.text() == "of a personof a person"


def test_a_paste_waits_for_its_program_and_not_for_a_clipboard_manager(editor, monkeypatch):
    clipboard, keys = editor.desktop.clipboard, editor.surface._acting().keys
    manager = Clipboard(editor.desktop.screen.display.get_display_name())
    seen = []

    def slowly(window, combination):
        os.kill(editor.pid, signal.SIGSTOP)
        keys(window, combination)
        seen.append(manager.text())
        threading.Timer(0.3, os.kill, (editor.pid, signal.SIGCONT)).start()

    monkeypatch.setattr(editor.surface._acting(), "keys", slowly)
    try:
        clipboard.offer("of a person")
        editor.do("paste", text="pasted")
        assert (seen, clipboard.text()) == (["pasted"], "of a person")
    finally:
        manager.close()
    assert editor.desktop.has_taken_keys(editor.pid, PATIENCE)
    assert editor.text() == "pasted"


def test_paste_is_refused_when_the_clipboard_can_not_be_restored(editor, person, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._clipboard._ANSWER_SECONDS", 0.2)
    os.kill(person.pid, signal.SIGSTOP)
    with pytest.raises(ToolError, match="does not answer: its content could not be restored"):
        editor.do("paste", text="x")
    os.kill(person.pid, signal.SIGCONT)
    assert person.desktop.has_taken_keys(person.pid, PATIENCE)
    monkeypatch.undo()
    assert (editor.text(), editor.desktop.clipboard.text()) == ("", "of a person")


def test_empty_copy_gives_a_clear_error(editor, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._keyboard_tools.SHOWN_SECONDS", 0.1)
    with pytest.raises(ToolError, match="nothing was copied"):
        editor.do("copy")


def test_a_text_too_long_for_the_clipboard_is_refused(editor):
    with pytest.raises(ToolError, match="is too long for the clipboard; at most 200,000 are possible"):
        editor.do("paste", text="x" * 200_001)
