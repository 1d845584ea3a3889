"""The dispatcher: runs commands with their timeouts and reports their outcomes."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from callboard.actors.commands._bound_tools import BadAnswerError, ConnectionLostError, ToolFailure
from callboard.actors.commands._secrets import Secrets, UnknownSecretError
from callboard.messages import (
    Command,
    CommandResult,
    Effect,
    EventName,
    LeaseVoidError,
    ResultStatus,
    as_json,
    encodable,
    maker,
    reason_of,
)
from callboard.surfaces import EffectGuard, InDoubtError, ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.commands._toolbox import Tools
    from callboard.actors.runtime import Clock, EventStream, Lease
    from callboard.surfaces import CallKeeper


_result = maker(CommandResult)
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(allow_inf_nan=False))


class Dispatcher:
    """Sends commands to tools. Runs in jobs, on the event loop."""

    def __init__(self, stream: EventStream, clock: Clock, secrets: Secrets) -> None:
        self._stream = stream
        self._secrets = secrets
        self._clock = clock

    async def run(
        self,
        command: Command,
        tools: Tools,
        lease: Lease,
        keeper: CallKeeper | None = None,
        *,
        redacted: bool = True,
        written: Sequence[str] = (),
    ) -> CommandResult:
        """Run one command. Errors are reported in its result.

        `keeper` receives the tool's progress and questions during the call. With `redacted=False`, secrets stand in the
        returned result: the caller compares it, and redacts what it keeps. `written` are new files that the command
        made before a crash; its result lists them, too.

        Raises:
            LeaseVoidError: If the tool failed after it was told that the supervisor stops. The stop may be the cause,
                so the failure does not count: the next process settles whether the command was done.
        """
        guard = EffectGuard(lease, command, keeper, lambda: self._tell_late(command, lease))
        guard.artifacts.extend(written)
        guard.new_artifacts.extend(written)
        result = await self._run(command, tools, lease, guard)
        if guard.saw_stop and result.status is ResultStatus.FAILURE:
            self.report(command, lease, stopped(command, guard))
            msg = f"{command.tool} ended because the supervisor stops; the next one settles whether it was done"
            raise LeaseVoidError(msg)
        redacted_result = self._secrets.redact(command.task_id, result) if self._secrets.known else result
        self.report(command, lease, redacted_result)
        return redacted_result if redacted else result

    async def _run(self, command: Command, tools: Tools, lease: Lease, guard: EffectGuard) -> CommandResult:
        tool = tools.get(command.tool)
        if tool is None:
            names = ", ".join(sorted(tools)) or "none"
            error = f"there is no tool {command.tool!r}; there are: {names}"
            return _result(call_id=command.call_id, tool=command.tool, status=ResultStatus.FAILURE, error=error)
        effect = command.effect or tool.info.effect
        lease.guard, guard.effect = guard, effect
        start = time.perf_counter()
        value, error, in_doubt, broke = None, "", False, False
        limit = guard.limit = self._clock.timeout(command.timeout)
        try:
            async with limit:
                guard.check()  # a void lease allows nothing, even if the tool never checks its guard
                secret_place = None if command.program else tool.place
                arguments = self._secrets.fill(command.task_id, command.parameters, secret_place)
                guard.origins = self._secrets.origins(command.task_id, command.parameters)
                value = _json_of(await tool.call(arguments, guard))
        except TimeoutError as failure:
            guard.void()
            timeout_reason = (
                f"took longer than {command.timeout:g} s; whether it was done, or still will be, is in doubt"
            )
            in_doubt = limit.expired()
            error, broke = timeout_reason if in_doubt else f"{type(failure).__name__}: {failure}", not in_doubt
        except asyncio.CancelledError:
            guard.void()
            self.report(command, lease, stopped(command, guard))
            raise
        except _tool_errors() as failure:
            error = str(failure) or "it failed without saying why"
            in_doubt = isinstance(failure, ConnectionLostError | InDoubtError)
            if isinstance(failure, BadAnswerError):
                in_doubt = effect is not Effect.READ
                error += ": whether it was done is in doubt" if in_doubt else "; it only reads"
        except BaseException as failure:  # tool boundary: any exception becomes an error for the model
            reason = reason_of(failure)
            plain = reason == type(failure).__name__ or (isinstance(failure, OSError) and failure.strerror)
            error = reason if plain else f"{type(failure).__name__}: {reason}"
            broke = True
        error = encodable(error) if error else ""
        return _result(
            call_id=command.call_id,
            tool=command.tool,
            status=ResultStatus.FAILURE if error else ResultStatus.SUCCESS,
            effect=effect,
            value=value,
            pictures=tuple(guard.pictures),
            error=error,
            artifacts=tuple(guard.artifacts),
            made=tuple(guard.new_artifacts),
            in_doubt=in_doubt,
            broke=broke,
            seconds=time.perf_counter() - start,
        )

    def _tell_late(self, command: Command, lease: Lease) -> None:
        self._stream.emit(
            EventName.COMMAND_LATE,
            task_id=command.task_id,
            run_id=command.run_id,
            agent=lease.target,
            state=command.state,
            step=command.step,
            tool=command.tool,
        )

    def report(self, command: Command, lease: Lease, result: CommandResult) -> None:
        """Emit the event for a command's outcome.

        It is emitted also if the command was not run.
        """
        self._stream.emit(
            EventName.COMMAND_ENDED,
            task_id=command.task_id,
            run_id=command.run_id,
            agent=lease.target,
            state=command.state,
            step=command.step,
            duration=result.seconds,
            call=command.call_id,
            tool=command.tool,
            type=str(command.type),
            status=str(result.status),
            error=result.error,
            artifacts=list(result.artifacts),
        )


def _json_of(answer: object) -> JsonValue:
    """Return an answer as JSON; halves of surrogate pairs are repaired.

    Raises:
        BadAnswerError: If it can't be serialized; the message gives the reason.
    """
    try:
        return as_json(answer)
    except ValueError:
        pass
    try:
        value: JsonValue = encodable(_JSON.validate_python(answer))
        _JSON.validate_json(_JSON.dump_json(value))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        msg = f"its answer can't be serialized: {problem}"
        raise BadAnswerError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"its answer can't be serialized: {error}"
        raise BadAnswerError(msg) from error
    return value


def stopped(command: Command, guard: EffectGuard) -> CommandResult:
    """Build the result of a command that is cancelled while it runs."""
    doubt = "was stopped while it ran: whether it was done is in doubt"
    return _result(
        call_id=command.call_id,
        tool=command.tool,
        status=ResultStatus.FAILURE,
        effect=guard.effect,
        error=doubt,
        artifacts=tuple(guard.artifacts),
        made=tuple(guard.new_artifacts),
        in_doubt=True,
        arguments=command.parameters,
    )


def _tool_errors() -> tuple[type[BaseException], ...]:
    """Return the errors with a text for the model.

    The MCP library's own is one of them, where a program has imported that library.
    """
    mcp = sys.modules.get("mcp.server.mcpserver.exceptions")
    theirs = getattr(mcp, "ToolError", None)  # None while another thread imports the module
    own = (ToolFailure, ToolError, LeaseVoidError, UnknownSecretError)
    return own if theirs is None else (*own, theirs)
