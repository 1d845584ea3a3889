"""Schemas of older drafts, and patterns of other languages, in tools of third parties."""

from __future__ import annotations

import json
import sys

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Outcome, Task
from callboard.actors.commands._bound_tools import schema_problem
from callboard.actors.commands._modern_schema import modern, validator_of
from support import PATIENCE

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
NUMBERS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(-3, 3),
        "maximum": st.integers(-3, 3),
        "multipleOf": st.integers(1, 3),
        "type": st.sampled_from(["number", "integer", ["integer", "string"]]),
    },
)
"""Schemas of numbers; draft 4 allows the exclusive forms only beside their limits."""


def exclusive(draw):
    schema, low, high = draw
    more = {
        f"exclusive{name.title()}": value for name, value in (("minimum", low), ("maximum", high)) if name in schema
    }
    return {**schema, **more}


OLD = st.recursive(
    st.tuples(NUMBERS, st.booleans(), st.booleans()).map(exclusive),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"items": inner | st.lists(inner, min_size=1, max_size=2)}, optional={"additionalItems": inner}
        ),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from("ab"), inner)},
            optional={
                "required": st.lists(st.sampled_from("ab"), min_size=1, unique=True),
                "additionalProperties": st.booleans() | inner,
                "dependencies": st.dictionaries(st.sampled_from("ab"), inner | st.just(["b"])),
            },
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}, optional={"not": inner}),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.integers(-4, 4) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=5,
)


@given(OLD, VALUES)
def test_a_schema_of_draft_4_accepts_what_it_did(schema, value):
    """The independent truth is the validator of that draft."""
    expected = jsonschema.Draft4Validator(schema).is_valid(value)
    assert validator_of(modern({"$schema": DRAFT_4, **schema})).is_valid(value) == expected


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"properties": {"n": {"minimum": 0, "exclusiveMinimum": True}}}, 1, 0),
        ({"properties": {"n": {"type": "any", "divisibleBy": 2, "required": True}}}, 4, 3),
        (
            {
                "$schema": DRAFT_4,
                "properties": {"n": {"$ref": "#n"}},
                "definitions": {"n": {"id": "#n", "type": "integer"}},
            },
            1,
            "x",
        ),
        ({"properties": {"n": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}, 1, "x"),
        ({"properties": {"n": {"pattern": r"^\p{L}+$"}}}, "ä", "1"),
        ({"properties": {"n": {"pattern": r"^(?<year>\d{4})\z"}}}, "2024", "24"),
        ({"properties": {"n": {"pattern": "^a++b"}}}, "aab", "c"),
    ],
)
def test_forms_of_other_drafts_and_languages_are_checked(schema, good, bad):
    converted = modern(schema)
    assert schema_problem(converted, {"n": good}) is None
    assert schema_problem(converted, {"n": bad}) is not None


@pytest.mark.parametrize("pattern", [r"(?<=a+)b", "(?!x)y", "(?P<a", r"\cA", "[^]", "(?=.*\\d).{8,}"])
def test_patterns_that_cannot_be_read_are_left_to_the_server(pattern):
    schema = modern(
        {
            "properties": {"n": {"pattern": pattern}},
            "patternProperties": {pattern: False},
            "additionalProperties": False,
        }
    )
    assert schema_problem(schema, {"n": "anything", "other": 1}) is None


def test_a_pattern_never_backtracks():
    schema = modern({"properties": {"n": {"pattern": "^(a+)+$"}}})
    assert schema_problem(schema, {"n": "a" * 50_000 + "!"}) is not None


def test_a_default_that_looks_like_a_schema_is_kept():
    schema = {"properties": {"n": {"default": {"items": [1], "required": True}, "enum": [{"divisibleBy": 2}]}}}
    assert modern(schema) == schema


PROGRAM = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

