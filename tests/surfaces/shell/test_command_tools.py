"""Commands in real shells."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from callboard import FunctionModel, Settings, Supervisor, Task, answers
from callboard.config import ShellSettings
from callboard.messages import SettingsError
from callboard.surfaces import ToolError
from callboard.surfaces.shell import ShellSurface
from callboard.surfaces.shell._command_process import _RUNNER, CommandStage
from callboard.surfaces.shell._isolation import why_not
from ssh_server import alive
from support import PATIENCE

isolating = pytest.mark.skipif(bool(why_not()), reason=why_not() or "commands are isolated")


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_outputs_and_the_exit_code_are_apart(box):
    answer = box.run("echo out; echo err >&2; exit 3")
    assert answer == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n"}


def test_folder_and_environment_last_from_call_to_call(box):
    box.run("mkdir deep; cd deep; export COLOUR='dark red'; local_one=1")
    answer = box.run('echo "$COLOUR $PWD $local_one"')
    assert answer["stdout"] == f"dark red {box.work}/deep \n"
    assert box.look().window["cwd"] == f"{box.work}/deep"
    assert box.look().window["environment"] == ["COLOUR"]


def test_a_shell_whose_folder_is_gone_is_in_its_workspace(local):
    local.run("mkdir d; cd d; rmdir ../d")
    assert local.run("pwd") == {"exit_code": 0, "stdout": f"{local.work}\n", "stderr": ""}
    local.run("mkdir d; cd d")
    (local.work / "d").rmdir()
    assert local.look().window["cwd"] == str(local.work)


def test_variables_of_one_command_do_not_change_the_stored_ones(box):
    (box.work / "Berlin").mkdir()
    box.run("place=Berlin folder=Berlin; pwd() { echo /; }; export COLOUR=red; cd Berlin")
    assert box.run("echo $COLOUR; pwd") == {"exit_code": 0, "stdout": f"red\n{box.work}/Berlin\n", "stderr": ""}
    assert not [*(box.work / "Berlin").iterdir()]
    box.run("export LARGE=$(head -c 200000 /dev/zero | tr '\\0' x)")
    assert box.run("echo $COLOUR ${#LARGE}")["stdout"] == "red 0\n"


def test_a_folder_of_one_call_is_for_that_call(box):
    (box.work / "other").mkdir()
    assert box.run("pwd; trap - EXIT", cwd="other")["stdout"] == f"{box.work}/other\n"
    with pytest.raises(ToolError, match=r"there is no folder .*/nowhere"):
        box.run("pwd", cwd="nowhere")


def test_commands_do_not_inherit_this_program_s_environment(box, monkeypatch):
    monkeypatch.setenv("API_KEY", "hidden")
    assert "hidden" not in box.run("env")["stdout"]


def test_variables_of_the_settings_are_there_and_not_shown(opened):
    box = opened(env={"TOKEN": "s3cret"})
    assert box.run("echo $TOKEN")["stdout"] == "s3cret\n"
    assert "s3cret" not in repr(box.look())
    assert "TOKEN" not in box.look().window["environment"]


@isolating
def test_isolated_commands_see_their_workspace_alone(local, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("private", encoding="utf-8")
    answer = local.run(f"cat {secret}; ls {Path.home()}; ls /etc/passwd; touch inside; ps ax | wc -l")
    assert "private" not in answer["stdout"]
    assert answer["stderr"].count("No such file or directory") == 3
    assert (local.work / "inside").exists()
    assert local.run("curl -s --max-time 2 http://127.0.0.1:1 ; echo $?")["stdout"].strip() != "0"


@isolating
def test_a_link_out_of_the_workspace_leads_nowhere(local, tmp_path):
    (tmp_path / "outside").mkdir()
    (local.work / "link").symlink_to(tmp_path / "outside")
    assert "No such file" in local.run("touch link/x")["stderr"]


@isolating
def test_exported_variables_start_no_program_outside_the_sandbox(local, tmp_path):
    fake = f"#!/bin/sh\ntouch {tmp_path}/escaped {local.work}/escaped\n"
    (local.work / "bwrap").write_text(fake, encoding="utf-8")
    (local.work / "bwrap").chmod(0o755)
    local.run(f"export PATH={local.work}:$PATH LD_PRELOAD={local.work}/any.so")
    answer = local.run('echo "$PATH"')
    assert answer["stdout"].startswith(f"{local.work}:")
    assert "from LD_PRELOAD cannot be preloaded" in answer["stderr"]  # of programs that bash starts, no sooner
    assert not [*tmp_path.rglob("escaped")]


@isolating
@pytest.mark.parametrize("made", ["ln -s {0} $p/env; pwd >$p/cwd", "mkfifo $p/env $p/cwd", "ln -s /dev/zero $p/env"])
def test_forged_shell_state_gives_no_access_to_files_outside(local, tmp_path, made):
    secret = tmp_path / "secret"
    secret.write_bytes(b"x\0SECRET=hidden\0")
    states = local.surface._shell("box")._data_folder / "states"
    local.run(f"p=$(echo {states}/*); {made.format(secret)}; trap - EXIT")
    assert local.run("env | grep SECRET")["stdout"] == ""


@isolating
def test_an_isolated_shell_is_never_outside_its_workspace(local, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "name").touch()
    local.run("cd /tmp")
    assert local.run("pwd")["stdout"] == f"{local.work}\n"
    local.run("mkdir d; cd d")
    local.run(f"rmdir ../d; ln -s {tmp_path}/private ../d")
    assert (local.look().window["cwd"], local.look().text) == (str(local.work), "d")
    assert local.do("find", pattern="name") == {"paths": []}


@isolating
def test_the_journal_is_in_no_workspace_of_isolated_commands(tmp_path, work):
    shells = {"box": {"cwd": tmp_path}}
    settings = Settings.load(journal={"path": work / "journal.db"}, shells=shells)
    with pytest.raises(SettingsError, match="with the journal is in it"):
        Supervisor.start(settings, models={"linux": FunctionModel(lambda _: {})})
    settings = Settings.load(
        journal={"path": work / "journal.db"}, shells={"box": {"cwd": tmp_path, "isolated": False}}
    )
    Supervisor.start(settings, models={"linux": FunctionModel(lambda _: {})}).stop()


def test_missing_isolation_is_reported(opened):
    box = opened(isolated=False)
    assert box.look().window["isolation"].startswith("none: commands can do all that this user can")
    assert box.run("pwd")["stdout"] == f"{box.work}\n"


@pytest.mark.parametrize("isolated", [pytest.param(True, marks=isolating), False])
def test_resources_of_a_command_are_limited(opened, isolated):
    box = opened(isolated=isolated)
    core, processes, blocks = box.run("ulimit -Hc; ulimit -Hu; ulimit -Hf")["stdout"].split()
    assert (core, blocks) == ("0", str(20_000_000_000 // 1024))
    assert int(processes) <= 10_000
    assert box.run("truncate -s 21G large; ls")["stdout"] == "large\n"
    assert (box.work / "large").stat().st_size == 0


@pytest.mark.parametrize("isolated", [pytest.param(True, marks=isolating), False])
@pytest.mark.parametrize(
    "command",
    [
        "sleep {0} & echo started",
        "setsid sleep {0} & echo started",
        "(setsid setsid sleep {0} &) ; echo started",
        "trap '' TERM HUP; (trap '' TERM; nohup sleep {0} >/dev/null 2>&1 &); echo started",
    ],
)
def test_processes_that_outlive_their_command_are_ended(opened, command, isolated):
    box, mark = opened(isolated=isolated), f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    answer = box.run(command.format(mark))
    assert answer["stdout"] == "started\n"
    assert not alive(f"sleep\0{mark}")


@pytest.mark.parametrize(
    "command",
    [
        "sleep {0}",
        "trap '' TERM INT HUP; while true; do sleep {0}; done",
        "exec >&- 2>&-; sleep {0}",
        "for i in $(seq 1000); do sleep {0} & done; wait",
        "setsid sleep {0} & setsid sleep {0} & wait",
    ],
)
def test_timed_out_command_is_ended_with_its_child_processes(box, command):
    mark = f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    for seconds in (0.2, 1.0, 5.0, 30.0):  # until the command begins within its time, on a busy machine
        ended = rf"the command was killed with its child processes \(timed out after {seconds:g} s\)"
        with pytest.raises(ToolError, match=ended):
            box.run(f"echo > begun; {command.format(mark)}", seconds=seconds)
        assert not alive(f"sleep\0{mark}")
        if (box.work / "begun").exists():
            break
    assert (box.work / "begun").exists()


def test_a_flood_is_counted_and_its_ends_are_shown(box):
    answer = box.run("echo first; head -c 60000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert answer["stdout"].startswith("first\n")
    assert answer["stdout"].endswith("last\n")
    assert "bytes are left out" in answer["stdout"]
    assert answer["stdout_bytes"] == 60_000_012
    assert Path(answer["stdout_file"]).stat().st_size == 20_000_000


def test_json_output_is_read_as_a_value(box):
    answer = box.run("echo '[[\"a.log\", 3]]'", read_json=True)
    assert answer["value"] == [["a.log", 3]]
    assert "value" not in box.run("echo '[1]'; exit 2", read_json=True)
    with pytest.raises(ToolError, match="the command was run, but its output can't be read as JSON"):
        box.run("echo none", read_json=True)


def test_prompt_gets_no_answer_and_is_reported(box):
    answer = box.run("read -p 'Password: ' x; echo \"[$x]\"; exit 1")
    assert "[]" in answer["stdout"]
    assert "it seems to have asked 'Password:'" in box.run("printf 'Password: '; exit 1")["note"]


def test_a_pager_does_not_wait(box):
    assert box.run("seq 5000 | ${PAGER:-less}")["stdout_bytes"] > 8000


def test_a_background_command_is_followed_and_stopped(box):
    handle = box.do("start", command="echo begun; sleep 3600")["handle"]
    until(lambda: box.do("read_output", handle=handle)["stdout"])
    assert box.do("read_output", handle=handle) == {"running": True, "stdout": "begun\n", "stderr": ""}
    assert box.look().window["background"] == {handle: "running"}
    stopped = box.do("stop", handle=handle)
    assert (stopped["running"], stopped["stdout"]) == (False, "begun\n")
    assert stopped["stopped"] == "the command was killed with its child processes (cancelled)"
    assert box.look().window["background"] == {handle: "ended"}


def test_a_background_command_is_stopped_before_it_has_begun(box):
    for _ in range(3):
        handle = box.do("start", command="sleep 3600")["handle"]
        stopped = box.do("stop", handle=handle)
        assert not stopped["running"]
        assert stopped["stopped"]
        assert box.look().window["background"][handle] in {"ended", "absent"}


@pytest.mark.parametrize("tool", ["run", "start"])
def test_a_stop_waits_for_no_command(tmp_path, work, tool):
    results = []

    def decide(request):
        results[:] = [result for record in request.memory for result in record.results]
        if not results:
            return answers.act(tool, command="echo begun > log; sleep 3600; echo ended > log")
        if tool == "start" and len(results) == 1:
            return answers.act("read_output", handle=results[0].value["handle"], seconds=50)
        return answers.finish()

    shells, rule = {"box": {"cwd": work, "isolated": False}}, {"verdict": "allow"}
    settings = Settings.load(journal={"path": tmp_path / "journal.db"}, shells=shells, policy=[rule])
    task = Task(key="t", request="x", target="box")
    with Supervisor.start(settings, models={"linux": FunctionModel(decide)}) as supervisor:
        handle = supervisor.submit(task)
        if tool == "start":
            next(each for each in handle.events() if each.data.get("tool") == "read_output")
        until((work / "log").exists)
        assert supervisor.stop() == ()
    with Supervisor.start(settings, models={"linux": FunctionModel(decide)}) as supervisor:
        assert supervisor.submit(task).result(PATIENCE).ok
    assert "was killed with its child processes (cancelled)" in f"{results[-1].error}{results[-1].value}"
    assert (len(results), (work / "log").read_text()) == (1 + (tool == "start"), "begun\n")


def test_full_disk_is_reported_before_a_command_begins(local, monkeypatch):
    local.run("cd .")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("callboard.surfaces.shell._command_process.write_own", Mock(side_effect=full))
    for tool in ("run", "start"):
        with pytest.raises(ToolError, match="was not run: No space left on device"):
            local.do(tool, command="touch begun")
    assert not [*local.work.iterdir()]
    assert local.look().window["background"] == {}


def test_a_background_command_that_can_not_begin_has_no_handle(box):
    with pytest.raises(ToolError, match="there is no folder"):
        box.do("start", command="true", cwd="nowhere")
    assert box.look().window["background"] == {}
    assert box.do("start", command="true") == {"handle": "job-1"}


def test_command_reported_as_not_run_does_not_begin_later(local, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.shell._command_process._START_SECONDS", 0.0)
    monkeypatch.setattr("callboard.surfaces.shell._command_process._RUNNER", os.devnull)
    with pytest.raises(ToolError, match="it was not run"):
        local.run("touch begun")
    (request,) = local.surface._shell("box")._data_folder.rglob("request.json")
    subprocess.run([sys.executable, "-I", _RUNNER, request.parent], check=True)  # it comes after all
    assert not [*local.work.iterdir()]


def test_old_leftovers_of_commands_are_removed(local):
    local.do("read_output", handle=local.do("start", command="true")["handle"], seconds=5)
    place = local.surface._shell("box")._data_folder
    for folder in (*(place / "commands").glob("*/"), *(place / "states").iterdir()):
        os.utime(folder, (0, 0))
    local.surface.close()
    again = ShellSurface({"box": ShellSettings(cwd=local.work)})
    again.open(SimpleNamespace(folder=place.parent, lasting=False))
    assert again.observe(local.target).window["background"] == {}
    assert [path.name for path in (*(place / "commands").iterdir(), *(place / "states").iterdir())] == ["host"]
    again.close()


def test_closing_ends_commands_about_to_begin(opened):
    box, mark = opened(), f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    box.do("start", command=f"sleep {mark}; echo done > done")
    held = box.surface._shell("box").job("job-1")
    box.surface.close()
    until(lambda: held.stage() in {CommandStage.ENDED, CommandStage.ABSENT})
    assert not alive(f"sleep\0{mark}")
    with (
        pytest.raises(ToolError, match="it was not run")
        if held.stage() is CommandStage.ABSENT
        else contextlib.nullcontext()
    ):
        asyncio.run(held.ended())


def test_a_null_is_refused(box):
    tools = {entry.name: entry.tool for entry in box.surface.tools()}
    for tool, arguments in (
        ("run", {"command": "echo a\0b"}),
        ("read_file", {"path": "a\0b"}),
        ("search", {"text": "\0"}),
    ):
        with pytest.raises(ValidationError, match="should match pattern"):
            tools[tool].validate({"shell": "box", **arguments})


def test_a_background_command_that_ends_tells_its_code(box):
    handle = box.do("start", command="echo done; exit 7")["handle"]
    answer = box.do("read_output", handle=handle, seconds=20)
    assert answer == {"running": False, "exit_code": 7, "stdout": "done\n", "stderr": ""}
    with pytest.raises(ToolError, match="there is no background command 'job-9'; there are: job-1"):
        box.do("read_output", handle="job-9")


def test_closing_ends_background_commands(opened):
    box, mark = opened(), f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    box.do("start", command=f"sleep {mark}")
    until(lambda: alive(f"sleep\0{mark}"))
    box.surface.close()
    assert not alive(f"sleep\0{mark}")


def test_a_runner_that_is_killed_takes_its_command_along(local):
    mark = f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    handle = local.do("start", command=f"sleep {mark}")["handle"]
    until(lambda: alive(f"sleep\0{mark}"))
    held = local.surface._shell("box").job(handle)
    os.kill(held._runner()[0], signal.SIGKILL)
    until(lambda: not alive(f"sleep\0{mark}"))
    with pytest.raises(ToolError, match="its outcome is unknown"):
        local.do("read_output", handle=handle, seconds=5)
