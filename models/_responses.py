"""Response schemas of agents' models.

They have the common keys of the field and their aliases.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from callboard.messages import (
    Action,
    AgentKind,
    AgentStatus,
    AskedQuestion,
    ControlRef,
    InvalidAnswerError,
    as_json,
    form_of,
    maker,
)
from callboard.models import _examples
from callboard.models._computer_actions import as_function, tool_call

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS_ALIASES = {
    "DELEGATE_TO_APP": AgentStatus.ASSIGN,
    "DONE": AgentStatus.FINISH,
    "FINISHED": AgentStatus.FINISH,
    "COMPLETE": AgentStatus.FINISH,
    "COMPLETED": AgentStatus.FINISH,
    "SUCCESS": AgentStatus.FINISH,
    "FAILED": AgentStatus.FAIL,
    "ASK": AgentStatus.PENDING,
}
"""Other names that models use for a status."""

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""Reasoning that some models write before the answer."""

_THINKS = re.compile(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL | re.IGNORECASE)
"""The start of reasoning without an end tag."""

_DECISION = "decision"
"""The folded key of an answer's decision."""

_MOST_PROBLEMS = 10
"""Maximum number of problems of an answer that its model is told."""

_NO_TOOL = frozenset({"", "none", "null", "no_action", "n/a"})
"""Names that models use for calling no tool."""


def names(*spellings: str) -> AliasChoices:
    """Return the spellings of a key in answers."""
    return AliasChoices(*spellings)


def list_of(value: object) -> list[object]:
    """Convert a value to a list.

    A single object becomes a list; null or an empty value becomes an empty list.
    """
    if value is None or value in ({}, ""):
        return []
    return value if isinstance(value, list) else [value]


def _object_for_null(value: object) -> object:
    """Convert null to an empty object."""
    return {} if value is None else value


def _worded(value: object) -> object:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Words = Annotated[str, BeforeValidator(_worded)]
"""Text; null is converted to an empty string, and a number (a label) to its digits."""


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: object) -> object:
        """Correct the case and the separators of keys."""
        if not isinstance(value, dict):
            return value
        spellings = _key_spellings(cls, tuple(value))
        return {spellings.get(key, key): item for key, item in value.items()} if spellings else value


@functools.lru_cache(maxsize=1024)
def _folded(key: object) -> str:
    return re.sub(r"[\W_]+", "", str(key)).casefold()


@functools.cache
def _keys_of(response: type[BaseModel]) -> dict[str, str]:
    """Map each folded key to its first spelling."""
    keys: dict[str, str] = {}
    for field in response.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            for name in field.validation_alias.choices:
                keys.setdefault(_folded(name), str(name))
    return keys


@functools.lru_cache(maxsize=1024)
def _key_spellings(response: type[BaseModel], keys: tuple[str, ...]) -> dict[str, str]:
    """Map misspelled keys to the right ones, except keys that would collide."""
    known_keys = _keys_of(response)
    spellings = {key: key if key in known_keys.values() else known_keys.get(_folded(key), key) for key in keys}
    often = Counter(spellings.values())
    return {key: spelling for key, spelling in spellings.items() if spelling != key and often[spelling] == 1}


