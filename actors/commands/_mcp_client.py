"""Third-party MCP servers: one session each, owned by one task."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from callboard.actors.commands._tools import BoundTool, effect_of, schema_problem, value_of
from callboard.actors.models import ToolInfo
from callboard.config import in_url, masked
from callboard.messages import CommandType, Effect, Hazard, SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from mcp_types import Tool
    from pydantic import JsonValue

    from callboard.actors.runtime import Deed
    from callboard.config import McpServer, Settings
    from callboard.messages import AgentKind


class McpSession:
    """A connection to one MCP server. Its task opens and closes it; any task on the same loop may call its tools."""

    def __init__(self, name: str, server: McpServer, settings: Settings) -> None:
        self.name = name
        self.agents: tuple[AgentKind, ...] = server.agents
        self.trusted = server.trusted
        self._server = server
        self._settings = settings
        self._ready: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._tools: tuple[Tool, ...] = ()

    async def open(self) -> None:
        """Connect and list the tools. Runs on the event loop.

        Raises:
            SettingsError: If the server can't be started or reached in time.
        """
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._own(), name=f"mcp-{self.name}")
        seconds = self._server.start_seconds
        done, _ = await asyncio.wait([self._ready], timeout=seconds)
        error = self._ready.exception() if done else TimeoutError(f"no answer within {seconds:g} s")
        if error is not None:
            await self.close()
            msg = f"mcpServers.{self.name}: no connection: {_reason(error)}"
            raise SettingsError(msg) from error

    async def close(self) -> None:
        """Disconnect; a program that was started is ended."""
        self._stop.set()
        if self._task is None:
            return
        if self._ready is not None and not self._ready.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _own(self) -> None:
        ready = self._ready
        if ready is None:
            return
        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(Client(await self._transport(stack)))
                self._tools = tuple([tool async for tool in _listed(self._client)])
                if not ready.done():
                    ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - an edge: who waits for the session must hear of it
            if isinstance(error, asyncio.CancelledError):
                ready.cancel()
            elif not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ConnectionError(repr(error)))
        finally:
            self._client = None

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        server = self._server
        if server.url is not None:
            headers = {name: secret.get_secret_value() for name, secret in server.headers.items()}
            timeout = httpx2.Timeout(30.0, read=300.0)
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=timeout))
            return streamable_http_client(server.url, http_client=http)
        parameters = StdioServerParameters(
            command=server.command or "",
            args=list(server.args),
            env={name: secret.get_secret_value() for name, secret in server.env.items()},
            cwd=self._settings.path(server.cwd) if server.cwd is not None else None,
        )
        errors = stack.enter_context(Path(os.devnull).open("w"))  # noqa: ASYNC230, SIM115 - the stack closes it; the host's stderr is not ours
        return stdio_client(parameters, errlog=errors)

    def tools(self) -> tuple[BoundTool, ...]:
        """Give its tools, named ``<server>.<tool>``."""
        return tuple(RemoteTool(self, tool) for tool in self._tools)

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Call a tool over the protocol.

        Raises:
            ToolFailure: If it answered with an error.
            ConnectionError: If the session is closed.
        """
        if self._client is None:
            msg = f"the MCP server {self.name} is not connected"
            raise ConnectionError(msg)
        return value_of(await self._client.call_tool(tool, dict(arguments)), wrapped=False)


async def _listed(client: Client) -> AsyncIterator[Tool]:
    """List a server's tools, page by page."""
    page = await client.list_tools()
    while True:
        for tool in page.tools:
            yield tool
        if page.next_cursor is None:
            return
        page = await client.list_tools(cursor=page.next_cursor)


def _reason(error: BaseException) -> str:
    """Say why, in the words of the exception that a group holds."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error) or type(error).__name__
    return masked(text, in_url(text))  # it may quote the whole address


class RemoteTool(BoundTool):
    """A tool of a third-party server. It has no surface; nothing can be bound or re-checked."""

    def __init__(self, session: McpSession, tool: Tool) -> None:
        self._session = session
        self._tool = tool
        self.type = CommandType.ACTION
        self.binds = {}
        self.info = ToolInfo(
            name=f"{session.name}.{tool.name}",
            description=tool.description or "",
            schema={"additionalProperties": True, **tool.input_schema},
            effect=effect_of(tool.annotations, trusted=session.trusted),
        )

    async def hazards(self, arguments: Mapping[str, JsonValue], made: Collection[str]) -> frozenset[Hazard]:  # noqa: ARG002 - the interface
        """A tool that may destroy is a hazard, and so is an unknown one with effect `once`.

        As MCP has it, a tool that changes something may destroy unless ``destructiveHint`` says no.
        """
        said = self._tool.annotations
        if self.info.effect is Effect.READ:
            return frozenset()
        if self.info.effect is Effect.ONCE and not (self._session.trusted and said and said.destructive_hint):
            return frozenset({Hazard.UNKNOWN})
        return frozenset() if said is not None and said.destructive_hint is False else frozenset({Hazard.DELETES})

    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        problem = schema_problem(self._tool.input_schema, arguments)
        return f"{self.info.name}: {problem}" if problem else None

    async def call(self, arguments: Mapping[str, JsonValue], deed: Deed) -> JsonValue:
        """Call it over the protocol, if the lease still allows anything."""
        with deed.committing():
            pass
        return await self._session.call(self._tool.name, arguments)
