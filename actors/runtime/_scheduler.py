"""The schedulers: one thread for many actors that never block. A hop between two of them wakes no thread."""

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

    from callboard.actors.runtime._loop import EventLoop
    from callboard.messages import Seconds

    _Sent = tuple["ScheduledActor", object, pykka.Future[Any] | None]

_log = HostLog()

_PYKKAS = (
    pykka.messages._ActorStop,  # noqa: SLF001 - see `ScheduledActor`
    pykka.messages.ProxyCall,
    pykka.messages.ProxyGetAttr,
    pykka.messages.ProxySetAttr,
)
"""Pykka's own messages, which its actor handles; all others are for `on_receive`."""


class Scheduler:
    """Runs scheduled actors on one thread: one message at a time, in the order in which they were sent.

    A thread for each agent would cost two wake-ups a message, and the memory of its stack, to no end: agents only
    decide, and what takes time is a job.
    """

    def __init__(self, wake: Callable[[], None] | None = None) -> None:
        """Make it; `wake` has the thread see that something was queued, where it does not wait for that."""
        self._wake = wake
        self._sent: queue.SimpleQueue[_Sent | None] = queue.SimpleQueue()
        self._actors: set[ScheduledActor] = set()
        self._over = False

    def put(self, actor: ScheduledActor, message: object, reply_to: pykka.Future[Any] | None = None) -> None:
        """Queue a message for an actor; from any thread."""
        self._sent.put((actor, message, reply_to))
        if self._over:
            self._refuse_rest()
        elif self._wake is not None:
            self._wake()

    def add(self, actor: ScheduledActor) -> None:
        """Know an actor until it has stopped."""
        self._actors.add(actor)

    def drop(self, actor: ScheduledActor) -> None:
        """Know it no more."""
        self._actors.discard(actor)

    def _end(self) -> None:
        """Handle nothing any more. Actors that live now are stopped: who asks or stops one is answered.

        Otherwise a host program that stops all actors would wait for them for ever.
        """
        self._over = True
        for actor in tuple(self._actors):
            _guarded(actor.abandon)
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Answer what came too late, on whatever thread sees it."""
        with contextlib.suppress(queue.Empty):
            while True:
                sent = self._sent.get_nowait()
                if sent is not None:
                    _guarded(sent[0].abandon)
                    _handle(sent)


class ThreadScheduler(Scheduler):
    """On a daemon thread of its own: what runs here goes on whatever blocks the event loop."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._since = 0.0
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    @property
    def busy(self) -> Seconds:
        """For how long the message has been handled that is handled now; 0 between two messages."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    def stop(self, timeout: Seconds) -> bool:
        """End the thread after all that was sent before. Returns whether it ended in time."""
        self._sent.put(None)
        if self.thread.is_alive():
            self.thread.join(timeout)
        return not self.thread.is_alive()

    def _main(self) -> None:
        mark_own_thread()
        while (sent := self._sent.get()) is not None:
            self._since = time.monotonic()
            _handle(sent)
            self._since = 0.0
        self._end()


class LoopScheduler(Scheduler):
    """On the event loop's thread, where the jobs run: no message between an agent and its job wakes another thread."""

    def __init__(self, loop: EventLoop) -> None:
        super().__init__(partial(loop.call, self._handle_next))

    def _handle_next(self) -> None:
        sent = self._sent.get_nowait()  # there are as many calls as messages, as long as it is not over
        if sent is not None:
            _handle(sent)

    def stop(self) -> None:
        """End it, after the loop has ended."""
        self._end()


class Schedulers(NamedTuple):
    """The schedulers of one supervisor."""

    root: ThreadScheduler
    """The switchboard's: it answers, and voids leases, also while a model or a tool blocks the event loop."""
    agents: LoopScheduler
    """The agents' and the blackboard's."""


def _handle(sent: _Sent) -> None:
    """Let an actor handle what was sent to it."""
    actor, message, reply_to = sent
    try:
        actor.handle(message, reply_to)
    except BaseException:  # an edge: the actors behind it wait for this thread
        _log.exception("a thread of actors caught what an actor raised")


def _guarded(function: Callable[[], None]) -> None:
    """Call what must not end the thread of all actors, whatever it raises."""
    try:
        function()
    except BaseException:  # an edge: the actors behind it wait for this thread
        _log.exception("a thread of actors caught what an actor raised")


