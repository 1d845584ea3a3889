"""Messages of a JetStream stream, pulled as they come."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NoWorkError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, Header

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerInfo

_T = TypeVar("_T")
_BATCH = 64
_ANSWER_SECONDS = 5.0
_IDLE_SECONDS = 300.0
"""The time after which the server forgets a reader that asks for no more."""
FETCH_SECONDS = 30.0
_EXPIRED = "408"
"""The status of a request whose time is over."""


class JetStream(NamedTuple):
    """A connection to the server's streams."""

    client: Client
    context: JetStreamContext
    api: str
    """The prefix of the context's requests."""


class StreamReader:
    """The messages under one subject, read through a nameless consumer.

    The subject stands in that of the request that makes the consumer. The server refuses a request whose body has
    another one, so that the permissions of a machine limit the subjects that it reads.
    """

    def __init__(self, stream: JetStream, consumer: ConsumerInfo) -> None:
        self._stream = stream
        self._name = f"{consumer.stream_name}.{consumer.name}"
        self._inbox = stream.client.new_inbox()
        self._messages: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._subscription: Subscription
        self._asked = 0
        """The number of messages that the server may still send without another request."""
        self._pending = consumer.num_pending or 0
        """The number of messages that are there and not yet read."""

    @classmethod
    async def begin(cls, stream: JetStream, name: str, subject: str, policy: DeliverPolicy) -> StreamReader:
        """Make a consumer of a stream that begins where a policy says."""
        config = ConsumerConfig(
            name=secrets.token_hex(12),  # who knows it can read with it
            filter_subject=subject,
            deliver_policy=policy,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=_IDLE_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        reader = cls(stream, await stream.context.add_consumer(name, config))
        reader._subscription = await stream.client.subscribe(reader._inbox, cb=reader._messages.put)
        return reader

    async def read_pending(self) -> AsyncIterator[Msg]:
        """Yield the messages that are there.

        Raises:
            NoWorkError: If they do not come.
        """
        while self._pending:
            message = await self._next_message(_ANSWER_SECONDS)
            self._pending = message.metadata.num_pending
            yield message

    async def next_message(self) -> Msg:
        """Wait for one more message.

        Raises:
            NoWorkError: If the server has forgotten this reader, or `stop` was called.
        """
        return await self._next_message(FETCH_SECONDS + _ANSWER_SECONDS)

    async def _next_message(self, seconds: float) -> Msg:
        while True:
            if not self._asked:
                await self._ask()
            try:
                async with asyncio.timeout(seconds):
                    message = await self._messages.get()
            except TimeoutError:
                raise NoWorkError from None
            if message is None:
                raise NoWorkError
            if message.subject != self._inbox:
                self._asked -= 1
                return message
            if (message.headers or {}).get(Header.STATUS) != _EXPIRED:
                raise NoWorkError
            self._asked = 0

    async def _ask(self) -> None:
        """Ask for the next messages: one request for many."""
        request = {"batch": _BATCH, "expires": int(FETCH_SECONDS * 1e9)}
        subject = f"{self._stream.api}.CONSUMER.MSG.NEXT.{self._name}"
        await self._stream.client.publish(subject, json.dumps(request).encode(), reply=self._inbox)
        self._asked = _BATCH

    def stop(self) -> None:
        """End the wait for a message."""
        self._messages.put_nowait(None)

    async def end(self) -> None:
        """Delete the consumer, without waiting for it."""
        with contextlib.suppress(NatsError, OSError):  # the connection is gone: the server forgets it by itself
            await self._subscription.unsubscribe()
            await self._stream.client.publish(f"{self._stream.api}.CONSUMER.DELETE.{self._name}")


async def apart(work: Coroutine[Any, Any, _T], end: asyncio.Event | None = None) -> _T:
    """Run a coroutine of the library as a task of its own.

    The library swallows a cancel that comes with a message; here, it ends the caller in any case.

    Args:
        work: The coroutine.
        end: Ends it once it is set.

    Raises:
        NoWorkError: If that ended it.
    """
    task = asyncio.ensure_future(work)
    ending = [] if end is None else [asyncio.ensure_future(end.wait())]
    try:
        await asyncio.wait([task, *ending], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise NoWorkError
        return task.result()
    finally:
        for waiting in (task, *ending):
            waiting.cancel()
        await asyncio.gather(task, *ending, return_exceptions=True)  # it may end with an error of its own
