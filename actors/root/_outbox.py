"""The outbox: what handling one message makes. It is kept in one piece, and told once it is safe."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from callboard.actors.commands import Secrets
from callboard.actors.journal import Row, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.journal import Journal
    from callboard.actors.runtime import Clock
    from callboard.messages import Message

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Outbox:
    """Collects rows and what follows them. Part of the switchboard; runs on its thread.

    One message of the switchboard is one transaction: a crash finds either all that it made, or nothing.
    """

    def __init__(self, journal: Journal, clock: Clock, secrets: Secrets | None = None) -> None:
        """Make it; `secrets` are put out of sight in what is kept."""
        self._secrets = secrets or Secrets({})
        self._journal = journal
        self._clock = clock
        self._rows: list[Row] = []
        self._then: list[Callable[[], None]] = []
        self._failed: list[Callable[[Exception], None]] = []

    def keep(
        self,
        task_id: str,
        run_id: str,
        message: Message,
        *then: Callable[[], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Keep a message of a run (empty: of the whole task), and do what follows once it is safe.

        What follows runs on any thread, must be short, and is not done at all if the message can't be kept; then
        `failed` is called, in the same way.
        """
        if self._secrets.known:
            message = self._secrets.redact(task_id, message)
        self._rows.append(Row(self._clock.steady(), task_id, run_id, message))
        self._then.extend(then)
        if failed is not None:
            self._failed.append(failed)

    def tell(self, then: Callable[[], None]) -> None:
        """Do something once all of this is safe."""
        self._then.append(then)

    def answer(self, value: _T) -> concurrent.futures.Future[_T]:
        """Give a future of an answer that holds only once all of this is safe."""
        future: concurrent.futures.Future[_T] = concurrent.futures.Future()
        self._then.append(lambda: settle(future, value))
        self._failed.append(lambda error: settle(future, value, error))
        return future

    def flush(self) -> None:
        """Hand everything to the journal."""
        if not (self._rows or self._then):
            return
        rows, self._rows = self._rows, []
        then, self._then = self._then, []
        failed, self._failed = self._failed, []
        self._journal.append(rows, _all(then), _all(failed))


def _all(functions: list[Callable[_P, None]]) -> Callable[_P, None]:
    if len(functions) == 1:
        return functions[0]

    def call(*args: _P.args, **kwargs: _P.kwargs) -> None:
        for function in functions:
            function(*args, **kwargs)

    return call
