"""The event stream: one order for everything that happens, kept for a while, fed to subscribers."""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Any, Protocol, cast

from callboard.messages import Event, EventName, Fact, encodable, with_phases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from callboard.actors.runtime._clock import Clock
    from callboard.messages import Seconds, Timestamp


class Feed:
    """One subscriber's bounded queue. When it is full the oldest event goes, and is counted."""

    def __init__(self, size: int, task_id: str | None, clock: Clock) -> None:
        self._events: collections.deque[Event | Fact] = collections.deque()
        self._read: collections.deque[Event] = collections.deque()
        """The phases of a step, and its end, as far as nobody took them yet."""
        self._size = size
        self.task_id = task_id
        self._clock = clock
        self._missed = 0
        self._last_missed = 0
        self._closed = False
        self._changed = threading.Condition()
        self._wake: Callable[[], None] | None = None

    def wants(self, event: Event | Fact) -> bool:
        """Say whether an event belongs here."""
        return self.task_id is None or event.task_id == self.task_id

    def put(self, event: Fact) -> None:
        """Add an event; never blocks."""
        with self._changed:
            if self._closed:
                return
            if len(self._events) >= self._size:
                lost = self._events.popleft()
                self._last_missed = lost.seq
                self._missed += cast("int", lost.data["count"]) if lost.name is EventName.EVENTS_MISSED else 1
            self._events.append(event)
            self._changed.notify()
            wake = self._wake
        if wake is not None:
            wake()

    def replay(self, event: Event | Fact) -> None:
        """Add an event of the past; these are as many as are kept, and need not fit the queue."""
        with self._changed:
            self._events.append(event)
            self._size += 1

    def skip(self, count: int, last: int) -> None:
        """Count events that are no longer kept, the last of which had the number `last`; they have their place."""
        self.replay(self._told_missed(count, last))

    def take(self) -> Event | None:
        """Take the next event without waiting; None when there is none. What was missed comes first."""
        with self._changed:
            return self._take()

    def _take(self) -> Event | None:
        if self._missed and not self._read:
            count, self._missed = self._missed, 0
            return self._told_missed(count, self._last_missed)
        if not self._read and self._events:
            event = self._events.popleft()
            self._read.extend(with_phases(event.event() if isinstance(event, Fact) else event))
        return self._read.popleft() if self._read else None

    def _told_missed(self, count: int, last: int) -> Event:
        return Event(
            seq=last,
            at=self._clock.now(),
            name=EventName.EVENTS_MISSED,
            task_id=self.task_id or "",
            data={"count": count},
        )

    def get(self, timeout: float | None = None) -> Event | None:
        """Wait for the next event; None at the end of the stream.

        Raises:
            TimeoutError: If nothing came in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._read or self._events or self._missed or self._closed, timeout):
                msg = f"no event within {timeout} s"
                raise TimeoutError(msg)
            return self._take()

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    def on_change(self, wake: Callable[[], None]) -> None:
        """Have a function called after each change, on the thread that makes it."""
        with self._changed:
            self._wake = wake
        wake()

    def close(self) -> None:
        """End it; what is queued can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            wake = self._wake
        if wake is not None:
            wake()

    def __iter__(self) -> Iterator[Event]:
        """Wait for the events one by one, to the end of the stream."""
        while (event := self.get()) is not None:
            yield event


class Redaction(Protocol):
    """Takes out of the data of a task's event what nobody may see."""

    @property
    def known(self) -> bool:
        """True while there is anything to take out."""
        ...

    def redact(self, task_id: str, message: dict[str, Any], /) -> dict[str, Any]:
        """Take it out. Must be quick."""
        ...


PAGE = 1000
"""Events that are read from a journal at once."""


