"""agent-framework: a workflow of two executors.

``plain`` has no checkpoints, ``checkpoint`` stores them in memory. A workflow runs one task at a time, so each task
builds its own.
"""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Never

from agent_framework import Executor, InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, handler

from benchmarks.protocol import STEPS, on_a_loop, serve, timed


@dataclass
class Assign:
    """A subtask."""

    text: str


@dataclass
class Step:
    """Decide and act once."""

    number: int


@dataclass
class Done:
    """A subtask's ending."""

    text: str


class Host(Executor):
    """The host: decide, assign, finish."""

    @handler
    async def on_request(self, message: str, ctx: WorkflowContext[Assign]) -> None:
        """Decide on a task."""
        await ctx.send_message(Assign(message))

    @handler
    async def on_done(self, message: Done, ctx: WorkflowContext[Never, str]) -> None:
        """Decide on the subtask's result."""
        await ctx.yield_output(message.text)


class App(Executor):
    """The application: take steps."""

    @handler
    async def on_assign(self, _message: Assign, ctx: WorkflowContext[Step]) -> None:
        """Begin."""
        await ctx.send_message(Step(1))

    @handler
    async def on_step(self, message: Step, ctx: WorkflowContext[Step | Done]) -> None:
        """Decide and act once."""
        text = str(message.number)
        await ctx.send_message(Step(message.number + 1) if message.number < STEPS else Done(text))


@asynccontextmanager
async def job(*, durable: bool) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give the function that runs one task."""

    async def task() -> None:
        host, app = Host(id="host"), App(id="app")
        storage = InMemoryCheckpointStorage() if durable else None
        builder = WorkflowBuilder(start_executor=host, checkpoint_storage=storage, output_from=[host])
        builder.add_edge(host, app, condition=lambda message: isinstance(message, Assign))
        builder.add_edge(app, app, condition=lambda message: isinstance(message, Step))
        builder.add_edge(app, host, condition=lambda message: isinstance(message, Done))
        outputs = (await builder.build().run("fill the field")).get_outputs()
        if outputs != [str(STEPS)]:
            msg = f"the benchmark is broken: {outputs}"
            raise RuntimeError(msg)

    yield task


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # it warns about each executor that sends itself messages
    serve(timed(on_a_loop(partial(job, durable=sys.argv[1] == "checkpoint"))))
