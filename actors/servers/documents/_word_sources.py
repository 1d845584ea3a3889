"""Texts with a source elsewhere: fields and content controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docx.oxml.ns import qn

from callboard.actors.servers._server import ToolError

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

_FREE_FIELDS = frozenset({"HYPERLINK", "FORMTEXT"})
"""Fields whose result a person may edit; the others compute it again."""
_LOCKED = frozenset({"contentLocked", "sdtContentLocked"})
_ON = frozenset({"1", "true", "on"})
_LONGEST_FIELD = 60
_CHECK_BOX = "{http://schemas.microsoft.com/office/word/2010/wordml}checkbox"
_BINDINGS = frozenset({qn("w:dataBinding"), "{http://schemas.microsoft.com/office/word/2012/wordml}dataBinding"})


def computed_texts(root: BaseOxmlElement) -> dict[BaseOxmlElement, str]:
    """Return the texts that can't be changed by themselves, with reasons.

    The result of a field may span paragraphs, as in a table of contents.
    """
    reasons: dict[BaseOxmlElement, str] = {}
    open_fields: list[list[str]] = []  # code, whether its result has begun, whether it is locked
    for element in root.iter(qn("w:fldChar"), qn("w:instrText"), qn("w:t")):
        kind = element.get(qn("w:fldCharType"))
        if kind == "begin":
            open_fields.append(["", "", element.get(qn("w:fldLock"), "")])
        elif kind == "separate" and open_fields:
            open_fields[-1][1] = "result"
        elif kind == "end" and open_fields:
            open_fields.pop()
        elif element.tag == qn("w:instrText") and open_fields:
            open_fields[-1][0] += element.text or ""
        elif element.tag == qn("w:t"):
            fields = [(code, lock) for code, result, lock in open_fields if result]
            fields += [
                (field.get(qn("w:instr"), ""), field.get(qn("w:fldLock"), ""))
                for field in element.iterancestors(qn("w:fldSimple"))
            ]
            reason = next(filter(None, (_field_reason(*field) for field in fields)), "") or _control_reason(element)
            if reason:
                reasons[element] = reason
    return reasons


def check_own_text(element: BaseOxmlElement, root: BaseOxmlElement) -> None:
    """Refuse an element whose text has its source elsewhere.

    Raises:
        ToolError: If a new text would not last there, or must not stand there.
    """
    reasons = computed_texts(root)
    if reason := next((reasons[text] for text in element.iter(qn("w:t")) if text in reasons), ""):
        msg = f"the text stands in {reason}; change it in Word, or write another paragraph or cell"
        raise ToolError(msg)


def _field_reason(code: str, lock: str) -> str:
    words = code.split()
    if lock in _ON or not words or words[0].upper() in _FREE_FIELDS:
        return ""
    return f"the result of a field ({' '.join(words)[:_LONGEST_FIELD]}), which computes its text again"


def _control_reason(element: BaseOxmlElement) -> str:
    """Explain why a content control's text can't be changed by itself."""
    for control in element.iterancestors(qn("w:sdt")):
        properties = control.find(qn("w:sdtPr"))
        if properties is None:
            continue
        names = {child.tag for child in properties}
        lock = properties.find(qn("w:lock"))
        if lock is not None and lock.get(qn("w:val")) in _LOCKED:
            return "a content control whose content is locked"
        if names & _BINDINGS:
            return "a content control that shows a property or custom data of the document"
        for tag, what in ((qn("w:dropDownList"), "a drop-down list"), (_CHECK_BOX, "a check box")):
            if tag in names:
                return f"{what}, which holds its state apart from its text"
        date = properties.find(qn("w:date"))
        if date is not None and date.get(qn("w:fullDate")):
            return "a date control, which holds its date apart from its text"
    return ""
