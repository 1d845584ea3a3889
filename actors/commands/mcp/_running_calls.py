"""Calls of an MCP server, and its forms.

The server asks a person to fill in the forms.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_types import ElicitResult

from callboard.actors.commands.mcp._elicitation import DeclinedError, fill_in
from callboard.messages import EventName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.client.session import ClientRequestContext
    from mcp_types import ElicitRequestParams

    from callboard.surfaces import CallKeeper, EffectGuard

MOST_FORMS = 10
"""The most forms in one call; further ones are declined, since a call's clock stops while a person is asked."""


@dataclass(eq=False)
class _Running:
    tool: str
    guard: EffectGuard | None
    forms: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: set[asyncio.Task[ElicitResult]] = field(default_factory=set)


_current: ContextVar[_Running | None] = ContextVar("callboard_mcp_call", default=None)


class RunningCalls:
    """The running calls of one server. Runs on the event loop."""

    def __init__(self, server: str, tell: Callable[..., None], *, asks: bool) -> None:
        """Create them; `asks` is False if people are never asked."""
        self._server = server
        self._tell = tell
        self._asks = asks
        self._running: list[_Running] = []

    @contextlib.contextmanager
    def run(self, tool: str, guard: EffectGuard | None) -> Iterator[None]:
        """Register a running call; at its end its open questions are withdrawn."""
        call = _Running(tool, guard)
        self._running.append(call)
        token = _current.set(call)
        try:
            yield
        finally:
            _current.reset(token)
            self._running.remove(call)
            for asking in call.asking:
                asking.cancel()

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Ask a person to fill in the server's form.

        A declined form is reported by an event.
        """
        call = _current.get() or (self._running[0] if len(self._running) == 1 else None)
        try:
            return await self._elicit(call, params)
        except DeclinedError as error:
            command = call.guard.command if call is not None and call.guard is not None else None
            origin = {} if command is None else {"task_id": command.task_id, "run_id": command.run_id}
            about = {"server": self._server, "tool": call.tool if call is not None else "", "reason": str(error)}
            self._tell(EventName.QUESTION_DECLINED, **origin, **about)
            return ElicitResult(action="decline")

    async def _elicit(self, call: _Running | None, params: ElicitRequestParams) -> ElicitResult:
        if not self._asks:
            msg = "system.ask_question is off: no person will answer"
            raise DeclinedError(msg)
        if call is None:
            msg = f"{len(self._running) or 'no'} calls are running, and nothing tells which one it belongs to"
            raise DeclinedError(msg)
        if call.guard is None or call.guard.keeper is None:
            msg = "the call is not an agent's"
            raise DeclinedError(msg)
        call.forms += 1
        if call.forms > MOST_FORMS:
            msg = f"the call has asked {MOST_FORMS} times"
            raise DeclinedError(msg)
        asking = asyncio.ensure_future(self._fill_in(call, params, call.guard.keeper))
        call.asking.add(asking)
        try:
            return await asking
        except asyncio.CancelledError:
            if call in self._running:  # the server withdraws its question, or the connection ends
                asking.cancel()
                raise
            return ElicitResult(action="cancel")
        except ValueError as error:
            raise DeclinedError(str(error)) from error
        finally:
            call.asking.discard(asking)

    async def _fill_in(self, call: _Running, params: ElicitRequestParams, keeper: CallKeeper) -> ElicitResult:
        async with call.turn:  # a call's forms are shown one at a time
            return await fill_in(self._server, call.tool, params, keeper.ask)
