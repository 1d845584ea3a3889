"""People in the loop, by queue: people take the next event."""

from __future__ import annotations

import queue

from callboard import Event, EventName, FunctionModel, ModelRequest, Settings, Supervisor, Task, answers
from callboard.testing import MemoryServer

POLICY = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]
ROOMS = ("kitchen", "cellar", "attic")


def work(request: ModelRequest) -> answers.Answer:
    """Append once, then finish."""
    if request.memory:
        return answers.finish()
    return answers.act("append", control="field-1", text=request.request)


def main() -> None:
    """Decide on three requests: approve two, and reject the attic."""
    windows = [MemoryServer.window(room) for room in ROOMS]
    settings = Settings.load(policy=POLICY)
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
    models = {"app": FunctionModel(work)}
    with Supervisor.start(settings, models=models, servers=[MemoryServer(*windows)]) as supervisor:
        supervisor.subscribe(inbox.put)
        tasks = [
            Task(request=f"sweep the {room}", target=window.id) for room, window in zip(ROOMS, windows, strict=True)
        ]
        handles = {handle.task_id: handle for handle in supervisor.submit_all(tasks)}
        working = set(handles)
        while working:
            event = inbox.get()
            if event.name is EventName.APPROVAL_REQUESTED:
                handle = handles[event.task_id]
                (request,) = handle.approvals()
                if "attic" in str(request.actions[0].arguments["text"]):
                    handle.reject(request.id, "the attic is locked", by="ada")
                else:
                    handle.approve(request.id, by="ada")
            elif event.name is EventName.TASK_ENDED:
                working.discard(event.task_id)
        for task in tasks:
            result = handles[task.id].result()
            print(f"{task.request}: {result.outcome.value} {' '.join(cause.reason for cause in result.causes)}".strip())


if __name__ == "__main__":
    main()