@functools.lru_cache(maxsize=1024)
def _decisions(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that are spellings of the decision's key."""
    return tuple(key for key in keys if _folded(key) == _DECISION)


class ActionResponse(_Response):
    """One tool call in an answer."""

    function: Words = Field(default="", validation_alias=names("Function", "function", "tool"))
    arguments: Annotated[dict[str, JsonValue], BeforeValidator(_object_for_null)] = Field(
        default_factory=dict, validation_alias=names("Args", "args", "Arguments", "arguments", "parameters")
    )
    label: Words = Field(default="", validation_alias=names("ControlLabel", "control_label", "control_id"))
    text: Words = Field(default="", validation_alias=names("ControlText", "control_text", "control_name"))
    status: Words = Field(default="", validation_alias=names("Status", "status"))


def _action(response: AgentResponse | ActionResponse) -> Action | None:
    """Convert a response to an action; None if it names no function."""
    if response.function.strip().lower() in _NO_TOOL:
        return None
    arguments, label, text = response.arguments, response.label, response.text
    if "control_id" in arguments:
        label = label or _given_text(arguments["control_id"])
    if "control_name" in arguments:
        text = text or _given_text(arguments["control_name"])
    control = ControlRef(id=label, name=text) if label or text else None
    return _made_action(tool=response.function, arguments=arguments, control=control)


_made_action = maker(Action)


def _given_text(value: JsonValue) -> str:
    return "" if value is None else str(value)


class QuestionResponse(_Response):
    """One question in an answer."""

    text: Words = Field(validation_alias=names("text", "Question", "question"))
    choices: list[str] = Field(default_factory=list, validation_alias=names("choices", "Choices", "options"))


def _question(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


class AgentResponse(_Response):
    """An answer of an agent's model.

    Its class variables describe the form in prompts.
    """

    examples: ClassVar[tuple[_examples.Example, ...]] = _examples.APP
    """Example answers, each with the situation in which it is right."""
    result_meaning: ClassVar[str] = "the answer in words; null to hand over what your last action returned."
    """The description of the key Result."""
    status_meanings: ClassVar[Mapping[str, str]] = {}
    """Descriptions of statuses whose meaning differs from that for other kinds."""

    observation: Words = Field(default="", validation_alias=names("Observation", "observation"))
    thought: Words = Field(default="", validation_alias=names("Thought", "thought"))
    comment: Words = Field(default="", validation_alias=names("Comment", "comment", "Message", "message"))
    plan: Annotated[list[Words], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("Plan", "plan")
    )
    status: Words = Field(default="", validation_alias=names("Status", "status"))
    questions: Annotated[list[Annotated[QuestionResponse, BeforeValidator(_question)]], BeforeValidator(list_of)] = (
        Field(default_factory=list, validation_alias=names("Questions", "questions", "Question", "question"))
    )
    result: JsonValue = Field(default=None, validation_alias=names("Result", "result"))
    actions: Annotated[list[ActionResponse], BeforeValidator(list_of)] = Field(
        default_factory=list,
        validation_alias=names("Actions", "actions", "ActionList", "action_list", "Action", "action"),
    )
    function: Words = Field(default="", validation_alias=names("Function", "function"))
    arguments: Annotated[dict[str, JsonValue], BeforeValidator(_object_for_null)] = Field(
        default_factory=dict, validation_alias=names("Args", "args", "Arguments", "arguments")
    )
    label: Words = Field(default="", validation_alias=names("ControlLabel", "control_label"))
    text: Words = Field(default="", validation_alias=names("ControlText", "control_text"))

    def decided_status(self) -> str:
        """Return the normalised status of the answer.

        Without one it is that of the last action, else empty.
        """
        status = self.status or next((a.status for a in reversed(self.actions) if a.status), "")
        name = status.strip().upper().replace(" ", "_").replace("-", "_")
        return str.__str__(STATUS_ALIASES.get(name, name))  # no member of an enumeration: it is kept and told

    def decided_actions(self) -> tuple[Action, ...]:
        """Return the actions, including one in the flat form."""
        responses: tuple[AgentResponse | ActionResponse, ...] = (self, *self.actions)
        return tuple(filter(None, map(_action, responses)))

    def asked(self) -> tuple[AskedQuestion, ...]:
        """Return the questions; a PENDING answer without one asks its comment."""
        questions = tuple(AskedQuestion(text=q.text, choices=tuple(q.choices)) for q in self.questions if q.text)
        if not questions and self.decided_status() == AgentStatus.PENDING:
            text = self.comment or self.thought or "How shall I go on?"
            return (AskedQuestion(text=text),)
        return questions


class SubtaskResponse(_Response):
    """One of several subtasks in a HostAgent's answer."""

    subtask: Words = Field(
        default="",
        validation_alias=names("Current Sub-Task", "CurrentSubtask", "current_subtask", "Subtask", "subtask"),
    )
    label: Words = Field(default="", validation_alias=names("ControlLabel", "control_label"))
    text: Words = Field(default="", validation_alias=names("ControlText", "control_text", "Target", "target"))
    after: Annotated[list[int], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("After", "after")
    )
    after_any: Annotated[list[int], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("AfterAny", "after_any")
    )


class HostResponse(AgentResponse):
    """A HostAgent's answer.

    Its control label and text name the target of an ASSIGN.
    """

    examples = _examples.HOST
    result_meaning = "what the request asked to be told, in words; null if it asked for something to be done."
    status_meanings: ClassVar[Mapping[str, str]] = {AgentStatus.CONTINUE: "your own actions run, then you look again."}

    subtask: Words = Field(
        default="",
        validation_alias=names("Current Sub-Task", "CurrentSubtask", "current_subtask", "Subtask", "subtask"),
    )
    subtasks: Annotated[list[SubtaskResponse], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("Sub-Tasks", "Subtasks", "SubTasks", "subtasks")
    )
    stops_group: bool = Field(default=False, validation_alias=names("StopAtFailure", "stop_at_failure"))

    def decided_actions(self) -> tuple[Action, ...]:
        """Return the actions without controls: here the flat control names a target."""
        return tuple(a.model_copy(update={"control": None}) for a in super().decided_actions())


class AppResponse(AgentResponse):
    """An AppAgent's answer."""

    result_meaning = (
        "what you hand over: for data that you read, the reference to it (${steps.…}), never in words; to a "
        "question, the answer in words; null if you were asked to do something."
    )

    reannotate: Annotated[list[Words], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("ControlReannotate", "control_reannotate", "reannotate")
    )


class MobileResponse(AgentResponse):
    """A MobileAgent's answer."""

    examples = _examples.MOBILE


class LinuxResponse(AgentResponse):
    """A LinuxAgent's answer."""

    examples = _examples.LINUX


class OperatorResponse(AgentResponse):
    """An operator's answer, whose actions use points of the picture."""

    examples = _examples.OPERATOR

    @field_validator("actions", mode="before")
    @classmethod
    def _as_functions(cls, value: object) -> list[object]:
        return [as_function(call) for call in list_of(value)]

    def decided_actions(self) -> tuple[Action, ...]:
        """Return the tool calls, without actions that only look again.

        Raises:
            InvalidAnswerError: If an action's arguments are invalid.
        """
        calls = (tool_call(call.tool, call.arguments) for call in super().decided_actions())
        return tuple(call for call in calls if call is not None)


def by_picture(kind: str, response: type[AgentResponse]) -> bool:
    """Return whether agents of a kind see only their target's picture.

    It depends on the kind's name or its class of answers.
    """
    return kind == AgentKind.OPERATOR or issubclass(response, OperatorResponse)


def read_response(schema: type[AgentResponse], content: object) -> AgentResponse:
    """Parse a model's answer into the schema of its kind of agent.

    Raises:
        InvalidAnswerError: If it is not a JSON object of the schema; the message is written for the model.
    """
    content = parsed(content)
    if not isinstance(content, dict):
        msg = f"the answer must be one JSON object, and is {form_of(content)}"
        raise InvalidAnswerError(msg)
    inside = _decisions(tuple(content))
    try:
        return schema.model_validate(_flat(content, inside[0]) if len(inside) == 1 else content)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        reasons = [problem_of(problem) for problem in problems[:_MOST_PROBLEMS]]
        if len(problems) > len(reasons):
            reasons.append(f"and {len(problems) - len(reasons)} more")
        raise InvalidAnswerError("; ".join(reasons)) from error


def _flat(content: dict[str, Any], inside: str) -> dict[str, Any]:
    """Merge the decision's keys into the answer.

    The flat form is valid, too.
    """
    if not isinstance(content[inside], dict):
        msg = f"Decision: must be one JSON object with the Status in it, and is {form_of(content[inside])}"
        raise InvalidAnswerError(msg)
    beside = {key: value for key, value in content.items() if key != inside}
    twice = beside.keys() & content[inside].keys()
    if twice:
        msg = f"{', '.join(sorted(twice))}: appears both in the decision and beside it"
        raise InvalidAnswerError(msg)
    return {**beside, **content[inside]}


def parsed(content: object) -> object:
    """Parse JSON and reject values that can't be serialised.

    They are NaN, lone surrogates and deep nesting.
    """
    try:
        if isinstance(content, str):
            content = _read(content)
        try:
            return as_json(content)
        except ValueError:  # `json` accepts more, or names the problem
            json.dumps(content, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"the answer is not JSON: {error}"
        raise InvalidAnswerError(msg) from error
    return content


class _TwiceError(ValueError):
    """A duplicate key in an object, which is ambiguous."""


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(members)
    if len(content) != len(members):
        often = Counter(key for key, _ in members)
        msg = f"the key {next(key for key in often if often[key] > 1)!r} appears twice in one object"
        raise _TwiceError(msg)
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _read(text: str) -> object:
    """Parse JSON, ignoring reasoning, code fences and text around it.

    Raises:
        ValueError: If there is no object, more than one, a broken one, or one with a duplicate key.
    """
    text = _THOUGHTS.sub("", text, count=1)
    try:
        return _DECODER.decode(text)
    except _TwiceError:
        raise
    except ValueError:
        if only_thought(text):
            msg = "its thoughts are not closed"
            raise ValueError(msg) from None
        objects = list(_objects(text))
        if not objects:
            raise
    if any(candidate != objects[0] for candidate in objects):
        msg = f"it holds {len(objects)} objects; one is asked for"
        raise ValueError(msg)
    return objects[0]


def only_thought(content: object) -> bool:
    """Return whether the text has only reasoning, finished or not."""
    if not isinstance(content, str):
        return False
    remainder = _THOUGHTS.sub("", content, count=1)
    return not remainder.strip() or _THINKS.search(remainder.partition("{")[0]) is not None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the outermost JSON objects in a text.

    Raises:
        ValueError: If one has a duplicate key, or a later one is broken.
    """
    start, some = text.find("{"), False
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except _TwiceError:
            raise
        except ValueError as error:
            if not some:
                return  # broken JSON is not repaired
            msg = f"the text at character {start}, after an object, is not an object: {error}; answer with one object"
            raise ValueError(msg) from error
        if value:
            some = True
            yield value
        start = text.find("{", end)


def problem_of(problem: Any) -> str:
    """Put an error of the validation into words for a model."""
    where = ".".join(str(part) for part in problem["loc"])
    what = "unknown key" if problem["type"] == "extra_forbidden" else problem["msg"]
    return f"{where}: {what}"
