"""The Tasks extension, with a client that names it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from mcp import MCPError
from mcp.client.extension import ClientExtension, ResultClaim
from mcp_types import CallToolResult, ElicitResult, Request, RequestParams, Result

from callboard.mcp_server._tasks_extension import TASKS
from support import ASK, FINISH, append

RUN = {"request": "write it", "target": "memo:one"}
PERSON = {"ann": {"elicitation": "person"}, "bob": {}}
RULES = [{"verdict": "approve", "tool": "append"}]


class Handle(Result):
    """A handle in place of the result of a call."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str = ""
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None


class State(Result):
    """The result of a method of the extension."""

    task_id: str = ""
    status: str = ""
    status_message: str = ""
    ttl_ms: int | None = None
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


class Params(RequestParams):
    """The parameters of a method of the extension."""

    task_id: str
    input_responses: dict[str, Any] | None = None


class Poll(ClientExtension):
    """Names the extension, and keeps handles."""

    identifier = TASKS

    def claims(self):
        """Claim handles."""

        async def resolve(handle, _context):
            return CallToolResult(content=[], structured_content={"handle": handle.task_id, "status": handle.status})

        return [ResultClaim(result_type="task", model=Handle, resolve=resolve)]


async def ask(client, method, **params):
    """Call a method of the extension."""

    class Asked(Request[Params, str]):
        """A request of the extension."""

        method: str
        params: Params

    return await client.session.send_request(Asked(method=method, params=Params(**params)), State)


async def begun(client, **arguments):
    """Start a task, and give the handle of it."""
    result = await client.session.call_tool("run_task", {**RUN, **arguments}, allow_claimed=True)
    assert isinstance(result, Handle), result
    return result


async def poll(client, task_id, status):
    """Poll until a task has a status."""
    while (state := await ask(client, "tasks/get", task_id=task_id)).status != status:
        assert state.status == "working"
    return state


async def test_a_long_call_becomes_a_handle_that_is_polled(desk):
    opened = desk(app=[ASK, append("x", "FINISH")])
    async with opened.client(extensions=[Poll()]) as client:
        handle = await begun(client, wait_seconds=50)
        assert (handle.status, handle.ttl_ms) == ("working", None)
        assert handle.status_message.startswith("waits for your answer")
        (question,) = opened.supervisor.status().questions
        opened.supervisor.handle(handle.task_id).answer(question.id, "this")
        state = await poll(client, handle.task_id, "completed")
    assert state.result["structuredContent"]["outcome"] == "finished"


async def test_a_short_call_has_its_report(desk):
    async with desk(app=[append("x", "FINISH")]).client(extensions=[Poll()]) as client:
        result = await client.call_tool("run_task", RUN)
    assert result.structured_content["outcome"] == "finished"


async def test_a_cancelled_task_is_cancelled(desk):
    async with desk(app=[ASK]).client(extensions=[Poll()]) as client:
        handle = await begun(client, wait_seconds=0)
        await ask(client, "tasks/cancel", task_id=handle.task_id)
        assert (await poll(client, handle.task_id, "cancelled")).result is None


async def test_a_form_is_an_input_request_of_the_task(desk):
    async def by_hand(_context, _form):
        raise AssertionError

    opened = desk(PERSON, app=[append("x", "FINISH")], policy=RULES)
    async with opened.client("ann", extensions=[Poll()], elicitation_callback=by_hand) as client:
        handle = await begun(client, wait_seconds=0)
        state = await poll(client, handle.task_id, "input_required")
        ((request_id, form),) = state.input_requests.items()
        assert form["method"] == "elicitation/create"
        assert "append on memo:one" in form["params"]["message"]
        answer = ElicitResult(action="accept", content={"decision": "approve"})
        await ask(client, "tasks/update", task_id=handle.task_id, input_responses={request_id: answer})
        assert (await poll(client, handle.task_id, "completed")).result["structuredContent"]["actions"] == 1


async def test_without_the_right_an_update_approves_nothing(desk):
    opened = desk(PERSON, app=[append("x", "FINISH")], policy=RULES)
    async with opened.client("bob", extensions=[Poll()]) as client:
        handle = await begun(client, wait_seconds=50)
        (approval,) = opened.supervisor.status().approvals
        answer = ElicitResult(action="accept", content={"decision": "approve"})
        await ask(client, "tasks/update", task_id=handle.task_id, input_responses={approval.id: answer})
        assert [request.id for request in opened.supervisor.status().approvals] == [approval.id]
        assert (await ask(client, "tasks/get", task_id=handle.task_id)).status == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_task_of_another_caller_is_unknown_to_the_extension(desk, method):
    opened = desk(PERSON, app=[ASK, FINISH])
    async with (
        opened.client("ann", extensions=[Poll()]) as ann,
        opened.client("bob", extensions=[Poll()]) as bob,
    ):
        handle = await begun(ann, wait_seconds=0)
        with pytest.raises(MCPError, match="there is no task"):
            await ask(bob, method, task_id=handle.task_id, input_responses={})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_does_not_name_it_has_the_tools_alone(desk, mode):
    async with desk(app=[ASK, FINISH]).client(mode=mode) as client:
        report = (await client.call_tool("run_task", {**RUN, "wait_seconds": 0})).structured_content
        with pytest.raises(MCPError):
            await ask(client, "tasks/get", task_id=report["task_id"])
