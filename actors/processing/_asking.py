"""Questions of a running tool call, and answers of another machine's people."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.messages import Answer, ApprovalAnswer, Question


@dataclass(frozen=True)
class CallAsks:
    """Message to the root: a running call asks a person."""

    question: Question
    reply: Callable[[Answer | None], None]
    """Callback for the answer, or None if there will be none; callable on any thread."""


@dataclass(frozen=True)
class CallAsksNoMore:
    """Message to the root: the call that asked is over."""

    question: Question


@dataclass(frozen=True)
class AnsweredElsewhere:
    """Message to the root: a request of another machine was answered there."""

    answer: Answer | ApprovalAnswer


class PeopleLine:
    """Pass questions of running calls to the root; the root sets `post`."""

    def __init__(self) -> None:
        self.post: Callable[[object], None] | None = None

    async def ask(self, question: Question) -> Answer | None:
        """Ask and wait for the answer.

        None if the deadline passes or the run or supervisor ends.
        """
        if self.post is None:
            return None
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer | None] = loop.create_future()

        def settle(answer: Answer | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        def reply(answer: Answer | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no call is waiting
                loop.call_soon_threadsafe(settle, answer)

        self.post(CallAsks(question, reply))
        try:
            return await answered
        finally:
            if answered.cancelled():
                self.post(CallAsksNoMore(question))
