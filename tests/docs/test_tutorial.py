"""The tutorial, followed from its first file to its last."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import forks

TUTORIAL = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILE = r"Save (?:this|[\w ]+) as `(?P<name>[\w.]+)`:\n\n```\w+\n(?P<content>.*?)```"
COMMAND = r"^    (?P<command>(?:python|tail) [^\n]*)$"
OUTPUT = r"```text\n(?P<output>.*?)```"
KILLED = 137


@pytest.mark.skipif(os.name != "posix", reason="it shows the end of a file with a program of POSIX systems")
def test_the_tutorial_can_be_followed_line_by_line(tmp_path):
    programs = Path(forks.interpreter()).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    folder = tmp_path / "work"
    folder.mkdir()
    codes, printed = {}, ""
    for part in re.finditer(f"{FILE}|{COMMAND}|{OUTPUT}", TUTORIAL, re.DOTALL | re.MULTILINE):
        if part["name"]:
            (folder / part["name"]).write_text(part["content"], encoding="utf-8")
        elif part["command"]:
            command = ["sh", "-c", part["command"]]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            codes[part["command"]], printed = done.returncode, done.stdout
        else:
            expected = part["output"].split("...\n")
            assert [lines for lines in expected if lines not in printed] == [], done
    assert {command for command, code in codes.items() if code} == {"python order.py --kill"}
    assert codes["python order.py --kill"] in {KILLED, -9}
    ledger = (folder / "ledger.csv").read_text(encoding="utf-8")
    assert ledger.count(",bolt,-30") == ledger.count(",nut,-10") == 1
