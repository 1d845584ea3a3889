"""The commands of a fleet, with machines as processes and a server of NATS."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import forks
from callboard import Outcome, Settings, Supervisor, Task
from callboard.fleet import set_up
from callboard.messages import UnknownTargetError
from callboard.terminal import EXIT_CODES, INTERRUPTED, USAGE
from nats_server import NatsServer, check_for_server
from support import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typer.testing import Result

    from callboard import TaskHandle

    Call = Callable[..., Result]

PROGRAM = """
import asyncio, pathlib
import callboard.fleet._fleet_link, callboard.fleet._nats_engine
from callboard.models import ScriptedModel

answer = ScriptedModel.answer

async def slow(self, request):
    pathlib.Path("asked").touch()
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.02)
    return await answer(self, request)

ScriptedModel.answer = slow
callboard.fleet._nats_client.CONNECT_SECONDS = callboard.fleet._fleet_link.OPEN_SECONDS = 2.0
from callboard.__main__ import main
main()
"""
"""The command line with a model that answers once the file ``go`` is there."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[NatsServer]:
    """Give a server with the streams of a fleet."""
    check_for_server()
    server = NatsServer(tmp_path / "jetstream")
    server.start()
    asyncio.run(set_up(server.url))
    yield server
    server.stop()


@pytest.fixture
def machine(tmp_path: Path, hub: NatsServer) -> Path:
    """Give the folder of the machine ``finance-3``, which has two documents."""
    folder = tmp_path / "finance-3"
    (folder / "workspace").mkdir(parents=True)
    for name in ("notes.csv", "other.csv"):
        (folder / "workspace" / name).write_text("a,b\n1,2\n", encoding="utf-8")
    settings = {
        "models": {"app": "scripted:script.yaml"},
        "documents": {"workspace": "workspace"},
        "journal": {"path": "journal.db"},
        "fleet": {"url": hub.url, "name": "finance-3"},
    }
    (folder / "callboard.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    answers = {f"app/csv/{name}.csv": [{"Status": "FINISH", "Result": "done"}] for name in ("notes", "other")}
    (folder / "script.yaml").write_text(yaml.safe_dump(answers), encoding="utf-8")
    return folder


@contextlib.contextmanager
def serving(
    folder: Path, words: str = "; Ctrl-C drains", stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Run ``callboard fleet serve`` there, until it serves."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM, "fleet", "serve"]
    with forks.Program(command, cwd=folder, stdin=stdin, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("finance-3 serves 5 targets through nats://127.0.0.1:"), line
            assert words in line
            yield process
        finally:
            process.kill()


@pytest.fixture
def desk(hub: NatsServer, tmp_path: Path) -> Iterator[Supervisor]:
    """Give a supervisor of the same fleet."""
    journal = {"path": tmp_path / "desk.db"}
    settings = Settings.load(fleet={"url": hub.url, "name": "desk"}, journal=journal, log={"stream": "off"})
    with Supervisor.start(settings) as supervisor:
        yield supervisor


def submit(desk: Supervisor, folder: Path) -> TaskHandle[Any]:
    """Submit a task for the machine, and wait until its model is asked there."""

    def attempt() -> TaskHandle[Any] | None:
        targets = [target.id for target in desk.targets() if target.name == "notes.csv"]
        with contextlib.suppress(UnknownTargetError):
            return desk.submit(Task(request="read it", target=targets[0])) if targets else None
        return None

    handle: TaskHandle[Any] = wait_for(attempt)
    wait_for((folder / "asked").exists)
    return handle


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_drains_the_work_of_other_machines(
    machine: Path, desk: Supervisor, number: signal.Signals
) -> None:
    with serving(machine) as process:
        handle = submit(desk, machine)
        process.send_signal(number)
        assert process.stdout.readline().startswith("drains: waits for 1 task of other machines; Ctrl-C again stops")
        (machine / "go").touch()
        assert handle.result(PATIENCE).output == "done"
        output, errors = process.communicate(timeout=PATIENCE)
        assert (output, errors, process.returncode) == ("drained: no task of other machines is open\n", "", 0)


def test_second_ctrl_c_keeps_the_work_for_the_next_start(machine: Path, desk: Supervisor) -> None:
    with serving(machine) as process:
        handle = submit(desk, machine)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().startswith("drains: ")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert output == "stopped; the journal keeps 1 task, and the next start resumes it\n"
        assert process.returncode == INTERRUPTED
    assert not handle.done()
    (machine / "go").touch()
    with serving(machine) as process:
        assert process.stdout.readline() == "resumes 1 task of an earlier start\n"
        assert handle.result(PATIENCE).output == "done"


def test_serve_without_work_ends_at_the_first_ctrl_c(machine: Path) -> None:
    with serving(machine) as process:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert (output, process.returncode) == ("drained: no task of other machines is open\n", 0)


@pytest.fixture
def deciding_machine(machine: Path) -> Path:
    """Have the machine decide on its approvals itself, and its agent ask for one."""
    file = machine / "callboard.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings["fleet"]["approvals"] = "here"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    asking = {"Status": "CONFIRM", "Comment": "may I read it?"}
    answers = {"app/csv/notes.csv": [asking, {"Status": "FINISH", "Result": "done"}]}
    (machine / "script.yaml").write_text(yaml.safe_dump(answers), encoding="utf-8")
    (machine / "go").touch()
    return machine


@pytest.mark.parametrize(("typed", "outcome"), [("y", Outcome.FINISHED), ("", Outcome.REJECTED)])
def test_serve_asks_for_approvals_at_its_terminal(
    deciding_machine: Path, desk: Supervisor, typed: str, outcome: Outcome
) -> None:
    keys, side = pytest.importorskip("pty").openpty()
    with os.fdopen(keys, "wb", buffering=0) as keyboard, serving(deciding_machine, stdin=side) as process:
        os.close(side)
        assert process.stdout.readline() == "approvals are asked here\n"
        handle = submit(desk, deciding_machine)
        shown = ""
        while "= no > " not in shown:
            letter = process.stdout.read(1)
            assert letter, shown
            shown += letter
        assert "app/csv/notes.csv asks for approval: may I read it?" in shown
        assert handle.approvals() == ()
        keyboard.write(f"{typed}\n".encode())
        assert handle.result(PATIENCE).outcome is outcome


def test_serve_without_a_terminal_says_that_approvals_end_unanswered(deciding_machine: Path) -> None:
    with serving(deciding_machine) as process:
        assert process.stdout.readline().endswith("has no terminal, so they end at their deadlines\n")


def test_serve_says_that_the_server_does_not_answer(machine: Path, hub: NatsServer) -> None:
    hub.stop()
    with serving(machine, ", which does not answer yet and is tried again;") as process:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (output, process.returncode) == ("drained: no task of other machines is open\n", 0), errors


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            "fleet",
            "callboard.yaml: fleet.url is not set: add it there, or set the variable CALLBOARD_FLEET__URL;",
        ),
        (
            "journal",
            "callboard.yaml: journal.path is not set: add it there, or set the variable CALLBOARD_JOURNAL",
        ),
    ],
)
def test_serve_refuses_settings_without_a_server_or_a_journal(
    call: Call, machine: Path, section: str, reason: str
) -> None:
    file = machine / "callboard.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    del settings[section]
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    result = call("fleet", "serve", machine)
    assert result.exit_code == USAGE
    assert reason in result.stderr


