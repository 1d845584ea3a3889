"""Shells on another machine: its key is checked, its connection may be lost, and nothing of this machine goes there."""

import asyncio
import fcntl
import hashlib
import logging
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from callboard.config import ShellSettings
from callboard.messages import Hazard, Intent, Probe, SettingsError
from callboard.surfaces import InDoubtError, ToolError
from callboard.surfaces import shell as shell_package
from callboard.surfaces.shell._command_process import CommandStage
from ssh_server import alive, ssh_server
from support import PATIENCE, action, actions, lone


@pytest.fixture
def own(tmp_path):
    """Give a machine whose connections a test cuts."""
    pytest.importorskip("asyncssh")
    with ssh_server(tmp_path / "machine") as server:
        yield server


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def begun(box, **arguments):
    """Call `run` in a task of its own."""
    entry = next(entry for entry in box.surface.tools() if entry.name == "run")
    return asyncio.create_task(entry.tool.fn(**{"shell": "box", **arguments}))


def mark():
    return f"{os.getpid()}{time.monotonic_ns() % 10**9}"


def test_machine_with_an_unknown_key_is_refused(opened, machine, tmp_path):
    empty = tmp_path / "known"
    empty.touch()
    box = opened(**machine.section | {"known_hosts": empty})
    with pytest.raises(ToolError, match=rf"can't be reached: .*its key is not in {empty}; compare it"):
        box.run("touch here")
    with pytest.raises(ToolError, match="there is no file"):
        opened(**machine.section | {"known_hosts": tmp_path / "none"}).run("touch here")
    assert not list(box.work.iterdir())


def test_a_machine_with_another_key_is_refused(opened, machine, tmp_path):
    with ssh_server(tmp_path / "other") as other:
        key = other.known_hosts.read_text(encoding="ascii").partition(" ")[2]
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{machine.port} {key}", encoding="ascii")
    box = opened(**machine.section | {"known_hosts": known})
    with pytest.raises(ToolError, match="can't be reached"):
        box.run("touch here")
    assert not list(box.work.iterdir())


def test_refused_user_gives_a_clear_error(opened, machine, tmp_path):
    with ssh_server(tmp_path / "other") as other:
        box = opened(**machine.section | {"key": other.key})
        with pytest.raises(ToolError, match="refuses the user 'worker' with the available keys"):
            box.run("true")


