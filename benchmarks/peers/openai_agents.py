"""openai-agents: the application's agent is a tool of the host's.

The model is a stub of its `Model` interface.
"""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    ToolsToFinalOutputResult,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.protocol import STEPS, on_a_loop, serve, timed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_ids = count()


def call(name: str, **arguments: object) -> ModelResponse:
    """Answer with a tool call."""
    number = str(next(_ids))
    said = ResponseFunctionToolCall(
        id=number, call_id=number, name=name, arguments=json.dumps(arguments), type="function_call"
    )
    return ModelResponse(output=[said], usage=Usage(), response_id=None)


def text(content: str) -> ModelResponse:
    """Answer with a text."""
    part = ResponseOutputText(text=content, type="output_text", annotations=[])
    message = ResponseOutputMessage(
        id=str(next(_ids)), content=[part], role="assistant", status="completed", type="message"
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


def results_in(history: Any) -> int:
    """Count the tool results in a model's input."""
    return 0 if isinstance(history, str) else sum(item.get("type") == "function_call_output" for item in history)


class Stub(Model):
    """A model that decides by the number of tool results."""

    def __init__(self, decide: Callable[[int], ModelResponse]) -> None:
        self._decide = decide

    async def get_response(self, *_arguments: Any, **options: Any) -> ModelResponse:
        """Decide."""
        return self._decide(results_in(options["input"]))

    def stream_response(self, *_arguments: Any, **_options: Any) -> Any:
        """Refuse: this job has no streaming."""
        raise NotImplementedError


@function_tool
async def write(text: str) -> str:
    """Set the field's text."""
    return text


async def until_written(_context: object, results: list[Any]) -> ToolsToFinalOutputResult:
    """End with the last step's tool call, without one more decision.

    The other libraries do the same.
    """
    last = results[-1].output
    return ToolsToFinalOutputResult(is_final_output=last == str(STEPS), final_output=last)


@asynccontextmanager
async def job() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Make the agents, and give the function that runs one task."""
    set_tracing_disabled(disabled=True)
    app: Agent[None] = Agent(
        name="app",
        instructions="fill the field",
        model=Stub(lambda number: call("write", text=str(number + 1))),
        tools=[write],
        tool_use_behavior=until_written,
    )
    host: Agent[None] = Agent(
        name="host",
        instructions="assign, then finish",
        model=Stub(lambda number: text("done") if number else call("assign", input="fill the field")),
        tools=[app.as_tool("assign", "Have the application do something.")],
    )

    async def task() -> None:
        result = await Runner.run(host, "fill the field")
        if result.final_output != "done":
            msg = f"the benchmark is broken: {result}"
            raise RuntimeError(msg)

    yield task


if __name__ == "__main__":
    serve(timed(on_a_loop(job)))
