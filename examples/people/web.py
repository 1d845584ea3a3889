"""People in the loop, by HTTP.

Any browser or program submits tasks, lists the open requests and answers them.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request  # noqa: TC002 - an example shows all of its imports
from starlette.responses import JSONResponse
from starlette.routing import Route

from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task, TaskHandle, answers
from callboard.errors import AnswerRefusedError, NotWaitingError
from callboard.testing import MemoryServer

POLICY = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]


def work(request: ModelRequest) -> answers.Answer:
    """Ask, append, and finish."""
    if not request.memory:
        return answers.ask("Which greeting?")
    if any(result.tool == "append" for record in request.memory for result in record.results):
        return answers.finish()
    return answers.act("append", control="field-1", text=request.request)


class Counter:
    """List open requests, and pass on the answers.

    The supervisor's methods may block, so they are called on threads.
    """

    def __init__(self, supervisor: Supervisor, target: str) -> None:
        self.supervisor = supervisor
        self.target = target
        self.handles: dict[str, TaskHandle] = {}

    def application(self) -> Starlette:
        """Make the web application."""
        return Starlette(
            routes=[
                Route("/tasks", self.submit, methods=["POST"]),
                Route("/tasks/{task}", self.result),
                Route("/waiting", self.waiting),
                Route("/waiting", self.decide, methods=["POST"]),
            ]
        )

    async def submit(self, request: Request) -> JSONResponse:
        """Submit a task: ``{"request": ...}``."""
        task = Task(request=(await request.json())["request"], target=self.target)
        self.handles[task.id] = await self.supervisor.submit_async(task)
        return JSONResponse({"task": task.id}, 201)

    async def result(self, request: Request) -> JSONResponse:
        """Wait for the end of a task."""
        result = await self.handles[request.path_params["task"]]
        return JSONResponse(result.model_dump(mode="json"))

    async def waiting(self, _request: Request) -> JSONResponse:
        """List open questions and approvals, with the agents' observations."""
        status = await asyncio.to_thread(self.supervisor.status)
        return JSONResponse([ask.model_dump(mode="json") for ask in (*status.questions, *status.approvals)])

    async def decide(self, request: Request) -> JSONResponse:
        """Settle a request.

        The body is ``{"task", "id", "by"}`` with ``"answers": [...]``, or with ``"approve": true`` or ``false``.
        """
        body = await request.json()
        handle, ask_id, by = self.handles[body["task"]], body["id"], body["by"]
        try:
            if "answers" in body:
                await asyncio.to_thread(handle.answer, ask_id, *body["answers"], by=by)
            elif body["approve"]:
                await asyncio.to_thread(handle.approve, ask_id, by=by, remember=body.get("remember", False))
            else:
                await asyncio.to_thread(handle.reject, ask_id, body.get("reason", ""), by=by)
        except NotWaitingError as error:  # answered already, past its deadline, or cancelled
            return JSONResponse({"error": str(error)}, 409)
        except AnswerRefusedError as error:  # the request is still open
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse({})


def main(port: int = 8000) -> None:
    """Serve until Ctrl-C."""
    window = MemoryServer.window()
    settings = Settings.load(policy=POLICY)
    models = {"app": FunctionModel(work)}
    with (
        Supervisor.start(settings, models=models, servers=[MemoryServer(window)]) as supervisor,
        socket.create_server(("127.0.0.1", port)) as listening,
    ):
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        counter = Counter(supervisor, window.id)
        config = uvicorn.Config(counter.application(), log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
