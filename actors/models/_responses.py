"""The response schemas: what an agent's model has to answer, in the field's own keys, read with its known aliases."""

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

from callboard.actors.models import _examples
from callboard.actors.models._computer_use import as_function, tool_call
from callboard.messages import Action, AgentStatus, AskedQuestion, ControlRef, InvalidAnswerError, as_json, maker

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
"""Other words that models use for a status."""

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""What some models say to themselves before they answer."""

_THINKS = re.compile(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL | re.IGNORECASE)
"""Where thoughts begin that do not end."""

_DECISION = "decision"
"""The member of an answer that says what to do, in letters alone."""

_NO_TOOL = frozenset({"", "none", "null", "no_action", "n/a"})
"""What models call no tool at all."""


def _names(*names: str) -> AliasChoices:
    return AliasChoices(*names)


def _list_of(value: object) -> list[object]:
    """Take one object where a list is meant, and nothing where there is none."""
    if value is None or value in ({}, ""):
        return []
    return value if isinstance(value, list) else [value]


def _given(value: object) -> object:
    """Take null for no arguments."""
    return {} if value is None else value


def _worded(value: object) -> object:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Words = Annotated[str, BeforeValidator(_worded)]
"""Text; null counts as none, a number as its digits (labels)."""


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: object) -> object:
        """Take a key in other capitals, or with other signs between its words, for the one that is meant."""
        if not isinstance(value, dict):
            return value
        meant = _meant(cls, tuple(value))
        return {meant.get(key, key): item for key, item in value.items()} if meant else value


@functools.lru_cache(maxsize=1024)
def _folded(key: object) -> str:
    return re.sub(r"[\W_]+", "", str(key)).casefold()


@functools.cache
def _keys_of(response: type[BaseModel]) -> dict[str, str]:
    """Give the first spelling of each key by its letters alone."""
    keys: dict[str, str] = {}
    for field in response.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            for name in field.validation_alias.choices:
                keys.setdefault(_folded(name), str(name))
    return keys


@functools.lru_cache(maxsize=1024)
def _meant(response: type[BaseModel], keys: tuple[str, ...]) -> dict[str, str]:
    """Give the keys that are meant by others of an object; where two mean the same one, both stay as they are."""
    known = _keys_of(response)
    meant = {key: key if key in known.values() else known.get(_folded(key), key) for key in keys}
    often = Counter(meant.values())
    return {key: other for key, other in meant.items() if other != key and often[other] == 1}


@functools.lru_cache(maxsize=1024)
def _decisions(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Give those of an object's keys that stand for its decision."""
    return tuple(key for key in keys if _folded(key) == _DECISION)


class ActionResponse(_Response):
    """One tool call in an answer."""

    function: Words = Field(default="", validation_alias=_names("Function", "function", "tool"))
    arguments: Annotated[dict[str, JsonValue], BeforeValidator(_given)] = Field(
        default_factory=dict, validation_alias=_names("Args", "args", "Arguments", "arguments", "parameters")
    )
    label: Words = Field(default="", validation_alias=_names("ControlLabel", "control_label", "control_id"))
    text: Words = Field(default="", validation_alias=_names("ControlText", "control_text", "control_name"))
    status: Words = Field(default="", validation_alias=_names("Status", "status"))


def _action(said: AgentResponse | ActionResponse) -> Action | None:
    """Make the action of an answer, or of one in its list; None when the model named no function."""
    if said.function.strip().lower() in _NO_TOOL:
        return None
    given, label, text = said.arguments, said.label, said.text
    if "control_id" in given:
        label = label or _given_text(given["control_id"])
    if "control_name" in given:
        text = text or _given_text(given["control_name"])
    control = ControlRef(id=label, name=text) if label or text else None
    return _made_action(tool=said.function, arguments=given, control=control)


_made_action = maker(Action)


def _given_text(value: JsonValue) -> str:
    return "" if value is None else str(value)


class QuestionResponse(_Response):
    """One question in an answer."""

    text: Words = Field(validation_alias=_names("text", "Question", "question"))
    choices: list[str] = Field(default_factory=list, validation_alias=_names("choices", "Choices", "options"))


