"""One connection to an MCP server; either side may close it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, JSONRPCNotification
from pydantic import ValidationError

from callboard.actors.commands._bound_tools import ConnectionLostError
from callboard.actors.commands.mcp._connection_errors import CUT_OFF, LISTING, TOO_LONG, foreign, unreadable, why
from callboard.actors.commands.mcp._pending_requests import UNREADABLE, PendingRequests, not_finite, quoted
from callboard.actors.commands.mcp._program_log import ProgramLog
from callboard.actors.commands.mcp._transport import BoundedTransport, McpProgram, not_sent, over_stdio
from callboard.config import output_redactor
from callboard.messages import EventName, reason_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp.client._transport import TransportStreams
    from mcp.client.session import ElicitationFnT
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, Tool
    from pydantic import JsonValue

    from callboard.config import McpServer, Settings


Tell = Callable[..., None]
"""Emits an event: `EventStream.emit`."""

CHECK_SECONDS = 5.0
"""Seconds for the check whether a server that did not answer a call in time still responds."""


LISTING_PAUSE = 0.2
"""The least seconds between two lists of a server's changed tools."""


class About(NamedTuple):
    """A server's description of itself."""

    title: str = ""
    version: str = ""
    instructions: str = ""


class McpConnection:
    """A client of one server.

    Its own task opens and closes it; any task on the loop may call tools.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        settings: Settings,
        tell: Tell,
        elicit: ElicitationFnT,
        *,
        listed: Callable[[tuple[Tool, ...]], None],
    ) -> None:
        """Initialise it; `listed` receives the server's tools, also after each change."""
        self._listed = listed
        self._current = asyncio.Event()
        """Set unless the server has said that its tools have changed since they were listed."""
        self._current.set()
        self._changes = 0
        self._listing: asyncio.Future[None] | None = None
        """Lists the changed tools."""
        self.about = About()
        self._name = name
        self._server = server
        self._settings = settings
        self._tell = tell
        self._elicit = elicit
        self._program: ProgramLog | None = None
        self._http: BoundedTransport | None = None
        self._requests = PendingRequests()
        self._request = "initialize"
        """The request that is pending while the connection is made."""
        self._ready: asyncio.Future[None] | None = None
        self._end = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._is_lost = False
        """Whether the connection was lost: the server's program ended, or the server closed it."""

    async def open(self) -> None:
        """Connect and list the tools. Runs on the event loop.

        Raises:
            ConnectionError: If the server can't be started or reached in time; its program is ended then.
        """
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold_open(), name=f"mcp-{self._name}")
        seconds = self._server.start_seconds
        try:
            done, _ = await asyncio.wait([self._ready], timeout=seconds)
        except asyncio.CancelledError:
            await self.close()
            raise
        error: BaseException | None = TimeoutError(f"no answer within {seconds:g} s")
        if done:
            error = ConnectionError("it was closed meanwhile") if self._ready.cancelled() else self._ready.exception()
        if error is not None:
            await self.close()
            raise ConnectionError(self._why(error)) from error

    def _why(self, error: BaseException) -> str:
        """Describe why there is no connection; the settings' secrets are redacted."""
        status = f"; its HTTP status is {self._http.refusal}" if self._http is not None and self._http.refusal else ""
        return output_redactor(self._settings).text(why(error, self._request, self._program) + status)

    @property
    def connected(self) -> bool:
        """True while tools can be called."""
        return self._client is not None and not self._is_lost

    async def close(self) -> None:
        """Disconnect, and end the server's program if there is one."""
        self._end.set()
        if self._listing is not None:
            self._listing.cancel()
        if self._task is None:
            return
        if self._ready is not None and not self._ready.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def call(
        self, tool: str, arguments: Mapping[str, JsonValue], progress: ProgressFnT | None = None
    ) -> CallToolResult:
        """Call a tool; `progress` receives the server's progress notifications.

        Raises:
            ConnectionLostError: If the connection was lost during the call, or the answer is unreadable.
            ConnectionError: If the server is not connected, or can't be reached: nothing was sent.
        """
        if self._client is None or not self.connected:
            msg = f"the MCP server {self._name} is not connected"
            raise ConnectionError(msg)
        failed: list[Exception] = []
        token = not_sent.set(failed)
        try:
            result = await self._client.call_tool(tool, dict(arguments), progress_callback=progress)
        except MCPError as error:
            failure = self._failure(error, failed)
            if failure is None:
                raise
            raise failure from error
        except ValidationError as error:
            raise ConnectionLostError(unreadable("tools/call", error)) from error
        except Exception as error:  # third-party code boundary: the call was sent
            msg = f"its answer to `tools/call` can't be used: {reason_of(error)}"
            raise ConnectionLostError(msg) from error
        finally:
            not_sent.reset(token)
        if not_finite(result.structured_content):
            written = quoted(json.dumps(result.structured_content))
            msg = f"its answer to `tools/call` has a number that is not finite, which JSON does not have: {written}"
            raise ConnectionLostError(msg)
        return result

    def _failure(self, error: MCPError, failed: list[Exception]) -> Exception | None:
        """Translate an error that the client raised itself.

        None for a server's own error.
        """
        server = f"the MCP server {self._name}"
        if failed:
            self._lose()
            return ConnectionError(f"{server} can't be reached, nothing was sent: {self._why(failed[0])}")
        if error.data is UNREADABLE:
            return ConnectionLostError(error.message)
        if foreign(error):
            return ConnectionLostError(f"its answer to `tools/call` {foreign(error)}")
        if error.code != CONNECTION_CLOSED:  # third-party servers use this code for other errors
            return None
        if error.message == CUT_OFF:
            return ConnectionLostError(f"{server} ended its answer before it was whole")
        if not (self._is_lost or error.message == "Connection closed"):
            return None
        self._lose()
        if self._requests.broken:
            return ConnectionLostError(f"{server} sent an answer that {self._requests.broken}")
        long = self._program is not None and self._program.too_long
        how = f"sent {TOO_LONG}, which ended the connection" if long else "went away during the call"
        return ConnectionLostError(f"{server} {how}")

    async def check(self) -> None:
        """Check the connection after a timed-out call.

        Without an answer it counts as lost.
        """
        if self._client is None or not self.connected:
            return
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._client.list_tools()  # the protocol of 2026 has no ping
        except MCPError as error:  # any other error comes from the server: it responds
            if error.code == CONNECTION_CLOSED:
                self._lose()
        except Exception:  # third-party code boundary: any error means no answer
            self._lose()

    def _tools_changed(self) -> None:
        self._current.clear()
        self._changes += 1
        if self._listing is None or self._listing.done():
            self._listing = asyncio.ensure_future(self._list_again())

    async def _list_again(self) -> None:
        while not self._current.is_set() and self._client is not None and self.connected:
            change_count = self._changes
            try:
                async with asyncio.timeout(self._server.start_seconds):
                    self._listed(tuple([tool async for tool in _tools_of(self._client)]))
            except Exception as error:  # third-party code boundary: the tools stay as they were
                text = f"its changed list of tools can't be read: {why(error, LISTING, self._program)}"
                self._tell(EventName.SERVER_SAID, server=self._name, text=text)
            if change_count == self._changes:
                self._current.set()
            await asyncio.sleep(LISTING_PAUSE)

    async def listed(self) -> None:
        """Wait a short time until changed tools are listed.

        The server may be busy, or change them all the time.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_SECONDS):
                await self._current.wait()

    async def _hold_open(self) -> None:
        ready = self._ready
        if ready is None:
            return
        try:
            async with AsyncExitStack() as stack:
                transport = _watched(await self._transport(stack), self._requests, self._lose, self._tools_changed)
                self._client = await stack.enter_async_context(Client(transport, elicitation_callback=self._elicit))
                # the tool was run: an output schema that Python can't use must not make its answer a failure
                self._client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                self._request = LISTING
                self._listed(tuple([tool async for tool in _tools_of(self._client)]))
                info = self._client.server_info
                identity = (info.title or info.name, info.version) if info is not None else ("", "")
                self.about = About(*identity, self._client.instructions or "")
                if not ready.done():
                    ready.set_result(None)
                await self._end.wait()
        except BaseException as error:  # task boundary: `open` waits for the outcome
            if isinstance(error, asyncio.CancelledError):
                ready.cancel()
            elif not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ConnectionError(repr(error)))
        finally:
            self._client = None

    def _lose(self) -> None:
        self._is_lost = True
        self._end.set()

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[TransportStreams]:
        server = self._server
        if server.url is not None:
            headers = {name: secret.get_secret_value() for name, secret in server.headers.items()}
            timeout = httpx2.Timeout(30.0, read=None)  # a call has its own limit, and may wait for a person
            self._http = BoundedTransport(server.max_bytes)
            http_client = httpx2.AsyncClient(headers=headers, timeout=timeout, transport=self._http)
            http = await stack.enter_async_context(http_client)
            return streamable_http_client(server.url, http_client=http, max_sse_event_size=server.max_bytes)
        env = {name: secret.get_secret_value() for name, secret in server.env.items()}
        cwd = self._settings.path(server.cwd) if server.cwd is not None else None
        self._program = ProgramLog(self._log_output)
        return over_stdio(McpProgram(server.command or "", server.args, env, cwd), server.max_bytes, self._program)

    def _log_output(self, text: str, dropped: int) -> None:
        """Emit an event for a line of the program's standard error."""
        self._tell(EventName.SERVER_SAID, server=self._name, text=text, **({"dropped": dropped} if dropped else {}))


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Accept a result whatever its tool's output schema says."""


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[TransportStreams],
    requests: PendingRequests,
    ended: Callable[[], None],
    changed: Callable[[], None],
) -> AsyncIterator[TransportStreams]:
    """Wrap a transport to match its answers.

    It calls `ended` when its other side closes, which a client reports only on the next call, and `changed` when the
    tools have changed, before a later answer is passed on.
    """
    async with transport as (read, write):
        yield _WatchedStream(read, requests, ended, changed), _RecordedStream(write, requests)


