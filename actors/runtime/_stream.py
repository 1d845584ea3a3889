"""The event stream: numbered events, buffered and published to subscribers."""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Any, Protocol, cast

from callboard.messages import Event, EventName, Fact, encodable, read_events, with_phases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from callboard.actors.runtime._clock import Clock
    from callboard.messages import Seconds, Timestamp


class EventFeed:
    """One subscriber's bounded queue.

    When it is full, the oldest event is dropped and counted as missed.
    """

    def __init__(self, size: int, task_id: str | None, clock: Clock) -> None:
        read_events("[]")  # builds the reader at first use: here, and not under the lock that `put` needs
        self._events: collections.deque[Event | Fact] = collections.deque()
        self._step_events: collections.deque[Event] = collections.deque()
        """The remaining events of the step that is being read: its phases and its end. A step is queued as one event.
        """
        self._size = size
        self.task_id = task_id
        self.of_host = True
        """Whether the host program reads it, and not a part of the supervisor."""
        self._clock = clock
        self._missed = 0
        self._last_missed = 0
        self._closed = False
        self._changed = threading.Condition()
        self._wake: Callable[[], None] | None = None

    def wants(self, event: Event | Fact) -> bool:
        """Report whether the subscriber wants an event."""
        return self.task_id is None or event.task_id == self.task_id

    def put(self, event: Fact) -> None:
        """Add an event; never blocks."""
        with self._changed:
            if self._closed:
                return
            if len(self._events) >= self._size:
                dropped_event = self._events.popleft()
                self._last_missed = dropped_event.seq
                self._missed += (
                    cast("int", dropped_event.data["count"]) if dropped_event.name is EventName.EVENTS_MISSED else 1
                )
            self._events.append(event)
            self._changed.notify()
            wake = self._wake
        if wake is not None:
            wake()

    def replay(self, event: Event | Fact) -> None:
        """Add a past event, beyond the size of the queue.

        Past events are as many as the stream and the journal keep.
        """
        with self._changed:
            self._events.append(event)
            self._size += 1

    def skip(self, count: int, last: int) -> None:
        """Add an ``events.missed`` in place of events that are no longer kept.

        Args:
            count: The number of missed events.
            last: The sequence number of the last one.
        """
        self.replay(self._missed_event(count, last))

    def take(self) -> Event | None:
        """Take the next event without waiting; None if there is none.

        A count of missed events comes first.
        """
        with self._changed:
            return self._take()

    def _take(self) -> Event | None:
        if self._missed and not self._step_events:
            count, self._missed = self._missed, 0
            return self._missed_event(count, self._last_missed)
        if not self._step_events and self._events:
            event = self._events.popleft()
            self._step_events.extend(with_phases(event.event() if isinstance(event, Fact) else event))
        return self._step_events.popleft() if self._step_events else None

    def _missed_event(self, count: int, last: int) -> Event:
        from callboard.messages.events import EventsMissed

        return EventsMissed(seq=last, at=self._clock.now(), task_id=self.task_id or "", count=count)

    def get(self, timeout: float | None = None) -> Event | None:
        """Wait for the next event; None at the end of the stream.

        Raises:
            TimeoutError: If there was no event in time.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._step_events or self._events or self._missed or self._closed, timeout
            ):
                msg = f"no event within {timeout} s"
                raise TimeoutError(msg)
            return self._take()

    @property
    def closed(self) -> bool:
        """True once no more events will be added."""
        return self._closed

    def on_change(self, wake: Callable[[], None]) -> None:
        """Set a callback for changes and call it once now.

        It runs on the thread that makes the change.
        """
        with self._changed:
            self._wake = wake
        wake()

    def close(self) -> None:
        """Close the feed; queued events can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            wake = self._wake
        if wake is not None:
            wake()

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events, waiting for each, until the stream ends."""
        while (event := self.get()) is not None:
            yield event


class Redaction(Protocol):
    """The redaction of secrets in the data of events."""

    @property
    def known(self) -> bool:
        """True while there are secrets to redact."""
        ...

    def redact(self, task_id: str, message: dict[str, Any], /) -> dict[str, Any]:
        """Return the data without secrets. Must be fast."""
        ...


PAGE = 1000
"""The number of events that are read from a journal in one batch."""


class EventStream:
    """The publisher of events: it numbers them and keeps the latest ones.

    Thread-safe. `emit` never waits for a subscriber.
    """

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
        """Create a stream.

        Args:
            clock: The source of the events' times.
            kept: The number of latest events that are kept in memory.
            queue: The number of events that may wait for one subscriber.
            tasks: The number of finished tasks, the latest ones, with all of their events kept in memory. So are the
                events of active tasks, but at most `kept` of each task.
            seq: The number of the previous process's last event.
            past: Returns older events: those after a sequence number, at most as many as its second argument. May
                block.
            redaction: Redacts the data of events.
        """
        self._read_past = past
        self._redaction = redaction
        self._clock = clock
        self.steady: Callable[[], Timestamp] = clock.steady
        """Returns the time for rows of the journal; events have the wall time."""
        self._queue = queue
        self._latest_events: collections.deque[Fact] = collections.deque(maxlen=kept)
        self._kept_tasks = tasks
        self._task_events: dict[str, collections.deque[Fact]] = {}
        self._ended_tasks: collections.deque[str] = collections.deque()
        self._feeds: dict[str | None, list[EventFeed]] = {None: []}
        self._queues: list[tuple[collections.deque[Fact], Callable[[], None]]] = []
        self._sinks: list[Callable[[Fact], None]] = []
        self._lock = threading.Lock()
        self._seq = seq
        self._closed = False

    @property
    def seq(self) -> int:
        """The sequence number of the latest event."""
        return self._seq

    def is_read(self, task_id: str) -> bool:
        """Return whether the host program reads the events of a task."""
        return any(feed.of_host for name in (None, task_id) for feed in tuple(self._feeds.get(name, ())))

    def add_sink(self, sink: Callable[[Fact], None]) -> None:
        """Call a function with each event, as the log needs it.

        It must not block.
        """
        self._sinks.append(sink)

    def add_queue(self, queue: collections.deque[Fact], filled: Callable[[], None]) -> None:
        """Append each event to a queue that another thread empties.

        The journal's thread does so.

        Args:
            queue: The queue.
            filled: Called after an event was appended to the empty queue; must not block.
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
        """Publish an event. Other keyword arguments become its ``data``."""
        for key, value in data.items():
            if isinstance(value, str) and not value.isascii():
                data[key] = encodable(value)
        if self._redaction is not None and self._redaction.known:
            data = _redacted(self._redaction, task_id, data)
        # Numbering and publishing are one step under the lock: every feed, the journal and the log get the events in
        # the order of their numbers. No receiver blocks: a feed drops, a queue grows, and a sink returns at once.
        with self._lock:
            self._seq += 1
            event = Fact(self._seq, self._clock.now(), name, task_id, run_id, agent, state, step, phase, duration, data)
            self._latest_events.append(event)
            if self._kept_tasks:
                self._keep(event)
            for feed in self._feeds[None]:
                feed.put(event)
            for feed in self._feeds.get(task_id, ()):
                feed.put(event)
            for queue, filled in self._queues:
                queue.append(event)
                if len(queue) == 1:
                    filled()
            for sink in self._sinks:
                sink(event)

    def _keep(self, event: Fact) -> None:
        """Keep an event with the others of its task."""
        if event.name is EventName.TASK_SUBMITTED:
            self._task_events[event.task_id] = collections.deque(maxlen=self._latest_events.maxlen)
        elif event.name is EventName.TASK_ENDED:
            self._ended_tasks.append(event.task_id)
        of_task = self._task_events.get(event.task_id)
        if of_task is not None:
            of_task.append(event)
        if len(self._ended_tasks) > self._kept_tasks:
            self._task_events.pop(self._ended_tasks.popleft(), None)

    def open(
        self,
        task_id: str | None = None,
        after: int | None = None,
        queue: int | None = None,
        *,
        of_host: bool = True,
    ) -> EventFeed:
        """Subscribe a new feed, from now on or after a sequence number.

        Events that are no longer kept, also not in a journal, are replaced with one ``events.missed``. May block if
        there is a journal.

        Args:
            task_id: The task whose events the feed gets; None for all events.
            after: The sequence number after which past events are replayed; None for new events only.
            queue: The size of the feed's queue; None for the stream's default.
            of_host: Whether the host program reads it, and not a part of the supervisor.
        """
        feed = EventFeed(queue or self._queue, task_id, self._clock)
        feed.of_host = of_host
        if after is not None and self._read_past is not None:
            after = self._replay_past(feed, after, self._read_past)
        # Under the lock no event is published between the replay of the kept ones and the subscription.
        with self._lock:
            if after is not None:
                self._replay(feed, after)
            if self._closed:
                feed.close()
            else:
                self._feeds.setdefault(task_id, []).append(feed)
        return feed

    def _replay_past(self, feed: EventFeed, last_seq: int, past: Callable[[int, int], list[Event]]) -> int:
        """Replay the events that are older than the kept ones.

        Returns the sequence number of the last event that was read.
        """
        while last_seq + 1 < (self._latest_events[0].seq if self._latest_events else self._seq + 1):
            events = past(last_seq, PAGE)
            if not events:
                break
            for event in events:
                if feed.wants(event):
                    feed.replay(event)
            last_seq = events[-1].seq
        return last_seq

    def _replay(self, feed: EventFeed, last_seq: int) -> None:
        of_task = self._task_events.get(feed.task_id or "")
        kept_events = self._latest_events if of_task is None else of_task
        all_there = of_task is not None and len(of_task) != of_task.maxlen
        if kept_events and kept_events[0].seq > last_seq + 1 and not all_there:
            feed.skip(kept_events[0].seq - 1 - last_seq, kept_events[0].seq - 1)
        for event in kept_events:
            if event.seq > last_seq and feed.wants(event):
                feed.replay(event)

    def drop(self, feed: EventFeed) -> None:
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
    """Redact the data of an event.

    Of a step's phases only the errors are redacted, since their names are fixed.
    """
    if "phases" not in data:
        return redaction.redact(task_id, data)
    other_data = redaction.redact(task_id, {name: value for name, value in data.items() if name != "phases"})
    errors = ({"error": phase["error"]} if "error" in phase else {} for phase in data["phases"])
    phases = [
        {**phase, **redaction.redact(task_id, error)} for phase, error in zip(data["phases"], errors, strict=True)
    ]
    return {**other_data, "phases": phases}
