"""The event stream, its feeds and its subscribers."""

from __future__ import annotations

import collections
import inspect
import logging
import queue
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.commands import Secrets
from callboard.actors.runtime import EventStream, Subscriber, VirtualClock
from callboard.messages import Event, EventName, Secret
from support import HELD, PATIENCE

NAME = EventName.STATE_CHANGED


def emit(stream, count, task_id="task-1"):
    for _ in range(count):
        stream.emit(NAME, task_id=task_id)


def drain(feed):
    """Give the contents of a feed: sequence numbers, and ``(seq, missed)`` for lost events."""
    taken = []
    while (event := feed.take()) is not None:
        taken.append((event.seq, event.data["count"]) if event.name is EventName.EVENTS_MISSED else event.seq)
    return taken


def test_events_are_numbered_from_one_and_carry_the_clocks_time(stream, clock):
    feed = stream.open()
    emit(stream, 1)
    clock.advance(5)
    emit(stream, 1)
    assert [(event.seq, event.at) for event in (feed.get(PATIENCE), feed.get(PATIENCE))] == [(1, 1000.0), (2, 1005.0)]
    assert stream.seq == 2


def test_every_field_of_an_event_can_be_given():
    given = set(inspect.signature(EventStream.emit).parameters) - {"self", "name", "data"}
    assert given == set(Event.model_fields) - {"kind", "schema_version", "seq", "at", "name", "data"}


def test_fields_of_an_event_are_set_and_all_others_go_into_its_data(stream):
    feed = stream.open()
    stream.emit(NAME, task_id="task-1", agent="host/task-1", state="CONTINUE", step=2, source="a", target="b")
    event = feed.get(PATIENCE)
    assert (event.task_id, event.agent, event.state, event.step) == ("task-1", "host/task-1", "CONTINUE", 2)
    assert event.data == {"source": "a", "target": "b"}


def test_a_feed_begins_with_what_happens_after_it_was_opened(stream):
    emit(stream, 2)
    feed = stream.open()
    emit(stream, 1)
    assert drain(feed) == [3]


def test_a_tasks_feed_gets_only_its_events(stream):
    feed, all_of_them = stream.open("task-1"), stream.open()
    emit(stream, 1, "task-1")
    emit(stream, 1, "task-2")
    stream.emit(EventName.SUPERVISOR_STARTED)
    assert drain(feed) == [1]
    assert drain(all_of_them) == [1, 2, 3]


@pytest.mark.parametrize(("after", "expected"), [(0, [1, 2, 3]), (2, [3]), (3, []), (9, [])])
def test_feed_continues_after_a_number(stream, after, expected):
    emit(stream, 3)
    assert drain(stream.open(after=after)) == expected


def test_dropped_events_are_counted(stream):
    emit(stream, 7)  # five are kept
    assert drain(stream.open(after=0)) == [(2, 2), 3, 4, 5, 6, 7]


def test_dropped_events_are_counted_after_those_of_the_journal(clock):
    stream = EventStream(clock, kept=2, queue=3, past=lambda after, _limit: journal[after:])
    emit(stream, 5)
    journal = [Event(seq=seq, at=0.0, name=NAME) for seq in (1, 2)]
    assert drain(stream.open(after=0)) == [1, 2, (3, 1), 4, 5]


def test_dropped_events_are_counted_once_although_the_feed_is_full(stream):
    emit(stream, 7)
    feed = stream.open(after=0)
    emit(stream, 5)
    assert drain(feed) == [(3, 3), *range(4, 13)]


def test_replayed_events_leave_room_for_new_ones(stream):
    emit(stream, 5)
    feed = stream.open(after=0)
    emit(stream, 3)
    assert drain(feed) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_full_feed_loses_its_oldest_events_and_counts_them(stream):
    feed = stream.open()
    emit(stream, 5)  # three fit
    assert drain(feed) == [(2, 2), 3, 4, 5]


