"""The engine on a server of NATS with JetStream.

Work is in a stream with the retention of a work queue, one subject for each queue. Buckets are JetStream's key-value
stores. Any server from 2.9 on has them.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from nats.errors import Error as NatsError
from nats.errors import MsgAlreadyAckdError
from nats.errors import TimeoutError as NoWorkError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import (
    APIError,
    BadRequestError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoStreamResponseError,
    NotFoundError,
    ServiceUnavailableError,
)
from nats.js.kv import KV_OP, KeyValue

from callboard.fleet._engine import (
    ACK_SECONDS,
    Bucket,
    BucketEntry,
    ConflictError,
    EngineAwayError,
    QueueFullError,
)
from callboard.fleet._nats_client import RETRY_SECONDS, answering, connect
from callboard.fleet._nats_files import FILES_CONFIG, MARKER_SECONDS, NatsFiles
from callboard.fleet._nats_reader import FETCH_SECONDS, JetStream, StreamReader, apart
from callboard.fleet._permissions import API, inbox
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
    from pathlib import Path

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

    from callboard.fleet._engine import StoredFile

WORK_STREAM = "callboard-work"
_WORK_SUBJECT = "callboard.work"
_ANSWER_SECONDS = 5.0
_MOST_WORK = 10_000
_SAME_WORK_SECONDS = 120.0
_FORGETS_SINCE = (2, 11)
_QUEUE_IS_FULL = 10077
"""The server's code for a subject with as many messages as it may have."""
_IS_THERE = 10058
"""The server's code for a stream that exists, with other settings."""


def _subject_of(bucket: Bucket) -> str:
    return f"$KV.callboard-{bucket}"


def _stream_of(bucket: Bucket) -> str:
    return f"KV_callboard-{bucket}"


def _bucket_config(bucket: Bucket) -> StreamConfig:
    """Return the settings of a key-value store."""
    return StreamConfig(
        name=_stream_of(bucket),
        subjects=[f"{_subject_of(bucket)}.>"],
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        allow_direct=True,
        allow_msg_ttl=True,
    )


_WORK_CONFIG = StreamConfig(
    name=WORK_STREAM,
    subjects=[f"{_WORK_SUBJECT}.>"],
    retention=RetentionPolicy.WORK_QUEUE,
    duplicate_window=_SAME_WORK_SECONDS,
    discard=DiscardPolicy.NEW,
    discard_new_per_subject=True,
)


async def _make(context: JetStreamContext, config: StreamConfig) -> None:
    """Make a stream, or give the one of its name these settings.

    One that an older server made does not know the time to live of messages.
    """
    try:
        await context.add_stream(config)
    except BadRequestError as error:
        if error.err_code != _IS_THERE:
            raise
        await context.update_stream(config)


async def set_up(url: str, machines: Iterable[str] = (), **options: Any) -> str:
    """Create the streams and stores of a fleet, where they are missing.

    Args:
        url: The server's address.
        machines: The machines whose queues are made, too. Without permission to make it, a machine needs this.
        options: Arguments of ``nats.connect``.

    Returns:
        The server's version.

    Raises:
        EngineAwayError: If the server does not answer.
    """
    client = await connect(url, allow_reconnect=False, **options)
    try:
        with answering():
            stream = client.jetstream(timeout=_ANSWER_SECONDS)
            for config in (*map(_bucket_config, Bucket), FILES_CONFIG):
                await _make(stream, config)
            await _make(stream, _WORK_CONFIG.evolve(max_msgs_per_subject=_MOST_WORK))  # last: with it, all are there
            for machine in machines:
                await stream.add_consumer(WORK_STREAM, _queue_config(machine, ACK_SECONDS))
        return _version(client)
    finally:
        await client.close()


def _queue_config(machine: str, ack_seconds: float) -> ConsumerConfig:
    return ConsumerConfig(
        durable_name=f"machine-{machine}",
        filter_subject=f"{_WORK_SUBJECT}.{machine}.*",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ack_seconds,
        max_deliver=-1,
    )


def _version(client: Client) -> str:
    version = client.connected_server_version
    return f"{version.major}.{version.minor}.{version.patch}"


class NatsDelivery:
    """A message of the work stream."""

    def __init__(self, message: Msg) -> None:
        self._message = message

    @property
    def sender(self) -> str:
        """The machine that sent it.

        The server lets each one send in its own name only.
        """
        return self._message.subject.rpartition(".")[2]

    @property
    def body(self) -> bytes:
        """The work."""
        return self._message.data

    async def done(self) -> None:
        """Remove it from the queue."""
        with answering(), contextlib.suppress(MsgAlreadyAckdError):
            await self._message.ack_sync(timeout=_ANSWER_SECONDS)

    async def keep(self) -> None:
        """Postpone another delivery."""
        with answering():
            await self._message.in_progress()

    async def give_back(self, seconds: float = 0.0) -> None:
        """Deliver it again after some time."""
        with answering():
            await self._message.nak(delay=seconds or None)


