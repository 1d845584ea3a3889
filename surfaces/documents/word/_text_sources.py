"""Texts with a source elsewhere: fields and content controls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docx.oxml.ns import qn

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docx.oxml.xmlchemy import BaseOxmlElement

_FREE_FIELDS = frozenset({"HYPERLINK", "FORMTEXT"})
"""Fields whose result a person may edit; the others compute it again."""
_REPEATED = "{http://schemas.microsoft.com/office/word/2012/wordml}repeatingSectionItem"
_COMPUTED_INPUTS = frozenset({"calculated", "currentDate", "currentTime"})
_LOCKED = frozenset({"contentLocked", "sdtContentLocked"})
_UNDELETABLE = frozenset({"sdtLocked", "sdtContentLocked"})
_ON = frozenset({"1", "true", "on"})
_LONGEST_FIELD = 60
_CHECK_BOX = "{http://schemas.microsoft.com/office/word/2010/wordml}checkbox"
_BINDINGS = frozenset({qn("w:dataBinding"), "{http://schemas.microsoft.com/office/word/2012/wordml}dataBinding"})


@dataclass
class _OpenField:
    begin: BaseOxmlElement
    code: str = ""
    has_result: bool = False

    @property
    def is_link(self) -> bool:
        return self.code.split()[:1] == ["HYPERLINK"]

    @property
    def reason(self) -> str:
        """Explain why the result is computed; empty if it is not."""
        words = self.code.split()
        kind = self.begin.find(f"{qn('w:ffData')}/{qn('w:textInput')}/{qn('w:type')}")
        if kind is not None and kind.get(qn("w:val")) in _COMPUTED_INPUTS:
            return "a form field that computes its text"
        if self.begin.get(qn("w:fldLock")) in _ON or not words or words[0].upper() in _FREE_FIELDS:
            return ""
        return f"the result of a field ({' '.join(words)[:_LONGEST_FIELD]}), which computes its text again"


@dataclass
class TextSources:
    """The sources of a part's texts."""

    reasons: dict[BaseOxmlElement, str] = field(default_factory=dict)
    """The texts that can't be changed by themselves, with the reasons."""
    links: dict[BaseOxmlElement, BaseOxmlElement] = field(default_factory=dict)
    """The texts of links, with the elements that make them links."""


def text_sources(root: BaseOxmlElement) -> TextSources:
    """Find the sources of a part's texts.

    The result of a field may span paragraphs, as in a table of contents.
    """
    sources = TextSources()
    open_fields: list[_OpenField] = []
    for element in root.iter(qn("w:fldChar"), qn("w:instrText"), qn("w:t")):
        kind = element.get(qn("w:fldCharType"))
        if kind == "begin":
            open_fields.append(_OpenField(element))
        elif kind == "separate" and open_fields:
            open_fields[-1].has_result = True
        elif kind == "end" and open_fields:
            open_fields.pop()
        elif element.tag == qn("w:instrText") and open_fields:
            open_fields[-1].code += element.text or ""
        elif element.tag == qn("w:t"):
            fields = [open_field for open_field in open_fields if open_field.has_result]
            fields += [
                _OpenField(simple_field, simple_field.get(qn("w:instr"), ""))
                for simple_field in element.iterancestors(qn("w:fldSimple"))
            ]
            links = [
                *element.iterancestors(qn("w:hyperlink")),
                *(outer_field.begin for outer_field in fields if outer_field.is_link),
            ]
            field_reason = next(filter(None, (outer_field.reason for outer_field in fields)), "")
            if reason := field_reason or _control_reason(element):
                sources.reasons[element] = reason
            if links:
                sources.links[element] = links[0]
    return sources


def check_own_text(element: BaseOxmlElement, root: BaseOxmlElement) -> None:
    """Refuse an element whose text has its source elsewhere.

    Raises:
        ToolError: If a new text would not last there, or must not stand there.
    """
    reasons = text_sources(root).reasons
    if reason := next((reasons[text] for text in element.iter(qn("w:t")) if text in reasons), ""):
        msg = f"the text stands in {reason}; change it in Word, or write another paragraph or cell"
        raise ToolError(msg)


def check_removable(element: BaseOxmlElement, root: BaseOxmlElement) -> None:
    """Refuse to remove locked or computed content, and ends of fields.

    Raises:
        ToolError: If the element, or a control in it, must stay.
    """
    removed_element = with_emptied_controls(element)
    is_locked = any(_lock_of(control) in {*_LOCKED, *_UNDELETABLE} for control in removed_element.iter(qn("w:sdt")))
    if reason := "a content control that is locked" if is_locked else _control_reason(removed_element):
        msg = f"it can't be deleted: it stands in {reason}; change it in Word"
        raise ToolError(msg)
    check_whole_fields([element], root)


