"""autogen-core: ``rpc`` loops within one call, ``messages`` has one per step."""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from autogen_core import AgentId, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler

from benchmarks.protocol import STEPS, on_a_loop, serve, timed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

HOST, APP = AgentId("host", "default"), AgentId("app", "default")


@dataclass
class Request:
    """A task."""

    task_id: int
    text: str


@dataclass
class Assign:
    """A subtask."""

    task_id: int
    text: str


@dataclass
class Step:
    """Decide and act once."""

    task_id: int
    number: int


@dataclass
class Done:
    """A result; the work is over if nothing is left to do."""

    task_id: int
    over: bool = True


async def plan(done: Done | None) -> str:
    """Stand in for the host's model."""
    return "ASSIGN" if done is None else "FINISH"


async def work(number: int) -> tuple[str, str]:
    """Stand in for the application's model: the text, and whether to continue."""
    return str(number), "CONTINUE" if number < STEPS else "FINISH"


class Host(RoutedAgent):
    """The host: decide, assign, finish; in `messages`, by messages to itself."""

    def __init__(self, *, stepwise: bool) -> None:
        super().__init__("host")
        self._stepwise = stepwise

    @message_handler
    async def on_request(self, message: Request, _ctx: MessageContext) -> Done:
        """Work on a task."""
        if self._stepwise:
            await self.send_message(Step(message.task_id, 1), self.id)
        else:
            await plan(None)
        done = await self.send_message(Assign(message.task_id, message.text), APP)
        if self._stepwise:
            await self.send_message(Step(message.task_id, 2), self.id)
        else:
            await plan(done)
        return Done(message.task_id)

    @message_handler
    async def on_step(self, message: Step, _ctx: MessageContext) -> Done:
        """Decide once."""
        said = await plan(None if message.number == 1 else Done(message.task_id))
        return Done(message.task_id, over=said == "FINISH")


class App(RoutedAgent):
    """The application: take steps."""

    def __init__(self, *, stepwise: bool) -> None:
        super().__init__("app")
        self._stepwise = stepwise
        self.text = ""

    @message_handler
    async def on_assign(self, message: Assign, _ctx: MessageContext) -> Done:
        """Work on a subtask."""
        number, is_over = 0, False
        while not is_over:
            number += 1
            if self._stepwise:
                is_over = (await self.send_message(Step(message.task_id, number), self.id)).over
            else:
                is_over = await self._step(number)
        return Done(message.task_id)

    @message_handler
    async def on_step(self, message: Step, _ctx: MessageContext) -> Done:
        """Decide and act once."""
        return Done(message.task_id, over=await self._step(message.number))

    async def _step(self, number: int) -> bool:
        text, status = await work(number)
        await self._write(text)
        return status == "FINISH"

    async def _write(self, text: str) -> None:
        """Run the tool."""
        self.text = text


@asynccontextmanager
async def job(*, stepwise: bool) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Start a runtime, and give the function that sends it one task."""
    runtime = SingleThreadedAgentRuntime()
    await Host.register(runtime, "host", lambda: Host(stepwise=stepwise))
    await App.register(runtime, "app", lambda: App(stepwise=stepwise))
    runtime.start()
    numbers = count()

    async def task() -> None:
        await runtime.send_message(Request(next(numbers), "fill the field"), HOST)

    yield task
    await runtime.stop_when_idle()


if __name__ == "__main__":
    serve(timed(on_a_loop(partial(job, stepwise=sys.argv[1] == "messages"))))
