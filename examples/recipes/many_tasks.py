"""Run two hundred tasks with asyncio, twenty at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from callboard import ModelRequest, Supervisor, Task, answers
from callboard.testing import MemoryServer

WINDOWS = [MemoryServer.window(f"memo-{number}") for number in range(200)]
AT_ONCE = 20


async def work(request: ModelRequest) -> dict[str, Any]:
    """Write into a memo, after the wait of a live model."""
    await asyncio.sleep(0.01)
    return answers.finish() if request.memory else answers.act("write", control="field-1", text=request.request)


async def main() -> None:
    """Run the tasks, and count their outcomes."""
    places = asyncio.Semaphore(AT_ONCE)
    started = await asyncio.to_thread(Supervisor.start, models={"app": work}, servers=[MemoryServer(*WINDOWS)])
    async with started as supervisor:

        async def run(number: int, target: str) -> str:
            async with places:
                task = Task(request=f"number {number}", target=target, labels={"batch": "night"})
                result = await (await supervisor.submit_async(task))
                return result.outcome.value

        outcomes = await asyncio.gather(*(run(number, window.id) for number, window in enumerate(WINDOWS)))
    print(dict(Counter(outcomes)))


if __name__ == "__main__":
    asyncio.run(main())
