"""The desktop as a surface: its targets, its applications, its pictures and controls."""

import io

import pytest
from PIL import Image
from Xlib import X
from Xlib.protocol import event

from callboard.messages import Look, LookBudget, TargetKind
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.desktop import DesktopSurface
from callboard.surfaces.desktop._desktop_applications import DesktopApplication, installed


def application(surface, name):
    return next(target for target in surface.targets() if target.id == name)


def test_it_needs_its_packages_and_the_programs_of_a_private_display():
    needs = {need.what: need for need in DesktopSurface.needs({"display": "private"})}
    assert {"the package 'jeepney'", "the program 'Xvfb'", "the program 'openbox'"} <= set(needs)
    assert all(need.command for need in needs.values())
    assert not any("Xvfb" in need.what for need in DesktopSurface.needs({"display": "user"}))


def test_a_display_of_a_person_has_to_be_there(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    missing = [need for need in DesktopSurface.needs({"display": "user"}) if not need.met]
    assert [need.what for need in missing] == ["a display (DISPLAY)"]


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "this is a Wayland session"),
        ({"XDG_SESSION_TYPE": "wayland", "DISPLAY": ":0"}, "this is a Wayland session"),
        ({}, "there is no display"),
        ({"DISPLAY": ":0"}, "there is no session bus"),
    ],
)
def test_a_display_that_can_not_be_used_is_refused_with_the_reason(monkeypatch, environment, why, tmp_path):
    for name in ("WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    surface, stage = DesktopSurface("user", folder=tmp_path), Stage("desktop")
    with pytest.raises(ConnectionError, match=why):
        surface.open(stage)
    surface.close()
    stage.close()


def test_applications_of_the_settings_can_be_started(surface):
    found = {target.id: target for target in surface.targets()}
    assert found["editor"].kind is TargetKind.APPLICATION
    assert found["editor"].address == "app/editor/*"
    assert "path" in found["editor"].takes["properties"]
    assert not found["form"].takes["properties"]


def test_an_application_becomes_a_target_with_its_process(start, folder):
    (folder / "letter.txt").write_text("Dear reader", encoding="utf-8")
    window = start("editor", path="letter.txt")
    assert window.target.address == f"app/editor/{window.pid}"
    assert window.target.group == "desktop"
    assert window.text() == "Dear reader"
    listed = application(window.surface, window.target.id)
    assert "letter.txt" in listed.name


def test_two_windows_of_one_program_are_two_processes(start):
    one, other = start("editor"), start("editor")
    assert one.pid != other.pid
    one.do("type_text", text="one")
    other.do("type_text", text="other")
    assert (one.text(), other.text()) == ("one", "other")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "the program can't be started: no-such-program: No such file"),
        ("broken", "broken ended without showing a window"),
    ],
)
def test_application_without_a_window_gives_a_clear_error(surface, name, why, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._open_desktop.HAND_OVER_SECONDS", 0.2)
    with pytest.raises(ToolError, match=why):
        surface.start(application(surface, name), {})


def test_an_application_without_a_window_is_given_up(surface, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._open_desktop.OPEN_SECONDS", 0.5)
    with pytest.raises(ToolError, match=r"windowless showed no window within 0.5 s"):
        surface.start(application(surface, "windowless"), {})


def test_the_picture_is_that_of_the_process_whatever_covers_it(start):
    below, above = start("editor"), start("editor")
    below.do("type_text", text="below " * 20)
    above.surface._acting().focus(above.pid)
    seen = below.look(picture=True)
    field = next(control for control in seen.controls if control.kind == "text")
    with Image.open(io.BytesIO(seen.picture)) as image:
        x, y, width, height = field.box.x, field.box.y, field.box.width, field.box.height
        colours = image.crop((x, y, x + width, y + height)).convert("L").getextrema()
    assert colours[0] < 100, "no text is to be seen in it"
    assert max(x + width, y + height) <= max(image.size)


def test_the_fingerprint_changes_with_the_text_and_not_with_the_focus(start):
    window, other = start("editor"), start("editor")
    before = window.surface.fingerprint(window.target)
    assert window.look().fingerprint == before
    other.surface._acting().focus(other.pid)
    assert window.surface.fingerprint(window.target) == before
    window.do("type_text", text="x")
    assert window.surface.fingerprint(window.target) != before


def test_an_observation_keeps_within_its_budget(start):
    window = start("editor")
    seen = window.surface.observe(window.target, Look(picture=False, budget=LookBudget(controls=2)))
    assert len(seen.controls) == 2
    assert seen.notes == ("There are more controls than fit; scroll, or close what is not needed.",)


def test_host_agents_see_the_screen_and_its_windows(start):
    window = start("editor")
    seen = window.surface.desktop(Look())
    assert [control.id for control in seen.controls] == [window.target.id]
    assert seen.window["screen"] == "1280x800"
    with Image.open(io.BytesIO(seen.picture)) as image:
        assert image.size == (1280, 800)
    assert window.surface.desktop(Look(picture=False)).picture is None


def test_program_that_shows_the_console_is_no_target_and_takes_no_action(start):
    window, other = start("editor"), start("editor")
    field, screen = window.control("", "text"), window.desktop.screen
    (shown,) = screen.of_process(window.pid)
    title = "Waiting \N{MIDDLE DOT} Callboard - Chromium".encode()
    client = screen.display.create_resource_object("window", shown.id)
    client.change_property(screen.display.get_atom("_NET_WM_NAME"), screen.display.get_atom("UTF8_STRING"), 8, title)
    screen.display.sync()
    seen = window.surface.desktop(Look())
    assert [control.id for control in seen.controls] == [other.target.id]
    refused = "which is for people: agents may not use the program"
    acts = (lambda: window.do("type_text", field, text="x"), lambda: window.do("press_keys", keys="a"))
    for act in (window.look, *acts, lambda: window.do("click_at", x=5, y=5)):
        with pytest.raises(ToolError, match=refused):
            act()
    with pytest.raises(ToolError, match="there is no window"):
        window.surface.focus_window(window.target.id)
    assert other.look().controls


def test_a_host_agent_brings_a_window_to_the_front(start):
    first, second = start("editor"), start("editor")
    assert second.desktop.screen.active()[1] == second.pid
    first.surface.focus_window(first.target.id)
    assert first.desktop.screen.active()[1] == first.pid
    with pytest.raises(ToolError, match="there is no window 'nothing'"):
        first.surface.focus_window("nothing")


def test_a_minimized_window_is_shown_again_by_focus_keys_and_points(start):
    window = start("editor")
    screen = window.desktop.screen
    (client,) = screen.clients_of(window.pid)

    def minimize():
        iconic = event.ClientMessage(
            window=screen._object(client), client_type=screen._atom("WM_CHANGE_STATE"), data=(32, [3, 0, 0, 0, 0])
        )
        screen.root.send_event(iconic, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        screen.display.flush()
        assert window.desktop.wait(lambda: "hidden" in window.look().window, 10)

    minimize()
    window.surface.focus_window(window.target.id)
    assert "hidden" not in window.look().window
    minimize()
    window.do("type_text", text="seen")
    assert window.text() == "seen"
    minimize()
    with pytest.raises(ToolError, match="was minimized, and is shown now: look again"):
        window.do("click_at", x=1, y=1)
    assert "hidden" not in window.look().window


def test_closing_ends_a_program_even_if_it_asks(start, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._open_desktop.CLOSE_SECONDS", 0.5)
    window = start("editor")
    window.do("type_text", text="not saved")
    window.surface.stop(window.target)
    assert window.has_ended()


def test_window_that_a_user_closes_gives_a_clear_error(start):
    window = start("editor")
    window.desktop.screen.close_window(window.desktop.screen.of_process(window.pid)[-1].id)
    assert window.desktop.wait(window.has_ended, 10)
    with pytest.raises(ToolError, match="has ended"):
        window.look()


def test_rules_know_the_application_of_a_call(start):
    window = start("editor")
    assert window.surface.resources(window.target, "press", {}) == ("application:editor",)
    assert window.surface.resources(None, "open_in_desktop", {"application": "form"}) == ("application:form",)
    assert window.surface.resources(None, "open_in_desktop", {"application": "nothing"}) == ("unknown",)


def test_a_silent_program_is_seen_by_its_picture_alone(surface, start, monkeypatch):
    window = start("editor")
    monkeypatch.setattr(window.desktop.programs, "of_process", lambda _: None)
    seen = window.look(picture=True)
    assert seen.controls == ()
    assert "only its picture shows it" in seen.notes[0]
    assert seen.picture is not None
    with pytest.raises(ToolError, match="only an operator"):
        window.do("type_text", text="x", control_id="1")


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("--gpu-launcher=sh", "./--gpu-launcher=sh"),
        ("-x.txt", "./-x.txt"),
        ("a-b.txt", "a-b.txt"),
        ("/a:b.txt", "/a:b.txt"),
        ("HTTPS://example.org/", "HTTPS://example.org/"),
        ("file:///a.txt", "file:///a.txt"),
    ],
)
def test_opened_path_is_never_read_as_an_option(what, given):
    assert DesktopApplication("editor", "Editor", ("mousepad",), opens=True).started_with(what) == ["mousepad", given]


@pytest.mark.parametrize("what", ["macro:///Tools.Misc.Main", "vnd.sun.star.script:a", "JavaScript:alert(1)"])
def test_an_address_that_runs_something_is_not_opened(what):
    with pytest.raises(ToolError, match="can't be opened, only file, http, https, mailto"):
        DesktopApplication("office", "Office", ("soffice",), opens=True).started_with(what)


def test_installed_applications_are_offered_if_they_are_wanted(tmp_path):
    entry = "[Desktop Entry]\nType=Application\nName=Pad\nExec=mousepad %F\n"
    (tmp_path / "applications").mkdir()
    (tmp_path / "applications" / "pad.desktop").write_text(entry, encoding="utf-8")
    hidden = entry + "NoDisplay=true\n"
    (tmp_path / "applications" / "hidden.desktop").write_text(hidden, encoding="utf-8")
    found = {each.id: each for each in installed({"XDG_DATA_HOME": str(tmp_path), "XDG_DATA_DIRS": "/nowhere"})}
    assert set(found) == {"pad"}
    assert found["pad"].started_with("a.txt") == ["mousepad", "a.txt"]
    assert found["pad"].opens
