"""The promises of a fleet's engine, in memory and on a server of NATS."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib

import nats
import pytest

from callboard.fleet import (
    Bucket,
    ConflictError,
    DamagedFileError,
    EngineAwayError,
    NatsEngine,
    QueueFullError,
    StoredFile,
    set_up,
)
from callboard.fleet._nats_client import answering
from callboard.fleet._nats_engine import _bucket_config
from callboard.fleet._nats_files import FILES_CONFIG
from callboard.messages import SettingsError
from fleet_lab import Link
from support import PATIENCE

pytestmark = pytest.mark.asyncio


async def soon(work):
    """Wait for something that should come soon."""
    return await asyncio.wait_for(work, PATIENCE)


async def repeat(call):
    """Repeat a call until the engine answers."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(EngineAwayError):
                return await call()
            await asyncio.sleep(0.05)


async def disconnected(engine):
    """Wait until an engine knows that its server is absent."""
    async with asyncio.timeout(PATIENCE):
        while engine.is_connected:  # noqa: ASYNC110 - the library has no event for it
            await asyncio.sleep(0.05)


async def test_queue_delivers_work_in_order_and_drops_it_when_done(world):
    engine = await world.engine()
    for number in range(3):
        await engine.send("finance-3", f"task-{number}", str(number).encode())
    await engine.send("finance-4", "task-9", b"9")
    for number in range(3):
        delivery = await soon(engine.receive("finance-3"))
        assert delivery.body == str(number).encode()
        await delivery.done()
    assert (await engine.waiting("finance-3"), await engine.waiting("finance-4")) == (0, 1)


async def test_queue_keeps_repeated_work_once(world):
    engine, other = await world.engine(), await world.engine("finance-4")
    await engine.send("finance-3", "task-1", b"1")
    await other.send("finance-3", "task-1", b"1")
    await engine.send("finance-4", "task-1", b"1")
    assert (await engine.waiting("finance-3"), await engine.waiting("finance-4")) == (1, 1)


async def test_queue_delivers_work_again_when_its_receiver_is_silent(world):
    engine = await world.engine()
    await engine.send("finance-3", "task-1", b"1")
    first = await soon(engine.receive("finance-3"))
    again = await soon(engine.receive("finance-3"))
    assert again.body == first.body
    await again.done()
    assert await engine.waiting("finance-3") == 0


async def test_queue_delivers_work_once_while_its_receiver_keeps_it(world):
    engine, other = await world.engine(), await world.engine("finance-4")
    await engine.send("any", "task-1", b"1")
    delivery = await soon(engine.receive("any"))
    waiting = asyncio.ensure_future(other.receive("any"))
    for _ in range(8):  # twice the time after which it would be delivered again
        await delivery.keep()
        await asyncio.sleep(0.125)
    assert not waiting.done()
    await delivery.give_back()
    assert (await soon(waiting)).body == b"1"


async def test_receiver_gets_work_that_is_sent_later(world):
    engine = await world.engine()
    waiting = asyncio.ensure_future(engine.receive("finance-3"))
    await asyncio.sleep(0.1)
    await engine.send("finance-3", "task-1", b"1")
    assert (await soon(waiting)).body == b"1"


async def test_bucket_keeps_the_last_value_of_a_key(world):
    engine = await world.engine()
    assert await engine.get(Bucket.RESULTS, "a.task-1") is None
    first = await engine.put(Bucket.RESULTS, "a.task-1", b"1")
    second = await engine.put(Bucket.RESULTS, "a.task-1", b"2")
    assert second > first
    assert await engine.get(Bucket.RESULTS, "a.task-1") == ("a.task-1", b"2", second)
    assert await engine.get(Bucket.SIGNALS, "a.task-1") is None
    await engine.delete(Bucket.RESULTS, "a.task-1")
    assert await engine.get(Bucket.RESULTS, "a.task-1") is None


