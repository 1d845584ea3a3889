"""The programs of a desktop, each asked by itself."""

import os
import signal

import pytest

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
