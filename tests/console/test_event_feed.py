"""Events of a journal as they reach a browser."""

from __future__ import annotations

import asyncio
import json

from callboard.console._event_feed import event_feed
from callboard.journal import JournalReader
from support import FINISH, PATIENCE, lone


async def taken(feed, count):
    """Take the events of a feed; the first tells its begin."""
    blocks = [await asyncio.wait_for(anext(feed), PATIENCE) for _ in range(count)]
    rows = [dict(line.split(": ", 1) for line in block.decode().strip().split("\n")) for block in blocks]
    return [(int(row["id"]), json.loads(row["data"])) for row in rows]


def test_feed_tells_all_events_after_a_number_once_and_in_order(office):
    started = office(app=lambda _: FINISH)
    started.supervisor.submit(lone(id="t-1")).result(PATIENCE)
    with JournalReader.open(started.journal) as reader:
        last = reader.last_seq()

    async def read():
        feed = event_feed(started.journal, 0)
        events = await taken(feed, last + 1)
        await feed.aclose()
        later = event_feed(started.journal, last - 2)
        end = await taken(later, 3)
        await later.aclose()
        return events, end

    (begin, *events), (_, *end) = asyncio.run(read())
    assert begin == (0, {})
    assert [seq for seq, _ in events] == sorted({seq for seq, _ in events})
    assert {facts["task"] for _, facts in events} >= {"t-1"}
    assert [seq for seq, _ in end] == [last - 1, last]


def test_feed_without_a_number_begins_with_the_next_event(office):
    started = office(app=lambda _: FINISH)
    started.supervisor.submit(lone(id="t-1")).result(PATIENCE)

    async def read():
        feed = event_feed(started.journal, None)
        ((begin, _),) = await taken(feed, 1)
        started.supervisor.submit(lone(id="t-2"))
        events = [(begin, {"task": ""})]
        while events[-1][1]["task"] != "t-2":
            events += await taken(feed, 1)
        await feed.aclose()
        return [seq for seq, _ in events]

    numbers = asyncio.run(read())
    assert numbers == sorted(set(numbers))


def test_number_of_another_journal_is_not_waited_for(office):
    started = office(app=lambda _: FINISH)

    async def read():
        feed = event_feed(started.journal, 10**6)
        ((begin, _),) = await taken(feed, 1)
        started.supervisor.submit(lone(id="t-1"))
        events = await taken(feed, 1)
        await feed.aclose()
        return begin, events[0][0]

    begin, number = asyncio.run(read())
    assert begin < number < 10**6


def test_journal_is_closed_after_the_last_look_of_a_browser_that_left(office, monkeypatch):
    started = office(app=lambda _: FINISH)
    order: list[str] = []
    entered = asyncio.Event()

    async def read():
        loop = asyncio.get_running_loop()
        changes, close = JournalReader.changes, JournalReader.close

        def slow_changes(reader, after_seq, limit):
            order.append("look")
            loop.call_soon_threadsafe(entered.set)
            asyncio.run(asyncio.sleep(0.2))
            events = changes(reader, after_seq, limit)
            order.append("looked")
            return events

        def noted_close(reader):
            order.append("closed")
            close(reader)

        monkeypatch.setattr(JournalReader, "changes", slow_changes)
        monkeypatch.setattr(JournalReader, "close", noted_close)
        feed = event_feed(started.journal, 10**9)
        await taken(feed, 1)
        reading = asyncio.ensure_future(anext(feed))
        await entered.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await feed.aclose()

    asyncio.run(read())  # the executor's threads are joined at its end
    assert order == ["look", "looked", "closed"]
