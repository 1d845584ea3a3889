"""The sandbox of commands: attacks from inside, and the refusal where it would not hold."""

from __future__ import annotations

import os
import platform
import socket
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from callboard import Outcome, Settings, Supervisor
from callboard.console import ConsoleServer
from callboard.messages import SettingsError
from callboard.surfaces.shell import _isolation
from callboard.surfaces.shell._isolation import excess_rights, why_not
from callboard.surfaces.shell._seccomp import seccomp_program
from support import FINISH, PATIENCE, call, lone

isolating = pytest.mark.skipif(bool(why_not()), reason=why_not() or "commands are isolated")
NAMESPACES = [
    pytest.param(_isolation._ALL, id="user namespace"),
    pytest.param(
        _isolation._ALL_BUT_USER,
        id="root without a user namespace",
        marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gets the other namespaces alone"),
    ),
]
ATTACKS = {
    "make /usr writable": "mount -o remount,rw,bind /usr",
    "unmount /usr": "umount /usr",
    "mount another /proc": "mount -t proc proc /tmp",
    "mount /sys": "mount -t sysfs sysfs /tmp",
    "write to /usr": "touch /usr/callboard-probe",
    "write to /etc/ssl": "touch /etc/ssl/callboard-probe",
    "change the root": "chroot / true",
    "a user namespace": "unshare --user true",
    "a mount namespace": "unshare --mount true",
    "a user namespace with a root": "unshare --map-root-user --mount mount -o remount,rw,bind /usr",
    "enter a namespace": "nsenter --mount=/proc/1/ns/mnt true",
    "a block device": "mknod disk b 8 0",
    "a character device": "mknod null c 1 3",
    "a sysctl": "test -w /proc/sys/kernel/core_pattern",
    "sysrq": "test -w /proc/sysrq-trigger",
    "the mode of a file of the kernel": 'chmod "$(stat -c %a /proc/version)" /proc/version',
    "keys of the machine": "ls /etc/ssl/private/* >/dev/null",
    "a process outside": "kill -0 {outside}",
    "the root of a process outside": "ls /proc/{outside}/root",
    "the home by process 1": "ls /proc/1/root/root /proc/1/root/home",
    "more rights by a program": 'su -c true || sudo -n true || test "$(id -u)" != {user}',
    "a capability by a program": "capsh --has-p=cap_sys_admin || setpriv --inh-caps=+all true",
    "a set-user-ID program": "cp /bin/true program && chmod u+s program",
    "a set-group-ID program": "install -m 2755 /bin/true installed",
    "a socket of the machine": "perl -MSocket -e '{connect}'",
    "mount over /usr": "mount -t tmpfs none /usr",
}
CONNECT = 'socket(S, AF_UNIX, SOCK_STREAM, 0); exit !connect(S, pack_sockaddr_un("\\0{}"))'
CALLS = r"""
import ctypes, errno, fcntl, os, pty, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
program = ctypes.create_string_buffer(open(sys.argv[1], "rb").read())
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]
terminal = pty.openpty()[1]
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, ctypes.byref(Filter((len(program) - 1) // 8, ctypes.addressof(program))), 0, 0)
def tell(name, call, *arguments):
    try:
        result = call(*arguments)
    except OSError as error:
        print(name, errno.errorcode[error.errno])
    else:
        print(name, "done" if result != -1 else errno.errorcode[ctypes.get_errno()])
open("plain", "w").close()
new = os.O_CREAT | os.O_WRONLY
tell("chmod", os.chmod, "plain", 0o4755)
tell("fchmod", os.chmod, os.open("plain", os.O_RDONLY), 0o2755)
tell("fchmodat", lambda: os.chmod("plain", 0o6755, dir_fd=os.open(".", os.O_RDONLY)))
tell("open", os.open, "setuid", new, 0o4755)
tell("temporary", os.open, ".", os.O_TMPFILE | os.O_RDWR, 0o2700)
tell("mknod", os.mknod, "node", 0o104755)
tell("plain mode", os.chmod, "plain", 0o1755)
tell("plain open", os.open, "new", new, 0o755)
tell("old open", os.open, "plain", os.O_RDONLY, 0o4755)
tell("namespace", libc.unshare, 0x10000000)
tell("clone", libc.syscall, {"x86_64": 56}.get(os.uname().machine, 220), 0x10000011, 0, 0, 0, 0)
tell("clone3", libc.syscall, 435, 0, 0)
tell("openat2", libc.syscall, 437, 0, 0, 0, 0)
tell("io_uring", libc.syscall, 425, 1, 0)
tell("keyring", libc.syscall, {"x86_64": 250}.get(os.uname().machine, 219), 0, -3, 0)
tell("terminal", fcntl.ioctl, terminal, 0x5412, b"x")
tell("size", fcntl.ioctl, terminal, 0x5413, bytes(8))
for family in (1, 2, 10, 16, 17, 38, 40):
    tell(f"family {family}", socket.socket, family, socket.SOCK_DGRAM if family != 38 else socket.SOCK_SEQPACKET)
if not os.fork():
    os._exit(0)
tell("fork", os.wait)
"""


