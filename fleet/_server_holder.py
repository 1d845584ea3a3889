"""Hold one server of NATS, which ends with its program.

Started by `_private_server`; it imports nothing of this package. Its arguments are the folder of the server's store,
`delete` or `keep` for what becomes of the folder, and the server's command. When its standard input ends, because the
program that started it closed it or was killed, it ends the server, and deletes a temporary folder.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

if sys.platform != "win32":
    import fcntl

_DEATH_SIGNAL = 1  # of prctl
_STOP_SECONDS = 10.0


def _end_with_this_process() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _wait_for_earlier(folder: str) -> None:
    """Wait until no other holder has the store.

    That of a program that was killed is about to end.
    """
    if sys.platform != "win32":
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)  # until this process ends


def main() -> None:
    """Run the server until the standard input ends, or it ends itself."""
    folder, end, *command = sys.argv[1:]
    is_over = threading.Event()
    _wait_for_earlier(folder)
    server = subprocess.Popen(command, preexec_fn=_end_with_this_process)  # noqa: PLW1509 - one thread so far

    def wait_for_end() -> None:
        os.read(sys.stdin.fileno(), 1)
        is_over.set()
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=wait_for_end, daemon=True).start()
    status = server.wait()
    if end == "delete" and is_over.is_set():  # else it is started again
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
