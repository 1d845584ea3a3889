"""The parameters of a recording, and their places in texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_PLAIN = re.compile(r"\$\{(?!secret:[A-Za-z0-9_.-]{1,100}\})")


class ParameterValues:
    """Replaces the values of parameters by references to them."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._names = {value: name for name, value in reversed(list(values.items()))}
        longest = sorted(self._names, key=len, reverse=True)
        edges = (rf"(?<![\w-]){re.escape(value)}(?!\.?[\w-])" for value in longest)
        self._any = re.compile("|".join(edges)) if longest else None

    def beside(self, others: Mapping[str, str]) -> ParameterValues:
        """Return these, and other values that a text may hold."""
        return ParameterValues({**self._values, **others}) if others else self

    def of(self, value: JsonValue) -> str:
        """Return the reference to the parameter with a value; empty without one."""
        name = self._names.get(value) if isinstance(value, str) else None
        return "" if name is None else f"${{{name}}}"

    def inside(self, text: str) -> str:
        """Replace the values in a text, and escape its other references."""
        if self._any is None:
            return escaped(text)
        end, written = 0, []
        for match in self._any.finditer(text):
            written += [escaped(text[end : match.start()]), f"${{{self._names[match[0]]}}}"]
            end = match.end()
        return "".join([*written, escaped(text[end:])])

    def throughout(self, value: JsonValue) -> JsonValue:
        """Replace the values in all texts of a value."""
        if isinstance(value, str):
            return self.inside(value)
        if isinstance(value, list):
            return [self.throughout(item) for item in value]
        if isinstance(value, dict):
            return {key: self.throughout(item) for key, item in value.items()}
        return value


def escaped(text: str) -> str:
    """Escape the references in a text, but for names of secrets."""
    return _PLAIN.sub("$${", text)
