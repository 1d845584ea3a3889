"""Tools that run commands."""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import AgentKind, Effect, Probe
from callboard.surfaces import committing, current_call, current_guard
from callboard.surfaces._surface import InDoubtError, ToolError, tool
from callboard.surfaces.shell._base_shell import NO_NULL
from callboard.surfaces.shell._command_process import CommandStage
from callboard.surfaces.shell._json_output import parse_json
from callboard.surfaces.shell.judging import privileged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from callboard.messages import Intent
    from callboard.surfaces.shell._base_shell import BaseShell
    from callboard.surfaces.shell._command_process import CommandEnd, CommandProcess, Output

LINUX = (AgentKind.LINUX,)
LONGEST = 3_600.0
"""The longest time limit of a command, in seconds."""
SHOWN = 4_000
"""The number of first and of last characters of an output that are shown."""
_STOP_SECONDS = 5.0
_TICK_SECONDS = 0.05
_PROMPT = re.compile(r"(password|passphrase|passwort|\[y/n\]|\(yes/no[^)]*\)|continue\?)[^\n]*$", re.IGNORECASE)

ShellName = Annotated[str, Field(description="The shell.")]
Command = Annotated[str, Field(min_length=1, max_length=100_000, pattern=NO_NULL, description="For bash.")]
Handle = Annotated[str, Field(description="The handle that `start` returned.")]
Answer = dict[str, Any]


