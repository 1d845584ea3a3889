"""Tools bound to a target.

Arguments are checked first, and blocking calls run on lanes.
"""

from __future__ import annotations

import contextlib
import functools
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, SecretStr, ValidationError
from pydantic_core import to_jsonable_python

from callboard.actors.commands._canonical import canonical, settled
from callboard.actors.commands._modern_schema import validator_of
from callboard.actors.commands._policy_rules import Facts
from callboard.actors.commands._secrets import SecretPlace
from callboard.config import MASK
from callboard.messages import CommandType, Effect, Probe, as_json, changed_fact, encodable, reason_of
from callboard.models import ToolInfo
from callboard.surfaces import UNKNOWN, Server, ToolError, reads_are_harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mcp_types import CallToolResult

    from callboard.actors.commands._policy_rules import Asked
    from callboard.actors.runtime import Lanes
    from callboard.messages import ActionGuard, Coverage, Foreseen, Intent, RoutineMiss, Seconds, Target
    from callboard.surfaces import EffectGuard, SurfaceTool


class ToolFailure(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A tool answered with an error; the message is for the model."""


class ConnectionLostError(ToolFailure):
    """The connection to an MCP server was lost during a call.

    The call is in doubt.
    """


class BadAnswerError(ToolFailure):
    """A tool's answer is not JSON, or not of the declared type."""


class BoundTool(ABC):
    """One tool, ready to be called on one target."""

    info: ToolInfo
    type: CommandType
    binds: Mapping[str, JsonValue]
    place: SecretPlace
    """The tool and target, for which secrets are granted."""
    seconds: Seconds | None = None
    """The longest that a call may take; None: `limits.command_seconds`."""
    takes_disabled: bool = False
    """Whether it is called for disabled controls, too."""

    @property
    def parameters(self) -> Collection[str]:
        """The names of the parameters that a model may set."""
        names: Collection[str] = self.info.schema.get("properties", {}).keys()
        return names

    def takes(self, parameter: str) -> bool:
        """Return whether a model may set a parameter of this name."""
        return parameter in self.parameters

    @property
    def takes_control(self) -> bool:
        """Indicates that a model may name a control for the tool."""
        return self.info.names_controls and self.takes("control_id")

    def check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Describe the error in arguments, for the model.

        None if they are valid.
        """
        properties = self.info.schema.get("properties", {})
        unknown = sorted(arguments.keys() - properties.keys())
        listed = "patternProperties" not in self.info.schema
        if unknown and listed and self.info.schema.get("additionalProperties", False) is False:
            names = ", ".join(properties) or "none"
            return f"{self.info.name} has no argument {', '.join(map(repr, unknown))}; it takes: {names}"
        return self._check(arguments)

    def same_facts(self, query: Asked) -> Facts | None:
        """Return facts for the policy's rules that all calls share.

        None if they differ by call; `facts` gives those.
        """
        return None

    @abstractmethod
    async def facts(self, arguments: Mapping[str, JsonValue], task_files: Collection[str], query: Asked) -> Facts:
        """Return a call's facts for the policy's rules.

        `task_files` has the task's files as absolute paths.
        """

    async def overwritten(self, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Return the files that a call overwrites, as `may_change` names them.

        Empty if they are unknown.
        """
        return ()

    async def deleted(self, arguments: Mapping[str, JsonValue]) -> Mapping[str, str]:
        """Return the fingerprints of the files that a call deletes.

        By their absolute paths; empty if they are unknown.
        """
        return {}

    async def replaced(self, arguments: Mapping[str, JsonValue]) -> str:
        """Describe the content that a call would replace; empty if unknown."""
        return ""

    async def recipient(self, arguments: Mapping[str, JsonValue]) -> str:
        """Name the recipient of what a call would send; empty if unknown."""
        return ""

    async def expected(self, arguments: Mapping[str, JsonValue]) -> str:
        """Return the surface's expected fingerprint after a call; empty if unknown."""
        return ""

    async def miss(
        self, guard: ActionGuard, arguments: Mapping[str, JsonValue], facts: Mapping[str, JsonValue] | None
    ) -> RoutineMiss | None:
        """Compare a call with its routine's guard; return the difference.

        Args:
            guard: The guard.
            arguments: The arguments, with the values that the routine filled in.
            facts: The facts of `relies_on`; None if they are not to be compared.
        """
        return None if facts is None else changed_fact(guard.step, guard.relies_on, facts)

    async def relies_on(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the facts that a call relies on, by name."""
        return {}

    async def leaves(self, arguments: Mapping[str, JsonValue], answer: JsonValue) -> dict[str, JsonValue]:
        """Return the facts right after a call that succeeded, by name."""
        return {}

    async def probe(self, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Return whether a call was done before a crash.

        Unknown without a surface. `fingerprint` is the surface's current one.
        """
        return Probe.UNKNOWN

    @abstractmethod
    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Describe the error in arguments, together with the bound ones.

        None if they are valid.
        """

    @abstractmethod
    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Call it; `guard` fences its side effects.

        Raises:
            ToolFailure: If the tool answered with an error.
            Exception: Any other exception of the tool.
        """


KEPT = 64
"""The most validated arguments that are kept for their call."""

_Checked = tuple["Mapping[str, JsonValue]", dict[str, Any]]
"""Validated arguments, and the values that the tool receives."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


class LocalTool(BoundTool):
    """A tool of an in-process surface.

    It has the same schema as over MCP, without the protocol.
    """

    def __init__(self, surface: Server, tool: SurfaceTool, target: Target | None, lanes: Lanes) -> None:
        self._surface = surface
        self._target = target
        self._hazards = tool.hazards
        self._marked = Facts(tool.hazards)
        self._valid: dict[int, _Checked] = {}
        """Validated arguments of pending calls, by identity."""
        may_ask = target is not None or surface.hazards_of_host
        only_changes = tool.effect is Effect.READ and reads_are_harmless(surface)
        self._asks = _overrides(surface, "hazards") and may_ask and not only_changes
        self._asks_effect = target is not None and _overrides(surface, "effect")
        self._tool = tool.tool
        fields = tool.tool.arguments.model_fields.values()
        self._texts_alone = all(field.annotation is str and field.alias is None for field in fields)
        self._lane = surface.lane(target)
        self._lanes = lanes
        self.type = tool.type
        self.seconds = tool.seconds
        self.takes_disabled = tool.takes_disabled
        self.binds = target.binds if target is not None else {}
        schema = without(tool.tool.parameters, self.binds)
        self.info = ToolInfo(
            name=tool.name,
            description=tool.tool.description,
            schema=schema,
            effect=tool.effect,
            controls=tuple(sorted(tool.controls)),
            offered=tool.offered,
            has_form=target is not None and _overrides(surface, "form"),
        )
        checks_origins = "origin" in surface.resource_kinds
        self.place = SecretPlace(tool.name, declared_secret(schema), target, checks_origins)

    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        try:
            all_arguments = {**arguments, **self.binds}
            validated_arguments = self._validated(all_arguments)
        except ValidationError as error:
            return self._problem(error)
        if _SCALARS.issuperset(map(type, all_arguments.values())):  # lists and objects may be modified before the call
            self._valid[id(arguments)] = all_arguments, validated_arguments
            if len(self._valid) > KEPT:
                self._valid.pop(next(iter(self._valid)), None)
        return None

    def _problem(self, error: ValidationError) -> str:
        problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        return f"{self.info.name}: {'; '.join(problems)}"

    def _filled_in(self, arguments: Mapping[str, JsonValue], checked: _Checked | None) -> dict[str, Any]:
        """Return the arguments as the tool receives them.

        Those that were checked before are not validated again.

        Raises:
            ValidationError: If they are invalid.
        """
        all_arguments = {**arguments, **self.binds}
        return checked[1] if checked is not None and checked[0] == all_arguments else self._validated(all_arguments)

    def _validated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the tool receives them.

        If all parameters are texts, none is parsed as JSON, and the loop over the fields is skipped.

        Raises:
            ValidationError: If they are invalid.
        """
        if not self._texts_alone:
            return self._tool.validate(arguments)
        return {**self._tool.arguments.model_validate(arguments).__dict__}

    def same_facts(self, query: Asked) -> Facts | None:
        """Return the tool's own hazards.

        None if the surface or the rules inspect calls.
        """
        looks = self._asks or self._asks_effect or query.arguments or query.resources or query.explain
        return None if looks else self._marked

    async def _ask(self, method: Callable[..., Any], *arguments: object) -> Any:
        """Call a method of the surface on the tool's lane."""
        return await self._lanes.run(self._lane, functools.partial(method, *arguments))

    async def replaced(self, arguments: Mapping[str, JsonValue]) -> str:
        """Ask the surface; empty if it raises."""
        return await self._text_of("replaced", arguments)

    async def recipient(self, arguments: Mapping[str, JsonValue]) -> str:
        """Ask the surface; empty if it raises."""
        return await self._text_of("recipient", arguments)

    async def facts(self, arguments: Mapping[str, JsonValue], task_files: Collection[str], query: Asked) -> Facts:
        """Combine the tool's hazards with the surface's facts.

        The surface may look at the target for them.
        """
        surface, target, name = self._surface, self._target, self.info.name
        hazards = self._hazards
        received = self._received(arguments)
        unbound_arguments = self._unbound(received)
        if self._asks:
            hazards |= await self._ask(surface.hazards, target, name, unbound_arguments, task_files)
        effect: Effect | None = None
        if self._asks_effect:
            stated = await self._ask(surface.effect, target, name, unbound_arguments)
            effect = None if stated is None else Effect(stated)  # intents depend on it: an unknown effect must raise
        if not (query.arguments or query.resources or query.explain):
            return Facts(hazards, effect)
        canonical_arguments: Mapping[str, JsonValue] = {key: canonical(value) for key, value in received.items()}
        touched: Collection[str] = (UNKNOWN,)
        with contextlib.suppress(ToolError):  # the tool itself will reject the call
            canonical_arguments = await self._ask(surface.canonical, target, name, canonical_arguments)
        if query.resources or query.explain:
            with contextlib.suppress(ToolError):
                touched = await self._ask(surface.resources, target, name, canonical_arguments)
        return Facts(
            hazards, effect, canonical_arguments, resources=await self._ask(self._coverage, touched, query.resources)
        )

    def _coverage(self, touched: Collection[str], patterns: Collection[str]) -> dict[str, dict[str, Coverage]]:
        covers = functools.partial(self._surface.coverage, self._target)
        return {resource: {pattern: covers(pattern, resource) for pattern in patterns} for resource in touched}

    def _received(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the arguments as the tool receives them, in JSON.

        References to secrets stay.

        Raises:
            ToolError: If they are invalid. They were checked before, but a secret may have been filled in since, or
                another version of the tool may have checked them.
        """
        try:
            validated_arguments = self._filled_in(arguments, self._valid.get(id(arguments)))
        except ValidationError as error:
            raise ToolError(self._problem(error)) from error
        visible_arguments = {
            name: arguments.get(name, MASK) if isinstance(value, SecretStr) else value
            for name, value in validated_arguments.items()
        }
        values: dict[str, JsonValue] = to_jsonable_python(settled(visible_arguments), serialize_unknown=True)
        return values

    def _unbound(self, received: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {name: value for name, value in received.items() if name not in self.binds}

    async def overwritten(self, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Ask the surface, if its versions can be kept."""
        if self._target is None or not self._surface.keeps_versions:
            return ()
        unbound_arguments = self._unbound(self._received(arguments))
        paths: Collection[str] = await self._ask(
            self._surface.overwritten, self._target, self.info.name, unbound_arguments
        )
        return paths

    async def deleted(self, arguments: Mapping[str, JsonValue]) -> Mapping[str, str]:
        """Ask the surface, if it can tell."""
        if not self._asks or not _overrides(self._surface, "deleted"):
            return {}
        unbound_arguments = self._unbound(self._received(arguments))
        digests: Mapping[str, str] = await self._ask(
            self._surface.deleted, self._target, self.info.name, unbound_arguments
        )
        return digests

    async def expected(self, arguments: Mapping[str, JsonValue]) -> str:
        """Ask the surface; empty if it raises."""
        return await self._text_of("expected", arguments)

    async def _text_of(self, method: str, arguments: Mapping[str, JsonValue]) -> str:
        """Ask the surface for an optional text about a call."""
        if self._target is None or not _overrides(self._surface, method):
            return ""
        try:
            unbound_arguments = self._unbound(self._received(arguments))
            text: str = await self._ask(getattr(self._surface, method), self._target, self.info.name, unbound_arguments)
        except Exception:  # third-party code boundary: the text is optional
            return ""
        return text

    async def miss(
        self, guard: ActionGuard, arguments: Mapping[str, JsonValue], facts: Mapping[str, JsonValue] | None
    ) -> RoutineMiss | None:
        """Compare the form of the call, then the facts."""
        return await self._changed_form(guard, arguments) or await super().miss(guard, arguments, facts)

    async def _changed_form(self, guard: ActionGuard, arguments: Mapping[str, JsonValue]) -> RoutineMiss | None:
        if guard.marked is None or not self.info.has_form:
            return None
        unbound_arguments = self._unbound(self._received(arguments))
        forms: list[JsonValue] = []
        for call in ({**unbound_arguments, **guard.marked}, unbound_arguments):
            try:
                forms.append(as_json(await self._ask(self._surface.form, self._target, self.info.name, call)))
            except Exception as error:  # third-party code boundary: without a form the call is not made
                return guard.other_form(f"no form that can be told: {reason_of(error)}")
        return guard.changed_form(*forms)

    async def relies_on(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Ask the surface; empty if it raises."""
        return await self._facts_of("relies_on", arguments)

    async def leaves(self, arguments: Mapping[str, JsonValue], answer: JsonValue) -> dict[str, JsonValue]:
        """Ask the surface; empty if it raises."""
        return await self._facts_of("leaves", arguments, answer)

    async def _facts_of(
        self, method: str, arguments: Mapping[str, JsonValue], *more: JsonValue
    ) -> dict[str, JsonValue]:
        """Ask the surface for optional facts about a call."""
        if self._target is None or not _overrides(self._surface, method):
            return {}
        try:
            unbound_arguments = self._unbound(self._received(arguments))
            asked = getattr(self._surface, method)
            facts = as_json(dict(await self._ask(asked, self._target, self.info.name, unbound_arguments, *more)))
        except Exception:  # third-party code boundary: a missing fact stops a routine that relies on it
            return {}
        return facts if isinstance(facts, dict) else {}

    async def probe(self, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Ask the surface, which may look at the target."""
        outcome: Probe = await self._ask(self._surface.probe, self._target, intent, foreseen, fingerprint)
        return outcome

    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Call it on its lane.

        A coroutine function is called on the event loop.
        """
        validated_arguments = self._filled_in(arguments, self._valid.pop(id(arguments), None))
        with guard.active():
            if self._tool.is_async:
                returned = await self._tool.fn(**validated_arguments)
            else:
                returned = await self._lanes.run(
                    self._lane, functools.partial(self._blocking, validated_arguments, guard)
                )
        answers = None if self._tool.is_mcp_answer(returned) else self._tool.answers
        if answers is not None and isinstance(returned, str | int) and type(returned) is answers.plain:
            return encodable(returned)
        try:
            if answers is not None:
                value = answers.json(encodable(returned))
            else:
                metadata = self._tool.mcp_metadata
                converted: Any = metadata.convert_result(encodable(returned))
        except Exception as error:  # an edge: validators of third parties
            msg = f"its answer is not of the declared type: {reason_of(error)}"
            raise BadAnswerError(msg) from error
        if answers is None:
            return value_of(converted, wrapped=metadata.wrap_output)
        _check_success(value if answers.wrapped else _unwrapped(value))
        return value

    def _blocking(self, validated_arguments: dict[str, Any], guard: EffectGuard) -> Any:
        try:
            return self._tool.fn(**validated_arguments)
        finally:
            guard.returned()


def _overrides(surface: Server, method: str) -> bool:
    """Return whether a surface has a method of its own."""
    return getattr(getattr(surface, method), "__func__", None) is not getattr(Server, method)


def declared_secret(schema: Mapping[str, Any]) -> frozenset[str]:
    """List the parameters that a schema declares as secret.

    The form is pydantic's for `SecretStr`.
    """
    parts = schema.get("properties", {})
    return frozenset(name for name, part in parts.items() if _is_secret(part))


def _is_secret(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("format") == "password" or any(map(_is_secret, schema.get("anyOf", ())))


def without(schema: dict[str, Any], names: Mapping[str, object]) -> dict[str, Any]:
    """Remove properties from an object's schema."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    return {**schema, "properties": properties, "required": required}


def value_of(result: CallToolResult, *, wrapped: bool) -> JsonValue:
    """Convert a tool's answer to JSON: its structured content, else its text.

    Raises:
        ToolFailure: If it is an error, also in the form ``{"success": false}`` that some MCP servers use.
    """
    text = "\n".join(block.text for block in result.content if block.type == "text")
    content: JsonValue = result.structured_content if result.structured_content is not None else (text or None)
    if result.is_error:
        raise ToolFailure(text or "the tool failed without saying why")
    inner = _unwrapped(content)
    _check_success(_parsed(text) if result.structured_content is None else inner, text)
    return inner if wrapped else content


def _unwrapped(content: JsonValue) -> JsonValue:
    """Return the answer in an object whose only field is `result`."""
    return content["result"] if isinstance(content, dict) and content.keys() == {"result"} else content


def _check_success(answer: JsonValue, text: str = "") -> None:
    """Raise the error in an answer of the form ``{"success": false}``.

    `text`, or the whole answer, stands for a missing reason.
    """
    if isinstance(answer, dict) and answer.get("success") is False:
        whole = text or json.dumps(answer, indent=2, ensure_ascii=False)
        raise ToolFailure(str(answer.get("error") or answer.get("message") or whole))


def _parsed(text: str) -> JsonValue:
    """Parse a text as JSON, which many MCP servers answer with.

    None if it is not JSON.
    """
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def schema_problem(schema: dict[str, Any], arguments: Mapping[str, JsonValue]) -> str | None:
    """Describe how arguments violate a JSON Schema; None if they are valid."""
    try:
        problem = next(validator_of(schema).iter_errors(dict(arguments)), None)
    except Exception as error:  # third-party code boundary: the schema may be anything
        return f"its schema can't be used: {error}"
    if problem is None:
        return None
    where = ".".join(map(str, problem.absolute_path))
    return f"{where}: {problem.message}" if where else str(problem.message)


def effect_of(annotations: Any, *, trusted: bool) -> Effect:
    """Read a tool's effect from MCP's annotations.

    Those of an untrusted MCP server are ignored.
    """
    if not trusted or annotations is None:
        return Effect.ONCE
    if annotations.read_only_hint:
        return Effect.READ
    return Effect.IDEMPOTENT if annotations.idempotent_hint else Effect.ONCE
