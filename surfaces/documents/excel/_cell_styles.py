"""The cell styles of a workbook."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_REVERSE, is_date_format, is_timedelta_format

from callboard.surfaces.documents._office import MAIN, q

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.documents._package import Element, Package

_FIRST_OWN_FORMAT = 164
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|[aA](?:[mM])?/[pP](?:[mM])?')
_STYLES_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"
_EMPTY = f"""<styleSheet xmlns="{MAIN}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>
<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>
<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>
<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>
<cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs></styleSheet>"""
_ORDER = ("numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs", "cellStyles", "dxfs")


class Styles:
    """The part ``xl/styles.xml``.

    A style is the index of an entry of its ``cellXfs``.
    """

    def __init__(self, package: Package, book: str) -> None:
        self._package = package
        self._book = book
        names = package.related(book, "styles")
        self._part = names[0] if names else ""
        self._formats: dict[int, str] = {}
        self._derived: dict[tuple[int, object], int] = {}

    def number_format(self, style: int) -> str:
        """Return the number format of a style; ``General`` by default."""
        if style not in self._formats:
            self._formats[style] = self._read_format(style)
        return self._formats[style]

    def is_date(self, style: int) -> bool:
        """Return whether a style shows numbers as dates or times."""
        return bool(is_date_format(self.number_format(style)))

    def is_span(self, style: int) -> bool:
        """Return whether a style shows numbers as spans of time."""
        return bool(is_timedelta_format(self.number_format(style)))

    def is_time(self, style: int) -> bool:
        """Return whether a style shows times, and no days."""
        code = _LITERAL.sub("", self.number_format(style)).lower()
        return self.is_date(style) and bool({*"hs"} & {*code}) and not {*"yd"} & {*code}

    def is_unlocked(self, style: int) -> bool:
        """Return whether a style unlocks cells of a protected sheet."""
        entries = self._package.tree(self._part).find(q("cellXfs")) if self._part else None
        if entries is None or not 0 <= style < len(entries):
            return False
        protection = entries[style].find(q("protection"))
        return protection is not None and protection.get("locked") in {"0", "false"}

    def with_number_format(self, style: int, code: str) -> int:
        """Derive a style with another number format."""
        return self.derive(style, ("number format", code), lambda entry: self._set_format(entry, code))

    def derive(self, style: int, key: object, change: Callable[[Element], None]) -> int:
        """Derive a style with a change to a copy of its entry.

        Equal keys give the same style.

        Returns the new style, or one that has the same content already.
        """
        cached_style = self._derived.get((style, key))
        if cached_style is not None:
            return cached_style
        entry = self.copied("cellXfs", str(style))
        change(entry)
        self._derived[style, key] = derived_style = self.intern("cellXfs", entry)
        return derived_style

    def intern(self, collection: str, entry: Element) -> int:
        """Add an entry to a collection if missing; return its index."""
        root = self.collection(collection)
        entries = _elements(root)
        root.append(entry)  # with the prefixes of the others
        text = etree.tostring(entry, method="c14n", with_tail=False)
        for number, existing_entry in enumerate(entries):
            if etree.tostring(existing_entry, method="c14n", with_tail=False) == text:
                root.remove(entry)
                return number
        root.set("count", str(len(entries) + 1))
        return len(entries)

    def copied(self, collection: str, number: str | None) -> Element:
        """Copy an entry of a collection, such as a font."""
        entries = _elements(self.collection(collection))
        index = _index(number)
        return copy.deepcopy(entries[index if 0 <= index < len(entries) else 0])

    def collection(self, name: str) -> Element:
        """Return a list of the styles for a change, never empty."""
        if not self._part:
            self._part = "xl/styles.xml"
            self._package.add(self._part, etree.fromstring(_EMPTY), _STYLES_TYPE)
            self._package.relate(self._book, "styles", self._part)
        root = self._package.edit(self._part)
        list_element = root.find(q(name))
        if list_element is None:
            list_element = etree.Element(q(name))
            preceding_names = _ORDER[: _ORDER.index(name)]
            index = sum(1 for child in _elements(root) if child.tag in {q(tag) for tag in preceding_names})
            root.insert(index, list_element)
        default = etree.fromstring(_EMPTY).find(q(name))
        if default is not None and not _elements(list_element):
            list_element.extend(list(default))
            list_element.set("count", str(len(_elements(list_element))))
        return list_element

    def add_difference(self, entry: Element) -> int:
        """Add an entry to the list of conditional formats' changes."""
        return self.intern("dxfs", entry)

    def number_of_format(self, code: str) -> int:
        """Return the number of a number format, which is added if missing."""
        number = BUILTIN_FORMATS_REVERSE.get(code)
        if number is None:
            number_formats = self.collection("numFmts")
            ids_by_code = {element.get("formatCode"): element.get("numFmtId") for element in _elements(number_formats)}
            ids = [_index(element.get("numFmtId")) for element in _elements(number_formats)]
            number = ids_by_code.get(code) or max([*ids, _FIRST_OWN_FORMAT - 1]) + 1
            if code not in ids_by_code:
                number_format = etree.SubElement(number_formats, q("numFmt"))
                number_format.set("numFmtId", str(number))
                number_format.set("formatCode", code)
                number_formats.set("count", str(len(_elements(number_formats))))
        return int(number)

    def code_of(self, number: str) -> str:
        """Return the number format that has a number."""
        root = self._package.tree(self._part) if self._part else None
        for number_format in [] if root is None else root.iterfind(f"{q('numFmts')}/{q('numFmt')}"):
            if number_format.get("numFmtId") == number:
                return str(number_format.get("formatCode", "General"))
        return str(BUILTIN_FORMATS.get(_index(number), "General"))

    def _set_format(self, entry: Element, code: str) -> None:
        entry.set("numFmtId", str(self.number_of_format(code)))
        entry.set("applyNumberFormat", "1")
        self._formats.clear()

    def _read_format(self, style: int) -> str:
        if not self._part:
            return "General"
        root = self._package.tree(self._part)
        cell_formats = root.find(q("cellXfs"))
        entries = _elements(cell_formats) if cell_formats is not None else []
        if not 0 <= style < len(entries):
            return "General"
        return self.code_of(entries[style].get("numFmtId", "0"))


def _elements(parent: Element) -> list[Element]:
    """List the children of an element that are no comments."""
    return [child for child in parent if isinstance(child.tag, str)]


def _index(text: str | None) -> int:
    """Read the number of an entry; 0 where there is none."""
    return int(text) if text and text.isascii() and text.isdigit() else 0
