"""A private desktop outlives the program that started it for a while, and leaves nothing when it ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import forks
from callboard.surfaces import ToolError
from callboard.surfaces.desktop._processes import environment_of, is_alive
from callboard.surfaces.desktop._session import Session
from support import PATIENCE

DETACHED = """
setsid sleep 3600 &
(sleep 3600 &)
env -i setsid sleep 3600 &
trap '' TERM
setsid sh -c 'sleep 3600; :' &
"""
"""Starts programs that leave their parent, their session or their environment, or don't listen."""
HOST = """
import os, sys
from pathlib import Path
from callboard.surfaces.desktop._session import Session
session = Session(Path(sys.argv[1]), grace=float(sys.argv[2]), size="640x480", folder=Path.cwd())
print(json.dumps(session._facts))
print(session.start(["sh", "-c", sys.argv[3]], {}), flush=True)
while not os.path.exists("started"):
    pass
os.kill(os.getpid(), 9)
""".replace("import os", "import json, os")
STRANGER = """
import os, socket, sys
from Xlib.display import Display
from Xlib.error import DisplayError
from Xlib.support import unix_connect  # what it needs is imported before it may read no files any more
display, *sockets = sys.argv[1:]
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    Display(display)
except DisplayError:
    print("refused")
for path in sockets:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
    except PermissionError:
        print("refused")
"""


@pytest.fixture(autouse=True)
def programs(requires):
    requires()


@pytest.fixture
def opened(tmp_path):
    """Open private desktops, and end them after the test."""
    sessions = []

    def opened(record="session.json", grace=60.0, folder=tmp_path):
        sessions.append(Session(tmp_path / record, grace=grace, size="640x480", folder=folder))
        return sessions[-1]

    yield opened
    for session in sessions:
        session.end()


def killed_host(folder, grace, command):
    """Have a program start a desktop and another program on it, and be killed; gives its report on both."""
    arguments = [sys.executable, "-c", HOST, str(folder / "session.json"), str(grace), command]
    done = forks.run(arguments, timeout=PATIENCE, cwd=folder)
    assert done.returncode == -signal.SIGKILL, done.stderr
    told, program = done.stdout.splitlines()
    return json.loads(told), int(program)


def left_of(told, folder):
    """Name the remains of a desktop: processes that have its folder or its environment, and files."""
    runtime, number = Path(told["runtime"]), told["environment"]["DISPLAY"][1:]
    files = [runtime, Path(f"/tmp/.X11-unix/X{number}"), folder / "session.json"]  # noqa: S108
    found = [str(each) for each in files if each.exists()]
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            marked = str(runtime) in environment_of(int(each.name)).get("XDG_RUNTIME_DIR", "")
            if (marked or (each / "cwd").readlink() == folder) and is_alive(int(each.name)):
                found.append((each / "cmdline").read_text().replace("\0", " "))
    return [*found, *(["its holder"] if is_alive(told["pid"]) else [])]


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it never becomes so"
        time.sleep(0.02)


def test_desktop_outlives_a_killed_process_and_the_next_one_adopts_it(tmp_path, opened):
    told, program = killed_host(tmp_path, 60, f"{DETACHED}touch started; exec sleep 3600")
    session = opened()
    assert (session.adopted, session.pid, session.environment) == (True, told["pid"], told["environment"])
    assert is_alive(program)
    session.end()
    assert left_of(told, tmp_path) == []


def test_desktop_ends_with_its_programs_when_no_process_adopts_it(tmp_path):
    told, _ = killed_host(tmp_path, 0.1, f"{DETACHED}touch started; exec sleep 3600")
    until(lambda: not left_of(told, tmp_path))


def test_its_end_leaves_no_process_and_no_file_at_once(tmp_path, opened):
    session = opened()
    session.start(["sh", "-c", f"{DETACHED}touch started; exec sleep 3600"], {})
    until((tmp_path / "started").exists)
    told = session._facts
    assert len(left_of(told, tmp_path)) > 8
    session.end()
    assert left_of(told, tmp_path) == []


def test_two_desktops_are_isolated_from_each_other(opened):
    one, other = opened("one.json"), opened("other.json")
    assert one.environment["DISPLAY"] != other.environment["DISPLAY"]
    one.end()
    assert other.start(["true"], {})


def test_existing_desktop_is_adopted_and_not_started_again(opened):
    first = opened()
    assert not first.adopted
    assert (opened().pid, opened().adopted) == (first.pid, True)


