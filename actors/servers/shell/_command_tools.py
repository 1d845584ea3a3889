"""The tools that run commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.actors.runtime import committing, current_call
from callboard.actors.servers._server import InDoubtError, ToolError, tool
from callboard.actors.servers.shell._held import Stage
from callboard.actors.servers.shell._privileged import privileged
from callboard.actors.servers.shell._shell import NO_NULL
from callboard.messages import AgentKind, Effect, Probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from callboard.actors.servers.shell._held import Ended, Output
    from callboard.actors.servers.shell._shell import Shell
    from callboard.messages import Intent

LINUX = (AgentKind.LINUX,)
LONGEST = 3_600.0
"""The longest that a command may take, in seconds."""
SHOWN = 4_000
"""The characters of the beginning and of the end of an output that are shown."""
_STOP_SECONDS = 5.0
_PROMPT = re.compile(r"(password|passphrase|passwort|\[y/n\]|\(yes/no[^)]*\)|continue\?)[^\n]*$", re.IGNORECASE)

ShellName = Annotated[str, Field(description="The shell.")]
Command = Annotated[str, Field(min_length=1, max_length=100_000, pattern=NO_NULL, description="For bash.")]
Handle = Annotated[str, Field(description="What `start` has answered.")]
Answer = dict[str, Any]


class CommandTools:
    """Run commands, and follow those in the background.

    Args:
        shell: Gives a shell by its name.
    """

    def __init__(self, shell: Callable[[str], Shell]) -> None:
        self._shell = shell

    @tool(effect=Effect.ONCE, agents=LINUX, seconds=LONGEST + 60)
    async def run(
        self,
        shell: ShellName,
        command: Command,
        *,
        cwd: Annotated[str, Field(description="Where it starts; empty: where the last command has led to.")] = "",
        seconds: Annotated[float, Field(gt=0, le=LONGEST, description="The longest that it may take.")] = 60.0,
        read_json: Annotated[bool, Field(description="Whether it prints JSON, which is answered as `value`.")] = False,
    ) -> Answer:
        """Run a command and wait for its end. Nothing that it has started runs on, and nobody can type into it."""
        _check_rights(command)
        here, call = self._shell(shell), current_call()
        id_ = call.id or uuid.uuid4().hex  # a server of its own has no calls with ids
        held = here.held(id_)
        try:
            await here.off(lambda: self._begin(here, id_, command, cwd, seconds))
            ended = await held.ended()
        except asyncio.CancelledError:
            here.cancel(held)
            raise
        told = f"{command}\n{ended.code}\n{ended.out.tail!r}{ended.err.tail!r}".encode()
        await here.off(lambda: here.took(held, told))
        answer = _answer(ended, seconds)
        return {**answer, "value": _json_of(ended.out)} if read_json and not ended.code else answer

    @tool(effect=Effect.ONCE, agents=LINUX)
    async def start(
        self,
        shell: ShellName,
        command: Command,
        *,
        cwd: Annotated[str, Field(description="Where it starts; empty: where the last command has led to.")] = "",
        seconds: Annotated[float, Field(gt=0, le=86_400, description="The longest that it may run.")] = 3_600.0,
    ) -> Answer:
        """Start a command in the background, and give a handle for `read_output` and `stop`."""
        _check_rights(command)
        here, call = self._shell(shell), current_call()

        def begin() -> str:
            jobs = here.state.jobs
            handle = next((handle for handle, id_ in jobs.items() if call.id and id_ == call.id), "")
            if handle:
                self._begin(here, jobs[handle], command, cwd, seconds)
                return handle
            handle = f"job-{max((int(each[4:]) for each in jobs), default=0) + 1}"
            jobs[handle] = call.id or uuid.uuid4().hex
            here.save()
            try:
                self._begin(here, jobs[handle], command, cwd, seconds)
            except InDoubtError:
                raise
            except ToolError:  # there will be none
                del jobs[handle]
                here.save()
                raise
            return handle

        return {"handle": await here.off(begin)}

    @tool(effect=Effect.READ, agents=LINUX)
    async def read_output(
        self,
        shell: ShellName,
        handle: Handle,
        *,
        seconds: Annotated[float, Field(ge=0, le=50, description="How long to wait for its end.")] = 0.0,
    ) -> Answer:
        """Give what a background command has printed so far, and whether it still runs."""
        here = self._shell(shell)
        held = await here.off(lambda: here.job(handle))
        if seconds or await here.off(held.stage) in {Stage.ENDED, Stage.LOST}:
            with contextlib.suppress(TimeoutError):
                return {
                    "running": False,
                    **_answer(await asyncio.wait_for(held.ended(), seconds or _STOP_SECONDS), None),
                }
        out, err = await here.off(held.output)
        return {"running": True, "stdout": out.shown(SHOWN), "stderr": err.shown(SHOWN)}

    @tool(effect=Effect.IDEMPOTENT, agents=LINUX)
    async def stop(self, shell: ShellName, handle: Handle) -> Answer:
        """End a background command, with everything that it has started."""
        here = self._shell(shell)

        def cancel() -> Stage:
            held = here.job(handle)
            with committing():
                held.cancel()
            return held.stage()

        if await here.off(cancel) is Stage.ABSENT:
            return {"running": False, "stopped": "it was stopped before it began", "stdout": "", "stderr": ""}
        return await self.read_output(shell, handle, seconds=_STOP_SECONDS)

    def probe(self, shell: Shell, intent: Intent) -> Probe | None:
        """Say whether a command was begun before a crash; one that was is followed to its end, or has ended."""
        if intent.tool not in {"run", "start"}:
            return None
        held = shell.held(intent.call_id)
        if held.stage() is Stage.ABSENT and held.call_off():
            return Probe.NOT_DONE
        return Probe.UNKNOWN if held.stage() is Stage.LOST else Probe.BEGUN

    def _begin(self, here: Shell, call: str, command: str, cwd: str, seconds: float) -> None:
        where = here.inside(cwd)
        if here.isolated and not here.is_inside(where):
            msg = f"{where} is out of the workspace {here.workspace}, and commands see nothing else of it"
            raise ToolError(msg)
        with committing():
            here.begin(call, command, where, seconds)


def _check_rights(command: str) -> None:
    """Refuse a command that would run another one with the rights of another user.

    Raises:
        ToolError: If it is one.
    """
    name = privileged(command)
    if name:
        msg = f"{name!r} is never run: commands have the rights of this user alone. Nothing was done"
        raise ToolError(msg)


def _answer(ended: Ended, seconds: float | None) -> Answer:
    """Say how a command has ended.

    Args:
        ended: What is known of its end.
        seconds: How long it was waited for; None for one in the background.

    Raises:
        ToolError: If it could not be started, or was ended while it was waited for.
    """
    if ended.error:
        msg = f"bash can't be started: {ended.error}"
        raise ToolError(msg)
    answer: Answer = {"exit_code": ended.code, **_shown("stdout", ended.out), **_shown("stderr", ended.err)}
    if ended.left:
        answer["ended"] = f"{ended.left} processes that it had left behind were ended; use `start` for what is to go on"
    asked = _PROMPT.search(ended.out.tail[-200:].decode(errors="replace").rstrip() or "") or _PROMPT.search(
        ended.err.tail[-200:].decode(errors="replace").rstrip()
    )
    if asked and (ended.why or ended.code):
        answer["note"] = f"it seems to have asked {asked[0]!r}: nobody can answer, so give what it needs as options"
    if ended.why and seconds is None:  # that is no failure of who reads its output
        answer["stopped"] = f"it was {ended.why}, with everything that it had started"
    elif ended.why:
        limit = f" after {seconds:g} s" if ended.why == "timed out" else ""
        hint = f"; {answer['note']}" if "note" in answer else ""
        msg = f"it was {ended.why}{limit}, with everything that it had started{hint}. It printed: {answer['stdout']}"
        raise ToolError(msg + answer["stderr"])
    return answer


def _shown(name: str, output: Output) -> Answer:
    """Show an output; what is left out of it is kept in a file."""
    if output.total <= 2 * SHOWN:
        return {name: output.shown(SHOWN)}
    return {name: output.shown(SHOWN), f"{name}_bytes": output.total, f"{name}_file": str(_kept(output))}


def _json_of(output: Output) -> JsonValue:
    """Read what was printed as JSON.

    Raises:
        ToolError: If it is none; the command was run.
    """
    try:
        found: JsonValue = json.loads(output.path.read_bytes())
    except (ValueError, OSError) as error:
        msg = f"the command was run, and what it printed is no JSON: {error}"
        raise ToolError(msg) from error
    return found


def _kept(output: Output) -> object:
    try:
        return current_call().artifact(output.path.read_bytes(), "text/plain")
    except ValueError:  # a server without an agent
        return output.path