@pytest.fixture(autouse=True)
def no_trial_is_kept():
    yield
    _isolation._available_namespaces.cache_clear()


@pytest.fixture
def inside(work, tmp_path):
    """Run a script for bash in the sandbox; gives its output."""

    def run(namespaces, script, *, network=False):
        words = _isolation._sandbox(namespaces, work, work, (), network=network, folder=tmp_path)
        ended = subprocess.run(
            [*words, "/bin/bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@isolating
@pytest.mark.parametrize("namespaces", NAMESPACES)
def test_no_attack_from_inside_reaches_the_machine(inside, namespaces):
    name = f"callboard-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(f"\0{name}")
        outside.listen()
        told = {"outside": os.getpid(), "user": os.geteuid(), "connect": CONNECT.format(name)}
        tries = [f"{{ {attack.format(**told)}; }} 2>/dev/null && echo '{why}'" for why, attack in ATTACKS.items()]
        assert inside(namespaces, "\n".join((*tries, "true"))) == ""


@isolating
@pytest.mark.parametrize("namespaces", NAMESPACES)
def test_only_the_workspace_is_mounted_to_be_written(inside, work, namespaces):
    mounts = [line.split() for line in inside(namespaces, "cat /proc/self/mountinfo").splitlines()]
    writable = {fields[4]: fields[fields.index("-") + 1] for fields in mounts if "rw" in fields[5].split(",")}
    own = {place for place, kind in writable.items() if kind in {"tmpfs", "devpts"}}
    assert own <= {"/", "/dev", "/dev/pts", "/tmp", *_isolation._HIDDEN}  # noqa: S108 - the sandbox's own
    shared = writable.keys() - own
    owned = {"/dev/null"} if Path("/dev/null").stat().st_uid == os.geteuid() else set()
    assert str(work) in writable
    assert not shared & owned
    assert all(place == str(work) or stat.S_ISCHR(Path(place).stat().st_mode) for place in shared)


@isolating
@pytest.mark.parametrize("namespaces", NAMESPACES)
def test_isolated_commands_use_devices_and_processes(inside, namespaces):
    script = "head -c 3 /dev/urandom | wc -c; echo x >/dev/null && cat <(echo piped); (sleep 0 & wait) && echo forked"
    assert inside(namespaces, script) == "3\npiped\nforked\n"


@pytest.mark.skipif(seccomp_program() is None, reason="there is no filter for this machine")
def test_the_filter_refuses_exactly_what_it_names(tmp_path):
    (tmp_path / "filter").write_bytes(seccomp_program())
    script = [sys.executable, "-I", "-S", "-c", CALLS, "filter"]
    ended = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == ""
    told = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    refused = dict.fromkeys(
        ("chmod", "fchmod", "fchmodat", "open", "temporary", "mknod", "namespace", "clone", "terminal"), "EPERM"
    )
    missing = dict.fromkeys(("clone3", "openat2", "io_uring", "keyring"), "ENOSYS")
    families = {f"family {family}": "done" for family in (1, 2, 10, 16)}
    others = {f"family {family}": "EAFNOSUPPORT" for family in (17, 38, 40)}
    usual = dict.fromkeys(("plain mode", "plain open", "old open", "size", "fork"), "done")
    assert told == {**refused, **missing, **families, **others, **usual}


def test_another_machine_has_its_own_filter_or_none():
    programs = {machine: seccomp_program(machine) for machine in ("x86_64", "aarch64", "riscv64", "s390x")}
    assert programs["s390x"] is None
    assert len({programs["x86_64"], programs["aarch64"], programs["riscv64"]}) == 3
    assert seccomp_program() == programs.get(platform.machine())


@isolating
def test_an_agent_with_all_permissions_changes_nothing_outside(start, work):
    probe = Path("/usr/callboard-probe")
    attack = f"mount -o remount,rw,bind /usr && touch {probe}"
    results = []

    def model(request):
        results[:] = [result for record in request.memory for result in record.results]
        return FINISH if results else call("run", command=attack)

    shells = {"box": {"cwd": work, "isolated": True}}
    with_all = start(linux=model, servers=(), shells=shells, policy=[{"verdict": "allow"}])
    try:
        assert with_all.submit(lone("linux/box")).result(60).outcome is Outcome.FINISHED
        assert results[0].value["exit_code"] != 0
        assert not probe.exists()
    finally:
        probe.unlink(missing_ok=True)


@isolating
def test_no_program_of_the_workspace_is_started_outside_the_sandbox(opened, work, tmp_path):
    box = opened(env={"PATH": f"{work}:/usr/bin:/bin"})
    for name in ("unshare", "mount", "sh", "bwrap", "cat"):
        (work / name).write_text(f"#!/bin/bash\n/usr/bin/touch {tmp_path}/escaped {work}/ran\n", encoding="utf-8")
        (work / name).chmod(0o755)
    box.run("cat x")
    assert (work / "ran").exists()
    assert not (tmp_path / "escaped").exists()


@isolating
def test_no_library_of_the_workspace_is_loaded_outside_the_sandbox(opened, work):
    box = opened(env={"LD_PRELOAD": f"{work}/any.so", "TOKEN": "a 'b'"})
    outside = box.run(":")["stderr"].count("LD_PRELOAD")
    assert outside <= 1  # of the program that deletes the file with the variables, in the sandbox
    assert box.run('echo "$TOKEN $LD_PRELOAD $HOME $LANG"')["stdout"] == f"a 'b' {work}/any.so /tmp C.UTF-8\n"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "NoNewPrivs is 0.*another user than root"),
        ("echo no namespaces >&2; exit 1", "bwrap does not run: no namespaces; allow user namespaces"),
    ],
)
def test_a_sandbox_that_does_not_hold_is_refused(work, tmp_path, monkeypatch, opened, program, reason):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    _isolation._available_namespaces.cache_clear()
    begin = partial(Supervisor.start, Settings.load(shells={"box": {"cwd": work, "isolated": True}}))
    with pytest.raises(SettingsError, match=f"isolation of commands .*{reason}") as refusal:
        begin(models={})
    assert "apt-get" not in str(refusal.value)
    assert opened().look().window["isolation"].startswith("none: ")


