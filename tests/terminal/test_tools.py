"""`callboard tools`: the tools that the settings give, and no text of a third party drives the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from callboard.terminal import app
from callboard.terminal._tool_list import ArgumentListing, arguments_of

Call = Callable[..., Result]

SERVER = """
import json, sys

HOSTILE = "wipe\\x1b[2J"
TOOLS = [
    {"name": "find", "description": "Find a ticket.", "inputSchema": {"type": "object", "properties": {
        "words": {"type": "string", "description": "Words in it."}, "limit": {"type": "integer", "default": 10}},
        "required": ["words"]}, "annotations": {"readOnlyHint": True}},
    {"name": HOSTILE, "description": "Fine.\\x1b]0;owned\\x07\\n\\u202egnp", "inputSchema": {
        "type": "object", "properties": {"\\x1b[31mred": {
            "type": "\\x1b[5m", "description": "[bold]x[/bold] \\x9b31m", "default": "\\u2066"}}}},
    {"name": "keys", "description": "Uses the key xyzzy-4711-long.", "inputSchema": {"type": "object"}},
]
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "tickets", "version": "1"}}
    elif asked.get("method") == "tools/list":
        answer = {"tools": TOOLS}
    else:
        answer = None
    if "id" in asked:
        told = {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""


@pytest.fixture
def settings(here: Path) -> Callable[..., None]:
    """Write ./callboard.yaml; the MCP server ``tickets`` has hostile tools."""

    def write(*, tickets: dict[str, Any] | None = None, **sections: Any) -> None:
        (here / "server.py").write_text(SERVER, encoding="utf-8")
        if tickets is not None:
            program = {"command": sys.executable, "args": ["-ISu", str(here / "server.py")]}
            sections["mcpServers"] = {"tickets": program | tickets, **sections.get("mcpServers", {})}
        (here / "callboard.yaml").write_text(yaml.safe_dump(sections), encoding="utf-8")

    return write


def test_tool_is_shown_with_its_arguments_effect_and_hazards(call: Call, settings: Callable[..., None]) -> None:
    settings(documents={"workspace": "."})
    result = call("tools", "delete_from_table")
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    (word,) = (at for at, line in enumerate(lines) if line.startswith("    for app; in word;"))
    assert [lines[0], "", *lines[word - 1 : word + 8]] == [
        "documents  2 tools; resources: file, sheet, range; hazards may differ by call",
        "",
        "  delete_from_table  once  deletes",
        "    for app; in word; on table; up to 60 s",
        "    Delete rows or columns of a table; the rest stays.",
        "    - document: string, required  The document's path within the workspace, such as sales.docx.",
        "    - control_id: string, required  The id of an observed control, such as table-1.",
        '    - control_name: string = ""  The observed control\'s name; checked where it is given.',
        "    - rows: array of integer = []  The rows to delete, from 1; the header counts.",
        "    - columns: array of integer = []  The columns to delete, from 1.",
        "",
    ]


def test_tools_lists_all_surfaces_and_mcp_servers_without_a_name(call: Call, settings: Callable[..., None]) -> None:
    settings(documents={"workspace": "."}, tickets={"trusted": True, "env": {"API_KEY": "xyzzy-4711-long"}})
    listings = json.loads(call("tools", "--json").stdout)
    assert [listing["name"] for listing in listings] == ["documents", "tickets"]
    find = next(tool for tool in listings[1]["tools"] if tool["name"] == "tickets.find")
    assert (find["effect"], find["hazards"], find["agents"]) == ("read", [], ["app"])
    assert [argument["default"] for argument in find["arguments"]] == ["", "10"]
    assert "xyzzy" not in json.dumps(listings)


def test_third_party_text_never_controls_the_terminal(call: Call, settings: Callable[..., None]) -> None:
    settings(tickets={})
    result = call("tools")
    assert result.exit_code == 0
    assert "tickets.wipe\\x1b[2J  once  unknown" in result.stdout
    assert "Fine.\\x1b]0;owned\\x07 \\u202egnp" in result.stdout
    assert '- \\x1b[31mred: \\x1b[5m = "\\u2066"  [bold]x[/bold] \\x9b31m' in result.stdout
    assert not set("\x1b\x07\x9b\u202e\u2066") & set(result.stdout)


@pytest.mark.parametrize("width", [32, 80, 200])
def test_the_output_fits_the_terminal(settings: Callable[..., None], width: int) -> None:
    settings(documents={"workspace": "."})
    lines = CliRunner().invoke(app, ["tools"], env={"COLUMNS": str(width)}).stdout.splitlines()
    assert lines
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    assert not any(line.endswith(" ") for line in lines)


def test_mcp_server_that_can_not_start_is_reported_beside_the_working_ones(
    call: Call, settings: Callable[..., None]
) -> None:
    settings(documents={"workspace": "."}, mcpServers={"gone": {"command": "no-such-program"}})
    result = call("tools")
    assert result.exit_code == 1
    assert "gone  can't be asked" in result.stdout
    assert "write_range" in result.stdout
    assert result.stderr == "callboard: warning: mcpServers.gone: the program 'no-such-program' is missing\n"


def test_an_mcp_server_that_may_be_missing_is_no_failure(call: Call, settings: Callable[..., None]) -> None:
    settings(mcpServers={"gone": {"command": "no-such-program", "optional": True}})
    assert call("tools").exit_code == 0


def test_only_the_mcp_server_that_is_wanted_is_started(call: Call, settings: Callable[..., None]) -> None:
    settings(documents={"workspace": "."}, mcpServers={"gone": {"command": "no-such-program"}})
    result = call("tools", "documents")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wrte_range", "there is no surface, MCP server or tool 'wrte_range'; did you mean 'write_range'?"),
        ("gone", "there is no surface, MCP server or tool 'gone'; there are: documents"),
    ],
)
def test_unknown_name_is_reported_with_the_nearest(
    call: Call, settings: Callable[..., None], name: str, told: str
) -> None:
    settings(documents={"workspace": "."})
    result = call("tools", name)
    assert (result.exit_code, result.stderr) == (2, f"callboard: {told}\n")


