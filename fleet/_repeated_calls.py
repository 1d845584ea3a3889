"""Repeated calls of the engine, and work beside the calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.fleet._engine import EngineAwayError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_T = TypeVar("_T")
_RETRY_SECONDS = 0.25


async def repeat(call: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat a call until the engine answers."""
    while True:
        try:
            return await call()
        except EngineAwayError:
            await asyncio.sleep(_RETRY_SECONDS)


_background: set[asyncio.Task[Any]] = set()


def in_background(work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
    """Run a coroutine, without waiting for its result."""
    task = asyncio.get_running_loop().create_task(work)
    _background.add(task)
    task.add_done_callback(_background.discard)
    return task
