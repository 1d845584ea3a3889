"""Servers that can't be spoken to: each names its problem in plain words."""

from __future__ import annotations

import sys

import pytest
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED

from callboard.actors.commands.mcp import McpSession
from callboard.actors.commands.mcp._connection_errors import why
from callboard.actors.commands.mcp._program_log import ProgramLog
from callboard.config import McpServer, Settings
from callboard.messages import SettingsError

ANSWERS = """
import json, sys

def answer(request):
    {body}

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], **answer(request)}}), flush=True)
"""
INFO = "{'protocolVersion': '%s', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'n', 'version': '1'}}"
NO = "return {'error': {'code': -32601, 'message': 'Method not found'}}"
INITIALIZE = f"if request['method'] == 'initialize': return {{'result': {INFO % '2025-06-18'}}}"


async def refused(program, **settings):
    """Start a program, and give the reason why it is no server."""
    given = {"command": sys.executable, "args": ["-I", "-S", "-c", program], "start_seconds": 20, **settings}
    session = McpSession("odd", McpServer.model_validate(given), Settings.load(mcpServers={"odd": given}))
    try:
        await session.open()
    except SettingsError as error:
        return str(error).removeprefix("mcpServers.odd: no connection: ")
    finally:
        await session.close()
    pytest.fail("it was taken as a server")


async def test_error_of_an_ended_program_has_its_exit_code_and_last_output():
    told = await refused("import sys; sys.stderr.write('loading\\nno database\\n'); sys.exit(7)")
    assert told == (
        "it ended with exit code 7 before it answered `initialize`; "
        "the end of its standard error: loading | no database"
    )


async def test_a_program_that_is_killed_tells_the_signal():
    told = await refused("import os; os.kill(os.getpid(), 9)")
    assert told == "it was ended by signal 9 before it answered `initialize`"


async def test_text_in_place_of_the_protocol_is_quoted():
    told = await refused("print('usage: odd FILE'); print('more')")
    assert told == (
        "it ended with exit code 0 before it answered `initialize`; its standard output has text in place of messages "
        "of the protocol, beginning with 'usage: odd FILE'"
    )


def test_text_in_place_of_an_answer_in_time_is_quoted():
    program = ProgramLog(lambda text, dropped: None)
    program.strayed(b"Welcome!\n")
    assert why(TimeoutError("no answer within 1 s"), "initialize", program) == (
        "no answer within 1 s; its standard output has text in place of messages of the protocol, "
        "beginning with 'Welcome!'"
    )


OTHER = "has not the form of the protocol, it may be made for another version of the protocol"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (NO, "it does not know the request `initialize`, it may be made for another version of the protocol"),
        (f"{INITIALIZE}\n    {NO}", "it does not know the request `tools/list`: it has no tools"),
        (
            f"{INITIALIZE.replace('2025-06-18', '1999-01-01')}\n    {NO}",
            "it speaks a version of the protocol that this client does not: 1999-01-01",
        ),
        (
            "return {'result': {'protocolVersion': '2025-06-18'}}",
            f"its answer to `initialize` {OTHER} (capabilities: Field required)",
        ),
        (
            f"{INITIALIZE}\n    return {{'result': {{'tools': [{{'title': 'x'}}]}}}}",
            f"its answer to `tools/list` {OTHER} (tools.0.inputSchema: Field required)",
        ),
        (
            "return {'error': {'code': -32000, 'message': 'the licence has expired'}}",
            "it answered `initialize` with an error: the licence has expired",
        ),
    ],
    ids=["no MCP", "no tools", "old", "other answer", "other tools", "refused"],
)
async def test_server_of_another_protocol_gives_a_plain_error(body, expected):
    told = await refused(ANSWERS.format(body=body))
    assert told == expected


async def test_oversized_message_gives_a_clear_error():
    told = await refused(
        "import sys; sys.stdout.write('x' * 9_000); sys.stdout.flush(); sys.stdin.read()", max_bytes=1000
    )
    assert told == "it sent a message that is longer than `max_bytes` before it answered `initialize`"


async def test_last_output_of_a_program_holds_no_secret_of_the_settings():
    program = "import os, sys; sys.stderr.write('bad token ' + os.environ['WHO']); sys.exit(1)"
    told = await refused(program, env={"WHO": "xyzzy-4711"})
    assert "bad token **********" in told
    assert "xyzzy" not in told


@pytest.mark.parametrize(
    ("annotations", "in_doubt", "told"),
    [("{}", True, ": whether it was done is in doubt"), ("{'readOnlyHint': True}", False, "; it only reads")],
)
async def test_an_answer_in_another_form_leaves_a_doubt(dispatch, command, annotations, in_doubt, told):
    tool = f"{{'name': 'do', 'inputSchema': {{'type': 'object'}}, 'annotations': {annotations}}}"
    body = (
        f"{INITIALIZE}\n    if request['method'] == 'tools/list': return {{'result': {{'tools': [{tool}]}}}}\n    "
        "return {'result': {'content': [{'type': 'smell'}]}} if request['method'] == 'tools/call' else "
        "{'error': {'code': -32601, 'message': 'no'}}"
    )
    given = {"command": sys.executable, "args": ["-I", "-S", "-c", ANSWERS.format(body=body)], "trusted": True}
    session = McpSession("odd", McpServer.model_validate(given), Settings.load())
    await session.open()
    try:
        (result,) = await dispatch(session, command("odd.do"))
    finally:
        await session.close()
    assert result.error.startswith("its answer to `tools/call` has not the form of the protocol, ")
    assert result.error.endswith(told)
    assert (result.in_doubt, result.changed) == (in_doubt, in_doubt)


def test_http_server_that_hangs_up_gives_a_clear_error():
    error = MCPError(CONNECTION_CLOSED, "Connection closed")
    assert why(error, "initialize", None) == "it closed the connection before it answered `initialize`"
    assert why(ExceptionGroup("x", [TimeoutError("late")]), "initialize", ProgramLog(print)) == "late"
