"""A surface may state the effect of repeating each call: the rules, the journal and the result go by that."""

from __future__ import annotations

import asyncio

import pytest

from callboard import EventName, Server, ToolError, tool
from callboard.journal import JournalReader
from callboard.messages import Effect, Intent, Observation, Target, TargetKind
from support import FINISH, PATIENCE, call, lone


class Shell(Server):
    """A shell in which `ls` only reads, and whatever it can't tell must not be repeated."""

    name = "shell"

    def targets(self):
        return (Target(id="box", name="box", kind=TargetKind.WINDOW, address="app/shell/box", server=self.name),)

    def observe(self, target, look):
        return Observation(text="$", fingerprint="$")

    def effect(self, target, tool, arguments):
        if arguments.get("command") == "broken":
            msg = "that can't be parsed"
            raise ToolError(msg)
        return Effect.READ if arguments.get("command") == "ls" else None

    @tool(effect=Effect.ONCE)
    def run(self, command: str) -> str:
        """Run a command."""
        return command


def intents(journal, task):
    with JournalReader.open(journal) as reader:
        return [row.message.arguments for row in reader.rows(task) if isinstance(row.message, Intent)]


@pytest.mark.parametrize(("command", "kept"), [("ls", []), ("rm x", [{"command": "rm x"}])])
def test_a_call_that_only_reads_needs_no_intent(start, tmp_path, command, kept):
    path = tmp_path / "journal.db"
    supervisor = start(app=[call("run", "FINISH", command=command)], servers=[Shell()], journal={"path": path})
    result = supervisor.submit(lone("box", id="t")).result(PATIENCE)
    assert result.ok, result.causes
    assert bool(result.subtasks[0].actions) is bool(kept)
    supervisor.stop()
    assert intents(path, "t") == kept


def test_rules_about_effects_see_the_effect_of_the_call(start):
    rules = [{"effects": ["once"], "verdict": "deny", "reason": "read only"}]
    answers = [call("run", command="ls"), call("run", command="rm x"), FINISH]
    results = []

    def app(request):
        results.extend((done.status.value, done.error) for record in request.memory[-1:] for done in record.results)
        return answers[request.call - 1]

    supervisor = start(app=app, servers=[Shell()], policy=rules)
    assert supervisor.submit(lone("box")).result(PATIENCE).ok
    assert results == [("success", ""), ("failure", "denied: read only")]


def test_a_call_whose_effect_the_surface_cannot_tell_is_refused(start):
    supervisor = start(app=[call("run", command="broken"), {"Status": "FAIL"}], servers=[Shell()])
    result = supervisor.submit(lone("box")).result(PATIENCE)
    assert not result.ok
    assert result.subtasks[0].actions == 0


class Slow(Shell):
    """A shell with a tool that has a time limit of its own."""

    @tool(effect=Effect.ONCE, seconds=0.05)
    async def wait(self) -> None:
        """Wait for an hour."""
        await asyncio.sleep(3600)


def test_a_tool_may_have_a_time_limit_of_its_own(start):
    supervisor = start(app=[call("wait"), {"Status": "FAIL"}], servers=[Slow()])
    handle = supervisor.submit(lone("box"))
    handle.result(PATIENCE)
    ended = next(event for event in handle.events() if event.name is EventName.COMMAND_ENDED)
    assert "took longer than 0.05 s" in ended.data["error"]
