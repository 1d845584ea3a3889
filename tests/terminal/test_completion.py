"""Completion in bash and zsh."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.main import get_command
from typer.testing import Result

import forks
from callboard import Supervisor, Task
from callboard.messages import AgentKind
from callboard.terminal import app, completion_script, task_ids
from support import FINISH, PATIENCE

BASH, ZSH = shutil.which("bash"), shutil.which("zsh")
PROGRAM = get_command(app)
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")
Call = Callable[..., Result]
SETTINGS = {"models": {"host": "scripted:script.yaml"}, "journal": {"path": "journal.db"}}


def complete(line: str, here: Path, **variables: str) -> list[str]:
    """Return the proposals of a fresh bash at the end of a line."""
    words = line.split(" ")
    asked = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; "
    call = f'{asked}_callboard_completion {words[0]}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")}
    done = subprocess.run(
        [str(BASH), "--norc", "--noprofile", "-c", f"{completion_script(PROGRAM)}\n{call}"],
        cwd=here, env=clean | variables, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the script start forks in place of interpreters."""
    monkeypatch.setattr(sys, "executable", forks.interpreter())


@pytest.fixture
def journal(here: Path) -> Path:
    """A folder with settings and a journal of two tasks."""
    (here / "script.yaml").write_text(yaml.safe_dump({"host": [FINISH]}), encoding="utf-8")
    (here / "callboard.yaml").write_text(yaml.safe_dump(SETTINGS), encoding="utf-8")
    with Supervisor.start(here / "callboard.yaml") as supervisor:
        for name in ("report-1", "order-2"):
            supervisor.submit(Task(id=name, request="x")).result(timeout=60)
    return here


def test_the_command_prints_the_script_and_writes_nothing(call: Call, here: Path) -> None:
    result = call("completion")
    assert (result.exit_code, result.stdout) == (0, completion_script(PROGRAM))
    assert list(here.iterdir()) == []


@pytest.mark.usefixtures("forked")
def test_commands_are_completed(here: Path) -> None:
    assert complete("callboard re", here) == ["resume", "report", "replay"]
    assert complete("callboard policy ", here) == ["check"]
    assert complete("callboard fleet ", here) == ["setup", "serve"]
    assert list(here.iterdir()) == []


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("callboard demo s", ["sales_by_region", "sales_report", "sales_report_desktop"]),
        ("callboard schema task", ["task.yaml", "task", "task_forgotten", "task_progress", "task_result"]),
        ("callboard run x --in", ["--in-place"]),
        ("callboard run x --settings ", []),
        ("callboard --v", ["--version"]),
        ("callboard graph m", ["mobile"]),
        ("callboard docs mod", ["models"]),
        ("callboard policy check --as", []),
        ("callboard policy check --j", ["--json"]),
    ],
)
def test_names_and_options_are_completed_and_files_left_to_bash(here: Path, line: str, proposed: list[str]) -> None:
    assert complete(line, here) == proposed


