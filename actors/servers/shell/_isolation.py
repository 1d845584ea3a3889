"""The isolation of commands, by bubblewrap where available."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_READABLE = ("/usr", "/etc/ssl", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ca-certificates")
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SECONDS = 10.0


@functools.cache
def why_not() -> str:
    """Explain why commands can't be isolated here; empty if they can.

    The result of the trial is cached for the process.
    """
    if shutil.which("bwrap") is None:
        return "the program 'bwrap' is missing"
    try:
        tried = subprocess.run(  # a fixed command
            [*sandbox(Path("/usr"), Path("/usr"), (), network=False), "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run: {error}"
    return "" if tried.returncode == 0 else f"bwrap does not run: {tried.stderr.decode(errors='replace').strip()}"


def sandbox(workspace: Path, cwd: Path, writable: Sequence[Path], *, network: bool) -> list[str]:
    """Return the command prefix that isolates a command.

    The command can access the system's programs and the workspace, but no home, settings, journal or other processes,
    and no network unless `network` is true.

    Args:
        workspace: The folder that the command may change.
        cwd: The working directory.
        writable: Further folders that the command may change.
        network: Whether the command can use the network.
    """
    words = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--unshare-all"]
    words += ["--share-net"] if network else []
    for path in (*_READABLE, *(_NETWORK if network else ())):
        words += ["--ro-bind-try", path, path]
    for name in _TOP:
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), name]
        elif path.exists():
            words += ["--ro-bind", name, name]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - private to the sandbox
    for each in (workspace, *writable):
        words += ["--bind", str(each), str(each)]
    return [*words, "--chdir", str(cwd), "--"]
