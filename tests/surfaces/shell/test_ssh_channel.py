"""Login shells and their start-up files, and the one channel on which operations run."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from callboard.surfaces.shell import _ssh_channel
from ssh_server import alive, ssh_server
from support import FINISH, PATIENCE, lone

NOISE = {
    "text": "echo Welcome to prod!; echo Hints >&2",
    "text without a line break": "printf 'last login: today'; printf warning >&2",
    "bytes": r"printf '\377\000\n\n\n'",
    "much text": "seq 50000; seq 50000 >&2",
    "options and functions": "set -C; alias cat='cat -A'; cd() { echo moved; }; export CDPATH=/usr ENV=/none",
    "an exit handler": "trap 'echo bye' EXIT",
    "a line of input": "read x",
    "a byte of input": "dd bs=1 count=1 of=/dev/null",
    "all input for a while": "timeout 0.1 cat",
}
BROKEN = {
    "exit 7": r"its login shell ended with the exit code 7, and ran no command; it printed nothing\. .*~/\.bashrc",
    "echo This account is currently not available.; exit 1": r"exit code 1.* it printed 'This account is currently not",
    "dd bs=4 count=1 of=/dev/null; exit 11": r"exit code 11.* ForceCommand \(internal-sftp\?\)",
    "kill -9 $$": "its login shell was killed",
    "echo menu; cat >/dev/null; exit": r"ran no command within 0.5 s; it printed 'menu'\. .* wait for input",
}
SHELLS = ("bash", "dash", "zsh", "fish", "csh", "tcsh", "rbash", "ksh")


@pytest.fixture
def own(tmp_path):
    """Give a machine with its own login shell."""
    pytest.importorskip("asyncssh")
    with ssh_server(tmp_path / "machine") as server:
        yield server


def started_by(commands):
    """Give a login shell that runs its start-up commands first."""
    return ("sh", "-c", f'{commands}\neval "$1"', "login")


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def served(pattern):
    return [pid for pid in alive("\0serve\0") if pattern.encode() in Path(f"/proc/{pid}/environ").read_bytes()]


@pytest.mark.parametrize("noise", NOISE)
def test_input_and_output_of_start_up_files_are_skipped(opened, own, noise):
    own.login = started_by(NOISE[noise])
    box = opened(**own.section)
    assert box.run("echo hello; echo oops >&2")["stdout"] == "hello\n"
    box.do("write_file", path="a.txt", text="x\ny")
    assert box.do("read_file", path="a.txt")["text"] == "x\ny"
    assert box.look().window["cwd"] == str(box.work)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_login_shell_starts_the_script(opened, own, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    own.login = (shell, "-c")
    for name in (".cshrc", ".tcshrc", ".zshenv", ".config/fish/config.fish"):
        (own.home / name).parent.mkdir(parents=True, exist_ok=True)
        (own.home / name).write_text("echo noise\n", encoding="utf-8")
    assert opened(**own.section).run("echo \"it's\" '$x' !y")["stdout"] == "it's $x !y\n"


@pytest.mark.parametrize("startup", BROKEN)
def test_a_login_shell_that_runs_no_command_is_named(start, own, work, startup, monkeypatch):
    if "cat" in startup:
        monkeypatch.setattr(_ssh_channel, "_CONNECT_SECONDS", 0.5)
    own.login = started_by(startup)
    shells = {"box": {"cwd": work, **own.section}}
    result = start(linux=lambda _: FINISH, servers=(), shells=shells).submit(lone("linux/box")).result(60)
    assert re.search(BROKEN[startup], result.causes[0].reason), result.causes


def test_a_login_shell_that_ends_before_any_input_is_named(start, own, work, monkeypatch):
    connection = pytest.importorskip("asyncssh").SSHClientConnection
    create = connection.create_process

    async def create_and_wait(*args, **options):
        process = await create(*args, **options)
        await process.wait_closed()
        return process

    monkeypatch.setattr(connection, "create_process", create_and_wait)
    own.login = started_by("exit 7")
    shells = {"box": {"cwd": work, **own.section}}
    result = start(linux=lambda _: FINISH, servers=(), shells=shells).submit(lone("linux/box")).result(60)
    assert re.search(BROKEN["exit 7"], result.causes[0].reason), result.causes


def test_the_login_shell_is_started_once_per_connection(opened, own):
    box = opened(**own.section)
    box.run("cd /; echo one")
    box.do("write_file", path="a.txt", text="x" * 100_000)
    box.do("search", text="x", path=str(box.work))
    handle = box.do("start", command="sleep 60", cwd=str(box.work))["handle"]
    box.do("stop", handle=handle)
    assert own.logins == 1
    own.stop()
    own.start()
    assert box.run("echo two")["stdout"] == "two\n"
    assert own.logins == 2


def test_a_wait_yields_to_a_cancel_on_the_same_channel(opened, own):
    box = opened(**own.section)
    shell = box.surface._shell("box")
    process = shell.process("call")
    shell.begin("call", "sleep 1000", box.work, 2000, exported={})

    async def follow():
        end = asyncio.create_task(process.ended())
        await asyncio.to_thread(until, lambda: shell._link._channels[0]._pending)
        await asyncio.to_thread(process.cancel)
        return await end

    assert asyncio.run(follow()).why == "cancelled"
    assert own.logins == 1


def test_a_slow_search_delays_no_other_operation(opened, own):
    box = opened(**own.section)
    box.do("list_dir")
    (script,) = own.home.rglob("*.sh")
    (script.parent / "real.sh").write_bytes(script.read_bytes())
    blocked = f'[ $1 = search ] && cat {own.home}/pipe\nexec sh {script.parent}/real.sh "$@"\n'
    script.write_text(blocked, encoding="utf-8")
    os.mkfifo(own.home / "pipe")

    async def both():
        search = asyncio.create_task(asyncio.to_thread(box.do, "search", text="x"))
        with await asyncio.to_thread((own.home / "pipe").open, "wb"):  # the search has begun
            assert await asyncio.to_thread(box.do, "list_dir") is not None
            assert not search.done()
        return await search

    assert asyncio.run(both())["lines"] == 0
    assert own.logins == 2


def test_a_killed_script_loses_no_command_and_repeats_none(opened, own):
    box = opened(**own.section)
    shell = box.surface._shell("box")
    shell.begin(
        "call", "echo once >>count; while [ ! -e go ]; do sleep 0.02; done; echo end", box.work, 2000, exported={}
    )
    for pid in served(str(own.home)):
        os.kill(pid, signal.SIGKILL)
    (box.work / "go").touch()
    assert asyncio.run(shell.process("call").ended()).out.tail == b"end\n"
    assert (box.work / "count").read_text(encoding="utf-8") == "once\n"
    assert own.logins == 2


@pytest.mark.parametrize("cut", ["'tou", "x 30 0\n'call_off' 'folder'", "x 40 9\n'put' 'made'"])
def test_an_operation_that_comes_in_part_is_not_run(tmp_path, cut):
    script = Path(_ssh_channel.__file__).with_name("_remote.sh")
    done = subprocess.run(
        ["/bin/bash", script, "serve", "end"],
        input=cut.encode(),
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (0 if cut == "'tou" else 1)
    assert b"\nx " not in done.stdout
    assert not [*tmp_path.iterdir()]
