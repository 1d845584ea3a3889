"""The recorded reason of a step, without data of others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.messages import one_line
from callboard.routines._origins import parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from callboard.messages import Observation, RoutineStep

LONGEST = 100
"""The most characters of a reason."""
_QUOTED = re.compile(r"(?:^|(?<=[\s(]))['\"](.+?)['\"](?!\w)|[“„«](.+?)[”“»]|`(.+?)`")
_WORD = re.compile(r"\$\{[^}]*\}|[^\s\"'“”„«»`(),;:!?]+")


def recorded_reason(thought: str, step: RoutineStep, observation: Observation, data: Collection[str]) -> str:
    """Return a thought as one line.

    It is empty if the thought quotes a value that is not in the step.
    """
    line = one_line(thought, LONGEST)
    texts = "\n".join(_texts(step))
    quoted = {text for match in _QUOTED.finditer(line) for text in match.groups() if text}
    words = {word.strip(".…") for word in _WORD.findall(line)}
    names = {text for text in quoted | set(filter(_is_name, words)) if not _has(texts, text)}
    if names & quoted or any(character.isdigit() for name in names for character in name):
        return ""
    known = "\n".join([*data, *(control.name for control in observation.controls), observation.text])
    return "" if any(_has(known, name) for name in names) else line


def _texts(step: RoutineStep) -> Iterator[str]:
    """Yield the texts that a step needs for its work."""
    yield from (text for control in step.controls for text in (control.kind, control.name, control.place, control.id))
    for value in (*(action.arguments for action in step.actions), step.result):
        yield from (str(part) for _, part in parts("", value) if isinstance(part, str | int | float))
    yield from (action.tool for action in step.actions)


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _is_name(word: str) -> bool:
    """Return whether a word may be a value.

    A value has digits, capitals, or signs within it.
    """
    if word.startswith("${"):
        return False
    signs = any(character.isdigit() or character in "@_/." for character in word)
    return signs or (len(word) > 1 and not word.islower())