def listed(call: Call, machine: Path) -> dict[str, Any]:
    """List the machines of the fleet, by name, with the server as ``""``."""
    result = call("fleet", "--settings", machine, "--json")
    assert result.exit_code == 0, result.output
    listing = json.loads(result.stdout)
    return {"": listing["server"]} | {line["name"]: line for line in listing["machines"]}


def test_serve_refuses_a_name_that_another_machine_has(call: Call, machine: Path, hub: NatsServer) -> None:
    settings = Settings.load(fleet={"url": hub.url, "name": "finance-3"}, log={"stream": "off"})
    with Supervisor.start(settings) as other:
        other.serve()
        result = call("fleet", "serve", machine)
    assert result.exit_code != 0
    assert "another machine of the fleet is called finance-3, since 20" in " ".join(result.stderr.split())


def test_list_has_the_state_and_the_work_of_each_machine(call: Call, machine: Path, desk: Supervisor) -> None:
    assert list(listed(call, machine)) == [""]
    with serving(machine) as process:
        handle = submit(desk, machine)
        target = next(target.id for target in desk.targets() if target.name == "other.csv")
        line = wait_for(lambda: (line := listed(call, machine)["finance-3"])["running"] and line)
        assert (line["state"], line["targets"], line["running"], line["queued"]) == ("there", 5, 1, 0)
        assert line["version"] == importlib.metadata.version("callboard")
        assert 0 <= line["seconds"] < 8
        process.send_signal(signal.SIGINT)
        assert wait_for(lambda: listed(call, machine)["finance-3"]["state"] == "draining")
        shown = call("fleet", "--settings", machine).stdout.split()
        assert shown[shown.index("finance-3") :][:2] == ["finance-3", "draining"]
        late = desk.submit(Task(request="later", target=target))
        assert wait_for(lambda: listed(call, machine)["finance-3"]["queued"] == 1)
        (machine / "go").touch()
        process.wait(PATIENCE)
    assert handle.result(PATIENCE).ok
    line = listed(call, machine)["finance-3"]
    assert (line["state"], line["running"], line["queued"]) == ("stopped", 0, 1)
    with serving(machine):
        assert late.result(PATIENCE).ok


def test_list_names_the_durability_of_the_server(call: Call, machine: Path, hub: NatsServer) -> None:
    assert listed(call, machine)[""]["durability"] == "unknown"
    assert re.fullmatch(r"2\.\d+\.\d+", listed(call, machine)[""]["version"])