@given(st.lists(st.one_of(st.integers(1, 6), st.none())))
def test_whatever_the_pace_events_arrive_in_order_or_are_counted(turns):
    stream = EventStream(VirtualClock(), kept=100, queue=3)
    feed, taken = stream.open(), []
    for count in turns:
        if count is None:
            event = feed.take()
            taken += [event] if event is not None else []
        else:
            emit(stream, count)
    while (event := feed.take()) is not None:
        taken.append(event)
    seen = 0
    for event in taken:
        if event.name is EventName.EVENTS_MISSED:
            assert event.seq == seen + event.data["count"]
        else:
            assert event.seq == seen + 1
        seen = event.seq
    assert seen == stream.seq


def test_waiting_for_an_event_ends_when_it_comes(stream):
    feed = stream.open()
    got = queue.SimpleQueue()
    waiting = threading.Thread(target=lambda: got.put(feed.get(PATIENCE)))
    waiting.start()
    emit(stream, 1)
    assert got.get(timeout=PATIENCE).seq == 1
    waiting.join(PATIENCE)


def test_waiting_for_an_event_that_does_not_come_times_out(stream):
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        stream.open().get(0.01)


def test_a_closed_feed_gives_what_it_holds_and_then_ends(stream):
    feed = stream.open()
    emit(stream, 2)
    stream.close()
    emit(stream, 1)
    assert [event.seq for event in feed] == [1, 2]
    assert feed.closed
    assert feed.get() is None


def test_a_feed_of_a_closed_stream_gives_the_past_and_ends(stream):
    emit(stream, 2)
    stream.close()
    assert [event.seq for event in stream.open(after=0)] == [1, 2]


def test_a_dropped_feed_ends_and_costs_the_stream_nothing_more(stream):
    feed = stream.open("task-1")
    stream.drop(feed)
    stream.drop(feed)
    emit(stream, 1)
    assert feed.get(PATIENCE) is None
    assert set(stream._feeds) == {None}


def test_feed_watcher_is_called_at_each_event_and_at_the_end(stream):
    feed, calls = stream.open(), []
    feed.on_change(lambda: calls.append(feed.closed))
    emit(stream, 2)
    stream.close()
    assert calls == [False, False, False, True]


def test_a_sink_gets_every_event(stream):
    got = []
    stream.add_sink(got.append)
    emit(stream, 7)
    assert [event.seq for event in got] == [1, 2, 3, 4, 5, 6, 7]


def test_a_queue_gets_every_event_and_tells_when_it_was_empty(stream):
    got, filled = collections.deque(), []
    stream.add_queue(got, lambda: filled.append(got[-1].seq))
    emit(stream, 3)
    got.clear()
    emit(stream, 2)
    assert ([event.seq for event in got], filled) == ([4, 5], [1, 4])