TOOLS = json.loads(sys.argv[1])
for line in sys.stdin:
    match json.loads(line):
        case {"method": "initialize", "id": number, "params": {"protocolVersion": version}}:
            info = {"name": "raw", "version": "1"}
            about = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
            send(id=number, result=about)
        case {"method": "tools/list", "id": number, "params": {"cursor": "2"}}:
            send(id=number, result={"tools": TOOLS[1:]})
        case {"method": "tools/list", "id": number}:
            more = {"nextCursor": "2"} if TOOLS[1:] else {}
            send(id=number, result={"tools": TOOLS[:1], **more})
        case {"method": "tools/call", "id": number, "params": {"name": name, **params}}:
            arguments = params.get("arguments") or {}
            if name == "replace":
                TOOLS = arguments["tools"]
                for _ in range(arguments.get("times", 1)):
                    send(method="notifications/tools/list_changed")
            send(id=number, result={"content": [], "structuredContent": {"got": arguments}})
        case {"id": number}:
            send(id=number, error={"code": -32601, "message": "no"})
"""


def tool(name, *parameters):
    properties = {key: {"type": "string"} for key in parameters}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties, "required": [*parameters]}}


@pytest.fixture
def play(start):
    """Let an agent call tools of a server; give the task's result, and the agent's requests."""

    def run(listed, *calls, **options):
        requests = []

        def app(request):
            requests.append(request)
            name, arguments = calls[min(request.call, len(calls)) - 1]
            status = "CONTINUE" if request.call < len(calls) else "FINISH"
            return {"Status": status, "Function": f"raw.{name}", "Args": arguments}

        server = {"command": sys.executable, "args": ["-I", "-S", "-c", PROGRAM, json.dumps(listed)], "surface": False}
        policy = [{"verdict": "allow", "tool": "raw.*"}]
        supervisor = start(app=app, mcpServers={"raw": {**server, **options}}, policy=policy)
        result = supervisor.submit(Task(request="work", target="memo:one")).result(PATIENCE)
        return result, requests

    return run


OUR_NAMES = (
    *(
        "control_id",
        "control_name",
        "self",
        "cls",
        "tool",
        "resource",
        "resources",
        "task",
        "task_id",
        "name",
        "target",
    ),
    *("arguments", "guard", "status", "Function", "Args", "ControlText", "ControlLabel", "result", "None", "__class__"),
)


def test_a_parameter_may_have_any_name(play):
    given = {name: f"btn-{number}" for number, name in enumerate(OUR_NAMES)}
    result, _ = play(
        [tool("press", *OUR_NAMES), tool("id", "control_id")], ("id", {"control_id": "x"}), ("press", given)
    )
    assert (result.outcome, result.output) == (Outcome.FINISHED, {"got": given})


def test_a_parameter_called_control_id_is_offered_to_a_model(play):
    _, (request,) = play([tool("id", "control_id")], ("id", {"control_id": "x"}))
    (info,) = (info for info in request.tools if info.name == "raw.id")
    assert not info.names_controls
    assert "control_id" in info.schema["properties"]


REPLACE = tool("replace")
REPLACE["inputSchema"] = {"type": "object"}


def test_an_agent_can_call_a_tool_that_the_server_has_added(play):
    more = [REPLACE, tool("one"), tool("later", "text")]  # on two pages
    result, (_, then) = play([REPLACE], ("replace", {"tools": more, "times": 3}), ("later", {"text": "x"}))
    assert result.output == {"got": {"text": "x"}}
    assert {"raw.one", "raw.later"} <= {info.name for info in then.tools}


def test_call_to_a_removed_tool_gives_a_clear_error(play):
    result, _ = play([REPLACE, tool("one")], ("replace", {"tools": [REPLACE]}), ("one", {}))
    assert any("the MCP server raw has removed its tool 'raw.one'" in cause.reason for cause in result.causes)


def test_a_tool_that_is_not_offered_stays_so_when_it_is_added(play):
    hidden = {"later": {"offered": False}}
    result, (_, then, *_) = play(
        [REPLACE], ("replace", {"tools": [REPLACE, tool("later")]}), ("later", {}), tools=hidden
    )
    assert "raw.later" not in {info.name for info in then.tools}
    assert result.outcome is Outcome.ERROR


def test_a_changed_list_that_cannot_be_read_changes_nothing(play):
    result, (_, then) = play([REPLACE], ("replace", {"tools": [{"title": "x"}]}), ("replace", {"tools": [REPLACE]}))
    assert result.outcome is Outcome.FINISHED
    assert {info.name for info in then.tools} >= {"raw.replace"}