def _refuse(message: object, reply_to: pykka.Future[Any], name: str) -> None:
    """Answer what comes after an actor's end."""
    if isinstance(message, pykka.messages._ActorStop):  # noqa: SLF001 - it is stopped already
        reply_to.set(None)
        return
    error = pykka.ActorDeadError(f"{name} stopped before handling the message")
    reply_to.set_exception((type(error), error, None))


class _Inbox:
    """What Pykka takes for the actor's queue: it puts the message into the scheduler's."""

    actor: Callable[[], ScheduledActor | None]
    """A weak reference: an actor that has stopped, and that only its refs know, is freed at once."""

    def put(self, envelope: Envelope[Any]) -> None:
        actor = self.actor()
        if actor is not None:
            actor.scheduler.put(actor, envelope.message, envelope.reply_to)
        elif envelope.reply_to is not None:  # it stopped after Pykka had seen it alive
            _refuse(envelope.message, envelope.reply_to, "the actor")


class _Ref(pykka.ActorRef["ScheduledActor"]):
    """A ref that tells without Pykka's envelope, and without asking an event whether the actor has stopped."""

    actor_inbox: _Inbox  # type: ignore[assignment]  # as `_create_actor_inbox` makes it

    def tell(self, message: object) -> None:
        """Tell the actor.

        Raises:
            ActorDeadError: If it has stopped.
        """
        actor = self.actor_inbox.actor()
        if actor is None or actor.gone:
            msg = f"{self} not found"
            raise pykka.ActorDeadError(msg)
        actor.scheduler.put(actor, message)


class ScheduledActor(pykka.Actor):
    """An actor that runs on a scheduler's thread, with others. Its `on_receive` must never block.

    All else is as with any Pykka actor: refs, `tell` and `ask`, the registry, the hooks. But for one thing: a
    SystemExit that escapes is a failure of this actor, and stops no other.

    This file alone uses private parts of Pykka: to make the inbox and the loop of an actor its own, and to stop it. The
    versions for which that holds are those that pyproject.toml allows.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        """Make it; it runs from `start` on, on this scheduler."""
        super().__init__()
        self.scheduler = scheduler
        self.gone = False
        """Whether it has stopped: `actor_stopped`, without asking an event for each message."""
        cast("_Inbox", self.actor_inbox).actor = weakref.ref(self)
        self._actor_ref = _Ref(self)

    @staticmethod
    def _create_actor_inbox() -> ActorInbox:
        return cast("ActorInbox", _Inbox())  # who reads one is the loop, and that is the scheduler's

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        """Let the scheduler know it; `on_start` is not called: initialise on the first message."""
        self.scheduler.add(self)

    def send(self, message: object) -> None:
        """Tell this actor, from any thread; what comes after its end is dropped. `ActorRef.tell` would say so."""
        self.scheduler.put(self, message)

    def abandon(self) -> None:
        """Stop without what waits, because the scheduler has ended."""
        if not self.actor_stopped.is_set():
            self._stop()

    def handle(self, message: object, reply_to: pykka.Future[Any] | None) -> None:
        """Handle one message, as Pykka's own loop does; on the scheduler's thread."""
        if self.gone:
            if reply_to is not None:
                _refuse(message, reply_to, str(self.actor_ref))
            return
        try:
            answer = self._handle_receive(message) if isinstance(message, _PYKKAS) else self.on_receive(message)
        except BaseException:  # an edge: nothing may end the thread of all actors
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
        except BaseException:  # as in Pykka, a hook that fails is logged, no more; nor may it end the thread
            self._handle_failure(*sys.exc_info())

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Log it and stop, as Pykka does, also where a logging handler of the host program raises."""
        with contextlib.suppress(BaseException):
            super()._handle_failure(exception_type, exception_value, traceback)
        self._leave()

    def _stop(self) -> None:
        """Stop at once, as Pykka does, but for its words on it: a handler that raises would keep `on_stop` from us."""
        self._leave()
        try:
            self.on_stop()
        except BaseException:  # as in Pykka, a hook that fails is logged, no more
            self._handle_failure(*sys.exc_info())

    def _leave(self) -> None:
        """Be found and told no more."""
        with contextlib.suppress(BaseException):  # it is out before Pykka logs that
            pykka.ActorRegistry.unregister(self.actor_ref)
        self.gone = True
        self.actor_stopped.set()