async def test_update_succeeds_for_one_of_several_machines(world):
    engines = [await world.engine(f"finance-{number}") for number in range(4)]
    claims = await asyncio.gather(
        *(engine.update(Bucket.CLAIMS, "task-1", b"claimed", 0) for engine in engines), return_exceptions=True
    )
    assert sum(isinstance(claim, ConflictError) for claim in claims) == 3
    (revision,) = [claim for claim in claims if isinstance(claim, int)]
    with pytest.raises(ConflictError, match="changed by another machine"):
        await engines[0].update(Bucket.CLAIMS, "task-1", b"started", revision - 1)
    await engines[0].update(Bucket.CLAIMS, "task-1", b"started", revision)
    await engines[0].delete(Bucket.CLAIMS, "task-1")
    await engines[1].update(Bucket.CLAIMS, "task-1", b"claimed", 0)


async def test_watch_yields_current_values_and_changes(world):
    engine, other = await world.engine(), await world.engine("finance-4")
    await engine.put(Bucket.SIGNALS, "finance-3.task-1", b"pause")
    await engine.put(Bucket.SIGNALS, "finance-30.task-1", b"pause")
    entries = other.watch(Bucket.SIGNALS, "finance-3")
    assert (await soon(anext(entries)))[:2] == ("finance-3.task-1", b"pause")
    assert await soon(anext(entries)) is None
    await engine.put(Bucket.SIGNALS, "finance-3.task-2", b"cancel")
    assert (await soon(anext(entries)))[:2] == ("finance-3.task-2", b"cancel")
    await engine.delete(Bucket.SIGNALS, "finance-3.task-2")
    assert (await soon(anext(entries)))[:2] == ("finance-3.task-2", None)
    await entries.aclose()


async def test_watch_that_is_given_up_leaves_no_error(world):
    errors, loop = [], asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    engine = await world.engine()
    entries = engine.watch(Bucket.SIGNALS)
    assert await soon(anext(entries)) is None
    waiting = asyncio.ensure_future(anext(entries))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.1)
    gc.collect()
    assert errors == []


async def test_load_writes_the_contents_of_a_stored_file(world, tmp_path):
    engine, other = await world.engine(), await world.engine("finance-4")
    source = tmp_path / "report.xlsx"
    source.write_bytes(bytes(range(256)) * 2_000)
    file = await engine.store(source, "task-1", "finance-4")
    assert file == StoredFile(
        name="report.xlsx",
        sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        size=512_000,
        owner="task-1",
        writer="finance-3",
        reader="finance-4",
    )
    assert await engine.store(source, "task-1", "finance-4") == file
    await other.load(file, tmp_path / "inbox" / "report.xlsx")
    assert (tmp_path / "inbox" / "report.xlsx").read_bytes() == source.read_bytes()
    with pytest.raises(FileExistsError):
        await other.load(file, tmp_path / "inbox" / "report.xlsx")
    lie = file.model_copy(update={"size": 1})
    with pytest.raises(DamagedFileError, match="did not arrive as it was sent"):
        await other.load(lie, tmp_path / "inbox" / "lie.xlsx")
    await engine.discard(file)
    await engine.discard(file)
    with pytest.raises(DamagedFileError, match="no longer stored"):
        await other.load(file, tmp_path / "inbox" / "late.xlsx")
    assert [path.name for path in (tmp_path / "inbox").iterdir()] == ["report.xlsx"]


