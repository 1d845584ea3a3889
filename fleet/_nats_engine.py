"""The engine on a server of NATS with JetStream.

Work is in a stream with the retention of a work queue, one subject for each queue. Buckets and files are JetStream's
key-value and object stores. Any server from 2.9 on has them.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import MsgAlreadyAckdError
from nats.errors import TimeoutError as NoWorkError
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import (
    APIError,
    BadRequestError,
    DigestMismatchError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoStreamResponseError,
    NotFoundError,
    ObjectNotFoundError,
    ServerError,
    ServiceUnavailableError,
)
from nats.js.errors import Error as StreamError

from callboard.fleet._engine import (
    ACK_SECONDS,
    Bucket,
    BucketEntry,
    ConflictError,
    DamagedFileError,
    EngineAwayError,
    QueueFullError,
    StoredFile,
)
from callboard.fleet._permissions import inbox
from callboard.fleet._stored_files import describe_file, write_checked
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from pathlib import Path

    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.kv import KeyValue
    from nats.js.object_store import ObjectStore

WORK_STREAM = "callboard-work"
_WORK_SUBJECT = "callboard.work"
_FILES = "callboard-files"
_ANSWER_SECONDS = 5.0
_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 0.25
_PING_SECONDS = 5
"""The interval of pings: after two without an answer, the connection is made again."""
_FETCH_SECONDS = 30.0
_BYTES_A_SECOND = 1_000_000
"""The slowest transfer of a file that counts as one that goes on."""
_MOST_WORK = 10_000
_SAME_WORK_SECONDS = 120.0
_MARKER_SECONDS = 600.0
"""The time that a server keeps the marker of a deleted key."""
_ENDED = object()
_QUEUE_IS_FULL = 10077
"""The server's code for a subject with as many messages as it may have."""


def _bucket_name(bucket: Bucket) -> str:
    return f"callboard-{bucket}"


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
    client = await _connect(url, allow_reconnect=False, **options)
    try:
        with _answering():
            stream = client.jetstream(timeout=_ANSWER_SECONDS)
            await stream.add_stream(
                StreamConfig(
                    name=WORK_STREAM,
                    subjects=[f"{_WORK_SUBJECT}.>"],
                    retention=RetentionPolicy.WORK_QUEUE,
                    duplicate_window=_SAME_WORK_SECONDS,
                    max_msgs_per_subject=_MOST_WORK,
                    discard=DiscardPolicy.NEW,
                    discard_new_per_subject=True,
                )
            )
            for bucket in Bucket:
                await _make_bucket(stream, _bucket_name(bucket))
            await stream.create_object_store(_FILES)
            for machine in machines:
                await stream.add_consumer(WORK_STREAM, _queue_config(machine, ACK_SECONDS))
        return _version(client)
    finally:
        await client.close()


async def _make_bucket(stream: JetStreamContext, name: str) -> None:
    """Create a bucket; have one of an older server forget deleted keys."""
    try:
        await stream.create_key_value(bucket=name)
    except BadRequestError:
        info = await stream.stream_info(f"KV_{name}")
        await stream.update_stream(info.config.evolve(allow_msg_ttl=True))


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
        with _answering(), contextlib.suppress(MsgAlreadyAckdError):
            await self._message.ack_sync(timeout=_ANSWER_SECONDS)

    async def keep(self) -> None:
        """Postpone another delivery."""
        with _answering():
            await self._message.in_progress()

    async def give_back(self, seconds: float = 0.0) -> None:
        """Deliver it again after some time."""
        with _answering():
            await self._message.nak(delay=seconds or None)