RUBBISH = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "other facts": '{"pid": 1}',
    "no texts": '{"runtime": 3, "environment": {"DISPLAY": ":9"}}',
    "a foreign folder": '{"pid": 1, "runtime": "FOLDER/mine", "environment": {"DISPLAY": ":9"}}',
    "no display": '{"pid": 1, "runtime": "FOLDER/callboard-desktop-x", "environment": {"DISPLAY": "../x"}}',
}


@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH)
def test_a_record_of_anything_else_is_replaced_and_nothing_removed(opened, tmp_path, rubbish):
    for name in ("mine", "callboard-desktop-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "session.json").write_text(rubbish.replace("FOLDER", str(tmp_path)))
    session = opened()
    assert json.loads((tmp_path / "session.json").read_text())["pid"] == session.pid
    assert (tmp_path / "mine").exists()
    assert (tmp_path / "callboard-desktop-x").exists()


@pytest.mark.parametrize("open_again", [True, False], ids=["the next one", "its end"])
def test_programs_of_a_killed_holder_are_ended(opened, tmp_path, open_again):
    session = opened()
    session.start(["sh", "-c", "setsid sleep 3600 & touch started; exec sleep 3600"], {})
    until((tmp_path / "started").exists)
    os.kill(session.pid, signal.SIGKILL)
    with pytest.raises(ToolError, match="the private desktop has ended, with all its windows"):
        session.start(["true"], {})
    if open_again:
        again = opened()
        assert not again.adopted
        again.end()
    session.end()
    assert left_of(session._facts, tmp_path) == []


def test_client_that_sends_nonsense_is_disconnected_and_others_are_served(opened):
    session = opened()
    for said in (b"rubbish\n", b"[]\n", b"{}\n", b'{"do": "start"}\n', b"\xff\n"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(PATIENCE)
            stranger.connect(f"{session._facts['runtime']}/run/callboard")
            stranger.sendall(said)
            assert stranger.recv(1) == b""
        assert session.start(["true"], {})


def test_it_remembers_which_calls_have_started_programs(opened):
    first = opened()
    first.start(["true"], {}, "t~0.1.0")
    assert [first.has_started(call) for call in ("t~0.1.0", "t~0.2.0")] == [True, None]
    adopted = opened()
    assert [adopted.has_started(call) for call in ("t~0.1.0", "t~0.2.0")] == [True, False]


def test_missing_program_gives_a_clear_error(opened):
    with pytest.raises(ToolError, match="no-such-program: No such file or directory"):
        opened().start(["no-such-program"], {})


def test_another_user_reaches_neither_the_display_nor_the_bus(opened):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    session = opened()
    folder = session.environment["XDG_RUNTIME_DIR"]
    arguments = [sys.executable, "-c", STRANGER, session.environment["DISPLAY"], f"{folder}/bus", f"{folder}/callboard"]
    done = forks.run(arguments, timeout=PATIENCE)
    assert done.stdout.split() == ["refused"] * 3, done.stderr


def test_desktop_has_no_listening_network_socket(opened):
    session = opened()
    session.start(["sleep", "3600"], {})
    tables = [Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    ports = {f"socket:[{line.split()[9]}]" for lines in tables for line in lines}
    held = set()
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if session._facts["runtime"] in environment_of(int(each.name)).get("XDG_RUNTIME_DIR", ""):
                held |= {str(fd.readlink()) for fd in (each / "fd").iterdir()}
    assert any("socket" in name for name in held)
    assert not held & ports


def test_programs_offer_the_folder_for_what_they_save(opened, tmp_path):
    folder = tmp_path / 'a "folder" & $more'
    folder.mkdir()
    session = opened(folder=folder)
    environment = environment_of(session.start(["sleep", "3600"], {}))
    home = Path(environment["HOME"])
    dirs = home / ".config" / "user-dirs.dirs"
    read = f'. {dirs}; printf "%s|" "$XDG_DOCUMENTS_DIR" "$XDG_DOWNLOAD_DIR" "$XDG_DESKTOP_DIR"'
    assert (
        subprocess.run(["/bin/sh", "-c", read], capture_output=True, text=True, check=True).stdout == f"{folder}|" * 3
    )
    (office,) = home.glob(".config/libreoffice/**/*.xcu")
    assert ET.parse(office).find(".//value").text == folder.as_uri()  # noqa: S314 - our own


def test_programs_do_not_inherit_this_program_s_environment(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "correct horse")
    opened().start(["sh", "-c", "env > new; mv new told"], {"GIVEN": "yes"})
    until((tmp_path / "told").exists)
    told = dict(line.split("=", 1) for line in (tmp_path / "told").read_text().splitlines() if "=" in line)
    assert told["GIVEN"] == "yes"
    assert "SOME_API_KEY" not in told
    assert told["HOME"] != os.environ["HOME"]
