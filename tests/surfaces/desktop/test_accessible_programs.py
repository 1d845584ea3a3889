"""The programs of a desktop, each asked by itself."""

import os
import signal
import subprocess
import sys

import pytest

from callboard.messages import LookBudget
from callboard.surfaces import ToolError
from callboard.surfaces.desktop._accessible_programs import AccessiblePrograms


def test_a_program_that_does_not_answer_keeps_no_other_one_waiting(start, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._accessible_programs.ANSWER_SECONDS", 1.0)
    stopped, running = start("editor"), start("editor")
    programs = AccessiblePrograms(running.desktop._environment["DBUS_SESSION_BUS_ADDRESS"])
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        assert programs.of_process(running.pid).name == "mousepad"
        assert [program.pid for program in programs._programs.values()] == [running.pid]
        with pytest.raises(ToolError, match=r"does not answer \(process \d+\): it is stopped, or busy"):
            programs.of_process(stopped.pid)
        os.kill(stopped.pid, signal.SIGCONT)
        assert programs.of_process(stopped.pid).pid == stopped.pid
    finally:
        programs.close()


def test_a_program_that_has_ended_is_not_there(start):
    window = start("editor")
    programs = window.desktop.programs
    assert programs.of_process(window.pid) is programs.of_process(window.pid)
    window.kill()
    assert window.desktop.wait(lambda: programs.of_process(window.pid) is None, 10)
    assert window.pid not in {program.pid for program in programs._programs.values()}


LEFT_OPEN = """
import os, time
from Xlib.display import Display
display = Display()
screen = display.screen()
window = screen.root.create_window(0, 0, 200, 100, 0, screen.root_depth)
window.set_wm_name("left open")
window.map()
display.sync()
if os.fork():
    os._exit(0)
time.sleep(60)
"""


def test_a_window_whose_process_has_ended_is_left_out(surface):
    desktop = surface._require_desktop()
    program = subprocess.Popen([sys.executable, "-c", LEFT_OPEN], env=desktop._environment, start_new_session=True)
    try:
        program.wait(20)
        assert desktop.wait(lambda: desktop.screen.of_process(program.pid), 10), "the display still lists the window"
        assert program.pid not in desktop.screen.processes()
        with pytest.raises(ToolError, match="has ended"):
            desktop.view(program.pid, None, LookBudget())
    finally:
        os.killpg(program.pid, signal.SIGKILL)