@pytest.mark.parametrize("arguments", [["--json"], ["--settings", "."]])
def test_options_of_the_list_are_refused_before_a_command(call: Call, arguments: list[str]) -> None:
    result = call("fleet", *arguments, "serve")
    assert result.exit_code == USAGE
    assert "belong to the list: write callboard fleet serve FILE" in result.stderr


def test_setup_makes_the_streams_and_prints_a_configuration(call: Call, machine: Path) -> None:
    result = call("fleet", "setup", machine, "--machine", "desk", "--machine", "finance-3")
    assert result.exit_code == 0, result.output
    assert "the streams are there, and the queues of desk, finance-3" in result.stderr
    assert "store_dir: " in result.stdout
    for name in ("desk", "finance-3"):
        assert f'machine-{name} {{\n    users: [{{ nkey: "PUBLIC KEY OF {name}" }}]' in result.stdout
        assert f'"callboard.work.*.{name}"' in result.stdout


def test_setup_refuses_a_name_with_wildcards(call: Call, machine: Path) -> None:
    result = call("fleet", "setup", machine, "--machine", "*")
    assert result.exit_code == USAGE
    assert "--machine *: a name has letters" in result.stderr


@pytest.fixture
def task_file(tmp_path: Path, desk: Supervisor, served: None) -> Path:
    """Give a task file for a document of the machine, with settings beside it."""
    return job_folder(desk, tmp_path) / "task.yaml"


def job_folder(desk: Supervisor, tmp_path: Path) -> Path:
    """Make a folder with a task file for a document of the machine, and settings."""
    wait_for(lambda: [target for target in desk.targets() if target.name == "notes.csv"])
    target = next(target.id for target in desk.targets() if target.name == "notes.csv")
    folder = tmp_path / "job"
    folder.mkdir()
    settings = {"journal": {"path": "job.db"}, "fleet": {"url": desk.settings.fleet.url, "name": "laptop"}}
    (folder / "callboard.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    task = {"id": "job-1", "request": "read it", "target": target}
    (folder / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    return folder


@pytest.fixture
def served(machine: Path) -> Iterator[None]:
    """Have the machine serve."""
    (machine / "go").touch()
    with serving(machine):
        yield


def test_run_and_history_show_the_machine_in_front(call: Call, task_file: Path) -> None:
    label = "finance-3 \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} app/csv/notes.csv"
    result = call("run", task_file, "--settings", task_file.parent)
    assert result.exit_code == 0, result.output
    assert label in result.stdout
    assert f"{label}  ends subtask 1: finished" in call("show", "job-1", task_file.parent).stdout


def test_run_without_the_fleet_has_no_targets_of_other_machines(call: Call, task_file: Path, machine: Path) -> None:
    model = f"scripted:{machine / 'script.yaml'}"
    result = call("run", task_file, "--settings", task_file.parent, "--model", model, "--no-fleet")
    assert result.exit_code == USAGE
    assert "notes.csv" in result.stderr


def test_run_without_the_fleet_starts_no_machines(
    call: Call, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    job = folder({"Status": "FINISH"}, fleet={"local": 2, "local_parts": "no_module:parts"})
    refused = call("run", job)
    assert "fleet.local needs a server" in refused.stderr
    assert call("run", job, "--no-fleet").exit_code == 0


def test_ctrl_c_names_the_stopped_machine_and_abandon_ends_the_task(
    call: Call, machine: Path, desk: Supervisor, tmp_path: Path
) -> None:
    with serving(machine) as process:
        handle = submit(desk, machine)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().startswith("drains: ")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    folder = job_folder(desk, tmp_path)
    command = [sys.executable, "-m", "callboard", "run", "task.yaml", "--settings", "."]
    pipe = subprocess.PIPE
    with forks.Program(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        until_line(process, "the machine finance-3 was stopped; its work waits for it")
        process.send_signal(signal.SIGINT)
        until_line(process, "callboard resume --abandon")
        process.send_signal(signal.SIGINT)
        assert "interrupted; the journal keeps the unfinished tasks" in process.communicate(timeout=PATIENCE)[0]
    result = call("resume", folder, "--abandon")
    assert result.exit_code == EXIT_CODES[Outcome.CANCELLED], result.output
    assert not handle.done()


def until_line(process: subprocess.Popen[str], words: str) -> None:
    """Read lines up to one with these words."""
    lines = []
    while words not in " ".join(lines[-2:]):
        line = process.stdout.readline()
        assert line, "".join(lines)
        lines.append(line.strip())


def test_resume_takes_a_task_of_another_machine_up_again(call: Call, task_file: Path, machine: Path) -> None:
    (machine / "go").unlink()
    settings = Settings.load(task_file.parent / "callboard.yaml", log={"stream": "off"})
    content = yaml.safe_load(task_file.read_text(encoding="utf-8"))
    with Supervisor.start(settings) as supervisor:
        supervisor.submit(Task(**content))
        wait_for((machine / "asked").exists)
    (machine / "go").touch()
    result = call("resume", task_file.parent)
    assert result.exit_code == 0, result.output
    assert "finished in" in result.stdout
