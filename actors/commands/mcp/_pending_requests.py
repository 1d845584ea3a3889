"""Match the answers of an MCP server with the pending requests.

An answer that can't be read, or has the id of no request, ends its request at once instead of at its time limit.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from callboard.messages import encodable

if TYPE_CHECKING:
    from mcp_types import RequestId

LONGEST_QUOTE = 200
"""The most characters of an unreadable answer that an error quotes."""
REMEMBERED = 1000
"""The most ids of earlier calls whose late or second answers are ignored."""
UNREADABLE: Final = object()
"""The data of an error that stands for an unreadable answer; no server can send it."""

_KIND = re.compile(rb'"(result|error|method)"\s*:')
_OPENING = re.compile(r'\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_ID = re.compile(
    rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d+)"?\s*[,}]'
    rb'|"id"\s*:\s*"?(\d+)"?\s*,\s*"jsonrpc"\s*:\s*"2\.0"'
)  # beside each other, so that no id within a result is taken
_decoder = json.JSONDecoder()


class StrayTextError(Exception):
    """A line that is no message: a banner, a log line."""


class UnreadableAnswerError(Exception):
    """A line that seems to be an answer, and can't be read.

    Args:
        line: The line.
        problem: The reason.
    """

    def __init__(self, line: bytes, problem: str) -> None:
        super().__init__(f"can't be read ({problem}): {quoted(line)}")
        match = _ID.search(line)
        self.id = int(match[1] or match[2]) if match else None
        """The id of the request that it answers; None if unknown."""


def quoted(line: bytes | str) -> str:
    """Quote the beginning of a line."""
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    text = text.strip()
    return repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…")


def messages_of(line: bytes) -> list[SessionMessage | Exception]:
    """Read a line of a program's standard output.

    Usually it is one message. Answers with halves of surrogate pairs are repaired, as they are JSON. Answers with text
    around them are read; requests and notifications in such a line are not, since the text may quote them.
    """
    try:
        return [SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = first["msg"] if first["type"] == "json_invalid" else "it has not the form of the protocol"
    if not _may_be_answer(line):
        return [StrayTextError()]
    try:
        answers = _answers_in(line.decode("utf-8-sig", "surrogatepass"))
    except UnicodeDecodeError as error:
        return [UnreadableAnswerError(line, f"it is not UTF-8: {error.reason} at byte {error.start}")]
    except (ValueError, RecursionError):  # the first reader's words are plainer
        answers = []
    return [*answers] or [UnreadableAnswerError(line, problem)]


def _may_be_answer(line: bytes) -> bool:
    """Return whether a line may be a whole or partial answer.

    A quoted request, or a log line in JSON, is not.
    """
    kind = _KIND.search(line)
    if kind is None or kind[1] == b"method" or b'"jsonrpc"' in line:
        return b'"jsonrpc"' in line and (kind is None or kind[1] != b"method")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return b'"id"' in line or line.lstrip().startswith(b'{"result"')
    return isinstance(value, dict) and value.keys() <= {"id", "result", "error"}


def _answers_in(text: str) -> list[SessionMessage]:
    """Read the answers in a text.

    Raises:
        ValueError: If one of them is not valid.
    """
    answers, position = [], 0
    while opening := _OPENING.search(text, position):
        value, position = _decoder.raw_decode(text, opening.start())
        if value.keys() & {"result", "error"}:
            written = json.dumps(encodable(value))
            answers.append(SessionMessage(jsonrpc_message_adapter.validate_json(written, by_name=False)))
    return answers


class PendingRequests:
    """The requests that a server has not answered yet.

    Runs on the event loop, between the client and the transport.
    """

    def __init__(self) -> None:
        self.broken = ""
        """Why the connection ended, if an answer belongs to none or to one of several requests."""
        self._pending: dict[RequestId, str] = {}
        """The methods of pending requests, by id."""
        self._calls: dict[RequestId, None] = {}
        """The ids of earlier calls."""

    def sent(self, item: SessionMessage) -> None:
        """Record a request, or the end of one that is cancelled."""
        match item.message:
            case JSONRPCRequest(id=number, method=method):
                if method == "initialize":
                    self._pending.clear()  # `server/discover` has ended without a cancel
                self._pending[number] = method
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                self._settle(number)

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """Return a message for the client.

        An unreadable answer becomes an error for the request that it answers. None if that is unknown: the connection
        has to end.
        """
        if isinstance(item, UnreadableAnswerError) and self._pending:
            return self._error(item.id, str(item))
        if isinstance(item, Exception) or not isinstance(item.message, JSONRPCResponse | JSONRPCError):
            return item
        number = item.message.id
        number = int(number) if isinstance(number, str) and number.isdecimal() else number
        if number in self._pending:
            self._settle(number)
            return item
        if number in self._calls or not self._pending:  # a second answer, or one after a cancel
            return item
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        return self._error(None, f"has the id of no request: {quoted(line)}")

    def _error(self, number: RequestId | None, problem: str) -> SessionMessage | None:
        if number not in self._pending:
            if len(self._pending) > 1:
                self.broken = problem
                return None
            (number,) = self._pending
        problem = f"its answer to `{self._pending[number]}` {problem}"
        self._settle(number)
        error = ErrorData(code=PARSE_ERROR, message=problem, data=UNREADABLE)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    def _settle(self, number: RequestId) -> None:
        if self._pending.pop(number, None) == "tools/call":
            self._calls[number] = None
            if len(self._calls) > REMEMBERED:
                del self._calls[next(iter(self._calls))]


def not_finite(value: Any) -> bool:
    """Return whether a value contains NaN or an infinity."""
    pending = [value]
    while pending:
        match pending.pop():
            case float() as number if number - number != 0:
                return True
            case dict() as members:
                pending += members.values()
            case list() as items:
                pending += items
    return False
