"""The client of a server of NATS: its connection, and its errors."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.errors import AuthorizationError
from nats.errors import Error as NatsError
from nats.js.errors import Error as StreamError
from nats.js.errors import NoStreamResponseError, ServerError, ServiceUnavailableError

from callboard.fleet._engine import EngineAwayError
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_SECONDS = 10.0
RETRY_SECONDS = 0.25
PING_SECONDS = 5
"""The interval of pings: after two without an answer, the connection is made again."""


class _NoEncryptionError(NatsError):
    """The server does not encrypt."""


class ClosingClient(Client):
    """A client that closes connections whose begin fails.

    The library forgets them: it connects again, or is closed, and their sockets stay open.
    """

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except BaseException:
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]
            raise


class EncryptedClient(ClosingClient):
    """A client that talks to no server without TLS.

    The library begins TLS if the server's first line, which is not encrypted, asks for it: an attacker on the way could
    leave that out.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - the library's own
        if initial_connection and not info.get("tls_required"):
            raise _NoEncryptionError
        await super()._process_info(info, initial_connection)


async def connect(url: str, **options: Any) -> Client:
    """Connect to a server.

    Args:
        url: Its address.
        options: Further arguments of ``nats.connect``.

    Raises:
        EngineAwayError: If it does not answer.
        SettingsError: If it refuses the connection, or is not the one that the settings mean.
    """
    loop = asyncio.get_running_loop()
    refused: asyncio.Future[str] = loop.create_future()

    async def note(error: Exception) -> None:
        """Note a refusal.

        Other errors are ignored: the calls that they concern fail.
        """
        reason = _refusal(error, options)
        if reason and not refused.done():
            refused.set_result(f"the server of the fleet at {url} {reason}")

    settings: dict[str, Any] = {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": RETRY_SECONDS,
        "ping_interval": PING_SECONDS,
        **options,
    }
    client = EncryptedClient() if "tls" in options else ClosingClient()
    connecting = asyncio.ensure_future(client.connect(url, error_cb=note, **settings))
    try:
        with answering():
            async with asyncio.timeout(CONNECT_SECONDS):
                await _first(connecting, refused)
    except BaseException:
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        await client.close()
        raise
    return client


async def _first(connecting: asyncio.Future[None], refused: asyncio.Future[str]) -> None:
    """Wait for a connection.

    Raises:
        SettingsError: If it is refused.
    """
    waiting: set[asyncio.Future[Any]] = {connecting, refused}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if refused.done():
        raise SettingsError(refused.result())
    await connecting


def _refusal(error: Exception, options: dict[str, Any]) -> str:
    """Return a person's remedy; empty if trying again may help."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"has a certificate that does not hold: {error.verify_message} (fleet.url, fleet.ca)"
        case ssl.SSLError():
            return f"can't agree on TLS with this machine: {error.reason}"
        case _NoEncryptionError():
            return "does not encrypt its connections: it needs `tls` in its configuration"
    if isinstance(error, AuthorizationError) or "authorization violation" in str(error).lower():
        if options.keys() & {"nkeys_seed", "nkeys_seed_str", "user_credentials", "user"}:
            return "refuses the key of this machine (fleet.credentials): its configuration needs the public key"
        return "asks for a key, and this machine has none: set fleet.credentials"
    return ""


@contextlib.contextmanager
def answering() -> Iterator[None]:
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