async def test_load_writes_an_empty_file(world, tmp_path):
    engine = await world.engine()
    (tmp_path / "empty").touch()
    await engine.load(await engine.store(tmp_path / "empty", "task-1"), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b""


async def test_queue_and_bucket_keep_their_contents_while_away(world):
    engine, other = await world.engine(), await world.engine("finance-4")
    await engine.put(Bucket.MACHINES, "finance-3", b"here")
    await engine.send("finance-4", "task-1", b"1")
    entries = other.watch(Bucket.MACHINES)
    assert (await soon(anext(entries))).value == b"here"
    assert await soon(anext(entries)) is None
    update = asyncio.ensure_future(anext(entries))
    world.lose()
    with pytest.raises(EngineAwayError):
        await engine.put(Bucket.MACHINES, "finance-3", b"away")
    receiving = asyncio.ensure_future(other.receive("finance-4"))
    await asyncio.sleep(0.3)
    assert not receiving.done()
    world.find()
    assert (await soon(receiving)).body == b"1"
    await repeat(lambda: engine.put(Bucket.MACHINES, "finance-3", b"back"))
    updates = [await soon(update)]
    while updates[-1] is None or updates[-1].value != b"back":
        updates.append(await soon(anext(entries)))
    assert {update.value for update in updates if update is not None} <= {b"here", b"away", b"back"}
    await entries.aclose()


async def test_queue_that_is_full_refuses_work(nats_server, monkeypatch):
    monkeypatch.setattr("callboard.fleet._nats_engine._MOST_WORK", 2)
    await set_up(nats_server.url)
    engine = NatsEngine(nats_server.url, "desk")
    await engine.open()
    for number in range(2):
        await engine.send("finance-3", f"task-{number}", b"1")
    with pytest.raises(QueueFullError, match="has 2 pieces of work, as many as it may"):
        await soon(engine.send("finance-3", "task-2", b"1"))
    await engine.close()


async def test_receiver_gets_work_after_the_server_restarts(nats_server, monkeypatch):
    monkeypatch.setattr("callboard.fleet._nats_engine.FETCH_SECONDS", 10 * PATIENCE)
    await set_up(nats_server.url)
    engine = NatsEngine(nats_server.url, "finance-3")
    await engine.open()
    waiting = asyncio.ensure_future(engine.receive("finance-3"))
    await asyncio.sleep(0.1)
    nats_server.stop()
    nats_server.start()
    await repeat(lambda: engine.send("finance-3", "task-1", b"1"))
    assert (await soon(waiting)).body == b"1"
    await engine.close()


async def test_receiver_that_gave_up_loses_no_work(nats_server):
    await set_up(nats_server.url)
    engine = NatsEngine(nats_server.url, "finance-3", ack_seconds=10 * PATIENCE)
    await engine.open()
    for _ in range(2):
        waiting = asyncio.ensure_future(engine.receive("finance-3"))
        await asyncio.sleep(0.1)
        waiting.cancel()
    await engine.send("finance-3", "task-1", b"1")
    delivery = await soon(engine.receive("finance-3"))
    await delivery.done()
    await delivery.done()
    assert await engine.waiting("finance-3") == 0
    await engine.close()


async def test_cancel_that_the_library_swallows_is_raised():
    async def call():
        with answering(), contextlib.suppress(asyncio.CancelledError):  # as the library does while it connects
            await asyncio.sleep(PATIENCE)

    calling = asyncio.ensure_future(call())
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(calling)


async def test_link_that_carries_nothing_counts_as_away(nats_server, monkeypatch):
    monkeypatch.setattr("callboard.fleet._nats_client.PING_SECONDS", 0.2)
    await set_up(nats_server.url)
    link = Link(nats_server.port)
    engine = NatsEngine(link.url, "finance-3")
    await engine.open()
    link.block()
    await disconnected(engine)
    link.mend()
    await repeat(lambda: engine.put(Bucket.MACHINES, "finance-3", b"back"))
    await engine.close()
    link.close()


async def test_open_names_a_server_without_streams(nats_server):
    engine = NatsEngine(nats_server.url, "finance-3")
    with pytest.raises(SettingsError, match="callboard fleet setup makes them"):
        await soon(engine.open())


async def test_open_fails_without_a_server(nats_server, monkeypatch):
    monkeypatch.setattr("callboard.fleet._nats_client.CONNECT_SECONDS", 0.5)
    nats_server.stop()
    engine = NatsEngine(nats_server.url, "finance-3", allow_reconnect=False)
    with pytest.raises(EngineAwayError, match="does not answer"):
        await soon(engine.open())


async def test_calls_before_the_first_connection_say_that_the_server_is_away(nats_server, tmp_path):
    engine = NatsEngine(nats_server.url, "finance-3")
    (tmp_path / "report.xlsx").touch()
    calls = [
        lambda: engine.send("finance-4", "task-1", b"1"),
        lambda: engine.get(Bucket.REQUESTS, "a"),
        lambda: engine.put(Bucket.REQUESTS, "a", b"1"),
        lambda: engine.update(Bucket.CLAIMS, "a", b"1", 0),
        lambda: engine.delete(Bucket.REQUESTS, "a"),
        lambda: engine.waiting("finance-4"),
        lambda: engine.store(tmp_path / "report.xlsx", "task-1"),
    ]
    for call in calls:
        with pytest.raises(EngineAwayError, match="was not reached yet"):
            await call()


async def test_file_that_is_stored_twice_at_once_is_stored_once(world, tmp_path):
    engine = await world.engine()
    (tmp_path / "report").write_bytes(b"report" * 100_000)
    files = await soon(asyncio.gather(*(engine.store(tmp_path / "report", "task-1") for _ in range(4))))
    await soon(engine.load(files[0], tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == b"report" * 100_000


def old_bucket(bucket):
    """Give a bucket as it is on a server before 2.11, which does not know the time to live of a message."""
    return _bucket_config(bucket).evolve(allow_msg_ttl=None)


async def test_deleted_keys_are_forgotten_also_in_a_bucket_of_an_older_server(nats_server, monkeypatch):
    monkeypatch.setattr("callboard.fleet._nats_engine.MARKER_SECONDS", 1.0)
    client = await nats.connect(nats_server.url)
    try:
        version = client.connected_server_version
        if (version.major, version.minor) < (2, 11):
            pytest.skip("this server keeps the markers of deleted keys")
        await client.jetstream().add_stream(old_bucket(Bucket.SIGNALS))
        engine = NatsEngine(nats_server.url, "finance-3", makes_streams=True)
        await engine.open()
        await engine.put(Bucket.SIGNALS, "finance-3.desk.r-1", b"1")
        await engine.delete(Bucket.SIGNALS, "finance-3.desk.r-1")
        await engine.close()
        async with asyncio.timeout(PATIENCE):
            while (await client.jetstream().stream_info("KV_callboard-signals")).state.messages:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
    finally:
        await client.close()


async def test_keys_and_files_are_deleted_where_the_server_was_replaced(nats_server, monkeypatch, tmp_path):
    monkeypatch.setattr("callboard.fleet._nats_engine._bucket_config", old_bucket)
    monkeypatch.setattr("callboard.fleet._nats_engine.FILES_CONFIG", FILES_CONFIG.evolve(allow_msg_ttl=None))
    await set_up(nats_server.url)
    engine = NatsEngine(nats_server.url, "finance-3")
    await engine.open()
    await engine.put(Bucket.SIGNALS, "finance-3.desk.r-1", b"1")
    await engine.delete(Bucket.SIGNALS, "finance-3.desk.r-1")
    assert await engine.get(Bucket.SIGNALS, "finance-3.desk.r-1") is None
    (tmp_path / "report").touch()
    file = await engine.store(tmp_path / "report", "task-1")
    await engine.discard(file)
    with pytest.raises(DamagedFileError):
        await engine.load(file, tmp_path / "copy")
    await engine.close()


async def test_watch_tells_all_changes_while_keys_are_deleted(world):
    """Server 2.9.10 miscounts what a reader has still to get if deleted messages are removed."""
    engine, other = await world.engine(), await world.engine("desk")
    told = set()

    async def watch():
        async for entry in engine.watch(Bucket.RESULTS, "finance-3"):
            if entry is not None and entry.value is not None:
                told.add(entry.key)
                deleting.append(asyncio.ensure_future(engine.delete(Bucket.RESULTS, entry.key)))

    deleting = []
    watching = asyncio.ensure_future(watch())
    keys = [[f"finance-3.desk.r-{number}-{part}" for part in range(4)] for number in range(10)]
    for some in keys:
        await soon(asyncio.gather(*(other.put(Bucket.RESULTS, key, b"1") for key in some)))
        async with asyncio.timeout(PATIENCE):
            while not told.issuperset(some):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
    await soon(asyncio.gather(*deleting))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