class CommandTools:
    """Tools that run commands, and follow those in the background.

    Args:
        shell: Returns a shell by its name.
    """

    def __init__(self, shell: Callable[[str], BaseShell]) -> None:
        self._shell = shell

    @tool(effect=Effect.ONCE, agents=LINUX, seconds=LONGEST + 60)
    async def run(
        self,
        shell: ShellName,
        command: Command,
        *,
        cwd: Annotated[str, Field(description="The working directory; empty for that of the last command.")] = "",
        seconds: Annotated[float, Field(gt=0, le=LONGEST, description="The time limit.")] = 60.0,
        read_json: Annotated[bool, Field(description="Whether its output is JSON, to be returned as `value`.")] = False,
    ) -> Answer:
        """Run a command and wait for its end.

        Its child processes end with it, and it gets no input.
        """
        _check_rights(command)
        here, call = self._shell(shell), current_call()
        id_ = call.id or uuid.uuid4().hex  # calls of a stand-alone server have no ids
        process = here.process(id_)
        outcome = await _run_to_end(here, process, lambda: self._begin(here, id_, command, cwd, seconds))
        transcript = f"{command}\n{outcome.code}\n{outcome.out.tail!r}{outcome.err.tail!r}".encode()
        await here.run_blocking(lambda: here.adopt(process, transcript))
        return await _complete_answer(outcome, seconds, read_json=read_json)

    @tool(effect=Effect.READ, agents=LINUX, offered=False, seconds=LONGEST + 60)
    async def read_command(
        self,
        shell: ShellName,
        command: Command,
        *,
        cwd: Annotated[str, Field(description="The working directory, from the shell's own one.")] = "",
        seconds: Annotated[float, Field(gt=0, le=LONGEST, description="The time limit.")] = 60.0,
        read_json: Annotated[bool, Field(description="Whether its output is JSON, to be returned as `value`.")] = False,
    ) -> Answer:
        """Run a command that only reads, apart from all others.

        It begins in the shell's own folder and environment, whatever earlier commands did, and leaves no trace in them.
        """
        _check_rights(command)
        here, id_ = self._shell(shell), uuid.uuid4().hex
        process = here.process(id_)

        def begin() -> None:
            self._begin(here, id_, command, str(here.workspace / cwd), seconds, exported={})

        outcome = await _run_to_end(here, process, begin)
        await here.run_blocking(lambda: here.final_state(process))
        return await _complete_answer(outcome, seconds, read_json=read_json)

    @tool(effect=Effect.ONCE, agents=LINUX)
    async def start(
        self,
        shell: ShellName,
        command: Command,
        *,
        cwd: Annotated[str, Field(description="The working directory; empty for that of the last command.")] = "",
        seconds: Annotated[float, Field(gt=0, le=86_400, description="The time limit.")] = 3_600.0,
    ) -> Answer:
        """Start a background command, and return a handle for `read_output` and `stop`."""
        _check_rights(command)
        here, call = self._shell(shell), current_call()

        def begin() -> str:
            jobs = here.state.jobs
            handle = next((handle for handle, id_ in jobs.items() if call.id and id_ == call.id), "")
            if handle:
                self._begin(here, jobs[handle], command, cwd, seconds)
                return handle
            handle = f"job-{max((int(old_handle[4:]) for old_handle in jobs), default=0) + 1}"
            jobs[handle] = call.id or uuid.uuid4().hex
            here.save()
            try:
                self._begin(here, jobs[handle], command, cwd, seconds)
            except InDoubtError:
                raise
            except ToolError:  # the command will not start
                del jobs[handle]
                here.save()
                raise
            return handle

        return {"handle": await here.run_blocking(begin)}

    @tool(effect=Effect.READ, agents=LINUX)
    async def read_output(
        self,
        shell: ShellName,
        handle: Handle,
        *,
        seconds: Annotated[float, Field(ge=0, le=50, description="How long to wait for its end.")] = 0.0,
    ) -> Answer:
        """Return the output of a background command, and whether it still runs."""
        here = self._shell(shell)
        process = await here.run_blocking(lambda: here.job(handle))
        if seconds or await here.run_blocking(process.stage) in {CommandStage.ENDED, CommandStage.LOST}:
            with contextlib.suppress(TimeoutError):
                return {
                    "running": False,
                    **_answer(await asyncio.wait_for(_end_of(process, _give_up), seconds or _STOP_SECONDS), None),
                }
        out, err = await here.run_blocking(process.output)
        return {"running": True, "stdout": out.excerpt(SHOWN), "stderr": err.excerpt(SHOWN)}

    @tool(effect=Effect.IDEMPOTENT, agents=LINUX)
    async def stop(self, shell: ShellName, handle: Handle) -> Answer:
        """Kill a background command with its child processes."""
        here = self._shell(shell)

        def cancel() -> CommandStage:
            process = here.job(handle)
            with committing():
                process.cancel()
            return process.stage()

        if await here.run_blocking(cancel) is CommandStage.ABSENT:
            return {"running": False, "stopped": "the command was stopped before it began", "stdout": "", "stderr": ""}
        return await self.read_output(shell, handle, seconds=_STOP_SECONDS)

    def probe(self, shell: BaseShell, intent: Intent) -> Probe | None:
        """Return whether a command was started before a crash.

        A started one has ended, or is followed to its end.
        """
        if intent.tool not in {"run", "start"}:
            return None
        process = shell.process(intent.call_id)
        if process.stage() is CommandStage.ABSENT and process.call_off():
            return Probe.NOT_DONE
        return Probe.UNKNOWN if process.stage() is CommandStage.LOST else Probe.BEGUN

    def _begin(
        self,
        here: BaseShell,
        call: str,
        command: str,
        cwd: str,
        seconds: float,
        *,
        exported: Mapping[str, str] | None = None,
    ) -> None:
        where = here.inside(cwd)
        if here.isolated and not here.is_inside(where):
            msg = f"{where} is outside the workspace {here.workspace}, and isolated commands can't access it"
            raise ToolError(msg)
        here.began_in = where
        with committing():
            here.begin(call, command, where, seconds, exported=here.state.environment if exported is None else exported)


async def _run_to_end(here: BaseShell, process: CommandProcess, begin: Callable[[], None]) -> CommandEnd:
    """Run a command to its end; cancel it with its call."""
    try:
        await here.run_blocking(begin)
        return await _end_of(process, lambda: here.cancel(process))
    except asyncio.CancelledError:
        here.cancel(process)
        raise


