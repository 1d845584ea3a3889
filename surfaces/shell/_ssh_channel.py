"""A channel of an SSH connection, on which the script runs operations."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncssh

_SCRIPT = Path(__file__).with_name("_remote.sh")
_COMMAND = (
    "sh -c 'echo {mark}; echo {mark} >&2; while read -r line; do case $line in {mark}) break;; esac; done; "
    'eval "$(dd bs={size} count=1 iflag=fullblock 2>/dev/null)"\''
)
"""The command for the login shell.

Each of sh, bash, zsh, csh, fish and restricted ones reads it alike: no backslash, line break or exclamation mark.
"""
_PADDING = b"\n" * 16
"""Input for start-up files that read some, and for `internal-sftp`, which ends at once. The rest of it is skipped."""
_START = """\
umask 077; d=${{XDG_CACHE_HOME:-$HOME/.cache}}/callboard; n={name}
mkdir -p "$d" && cd "$d" || exit
dd bs={size} count=1 iflag=fullblock >$n.$$ 2>/dev/null || exit
[ $(wc -c <$n.$$) -eq {size} ] || {{ rm -f $n.$$; exit 1; }}
if [ -s $n ]; then rm -f $n.$$; else mv $n.$$ $n || exit; fi
s=$(command -v bash) || s=sh
d=$(pwd -P); cd && pwd -P || exit
echo "$d"
exec env -i PATH="$PATH" HOME="$HOME" "$s" "$d/$n" serve {end}
"""
_MOST_TOLD = 50_000_000
"""The most bytes of one answer, which may have both outputs of a command."""
_CONNECT_SECONDS = 15.0
_SLOW = frozenset({"search", "find", "tree"})
"""Operations that may take long; `wait` does not, since it yields to the next operation."""
_QUOTED = 300


class LoginShellError(OSError):
    """The user's login shell does not run commands."""


class ScriptAnswer(NamedTuple):
    """The outcome of an operation."""

    status: int
    out: bytes
    err: bytes


class ScriptChannel:
    """The script on the machine, which reads operations from its input.

    The login shell with its start-up files runs once, before the script. Output of theirs is skipped, and
    they get no part of the script.
    """

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process
        self._out = _Reader(process.stdout)
        self._err = _Reader(process.stderr)
        self._turn = asyncio.Lock()
        self._pending: list[bool] = []
        self.remote_folder = self.home = ""
        """Callboard's folder and the user's home on the machine."""

    @classmethod
    async def open(cls, connection: asyncssh.SSHClientConnection) -> ScriptChannel:
        """Start the script on a connection; install it if it is missing.

        Raises:
            LoginShellError: If the login shell runs no command.
            OSError: If the script can't be installed.
        """
        script, mark, end = _SCRIPT.read_bytes(), secrets.token_hex(16), secrets.token_hex(16)
        start = _START.format(name=script_name(), size=len(script), end=end).encode()
        process = await connection.create_process(_COMMAND.format(mark=mark, size=len(start)), encoding=None)
        channel = cls(process)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                with contextlib.suppress(BrokenPipeError):  # the shell ended already: `_begin` says how
                    process.stdin.write(_PADDING)
                await channel._begin(mark.encode())
                process.stdin.write(b"%s\n" % mark.encode() + start + script)  # after all start-up files
                answer = await channel._answer(end.encode())
        except TimeoutError as error:
            msg = f"its login shell ran no command within {_CONNECT_SECONDS:g} s; {channel._reason()}"
            raise LoginShellError(msg) from error
        except ConnectionError as error:
            msg = f"its folder for Callboard can't be made: {channel._err.text() or error}"
            raise OSError(msg) from error
        channel.home, channel.remote_folder = answer.out.decode(errors="replace").splitlines()[-2:]
        return channel

    @property
    def slow(self) -> int:
        """The number of pending operations that may delay the next one."""
        return sum(self._pending)

    async def run(self, words: Sequence[str], data: bytes) -> ScriptAnswer:
        """Run an operation after all pending ones.

        It runs to its end if the caller is cancelled.

        Raises:
            OSError: If the channel was closed meanwhile.
        """
        end, line = secrets.token_hex(16), shlex.join(words).encode()
        self._process.stdin.write(b"%s %d %d\n" % (end.encode(), len(line), len(data)) + line + data)
        self._pending.append(words[0] in _SLOW)
        return await asyncio.shield(asyncio.ensure_future(self._in_turn(end.encode())))

    def close(self) -> None:
        """End the script."""
        self._process.close()

    async def _in_turn(self, end: bytes) -> ScriptAnswer:
        async with self._turn:  # first come, first served
            try:
                return await self._answer(end)
            finally:
                del self._pending[0]

    async def _begin(self, mark: bytes) -> None:
        try:
            await asyncio.gather(self._out.until(mark + b"\n"), self._err.until(mark + b"\n"))
        except ConnectionError as error:
            await self._process.wait_closed()
            code = self._process.exit_status
            if code is None:
                msg = "the connection was closed"
                raise ConnectionError(msg) from error
            ended = f"ended with the exit code {code}" if code >= 0 else "was killed"
            msg = f"its login shell {ended}, and ran no command; {self._reason()}"
            raise LoginShellError(msg) from error

    async def _answer(self, end: bytes) -> ScriptAnswer:
        out, err = await asyncio.gather(self._out.until(b"\n%s " % end), self._err.until(b"\n%s\n" % end))
        return ScriptAnswer(int(await self._out.until(b"\n")), out, err)

    def _reason(self) -> str:
        output = " ".join(filter(None, (self._out.text(), self._err.text())))
        printed = f"it printed {output!r}" if output else "it printed nothing"
        return (
            f"{printed}. Check the user's login shell (nologin?), the server's ForceCommand (internal-sftp?), and "
            "start-up files such as ~/.bashrc, which may exit, wait for input or take too long"
        )


class _Reader:
    """A stream that is read up to delimiters."""

    def __init__(self, stream: asyncssh.SSHReader[bytes]) -> None:
        self._stream = stream
        self._data = bytearray()

    async def until(self, end: bytes) -> bytes:
        """Return the bytes before a delimiter, and skip it.

        Raises:
            ConnectionError: If the stream ends before, or has too many bytes.
        """
        searched = 0
        while (at := self._data.find(end, max(0, searched - len(end)))) < 0:
            searched = len(self._data)
            if searched > _MOST_TOLD:
                msg = f"it sends more than {_MOST_TOLD:,} bytes"
                raise ConnectionError(msg)
            part = await self._stream.read(1 << 16)
            if not part:
                msg = "its end was closed"
                raise ConnectionError(msg)
            self._data += part
        content = bytes(self._data[:at])
        del self._data[: at + len(end)]
        return content

    def text(self) -> str:
        """Return the last bytes that were not read, as one line."""
        return " ".join(bytes(self._data[-_QUOTED:]).decode(errors="replace").split())


def script_name() -> str:
    """Return the file name of the script, which tells its version."""
    return f"{hashlib.sha256(_SCRIPT.read_bytes()).hexdigest()[:16]}.sh"
