"""The client of the root, for the threads of the host program: ask it, tell it, wait until an answer is safe."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import pykka

from callboard.actors.runtime import refuse_own_thread
from callboard.messages import SupervisorStoppedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.root import Root
    from callboard.messages import Message, Seconds

ASK_SECONDS = 30.0
"""How long a call waits for the root, which never blocks; past that something is broken."""


class RootClient:
    """Talks to one root. Thread-safe; `ask` and `settle` block, and refuse to do so on the supervisor's own threads."""

    def __init__(self, root: pykka.ActorRef[Root], seconds: Seconds = ASK_SECONDS) -> None:
        """Make it; `seconds` is how long it waits for an answer, or until one is safe."""
        self.root = root
        self.seconds = seconds
        self.closed = False
        """Whether the supervisor stops, or has stopped."""
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process that started the root, whose threads stayed behind there."""
        return os.getpid() != self._process

    def tell(self, message: object) -> None:
        """Tell the root something, from any thread; after its end nothing happens."""
        with contextlib.suppress(pykka.ActorDeadError):
            self.root.tell(message)

    def ask(self, message: object, timeout: Seconds | None = None) -> Any:
        """Ask the root, and wait for its answer.

        Raises:
            SupervisorStoppedError: If it has stopped, or does not answer in time.
            WouldDeadlockError: If this is one of the supervisor's own threads.
        """
        return self.answer(self.send(message), timeout)

    def settle(self, message: Message) -> Any:
        """Ask the root, and wait until its answer is safe in the journal.

        Raises:
            ValueError: If the message can't be written down.
            JournalError: If it can't be kept.
            SupervisorStoppedError: As `ask`.
        """
        check_writable(message)
        return self.ask(message).result(self.seconds)

    def send(self, message: object) -> pykka.Future[Any]:
        """Ask the root without waiting: `answer` waits."""
        refuse_own_thread(type(message).__name__)
        self._check_process()
        return self.root.ask(message, block=False)

    def answer(self, sent: pykka.Future[Any], timeout: Seconds | None = None) -> Any:
        """Wait for the answer to what was sent."""
        timeout = self.seconds if timeout is None else timeout
        try:
            return sent.get(timeout=timeout)
        except pykka.ActorDeadError as error:
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg) from error
        except pykka.Timeout as error:
            msg = f"the switchboard did not answer within {timeout:g} s"
            raise SupervisorStoppedError(msg) from error

    def check_open(self) -> None:
        """Refuse what the supervisor can't do any more.

        Raises:
            SupervisorStoppedError: If it stops or has stopped, or belongs to the process that forked this one.
        """
        self._check_process()
        if self.closed or not self.root.is_alive():
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg)

    @contextlib.contextmanager
    def while_open(self) -> Iterator[None]:
        """Check before and after: what is found, or not, while the supervisor stops says nothing."""
        self.check_open()
        try:
            yield
        finally:
            self.check_open()

    def _check_process(self) -> None:
        if self.forked:
            msg = "this process was forked from the one that started the supervisor: start one of its own here"
            raise SupervisorStoppedError(msg)


def check_writable(message: Message) -> None:
    """Refuse what can't be kept, before anything is done with it.

    Raises:
        ValueError: If a text in it is no Unicode, or it is nested too deep.
    """
    try:
        message.model_dump_json()
    except ValueError as error:
        msg = f"this {message.kind} can't be written down: {error}"  # type: ignore[attr-defined]
        raise ValueError(msg) from error
