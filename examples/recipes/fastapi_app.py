"""A FastAPI application with tasks, server-sent events and approvals.

Start it with ``uvicorn fastapi_app:app``; the supervisor starts and stops with the application.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent

from callboard import ModelRequest, Settings, Supervisor, Task, TaskHandle, answers
from callboard.errors import NotWaitingError, UnknownTaskError
from callboard.testing import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WINDOW = MemoryServer.window()


def work(request: ModelRequest) -> dict[str, Any]:
    """Write into the memo, in place of a live model."""
    if request.memory:
        return answers.finish("written")
    return answers.act("append", control="field-1", text=request.request)


def start() -> Supervisor:
    """Start the supervisor."""
    settings = Settings.load(policy=[{"verdict": "approve", "tool": "append", "reason": "appended text stays"}])
    return Supervisor.start(settings, models={"app": work}, servers=[MemoryServer(WINDOW)])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run a supervisor as long as the application."""
    async with await asyncio.to_thread(start) as supervisor:
        app.state.supervisor = supervisor
        yield


app = FastAPI(lifespan=lifespan)


def supervisor_of(request: Request) -> Supervisor:
    """Return the application's supervisor."""
    supervisor: Supervisor = request.app.state.supervisor
    return supervisor


Running = Annotated[Supervisor, Depends(supervisor_of)]


def handle_of(task_id: str, supervisor: Running) -> TaskHandle:
    """Find a task."""
    try:
        return supervisor.handle(task_id)
    except UnknownTaskError as error:
        raise HTTPException(404, str(error)) from error


Known = Annotated[TaskHandle, Depends(handle_of)]


class NewTask(BaseModel):
    """A task to submit."""

    request: str


class Verdict(BaseModel):
    """A person's answer to an approval request."""

    approve: bool
    by: str
    reason: str = ""


@app.post("/tasks", status_code=201)
async def submit(new: NewTask, supervisor: Running) -> dict[str, str]:
    """Submit a task."""
    handle = await supervisor.submit_async(Task(request=new.request, target=WINDOW.id))
    return {"id": handle.task_id}


@app.get("/tasks/{task_id}/events")
async def events(handle: Known) -> EventSourceResponse:
    """Stream the events of a task, to its end."""

    async def lines() -> AsyncIterator[ServerSentEvent]:
        async for event in handle:
            yield ServerSentEvent(event.model_dump_json(), event=event.name, id=str(event.seq))

    return EventSourceResponse(lines())


@app.get("/tasks/{task_id}")
async def result(handle: Known) -> dict[str, Any]:
    """Wait for the end of a task, and return its result."""
    return (await handle).model_dump(mode="json")


@app.get("/tasks/{task_id}/approvals")
def approvals(handle: Known) -> list[dict[str, Any]]:
    """List the open approval requests of a task."""
    return [request.model_dump(mode="json") for request in handle.approvals()]


@app.post("/tasks/{task_id}/approvals/{request_id}", status_code=204)
def decide(handle: Known, request_id: str, verdict: Verdict) -> None:
    """Approve or reject actions."""
    try:
        if verdict.approve:
            handle.approve(request_id, by=verdict.by)
        else:
            handle.reject(request_id, verdict.reason, by=verdict.by)
    except NotWaitingError as error:  # answered already, past its deadline, or cancelled
        raise HTTPException(409, str(error)) from error


@app.delete("/tasks/{task_id}", status_code=204)
def cancel(handle: Known) -> None:
    """Cancel a task."""
    handle.cancel("cancelled over HTTP")


@app.get("/health")
def health(supervisor: Running, response: Response) -> dict[str, Any]:
    """Report on the supervisor, with 503 if it does not accept tasks."""
    report = supervisor.health()
    response.status_code = 200 if report.ok else 503
    return report.model_dump(mode="json")
