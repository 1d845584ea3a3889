"""A server that keeps mail, on loopback: Dovecot, as an unprivileged process."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from smtp_sink import PASSWORD, free_port

from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:~/Maildir
disable_plaintext_auth = no
auth_failure_delay = 0
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{key}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  chroot =
  process_min_avail = 1
  service_count = 0
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service imap {{
  process_min_avail = 2
  process_limit = 50
  service_count = 1000
}}
service stats {{
  chroot =
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home/%u
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
}}
"""


class Dovecot:
    """The running server; each user's name has a mailbox of its own."""

    def __init__(self, folder: Path, port: int, tls_port: int) -> None:
        self._folder = folder
        self.port = port
        self.tls_port = tls_port

    def deliver(self, user: str, data: bytes, *, folder: str = "", name: str = "") -> None:
        """Put a message into a user's mailbox."""
        maildir = self._folder / "home" / user / "Maildir" / folder
        for part in ("tmp", "cur", "new"):
            (maildir / part).mkdir(parents=True, exist_ok=True)
        number = len(list((maildir / "new").iterdir())) + len(list((maildir / "cur").iterdir()))
        (maildir / "new" / f"{time.time_ns()}.{number}{name}.test").write_bytes(data)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "nobody", str(self._folder / "home")], check=True)  # noqa: S607


@contextlib.contextmanager
def dovecot(certificate: tuple[Path, Path]) -> Iterator[Dovecot]:
    """Run a server with a key and a certificate; skip the test without the program."""
    program = shutil.which("dovecot", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        (pytest.fail if os.environ.get("REQUIRE_DOVECOT") else pytest.skip)("dovecot is not installed")
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    entry = pwd.getpwnam(user)
    with tempfile.TemporaryDirectory(prefix="dovecot-") as name:
        folder = Path(name)
        key, chain = (Path(shutil.copy(file, folder)) for file in certificate)
        ports = free_port(), free_port()
        (folder / "home").mkdir()
        (folder / "dovecot.conf").write_text(
            _CONFIGURATION.format(
                folder=folder,
                user=user,
                group=_group(entry.pw_gid),
                uid=entry.pw_uid,
                gid=entry.pw_gid,
                certificate=chain,
                key=key,
                port=ports[0],
                tls_port=ports[1],
                password=PASSWORD,
            ),
            encoding="utf-8",
        )
        options: dict[str, object] = {}
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", user, name], check=True)  # noqa: S607
            options = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        with subprocess.Popen(
            [program, "-F", "-c", folder / "dovecot.conf"], cwd=folder, start_new_session=True, **options
        ) as server:
            try:
                _wait(server, ports, folder / "log")
                yield Dovecot(folder, *ports)
            finally:
                os.killpg(server.pid, signal.SIGKILL)  # it would wait a second for its processes
                server.wait(PATIENCE)


def _wait(server: subprocess.Popen[bytes], ports: tuple[int, int], log: Path) -> None:
    import socket

    end = time.monotonic() + PATIENCE
    for port in ports:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
                if port == ports[1] or connection.recv(10):
                    break
            assert server.poll() is None, log.read_text(encoding="utf-8") if log.exists() else "it has no log"
            assert time.monotonic() < end
            time.sleep(0.02)


def _group(number: int) -> str:
    import grp

    return grp.getgrgid(number).gr_name