class NatsEngine:
    """A machine's connection to a server of NATS.

    Args:
        url: The server's address.
        name: The machine's name.
        ack_seconds: The time after which a delivery that nobody keeps is delivered again.
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
        self._stream: JetStreamContext
        self._buckets: dict[Bucket, KeyValue] = {}
        self._files: ObjectStore
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

    async def open(self) -> None:
        """Connect.

        Raises:
            EngineAwayError: If the server does not answer.
            SettingsError: If it has not been set up for a fleet.
        """
        self._queues.clear()
        if self._makes_streams:
            await set_up(self._url, **self._options)
        self._client = client = await _connect(self._url, reconnected_cb=self._on_reconnect, **self._options)
        self._stream = client.jetstream(timeout=_ANSWER_SECONDS)
        try:
            with _answering():
                await self._stream.stream_info(WORK_STREAM)
                self._buckets = {bucket: await self._stream.key_value(_bucket_name(bucket)) for bucket in Bucket}
                self._files = await self._stream.object_store(_FILES)
        except NotFoundError as error:
            await client.close()
            msg = f"the server at {self._url} has no streams of a fleet: callboard fleet setup makes them"
            raise SettingsError(msg) from error
        except BaseException:
            await client.close()
            raise
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
        with _answering():
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
                await asyncio.sleep(_RETRY_SECONDS)
            except (EngineAwayError, NatsError):
                self._queues.pop(queue, None)  # its consumer may be gone with what the server kept
                await asyncio.sleep(_RETRY_SECONDS)

    async def _next_message(self, queue: str) -> Msg:
        """Fetch a message.

        One subscription serves all fetches: a message for a fetch that was given up is in it, and comes next. A
        reconnection ends the fetch, since the server has forgotten it.

        Raises:
            NoWorkError: If there is none for a time, or after a reconnection.
        """
        reconnected = asyncio.ensure_future(self._reconnected.wait())
        fetch: asyncio.Future[list[Msg]] | None = None
        try:
            subscription = self._queues.get(queue) or await self._subscribe(queue)
            fetch = asyncio.ensure_future(subscription.fetch(1, timeout=_FETCH_SECONDS))
            await asyncio.wait({fetch, reconnected}, return_when=asyncio.FIRST_COMPLETED)
            if not fetch.done():
                raise NoWorkError
            return fetch.result()[0]
        finally:
            reconnected.cancel()
            if fetch is not None:
                fetch.cancel()
                await asyncio.gather(fetch, return_exceptions=True)  # it may end with an error of its own

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

        A server from 2.11 on forgets it, too, after a time.
        """
        with self._calling():
            try:
                await self._buckets[bucket].purge(key, msg_ttl=_MARKER_SECONDS)
            except BadRequestError:  # an older server made the bucket: `set_up` changes it
                await self._buckets[bucket].purge(key)

    async def watch(self, bucket: Bucket, prefix: str = "") -> AsyncIterator[BucketEntry | None]:
        """Yield the values of keys, then None, then each change."""
        while self._is_open:
            reconnected = asyncio.ensure_future(self._reconnected.wait())
            try:
                with self._calling():
                    watcher = await self._buckets[bucket].watch(f"{prefix}.>" if prefix else ">")
            except EngineAwayError:
                reconnected.cancel()
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            update: asyncio.Future[Any] | None = None
            try:
                while not reconnected.done():
                    update = asyncio.ensure_future(anext(watcher, _ENDED))
                    await asyncio.wait({update, reconnected}, return_when=asyncio.FIRST_COMPLETED)
                    entry: Any = update.result() if update.done() else _ENDED
                    if entry is _ENDED:  # also if the connection was closed
                        break
                    if entry is None:
                        yield None
                    else:
                        yield BucketEntry(entry.key, None if entry.operation else entry.value, entry.revision or 0)
            finally:
                reconnected.cancel()
                if update is not None:
                    update.cancel()
                with contextlib.suppress(EngineAwayError), self._calling():
                    await watcher.stop()  # type: ignore[no-untyped-call]

    async def store(self, path: Path, owner: str) -> StoredFile:
        """Store a file."""
        file = await asyncio.to_thread(describe_file, path, owner)
        with self._calling():
            try:
                await self._files.get_info(file.key)
            except ObjectNotFoundError:
                with await asyncio.to_thread(path.open, "rb") as stream:
                    await self._files.put(file.key, stream)
        return file

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a stored file to a new path.

        Raises:
            DamagedFileError: If its contents do not match its digest, or it is no longer stored.
            FileExistsError: If the path exists.
        """

        async def write(spare: Path) -> None:
            with await asyncio.to_thread(spare.open, "xb") as stream:
                async with asyncio.timeout(_FETCH_SECONDS + file.size / _BYTES_A_SECOND):
                    await self._files.get(file.key, writeinto=stream)

        try:
            with self._calling():
                await write_checked(file, path, write)
        except ObjectNotFoundError as error:
            raise DamagedFileError.missing(file.name) from error
        except DigestMismatchError as error:
            raise DamagedFileError.changed(file.name) from error

    async def discard(self, file: StoredFile) -> None:
        """Delete a stored file."""
        with self._calling(), contextlib.suppress(NotFoundError):
            await self._files.delete(file.key)


async def _connect(url: str, **options: Any) -> Client:
    async def ignore(_error: Exception) -> None:
        """Ignore an error of the connection: the calls that it concerns fail."""

    settings: dict[str, Any] = {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": _RETRY_SECONDS,
        "ping_interval": _PING_SECONDS,
        **options,
    }
    client = Client()
    try:
        with _answering():
            await asyncio.wait_for(client.connect(url, error_cb=ignore, **settings), _CONNECT_SECONDS)
    except BaseException:
        await client.close()
        raise
    return client


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Turn all errors of an absent server into one.

    The library swallows a cancel that comes while it waits for a connection, so it is raised again here.

    Raises:
        EngineAwayError: If one is raised.
        CancelledError: If the task was cancelled meanwhile.
    """
    try:
        with _translated():
            yield
    finally:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, TimeoutError, NoStreamResponseError, ServerError, ServiceUnavailableError) as error:
        raise EngineAwayError(_reason(error)) from error
    except StreamError:
        raise
    except NatsError as error:
        raise EngineAwayError(_reason(error)) from error


def _reason(error: BaseException) -> str:
    return f"the server of the fleet does not answer ({str(error) or type(error).__name__})"