def test_folder_is_named_as_in_other_commands(call: Call, here: Path) -> None:
    project = here / "project"
    (project / "workspace").mkdir(parents=True)
    (project / "callboard.yaml").write_text("documents: {workspace: workspace}", encoding="utf-8")
    for path in ("project", "project/callboard.yaml"):
        assert "documents" in call("tools", path).stdout
        assert call("tools", path, "excel").stderr.startswith("callboard: there is no surface")
        assert call("tools", path, "write_cells").stdout == call("tools", "--settings", path, "write_cells").stdout
    assert "no/where: there is no such file or folder" in call("tools", "no/where").stderr
    assert "'a' and 'b': name one surface" in call("tools", "project", "a", "b").stderr


def test_settings_that_name_nothing_have_no_tools(call: Call) -> None:
    told = "no surface and no MCP server is configured: name a folder or a file with settings: callboard tools FOLDER"
    assert " ".join(call("tools").stdout.split()) == told
    assert told in call("tools", "excel").stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "type", "anyOf", "$ref", "$defs", "items", "enum", "required", "default", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "integer"}]}, "integer | null"),
        ({"enum": ["bar", 3]}, '"bar" | 3'),
        ({"const": "bar"}, '"bar"'),
        ({"type": "array", "items": {"type": "array", "items": {"enum": [1, 2]}}}, "array of (array of (1 | 2))"),
        ({"$ref": "#/$defs/Room"}, "object"),
        ({"$ref": "#/$defs/Unknown"}, "Unknown"),
        ({"$ref": "#/$defs/Self"}, "any"),
        ({}, "any"),
        (True, "any"),
    ],
)
def test_argument_type_is_shown_as_in_json_schema(part, told):
    definitions = {"Room": {"type": "object"}, "Self": {"$ref": "#/$defs/Self"}}
    (argument,) = arguments_of({"properties": {"x": part}, "$defs": definitions})
    assert argument == ArgumentListing(name="x", type=told, required=False)


def test_an_argument_has_its_default_and_its_description():
    schema = {"properties": {"x": {"type": "string", "default": "é", "description": "An x."}}, "required": ["x"]}
    assert arguments_of(schema) == (
        ArgumentListing(name="x", type="string", required=True, default='"é"', description="An x."),
    )


@given(JSON)
def test_a_schema_may_be_anything(part):
    schema = {"properties": {"x": part}, "$defs": part, "required": part}
    assert [argument.name for argument in arguments_of(schema)] == ["x"]
    if isinstance(part, dict):
        assert isinstance(arguments_of(part), tuple)