class NatsEngine:
    """A machine's connection to a server of NATS.

    Args:
        url: The server's address.
        name: The machine's name.
        ack_seconds: The time after which a delivery that is not kept is delivered again.
        makes_streams: Whether it makes the streams of a fleet where they are missing.
        options: Further arguments of ``nats.connect``: for TLS and credentials.
    """

    def __init__(
        self, url: str, name: str, *, ack_seconds: float = ACK_SECONDS, makes_streams: bool = False, **options: Any
    ) -> None:
        self._url = url
        self._makes_streams = makes_streams
        self._ack_seconds = ack_seconds
        self._name = name
        self._options = {"name": name, "inbox_prefix": inbox(name), **options}
        self._is_open = False
        self._client: Client | None = None
        """The connection; None until the first attempt has succeeded."""
        self._jetstream: JetStream
        self._stream: JetStreamContext
        self._buckets: dict[Bucket, KeyValue] = {}
        self._files: NatsFiles
        self._queues: dict[str, JetStreamContext.PullSubscription] = {}
        """The subscriptions of queues, by name."""
        self._reconnected = asyncio.Event()
        """Set by the next reconnection."""

    @property
    def is_open(self) -> bool:
        """True from `open` until `close`."""
        return self._is_open

    @property
    def is_connected(self) -> bool:
        """True while the server answers."""
        return self._is_open and self._client is not None and self._client.is_connected

    @property
    def server_version(self) -> str:
        """The version of the server; empty before the first connection."""
        return _version(self._client) if self._is_open and self._client is not None else ""

    @property
    def server_id(self) -> str:
        """The identity of the server's process; empty before the first connection."""
        if not self._is_open or self._client is None:
            return ""
        return str(self._client._server_info["server_id"])  # noqa: SLF001 - it has no public name

    @property
    def _forgets(self) -> bool:
        """True if the server forgets messages after a time of their own."""
        version = None if self._client is None else self._client.connected_server_version
        return version is not None and (version.major, version.minor) >= _FORGETS_SINCE

    async def open(self) -> None:
        """Connect.

        Raises:
            EngineAwayError: If the server does not answer.
            SettingsError: If it has not been set up for a fleet.
        """
        self._queues.clear()
        if self._makes_streams:
            await set_up(self._url, **self._options)
        self._client = client = await connect(self._url, reconnected_cb=self._on_reconnect, **self._options)
        try:
            with answering():
                self._jetstream = await _jetstream(client)
        except NotFoundError as error:
            await client.close()
            msg = f"the server at {self._url} has no streams of a fleet: callboard fleet setup makes them"
            raise SettingsError(msg) from error
        except BaseException:
            await client.close()
            raise
        self._stream = self._jetstream.context
        self._buckets = {
            bucket: KeyValue(
                f"callboard-{bucket}", _stream_of(bucket), f"{_subject_of(bucket)}.", js=self._stream, direct=True
            )
            for bucket in Bucket
        }
        self._files = NatsFiles(self._jetstream, self._name)
        self._is_open = True

    async def close(self) -> None:
        """Disconnect."""
        self._is_open = False
        self._reconnected.set()
        if self._client is not None:
            with contextlib.suppress(OSError):  # the link was lost before
                await self._client.close()

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        """Turn all errors of an absent or unknown server into one.

        Raises:
            EngineAwayError: If one is raised, or the connection was not opened yet.
        """
        if not self._is_open:
            msg = "the server of the fleet was not reached yet"
            raise EngineAwayError(msg)
        with answering():
            yield

    async def _on_reconnect(self) -> None:
        self._reconnected.set()
        self._reconnected = asyncio.Event()

    async def send(self, queue: str, work_id: str, body: bytes) -> None:
        """Append work to a queue.

        Raises:
            QueueFullError: If the queue is full.
        """
        subject, headers = f"{_WORK_SUBJECT}.{queue}.{self._name}", {"Nats-Msg-Id": f"{queue} {work_id}"}
        with self._calling():
            try:
                await self._stream.publish(subject, body, headers=headers)
            except APIError as error:
                if error.err_code == _QUEUE_IS_FULL:  # it comes as a 503, as from a server that is away
                    raise QueueFullError.of(queue, _MOST_WORK) from error
                raise

    async def receive(self, queue: str) -> NatsDelivery:
        """Wait for the next piece of work of a queue."""
        while True:
            try:
                return NatsDelivery(await self._next_message(queue))
            except NoWorkError:
                await asyncio.sleep(RETRY_SECONDS)
            except (EngineAwayError, NatsError):
                self._queues.pop(queue, None)  # its consumer may be gone with what the server kept
                await asyncio.sleep(RETRY_SECONDS)

    async def _next_message(self, queue: str) -> Msg:
        """Fetch a message.

        One subscription serves all fetches: a message for a fetch that was given up is in it, and comes next. A
        reconnection ends the fetch, since the server has forgotten it.

        Raises:
            NoWorkError: If there is none for a time, or after a reconnection.
        """
        subscription = self._queues.get(queue) or await self._subscribe(queue)
        return (await apart(subscription.fetch(1, timeout=FETCH_SECONDS), self._reconnected))[0]

    async def _subscribe(self, queue: str) -> JetStreamContext.PullSubscription:
        with self._calling():
            subscription = await self._stream.pull_subscribe(
                f"{_WORK_SUBJECT}.{queue}.*",
                durable=f"machine-{queue}",
                stream=WORK_STREAM,
                config=_queue_config(queue, self._ack_seconds),
            )
        self._queues[queue] = subscription
        return subscription

    async def waiting(self, queue: str) -> int:
        """Return the length of a queue."""
        with self._calling():
            info = await self._stream.stream_info(WORK_STREAM, subjects_filter=f"{_WORK_SUBJECT}.{queue}.*")
        return sum((info.state.subjects or {}).values())

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Set a key's value, and return its revision."""
        with self._calling():
            return await self._buckets[bucket].put(key, value)

    async def get(self, bucket: Bucket, key: str) -> BucketEntry | None:
        """Return a key's value, or None."""
        try:
            with self._calling():
                entry = await self._buckets[bucket].get(key)
        except KeyNotFoundError:
            return None
        return BucketEntry(key, entry.value, entry.revision or 0)

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Set a key's value if its revision is the expected one.

        Raises:
            ConflictError: If it has another one.
        """
        try:
            with self._calling():
                values = self._buckets[bucket]
                return await (values.update(key, value, last=revision) if revision else values.create(key, value))
        except KeyWrongLastSequenceError as error:
            raise ConflictError.of(bucket, key) from error

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Delete a key.

        A server from 2.11 on forgets it, too, after a time. An older one may not be told to remove what was before, as
        `purge` does: its readers would get no further messages then (2.9.10 miscounts what they have still to get).
        """
        with self._calling():
            values = self._buckets[bucket]
            if self._forgets:
                with contextlib.suppress(BadRequestError):  # an older server made the bucket: `set_up` changes it
                    await values.purge(key, msg_ttl=MARKER_SECONDS)
                    return
            await values.delete(key)

    async def watch(self, bucket: Bucket, prefix: str = "") -> AsyncIterator[BucketEntry | None]:
        """Yield the values of keys, then None, then each change."""
        while self._is_open:
            entries = self._watch_once(bucket, f"{_subject_of(bucket)}.{f'{prefix}.' if prefix else ''}>")
            async with contextlib.aclosing(entries):
                with contextlib.suppress(EngineAwayError, NatsError):  # also after a reconnection
                    async for entry in entries:
                        yield entry
            if self._is_open:
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch_once(self, bucket: Bucket, subject: str) -> AsyncGenerator[BucketEntry | None]:
        """Watch until the connection is lost."""
        with self._calling():
            reader = await StreamReader.begin(
                self._jetstream, _stream_of(bucket), subject, DeliverPolicy.LAST_PER_SUBJECT
            )
        ending = asyncio.ensure_future(self._reconnected.wait())
        ending.add_done_callback(lambda _: reader.stop())  # the server does not know its requests any more
        try:
            async for message in reader.read_pending():
                yield _entry_of(bucket, message)
            yield None
            while True:
                yield _entry_of(bucket, await reader.next_message())
        finally:
            ending.cancel()
            await reader.end()

    async def store(self, path: Path, owner: str, reader: str = "") -> StoredFile:
        """Store a file."""
        with self._calling():
            return await self._files.store(path, owner, reader)

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a stored file to a new path.

        Raises:
            DamagedFileError: If its contents do not match its digest, or it is no longer stored.
            FileExistsError: If the path exists.
        """
        with self._calling():
            await self._files.load(file, path)

    async def discard(self, file: StoredFile) -> None:
        """Delete a stored file."""
        with self._calling():
            await self._files.discard(file)


def _entry_of(bucket: Bucket, message: Msg) -> BucketEntry:
    key = message.subject.removeprefix(f"{_subject_of(bucket)}.")
    is_deleted = KV_OP in (message.headers or {})
    return BucketEntry(key, None if is_deleted else message.data, message.metadata.sequence.stream)


async def _jetstream(client: Client) -> JetStream:
    """Return the streams, as a machine's account or their own has them."""
    own, usual = (
        JetStream(client, client.jetstream(prefix=api, timeout=_ANSWER_SECONDS), api) for api in (API, "$JS.API")
    )
    try:
        await own.context.stream_info(WORK_STREAM)
    except (NoStreamResponseError, ServiceUnavailableError):
        await usual.context.stream_info(WORK_STREAM)
        return usual
    return own
