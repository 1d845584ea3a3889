"""The Tasks extension of MCP: handles for long calls of `run_task`."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ElicitResult, RequestParams, TextContent

from callboard.journal import JournalReader
from callboard.mcp_server._elicited_answers import form_of
from callboard.messages import CallboardError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from callboard.actors.client import TaskHandle, TaskReport
    from callboard.mcp_server._caller_tasks import CallerTasks
    from callboard.mcp_server._callers import Caller
    from callboard.mcp_server._elicited_answers import ElicitedAnswers

TASKS = "io.modelcontextprotocol/tasks"
_VERSIONS = frozenset({"2026-07-28"})
_POLL_MILLISECONDS = 1_000
_MOST_TIMES = 1_000


class OneTaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(OneTaskParams):
    """The parameters of `tasks/update`: answers to forms."""

    input_responses: dict[str, ElicitResult]


class _Times(NamedTuple):
    """The moments of a task's first and last events."""

    seq: int
    first: float
    last: float


class TasksExtension(Extension):
    """Serves one caller's tasks to clients that name the extension.

    A call of `run_task` that is not over in its `wait_seconds` gets a handle in place of a report.
    """

    identifier = TASKS

    def __init__(self, tasks: CallerTasks, caller: Caller, answers: ElicitedAnswers) -> None:
        self._tasks = tasks
        self._caller = caller
        self._answers = answers
        self._known_times: dict[str, _Times] = {}
        """The times of the tasks that were asked last: a client that polls has each event read once."""
        self._looking = threading.Lock()

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods of the extension."""
        return (
            MethodBinding("tasks/get", OneTaskParams, self._get, _VERSIONS),
            MethodBinding("tasks/update", TaskUpdateParams, self._update, _VERSIONS),
            MethodBinding("tasks/cancel", OneTaskParams, self._cancel, _VERSIONS),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Return a handle in place of an unfinished task's report."""
        result = await call_next(ctx)
        if params.name != "run_task" or not _is_named(ctx) or not isinstance(result, CallToolResult):
            return result
        report = result.structured_content
        if report is None or report["outcome"] is not None:
            return result
        handle = await self._find(report["task_id"])
        return {**await self._state(handle, ctx), "resultType": "task"}

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: OneTaskParams) -> HandlerResult:
        require_client_extension(ctx, TASKS)
        handle = await self._find(params.task_id)
        state = await self._state(handle, ctx)
        if handle.done() and state["status"] == "completed":
            state["result"] = _call_result(await self._tasks.report(handle))
        return state

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: TaskUpdateParams) -> HandlerResult:
        require_client_extension(ctx, TASKS)
        handle = await self._find(params.task_id)
        for request, _ in await self._forms(handle, ctx):
            response = params.input_responses.get(request.id)
            if response is not None:
                await self._answers.take(self._caller, handle, request, response)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: ServerRequestContext[Any, Any], params: OneTaskParams) -> HandlerResult:
        require_client_extension(ctx, TASKS)
        handle = await self._find(params.task_id)
        await self._tasks.cancel(handle, f"cancelled by the caller {self._caller.name}")
        return {"resultType": "complete"}

    async def _find(self, task_id: str) -> TaskHandle:
        try:
            return await self._tasks.find(self._caller, task_id)
        except CallboardError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None

    async def _forms(self, handle: TaskHandle, ctx: ServerRequestContext[Any, Any]) -> list[Any]:
        return await self._answers.for_forms(self._caller, handle, ctx.session.client_capabilities)

    async def _state(self, handle: TaskHandle, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """Return the fields of a task that all results share.

        A task that failed has a result, too: a report with its outcome.
        """
        forms = await self._forms(handle, ctx)
        report = await self._tasks.report(handle)
        status = "working"
        if report.outcome is not None:
            status = "cancelled" if report.status == "cancelled" else "completed"
        elif forms:
            status = "input_required"
        created, updated = await asyncio.to_thread(self._times, handle)
        state: dict[str, Any] = {
            "resultType": "complete",
            "taskId": handle.task_id,
            "status": status,
            "statusMessage": report.summary,
            "createdAt": created,
            "lastUpdatedAt": updated,
            "ttlMs": None,
            "pollIntervalMs": _POLL_MILLISECONDS,
        }
        if status == "input_required":
            state["inputRequests"] = {
                request.id: form_of(request, text).model_dump(by_alias=True, mode="json", exclude_none=True)
                for request, text in forms
            }
        return state

    def _times(self, handle: TaskHandle) -> tuple[str, str]:
        """Return the moments of submission and last change, in ISO 8601."""
        with self._looking:
            known = self._known_times.pop(handle.task_id, None)
            with JournalReader.open(self._tasks.journal, pictures=False) as reader:
                events = list(reader.events(handle.task_id, 0 if known is None else known.seq))
            if events:
                first = events[0].at if known is None else known.first
                known = _Times(events[-1].seq, first, events[-1].at)
            now = dt.datetime.now(dt.UTC).timestamp()
            known = known or _Times(0, now, now)
            self._known_times[handle.task_id] = known  # at the end: it was asked last
            if len(self._known_times) > _MOST_TIMES:
                self._known_times.pop(next(iter(self._known_times)))
        first_moment, last_moment = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (known.first, known.last))
        return first_moment.isoformat(), last_moment.isoformat()


def _is_named(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    is_new = ctx.protocol_version in _VERSIONS
    return is_new and capabilities is not None and TASKS in (capabilities.extensions or {})


def _call_result(report: TaskReport) -> dict[str, Any]:
    content = report.model_dump(mode="json")
    result = CallToolResult(
        content=[TextContent(type="text", text=report.model_dump_json(indent=2))], structured_content=content
    )
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
