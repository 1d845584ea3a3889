"""Cells of a large sheet, read from its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openpyxl.utils import column_index_from_string

from callboard.surfaces.documents._office import q

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMULA, _VALUE = q("f"), q("v")
_TOKEN = re.compile(
    '<row r="([0-9]+)"'
    '|<c r="([A-Z]+)[0-9]+"(?: s="([0-9]+)")?(?: t="(n|s|b|e|str|d|inlineStr)")?'
    '(?:/>|>(?:<f>([^<]*)</f>|<f t="shared" si="([0-9]+)"/>)?'
    '(?:<v>([^<]*)</v>|<is><t(?: xml:space="preserve")?>([^<]*)</t></is>)?</c>)'
)
_ENTITY = re.compile(r"&(?:#([0-9]+)|#x([0-9A-Fa-f]+)|([a-z]+));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class PlainFormula:
    """A formula of a cell, for reading as an element."""

    __slots__ = ("_shared", "text")

    def __init__(self, text: str | None, shared: str | None) -> None:
        self.text = text
        self._shared = shared

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default."""
        if self._shared is None:
            return default
        return {"t": "shared", "si": self._shared}.get(name, default)


class PlainCell:
    """A cell with a value or formula, read like an element."""

    __slots__ = ("formula", "inline", "kind", "style", "value")

    def __init__(self, style: str | None, kind: str | None, formula: PlainFormula | None, value: str | None) -> None:
        self.style = style
        self.kind = kind
        self.formula = formula
        self.value = value
        self.inline: str | None = None
        """The text that stands in the cell itself."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default."""
        value = self.kind if name == "t" else self.style if name == "s" else None
        return default if value is None else value

    def find(self, tag: str) -> PlainFormula | None:
        """Return the formula, for its tag."""
        return self.formula if tag == _FORMULA else None

    def findtext(self, tag: str, default: str | None = None) -> str | None:
        """Return the text of the value, for its tag."""
        return self.value if tag == _VALUE and self.value is not None else default

    @property
    def is_filled(self) -> bool:
        """Return whether the cell holds something."""
        if self.formula is not None or self.inline is not None:
            return True
        return bool(self.value) or (self.value is not None and self.kind == "str")


def plain_cells(block: bytes, *, placeholders: bool) -> Iterator[tuple[int, int, PlainCell]]:
    """Yield the cells of a block; unusual ones are left out.

    Args:
        block: The rows; their facts were read from the text.
        placeholders: Whether a formula's 0 stands for a result that was never computed.
    """
    text = block.decode()
    if "\r" in text:  # a parser replaces it
        return
    columns: dict[str, int] = {}
    row = 0
    for match in _TOKEN.finditer(text):
        number, letters, style, kind, formula_text, shared, value, inline = match.groups()
        if number is not None:
            row = int(number)
            continue
        formula = None
        if formula_text is not None or shared is not None:
            formula = PlainFormula(_unescape(formula_text) or None, shared)
            if placeholders and value == "0" and kind in {None, "n"}:
                value = None
        cell = PlainCell(style, kind, formula, _unescape(value) if value is not None and "&" in value else value)
        if inline is not None:
            cell.inline = _unescape(inline)
        yield row, columns.get(letters) or columns.setdefault(letters, column_index_from_string(letters)), cell


def _unescape(text: str | None) -> str | None:
    """Replace the entities of a text, as a parser does."""
    return _ENTITY.sub(_character, text) if text is not None and "&" in text else text


def _character(match: re.Match[str]) -> str:
    number, hexadecimal, name = match.groups()
    return _ENTITIES[name] if name else chr(int(number) if number else int(hexadecimal, 16))
