"""The base classes of messages, and the names of identities and units."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, core_schema

from callboard.messages._deferred_model import DeferredModel

_KIND = r"[a-z][a-z0-9_-]{0,39}"
_IS_KIND = re.compile(_KIND).fullmatch

_CONFIG = ConfigDict(
    frozen=True,
    strict=True,
    extra="forbid",
    allow_inf_nan=False,
    ser_json_bytes="base64",
    val_json_bytes="base64",
)

STORED = {"stored": True}
"""The context in which a journal's messages are validated: earlier versions allowed other ids."""

TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$")]
"""A task's name, unique within one supervisor. `Task.id` has the rules for new ones; earlier versions allowed ``:``."""

RunId = Annotated[str, StringConstraints(min_length=1, max_length=120)]
"""One piece of work of one agent: ``<task>~0`` is a HostAgent's, ``<task>~1`` the first subtask. It is safe in URLs.
Tasks of earlier journals keep the form ``<task>/1``."""

KindName = Annotated[str, StringConstraints(pattern=f"^{_KIND}$")]
"""The name of a kind of agent: small letters, digits and ``_ -``, at most 40. `AgentKind` has those that ship."""

Address = Annotated[str, StringConstraints(pattern=f"^{_KIND}/.+$", max_length=500)]
"""The address of an agent, ``<kind>/<target>``: ``host/<task>``, ``app/<root>/<process>``, ``mobile/<serial>``,
``linux/<host>``, ``operator/<root>/<process>``. Other kinds choose the part after their name themselves."""

Token = int
"""The fencing token of a lease on a target: its number. 0 stands for "not leased yet"."""

Seconds = float
"""A span of time in seconds."""

Timestamp = float
"""Seconds since the epoch, UTC."""


def is_of_task(name: str, task_id: str) -> bool:
    """Return whether a run or a call is one of a task."""
    return name.startswith((f"{task_id}~", f"{task_id}/"))


def number_of(run_id: str) -> int:
    """Return the number of a run's subtask; 0 for a HostAgent's run."""
    number = run_id.replace("/", "~").rpartition("~")[2]
    return int(number) if number.isdecimal() else 0


class Term(StrEnum):
    """An enumeration of strings that serializes fast.

    It is written as plain text: pydantic would otherwise call Python to get the value of each member.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of an enumeration that serializes as a string."""
        return cast("CoreSchema", {**handler(source), "serialization": core_schema.simple_ser_schema("str")})


class AgentKind(Term):
    """The kinds of agent that ship, as the first part of addresses.

    A program may add others, by their names.
    """

    HOST = "host"
    """Plans a task and assigns its subtasks."""
    APP = "app"
    """Works in one application window."""
    MOBILE = "mobile"
    """Works on one Android device."""
    LINUX = "linux"
    """Works in one shell."""
    OPERATOR = "operator"
    """Works from pictures alone."""


REMOTE = "remote"
"""The kind of agent whose work another machine of the fleet does. It has no model, so it is no `AgentKind`."""

LOCAL_POOL = "local"
"""The part of an address at which a machine of this computer is chosen for the subtask (`fleet.local`)."""

ANY_MACHINE = "any"
"""The machine of targets that any machine of the fleet may work on, if it has such a one; no machine has this name."""


def agent_kind(address: str) -> str:
    """Return the kind of agent at an address, even one unknown here.

    Raises:
        ValueError: If the first part of the address can't be the name of a kind.
    """
    kind, slash, _ = address.partition("/")
    if not slash or not _IS_KIND(kind):
        msg = f"{address!r} is not an address: it does not begin with a kind of agent"
        raise ValueError(msg)
    return kind


def _setter(name: str) -> Callable[[BaseModel, object], None]:
    return cast("Callable[[BaseModel, object], None]", BaseModel.__dict__[name].__set__)


set_fields, set_names = _setter("__dict__"), _setter("__pydantic_fields_set__")
set_extra, set_private = _setter("__pydantic_extra__"), _setter("__pydantic_private__")
"""Set the members of a model directly. `object.__setattr__` would look each of them up by name."""


class Value(DeferredModel):
    """A frozen, strict part of a message; unknown keys are refused."""

    model_config = _CONFIG

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy as pydantic does, but without `copy.copy`.

        Each step copies dozens of values.
        """
        if deep or self.__pydantic_private__:
            return super().model_copy(update=update, deep=deep)
        new = object.__new__(type(self))
        changes = update or {}
        set_fields(new, {**self.__dict__, **changes})
        names = self.__pydantic_fields_set__  # safe to share: the value is frozen, so the set never changes
        set_names(new, names if names.issuperset(changes) else {*names, *changes})
        set_extra(new, None)
        set_private(new, None)
        return new


class Message(Value):
    """A frozen, strict, tagged message.

    Subclasses set ``kind`` to a literal of their own.
    """

    schema_version: Literal[1] = Field(
        default=1, description="The version of the message's shape; a reader refuses one that it does not know."
    )

    registry: ClassVar[dict[str, type[Message]]] = {}
    """Every message class by its tag. Readers of a journal and ``callboard schema`` use it."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Register a class that has a tag.

        Two classes with one tag are refused, except for a class and its subclasses: a tag leads to the first.
        """
        super().__pydantic_init_subclass__(**kwargs)
        field = cls.model_fields.get("kind")
        if field is None:
            return
        registered = Message.registry.setdefault(field.default, cls)
        if not issubclass(cls, registered) and registered.__qualname__ != cls.__qualname__:
            msg = f"two messages share the tag {field.default!r}: {registered.__qualname__} and {cls.__qualname__}"
            raise TypeError(msg)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show the fields that differ from their defaults."""
        fields = type(self).model_fields
        for name, value in super().__repr_args__():
            field = fields.get(name or "")
            default = field.get_default(call_default_factory=True) if field is not None else None
            if name not in {"kind", "schema_version"} and value != default:
                yield name, Shown(value)


class Shown:
    """A field's value in the representation of a message.

    Long values are cut, and enumerations are plain values.
    """

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        match self._value:
            case Enum(value=plain):
                return repr(plain)
            case bytes() as data:
                return f"<{len(data)} bytes>"
            case value:
                return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = 4
_SHORT.maxlevel = 3


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict)) else value


AnySequence = BeforeValidator(_as_tuple)
"""Accept a list where a tuple is stored, for messages that people write by hand."""


def as_texts(value: object) -> object:
    """Accept a single text where a tuple of texts is stored."""
    return (value,) if isinstance(value, str) else value