def test_events_of_many_threads_have_one_order_for_all():
    stream = EventStream(VirtualClock(), kept=1000, queue=1000)
    feeds = [stream.open(), stream.open()]
    threads = [threading.Thread(target=emit, args=(stream, 100, f"task-{number}")) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [drain(feed) for feed in feeds] == [list(range(1, 401))] * 2


def test_a_subscriber_is_called_with_each_event_on_a_thread_of_its_own(stream):
    got = queue.SimpleQueue()
    subscriber = Subscriber(stream.open(), lambda event: got.put((event.seq, threading.current_thread().name)))
    emit(stream, 2)
    stream.close()
    assert subscriber.join(PATIENCE)
    assert [got.get(timeout=PATIENCE), got.get(timeout=PATIENCE)] == [(1, subscriber.name), (2, subscriber.name)]


def test_a_failing_subscriber_is_logged_and_gets_the_next_event(stream, caplog):
    got = queue.SimpleQueue()

    def fail_first(event: Event) -> None:
        got.put(event.seq)
        if event.seq == 1:
            raise ValueError

    with caplog.at_level(logging.ERROR, "callboard"):
        subscriber = Subscriber(stream.open(), fail_first)
        emit(stream, 2)
        stream.close()
        assert subscriber.join(PATIENCE)
    assert [got.get(timeout=PATIENCE), got.get(timeout=PATIENCE)] == [1, 2]
    assert [record.getMessage() for record in caplog.records] == ["a subscriber failed on event 1, state.changed"]


def test_a_subscriber_that_wants_to_leave_the_process_gets_the_next_event(stream):
    got = queue.SimpleQueue()

    def leave_first(event: Event) -> None:
        got.put(event.seq)
        if event.seq == 1:
            raise SystemExit

    subscriber = Subscriber(stream.open(), leave_first)
    emit(stream, 2)
    stream.close()
    assert subscriber.join(PATIENCE)
    assert [got.get(timeout=PATIENCE), got.get(timeout=PATIENCE)] == [1, 2]


def test_a_hanging_subscriber_is_waited_for_no_longer_than_the_timeout(stream):
    begun, let_go = threading.Event(), threading.Event()

    def block(_event: Event) -> None:
        begun.set()
        let_go.wait(HELD)

    subscriber = Subscriber(stream.open(), block)
    emit(stream, 1)
    stream.close()
    assert begun.wait(PATIENCE)
    assert not subscriber.join(0.01)
    let_go.set()
    assert subscriber.join(PATIENCE)


def test_a_subscriber_may_wait_for_itself(stream):
    subscribers, joined = queue.SimpleQueue(), queue.SimpleQueue()
    subscriber = Subscriber(stream.open(), lambda _event: joined.put(subscribers.get(timeout=PATIENCE).join(0)))
    subscribers.put(subscriber)
    emit(stream, 1)
    assert joined.get(timeout=PATIENCE) is True
    stream.close()
    assert subscriber.join(PATIENCE)


def test_the_events_of_the_latest_tasks_that_are_over_are_all_kept():
    stream = EventStream(VirtualClock(), kept=4, queue=2, tasks=2)
    for task in ("one", "two", "three"):
        stream.emit(EventName.TASK_SUBMITTED, task_id=task)
        stream.emit(EventName.STATE_CHANGED, task_id=task)
    for task in ("one", "two", "three"):
        stream.emit(EventName.TASK_ENDED, task_id=task)
    stream.emit(EventName.COMMAND_LATE, task_id="one")
    assert [drain(stream.open(task, after=0)) for task in ("two", "three")] == [[3, 4, 8], [5, 6, 9]]
    assert drain(stream.open("one", after=0)) == [(6, 6), 7, 10]


def test_of_a_task_without_end_as_many_events_are_kept_as_of_all():
    stream = EventStream(VirtualClock(), kept=3, queue=9, tasks=2)
    stream.emit(EventName.TASK_SUBMITTED, task_id="one")
    for _ in range(4):
        stream.emit(EventName.STATE_CHANGED, task_id="one")
    assert drain(stream.open("one", after=0)) == [(2, 2), 3, 4, 5]


@pytest.mark.parametrize("value", ["memory", "action"])
def test_a_secret_changes_no_name_of_a_phase_but_its_error(value):
    secrets = Secrets({"PW": Secret(value=value)})
    stream = EventStream(VirtualClock(1000.0), kept=10, queue=10, redaction=secrets)
    feed, phases = stream.open(), ["data_collection", "action_execution", "memory_update"]
    told = [{"phase": phase, "at": 1.0, "duration": 0.5} for phase in phases]
    stream.emit(EventName.STEP_FAILED, task_id="t", step=1, phases=[*told[:-1], {**told[-1], "error": f"no {value}"}])
    ended = [feed.take() for _ in phases]
    assert [event.phase for event in ended] == phases
    assert ended[-1].data == {"error": "no ${secret:PW}"}
