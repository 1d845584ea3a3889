"""Schedulers: one thread for many actors that never block.

A message between two actors of one scheduler wakes no other thread.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pykka

from callboard.actors.runtime._threads import mark_own_thread
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pykka._actor import ActorInbox
    from pykka._envelope import Envelope

    from callboard.actors.runtime._event_loop import EventLoop
    from callboard.messages import Seconds

    _Sent = tuple["ScheduledActor", object, pykka.Future[Any] | None]

_log = HostLog()

_PYKKAS = (
    pykka.messages._ActorStop,
    pykka.messages.ProxyCall,
    pykka.messages.ProxyGetAttr,
    pykka.messages.ProxySetAttr,
)
"""Pykka's own messages, which the base class handles; all others go to `on_receive`."""


class Scheduler:
    """A shared mailbox and the actors that it serves on one thread.

    The actors handle one message at a time, in the order in which they were sent. A thread for each agent would cost
    two wake-ups for each message and the memory of a stack, without a benefit: agents only decide, and slow work runs
    in jobs.
    """

    def __init__(self, wake: Callable[[], None] | None = None) -> None:
        """Create it; `wake` notifies a thread that does not poll the queue."""
        self._wake = wake
        self._mailbox: queue.SimpleQueue[_Sent | None] = queue.SimpleQueue()
        self._actors: set[ScheduledActor] = set()
        self._has_ended = False

    def put(self, actor: ScheduledActor, message: object, reply_to: pykka.Future[Any] | None = None) -> None:
        """Queue a message for an actor; on any thread."""
        self._mailbox.put((actor, message, reply_to))
        if self._has_ended:
            self._refuse_queued()
        elif self._wake is not None:
            self._wake()

    def add(self, actor: ScheduledActor) -> None:
        """Register an actor until it has stopped."""
        self._actors.add(actor)

    def drop(self, actor: ScheduledActor) -> None:
        """Unregister an actor."""
        self._actors.discard(actor)

    def _end(self) -> None:
        """Stop all actors and reject queued messages.

        Their senders get an answer. Without one, a host program that stops all actors would wait forever.
        """
        self._has_ended = True
        for actor in tuple(self._actors):
            _guarded(actor.abandon)
        self._refuse_queued()

    def _refuse_queued(self) -> None:
        """Reject the queued messages, on the thread that finds them."""
        with contextlib.suppress(queue.Empty):
            while True:
                sent = self._mailbox.get_nowait()
                if sent is not None:
                    _guarded(sent[0].abandon)
                    _handle(sent)


class ThreadScheduler(Scheduler):
    """A scheduler on its own daemon thread.

    Its actors keep running while the event loop is blocked.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._since = 0.0
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    @property
    def busy(self) -> Seconds:
        """The time spent on the current message; 0 between two messages."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    def stop(self, timeout: Seconds) -> bool:
        """End the thread after the messages queued so far.

        Returns whether it ended in time.
        """
        self._mailbox.put(None)
        if self.thread.is_alive():
            self.thread.join(timeout)
        return not self.thread.is_alive()

    def _main(self) -> None:
        mark_own_thread()
        while (sent := self._mailbox.get()) is not None:
            self._since = time.monotonic()
            _handle(sent)
            self._since = 0.0
        self._end()


class LoopScheduler(Scheduler):
    """A scheduler on the event loop's thread, where the jobs run.

    A message between an agent and its job wakes no other thread.
    """

    def __init__(self, loop: EventLoop) -> None:
        super().__init__(partial(loop.call, self._handle_next))
        self._loop = loop

    def behind(self, function: Callable[[], None]) -> None:
        """Call a function on the loop's thread, behind all earlier messages."""
        self._loop.call(function)

    def _handle_next(self) -> None:
        sent = self._mailbox.get_nowait()  # never empty: until the end there is one call for each message
        if sent is not None:
            _handle(sent)

    def stop(self) -> None:
        """End the scheduler; call it after the loop has ended."""
        self._end()


class Schedulers(NamedTuple):
    """The schedulers of one supervisor."""

    root: ThreadScheduler
    """The root's. The root answers, and voids leases, also while a model or a tool blocks the event loop."""
    agents: LoopScheduler
    """The scheduler of the agents and the blackboard."""


def _handle(sent: _Sent) -> None:
    """Let an actor handle a message from the queue."""
    actor, message, reply_to = sent
    try:
        actor.handle(message, reply_to)
    except BaseException:  # an edge: the other actors need this thread
        _log.exception("an actor raised an exception on a shared thread")


def _guarded(function: Callable[[], None]) -> None:
    """Call a function; log its exceptions, which must not end the thread."""
    try:
        function()
    except BaseException:  # an edge: the other actors need this thread
        _log.exception("an actor raised an exception on a shared thread")


