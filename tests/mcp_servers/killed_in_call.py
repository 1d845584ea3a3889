"""Stand before an MCP server, and kill it once, in the middle of the first call of a tool.

    killed_in_call.py MARK PROGRAM [ARGUMENT...]

The server is stopped before it gets the request, so that it can't answer before it is killed. Where the file MARK is
there, that was done, and this becomes the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def main(mark: Path, *command: str) -> None:
    """Pass on a client's messages, up to the first call of a tool."""
    if mark.exists():
        os.execv(command[0], command)  # noqa: S606 - the server
    server = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert server.stdin is not None
    for line in sys.stdin.buffer:
        called = b'"tools/call"' in line
        if called:
            server.send_signal(signal.SIGSTOP)
        server.stdin.write(line)
        server.stdin.flush()
        if called:
            mark.touch()
            server.kill()
            server.wait()
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
