"""The outbox: the rows and callbacks of one message, as one transaction."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from callboard.actors.commands import Secrets
from callboard.journal import Row, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.agent import RunUpdate
    from callboard.actors.root._agents import Children
    from callboard.actors.runtime import Clock
    from callboard.journal import Journal
    from callboard.messages import Message

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Outbox:
    """Rows of one message, and the callbacks that publish their effects.

    One message of the root is one transaction: after a crash the journal has all of its rows, or none of them. The
    rows are written ahead: an agent gets a message, and a caller an answer, only once a crash can't take it back.
    Callbacks run in the order in which they were queued, also across messages, so that each agent reads its messages
    in the order of the journal. Runs on the root's thread.
    """

    def __init__(self, journal: Journal, clock: Clock, children: Children, secrets: Secrets | None = None) -> None:
        """Create it; `secrets` are redacted in all rows."""
        self._secrets = secrets or Secrets({})
        self._journal = journal
        self._clock = clock
        self._children = children
        self._rows: list[Row] = []
        self._callbacks: list[Callable[[], None]] = []
        self._failure_callbacks: list[Callable[[Exception], None]] = []

    def keep(
        self,
        task_id: str,
        run_id: str,
        message: Message,
        *callbacks: Callable[[], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Queue a row, and the callbacks to run once it is safe.

        Args:
            task_id: The task.
            run_id: The run; empty for the whole task.
            message: The row's message.
            callbacks: Run on any thread and must be short. They do not run if the row can't be written.
            failed: Called instead in that case, under the same conditions.
        """
        if self._secrets.known:
            message = self._secrets.redact(task_id, message)
        self._rows.append(Row(self._clock.steady(), task_id, run_id, message))
        self._callbacks.extend(callbacks)
        if failed is not None:
            self._failure_callbacks.append(failed)

    def send(self, address: str, task_id: str, run_id: str, message: RunUpdate) -> None:
        """Queue a row; send an agent its message once it is safe."""
        self.keep(task_id, run_id, message, self._children.sender(address, message))

    def forward(self, address: str, message: RunUpdate) -> None:
        """Send an agent a message that has no row of its own.

        It is sent once this message's rows are safe.
        """
        self.tell(self._children.sender(address, message))

    def tell(self, callback: Callable[[], None]) -> None:
        """Queue a callback to run once this message's rows are safe."""
        self._callbacks.append(callback)

    def answer(self, value: _T) -> concurrent.futures.Future[_T]:
        """Return a future that is set once this message's rows are safe.

        It fails if they can't be written.
        """
        future: concurrent.futures.Future[_T] = concurrent.futures.Future()
        self._callbacks.append(lambda: settle(future, value))
        self._failure_callbacks.append(lambda error: settle(future, value, error))
        return future

    def flush(self) -> None:
        """Hand the rows and callbacks to the journal, as one transaction."""
        if not (self._rows or self._callbacks):
            return
        # Even without rows the callbacks pass through the journal, so that they stay behind those of earlier messages.
        rows, self._rows = self._rows, []
        callbacks, self._callbacks = self._callbacks, []
        failed, self._failure_callbacks = self._failure_callbacks, []
        self._journal.append(rows, _all(callbacks), _all(failed))


def _all(functions: list[Callable[_P, None]]) -> Callable[_P, None]:
    if len(functions) == 1:
        return functions[0]

    def call(*args: _P.args, **kwargs: _P.kwargs) -> None:
        for function in functions:
            function(*args, **kwargs)

    return call
