"""Tools of functions: the schemas and answers of the MCP library, without it."""

from __future__ import annotations

import enum
import functools
import importlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import func_metadata
from mcp_types import TextContent
from pydantic import BaseModel, Field, JsonValue, SecretStr, ValidationError
from typing_extensions import TypedDict

from callboard.surfaces import SHIPPED, ToolFunction


class Colour(enum.StrEnum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: float = 0.5


class Pair(TypedDict):
    left: int


class Plain:
    count: int

    def __init__(self, count: int = 0) -> None:
        self.count = count


def texts(first: str, second: str = "b") -> str: ...
def numbers(count: Annotated[int, Field(ge=1, description="How many.")], share: float = 0.5) -> int: ...
def lists(names: list[str], table: list[list[int | None]] | None = None) -> list[Point]: ...
def objects(point: Point, more: dict[str, Point] | None = None) -> dict[str, int]: ...
def choices(colour: Colour, side: Literal["left", "right"] = "left") -> Colour: ...
def secrets(password: SecretStr | str, key: SecretStr | None = None) -> None: ...
def shadows(copy: int, json: str, schema: str = "a") -> bool: ...
def anything(value: JsonValue, other: Any = None) -> JsonValue: ...
def untyped(value, more=1): ...
def models() -> Point: ...
def optional() -> Point | None: ...
def bounded() -> Annotated[int, Field(ge=3)]: ...
def tuples() -> tuple[int, str]: ...
def keyed() -> dict[int, str]: ...
def pairs() -> Pair: ...
def instances() -> Plain: ...
def contents() -> list[TextContent]: ...
async def later(seconds: float) -> float: ...


FUNCTIONS = [
    texts,
    numbers,
    lists,
    objects,
    choices,
    secrets,
    shadows,
    anything,
    untyped,
    models,
    optional,
    bounded,
    tuples,
    keyed,
    pairs,
    instances,
    contents,
    later,
]
"""Functions whose bodies are never run."""


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_schema_is_that_of_the_mcp_library(function):
    own, theirs = ToolFunction.of(function, "Do it."), Tool.from_function(function, description="Do it.")
    assert own.parameters == theirs.parameters
    assert (own.name, own.description, own.is_async) == (theirs.name, theirs.description, theirs.is_async)


@pytest.mark.parametrize("name", SHIPPED)
def test_schemas_of_shipped_tools_are_those_of_the_mcp_library(name, tmp_path):
    module, _, class_name = SHIPPED[name].partition(":")
    surface = getattr(importlib.import_module(module), class_name)
    arguments = {"documents": (tmp_path,), "shells": ({},), "mail": ({},)}.get(name, ())
    entries = surface(*arguments).tools()
    assert len(entries) > 5
    for entry in entries:
        function = getattr(entry.tool.fn, "__wrapped__", entry.tool.fn)
        theirs = Tool.from_function(function, name=entry.name, description=entry.tool.description)
        assert entry.tool.parameters == theirs.parameters


ARGUMENTS = [
    (texts, {"first": "[1]"}),
    (texts, {"first": 1}),
    (numbers, {"count": "3", "share": "0.25"}),
    (numbers, {"count": 0}),
    (lists, {"names": '["a", "b"]', "table": "[[1, null]]"}),
    (lists, {"names": "a"}),
    (lists, {"names": ["a"], "table": "null"}),
    (objects, {"point": '{"x": 1}', "more": {"a": {"x": 2}}}),
    (objects, {"point": '"x"'}),
    (choices, {"colour": "red"}),
    (choices, {"colour": "blue"}),
    (shadows, {"copy": 1, "json": "{}"}),
    (anything, {"value": "[1, 2]", "other": '{"a": 1}'}),
    (anything, {"value": "12"}),
    (untyped, {"value": "[1]"}),
    (untyped, {}),
    (texts, {"first": "a", "third": "c"}),
]


def outcome(validate, arguments):
    """Give the validated arguments, or the problems."""
    try:
        return validate(arguments)
    except ValidationError as error:
        return error.errors()


@pytest.mark.parametrize(("function", "arguments"), ARGUMENTS, ids=lambda part: getattr(part, "__name__", None))
def test_arguments_are_validated_as_by_the_mcp_library(function, arguments):
    own, theirs = ToolFunction.of(function, "Do it."), func_metadata(function)
    assert outcome(own.validate, arguments) == outcome(theirs.validate_arguments, arguments)


ANSWERS = [
    (texts, "a"),
    (texts, 3),
    (numbers, 3),
    (numbers, "x"),
    (shadows, True),
    (secrets, None),
    (lists, [Point(x=1), {"x": 2}]),
    (lists, [{"y": 2}]),
    (objects, {"a": 1}),
    (objects, {"a": "b"}),
    (anything, {"result": 1}),
    (anything, [1, {"a": None}]),
    (models, Point(x=1)),
    (models, {"x": "1"}),
    (optional, None),
    (bounded, 2),
    (tuples, (1, "a")),
    (keyed, {1: "a"}),
]


@pytest.mark.parametrize(("function", "answer"), ANSWERS, ids=lambda part: getattr(part, "__name__", None))
def test_answers_are_converted_as_by_the_mcp_library(function, answer):
    own, theirs = ToolFunction.of(function, "Do it.").answers, func_metadata(function)
    try:
        content = theirs.convert_result(answer).structured_content
    except ValueError:
        with pytest.raises(ValueError, match="validation error"):
            own.json(answer)
    else:
        assert own.json(answer) == (content["result"] if theirs.wrap_output else content)


@pytest.mark.parametrize("function", [untyped, pairs, instances, contents], ids=lambda function: function.__name__)
def test_answers_of_other_types_are_left_to_the_mcp_library(function):
    tool = ToolFunction.of(function, "Do it.")
    assert tool.answers is None
    assert tool.mcp_metadata.output_schema == func_metadata(function).output_schema


def sequence() -> Sequence[TextContent]: ...
def later_type() -> list[Missing]: ...  # noqa: F821 - it does not exist
def context(text: str, call: Context | None = None) -> str: ...


def test_return_type_with_a_part_of_the_mcp_library_is_left_to_it():
    assert ToolFunction.of(sequence, "Do it.").answers is None


def test_context_of_a_call_is_no_argument():
    tool = ToolFunction.of(context, "Do it.")
    assert tool.parameters == Tool.from_function(context, description="Do it.").parameters
    assert tool.validate({"text": "a"}) == {"text": "a"}


def test_unknown_type_of_an_answer_is_refused_when_the_tool_is_made():
    with pytest.raises(NameError):
        ToolFunction.of(later_type, "Do it.")


def test_answer_of_the_mcp_librarys_type_is_left_to_it():
    tool = ToolFunction.of(texts, "Do it.")
    assert tool.is_mcp_answer(TextContent(type="text", text="a"))
    assert not tool.is_mcp_answer("a")


def test_underscore_in_a_parameter_is_refused():
    def hidden(_name: str) -> str: ...

    with pytest.raises(TypeError, match="the tool hidden: the parameter '_name' must not begin with an underscore"):
        ToolFunction.of(hidden, "Do it.")


def test_partial_of_a_coroutine_function_is_async():
    assert ToolFunction.of(functools.wraps(later)(functools.partial(later)), "Wait.").is_async


PROGRAM = """
import sys
from callboard.testing import MemoryServer
assert [entry.name for entry in MemoryServer(MemoryServer.window()).tools()]
assert not {"mcp", "mcp_types", "starlette"} & set(sys.modules), sorted(sys.modules)
"""


def test_tools_are_built_without_the_mcp_library():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
