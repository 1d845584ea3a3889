"""Messages of a JetStream stream, pulled as they come."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NoWorkError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

_T = TypeVar("_T")
_BATCH = 64
_ANSWER_SECONDS = 5.0
_IDLE_SECONDS = 300.0
"""The time after which the server forgets a reader that asks for no more."""
FETCH_SECONDS = 30.0


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

    def __init__(
        self, stream: JetStream, deletion: str, subscription: JetStreamContext.PullSubscription, pending: int
    ) -> None:
        self._stream = stream
        self._deletion = deletion
        self._subscription = subscription
        self.pending = pending
        """The messages that are there and not yet read."""

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
        info = await stream.context.add_consumer(name, config)
        subscription = await stream.context.pull_subscribe_bind(info.name, name)
        deletion = f"{stream.api}.CONSUMER.DELETE.{name}.{info.name}"
        return cls(stream, deletion, subscription, info.num_pending or 0)

    async def read_pending(self) -> AsyncIterator[Msg]:
        """Yield the messages that are there.

        Raises:
            NoWorkError: If they do not come.
        """
        while self.pending:
            fetching = self._subscription.fetch(min(self.pending, _BATCH), timeout=_ANSWER_SECONDS)
            for message in await apart(fetching):
                self.pending = message.metadata.num_pending
                yield message

    async def next_message(self) -> Msg:
        """Wait for one more message.

        Raises:
            NoWorkError: If the server has forgotten this reader.
        """
        while True:
            begin = time.monotonic()
            try:
                (message,) = await self._subscription.fetch(1, timeout=FETCH_SECONDS)
            except NoWorkError:
                if time.monotonic() < begin + FETCH_SECONDS / 2:  # it was refused
                    raise
            else:
                return message

    async def end(self) -> None:
        """Delete the consumer, without waiting for it."""
        with contextlib.suppress(NatsError, OSError):  # the connection is gone: the server forgets it by itself
            await self._subscription.unsubscribe()
            await self._stream.client.publish(self._deletion)


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
