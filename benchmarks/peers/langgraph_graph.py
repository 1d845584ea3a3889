"""LangGraph: a graph of a host, an application's agent and its tool.

Checkpoints are in ``memory``, or in ``sqlite``.
"""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

from __future__ import annotations

import sys
import tempfile
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.protocol import STEPS, on_a_loop, serve, timed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class State(TypedDict):
    """The state of a task."""

    request: str
    subtask: str
    done: bool
    step: int
    text: str
    status: str


async def host(state: State) -> dict[str, object]:
    """Decide for the host."""
    return {"status": "FINISH"} if state.get("done") else {"status": "ASSIGN", "subtask": state["request"], "step": 0}


async def app(state: State) -> dict[str, object]:
    """Decide for the application."""
    step = state["step"] + 1
    return {"step": step, "status": "CONTINUE" if step < STEPS else "FINISH"}


async def write(state: State) -> dict[str, object]:
    """Act."""
    return {"text": str(state["step"]), "done": state["status"] == "FINISH"}


def build() -> StateGraph:
    """Build the graph."""
    graph = StateGraph(State)
    graph.add_node("host", host)
    graph.add_node("app", app)
    graph.add_node("write", write)
    graph.add_edge(START, "host")
    graph.add_conditional_edges("host", lambda state: "app" if state["status"] == "ASSIGN" else END, ["app", END])
    graph.add_edge("app", "write")
    graph.add_conditional_edges("write", lambda state: "host" if state["done"] else "app", ["host", "app"])
    return graph


@asynccontextmanager
async def job(*, durable: bool) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Open the checkpointer, and give the function that runs one task."""
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        async with _saver(Path(folder), durable=durable) as saver:
            compiled = build().compile(checkpointer=saver)

            async def task() -> None:
                config = {"configurable": {"thread_id": str(next(numbers))}}
                end = await compiled.ainvoke({"request": "fill the field"}, config)
                if end["text"] != str(STEPS):
                    msg = f"the benchmark is broken: {end}"
                    raise RuntimeError(msg)

            yield task


@asynccontextmanager
async def _saver(folder: Path, *, durable: bool) -> AsyncIterator[object]:
    if durable:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
            yield saver
    else:
        yield InMemorySaver()


if __name__ == "__main__":
    serve(timed(on_a_loop(partial(job, durable=sys.argv[1] == "sqlite"))))