async def _complete_answer(outcome: CommandEnd, seconds: float, *, read_json: bool) -> Answer:
    answer = _answer(outcome, seconds)
    if read_json and not outcome.code:
        answer["value"] = await asyncio.to_thread(_json_of, outcome.out)  # large outputs take seconds
    return answer


async def _end_of(process: CommandProcess, on_stop: Callable[[], None]) -> CommandEnd:
    """Wait for a command's end.

    If the supervisor stops meanwhile, `on_stop` is called once. This does not ask `given_up`: the outcome of a
    command that the stop kills is known, and counts.
    """
    guard, end = current_guard(), asyncio.ensure_future(process.ended())
    try:
        while guard is not None and not guard.lease.suspended and not end.done():
            await asyncio.wait([end], timeout=_TICK_SECONDS)
        if not end.done() and guard is not None:
            on_stop()
        return await end
    finally:
        end.cancel()


def _give_up() -> None:
    """End a call that only waits; the next process repeats it.

    Raises:
        ToolError: If the call is given up.
    """
    if current_call().given_up:
        msg = "the supervisor stops"
        raise ToolError(msg)


def _check_rights(command: str) -> None:
    """Refuse a command that would run a program as another user.

    Raises:
        ToolError: If it would.
    """
    name = privileged(command)
    if name:
        msg = f"{name!r} is never run: commands run with the rights of this user only. Nothing was done"
        raise ToolError(msg)


def _answer(outcome: CommandEnd, seconds: float | None) -> Answer:
    """Describe the outcome of a command.

    Args:
        outcome: Its exit code and outputs, or why it was killed.
        seconds: The time limit; None for a background command.

    Raises:
        ToolError: If the command could not be started, or a command in the foreground was killed.
    """
    if outcome.error:
        msg = f"bash can't be started: {outcome.error}"
        raise ToolError(msg)
    answer: Answer = {
        "exit_code": outcome.code,
        **_output_entries("stdout", outcome.out),
        **_output_entries("stderr", outcome.err),
    }
    if outcome.killed_count:
        answer["ended"] = (
            f"{outcome.killed_count} child processes were still running and were killed; to keep one, use `start`"
        )
    prompt = _PROMPT.search(outcome.out.tail[-200:].decode(errors="replace").rstrip() or "") or _PROMPT.search(
        outcome.err.tail[-200:].decode(errors="replace").rstrip()
    )
    if prompt and (outcome.why or outcome.code):
        answer["note"] = f"it seems to have asked {prompt[0]!r}; it gets no input, so pass the answer as an option"
    if outcome.why and seconds is None:  # the call that reads the output has not failed
        answer["stopped"] = f"the command was killed with its child processes ({outcome.why})"
    elif outcome.why:
        limit = f" after {seconds:g} s" if outcome.why == "timed out" else ""
        hint = f"; {answer['note']}" if "note" in answer else ""
        msg = (
            f"the command was killed with its child processes ({outcome.why}{limit}){hint}. Output: {answer['stdout']}"
        )
        raise ToolError(msg + answer["stderr"])
    return answer


def _output_entries(name: str, output: Output) -> Answer:
    """Describe an output; store a long one in a file."""
    if output.total <= 2 * SHOWN:
        return {name: output.excerpt(SHOWN)}
    return {name: output.excerpt(SHOWN), f"{name}_bytes": output.total, f"{name}_file": str(_file_of(output))}


def _json_of(output: Output) -> JsonValue:
    """Parse an output as JSON.

    Raises:
        ToolError: If it is not JSON, or was not kept in full; the command was run.
    """
    why = "the command was run, but its output can't be read as JSON:"
    try:
        data = output.path.read_bytes()
        content = parse_json(data) if len(data) == output.total else None
    except (ValueError, OSError) as error:
        msg = f"{why} {error}"
        raise ToolError(msg) from error
    if len(data) != output.total:
        msg = f"{why} only {len(data):,} of its {output.total:,} bytes were kept"
        raise ToolError(msg)
    return content


def _file_of(output: Output) -> object:
    try:
        return current_call().artifact(output.path.read_bytes(), "text/plain")
    except ValueError:  # a stand-alone server
        return output.path
