"""Calls of the engine that are repeated until it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from callboard.fleet._engine import EngineAwayError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")
_RETRY_SECONDS = 0.25


async def repeat(call: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat a call until the engine answers."""
    while True:
        try:
            return await call()
        except EngineAwayError:
            await asyncio.sleep(_RETRY_SECONDS)