def test_commands_and_options_are_completed_without_the_program(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert complete("callboard do", here) == ["docs", "doctor"]
    assert complete("callboard undo x --", here) == ["--file", "--json", "--help"]
    assert complete("callboard run a", here) == []
    assert complete("callboard demo s", here) == []


def test_the_program_is_asked_for_all_values_that_only_it_knows() -> None:
    script = completion_script(PROGRAM)
    for name, command in PROGRAM.commands.items():
        given = [each.type_descriptor for each in command.params]
        known = any(each.parameter_info.autocompletion or each.annotation is AgentKind for each in given)
        assert (f"*:{name}:*" in script) == (known or hasattr(command, "commands")), name


@pytest.mark.usefixtures("forked")
def test_zsh_completes_with_the_same_script(here: Path) -> None:
    if ZSH is None:
        (pytest.fail if os.environ.get("REQUIRE_ZSH") == "1" else pytest.skip)("zsh is not installed")
    (here / "script").write_text(completion_script(PROGRAM), encoding="utf-8")
    lines = "autoload -U compinit bashcompinit; compinit -D; bashcompinit; source ./script; PS1='rea''dy '"
    (here / ".zshrc").write_text(lines, encoding="utf-8")
    keys, terminal = pty.openpty()
    environment = {**os.environ, "ZDOTDIR": str(here), "TERM": "dumb"}
    shell = [ZSH, "--no-globalrcs", "-i"]
    with os.fdopen(keys, "r+b", buffering=0) as typed, subprocess.Popen(
        shell, cwd=here, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as zsh:  # fmt: skip
        os.close(terminal)
        for waits, line in [
            (b"ready ", b"callboard resu\t"),
            (b"resume ", b"\x15callboard run --in\t"),
            (b"--in-place ", b"\x15callboard graph mo\t"),
            (b"mobile ", b"\x15exit\r"),
        ]:
            shown = b""
            while waits not in shown:
                assert select.select([typed], [], [], PATIENCE)[0], shown
                shown += typed.read(1)
            typed.write(line)
        assert zsh.wait(timeout=60) == 0


@pytest.mark.usefixtures("forked")
def test_ids_of_tasks_come_from_the_journal_of_the_folder(journal: Path) -> None:
    before = {path.name: path.read_bytes() for path in journal.iterdir() if path.is_file()}
    assert complete("callboard show ", journal) == ["order-2", "report-1"]
    assert complete("callboard undo rep", journal) == ["report-1"]
    assert {path.name: path.read_bytes() for path in journal.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "settings",
    [
        None,
        b"journal: [",
        b"{unknown: 1}",
        b"journal: {path: nowhere.db}",
        b"journal: {path: pipe}",
        b"journal: {path: /dev/zero}",
    ],
)
def test_without_a_readable_journal_there_are_no_ids(here: Path, settings: bytes | None) -> None:
    os.mkfifo(here / "pipe")
    if settings is not None:
        (here / "callboard.yaml").write_bytes(settings)
    assert task_ids("") == []


def test_settings_that_are_a_pipe_do_not_block(here: Path) -> None:
    os.mkfifo(here / "callboard.yaml")
    assert task_ids("") == []


# Attacks: the current folder may be a stranger's


def trap(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_completion_executes_no_file_of_the_current_folder(journal: Path) -> None:
    for name in ("callboard", "python", "python3", "bash", "env", Path(sys.executable).name):
        trap(journal / name, "#!/bin/sh\ntouch executed\n")
    for name in ("callboard", "typer", "yaml", "json", "sqlite3", "sitecustomize", "usercustomize", "conftest"):
        trap(journal / f"{name}.py", "open('executed', 'w').close()\n")
    mcp = {"command": "./callboard", "cwd": "."}
    more = {"mcpServers": {"evil": mcp}, "agents": ["evil"], "surfaces": {"evil": {"plugin": "callboard"}}}
    (journal / "callboard.yaml").write_text(yaml.safe_dump(SETTINGS | more), encoding="utf-8")
    (journal / ".env").write_text("PATH=.\n", encoding="utf-8")
    for line in ("./callboard show ", "callboard show ", "callboard de", "callboard run $(touch${IFS}executed) --mo"):
        assert complete(line, journal, PYTHONPATH="", PYTHONSTARTUP="typer.py") != []
        assert not (journal / "executed").exists()


@pytest.mark.parametrize("name", ["`touch executed`", "*", "a;b", "a\nb", "\x1b[2J", "-x", "ä", "$(touch executed)"])
def test_an_id_that_a_shell_could_expand_is_left_out(journal: Path, name: str) -> None:
    with contextlib.closing(sqlite3.connect(journal / "journal.db")) as file, file:
        file.execute("UPDATE tasks SET id = ? WHERE id = 'order-2'", (name,))
    assert task_ids("") == ["report-1"]


def test_the_script_quotes_the_path_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my $(touch x)/python")
    assert "'/opt/my $(touch x)/python' -PE -m callboard" in completion_script(PROGRAM)
