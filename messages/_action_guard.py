"""The guard of a routine's action, and its miss."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pydantic import Field, JsonValue

from callboard.messages._base import Value
from callboard.messages._documented_fields import DocumentedFields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST = 200


class RoutineMiss(DocumentedFields, Value):
    """A step of a routine whose guard did not hold."""

    step: int = Field(ge=1)
    """The number of the step in the written list of the agent's steps, from 1."""
    expected: str
    """The recorded fact."""
    found: str
    """The present one."""

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"step {self.step}: expected {self.expected}; found {self.found}"


class ActionGuard(Value):
    """The guard of one action that repeats a routine's."""

    step: int = Field(ge=1)
    """The number of its step in the written list of the agent's steps, from 1."""
    marked: dict[str, JsonValue] | None = None
    """The arguments in which references stand for texts, with a mark in place of each; None without such ones."""
    texts: dict[str, str] = Field(default_factory=dict)
    """The texts, by their marks."""
    relies_on: dict[str, JsonValue] = Field(default_factory=dict)
    """The facts that must hold right before it."""

    def changed_form(self, marked: JsonValue, filled: JsonValue) -> RoutineMiss | None:
        """Compare the form with marks, once they are replaced, with the call's."""
        marks = re.compile("|".join(map(re.escape, self.texts)) or r"(?!)")
        expected = _with_texts(marked, lambda text: marks.sub(lambda mark: self.texts[mark[0]], text))
        return None if expected == filled else self.other_form(f"another form: {_short(filled)}")

    def other_form(self, found: str) -> RoutineMiss:
        """Make the miss of a call that has another form."""
        values = ", ".join(map(repr, self.texts.values()))
        recorded = f"the recorded form of the call with {'the values ' if len(self.texts) > 1 else ''}{values} in it"
        return RoutineMiss(step=self.step, expected=recorded, found=found)


def changed_fact(step: int, recorded: Mapping[str, JsonValue], facts: Mapping[str, JsonValue]) -> RoutineMiss | None:
    """Return the first recorded fact of a step that differs."""
    for name, value in recorded.items():
        if name not in facts or facts[name] != value:
            found = facts.get(name, "nothing known of it")
            return RoutineMiss(step=step, expected=f"{name!r} to be {value}", found=str(found))
    return None


def _with_texts(form: JsonValue, written: Callable[[str], str]) -> JsonValue:
    """Change the texts of a form, but no keys of objects."""
    match form:
        case str():
            return written(form)
        case list():
            return [_with_texts(part, written) for part in form]
        case dict():
            return {key: _with_texts(part, written) for key, part in form.items()}
        case _:
            return form


def _short(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