def test_the_configuration_of_ssh_is_not_read_and_no_agent_is_forwarded(opened, machine, tmp_path, monkeypatch):
    home = tmp_path / "mine"
    (home / ".ssh").mkdir(parents=True)
    config = f"Host *\n  ProxyCommand touch {home}/proxied\n  ForwardAgent yes\n  SendEnv *\n"
    (home / ".ssh" / "config").write_text(config, encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("API_KEY", "mine alone")
    told = opened(**machine.section).run("env")["stdout"]
    assert not (home / "proxied").exists()
    assert not {"SSH_AUTH_SOCK", "API_KEY", "SECRET_OF_THE_LOGIN"} & {
        line.partition("=")[0] for line in told.splitlines()
    }


def test_variables_of_the_settings_are_in_no_file_there(opened, machine):
    box = opened(**machine.section, env={"TOKEN": "deep secret"})
    (handle,) = box.do("start", command="echo $TOKEN; sleep 3600").values()
    until(lambda: "deep secret" in box.do("read_output", handle=handle)["stdout"])
    files = [path for path in machine.home.rglob("*") if path.is_file() and path.name != "out"]
    assert not [path for path in files if b"deep secret" in path.read_bytes()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in machine.home.rglob("callboard"))


def test_isolation_is_not_promised_there(opened, machine):
    assert opened(**machine.section).look().window["isolation"].startswith("none: ")
    for option in ({"isolated": True}, {"network": True}):
        with pytest.raises((ValidationError, SettingsError), match="not isolated by Callboard"):
            ShellSettings(cwd=".", ssh="me@web-1", **option)


@pytest.mark.parametrize("address", ["web-1", "me@", "-oProxyCommand=x@web-1", "me@-x", "me@web 1", "me@web:port"])
def test_invalid_ssh_address_is_refused(address):
    with pytest.raises((ValidationError, SettingsError), match="ssh"):
        ShellSettings(cwd=".", ssh=address)


@pytest.mark.parametrize("name", ["$(touch hurt)", "`touch hurt`", "'; touch hurt; '", "-rf", "a\\'b", "%x", "*"])
def test_a_name_is_never_a_command(opened, machine, name):
    box = opened(**machine.section)
    box.do("write_file", path=name, text=name)
    assert box.do("read_file", path=name)["text"] == name
    assert box.do("edit_file", path=name, old=name, new="new")
    assert f"{name} (3)" in box.do("list_dir")["entries"]
    assert box.do("search", text="new", path=name)["matches"][0]["text"] == "new"
    assert box.do("find", pattern=name)
    assert box.do("search", text=name)
    assert [path.name for path in box.work.iterdir()] == [name]


def test_a_line_break_in_a_name_is_refused(opened, machine):
    with pytest.raises(ToolError, match="has a line break"):
        opened(**machine.section).do("read_file", path="a\nb")


def test_command_continues_while_the_connection_is_lost(opened, own):
    box = opened(**own.section)

    async def run():
        job = begun(box, command="echo x >> done; sleep 1; echo end")
        await asyncio.to_thread(until, (box.work / "done").exists)
        await asyncio.to_thread(own.stop)
        await asyncio.to_thread(own.start)
        return await job

    assert asyncio.run(run())["stdout"] == "end\n"
    assert (box.work / "done").read_text(encoding="utf-8") == "x\n"


def test_command_is_in_doubt_when_the_connection_stays_lost(opened, own):
    box = opened(**own.section, grace=0.5)

    async def run():
        job = begun(box, command="touch begun; sleep 1; touch ended")
        await asyncio.to_thread(until, (box.work / "begun").exists)
        await asyncio.to_thread(own.stop)
        await job

    with pytest.raises(InDoubtError, match="it is unknown whether the command is still running"):
        asyncio.run(run())
    until((box.work / "ended").exists)


def test_command_is_not_run_when_the_machine_is_unreachable(opened, own):
    box = opened(**own.section)
    own.stop()
    with pytest.raises(ToolError, match=r"can't be reached") as refused:
        box.run("touch here")
    assert not isinstance(refused.value, InDoubtError)
    intent = Intent(call_id="1", tool="run", arguments={})
    assert box.surface.probe(box.target, intent, (), "") is Probe.UNKNOWN


def test_a_cancel_is_not_confirmed_until_the_machine_is_reached_again(opened, own, caplog):
    box, sleeper = opened(**own.section), mark()

    async def run():
        job = begun(box, command=f"sleep {sleeper}", seconds=3600)
        await asyncio.to_thread(until, lambda: alive(f"sleep\0{sleeper}"))
        await asyncio.to_thread(own.stop)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    with caplog.at_level(logging.WARNING, "callboard"):
        asyncio.run(run())
        until(lambda: "the end of the command is not confirmed" in caplog.text)
    assert alive(f"sleep\0{sleeper}")
    own.start()
    until(lambda: not alive(f"sleep\0{sleeper}"))


def script_of(machine, box):
    box.do("list_dir")
    return next(machine.home.rglob("*.sh")), box.surface._shell("box")._folder.name


def test_a_command_that_comes_in_part_is_not_begun(opened, own):
    box = opened(**own.section)
    script, place = script_of(own, box)
    folder, given = script.parent / place / "part", b"touch begun\n"
    words = ["sh", script, "begin", folder, "9", "9", "9", "mark", box.work]
    part = subprocess.run([*words, str(len(given) + 1)], input=given, capture_output=True, check=False)
    assert (part.returncode, part.stderr) == (3, b"the command arrived incomplete, and was not run\n")
    assert not (folder / "script").exists()
    subprocess.run([*words, str(len(given))], input=b"touch begun\n", check=True)
    until((folder / "begun").is_symlink)


def test_a_script_that_comes_in_part_is_not_installed(opened, own, tmp_path):
    from callboard.surfaces.shell._ssh_channel import _START

    words = ["sh", "-c", _START.format(name="it.sh", size=5, end="end")]
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for given, installed in ((b"true", False), (b"true\n", True)):
        done = subprocess.run(words, input=given, env={**os.environ, **cache}, capture_output=True, check=False)
        assert (done.returncode == 0, (tmp_path / "cache" / "callboard" / "it.sh").exists()) == (installed, installed)


def test_a_cancel_that_overtakes_its_command_holds(opened, own):
    box = opened(**own.section)
    held = box.surface._shell("box").process("call")
    held.cancel()
    box.surface._shell("box").begin("call", "touch begun", box.work, 9, exported={})
    with pytest.raises(ToolError, match="it was not run"):
        asyncio.run(held.ended())
    assert held.call_off()  # as the next program does, which may run it
    box.surface._shell("box").begin("call", "touch begun", box.work, 9, exported={})
    assert asyncio.run(held.ended()).code == 0
    assert (box.work / "begun").exists()


def test_command_reported_as_not_run_does_not_begin_later(opened, own):
    box = opened(**own.section)
    box.do("list_dir")
    held = box.surface._shell("box").process("call")
    with pytest.raises(ToolError, match="it was not run"):
        asyncio.run(held.ended())
    box.surface._shell("box").begin("call", "touch begun", box.work, 9, exported={})  # was on its way
    assert held.stage() is CommandStage.ABSENT


def test_a_pipe_is_not_searched(remote):
    os.mkfifo(remote.work / "pipe")
    assert remote.do("search", text="x", path="pipe")["lines"] == 0


def test_stop_fails_when_it_can_not_be_confirmed(opened, own):
    box, sleeper = opened(**own.section), mark()
    (handle,) = box.do("start", command=f"sleep {sleeper}").values()
    until(lambda: alive(f"sleep\0{sleeper}"))
    own.stop()
    with pytest.raises(ToolError, match="can't be reached"):
        box.do("stop", handle=handle)
    own.start()
    assert alive(f"sleep\0{sleeper}")
    assert box.do("stop", handle=handle)["stopped"] == "the command was killed with its child processes (cancelled)"
    until(lambda: not alive(f"sleep\0{sleeper}"))


def test_closing_leaves_no_processes_on_the_machine(opened, own):
    box, sleeper = opened(**own.section), mark()
    box.do("start", command=f"setsid sleep {sleeper}")
    until(lambda: alive(f"sleep\0{sleeper}"))
    box.surface.close()
    assert not alive(f"sleep\0{sleeper}")
    kept = own.home / ".cache" / "callboard"
    assert [path.suffix for path in kept.iterdir()] == [".sh"]


def test_a_holder_that_is_killed_leaves_the_doubt_and_no_process(opened, machine):
    box, sleeper = opened(**machine.section), mark()
    limit = 40_000 + int(sleeper) % 40_000
    (handle,) = box.do("start", command=f"sleep {sleeper}", seconds=limit).values()
    until(lambda: alive(f"sleep\0{sleeper}") and alive(f"sleep\0{limit}"))
    folder = box.surface._shell("box").job(handle).folder
    (place,) = machine.home.rglob(folder.name.rpartition("/")[2])
    os.kill(int(str((place / "begun").readlink()).split()[0]), 9)
    with pytest.raises(InDoubtError, match="its outcome is unknown"):
        box.do("read_output", handle=handle, seconds=5)
    until(lambda: not alive(f"sleep\0{sleeper}") and not alive(f"sleep\0{limit}"))


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("head -c 1000000 /dev/zero", "it sends more than 100,000 bytes"),
        ("echo nonsense", "the machine's report about a command can't be parsed: b'nonsense"),
        ("exit 1", "failed on"),
        (r"printf 'ended\n\n0 0 0 0 0 0 0 0\n'", "can't be parsed"),
        (r"printf 'ended\n1||0|0\n0 0 0 0 0 0\n'", "can't be parsed"),
        (r"printf 'running\n\n-1 0 0 0 0 0 0 0\n'", "can't be parsed"),
    ],
)
def test_a_machine_that_answers_oddly_is_not_believed(opened, own, monkeypatch, script, error):
    monkeypatch.setattr("callboard.surfaces.shell._ssh_channel._MOST_TOLD", 100_000)
    box = opened(**own.section)
    handle = box.do("start", command="sleep 1")["handle"]
    (program,) = own.home.rglob("*.sh")
    good = program.read_bytes()
    program.write_text(script)
    try:
        with pytest.raises(ToolError, match=error):
            box.do("read_output", handle=handle)
    finally:
        program.write_bytes(good)


