"""The client of the root, for the host program's threads."""

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
"""The time limit of a call to the root, which never blocks: a call that takes longer is a fault."""


class RootClient:
    """A thread-safe client of one root.

    `ask` and `settle` block, and refuse to do so on the supervisor's own threads.
    """

    def __init__(self, root: pykka.ActorRef[Root], seconds: Seconds = ASK_SECONDS) -> None:
        """Create it; `seconds` limits each wait for an answer or its safety."""
        self.root = root
        self.seconds = seconds
        self.closed = False
        """Whether the supervisor is stopping or stopped."""
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """True in a forked child process, which lacks the root's threads."""
        return os.getpid() != self._process

    def tell(self, message: object) -> None:
        """Send the root a message, from any thread; dropped after its end."""
        with contextlib.suppress(pykka.ActorDeadError):
            self.root.tell(message)

    def ask(self, message: object, timeout: Seconds | None = None) -> Any:
        """Ask the root, and wait for its answer.

        Raises:
            SupervisorStoppedError: If the root has stopped, or does not answer in time.
            WouldDeadlockError: If the caller runs on one of the supervisor's own threads.
        """
        return self.answer(self.send(message), timeout)

    def settle(self, message: Message) -> Any:
        """Ask the root, and wait until its answer is safe.

        The answer is safe once the journal has the rows of the message.

        Raises:
            ValueError: If the message can't be written.
            JournalError: If the journal fails.
            SupervisorStoppedError: As in `ask`.
        """
        check_writable(message)
        return self.ask(message).result(self.seconds)

    def send(self, message: object) -> pykka.Future[Any]:
        """Ask the root without waiting; `answer` waits."""
        refuse_own_thread(type(message).__name__)
        self._check_process()
        return self.root.ask(message, block=False)

    def answer(self, sent: pykka.Future[Any], timeout: Seconds | None = None) -> Any:
        """Wait for the answer to a message from `send`."""
        timeout = self.seconds if timeout is None else timeout
        try:
            return sent.get(timeout=timeout)
        except pykka.ActorDeadError as error:
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg) from error
        except pykka.Timeout as error:
            msg = f"the root did not answer within {timeout:g} s"
            raise SupervisorStoppedError(msg) from error

    def check_open(self) -> None:
        """Refuse a call that the supervisor can no longer serve.

        Raises:
            SupervisorStoppedError: If the supervisor is stopping or stopped, or belongs to the process that forked this
                one.
        """
        self._check_process()
        if self.closed or not self.root.is_alive():
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg)

    @contextlib.contextmanager
    def while_open(self) -> Iterator[None]:
        """Check that the supervisor is open before and after a block.

        A result found while the supervisor stops is not reliable.
        """
        self.check_open()
        try:
            yield
        finally:
            self.check_open()

    def _check_process(self) -> None:
        if self.forked:
            msg = "this process was forked from the one that started the supervisor: start another supervisor here"
            raise SupervisorStoppedError(msg)


def check_writable(message: Message) -> None:
    """Refuse a message that the journal could not write.

    Raises:
        ValueError: If a text in it is not valid Unicode, or it is nested too deeply.
    """
    try:
        message.model_dump_json()
    except ValueError as error:
        msg = f"this {message.kind} can't be written down: {error}"  # type: ignore[attr-defined]
        raise ValueError(msg) from error
