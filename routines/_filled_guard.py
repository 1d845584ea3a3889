"""Guards of a step's actions.

They have marks in place of filled values, and the facts that the actions rely on.
"""

from __future__ import annotations

import hashlib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from callboard.messages import ActionGuard
from callboard.models import look_up, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.messages import RoutineAction

_PART = re.compile(r"\$\$\{|\$\{((?!secret:)[^}]*)\}")
"""A reference within a text. ``$${`` stands for a plain ``${``."""
_PLAIN = re.compile(r"[\w./](?:[\w./:@ -]*\w)?")
"""A usual value whose mark has the same signs: no option, pattern or expansion."""
_LETTERS = re.compile(r"\w+")
_DIGITS = 30


def action_guard(
    action: RoutineAction,
    step: int,
    tree: Mapping[str, Any],
    *,
    has_form: bool,
    usual: Mapping[str, JsonValue] = MappingProxyType({}),
) -> ActionGuard:
    """Make the guard of an action, with the values of this run.

    Args:
        action: The action, as it is written.
        step: The number of its step.
        tree: The values that references stand for.
        has_form: Whether its surface may tell the form of the call; else there are no marks.
        usual: The usual values of parameters. Where a form tells the signs of a value, they are to be as in these.

    Raises:
        LookupError: If a reference leads nowhere.
    """
    facts, marks = filled_facts(action.relies_on, tree), _Marks(tree, usual)
    marked = {name: marks.put_in(value) for name, value in action.arguments.items() if has_form}
    return ActionGuard(step=step, marked=marked if marks.texts else None, texts=marks.texts, relies_on=facts)


def filled_facts(facts: Mapping[str, JsonValue], tree: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return recorded facts by the names that they have in this run.

    Two values may be the same name now, as of one file to read and to make. Facts of it that differ can't hold at once.

    Raises:
        LookupError: If a reference in a name leads nowhere.
    """
    filled: dict[str, JsonValue] = {}
    for written, recorded in facts.items():
        name, value = str(resolve(written, tree)), resolve(recorded, tree)
        filled[name] = value if filled.get(name, value) == value else f"both {filled[name]} and {value}"
    return filled


class _Marks:
    """The marks of one action: numbers that no value is.

    They have the signs of the usual value between them.
    """

    def __init__(self, tree: Mapping[str, Any], usual: Mapping[str, JsonValue]) -> None:
        self._tree = tree
        self._usual = usual
        self.texts: dict[str, str] = {}

    def put_in(self, value: JsonValue) -> JsonValue:
        """Replace the references in all texts.

        Marks stand in place of texts, and other values are put in themselves.
        """
        if isinstance(value, dict):
            return {name: self.put_in(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.put_in(part) for part in value]
        if not isinstance(value, str):
            return value
        whole = _PART.fullmatch(value)
        if whole is not None and whole[1] is not None and not isinstance(look_up(whole[1], self._tree), str):
            resolved: JsonValue = resolve(value, self._tree)
            return resolved
        return _PART.sub(lambda part: "${" if part[1] is None else self._mark(part[1]), value)

    def _mark(self, path: str) -> str:
        usual = str(self._usual.get(path))
        mark = _LETTERS.sub(
            lambda part: _number(f"{part.start()} {len(self.texts)} {path} {self.texts}"),
            usual if _PLAIN.fullmatch(usual) else "0",
        )
        self.texts[mark] = str(look_up(path, self._tree))
        return mark


def _number(text: str) -> str:
    return str(int(hashlib.sha256(text.encode()).hexdigest(), 16))[:_DIGITS]
