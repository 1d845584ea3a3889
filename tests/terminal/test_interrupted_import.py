"""Ctrl-C while the command line is imported: it ends at once, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import PATIENCE

SITE = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
SCRIPT = Path(sys.executable).with_name("callboard")


def interrupted(tmp_path: Path, module: str, *command: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(SITE.format(module=module), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("module", ["callboard.messages", "callboard.terminal", "callboard.terminal._command_line"])
def test_an_interrupted_import_of_the_command_line_prints_nothing(tmp_path: Path, module: str) -> None:
    ended = interrupted(tmp_path, module, sys.executable, "-m", "callboard", "--help")
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.skipif(not SCRIPT.exists(), reason="the console script is not installed")
def test_an_interrupted_import_of_the_console_script_prints_nothing(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "callboard.messages", str(SCRIPT), "--help")
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("module", ["_results", "_task_session", "_takeover", "_undo_commands"])
def test_interrupt_before_a_task_exists_offers_no_resume(tmp_path: Path, module: str) -> None:
    task = tmp_path / "task.yaml"
    task.write_text("request: Look\ntarget: memo:one\n", encoding="utf-8")
    ended = interrupted(
        tmp_path, f"callboard.terminal.{module}", sys.executable, "-m", "callboard", "run", str(task), "--no-input"
    )
    assert ended.returncode == 130
    assert "resume" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_program_that_imports_the_package_keeps_its_interrupts(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "callboard.supervisor", sys.executable, "-c", "from callboard import Supervisor")
    assert "KeyboardInterrupt" in ended.stderr


def test_another_module_that_imports_the_package_keeps_its_interrupts(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from callboard import Supervisor\n", encoding="utf-8")
    ended = interrupted(tmp_path, "callboard.supervisor", sys.executable, "-m", "other", "callboard")
    assert "KeyboardInterrupt" in ended.stderr