def check_takes_rows(rows: Iterable[BaseOxmlElement]) -> None:
    """Refuse rows beside those that a document makes of its data.

    Raises:
        ToolError: If a row stands in a content control whose content comes from elsewhere, or is locked.
    """
    if reason := next(filter(None, map(_control_reason, rows)), ""):
        msg = f"no rows can be added: the last row stands in {reason}; change it in Word"
        raise ToolError(msg)


def repeated_item(row: BaseOxmlElement) -> BaseOxmlElement:
    """Return the repeating section's item that is a row, or the row."""
    item = with_emptied_controls(row)
    while item is not row and item.find(f"{qn('w:sdtPr')}/{_REPEATED}") is None:
        item = next(child for child in item.find(qn("w:sdtContent")).iterchildren())
    return item


def with_emptied_controls(element: BaseOxmlElement) -> BaseOxmlElement:
    """Return an element, or the outermost content control that holds it alone."""
    while element.getparent().tag == qn("w:sdtContent") and len(element.getparent()) == 1:
        element = element.getparent().getparent()
    return element


def check_whole_fields(elements: Iterable[BaseOxmlElement], root: BaseOxmlElement) -> None:
    """Refuse to remove a part of a field that spans paragraphs.

    Raises:
        ToolError: If a field begins or ends in an element, or around it, and not both.
    """
    removed = set(elements)
    open_fields: list[_OpenField] = []
    removed_ancestors: dict[BaseOxmlElement, set[BaseOxmlElement]] = {}
    for mark in root.iter(qn("w:fldChar"), qn("w:instrText"), *(element.tag for element in removed)):
        kind = mark.get(qn("w:fldCharType"))
        if kind == "begin":
            open_fields.append(_OpenField(mark))
            removed_ancestors[mark] = removed.intersection(mark.iterancestors())
        elif mark.tag == qn("w:instrText") and open_fields:
            open_fields[-1].code += mark.text or ""
        cut = [*open_fields] if mark in removed else []
        if kind == "end" and open_fields:
            ended = open_fields.pop()
            cut = [ended] if removed_ancestors[ended.begin] != removed.intersection(mark.iterancestors()) else []
        if cut:
            code = " ".join(cut[0].code.split())[:_LONGEST_FIELD]
            msg = f"it is a part of a field ({code}) that spans several paragraphs; delete or update it in Word"
            raise ToolError(msg)


def fill_placeholders(elements: Iterable[BaseOxmlElement]) -> None:
    """Mark content controls around elements as filled.

    Word drops the text of placeholders.
    """
    for element in elements:
        for control in element.iterancestors(qn("w:sdt")):
            for placeholder_mark in control.findall(f"{qn('w:sdtPr')}/{qn('w:showingPlcHdr')}"):
                placeholder_mark.getparent().remove(placeholder_mark)
                for style in list(control.iter(qn("w:rStyle"))):
                    if style.get(qn("w:val")) == "PlaceholderText":
                        style.getparent().remove(style)


def is_closed(control: BaseOxmlElement) -> bool:
    """Return whether a content control takes no more paragraphs."""
    inner = control.find(qn("w:sdtContent"))
    is_plain = control.find(f"{qn('w:sdtPr')}/{qn('w:text')}") is not None
    return is_plain or (inner is not None and bool(_control_reason(inner)))


def _lock_of(control: BaseOxmlElement) -> str:
    lock = control.find(f"{qn('w:sdtPr')}/{qn('w:lock')}")
    return "" if lock is None else lock.get(qn("w:val"), "")


def _control_reason(element: BaseOxmlElement) -> str:
    """Explain why a text can't be changed by itself."""
    if next(element.iterancestors(qn("w:ruby")), None) is not None:
        return "a text with a reading aid (ruby), which would stay"
    for control in element.iterancestors(qn("w:sdt")):
        properties = control.find(qn("w:sdtPr"))
        if properties is None:
            continue
        names = {child.tag for child in properties}
        if _lock_of(control) in _LOCKED:
            return "a content control whose content is locked"
        if qn("w:group") in names and next(element.iterancestors(qn("w:sdt"))) is control:
            return "a group whose content is locked"
        if names & _BINDINGS:
            return "a content control that shows a property or custom data of the document"
        for tag, description in ((qn("w:dropDownList"), "a drop-down list"), (_CHECK_BOX, "a check box")):
            if tag in names:
                return f"{description}, which holds its state apart from its text"
        date = properties.find(qn("w:date"))
        if date is not None and date.get(qn("w:fullDate")):
            return "a date control, which holds its date apart from its text"
    return ""