class EventStream:
    """Numbers events, keeps the latest, and hands them on. Thread-safe; `emit` never waits for a subscriber."""

    def __init__(
        self,
        clock: Clock,
        kept: int,
        queue: int,
        *,
        tasks: int = 0,
        seq: int = 0,
        past: Callable[[int, int], list[Event]] | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        """Make a stream.

        Args:
            clock: Tells when things happen.
            kept: How many of the latest events are kept here.
            queue: How many events may wait for one subscriber.
            tasks: Of how many tasks that are over all events are kept here, the latest ones; of those that are not over
                they are, too, unless there are more than `kept`.
            seq: The number of the last event of the process before this one.
            past: Reads older events: those after a number, at most so many. May block.
            redaction: Takes out of the data of events what nobody may see.
        """
        self._past = past
        self._redaction = redaction
        self._clock = clock
        self.steady: Callable[[], Timestamp] = clock.steady
        """Gives the time that rows of the journal carry; events carry the wall time."""
        self._queue = queue
        self._kept: collections.deque[Fact] = collections.deque(maxlen=kept)
        self._tasks = tasks
        self._of_task: dict[str, collections.deque[Fact]] = {}
        self._over: collections.deque[str] = collections.deque()
        self._feeds: dict[str | None, list[Feed]] = {None: []}
        self._queues: list[tuple[collections.deque[Fact], Callable[[], None]]] = []
        self._sinks: list[Callable[[Fact], None]] = []
        self._lock = threading.Lock()
        self._seq = seq
        self._closed = False

    @property
    def seq(self) -> int:
        """The number of the latest event."""
        return self._seq

    def add_sink(self, sink: Callable[[Fact], None]) -> None:
        """Have each event given to a function that must not block: the log."""
        self._sinks.append(sink)

    def add_queue(self, queue: collections.deque[Fact], filled: Callable[[], None]) -> None:
        """Have each event put into a queue that another thread empties: the journal's.

        Args:
            queue: The queue.
            filled: Called after an event came into the empty queue; must not block.
        """
        self._queues.append((queue, filled))

    def emit(
        self,
        name: EventName,
        *,
        task_id: str = "",
        run_id: str = "",
        agent: str = "",
        state: str = "",
        step: int | None = None,
        phase: str = "",
        duration: Seconds | None = None,
        **data: Any,
    ) -> None:
        """Record that something happened. What is no field of `Event` goes into its ``data``."""
        for key, value in data.items():
            if isinstance(value, str) and not value.isascii():
                data[key] = encodable(value)
        if self._redaction is not None and self._redaction.known:
            data = _redacted(self._redaction, task_id, data)
        with self._lock:
            self._seq += 1
            event = Fact(self._seq, self._clock.now(), name, task_id, run_id, agent, state, step, phase, duration, data)
            self._kept.append(event)
            if self._tasks:
                self._keep(event)
            for feed in self._feeds[None]:
                feed.put(event)
            for feed in self._feeds.get(task_id, ()):
                feed.put(event)
            for queue, filled in self._queues:  # inside the lock: rows and lines stand in the order of their numbers
                queue.append(event)
                if len(queue) == 1:
                    filled()
            for sink in self._sinks:
                sink(event)

    def _keep(self, event: Fact) -> None:
        """Keep it with those of its task."""
        if event.name is EventName.TASK_SUBMITTED:
            self._of_task[event.task_id] = collections.deque(maxlen=self._kept.maxlen)
        elif event.name is EventName.TASK_ENDED:
            self._over.append(event.task_id)
        of_task = self._of_task.get(event.task_id)
        if of_task is not None:
            of_task.append(event)
        if len(self._over) > self._tasks:
            self._of_task.pop(self._over.popleft(), None)

    def open(self, task_id: str | None = None, after: int | None = None, queue: int | None = None) -> Feed:
        """Open a feed: from now on, or after a sequence number as far back as events are kept.

        As many events may wait in it as in any, if `queue` does not say how many.
        What is no longer kept, and in no journal either, arrives as one ``events.missed``. May block if there is one.
        """
        feed = Feed(queue or self._queue, task_id, self._clock)
        if after is not None and self._past is not None:
            after = self._replay_past(feed, after, self._past)
        with self._lock:
            if after is not None:
                self._replay(feed, after)
            if self._closed:
                feed.close()
            else:
                self._feeds.setdefault(task_id, []).append(feed)
        return feed

    def _replay_past(self, feed: Feed, after: int, past: Callable[[int, int], list[Event]]) -> int:
        """Replay what is older than the kept events. Returns the number of the last event that was looked at."""
        while after + 1 < (self._kept[0].seq if self._kept else self._seq + 1):
            events = past(after, PAGE)
            if not events:
                break
            for event in events:
                if feed.wants(event):
                    feed.replay(event)
            after = events[-1].seq
        return after

    def _replay(self, feed: Feed, after: int) -> None:
        of_task = self._of_task.get(feed.task_id or "")
        kept = self._kept if of_task is None else of_task
        all_there = of_task is not None and len(of_task) != of_task.maxlen
        if kept and kept[0].seq > after + 1 and not all_there:
            feed.skip(kept[0].seq - 1 - after, kept[0].seq - 1)
        for event in kept:
            if event.seq > after and feed.wants(event):
                feed.replay(event)

    def drop(self, feed: Feed) -> None:
        """Close a feed and forget it."""
        with self._lock:
            feeds = self._feeds.get(feed.task_id, [])
            if feed in feeds:
                feeds.remove(feed)
            if not feeds and feed.task_id is not None:
                self._feeds.pop(feed.task_id, None)
        feed.close()

    def close(self) -> None:
        """End the stream and all its feeds."""
        with self._lock:
            self._closed = True
            feeds = [feed for some in self._feeds.values() for feed in some]
            self._feeds = {None: []}
        for feed in feeds:
            feed.close()


def _redacted(redaction: Redaction, task_id: str, data: dict[str, Any]) -> dict[str, Any]:
    """Redact the data of an event; of the phases of a step their errors alone, since their names are ours."""
    if "phases" not in data:
        return redaction.redact(task_id, data)
    rest = redaction.redact(task_id, {name: value for name, value in data.items() if name != "phases"})
    errors = ({"error": phase["error"]} if "error" in phase else {} for phase in data["phases"])
    phases = [
        {**phase, **redaction.redact(task_id, error)} for phase, error in zip(data["phases"], errors, strict=True)
    ]
    return {**rest, "phases": phases}
