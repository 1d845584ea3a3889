"""Approvals and doubts asked by elicitation, with forms for a person."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from callboard.actors.client import NOTICE, TaskReport, kind_of_request, shown_whole
from callboard.mcp_server._caller_tasks import CallerTasks, name_of
from callboard.messages import AnswerRefusedError, ApprovalRequest, NotWaitingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.mcpserver import Context
    from mcp_types import ClientCapabilities

    from callboard.actors.client import TaskHandle
    from callboard.mcp_server._caller_tasks import Progress
    from callboard.mcp_server._callers import Caller
    from callboard.messages import Question

_IN_RESULTS = "2026-07-28"
"""The first version of MCP in which a form is a part of a result, and its answer of the next call."""
_APPROVE, _REJECT = "approve", "reject"
_REASON_CHARACTERS = 500
_MOST_REFUSED = 10_000
"""The most refused requests that are remembered; then the oldest may be asked again."""


class ElicitedAnswers:
    """Asks a person by forms of the caller's client.

    It does so only if the caller's section says `elicitation: person`. A request that is too long to be shown whole is
    left to the console.
    """

    def __init__(self, tasks: CallerTasks) -> None:
        self._tasks = tasks
        self._left: dict[str, None] = {}
        """The requests that a person left open; they are not asked again here."""

    async def resumed(self, caller: Caller, ctx: Context[Any, Any]) -> TaskHandle | None:
        """Take the answers that come with a repeated call.

        Returns:
            The task that they are about; None for a first call.

        Raises:
            UnknownTaskError: If there is no such task, or it is another caller's.
        """
        if ctx.request_state is None or caller.rights.elicitation != "person":
            return None
        state = json.loads(ctx.request_state)  # the library has sealed it: it is our own
        handle = await self._tasks.find(caller, state["task"])
        responses = ctx.input_responses or {}
        for request in await self._tasks.requests(handle):
            response = responses.get(request.id)
            if request.id in state["asked"] and isinstance(response, ElicitResult):
                await self.take(caller, handle, request, response)
        return handle

    async def waited(
        self, caller: Caller, handle: TaskHandle, seconds: float, progress: Progress, ctx: Context[Any, Any]
    ) -> TaskReport | InputRequiredResult:
        """Wait for a task, ask what is for a person, and report."""
        end = time.monotonic() + seconds
        is_first = True
        while is_first or time.monotonic() < end:
            asked = await self.for_forms(caller, handle, ctx.client_capabilities)
            if not asked:
                if not is_first and not await self._is_worth_waiting(handle):
                    break
                await self._tasks.wait(handle, max(0.0, end - time.monotonic()), progress)
                asked = await self.for_forms(caller, handle, ctx.client_capabilities)
            if not asked:
                break
            if is_version_at_least(ctx.protocol_version or "", _IN_RESULTS):
                return _forms(handle, asked)
            for request, text in asked:
                response = await self._shown(handle, request, text, ctx)
                if response is not None:
                    await self.take(caller, handle, request, response)
            is_first = False
        return await self._tasks.report(handle)

    async def _shown(
        self, handle: TaskHandle, request: ApprovalRequest | Question, text: str, ctx: Context[Any, Any]
    ) -> ElicitResult | None:
        """Have a form shown; return its answer.

        None if the request was answered elsewhere meanwhile, or the client failed to show the form.
        """
        sent_form = ctx.request_context.session.send_request(
            form_of(request, text),
            ElicitResult,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_context.request_id),
        )
        form = asyncio.ensure_future(sent_form)
        closed = asyncio.ensure_future(self._tasks.wait_closed(handle, request.id))
        try:
            await asyncio.wait({form, closed}, return_when=asyncio.FIRST_COMPLETED)
            return form.result() if form.done() else None
        except (MCPError, ValidationError):
            self._leave(request.id)
            return None
        finally:
            form.cancel()
            closed.cancel()
            await asyncio.gather(form, closed, return_exceptions=True)

    async def _is_worth_waiting(self, handle: TaskHandle) -> bool:
        return not handle.done() and not await self._tasks.requests(handle)

    async def for_forms(
        self, caller: Caller, handle: TaskHandle, capabilities: ClientCapabilities | None
    ) -> list[tuple[ApprovalRequest | Question, str]]:
        """Return the open requests that a form can show, with their texts."""
        can_show = capabilities is not None and capabilities.elicitation is not None
        if caller.rights.elicitation != "person" or not can_show or handle.done():
            return []
        return [
            (request, text)
            for request in await self._tasks.requests(handle)
            if kind_of_request(request) in {"approval", "doubt"} and request.id not in self._left
            if (text := shown_whole(request)) is not None
        ]

    async def take(
        self, caller: Caller, handle: TaskHandle, request: ApprovalRequest | Question, response: ElicitResult
    ) -> None:
        """Take the answer of a form.

        To decline or to close it is to refuse.
        """
        by = f"{name_of(caller)}, by a form"
        content = response.content or {} if response.action == "accept" else {}
        try:
            if isinstance(request, ApprovalRequest):
                if content.get("decision") == _APPROVE:
                    await asyncio.to_thread(handle.approve, request.id, by=by)
                else:
                    reason = str(content.get("reason") or f"{response.action} of the form")[:_REASON_CHARACTERS]
                    await asyncio.to_thread(handle.reject, request.id, reason, by=by)
            elif content.get("answer"):
                await asyncio.to_thread(handle.answer, request.id, str(content["answer"]), by=by)
            else:
                self._leave(request.id)
        except AnswerRefusedError:
            self._leave(request.id)
        except NotWaitingError:
            return  # it was answered elsewhere meanwhile

    def _leave(self, request_id: str) -> None:
        self._left[request_id] = None
        if len(self._left) > _MOST_REFUSED:
            self._left.pop(next(iter(self._left)))


def _forms(handle: TaskHandle, asked: Sequence[tuple[ApprovalRequest | Question, str]]) -> InputRequiredResult:
    state = {"task": handle.task_id, "asked": [request.id for request, _ in asked]}
    return InputRequiredResult(
        input_requests={request.id: form_of(request, text) for request, text in asked},
        request_state=json.dumps(state),
    )


def form_of(request: ApprovalRequest | Question, text: str) -> ElicitRequest:
    """Make the form of a request, with all that would be done."""
    is_approval = isinstance(request, ApprovalRequest)
    head = "Callboard asks for an approval" if is_approval else "Callboard can't tell whether an action was done"
    if isinstance(request, ApprovalRequest):
        properties: dict[str, Any] = {
            "decision": {"type": "string", "enum": [_REJECT, _APPROVE], "title": "Decision"},
            "reason": {"type": "string", "maxLength": _REASON_CHARACTERS, "title": "Reason, if it is rejected"},
        }
        required = ["decision"]
    else:
        choices = list(request.questions[0].choices)
        properties = {"answer": {"type": "string", "title": "Answer"} | ({"enum": choices} if choices else {})}
        required = ["answer"]
    params = ElicitRequestFormParams(
        message=f"{head} of the task {request.task_id} ({NOTICE}):\n{text}",
        requested_schema={"type": "object", "properties": properties, "required": required},
    )
    return ElicitRequest(params=params)
