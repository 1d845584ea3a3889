"""Texts of Word elements that are no letters: symbols, check boxes, equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docx.oxml.ns import qn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.xmlchemy import BaseOxmlElement

TICKED, EMPTY = "☒", "☐"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATIONS = frozenset({f"{_MATH}oMath", f"{_MATH}oMathPara"})
_WINGDINGS = {
    0xFE: TICKED, 0xFD: TICKED, 0x78: TICKED, 0x54: TICKED, 0x53: TICKED, 0x52: TICKED, 0xA8: EMPTY, 0x6F: EMPTY,
    0xA3: EMPTY, 0x71: EMPTY, 0xFC: "✓", 0x50: "✓", 0xFB: "✗", 0x4F: "✗", 0xE0: "→", 0xDF: "←", 0xE8: "→", 0x6C: "●",
    0x6E: "■", 0xA7: "▪", 0x4A: "☺", 0x28: "☎", 0x2A: "✉",
}  # fmt: skip
"""Characters of the fonts Wingdings and Wingdings 2, where their codes don't collide."""
_SYMBOL = dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)) | {
    0xB1: "±", 0xB3: "≥", 0xA3: "≤", 0xB9: "≠", 0xB0: "°", 0xB4: "×", 0xB7: "•", 0xA5: "∞", 0x57: "Ω", 0x44: "Δ",
    0x53: "Σ", 0xAE: "→", 0xA0: "€",
}  # fmt: skip
_OTHER_SYMBOL = "[symbol]"
_OFF = frozenset({"0", "false", "off"})


def symbol_text(element: BaseOxmlElement) -> str:
    """Return the character of a symbol (``w:sym``)."""
    try:
        code = int(element.get(qn("w:char"), ""), 16)
    except ValueError:
        return _OTHER_SYMBOL
    font = element.get(qn("w:font"), "").casefold()
    if 0xF000 <= code <= 0xF0FF:  # the private characters of symbol fonts
        code -= 0xF000
    elif code > 0xFF:
        return chr(code)
    table = _WINGDINGS if font in {"wingdings", "wingdings 2"} else _SYMBOL if font == "symbol" else {}
    return table.get(code, _OTHER_SYMBOL)


def form_field_text(begin: BaseOxmlElement) -> str:
    """Return the state of a form field that begins here, if any."""
    data = begin.find(qn("w:ffData"))
    if data is None:
        return ""
    if (box := data.find(qn("w:checkBox"))) is not None:
        states = [box.find(qn(f"w:{name}")) for name in ("checked", "default")]
        state = next((state for state in states if state is not None), None)
        return EMPTY if state is None or state.get(qn("w:val"), "1").lower() in _OFF else TICKED
    if (choices := data.find(qn("w:ddList"))) is not None:
        texts = [entry.get(qn("w:val"), "") for entry in choices.iterfind(qn("w:listEntry"))]
        numbers = [choices.find(qn(f"w:{name}")) for name in ("result", "default")]
        number = next((int(n.get(qn("w:val"), "0")) for n in numbers if n is not None), 0)
        return texts[number] if number < len(texts) else ""
    return ""


def equation_text(element: BaseOxmlElement) -> str:
    """Write an equation in one line: ``(a+b)/2``, ``x^2``, ``√(x)``."""
    name = str(element.tag).removeprefix(_MATH)
    if name == "t":
        return element.text or ""
    parts = {str(child.tag).removeprefix(_MATH): equation_text(child) for child in _children(element)}
    match name:
        case "f":
            return f"{_grouped(parts.get('num', ''))}/{_grouped(parts.get('den', ''))}"
        case "sSup" | "sSub" | "sSubSup":
            below, above = (_script(mark, parts.get(part, "")) for mark, part in (("_", "sub"), ("^", "sup")))
            return f"{_grouped(parts.get('e', ''))}{below}{above}"
        case "rad":
            return f"{_grouped(parts.get('deg', '')) if parts.get('deg') else ''}√({parts.get('e', '')})"
        case "nary":
            sign = _property(element, "chr") or "∫"
            return (
                f"{sign}{_script('_', parts.get('sub', ''))}{_script('^', parts.get('sup', ''))} {parts.get('e', '')}"
            )
        case "d":
            inner = (_property(element, "sepChr") or "|").join(_all(element, "e"))
            return f"{_property(element, 'begChr') or '('}{inner}{_property(element, 'endChr') or ')'}"
        case "m" | "eqArr":
            rows = _all(element, "mr") or _all(element, "e")
            return f"[{'; '.join(rows)}]"
        case "mr":
            return ", ".join(_all(element, "e"))
        case "oMathPara":
            return "; ".join(_all(element, "oMath"))
    return "".join(map(equation_text, _children(element)))


def _children(element: BaseOxmlElement) -> Iterator[BaseOxmlElement]:
    return (child for child in element.iterchildren() if not str(child.tag).endswith("Pr"))


def _all(element: BaseOxmlElement, name: str) -> list[str]:
    return [equation_text(child) for child in element.iterchildren(f"{_MATH}{name}")]


def _property(element: BaseOxmlElement, name: str) -> str:
    sign = element.find(f"{_MATH}{str(element.tag).removeprefix(_MATH)}Pr/{_MATH}{name}")
    return "" if sign is None else sign.get(f"{_MATH}val", "")


def _grouped(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _script(mark: str, text: str) -> str:
    return f"{mark}{_grouped(text)}" if text else ""
