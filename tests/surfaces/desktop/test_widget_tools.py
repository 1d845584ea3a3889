"""Working with the contents of windows, in real programs."""

import os
import signal
import threading
import time

import pytest

from callboard.surfaces import ToolError

pytest.importorskip("jeepney")

from callboard.surfaces.desktop._calls import ANSWER_SECONDS
from callboard.surfaces.desktop._widget_tools import _entries
from callboard.surfaces.desktop._window_actions import PRESSES
from support import PATIENCE


@pytest.fixture
def editor(start):
    return start("editor")


@pytest.fixture(scope="module")
def unchanged(share):
    """Give an editor that all tests leave as it was."""
    return share("editor")


@pytest.fixture
def form(start):
    return start("form")


@pytest.fixture
def impatient(monkeypatch):
    """Have tools wait for a moment only."""
    for name in ("READY_SECONDS", "SHOWN_SECONDS"):
        monkeypatch.setattr(f"callboard.surfaces.desktop._widget_tools.{name}", 0.3)


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_text_is_saved_by_the_menu_and_the_dialog(editor, folder):
    editor.do("type_text", text="Grüße aus 東京\nand a second line")
    assert editor.do("choose_menu", path=["File", "Save As"])["changed"]
    assert editor.look().window["dialog"] == "Save As"
    editor.do("set_text", "Name:", text=str(folder / "saved.txt"))
    assert editor.do("press", "Save")["changed"]
    until(lambda: (folder / "saved.txt").is_file() and (folder / "saved.txt").stat().st_size > 0)
    assert (folder / "saved.txt").read_text(encoding="utf-8") == "Grüße aus 東京\nand a second line"
    assert "dialog" not in editor.look().window


def test_a_button_that_is_grey_is_waited_for(editor):
    editor.do("choose_menu", path=["File", "Save As"])
    until(lambda: not editor.control("Save", "push button").enabled)
    save = editor.control("Save", "push button")
    threading.Timer(0.3, lambda: editor.do("set_text", "Name:", text="late.txt")).start()
    assert editor.do("press", save)["changed"]
    until(lambda: "late.txt" in str(editor.look().window["titles"]))


def test_only_the_dialog_that_takes_input_is_shown(unchanged):
    assert "File" in {control.name for control in unchanged.look().controls}
    unchanged.do("choose_menu", path=["Help", "About"])
    seen = unchanged.look()
    assert "File" not in {control.name for control in seen.controls}
    unchanged.do("press_keys", keys="Escape")
    unchanged.control("File")


def test_a_menu_item_is_found_by_its_path_alone(editor, impatient):
    with pytest.raises(ToolError, match=r"there is no menu item 'Sing'; there are: .*Save"):
        editor.do("choose_menu", path=["File", "Sing"])
    with pytest.raises(ToolError, match="there is no menu item 'Nowhere'"):
        editor.do("choose_menu", path=["Nowhere", "Save"])
    assert not [window for window in editor.desktop.screen.of_process(editor.pid) if window.popup]


def test_disabled_menu_item_gives_a_clear_error(editor, impatient):
    with pytest.raises(ToolError, match="'Undo' can't be chosen now: it is disabled"):
        editor.do("choose_menu", path=["Edit", "Undo"])


def test_a_form_is_filled_in_and_sent(form, folder):
    form.do("set_text", "Item", text="Lamp")
    form.do("set_text", "Pin", text="1234")
    assert form.do("select", "Colour", item="green")["chosen"] == "green"
    form.do("press", "OK")
    until(form.has_ended)
    assert (folder / "form.txt").read_text(encoding="utf-8").strip() == "Lamp|1234|green"


def test_a_password_is_neither_shown_nor_read(form):
    form.do("set_text", "Pin", text="1234")
    pin = form.control("Pin")
    assert "password" in pin.states
    assert pin.box is not None
    assert "1234" not in repr(form.look())


def test_missing_entry_error_lists_the_existing_ones(form, impatient):
    with pytest.raises(ToolError, match=r"there is no entry 'black'; there are: .*red, green, blue"):
        form.do("select", "Colour", item="black")


def test_a_box_is_checked_and_a_button_waits_for_it(start, folder):
    consent = start("consent")
    assert not consent.control("OK").enabled
    assert consent.do("check", "I agree", on=True) == {"on": True}
    assert "checked" in consent.control("I agree").states
    consent.do("check", "I agree", on=True)  # it is on already
    assert "checked" in consent.control("I agree").states
    consent.do("press", "OK")
    until((folder / "agreed").exists)


def test_a_modal_error_is_read_and_closed(start):
    error = start("error")
    assert "It went wrong" in {control.name for control in error.look().controls}
    answer = error.do("press", "OK")
    assert answer["changed"]
    until(error.has_ended)
    with pytest.raises(ToolError, match="has ended"):
        error.look()


