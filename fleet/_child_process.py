"""Processes that end with this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_pipes: set[io.BufferedWriter] = set()
"""The pipes of all of them."""


class ChildProcess:
    """A process that ends with this one, however it ends.

    Its standard input is a pipe of this one.
    """

    def __init__(self, command: Sequence[str], *, is_silent: bool = False) -> None:
        """Start it; a silent one has no output."""
        output = subprocess.DEVNULL if is_silent else None
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )
        assert isinstance(self._process.stdin, io.BufferedWriter)  # noqa: S101 - it is buffered by default
        self._pipe = self._process.stdin
        _pipes.add(self._pipe)

    def write(self, text: bytes) -> None:
        """Write to its standard input, unless it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(text)
            self._pipe.flush()

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._process.poll()

    def end_input(self) -> None:
        """End its standard input, which ends it."""
        _pipes.discard(self._pipe)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()

    def ends(self, seconds: float) -> bool:
        """Wait for its end; kill a late one."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        return True


def _close_pipes() -> None:
    """Close the pipes in a fork, which would keep them open.

    Beneath their buffers: another thread may have held their locks.
    """
    for pipe in _pipes:
        pipe.raw.close()
    _pipes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_pipes)
