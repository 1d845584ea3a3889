"""Stand in for an interpreter: hand the command line to the process that forks, and end as the fork does.

The first argument is the address of the process; see `forks.interpreter`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

_, address, *arguments = sys.argv
order = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ), "session": False}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forking:
    forking.connect(address)
    socket.send_fds(forking, [json.dumps(order).encode()], [0, 1, 2])
    forking.recv(100)  # the fork's process id
    status = int(forking.recv(100))
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
