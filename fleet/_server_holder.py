"""Hold one server of NATS, which ends with its program.

Started by `_local_machines`; it imports nothing of this package. Its arguments are the server's command. When its
standard input ends, because the program that started it closed it or was killed, it ends the server.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading

_DEATH_SIGNAL = 1  # of prctl
_STOP_SECONDS = 10.0


def _end_with_this_process() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Run the server until the standard input ends, or it ends itself."""
    server = subprocess.Popen(sys.argv[1:], preexec_fn=_end_with_this_process)  # noqa: PLW1509 - one thread so far

    def wait_for_end() -> None:
        sys.stdin.buffer.read()
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=wait_for_end, daemon=True).start()
    sys.exit(server.wait())


if __name__ == "__main__":
    main()
