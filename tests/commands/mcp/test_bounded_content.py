"""Content of third-party tools' answers: pictures, resources, audio, and long texts."""

from __future__ import annotations

import base64
import json
import sys
from contextlib import asynccontextmanager

import pytest
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent

from callboard.actors.commands import ToolFailure
from callboard.actors.commands.mcp import McpSession
from callboard.actors.commands.mcp._bounded_content import MOST_CHARACTERS, MOST_PICTURES, answer_of
from callboard.config import McpServer, Settings
from callboard.messages import ResultStatus
from support import PATIENCE, PNG, lone

SHOWS = """
import base64, json, sys

def data(content):
    return base64.b64encode(content).decode()

INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "shows", "version": "1"}}
CONTENT = [
    {"type": "text", "text": "two charts"},
    {"type": "image", "data": sys.argv[1], "mimeType": "image/png"},
    {"type": "image", "data": data(b"JFIF"), "mimeType": "image/jpeg"},
    {"type": "audio", "data": data(b"12345"), "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a.csv", "name": "a", "mimeType": "text/csv", "size": 7},
    {"type": "resource", "resource": {"uri": "note:1", "mimeType": "text/plain", "text": "inside"}},
    {"type": "resource", "resource": {"uri": "note:2", "blob": data(b"123")}},
]
RESULTS = {
    "initialize": INFO,
    "tools/list": {"tools": [{"name": "show", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": CONTENT},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = RESULTS.get(message["method"])
        answer = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""

TOLD = """two charts
[picture 1, image/png, 70 bytes]
[picture, image/jpeg, 4 bytes; not kept: it is no PNG]
[audio, audio/wav, 5 bytes; not kept]
[link to the resource file:///a.csv, 'a', text/csv, 7 bytes; not read]
[resource note:1, text/plain, 6 characters]
inside
[resource note:2, unknown type, 3 bytes; not kept]"""


@pytest.fixture
def shows():
    arguments = ["-I", "-S", "-c", SHOWS, base64.b64encode(PNG).decode()]
    return {"command": sys.executable, "args": arguments, "surface": False}


@asynccontextmanager
async def opened(server):
    session = McpSession("notes", McpServer.model_validate(server), Settings.load())
    await session.open()
    try:
        yield session
    finally:
        await session.close()


async def test_each_part_of_an_answer_is_kept_or_named(shows, dispatch, command):
    async with opened(shows) as session:
        (result,) = await dispatch(session, command("notes.show"))
    assert (result.status, result.value, result.pictures) == (ResultStatus.SUCCESS, TOLD, (PNG,))


def test_pictures_survive_in_the_journal(begin, shows):
    calls = []

    def answer(request):
        calls.append([result.pictures for record in request.memory for result in record.results])
        return {"Status": "CONTINUE" if request.call == 1 else "FAIL", "Function": "notes.show", "Args": {}}

    allowed = [{"verdict": "allow", "tool": "notes.*"}]
    supervisor = begin(app=answer, mcpServers={"notes": shows}, policy=allowed)
    handle = supervisor.submit(lone(id="one"))
    handle.result(PATIENCE)
    folder = supervisor.settings.journal.path.with_name("journal.db.pictures")
    supervisor.stop()
    assert [path.read_bytes() for path in folder.glob("*/*.png")] == [PNG]
    assert calls[-1] == [(PNG,)]


def test_long_text_is_cut_with_a_note_of_the_omitted_length():
    answer = answer_of(CallToolResult(content=[TextContent(text="x" * (MOST_CHARACTERS + 5))]))
    assert answer.value == "x" * MOST_CHARACTERS + "… [cut: 5 of 50005 characters are left out]"
    structured = CallToolResult(content=[], structured_content={"rows": ["y" * (MOST_CHARACTERS + 1)]})
    assert answer_of(structured).value["rows"][0].endswith("… [cut: 1 of 50001 characters are left out]")


def test_pictures_beyond_the_limit_are_named():
    image = ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")
    answer = answer_of(CallToolResult(content=[image] * (MOST_PICTURES + 1)))
    assert len(answer.pictures) == MOST_PICTURES
    assert "not kept: the answer has 4 before it" in answer.value


def test_content_beside_structured_content_is_named():
    link = ResourceLink(uri="file:///a.csv", name="a")
    answer = answer_of(CallToolResult(content=[link], structured_content={"rows": 3}))
    assert answer.value["structured"] == {"rows": 3}
    assert "file:///a.csv" in answer.value["content"][0]


def test_invalid_base64_is_named_in_place_of_the_picture():
    answer = answer_of(CallToolResult(content=[ImageContent(data="?", mime_type="image/png")]))
    assert answer.pictures == ()
    assert "it is no base64" in answer.value


def test_a_failure_tells_all_its_parts():
    image = ImageContent(data="", mime_type="image/png")
    with pytest.raises(ToolFailure, match=r"no paper\n\[picture, image/png, 0 bytes; not kept: it is no PNG\]"):
        answer_of(CallToolResult(content=[TextContent(text="no paper"), image], is_error=True))


@pytest.mark.parametrize("content", [{"rows": ["item"] * 200_000}, {"k" * 1_200_000: 1}], ids=["items", "a name"])
def test_a_structured_answer_that_is_too_long_becomes_a_text_that_is_cut(content):
    value = answer_of(CallToolResult(content=[], structured_content=content)).value
    assert isinstance(value, str)
    assert value.startswith(json.dumps(content)[:MOST_CHARACTERS])
    assert value.endswith(
        f"… [cut: {len(json.dumps(content)) - MOST_CHARACTERS} of {len(json.dumps(content))} characters are left out]"
    )


def test_a_structured_answer_of_many_rows_is_kept_as_it_is():
    rows = {"rows": [[number, "a name"] for number in range(30_000)]}
    assert answer_of(CallToolResult(content=[], structured_content=rows)).value == rows


def image(data):
    return ImageContent(data=base64.b64encode(data).decode(), mime_type="image/png")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PNG[:40], "the picture is not a PNG, or is damaged"),
        (PNG[:16] + (60_000).to_bytes(4, "big") * 2 + PNG[24:], "the picture has 60000 x 60000 pixels"),
    ],
    ids=["cut", "too many pixels"],
)
def test_a_picture_that_no_model_would_take_is_not_kept(data, why):
    answer = answer_of(CallToolResult(content=[image(data)]))
    assert answer.pictures == ()
    assert why in answer.value


def test_data_behind_the_end_of_a_picture_is_dropped():
    assert answer_of(CallToolResult(content=[image(PNG + b"hidden")])).pictures == (PNG,)
