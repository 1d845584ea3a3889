"""Pings tell when a program has taken its keys."""

import os
import signal

from Xlib import display


def test_a_program_answers_as_soon_as_it_runs(start):
    window = start("editor")
    os.kill(window.pid, signal.SIGSTOP)
    assert not window.desktop.has_taken_keys(window.pid, 0.1)
    os.kill(window.pid, signal.SIGCONT)
    assert window.desktop.has_taken_keys(window.pid, 10)


def test_a_window_that_answers_no_pings_is_not_waited_for(surface):
    desktop = surface._require_desktop()
    with_none = display.Display(desktop.screen.display.get_display_name())
    try:
        window = with_none.screen().root.create_window(0, 0, 10, 10, 0, 24)
        with_none.sync()
        assert not desktop._pings.answered([window.id, 0xDEAD], 3600)
    finally:
        with_none.close()
