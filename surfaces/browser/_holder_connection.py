"""Connection to the program that holds a browser."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
from typing import TYPE_CHECKING

from callboard.network import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ANSWER_SECONDS = 20.0
_LINE_BYTES = 1 << 20


class HolderConnection:
    """A connection, on which requests are answered in their order.

    Args:
        reader: The lines from the holder.
        writer: The lines to the holder.
        on_refusal: Called with a context's name, and a request of it that was refused.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_refusal: Callable[[str, Refusal], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_refusal = on_refusal
        self._answers: collections.deque[asyncio.Future[str]] = collections.deque()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, socket: Path, on_refusal: Callable[[str, Refusal], None]) -> HolderConnection:
        """Connect to a holder.

        Raises:
            OSError: If it has ended.
        """
        return cls(*await asyncio.open_unix_connection(socket, limit=_LINE_BYTES), on_refusal)

    async def ask(self, line: str) -> str:
        """Send a line, and return its answer.

        Raises:
            OSError: If the holder has ended, or does not answer in time.
        """
        if self._reading.done():
            msg = "the browser has ended"
            raise ConnectionError(msg)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        self._writer.write(f"{line}\n".encode())
        return await asyncio.wait_for(answer, _ANSWER_SECONDS)

    async def _read(self) -> None:
        """Take lines until the holder ends."""
        try:
            while line := (await self._reader.readline()).decode().strip():
                word, _, value = line.partition(" ")
                if word == "refused":
                    facts = json.loads(value)
                    self._on_refusal(facts.pop("context"), Refusal(**facts))
                elif not (answer := self._answers.popleft()).done():
                    answer.set_result(line)
        except (OSError, ValueError):
            pass  # as if it had ended
        finally:
            self._writer.close()
            for answer in self._answers:
                if not answer.done():
                    answer.set_exception(ConnectionError("the browser has ended"))

    async def end(self) -> None:
        """End the browser, and wait until its holder has ended."""
        with contextlib.suppress(OSError, TimeoutError):
            self._writer.write(b"end\n")
            await asyncio.wait_for(asyncio.shield(self._reading), _ANSWER_SECONDS)
        self._reading.cancel()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
