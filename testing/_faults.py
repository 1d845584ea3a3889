"""Failures and ends of the process at chosen places of a task."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal, Self
from unittest import mock

from callboard.journal import JournalFile, Row
from callboard.messages import JournalError
from callboard.surfaces import EffectGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from callboard.messages import Fact


class Faults:
    """Calls functions at chosen places of a task.

    They may fail, wait, or end the process. A place is before or after a row of a journal file, named by the tag of its
    message (``intent``, ``step_done``, ``task_result``, ``event`` …) or ``row`` for any but events, or before or after
    an ``effect``: the moment in which a tool's change takes effect::

        with Faults() as faults:
            faults.after("effect", kill_process, nth=2)
            ...

    Before a row, neither the row nor the rest of its commit is stored. After a row, it is durable, and not yet
    published. The places apply to all supervisors of this process, as long as the ``with`` block lasts.
    """

    def __init__(self) -> None:
        self.passed: collections.Counter[tuple[str, str]] = collections.Counter()
        """The number of times that each place was reached: ``passed["after", "intent"]``. The places that a run passes
        are those that a test can use."""
        self._what: dict[tuple[str, str, int], Callable[[], object]] = {}
        self._rows: collections.Counter[str] = collections.Counter()
        self._written: dict[JournalFile, list[str]] = {}
        self._lock = threading.Lock()
        self._undo = ExitStack()

    def before(self, kind: str, do: Callable[[], object], *, nth: int = 1) -> None:
        """Call a function before the nth row of a kind, or effect.

        An exception from it fails the write, or the effect.
        """
        self._what["before", kind, nth] = do

    def after(self, kind: str, do: Callable[[], object], *, nth: int = 1) -> None:
        """Call a function after the nth row or effect.

        The row is durable, or the effect done. An exception after a row ends the journal as a crash does: the row is
        stored, and no further row. After an effect it must not raise.
        """
        self._what["after", kind, nth] = do

    def __enter__(self) -> Self:
        """Install the hooks."""
        for name in ("write", "write_events"):
            self._undo.enter_context(mock.patch.object(JournalFile, name, self._writing(getattr(JournalFile, name))))
        commit, rollback, writing = JournalFile.commit, JournalFile.rollback, EffectGuard.writing

        def committed(file: JournalFile) -> None:
            commit(file)
            for kind in self._written.pop(file, ()):
                self._pass("after", kind)

        def rolled_back(file: JournalFile) -> None:
            self._written.pop(file, None)
            rollback(file)

        @contextlib.contextmanager
        def done(guard: EffectGuard, artifact: Path | None) -> Iterator[None]:
            with writing(guard, artifact):
                self._pass("before", "effect")
                yield
                self._pass("after", "effect")

        places = (
            (JournalFile, "commit", committed),
            (JournalFile, "rollback", rolled_back),
            (EffectGuard, "writing", done),
        )
        for owner, name, hook in places:
            self._undo.enter_context(mock.patch.object(owner, name, hook))
        return self

    def _writing(self, write: Callable[..., None]) -> Callable[..., None]:
        """Pass the places of the rows of one write: messages, or events."""

        def written(file: JournalFile, rows: Sequence[Row | Fact], *more: Callable[[ValueError], None]) -> None:
            kinds = [str(getattr(row.message, "kind", "")) if isinstance(row, Row) else "event" for row in rows]
            try:
                for kind in kinds:
                    self._pass("before", kind)
            except OSError as error:
                problem = f"can't be written: {error.strerror or error}"
                raise JournalError(file.path, problem) from error
            write(file, rows, *more)
            self._written.setdefault(file, []).extend(kinds)

        return written

    def __exit__(self, *_: object) -> None:
        """Remove the hooks."""
        self._undo.close()

    def _pass(self, when: Literal["before", "after"], kind: str) -> None:
        with self._lock:
            self.passed[when, kind] += 1
            places = [(when, kind, self.passed[when, kind])]
            if kind not in {"event", "effect"}:
                self._rows[when] += 1
                places.append((when, "row", self._rows[when]))
            actions = [self._what[place] for place in places if place in self._what]
        for do in actions:
            do()


def kill_process() -> None:
    """End this process at once, as ``kill -9`` does, without cleanup."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def disk_full() -> None:
    """Fail as a full disk does.

    Raises:
        OSError: Always.
    """
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
