"""A subscriber that resumes after a number gets each later event once and in order, or a count of missed ones."""

from __future__ import annotations

import itertools
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.actors.runtime import EventStream, VirtualClock
from callboard.journal import FileJournal, JournalFile, Row
from callboard.messages import EventName, Task
from support import PATIENCE

PHASES = ("data_collection", "llm_interaction", "action_execution", "memory_update")
EVENT, COMMIT = -1, -2
OPS = st.lists(st.sampled_from([EVENT, EVENT, COMMIT]) | st.integers(0, len(PHASES)), min_size=1, max_size=12)
"""The work of one thread: emit an event or a step's end with phases, or commit the journal."""


@contextmanager
def stream_with(kept, queue, *, journal):
    """Give a stream, and a function that has its journal commit."""
    clock = VirtualClock(1000.0)
    if not journal:
        yield EventStream(clock, kept=kept, queue=queue), lambda: None
        return
    with tempfile.TemporaryDirectory() as folder:
        opened = JournalFile.open(Path(folder) / "journal.db", durability="process")
        file = FileJournal(opened, broken=pytest.fail, later=clock.after)
        stream = EventStream(clock, kept=kept, queue=queue, past=file.events)
        stream.add_queue(file.facts, file.keep_soon)

        numbers = itertools.count()

        def commit():
            safe, task_id = threading.Event(), f"other-{next(numbers)}"
            file.append([Row(1.0, task_id, "", Task(id=task_id, request="x"))], safe.set)
            assert safe.wait(PATIENCE)

        yield stream, commit
        assert file.close(PATIENCE)


def emit_all(stream, commit, task_id, ops):
    """Emit one thread's events; each says how many phases it has."""
    for op in ops:
        if op == COMMIT:
            commit()
        elif op == EVENT:
            stream.emit(EventName.STATE_CHANGED, task_id=task_id, told=0)
        else:
            phases = [{"phase": phase, "at": 1.0, "duration": 0.5} for phase in PHASES[:op]]
            stream.emit(EventName.STEP_ENDED, task_id=task_id, step=1, told=op, phases=phases)


class Reader:
    """A program that hears events, and goes away and comes back after each so many."""

    def __init__(self, stream, task_id):
        self.stream, self.task_id = stream, task_id
        self.seen = 0
        self.phases = []
        self.heard = {}
        self.missed = []

    def read(self, many=None):
        """Go on after the events seen, hear so many more, and go away; by default hear all that there are."""
        feed = self.stream.open(self.task_id, after=self.seen)
        self.phases = []  # they come again
        while (many is None or many > 0) and (event := feed.take()) is not None:
            self.hear(event)
            many = None if many is None else many - 1
        self.stream.drop(feed)

    def hear(self, event):
        if event.name is EventName.PHASE_ENDED:  # they come before the end of their step, with the number before it
            assert event.seq >= self.seen
            self.phases.append((event.seq, event.phase))
            self.seen = event.seq
            return
        assert event.seq > self.seen
        assert self.phases == [(event.seq - 1, phase) for phase in PHASES[: len(self.phases)]]
        assert len(self.phases) == event.data.get("told", 0)
        if event.name is EventName.EVENTS_MISSED:
            self.missed.append(range(self.seen + 1, event.seq + 1))
            if self.task_id is None:
                assert event.data["count"] == event.seq - self.seen
        else:
            assert self.task_id is not None or event.seq == self.seen + 1
            self.heard[event.seq] = event.task_id
        self.seen, self.phases = event.seq, []


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "memory"])
@given(
    threads=st.lists(OPS, min_size=1, max_size=3),
    kept=st.integers(1, 8),
    queue=st.integers(1, 6),
    stays=st.lists(st.integers(0, 5), max_size=6),
    slow=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_each_later_event_comes_once_in_order_or_is_counted(journal, threads, kept, queue, stays, slow):
    with stream_with(kept, queue, journal=journal) as (stream, commit):
        first = stream.open() if slow else None
        readers = [Reader(stream, None), Reader(stream, "task-0")]
        every = {}
        stream.add_sink(lambda event: every.__setitem__(event.seq, event.task_id))
        emitters = [
            threading.Thread(target=emit_all, args=(stream, commit, f"task-{number}", ops))
            for number, ops in enumerate(threads)
        ]
        for emitter in emitters:
            emitter.start()
        for many in stays:
            for reader in readers:
                reader.read(many)
        for emitter in emitters:
            emitter.join(PATIENCE)
        if first is not None:  # it read nothing meanwhile, and goes on from the rest of its queue
            late = Reader(stream, None)
            while (event := first.take()) is not None:
                late.hear(event)
            readers.append(late)
        for reader in readers:
            reader.read()
            gone = {seq for each in reader.missed for seq in each}
            wanted = {seq for seq, task_id in every.items() if reader.task_id in {None, task_id}}
            assert not gone & reader.heard.keys()
            assert reader.heard.keys() | (gone & wanted) == wanted
        if journal:
            late = Reader(stream, None)
            late.read()
            assert list(late.heard.items()) == sorted(every.items())
