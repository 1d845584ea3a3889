"""LangGraph: a host that fans out into eight branches.

It uses `Send`, and finishes when all have ended. A branch decides and acts in one node. Checkpoints are in SQLite.
"""
# mypy: disable-error-code="import-not-found,misc,untyped-decorator"

from __future__ import annotations

import asyncio
import operator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from benchmarks.fan_out import SUBTASKS, measured
from benchmarks.protocol import serve


class State(TypedDict):
    """The state of a task."""

    texts: Annotated[list[str], operator.add]


class Branch(TypedDict):
    """The state of a branch."""

    window: str
    wait: float


async def host(_state: State) -> dict[str, object]:
    """Decide for the host."""
    return {}


async def work(state: Branch) -> dict[str, object]:
    """Decide and act in a branch."""
    if state["wait"]:
        await asyncio.sleep(state["wait"])
    return {"texts": [f"{state['window']}: done"]}


def build(wait: float) -> StateGraph:
    """Build the graph, with the seconds that each branch waits."""

    def branches(state: State) -> list[Send] | str:
        if state["texts"]:
            return END
        return [Send("work", {"window": f"memo:{number}", "wait": wait}) for number in range(SUBTASKS)]

    graph = StateGraph(State)
    graph.add_node("host", host)
    graph.add_node("work", work)
    graph.add_edge(START, "host")
    graph.add_conditional_edges("host", branches, ["work", END])
    graph.add_edge("work", "host")
    return graph


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Run tasks at one width."""
    numbers = count()
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        opening = AsyncSqliteSaver.from_conn_string(str(Path(folder) / "checkpoints.db"))
        saver = runner.run(opening.__aenter__())
        graphs = {wait: build(wait).compile(checkpointer=saver) for wait in (0.0, float(parameters["wait"]))}

        def run(wait: float) -> None:
            config = {"configurable": {"thread_id": str(next(numbers))}, "max_concurrency": parameters["width"]}
            end = runner.run(graphs[wait].ainvoke({"texts": []}, config))
            if len(end["texts"]) != SUBTASKS:
                msg = f"the benchmark is broken: {end}"
                raise RuntimeError(msg)

        figures = measured(run, parameters)
        runner.run(opening.__aexit__(None, None, None))
        return figures


if __name__ == "__main__":
    serve(measure)
