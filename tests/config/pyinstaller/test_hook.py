"""A program of PyInstaller has the modules and files that it needs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callboard.config.pyinstaller import hook_folders

PROGRAM = "from callboard.__main__ import main\nmain()\n"


def test_entry_point_names_the_folder_of_the_hook():
    entries = importlib.metadata.entry_points(group="pyinstaller40")
    (entry,) = [entry for entry in entries if entry.value.startswith("callboard.")]
    assert entry.load() is hook_folders
    (folder,) = hook_folders()
    assert Path(folder, "hook-callboard.py").is_file()


@pytest.mark.pyinstaller
@pytest.mark.timeout(600)
def test_program_runs_the_demo(tmp_path):
    if importlib.util.find_spec("PyInstaller") is None:
        assert "REQUIRE_PYINSTALLER" not in os.environ
        pytest.skip("PyInstaller is not installed")
    (tmp_path / "app.py").write_text(PROGRAM, encoding="utf-8")
    build = [sys.executable, "-m", "PyInstaller", "--onedir", "--noconfirm", "--log-level", "WARN", "app.py"]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=500)
    program = tmp_path / "dist" / "app" / "app"
    run = subprocess.run([program, "demo"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=90)
    assert "verified: 4 of 4 checks" in run.stdout
    subprocess.run([program, "init", "mine"], cwd=tmp_path, check=True, timeout=90)
    assert (tmp_path / "mine" / "test_task.py").is_file()
    pages = subprocess.run([program, "docs"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=90)
    assert "tutorial" in pages.stdout