def test_rights_that_are_kept_are_named():
    status = "CapInh:\t00\nCapPrm:\t0f\nCapEff:\t00\nCapAmb:\t00\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    assert "CapPrm is 0f)" in excess_rights(status)
    assert excess_rights(status.replace("0f", "0000")) == ""
    assert "Seccomp is missing" in excess_rights("")


@pytest.mark.skipif(Path("/dev/null").stat().st_uid != os.geteuid(), reason="only its owner can change a device node")
def test_a_device_node_that_root_could_change_is_named():
    status = "CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    mount = "77 76 0:6 /null /dev/null {},nosuid,relatime - devtmpfs devtmpfs rw\n"
    assert "(/dev/null can be changed)" in excess_rights(status + mount.format("rw"))
    assert excess_rights(status + mount.format("ro")) == ""


def test_isolated_command_reads_no_key_of_a_console_and_reaches_no_port(tmp_path):
    if _isolation.why_not():
        pytest.skip(_isolation.why_not())
    workspace, key = tmp_path / "workspace", tmp_path / "journal.db.console-key"
    workspace.mkdir()
    console = ConsoleServer(tmp_path / "journal.db", port=0)
    console.start()
    tries = f"cat {key}; ls {key.parent}; exec 3<>/dev/tcp/127.0.0.1/{console.port} && echo connected"
    words = _isolation.sandbox(workspace, workspace, (), network=False, folder=tmp_path)
    outside, inside = (
        subprocess.run([*prefix, "bash", "-c", tries], capture_output=True, timeout=PATIENCE, check=False)
        for prefix in ((), words)
    )
    console.stop()
    texts = (key.read_bytes(), key.name.encode(), b"connected")
    assert [text in outside.stdout for text in texts] == [True] * 3
    assert [text in inside.stdout for text in texts] == [False] * 3