class _PassingStream:
    """A stream that passes everything on to another one."""

    def __init__(self, stream: Any, requests: PendingRequests) -> None:
        self._stream = stream
        self._requests = requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        suppressed: bool | None = await self._stream.__aexit__(kind, error, traceback)
        return suppressed


class _RecordedStream(_PassingStream):
    """A stream of messages to a server that records the requests."""

    async def send(self, item: SessionMessage) -> None:
        self._requests.sent(item)
        await self._stream.send(item)


class _WatchedStream(_PassingStream):
    """A stream of messages that reports its end and changed tools."""

    def __init__(
        self, stream: Any, requests: PendingRequests, ended: Callable[[], None], changed: Callable[[], None]
    ) -> None:
        super().__init__(stream, requests)
        self._ended = ended
        self._changed = changed

    async def receive(self) -> SessionMessage | Exception:
        try:
            message = self._requests.received(await self._stream.receive())
        except Exception:
            self._ended()
            raise
        if message is None:
            self._ended()
            raise anyio.EndOfStream
        match message:
            case SessionMessage(message=JSONRPCNotification(method="notifications/tools/list_changed")):
                self._changed()
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


async def _tools_of(client: Client) -> AsyncIterator[Tool]:
    """List a server's tools, page by page."""
    page = await client.list_tools(cache_mode="refresh")
    while True:
        for tool in page.tools:
            yield tool
        if page.next_cursor is None:
            return
        page = await client.list_tools(cursor=page.next_cursor)
