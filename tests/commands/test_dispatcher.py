"""The dispatcher: in order, in time, and honest about the outcome of each command."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from callboard.actors.commands import Toolbox
from callboard.messages import AgentKind, Effect, EventName, ResultStatus
from callboard.surfaces import ToolError, committing, tool
from callboard.testing import MemoryServer
from support import HELD, PATIENCE

SUCCESS, FAILURE = ResultStatus.SUCCESS, ResultStatus.FAILURE


class Tricky(MemoryServer):
    """Tools that answer, fail and hang in every way."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.let_go, self.returned = threading.Event(), threading.Event(), threading.Event()
        self.calls = []
        self.refused = None

    @tool(effect=Effect.ONCE)
    def note(self, target: str, word: str) -> str:
        """Take note."""
        self.calls.append(word)
        return word

    @tool(effect=Effect.ONCE)
    def raises(self, target: str, how: str) -> str:
        """Raise something."""
        errors = {
            "tool": ToolError("the drawer is stuck"),
            "value": ValueError("three is too many"),
            "empty": ValueError(),
            "silent": ToolError(""),
            "timeout": TimeoutError("the disk sleeps"),
            "exit": SystemExit(1),
            "next": StopIteration(),
        }
        raise errors[how]

    @tool(effect=Effect.ONCE)
    async def leaves(self, target: str) -> str:
        """Try to leave the process, on the event loop."""
        raise SystemExit

    @tool(effect=Effect.ONCE)
    def says(self, target: str, success: bool) -> dict[str, object]:
        """Say how it went."""
        return {"success": success, "error": "" if success else "no paper"}

    @tool(effect=Effect.ONCE)
    def maybe_says(self, target: str) -> dict[str, object] | None:
        """Say how it went, or nothing: a result that the protocol wraps."""
        return {"success": False, "message": "no ink"}

    @tool(effect=Effect.ONCE)
    def says_in_text(self, target: str) -> CallToolResult:
        """Say how it went, in text alone."""
        text = json.dumps({"success": False, "error": "no pens"})
        return CallToolResult(content=[TextContent(type="text", text=text)])

    @tool(effect=Effect.ONCE)
    def says_no_number(self, target: str) -> dict[str, float]:
        """Answer with a number that JSON does not have."""
        return {"mean": float("nan")}

    @tool(effect=Effect.ONCE)
    def says_other(self, target: str) -> dict[str, int]:
        """Answer with another type than the declared one."""
        return {"mean": "much"}  # type: ignore[dict-item]

    @tool(effect=Effect.READ)
    def says_no_number_read(self, target: str) -> dict[str, float]:
        """Read a number that JSON does not have."""
        return {"mean": float("inf")}

    @tool(effect=Effect.ONCE)
    def says_deep(self, target: str) -> dict[str, Any]:
        """Answer with more levels than can be read again."""
        return {"deep": functools.reduce(lambda inner, _: [inner], range(240), 1)}

    @tool(effect=Effect.ONCE)
    def is_error(self, target: str) -> CallToolResult:
        """Answer with an error."""
        return CallToolResult(content=[TextContent(type="text", text="the shelf is locked")], is_error=True)

    @tool(effect=Effect.ONCE)
    def saves(self, target: str, path: str) -> str:
        """Write a file."""
        with committing(Path(path)):
            self.calls.append(path)
        return path

    @tool(effect=Effect.ONCE)
    def saves_and_fails(self, target: str, path: str) -> str:
        """Write a file, then fail."""
        with committing(Path(path)):
            self.calls.append(path)
        message = "saved, but not closed"
        raise ToolError(message)

    @tool(effect=Effect.ONCE)
    def saves_late(self, target: str, path: str) -> str:
        """Block, then try to write."""
        self.begun.set()
        assert self.let_go.wait(HELD)
        try:
            with committing(Path(path)):
                self.calls.append(path)
        except Exception as error:
            self.refused = error
            raise
        finally:
            self.returned.set()
        return path

    @tool(effect=Effect.ONCE)
    async def waits(self, target: str) -> str:
        """Wait for ever, on the event loop."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.returned.set()
        return ""

    @tool(effect=Effect.READ)
    async def where(self, target: str) -> str:
        """Say on which thread it runs."""
        return threading.current_thread().name

    @tool(effect=Effect.READ)
    def where_else(self, target: str) -> str:
        """Say on which thread it runs."""
        return threading.current_thread().name


@pytest.fixture
def tricky():
    surface = Tricky()
    yield surface
    surface.let_go.set()


@pytest.fixture
def run(tricky, lanes, dispatcher, lease, window):
    tools = Toolbox([tricky], (), lanes).tools(AgentKind.APP, window)

    async def run(*commands):
        return tuple([await dispatcher.run(command, tools, lease) for command in commands])

    return run


async def test_commands_run_in_order_and_return_the_answers_of_their_tools(run, command, tricky):
    results = await run(*(command("note", word=word) for word in "abc"))
    assert [(result.status, result.value) for result in results] == [(SUCCESS, "a"), (SUCCESS, "b"), (SUCCESS, "c")]
    assert tricky.calls == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("tool", "the drawer is stuck"),
        ("value", "ValueError: three is too many"),
        ("timeout", "TimeoutError: the disk sleeps"),
    ],
)
async def test_exception_of_a_tool_is_its_failure_with_its_own_message(run, command, how, error):
    (result,) = await run(command("raises", how=how))
    assert (result.status, result.error, result.value) == (FAILURE, error, None)


@pytest.mark.parametrize("how", ["empty", "silent", "exit", "next"])
async def test_whatever_a_tool_raises_it_failed_at_once_and_not_in_silence(run, command, how):
    (result,) = await run(command("raises", 1.0, how=how))
    assert result.status is FAILURE
    assert result.error
    assert "took longer" not in result.error


async def test_a_tool_on_the_event_loop_that_wants_to_leave_the_process_failed(run, command):
    (result,) = await run(command("leaves"))
    assert result.status is FAILURE
    assert "SystemExit" in result.error


async def test_an_unknown_tool_is_a_failure_that_names_the_known_ones(run, command):
    (result,) = await run(command("reed"))
    assert result.status is FAILURE
    assert result.error.startswith("there is no tool 'reed'; there are: append, is_error, ")


async def test_arguments_that_do_not_fit_are_a_failure(run, command):
    (result,) = await run(command("note", words="a"))
    assert result.status is FAILURE
    assert "word" in result.error


@pytest.mark.parametrize(
    ("name", "error"),
    [("says", "no paper"), ("maybe_says", "no ink"), ("says_in_text", "no pens"), ("is_error", "the shelf is locked")],
)
async def test_tool_that_returns_success_false_failed(run, command, name, error):
    arguments = {"success": False} if name == "says" else {}
    (result,) = await run(command(name, **arguments))
    assert (result.status, result.error) == (FAILURE, error)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("says_deep", "its answer can't be serialized: Invalid JSON: recursion limit exceeded"),
        ("says_no_number", "its answer can't be serialized: Input should be a finite number"),
        ("says_other", "its answer is not of the declared type: 1 validation error"),
    ],
)
async def test_a_call_with_an_unreadable_answer_is_in_doubt(run, command, name, problem):
    (result,) = await run(command(name))
    assert (result.status, result.value) == (FAILURE, None)
    assert result.error.startswith(problem)
    assert result.error.endswith(": whether it was done is in doubt")
    assert result.in_doubt
    assert result.changed  # it ran


async def test_a_reading_call_with_an_unreadable_answer_is_in_no_doubt(run, command):
    (result,) = await run(command("says_no_number_read"))
    assert (result.status, result.in_doubt) == (FAILURE, False)
    assert result.error.endswith("; it only reads")


async def test_tool_that_returns_success_true_succeeded(run, command):
    (result,) = await run(command("says", success=True))
    assert (result.status, result.value) == (SUCCESS, {"success": True, "error": ""})


async def test_a_file_that_was_written_is_an_artifact_of_its_command_alone(run, command):
    results = await run(command("saves", path="/w/a.docx"), command("note", word="a"), command("saves", path="/w/b"))
    assert [result.artifacts for result in results] == [("/w/a.docx",), (), ("/w/b",)]


async def test_a_failed_command_still_names_the_files_it_wrote(run, command):
    (result,) = await run(command("saves_and_fails", path="/w/a.docx"))
    assert (result.status, result.artifacts) == (FAILURE, ("/w/a.docx",))


async def test_a_command_under_a_void_lease_changes_nothing(run, command, lease, tricky):
    lease.void()
    (result,) = await run(command("saves", path="/w/a.docx"))
    assert result.status is FAILURE
    assert "nothing was changed" in result.error
    assert (tricky.calls, result.artifacts) == ([], ())


async def test_a_blocking_tool_times_out_and_its_late_commit_is_refused(run, command, tricky, lease):
    (result,) = await run(command("saves_late", 0.05, path="/w/a.docx"))
    assert tricky.begun.is_set()
    assert not tricky.returned.is_set()
    assert result.status is FAILURE
    assert result.error == "took longer than 0.05 s; whether it was done, or still will be, is in doubt"
    assert result.in_doubt
    tricky.let_go.set()
    assert await asyncio.to_thread(tricky.returned.wait, PATIENCE)
    assert "nothing was changed" in str(tricky.refused)
    assert tricky.calls == []
    assert lease.valid


async def test_a_tool_on_the_event_loop_is_cancelled_at_its_timeout(run, command, tricky):
    (result,) = await run(command("waits", 0.01))
    assert result.status is FAILURE
    assert "took longer" in result.error
    assert tricky.returned.is_set()


async def test_cancel_reaches_the_tool_and_yields_no_result(run, command, tricky):
    running = asyncio.create_task(run(command("waits"), command("note", word="a")))
    assert await asyncio.to_thread(tricky.begun.wait, PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tricky.returned.is_set()
    assert tricky.calls == []


async def test_coroutine_tools_run_on_the_loop_and_others_on_their_targets_lane(run, command):
    results = await run(command("where"), command("where_else"))
    assert [result.value for result in results] == [
        threading.current_thread().name,
        "callboard-lane-memory:memo:one",
    ]


async def test_each_command_is_published_to_the_event_stream(run, command, stream):
    feed = stream.open()
    await run(command("saves", path="/w/a"), command("raises", how="tool"), command("note", word="b"))
    events = [feed.take() for _ in range(3)]
    assert {event.name for event in events} == {EventName.COMMAND_ENDED}
    assert [(event.data["tool"], event.data["status"]) for event in events] == [
        ("saves", "success"),
        ("raises", "failure"),
        ("note", "success"),
    ]
    assert events[0].data["artifacts"] == ["/w/a"]
    assert events[1].data["error"] == "the drawer is stuck"
    assert {(event.task_id, event.run_id, event.agent) for event in events} == {("task-1", "task-1~1", "app/memo/one")}
