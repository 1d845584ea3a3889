"""Child processes of MCP servers: none survives its server, however it was detached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from callboard import Outcome, Task
from callboard.actors.commands.mcp import McpSession, _reaper, _transport
from callboard.config import McpServer, Settings
from support import PATIENCE

linux = pytest.mark.skipif(sys.platform != "linux", reason="subreapers are a feature of Linux")
PROGRAM = """
import json, os, signal, subprocess, sys

def answer(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)

def child(detached):
    \"\"\"Start a process that ignores all signals it can, and holds the output open.\"\"\"
    read, write = os.pipe()
    if os.fork() == 0:
        if detached and (os.setsid() or os.fork()):
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.write(write, str(os.getpid()).encode())
        os.execlp("sleep", "sleep", "100000")
    if detached:
        os.wait()
    return int(os.read(read, 20))

for line in sys.stdin:
    match json.loads(line):
        case {"method": "initialize", "id": number, "params": {"protocolVersion": version}}:
            info = {"name": "raw", "version": "1"}
            answer(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case {"method": "tools/list", "id": number}:
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("spawn", "leave")]
            answer(number, {"tools": tools})
        case {"method": "tools/call", "id": number, "params": {"name": "spawn"}}:
            pids = [os.getpid(), child(False), child(True)]
            answer(number, {"content": [], "structuredContent": {"pids": pids}})
        case {"method": "tools/call", "params": {"name": "leave"}}:
            os._exit(3)
        case {"id": number}:
            print(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}), flush=True)
"""
SERVER = {"command": sys.executable, "args": ["-I", "-S", "-c", PROGRAM], "surface": False}


@asynccontextmanager
async def opened():
    session = McpSession("raw", McpServer.model_validate(SERVER), Settings.load())
    await session.open()
    try:
        yield session
    finally:
        await session.close()


def runs(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture
def ends():
    """Wait until a process has ended; those that have not are killed afterwards."""
    pids = []

    def wait(pid):
        pids.append(pid)
        end = time.monotonic() + PATIENCE
        while runs(pid) and time.monotonic() < end:
            time.sleep(0.01)
        return not runs(pid)

    yield wait
    for pid in filter(runs, pids):
        os.kill(pid, signal.SIGKILL)


@linux
async def test_no_child_survives_a_server_that_is_stopped(ends):
    async with opened() as session:
        pids = (await session.call("spawn", {}))["pids"]
        assert all(map(runs, pids))
    assert all(map(ends, pids))


@linux
def test_a_dead_server_is_noticed_though_its_child_holds_its_output(start, ends):
    """The call has the patience of the whole test suite, and does not wait for it."""
    pids, notes = [], []

    def app(request):
        notes.append(request.observation.notes)
        pids.extend(pid for step in request.memory[-1:] for result in step.results for pid in result.value or ())
        calls = ["raw.spawn", "raw.leave", "raw.spawn"]
        return {"Status": ["CONTINUE", "CONTINUE", "FINISH"][request.call - 1], "Function": calls[request.call - 1]}

    supervisor = start(app=app, mcpServers={"raw": SERVER}, policy=[{"verdict": "allow", "tool": "raw.*"}])
    result = supervisor.submit(Task(request="work", target="memo:one")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert any("went away during the call: whether it was done is in doubt" in note for note in notes[2])
    assert supervisor.stop() == ()
    assert all(map(ends, result.output["pids"]))


@pytest.mark.skipif(os.name == "nt", reason="there are no process groups")
async def test_without_a_reaper_the_servers_group_ends_with_it(ends, monkeypatch, dispatch, command):
    monkeypatch.setattr(_transport, "_CAN_REAP", False)
    async with opened() as session:
        server, child, detached = (await session.call("spawn", {}))["pids"]
        (result,) = await dispatch(session, command("raw.leave"))
        assert result.in_doubt
        assert ends(server)
        assert ends(child)
    os.kill(detached, signal.SIGKILL)


@linux
def test_a_reaper_kills_all_when_its_host_dies(ends, tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    shell = f"setsid sh -c 'trap \"\" TERM; echo $$ > {pids}; exec sleep 100000' & exec sleep 100000"
    reaper = [sys.executable, _reaper.__file__, "0.1", "sh", "-c", shell]
    code = f"import subprocess; subprocess.run({reaper})"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) as host:
        pid = int(pids.read_text(encoding="utf-8"))
        host.kill()
        assert ends(pid)


SIGNALLED_TWICE = """
import os, runpy, signal, sys
reaper = runpy.run_path(sys.argv[1])
real = reaper["_stop"]

def twice(*given):
    try:
        real(*given)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)

reaper["main"].__globals__["_stop"] = twice
reaper["main"](0.1, ["sh", "-c", sys.argv[2]])
"""


@linux
def test_reaper_kills_all_programs_when_terminated_twice(ends, tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    shell = f"setsid sh -c 'trap \"\" TERM; echo $$ > {pids}; exec sleep 100000' & exec sleep 100000"
    with subprocess.Popen([sys.executable, "-I", "-c", SIGNALLED_TWICE, _reaper.__file__, shell]) as reaper:
        pid = int(pids.read_text(encoding="utf-8"))
        reaper.terminate()
        assert ends(pid)


@linux
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV), ("kill -9 $$", -9)])
def test_a_reaper_ends_as_its_program_does(script, code):
    ended = subprocess.run([sys.executable, _reaper.__file__, "1", "sh", "-c", script], check=False, timeout=PATIENCE)
    assert ended.returncode == code


@linux
def test_a_program_that_cannot_be_started_is_named(tmp_path):
    program = tmp_path / "server"
    program.write_text("")
    ended = subprocess.run(
        [sys.executable, _reaper.__file__, "1", program], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (127, f"{program}: Permission denied\n")
