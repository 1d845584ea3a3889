"""The isolation of commands, by bubblewrap where available."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import write_own
from callboard.surfaces.shell._seccomp import seccomp_program

if TYPE_CHECKING:
    from collections.abc import Sequence

_READABLE = ("/usr", "/etc/ssl", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ca-certificates")
_HIDDEN = ("/etc/ssl/private",)
"""Folders with keys that root can read."""
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_SECONDS = 10.0
_MOUNT_FIELDS = 6
_FILTERED = 'exec "$@" 9<"$0"'
_READ_ONLY = "{mount} -n -o bind,ro {path} {path} || exit 1"
_ALL = ("--unshare-all",)
_ALL_BUT_USER = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
_NO_POWER = {
    **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), "0"),
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
"""The status of a process that can't get rights back."""


def why_not() -> str:
    """Explain why commands can't be isolated here; empty if they can.

    The result of the trial is cached for the process.
    """
    return _available_namespaces()[1]


@functools.cache
def _available_namespaces() -> tuple[tuple[str, ...], str]:
    """Try to isolate a command.

    Returns:
        The namespaces that are available, and the reason if there are not enough.
    """
    if shutil.which("bwrap") is None:
        return _ALL, "the program 'bwrap' is missing"
    if seccomp_program() is None:
        return _ALL, f"Callboard has no filter of system calls for {platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="callboard-") as folder:
        why = _trial(_ALL, Path(folder))
        # root needs no user namespace for the other ones; anybody else does
        if why and os.geteuid() == 0 and not _trial(_ALL_BUT_USER, Path(folder)):
            return _ALL_BUT_USER, ""
    return _ALL, why


def _trial(namespaces: Sequence[str], folder: Path) -> str:
    words = _sandbox(namespaces, Path("/usr"), Path("/usr"), (), network=False, folder=folder)
    try:
        trial = subprocess.run(  # a fixed command
            [*words, "cat", "/proc/self/status", "/proc/self/mountinfo"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run: {error}"
    if trial.returncode:
        error_text = trial.stderr.decode(errors="replace").strip()
        return f"bwrap does not run: {error_text}; allow user namespaces to this user, or to this container"
    return excess_rights(trial.stdout.decode(errors="replace"))


def excess_rights(proc_text: str) -> str:
    """Name the rights that an isolated process has kept.

    Args:
        proc_text: The content of its ``/proc/self/status`` and ``/proc/self/mountinfo``.

    Returns:
        The reason not to trust the sandbox; empty if it holds.
    """
    lines = proc_text.splitlines()
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    rights = [
        f"{name} is {fields.get(name, 'missing')}"
        for name, value in _NO_POWER.items()
        if (fields.get(name, "").lstrip("0") or "0" * (name in fields)) != value
    ]
    mounts = [words for words in map(str.split, lines) if len(words) > _MOUNT_FIELDS]
    rights += [
        f"{words[4]} can be changed" for words in mounts if words[4] in _owned() and "ro" not in words[5].split(",")
    ]
    if not rights:
        return ""
    return (
        f"bwrap leaves an isolated command rights with which it could leave the sandbox ({', '.join(rights)}): "
        "use a newer bubblewrap, or run Callboard as another user than root"
    )


def sandbox(workspace: Path, cwd: Path, writable: Sequence[Path], *, network: bool, folder: Path) -> list[str]:
    """Return the command prefix that isolates a command.

    The command can access the system's programs and the workspace, but no home, settings, journal or other processes,
    and no network unless `network` is true. It has no capabilities, and gets none by any program.

    Args:
        workspace: The folder that the command may change.
        cwd: The working directory.
        writable: Further folders that the command may change.
        network: Whether the command can use the network.
        folder: A folder of this program, for the filter of system calls.
    """
    return _sandbox(_available_namespaces()[0], workspace, cwd, writable, network=network, folder=folder)


def _sandbox(
    namespaces: Sequence[str], workspace: Path, cwd: Path, writable: Sequence[Path], *, network: bool, folder: Path
) -> list[str]:
    words = [
        *_start(),
        str(_filter_in(folder)),
        shutil.which("bwrap") or "/usr/bin/bwrap",
        "--die-with-parent",
        "--new-session",
        *namespaces,
    ]
    words += ["--seccomp", "9"]
    words += ["--cap-drop", "ALL"] if os.geteuid() == 0 else []  # others have none; a setuid bwrap refuses the option
    words += ["--share-net"] if network else []
    for path in (*_READABLE, *(_NETWORK if network else ())):
        words += ["--ro-bind-try", path, path]
    for path in _HIDDEN:
        words += ["--tmpfs", path] if Path(path).is_dir() else []
    for name in _TOP:
        top = Path(name)
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), name]
        elif top.exists():
            words += ["--ro-bind", name, name]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - private to the sandbox
    words += ["--remount-ro", "/proc"]  # its files belong to root, which needs no capability to write them
    for path in (workspace, *writable):
        words += ["--bind", str(path), str(path)]
    return [*words, "--chdir", str(cwd), "--"]


def _owned() -> list[str]:
    """Return the device nodes that belong to this user, which is root."""
    return [path for path in _DEVICES if Path(path).exists() and Path(path).stat().st_uid == os.geteuid()]


def _start() -> list[str]:
    """Return the words that start bwrap, with the filter as descriptor 9."""
    owned = _owned()
    if not owned:
        return ["/bin/sh", "-c", _FILTERED]
    # The owner of a device node, root, could change the mode of the machine's own node. bwrap can bind it read-only
    # only without access to the device, but it keeps the flag of a mount that is read-only before.
    # Both programs run outside the sandbox: they are not looked up in the command's PATH, which may have the workspace.
    unshare, mount = (shutil.which(name) or f"/usr/bin/{name}" for name in ("unshare", "mount"))
    script = "\n".join((*(_READ_ONLY.format(mount=shlex.quote(mount), path=path) for path in owned), _FILTERED))
    return [unshare, "--mount", "--propagation", "slave", "/bin/sh", "-c", script]


def _filter_in(folder: Path) -> Path:
    """Return the file of the filter, written at the first use."""
    path, program = folder / "seccomp", seccomp_program() or b""
    if not path.is_file() or path.read_bytes() != program:
        write_own(path, program)
    return path
