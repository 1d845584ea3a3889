"""The window in front and the dialogs, on each surface."""

from __future__ import annotations

import pytest

from callboard.messages import Control, Observation, Target, TargetKind
from callboard.routines import dialogs_of, window_of
from callboard.routines._screen import folders_of

GEDIT = Target(id="gedit-7", name="a.txt", kind=TargetKind.WINDOW, address="app/gedit/7", server="desktop")
PHONE = {"device": "Pixel", "application": "com.android.contacts/.activities.PeopleActivity"}


@pytest.mark.parametrize(
    ("facts", "window"),
    [
        ({"path": "sales.xlsx", "application": "Excel", "size": 7}, "Excel"),
        (PHONE, "com.android.contacts/.activities.PeopleActivity"),
        ({"url": "https://shop.example:8443/a/b?session=7#top", "title": "Cart"}, "https://shop.example:8443/a/b"),
        ({"url": "https://app.example/#/orders?page=2"}, "https://app.example/#/orders"),
        ({"url": "https://user:key@shop.example/a"}, "https://shop.example/a"),
        ({"url": "about:blank"}, "about:blank"),
        ({"url": "http://[broken"}, "http://[broken"),
        ({"cwd": "/home/ada/work/reports", "workspace": "/home/ada/work"}, "reports"),
        ({"cwd": "/home/ada/work", "workspace": "/home/ada/work"}, "."),
        ({"cwd": "/etc", "workspace": "/home/ada/work"}, "/etc"),
        ({"titles": ["a.txt - gedit"], "folder": "/home/ada/x"}, "gedit"),
        ({"from": "ada@example.org", "can_send": True}, ""),
        ({"title": "Tickets", "server": "tickets"}, ""),
        ({}, ""),
    ],
)
def test_window_is_the_same_in_the_next_run(facts, window):
    assert window_of(Observation(window=facts), GEDIT) == window


def test_a_host_agents_desktop_has_no_window():
    assert window_of(Observation(window={"screen": "800x600", "folder": "/home/ada/x"}), None) == ""


@pytest.mark.parametrize(
    "kind", ["dialog", "alertdialog", "page dialog", "alert", "alert dialog", "file chooser", "font chooser"]
)
def test_dialogs_are_controls_of_certain_kinds(kind):
    dialog = Control(id="1", name="Really?", kind=kind)
    hidden = Control(id="2", name="Later", kind=kind, visible=False)
    nameless = Control(id="3", name="", kind=kind)
    button = Control(id="4", name="OK", kind="button")
    assert dialogs_of(Observation(controls=(button, dialog, hidden, nameless))) == ("Really?", kind)


def test_dialogs_are_also_named_by_facts():
    facts = {"dialog": "Save as", "dialogs": ["Find", "Replace"]}
    assert dialogs_of(Observation(window=facts)) == ("Save as", "Find", "Replace")
    assert dialogs_of(Observation(window={"dialog": {"kind": "alert", "message": "x"}})) == ()


def test_folders_are_absolute_and_no_roots():
    facts = {"cwd": "/", "workspace": "/home/ada", "folder": "C:\\Users\\Ada", "title": "/home/grace"}
    assert folders_of(Observation(window=facts)) == {"folder": "C:\\Users\\Ada", "workspace": "/home/ada"}
    assert folders_of(Observation(window={"folder": "notes", "cwd": 3, "workspace": "C:\\"})) == {}
