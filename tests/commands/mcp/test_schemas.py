"""Schemas of third-party tools: the form that models get, and the check before a call."""

from __future__ import annotations

import pytest
from mcp_types import Tool

from callboard.actors.commands.mcp import McpSession
from callboard.actors.commands.mcp._server_session import RemoteTool
from callboard.config import McpServer, Settings
from support import PATIENCE, lone

OWN = {"type": "object", "properties": {"path": {"type": "string"}, "deep": {"type": "integer"}}, "required": ["path"]}


def tool_of(schema, **settings):
    server = McpServer.model_validate({"command": "files", **settings})
    return RemoteTool(McpSession("files", server, Settings.load()), Tool(name="list", input_schema=schema))


def test_a_silent_schema_has_typed_arguments_and_takes_others():
    tool = tool_of(OWN)
    assert tool.info.schema == OWN
    assert tool.check({"path": "x", "other": 1}) is None
    assert tool.check({"other": 1}) == "files.list: 'path' is a required property"


def test_schema_with_additional_properties_stays_open():
    tool = tool_of({**OWN, "additionalProperties": True})
    assert tool.info.schema["additionalProperties"] is True
    assert tool.check({"path": "x", "other": 1}) is None


def test_closed_schema_error_names_the_accepted_arguments():
    tool = tool_of({**OWN, "additionalProperties": False})
    assert tool.check({"path": "x", "other": 1}) == "files.list has no argument 'other'; it takes: path, deep"


@pytest.mark.parametrize(
    "more",
    [
        {"$ref": "#/$defs/Where"},
        {"anyOf": [{"properties": {"where": {"type": "string"}}}]},
        {"allOf": [{"$ref": "#/$defs/Where"}]},
        {"oneOf": [{"allOf": [{"properties": {"where": {}}}]}]},
        {"then": {"properties": {"where": {}}}},
        {"dependentSchemas": {"path": {"properties": {"where": {}}}}},
    ],
)
def test_a_schema_that_declares_parameters_elsewhere_stays_open(more):
    where = {"type": "object", "properties": {"where": {"type": "string"}}}
    assert tool_of({**OWN, **more, "$defs": {"Where": where}}).info.schema["additionalProperties"] is True


@pytest.mark.parametrize("odd", [{"properties": []}, {"anyOf": 3}, {"anyOf": [{"properties": [1]}]}, {"then": 1}])
def test_invalid_schema_does_no_harm(odd):
    assert tool_of({**OWN, "anyOf": [{}], **odd}).info.name == "files.list"


def test_branches_that_only_require_parameters_leave_it_typed():
    schema = {**OWN, "anyOf": [{"required": ["path"]}, {"required": ["deep"]}]}
    assert tool_of(schema).info.schema == schema


def test_null_member_of_a_schema_counts_as_missing():
    assert tool_of({**OWN, "additionalProperties": None, "title": None}).info.schema == OWN


def test_a_model_gets_the_types_of_a_tool_that_runs(start, over_http):
    offered = {}

    def answer(request):
        offered.update({each.name: each.schema for each in request.tools})
        return {"Status": "FINISH", "Function": "notes.add", "Args": {"a": 2, "b": 3}}

    policy = [{"verdict": "allow", "tool": "notes.*"}]
    supervisor = start(app=answer, mcpServers={"notes": over_http}, policy=policy)
    assert supervisor.submit(lone()).result(PATIENCE).output == {"result": 5}
    types = {name: part["type"] for name, part in offered["notes.add"]["properties"].items()}
    assert types == {"a": "integer", "b": "integer"}
    assert not offered["notes.add"].get("additionalProperties")
