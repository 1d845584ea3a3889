"""One warm LibreOffice of this process, for computing workbooks."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces import current_call
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import plain_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 40
"""The longest time of a computation, with a start of LibreOffice, in seconds."""
_PAUSE_SECONDS = 0.05
_ENDING_SECONDS = 3
_MOST_USES = 500
"""LibreOffice is started again after so many computations, since its memory grows."""
_HOLDER = Path(__file__).with_name("_office_holder.py")
_ITEM = '<item oor:path="/org.openoffice.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>\n'
_SETTINGS = (
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Office.Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Office.Common/Misc", "FirstRun", "false"),
    ("Office.Calc/Content/Update", "Link", "2"),
    ("Office.Calc/Formula/Load", "OOXMLRecalcMode", "0"),
    ("Office.Writer/Content/Update", "Link", "0"),
    ("Setup/L10N", "ooSetupSystemLocale", "en-US"),
)
"""No macros, no active content, no update of links; all formulas are computed at load, by the rules of one locale."""


def profile() -> str:
    """Return the settings of LibreOffice, as its profile holds them."""
    items = "".join(_ITEM.format(*setting) for setting in _SETTINGS)
    schema = 'xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<oor:items {schema}>\n{items}</oor:items>\n'


class OfficeFailedError(Exception):
    """LibreOffice was not started, crashed or took too long."""


class LibreOffice:
    """A LibreOffice with a profile of its own, started on use.

    Threads may share it; one computes at a time. It ends with the last surface that uses it, and with this process,
    also if this is killed.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._uses = 0
        self._holder: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._counting = threading.Lock()

    def open(self) -> None:
        """Register a user."""
        with self._counting:
            self._users += 1

    def close(self) -> None:
        """Take away a user; the last one ends LibreOffice at once."""
        with self._counting:
            self._users -= 1
            if self._users == 0:
                self._end()

    def convert(self, books: Sequence[bytes], seconds: float = SECONDS) -> list[bytes | None]:
        """Compute workbooks, and return them as LibreOffice saves them.

        A workbook that it can't read is None.

        Raises:
            OfficeFailedError: If it can't be started, crashes or takes too long.
            ToolError: If the running call was cancelled, or the supervisor stops.
        """
        until = time.monotonic() + seconds
        while not self._lock.acquire(timeout=_PAUSE_SECONDS):
            _check(until)
        try:
            return self._convert_books(books, until)
        except BaseException:
            self._end()
            raise
        finally:
            self._lock.release()

    def _convert_books(self, books: Sequence[bytes], until: float) -> list[bytes | None]:
        if self._uses >= _MOST_USES:
            self._end()
        if self._holder is None or self._holder.poll() is not None:
            self._start(until)
        folder, holder = self._folder, self._holder
        if folder is None or holder is None or holder.stdin is None:  # closed meanwhile
            raise OfficeFailedError
        self._uses += 1
        paths = [folder / f"{number}.xlsx" for number in range(len(books))]
        outputs = [folder / "out" / path.name for path in paths]
        try:
            for path, book in zip(paths, books, strict=True):
                path.write_bytes(book)
            holder.stdin.write(json.dumps(list(map(str, paths))).encode() + b"\n")
            holder.stdin.flush()
            self._wait(holder, b"done\n", until)
            return [path.read_bytes() if path.is_file() else None for path in outputs]
        except OSError as error:
            raise OfficeFailedError from error
        finally:
            for path in (*paths, *outputs):
                path.unlink(missing_ok=True)

    def _start(self, until: float) -> None:
        """Start the holder, and wait for LibreOffice."""
        self._end()
        program = shutil.which("soffice")
        if program is None:
            raise OfficeFailedError
        folder = Path(tempfile.mkdtemp(prefix="callboard-calc-"))
        user = folder / "profile" / "user"
        user.mkdir(parents=True)
        user.joinpath("registrymodifications.xcu").write_text(profile(), encoding="utf-8")
        (folder / "out").mkdir()
        self._folder, self._uses = folder, 0
        self._holder = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_HOLDER), str(folder), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=plain_environment(folder),
            start_new_session=True,  # its own process group, which is killed with all in it
        )
        self._wait(self._holder, b"ready\n", until)

    def _wait(self, holder: subprocess.Popen[bytes], word: bytes, until: float) -> None:
        """Wait for a line of the holder, unless the running call ends."""
        pipe = holder.stdout
        while pipe is not None and not select.select([pipe], [], [], _PAUSE_SECONDS)[0]:
            _check(until)
        if pipe is None or pipe.readline() != word:
            raise OfficeFailedError

    def _end(self) -> None:
        """Have the holder kill LibreOffice at once, and remove its files."""
        holder, folder, self._holder, self._folder = self._holder, self._folder, None, None
        if holder is not None:
            holder.terminate()
            try:
                holder.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(holder.pid, signal.SIGKILL)
                holder.wait()
            for pipe in (holder.stdin, holder.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Leave LibreOffice to the parent, in a forked child."""
        holder = self._holder
        self._reset()  # a lock of the parent may be held for ever
        if holder is not None:
            holder.returncode = 0  # not a child of this process
            for pipe in (holder.stdin, holder.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def check_running(until: float) -> None:
    """Check that the time is not up and the call not over.

    Raises:
        OfficeFailedError: If the time is up.
        ToolError: If the call was cancelled, took too long, or the supervisor stops. Nothing is stored then.
    """
    if current_call().given_up:
        msg = "the computation was stopped, since the call has ended"
        raise ToolError(msg)
    if time.monotonic() > until:
        raise OfficeFailedError


_check = check_running

LIBRE_OFFICE = LibreOffice()
os.register_at_fork(after_in_child=LIBRE_OFFICE.forget)


@functools.cache
def has_libre_office() -> bool:
    """Return whether workbooks can be computed by LibreOffice here."""
    return (
        sys.platform == "linux"
        and bool(sys.executable)
        and not getattr(sys, "frozen", False)
        and bool(shutil.which("soffice"))
    )
