"""A function as a tool: its schema, arguments and answers.

The schema is the one that the MCP library builds of the same function, without that library, which takes longer to
import than all that a task without MCP servers needs.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_origin

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, WithJsonSchema, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import SchemaError

from callboard.messages import CallboardError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
    from pydantic import JsonValue


class ToolError(CallboardError):
    """A tool's failure, with the reason as a text for the model.

    A stand-alone MCP server sends the text to its client.

    Example:
        >>> raise ToolError("the sheet is protected: unprotect it first")
        Traceback (most recent call last):
        callboard.surfaces._tool_function.ToolError: the sheet is protected: unprotect it first
    """


class InDoubtError(ToolError):
    """A tool can't tell whether its action was done.

    The model gets the text of the error, which gives the reason.
    """


_PLAIN = (str, int, bool)
_SCALARS = (*_PLAIN, float, bytes, type(None))


class _Arguments(BaseModel):
    """The base of the models of arguments."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True)
class ToolFunction:
    """A function that models can call by name.

    Its docstring, signature and types give the description and the schemas. Pydantic's `Field` describes parameters.
    """

    fn: Callable[..., Any]
    name: str
    description: str
    parameters: dict[str, Any]
    """The JSON Schema of its arguments."""
    arguments: type[BaseModel]
    """The model that validates its arguments."""
    answers: _Answers | None
    """The conversion of its answers; None where its type is one of the MCP library's, or unknown."""

    @classmethod
    def of(cls, function: Callable[..., Any], description: str, name: str = "") -> ToolFunction:
        """Read a function's signature.

        Args:
            function: The function or method.
            description: The text for models.
            name: The name of the tool; by default the function's.

        Raises:
            TypeError: If a parameter's name begins with an underscore.
            PydanticUserError: If a parameter's type has no schema.
            NameError: If the name of a type can't be resolved.
        """
        signature = inspect.signature(function, eval_str=True)
        arguments = _arguments(function, signature)
        tool = cls(
            function,
            name or function.__name__,
            description,
            arguments.model_json_schema(by_alias=True),
            arguments,
            _answers(function.__name__, signature.return_annotation),
        )
        if tool.answers is None:
            tool.mcp_metadata  # noqa: B018 - a wrong type is refused now, and no call waits for an import
        return tool

    @property
    def is_async(self) -> bool:
        """True for a coroutine function."""
        function = self.fn
        while isinstance(function, functools.partial):
            function = function.func
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004

    @functools.cached_property
    def mcp_metadata(self) -> FuncMetadata:
        """The MCP library's metadata, for answers that only it converts."""
        from mcp.server.mcpserver.utilities.func_metadata import func_metadata

        return func_metadata(self.fn)

    def is_mcp_answer(self, returned: object) -> bool:
        """Return whether only the MCP library converts an answer."""
        return self.answers is None or _is_of_mcp(type(returned))

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function receives them.

        A list or object that a model wrote as a text of JSON is parsed.

        Raises:
            pydantic.ValidationError: If they are invalid.
        """
        fields = self.arguments.model_fields
        by_key = {field.alias or name: field for name, field in fields.items()}
        parsed = {
            key: _parsed(value) if key in by_key and by_key[key].annotation is not str else value
            for key, value in arguments.items()
        }
        validated = self.arguments.model_validate(parsed)
        return {field.alias or name: getattr(validated, name) for name, field in fields.items()}


@dataclass(frozen=True)
class _Answers:
    """The conversion of a tool's answers to JSON."""

    adapter: TypeAdapter[Any]
    wrapped: bool
    """Whether the answer is the field `result` of an object, as MCP wants it of anything else."""
    plain: type | None
    """The type of answers that need no conversion."""

    def json(self, returned: Any) -> JsonValue:
        """Convert an answer, and check its type.

        Raises:
            ValueError: If it is not of the declared type.
        """
        content = {"result": returned} if self.wrapped else returned
        validated = self.adapter.validate_python(content, by_alias=True, by_name=True)
        if isinstance(validated, BaseModel):  # by the instance, so that an answer of a subclass keeps its fields
            dumped: dict[str, JsonValue] = validated.model_dump(mode="json", by_alias=True)
        else:
            dumped = self.adapter.dump_python(validated, mode="json", by_alias=True)
        return dumped["result"] if self.wrapped else dumped


def _parsed(value: Any) -> Any:
    """Parse JSON of a list, an object or null."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(parsed, str | int | float) else parsed


def _arguments(function: Callable[..., Any], signature: inspect.Signature) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if _is_context(parameter.annotation):  # a stand-alone server fills it in
            continue
        if name.startswith("_"):
            msg = f"the tool {function.__name__}: the parameter {name!r} must not begin with an underscore"
            raise TypeError(msg)
        hidden = callable(getattr(BaseModel, name, None))  # pydantic would warn of a field that hides its method
        facts: list[Any] = [Field(alias=name) if hidden else Field()]
        parts: tuple[Any, ...] = (parameter.annotation, *facts)
        if parameter.annotation is parameter.empty:
            parts = (Any, WithJsonSchema({"title": name, "type": "string"}), *facts)
        declared: Any = Annotated[parts]
        default = parameter.default
        fields[f"field_{name}" if hidden else name] = declared if default is parameter.empty else (declared, default)
    return create_model(f"{function.__name__}Arguments", __base__=_Arguments, **fields)


def _answers(name: str, annotation: Any) -> _Answers | None:
    """Return the conversion of a return type.

    None for one that only the MCP library converts.
    """
    bare = annotation.__origin__ if get_origin(annotation) is Annotated else annotation
    if bare is inspect.Signature.empty or _is_foreign(bare):
        return None
    is_class = isinstance(bare, type) and not isinstance(bare, GenericAlias) and bare not in _SCALARS
    if is_class and not issubclass(bare, BaseModel):
        return None
    try:
        if is_class or (get_origin(bare) is dict and bare.__args__[0] is str):
            answers = _Answers(TypeAdapter(bare), wrapped=False, plain=None)
        else:
            model = create_model(f"{name}Output", result=annotation)
            plain = bare if bare in _PLAIN and not model.model_fields["result"].metadata else None
            answers = _Answers(TypeAdapter(model), wrapped=True, plain=plain)
        answers.adapter.json_schema(schema_generator=_StrictSchema)
    except (PydanticUserError, SchemaError, NameError, TypeError, ValueError):  # the MCP library has a way out
        return None
    return answers


class _StrictSchema(GenerateJsonSchema):
    """Raises an error where pydantic warns that a type has no JSON."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        msg = f"{kind}: {detail}"
        raise ValueError(msg)


def _is_foreign(annotation: Any) -> bool:
    """Return whether a type has a part of the MCP library."""
    if get_origin(annotation) in {Union, UnionType, list, tuple, Sequence, Annotated}:
        return any(map(_is_foreign, annotation.__args__))
    return any(_is_of_mcp(base) for base in getattr(annotation, "__mro__", ()))


def _is_of_mcp(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in {"mcp", "mcp_types"}


def _is_context(annotation: Any) -> bool:
    """Return whether a parameter gets the MCP library's context of a call."""
    parts = annotation.__args__ if get_origin(annotation) in {Union, UnionType} else (annotation,)
    return any(getattr(part, "__module__", "") == "mcp.server.mcpserver.context" for part in parts)