def test_odd_answers_about_files_are_not_believed(opened, own):
    box = opened(**own.section)
    script, _ = script_of(own, box)
    script.write_text("printf odd")
    for tool, error in (("read_file", "is not a file"), ("list_dir", "can't be parsed: 'odd'")):
        with pytest.raises(ToolError, match=error):
            box.do(tool, path="x")
    with pytest.raises(ToolError, match="can't be parsed"):
        box.look()
    assert Hazard.UNKNOWN in box.surface.hazards(box.target, "run", {"command": "ls"}, ())


def test_closing_ends_calls_of_a_machine_that_is_silent(opened, own):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        box = opened(**own.section | {"ssh": f"me@127.0.0.1:{silent.getsockname()[1]}"})

        async def run():
            job = begun(box, command="true")
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                await asyncio.to_thread(box.surface.close)
                await job

        with pytest.raises(ToolError, match="was closed"):
            asyncio.run(run())
    ours = [thread.name for thread in threading.enumerate() if "callboard" in thread.name and "me@" in thread.name]
    assert ours == []


def test_closing_warns_when_the_end_of_commands_is_not_confirmed(opened, own, caplog):
    box, sleeper = opened(**own.section), mark()

    async def run():
        job = begun(box, command=f"sleep {sleeper}", seconds=3600)
        await asyncio.to_thread(until, lambda: alive(f"sleep\0{sleeper}"))
        await asyncio.to_thread(own.stop)
        await asyncio.to_thread(until, lambda: not box.surface._shell("box")._link.connected)
        await asyncio.to_thread(box.surface.close)
        with pytest.raises(ToolError, match=r"was closed|in doubt|it is unknown"):
            await job

    with caplog.at_level(logging.WARNING, "callboard"):
        asyncio.run(run())
    assert "the end of the commands on" in caplog.text
    own.start()
    from callboard.surfaces.shell._ssh import RemoteFolder

    again = opened(**own.section)
    (place,) = (path.name for path in (own.home / ".cache" / "callboard").iterdir() if path.is_dir())
    again.do("list_dir")
    assert again.surface._shell("box")._link.run("end_all", RemoteFolder(place), "9") == b"yes\n"
    assert not alive(f"sleep\0{sleeper}")


