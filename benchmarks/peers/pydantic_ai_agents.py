"""pydantic-ai: the host's tool runs the application's agent.

The models are its `FunctionModel`.
"""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.output import ToolOutput

from benchmarks.protocol import STEPS, on_a_loop, serve, timed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def shown(messages: list[ModelMessage]) -> int:
    """Count the tool results in a model's input."""
    return sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)


async def plan(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Decide for the host."""
    if shown(messages):
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("assign", {"subtask": "fill the field"})])


async def work(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Decide for the application: write, finish with the last step."""
    step = shown(messages) + 1
    parts = [ToolCallPart("write", {"text": str(step)})]
    if step == STEPS:
        parts.append(ToolCallPart(info.output_tools[0].name, {"response": str(step)}))
    return ModelResponse(parts=parts)


@asynccontextmanager
async def job() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Make the agents, and give the function that runs one task."""
    app = Agent(FunctionModel(work), output_type=ToolOutput(str), instructions="fill the field")
    host = Agent(FunctionModel(plan), instructions="assign, then finish")

    @app.tool_plain
    async def write(text: str) -> str:
        """Set the field's text."""
        return text

    @host.tool_plain
    async def assign(subtask: str) -> str:
        """Have the application perform a subtask."""
        return (await app.run(subtask)).output

    async def task() -> None:
        result = await host.run("fill the field")
        if result.output != "done":
            msg = f"the benchmark is broken: {result}"
            raise RuntimeError(msg)

    yield task


if __name__ == "__main__":
    serve(timed(on_a_loop(job)))