def test_a_table_of_ten_thousand_rows_shows_those_in_sight(start):
    window = start("list")
    table = next(control for control in window.look().controls if control.kind.endswith("table"))
    assert (table.detail["rows"], table.detail["columns"]) == (10_000, 2)
    cells = [control.name for control in window.look().controls if control.kind == "table cell"]
    assert {"1", "row1", "row2"} <= set(cells)
    assert len(cells) < 200
    read = window.do("read_table", table, first_row=9_998)
    assert read["rows"] == [[9999, "row9999"], [10000, "row10000"]]
    assert read["total_rows"] == 10_000


def test_scrolling_shows_other_rows(start):
    window = start("list")
    table = next(control for control in window.look().controls if control.kind.endswith("table"))
    window.do("scroll", table, direction="down", steps=50)
    until(lambda: "row1" not in {control.name for control in window.look().controls})
    cells = {control.name for control in window.look().controls if control.kind == "table cell"}
    assert len(cells) > 2


def test_a_row_is_selected_and_stays_it(start, folder):
    window = start("list")
    assert window.do("select", "row3") == {"selected": "row3"}
    assert "selected" in window.control("row3").states
    window.do("press", "OK")
    until(window.has_ended)
    assert (folder / "list.txt").read_text(encoding="utf-8").strip() == "3"


def test_a_click_with_the_pointer_does_what_a_person_does(form):
    form.do("click", "Item")
    assert "focused" in form.control("Item").states
    assert form.do("click", "Cancel", button="left", count=1)["changed"]
    until(form.has_ended)


def test_a_text_that_is_awaited_is_found_or_missed(unchanged):
    assert unchanged.do("wait_for", text="mousepad")["seconds"] >= 0
    with pytest.raises(ToolError, match=r"'Nowhere' is not visible after 0.2 s"):
        unchanged.do("wait_for", text="Nowhere", seconds=0.2)
    with pytest.raises(ToolError, match="'Mousepad' is still visible"):
        unchanged.do("wait_for", text="Mousepad", gone=True, seconds=0.2)


def test_a_program_that_is_stopped_for_a_while_is_waited_for(editor):
    os.kill(editor.pid, signal.SIGSTOP)
    threading.Timer(2.0, lambda: os.kill(editor.pid, signal.SIGCONT)).start()
    editor.do("type_text", text="after the break")
    assert editor.text() == "after the break"


def save_by_keys(editor, file):
    """Type the name of a file into the open dialog, and press Return.

    GTK's file chooser drops a Return that comes while it completes the path. The dialog is still open then, and an
    agent, who sees that, presses it again.
    """
    editor.do("type_text", text=str(file))
    until(lambda: editor.control("Name:").detail["text"] == str(file))
    end = time.monotonic() + PATIENCE
    while "dialog" in editor.look().window:
        assert time.monotonic() < end
        editor.do("press_keys", keys="Return")
    until(file.exists)


def test_a_dialog_takes_keys_however_its_menu_item_is_pressed(editor, folder):
    editor.do("choose_menu", path=["File", "Save As"])
    save_by_keys(editor, folder / "by-menu.txt")
    editor.do("click", "File")
    item = next(each for each in editor.look().controls if each.name.strip() == "Save As...")
    editor.do("press", item)
    editor.do("press_keys", keys="ctrl+a")
    save_by_keys(editor, folder / "by-press.txt")


def test_no_key_blocks_a_program_whose_action_has_not_returned(editor):
    actions = editor.surface._acting()
    bar = actions.menu_bars(editor.pid)
    actions.act(editor.pid, _entries(actions, editor.pid, bar, ["File", "Save As"])[-1], PRESSES)
    until(lambda: "dialog" in editor.look().window)
    for tool, arguments in (("press_keys", {"keys": "a"}), ("type_text", {"text": "a"}), ("paste", {"text": "a"})):
        with pytest.raises(ToolError, match="keys would block it: use set_text, press and click"):
            editor.do(tool, **arguments)
    editor.do("press", "Cancel")
    until(lambda: "dialog" not in editor.look().window)
    editor.do("type_text", text="free again")
    assert editor.text() == "free again"


def test_a_program_that_does_not_answer_is_named_within_5_s():
    assert ANSWER_SECONDS < 5


def test_program_that_has_died_gives_a_clear_error(editor):
    editor.kill()
    until(editor.has_ended)  # the display may still list its window
    with pytest.raises(ToolError, match="has ended"):
        editor.do("press_keys", keys="a")
    assert editor.target.id not in {target.id for target in editor.surface.targets()}


def test_vanished_control_gives_a_clear_error(unchanged):
    item = unchanged.control("File")
    with pytest.raises(ToolError, match="the control 'n999' no longer exists: look again"):
        unchanged.do("press", item.model_copy(update={"id": "n999"}))


def test_control_without_a_switch_is_not_clicked(unchanged):
    for tool_name in ("check", "expand"):
        with pytest.raises(ToolError, match="is a text: there is nothing to switch, open or close"):
            unchanged.do(tool_name, next(each for each in unchanged.look().controls if each.kind == "text"))
