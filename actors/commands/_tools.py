"""Tools as agents use them: bound to a target, checked before they run, called where they may block."""

from __future__ import annotations

import contextlib
import functools
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import jsonschema
from pydantic import JsonValue, SecretStr, ValidationError
from pydantic_core import to_jsonable_python
from referencing import Registry

from callboard.actors.commands._canonical import canonical, settled
from callboard.actors.commands._policy import Facts
from callboard.actors.commands._secrets import Place
from callboard.actors.models import ToolInfo
from callboard.actors.servers import UNKNOWN, Server, ToolError
from callboard.config import MASK
from callboard.messages import CommandType, Effect, Probe, encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
    from mcp_types import CallToolResult

    from callboard.actors.commands._policy import Asked
    from callboard.actors.runtime import EffectGuard, Lanes
    from callboard.actors.servers import ServerTool
    from callboard.messages import Coverage, Foreseen, Intent, Seconds, Target


class ToolFailure(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A tool answered that it failed; the text is for the model."""


class BoundTool(ABC):
    """One tool, ready to be called on one target."""

    info: ToolInfo
    type: CommandType
    binds: Mapping[str, JsonValue]
    place: Place
    """What it is to those who grant secrets."""
    seconds: Seconds | None = None
    """The longest that a call may take; None: `limits.command_seconds`."""

    @property
    def parameters(self) -> Collection[str]:
        """The names of the parameters that a model may set."""
        names: Collection[str] = self.info.schema.get("properties", {}).keys()
        return names

    def takes(self, parameter: str) -> bool:
        """Say whether a model may set a parameter of this name."""
        return parameter in self.parameters

    def check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Say what is wrong with arguments, in words for the model; None if nothing is."""
        known = self.info.schema.get("properties", {})
        unknown = sorted(arguments.keys() - known.keys())
        if unknown and self.info.schema.get("additionalProperties", False) is False:
            names = ", ".join(known) or "none"
            return f"{self.info.name} has no argument {', '.join(map(repr, unknown))}; it takes: {names}"
        return self._check(arguments)

    def same_facts(self, asked: Asked) -> Facts | None:
        """Say what the policy's rules look at where it is the same for all calls; None: ask for each."""
        return None

    @abstractmethod
    async def facts(self, arguments: Mapping[str, JsonValue], made: Collection[str], asked: Asked) -> Facts:
        """Say of a call what the policy's rules look at. `made`: files that the task has made, as absolute paths."""

    async def expected(self, arguments: Mapping[str, JsonValue]) -> str:
        """Give the fingerprint that the surface will have after a call; empty where nobody can tell."""
        return ""

    async def probe(self, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Say whether a call was done before a crash; `fingerprint` is the surface's now. Unknown without a surface."""
        return Probe.UNKNOWN

    @abstractmethod
    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Say what is wrong with arguments, together with those that are bound."""

    @abstractmethod
    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Call it; what it changes, it changes as `guard`.

        Raises:
            ToolFailure: If the tool answered with an error.
            Exception: Whatever else the tool raises.
        """


KEPT = 64
"""So many arguments that were checked are kept for their call."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


class LocalTool(BoundTool):
    """A tool of a server that ships with us, called in process: same schema, no protocol in between."""

    def __init__(self, server: Server, tool: ServerTool, target: Target | None, lanes: Lanes) -> None:
        self._server = server
        self._target = target
        self._hazards = tool.hazards
        self._marked = Facts(tool.hazards)
        self._valid: dict[int, tuple[Mapping[str, JsonValue], dict[str, Any]]] = {}
        """Arguments that were checked and not called with yet, by identity, and what they are as the tool gets them."""
        self._answers = _plain_answer(tool.tool.fn_metadata)
        knows_any = getattr(server.hazards, "__func__", None) is not Server.hazards
        self._asks = knows_any and tool.effect is not Effect.READ
        self._asks_effect = target is not None and getattr(server.effect, "__func__", None) is not Server.effect
        self._tool = tool.tool
        fields = tool.tool.fn_metadata.arg_model.model_fields.values()
        self._texts_alone = all(field.annotation is str and field.alias is None for field in fields)
        self._lane = server.lane(target)
        self._lanes = lanes
        self.type = tool.type
        self.seconds = tool.seconds
        self.binds = target.binds if target is not None else {}
        schema = without(tool.tool.parameters, self.binds)
        self.info = ToolInfo(
            name=tool.name,
            description=tool.tool.description,
            schema=schema,
            effect=tool.effect,
            controls=tuple(sorted(tool.controls)),
            offered=tool.offered,
        )
        self.place = Place(tool.name, declared_secret(schema), target)

    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        try:
            whole = {**arguments, **self.binds}
            given = self._validated(whole)
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
            return f"{self.info.name}: {'; '.join(problems)}"
        if _SCALARS.issuperset(map(type, whole.values())):  # lists and objects in them may change until the call
            self._valid[id(arguments)] = whole, given
            if len(self._valid) > KEPT:
                self._valid.pop(next(iter(self._valid)), None)
        return None

    def _validated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Give the arguments as the tool gets them.

        Where it takes nothing but texts, none is read as JSON, and MCP's walk through the fields can be left out.

        Raises:
            ValidationError: If they do not fit.
        """
        metadata = self._tool.fn_metadata
        if not self._texts_alone:
            return metadata.validate_arguments(arguments)
        return {**metadata.arg_model.model_validate(arguments).__dict__}

    def same_facts(self, asked: Asked) -> Facts | None:
        """Give the tool's mark, where neither the server nor the rules look at a call."""
        looks = (
            (self._asks and self._target is not None)
            or self._asks_effect
            or asked.arguments
            or asked.resources
            or asked.explain
        )
        return None if looks else self._marked

    async def _ask(self, method: Callable[..., Any], *arguments: object) -> Any:
        """Call a method of the server, on the tool's lane."""
        return await self._lanes.run(self._lane, functools.partial(method, *arguments))

    async def facts(self, arguments: Mapping[str, JsonValue], made: Collection[str], asked: Asked) -> Facts:
        """Ask the tool's mark, and the server for this call; the server may look at its surface for it."""
        server, target, name = self._server, self._target, self.info.name
        hazards = self._hazards
        if self._asks and target is not None:
            hazards |= await self._ask(server.hazards, target, name, arguments, made)
        effect: Effect | None = None
        if self._asks_effect:
            said = await self._ask(server.effect, target, name, arguments)
            effect = None if said is None else Effect(said)  # an intent depends on it: no other word counts
        if not (asked.arguments or asked.resources or asked.explain):
            return Facts(hazards, effect)
        seen: Mapping[str, JsonValue] = self._canonical({**arguments, **self.binds})
        touched: Collection[str] = (UNKNOWN,)
        with contextlib.suppress(ToolError):  # the tool itself will refuse such a call
            seen = await self._ask(server.canonical, target, name, seen)
        if asked.resources or asked.explain:
            with contextlib.suppress(ToolError):
                touched = await self._ask(server.resources, target, name, seen)
        return Facts(hazards, effect, seen, resources=await self._ask(self._coverage, touched, asked.resources))

    def _coverage(self, touched: Collection[str], patterns: Collection[str]) -> dict[str, dict[str, Coverage]]:
        covers = functools.partial(self._server.coverage, self._target)
        return {resource: {pattern: covers(pattern, resource) for pattern in patterns} for resource in touched}

    def _canonical(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Give the arguments as the tool gets them; what is secret stays the reference that stands for it."""
        given = self._validated(dict(arguments))
        shown = {
            name: arguments.get(name, MASK) if isinstance(value, SecretStr) else value for name, value in given.items()
        }
        values: dict[str, JsonValue] = to_jsonable_python(settled(shown), serialize_unknown=True)
        return {name: canonical(value) for name, value in values.items()}

    async def expected(self, arguments: Mapping[str, JsonValue]) -> str:
        """Ask the server."""
        if self._target is None:
            return ""
        try:
            expected: str = await self._ask(self._server.expected, self._target, self.info.name, arguments)
        except Exception:  # an edge: who can't tell what to expect is asked no more than that
            return ""
        return expected

    async def probe(self, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Ask the server; it may look at its surface for it."""
        found: Probe = await self._ask(self._server.probe, self._target, intent, foreseen, fingerprint)
        return found

    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Call it on its lane, or on the event loop if it is a coroutine function."""
        whole, checked = {**arguments, **self.binds}, self._valid.pop(id(arguments), None)
        same = checked is not None and checked[0] == whole
        given = checked[1] if checked is not None and same else self._validated(whole)
        with guard.active():
            if self._tool.is_async:
                said = await self._tool.fn(**given)
            else:
                said = await self._lanes.run(self._lane, functools.partial(self._blocking, given, guard))
        if isinstance(said, str | int) and type(said) is self._answers:
            return encodable(said)
        converted: Any = self._tool.fn_metadata.convert_result(encodable(said))
        return value_of(converted, wrapped=self._tool.fn_metadata.wrap_output)

    def _blocking(self, given: dict[str, Any], guard: EffectGuard) -> Any:
        try:
            return self._tool.fn(**given)
        finally:
            guard.returned()


def _plain_answer(metadata: FuncMetadata) -> type | None:
    """Give the type that a tool answers with, if answers of exactly this type need no conversion; else None."""
    field = getattr(metadata.output_model, "model_fields", {}).get("result") if metadata.wrap_output else None
    return field.annotation if field and field.annotation in _PLAIN and not field.metadata else None


_PLAIN = (str, int, bool)


def declared_secret(schema: Mapping[str, Any]) -> frozenset[str]:
    """Name the parameters that an object's schema declares as secret, as pydantic does for `SecretStr`."""
    parts = schema.get("properties", {})
    return frozenset(name for name, part in parts.items() if _is_secret(part))


def _is_secret(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("format") == "password" or any(map(_is_secret, schema.get("anyOf", ())))


def without(schema: dict[str, Any], names: Mapping[str, object]) -> dict[str, Any]:
    """Take properties out of an object's schema."""
    kept = {name: part for name, part in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    return {**schema, "properties": kept, "required": required}


def value_of(result: CallToolResult, *, wrapped: bool) -> JsonValue:
    """Turn what a tool answered into JSON: its structured content, else its text.

    Raises:
        ToolFailure: If it is an error, also the form ``{"success": false}`` that some servers use.
    """
    text = "\n".join(block.text for block in result.content if block.type == "text")
    content: JsonValue = result.structured_content if result.structured_content is not None else (text or None)
    if result.is_error:
        raise ToolFailure(text or "the tool failed without saying why")
    inner = content["result"] if isinstance(content, dict) and content.keys() == {"result"} else content
    said = _parsed(text) if result.structured_content is None else inner
    if isinstance(said, dict) and said.get("success") is False:
        raise ToolFailure(str(said.get("error") or said.get("message") or text))
    return inner if wrapped else content


def _parsed(text: str) -> JsonValue:
    """Read a text that is JSON; many servers answer with nothing else."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return None
    return value


def schema_problem(schema: dict[str, Any], arguments: Mapping[str, JsonValue]) -> str | None:
    """Say how arguments break a JSON Schema; None if they do not."""
    validator = jsonschema.Draft202012Validator(schema, registry=Registry())  # nothing is fetched
    try:
        problem = next(validator.iter_errors(dict(arguments)), None)
    except Exception as error:  # an edge: the schema is a third party's, and may be anything
        return f"its schema can't be used: {error}"
    if problem is None:
        return None
    where = ".".join(map(str, problem.absolute_path))
    return f"{where}: {problem.message}" if where else str(problem.message)


def effect_of(annotations: Any, *, trusted: bool) -> Effect:
    """Read a tool's effect from MCP's annotations; of a server that is not trusted nothing is believed."""
    if not trusted or annotations is None:
        return Effect.ONCE
    if annotations.read_only_hint:
        return Effect.READ
    return Effect.IDEMPOTENT if annotations.idempotent_hint else Effect.ONCE