def _question(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


class AgentResponse(_Response):
    """An answer of an agent's model, and what a prompt says of its form: a kind of agent is shown that of its class."""

    examples: ClassVar[tuple[_examples.Example, ...]] = _examples.APP
    """Answers of the class, each with the moment at which it was right."""
    result_meaning: ClassVar[str] = "the answer in words; null to hand over what your last action returned."
    """What belongs into its key Result."""
    status_meanings: ClassVar[Mapping[str, str]] = {}
    """What statuses mean to it, where that differs from what they mean to the others."""

    observation: Words = Field(default="", validation_alias=_names("Observation", "observation"))
    thought: Words = Field(default="", validation_alias=_names("Thought", "thought"))
    comment: Words = Field(default="", validation_alias=_names("Comment", "comment", "Message", "message"))
    plan: Annotated[list[Words], BeforeValidator(_list_of)] = Field(
        default_factory=list, validation_alias=_names("Plan", "plan")
    )
    status: Words = Field(default="", validation_alias=_names("Status", "status"))
    questions: Annotated[list[Annotated[QuestionResponse, BeforeValidator(_question)]], BeforeValidator(_list_of)] = (
        Field(default_factory=list, validation_alias=_names("Questions", "questions", "Question", "question"))
    )
    result: JsonValue = Field(default=None, validation_alias=_names("Result", "result"))
    actions: Annotated[list[ActionResponse], BeforeValidator(_list_of)] = Field(
        default_factory=list,
        validation_alias=_names("Actions", "actions", "ActionList", "action_list", "Action", "action"),
    )
    function: Words = Field(default="", validation_alias=_names("Function", "function"))
    arguments: Annotated[dict[str, JsonValue], BeforeValidator(_given)] = Field(
        default_factory=dict, validation_alias=_names("Args", "args", "Arguments", "arguments")
    )
    label: Words = Field(default="", validation_alias=_names("ControlLabel", "control_label"))
    text: Words = Field(default="", validation_alias=_names("ControlText", "control_text"))

    def decided_status(self) -> str:
        """Give the status in the table's spelling: the answer's own, else its last action's; empty if there is none."""
        said = self.status or next((a.status for a in reversed(self.actions) if a.status), "")
        word = said.strip().upper().replace(" ", "_").replace("-", "_")
        return str.__str__(STATUS_ALIASES.get(word, word))  # no member of an enumeration: it is kept and told

    def decided_actions(self) -> tuple[Action, ...]:
        """Give the actions, those of the flat form included."""
        said: tuple[AgentResponse | ActionResponse, ...] = (self, *self.actions)
        return tuple(filter(None, map(_action, said)))

    def asked(self) -> tuple[AskedQuestion, ...]:
        """Give the questions; a PENDING answer without one asks with its comment."""
        asked = tuple(AskedQuestion(text=q.text, choices=tuple(q.choices)) for q in self.questions if q.text)
        if not asked and self.decided_status() == AgentStatus.PENDING:
            text = self.comment or self.thought or "How shall I go on?"
            return (AskedQuestion(text=text),)
        return asked


class HostResponse(AgentResponse):
    """A HostAgent's answer. Its control label and text name the target of an ASSIGN."""

    examples = _examples.HOST
    result_meaning = "what the request asked to be told, in words; null if it asked for something to be done."
    status_meanings: ClassVar[Mapping[str, str]] = {AgentStatus.CONTINUE: "your own actions run, then you look again."}

    subtask: Words = Field(
        default="",
        validation_alias=_names("Current Sub-Task", "CurrentSubtask", "current_subtask", "Subtask", "subtask"),
    )

    def decided_actions(self) -> tuple[Action, ...]:
        """Give the actions; the flat control names a target here, not a control."""
        return tuple(a.model_copy(update={"control": None}) for a in super().decided_actions())


class AppResponse(AgentResponse):
    """An AppAgent's answer."""

    result_meaning = (
        "what you hand over: for data that you read, the reference to it (${steps.…}), never in words; to a "
        "question, the answer in words; null if you were asked to do something."
    )

    reannotate: Annotated[list[Words], BeforeValidator(_list_of)] = Field(
        default_factory=list, validation_alias=_names("ControlReannotate", "control_reannotate", "reannotate")
    )


class MobileResponse(AgentResponse):
    """A MobileAgent's answer."""

    examples = _examples.MOBILE


class LinuxResponse(AgentResponse):
    """A LinuxAgent's answer."""

    examples = _examples.LINUX


class OperatorResponse(AgentResponse):
    """An operator's answer: each of its actions says what is done at which point of the picture."""

    examples = _examples.OPERATOR

    @field_validator("actions", mode="before")
    @classmethod
    def _as_functions(cls, value: object) -> list[object]:
        return [as_function(said) for said in _list_of(value)]

    def decided_actions(self) -> tuple[Action, ...]:
        """Give the tool calls; what only looks again is none.

        Raises:
            InvalidAnswerError: If an action's arguments do not fit it.
        """
        calls = (tool_call(said.tool, said.arguments) for said in super().decided_actions())
        return tuple(call for call in calls if call is not None)


def read_response(schema: type[AgentResponse], content: object) -> AgentResponse:
    """Read a model's answer in the schema of its kind of agent.

    Raises:
        InvalidAnswerError: If it is no JSON object of the schema; the text is fit to be sent back to the model.
    """
    content = _parsed(content)
    if not isinstance(content, dict):
        msg = f"the answer must be one JSON object, not a {type(content).__name__}"
        raise InvalidAnswerError(msg)
    inside = _decisions(tuple(content))
    try:
        return schema.model_validate(_flat(content, inside[0]) if len(inside) == 1 else content)
    except ValidationError as error:
        raise InvalidAnswerError("; ".join(_problem(problem) for problem in error.errors())) from error


def _flat(content: dict[str, Any], inside: str) -> dict[str, Any]:
    """Take what stands in the decision out of it: an answer in which everything stands side by side is one as well."""
    if not isinstance(content[inside], dict):
        given = type(content[inside]).__name__
        msg = f"Decision: must be one JSON object with the Status in it, not a {given}"
        raise InvalidAnswerError(msg)
    beside = {key: value for key, value in content.items() if key != inside}
    twice = beside.keys() & content[inside].keys()
    if twice:
        msg = f"{', '.join(sorted(twice))}: stands both in the decision and beside it"
        raise InvalidAnswerError(msg)
    return {**beside, **content[inside]}


def _parsed(content: object) -> object:
    """Read JSON text, and refuse what can't be written down again: NaN, lone surrogates, endless nesting."""
    try:
        if isinstance(content, str):
            content = _read(content)
        try:
            return as_json(content)
        except ValueError:  # this is more lenient, or says why it can't be written down
            json.dumps(content, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"the answer is no JSON: {error}"
        raise InvalidAnswerError(msg) from error
    return content


class _TwiceError(ValueError):
    """An object has a key twice: which of them is meant is not guessed at."""


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) != len(members):
        often = Counter(key for key, _ in members)
        msg = f"the key {next(key for key in often if often[key] > 1)!r} stands twice in one object"
        raise _TwiceError(msg)
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _read(text: str) -> object:
    """Read JSON, also with thoughts before it, in a code block, or with words around it.

    Raises:
        ValueError: If there is none, more than one object, a broken one, or one with a key twice.
    """
    text = _THOUGHTS.sub("", text, count=1)
    try:
        return _DECODER.decode(text)
    except _TwiceError:
        raise
    except ValueError:
        if only_thought(text):
            msg = "its thoughts have no end"
            raise ValueError(msg) from None
        found = list(_objects(text))
        if not found:
            raise
    if any(other != found[0] for other in found):
        msg = f"it holds {len(found)} objects; one is asked for"
        raise ValueError(msg)
    return found[0]


def only_thought(content: object) -> bool:
    """Tell whether an answer's text has thoughts before any object that do not end."""
    if not isinstance(content, str):
        return False
    return _THINKS.search(_THOUGHTS.sub("", content, count=1).partition("{")[0]) is not None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects in a text that are in no other one.

    Raises:
        ValueError: If one has a key twice, or what follows the first is broken.
    """
    start, some = text.find("{"), False
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except _TwiceError:
            raise
        except ValueError as error:
            if not some:
                return  # what is broken is not guessed at
            msg = f"what begins at character {start} after an object is none: {error}; one whole object is asked for"
            raise ValueError(msg) from error
        if value:
            some = True
            yield value
        start = text.find("{", end)


def _problem(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    what = "unknown key" if problem["type"] == "extra_forbidden" else problem["msg"]
    return f"{where}: {what}"
