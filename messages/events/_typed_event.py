"""The base of the classes of events."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AliasChoices, AliasGenerator, AliasPath, ConfigDict, Field
from pydantic_core import to_jsonable_python

from callboard.messages._base import Value
from callboard.messages._event import Event

T = TypeVar("T")

Datum = Annotated[T, Field(exclude=True, repr=False)]
"""A field that is a key of the event's ``data``. It is written once, in ``data``."""


def _source(name: str) -> str | AliasChoices:
    return name if name in Event.model_fields else AliasChoices(AliasPath("data", name), name)


class TypedEvent(Event):
    """An event with a field for each key of its ``data``.

    The fields are read from ``data``, and written back to it if they are given by name instead. A key that a later
    version adds has a default, so that events of earlier versions can be read.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=_source), defer_build=True
    )

    def model_post_init(self, context: Any, /) -> None:
        """Write fields that were given by name to ``data``."""
        for name in self.model_fields_set.difference(Event.model_fields, self.data):
            self.data[name] = to_jsonable_python(getattr(self, name))


class Part(Value):
    """A part of an event's data; keys of later versions are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
