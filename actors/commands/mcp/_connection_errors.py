"""Descriptions of connection errors of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from callboard.actors.commands.mcp._pending_requests import UNREADABLE
from callboard.config import in_url, masked
from callboard.messages import reason_of

if TYPE_CHECKING:
    from callboard.actors.commands.mcp._program_log import ProgramLog

LISTING = "tools/list"
CUT_OFF = "SSE stream ended without a response"
"""The client's error message if a server's HTTP answer is incomplete."""
TOO_LONG = "a message that is longer than `max_bytes`"
_OTHER = "it may be made for another version of the protocol"


def why(error: BaseException, request: str, program: ProgramLog | None) -> str:
    """Describe why there is no connection.

    Args:
        error: The client's exception.
        request: The pending request: `initialize` or `tools/list`.
        program: The output of the server's program; None over HTTP.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case MCPError():
            text = _refused(error, request, program)
        case ValidationError():
            text = unreadable(request, error)
        case RuntimeError() if "Unsupported protocol version" in str(error):
            text = f"it speaks a version of the protocol that this client does not: {str(error).rpartition(': ')[2]}"
        case _:
            text = reason_of(error)
    text += _beside(program)
    return masked(text, in_url(text))  # it may quote the address with its secrets


def _refused(error: MCPError, request: str, program: ProgramLog | None) -> str:
    if (
        error.code == CONNECTION_CLOSED and error.message == "Connection closed"
    ):  # third-party servers use this code, too
        return f"{_ended(program)} before it answered `{request}`"
    if error.data is UNREADABLE:
        return error.message
    if foreign(error):
        return f"its answer to `{request}` {foreign(error)}: there may be no MCP server at this address"
    unknown = f"it does not know the request `{request}`"
    explanations = {
        METHOD_NOT_FOUND: f"{unknown}: it has no tools" if request == LISTING else f"{unknown}, {_OTHER}",
        UNSUPPORTED_PROTOCOL_VERSION: "it supports no version of the protocol that this client supports",
    }
    return explanations.get(error.code) or f"it answered `{request}` with an error: {error.message}"


def foreign(error: MCPError) -> str:
    """Describe an HTTP answer that is not a protocol message.

    Empty for any other answer.
    """
    what, _, kind = error.message.partition(": ")
    if what == "Unexpected content type":
        return f"is not a message of the protocol, but {kind or 'nothing'}"
    return (
        "is not a message of the protocol"
        if what in {"Failed to parse JSON response", "Failed to parse SSE message"}
        else ""
    )


def unreadable(request: str, error: ValidationError) -> str:
    """Describe the error in an answer that violates the protocol's schema."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, problem["loc"])) or "the whole"
    return f"its answer to `{request}` has not the form of the protocol, {_OTHER} ({where}: {problem['msg']})"


def _ended(program: ProgramLog | None) -> str:
    if program is None:
        return "it closed the connection"
    if program.too_long:
        return f"it sent {TOO_LONG}"
    if program.exit_code is None:
        return "it closed its output"
    if program.exit_code < 0:
        return f"it was ended by signal {-program.exit_code}"
    return f"it ended with exit code {program.exit_code}"


def _beside(program: ProgramLog | None) -> str:
    if program is None:
        return ""
    stray = (
        f"; its standard output has text in place of messages of the protocol, beginning with {program.stray!r}"
        if program.stray
        else ""
    )
    last = f"; the end of its standard error: {' | '.join(program.last)}" if program.last else ""
    return stray + last