def test_reads_outside_the_workspace_of_another_machine_are_asked_about(start, machine, work):
    (work.parent / "secret.txt").write_text("secret", encoding="utf-8")
    (work / "link").symlink_to(work.parent / "secret.txt")
    (work / "here").write_text("fine", encoding="utf-8")
    paths = ("here", "link", "../secret.txt", "/proc/self/environ")
    answer = actions(*(action("read_file", path=path) for path in paths), status="FINISH")
    supervisor = start(linux=lambda _: answer, servers=[], shells={"box": {"cwd": work, **machine.section}})
    result = supervisor.submit(lone("linux/box", dry_run=True)).result(PATIENCE)
    assert [each.arguments["path"] for each in result.would_do] == [*paths[1:]]


@pytest.mark.skipif(shutil.which("flock") is None, reason="there is no program flock")
def test_a_remote_write_checks_and_changes_within_the_lock(tmp_path):
    script = Path(shell_package.__file__).with_name("_remote.sh")
    path = tmp_path / "a.txt"
    path.write_bytes(b"before")
    (tmp_path / "new").write_bytes(b"after")
    words = ["sh", script, "place", tmp_path / "new", path, hashlib.sha256(b"before").hexdigest()]
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as program:
        end = time.monotonic() + PATIENCE
        while not [pid for pid in alive("flock\0-E") if Path(f"/proc/{pid}/fd/9").resolve() == tmp_path]:
            assert time.monotonic() < end
            assert program.poll() is None
            time.sleep(0.01)
        path.write_bytes(b"of another program")
        os.close(handle)
        assert program.wait(PATIENCE) == 3
        assert "was changed by another program meanwhile; nothing was written" in program.stderr.read()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {path: b"of another program"}