def _refuse(message: object, reply_to: pykka.Future[Any], name: str) -> None:
    """Reject a message that arrives after the actor's end."""
    if isinstance(message, pykka.messages._ActorStop):
        reply_to.set(None)
        return
    error = pykka.ActorDeadError(f"{name} stopped before handling the message")
    reply_to.set_exception((type(error), error, None))


class _Inbox:
    """The actor's mailbox for Pykka: it forwards messages to the scheduler's queue."""

    actor: Callable[[], ScheduledActor | None]
    """A weak reference: a stopped actor is freed at once, even while refs to it exist."""

    def put(self, envelope: Envelope[Any]) -> None:
        actor = self.actor()
        if actor is not None:
            actor.scheduler.put(actor, envelope.message, envelope.reply_to)
        elif envelope.reply_to is not None:  # the actor stopped after Pykka had checked that it is alive
            _refuse(envelope.message, envelope.reply_to, "the actor")


class _Ref(pykka.ActorRef["ScheduledActor"]):
    """A faster actor ref.

    `tell` needs no envelope of Pykka's, and no `threading.Event` to check whether the actor has stopped.
    """

    actor_inbox: _Inbox  # type: ignore[assignment]  # as `_create_actor_inbox` makes it

    def tell(self, message: object) -> None:
        """Send a message to the actor.

        Raises:
            ActorDeadError: If the actor has stopped.
        """
        actor = self.actor_inbox.actor()
        if actor is None or actor.gone:
            msg = f"{self} not found"
            raise pykka.ActorDeadError(msg)
        actor.scheduler.put(actor, message)


class ScheduledActor(pykka.Actor):
    """An actor that shares a scheduler's thread with others.

    Its `on_receive` must never block. Refs, `tell` and `ask`, the registry and the hooks work as with any Pykka actor,
    with one exception: a SystemExit that escapes is a failure of this actor, and stops no others.

    Only this file uses private parts of Pykka, to replace an actor's inbox and loop, and to stop it. `pyproject.toml`
    allows only versions of Pykka that have these parts.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        """Create it; after `start` it runs on this scheduler."""
        super().__init__()
        self.scheduler = scheduler
        self.gone = False
        """Whether the actor has stopped. It mirrors the event `actor_stopped`, which is slower to check."""
        cast("_Inbox", self.actor_inbox).actor = weakref.ref(self)
        self._actor_ref = _Ref(self)

    @staticmethod
    def _create_actor_inbox() -> ActorInbox:
        return cast("ActorInbox", _Inbox())  # only the actor loop reads it, and the scheduler replaces that

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        """Register with the scheduler.

        `on_start` is not called: initialise on the first message instead.
        """
        self.scheduler.add(self)

    def send(self, message: object) -> None:
        """Send a message to this actor, on any thread.

        A message after the actor's end is dropped, while `ActorRef.tell` would raise `ActorDeadError`.
        """
        self.scheduler.put(self, message)

    def abandon(self) -> None:
        """Stop at once and skip queued messages: the scheduler has ended."""
        if not self.actor_stopped.is_set():
            self._stop()

    def handle(self, message: object, reply_to: pykka.Future[Any] | None) -> None:
        """Handle one message as Pykka's loop does, on the scheduler's thread."""
        if self.gone:
            if reply_to is not None:
                _refuse(message, reply_to, str(self.actor_ref))
            return
        try:
            answer = self._handle_receive(message) if isinstance(message, _PYKKAS) else self.on_receive(message)
        except BaseException:  # an edge: no exception may end the shared thread
            self._failed(reply_to)
        else:
            if reply_to is not None:
                reply_to.set(answer)
        if self.gone:
            self.scheduler.drop(self)

    def _failed(self, reply_to: pykka.Future[Any] | None) -> None:
        if reply_to is not None:
            reply_to.set_exception()
            return
        failure = sys.exc_info()
        self._handle_failure(*failure)
        try:
            self.on_failure(*failure)
        except BaseException:  # as in Pykka, a failing hook is only logged; nor may it end the shared thread
            self._handle_failure(*sys.exc_info())

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Log the failure and stop, as Pykka does.

        A logging handler of the host program that raises does not prevent the stop.
        """
        with contextlib.suppress(BaseException):
            super()._handle_failure(exception_type, exception_value, traceback)
        self._leave()

    def _stop(self) -> None:
        """Stop at once, as Pykka does, but without its log messages.

        A logging handler that raises would prevent the call of `on_stop`.
        """
        self._leave()
        try:
            self.on_stop()
        except BaseException:  # as in Pykka, a failing hook is only logged
            self._handle_failure(*sys.exc_info())

    def _leave(self) -> None:
        """Leave the registry and accept no more messages."""
        with contextlib.suppress(BaseException):  # Pykka logs only after the actor is unregistered
            pykka.ActorRegistry.unregister(self.actor_ref)
        self.gone = True
        self.actor_stopped.set()
