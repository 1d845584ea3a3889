"""Texts of Word elements without letters, such as symbols and equations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from docx.oxml.ns import qn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docx.oxml.xmlchemy import BaseOxmlElement

_Parts: TypeAlias = dict[str, str]
TICKED, EMPTY = "☒", "☐"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATIONS = frozenset({f"{_MATH}oMath", f"{_MATH}oMathPara"})
_WINGDINGS = {
    0xFE: TICKED, 0xFD: TICKED, 0x78: TICKED, 0xA8: EMPTY, 0x6F: EMPTY, 0x71: EMPTY, 0xFC: "✓", 0xFB: "✗", 0xE0: "→",
    0xDF: "←", 0xE1: "↑", 0xE2: "↓", 0xE8: "→", 0x6C: "●", 0x6E: "■", 0x75: "◆", 0xA7: "▪", 0xAB: "★", 0x28: "☎",
    0x29: "✆", 0x2A: "✉", 0x22: "✂", 0x43: "👍", 0x44: "👎", 0x45: "☜", 0x46: "☞", 0x4A: "☺", 0x4C: "☹", 0x51: "✈",
    0x52: "☼", 0x54: "❄", 0xD8: "➢",
} | {first + n: chr(digit + n) for first, digit in ((0x81, 0x2460), (0x8C, 0x2776)) for n in range(10)}  # fmt: skip
_WINGDINGS_2 = dict.fromkeys(range(0x51, 0x55), TICKED) | {
    0xA3: EMPTY, 0x50: "✓", 0x4F: "✗", 0x97: "●", 0xA2: "■",
} | {first + n: chr(digit + n) for first, digit in ((0x6A, 0x2460), (0x75, 0x2776)) for n in range(10)}  # fmt: skip
_WEBDINGS = {0x61: "✓", 0x72: "✗", 0x63: EMPTY, 0x67: "■", 0x6E: "●"}
_SYMBOL = dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)) | {
    0xB1: "±", 0xB3: "≥", 0xA3: "≤", 0xB9: "≠", 0xB0: "°", 0xB4: "×", 0xB7: "•", 0xA5: "∞", 0x57: "Ω", 0x44: "Δ",
    0x53: "Σ", 0xAE: "→", 0xA0: "€",
} | {code: chr(code) for code in range(0x20, 0x40) if chr(code) not in "\"$'*-"}  # fmt: skip
_FONTS = {
    "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2, "wingdings 3": {}, "webdings": _WEBDINGS, "symbol": _SYMBOL,
}  # fmt: skip
"""The characters of symbol fonts, by code."""
_OTHER_SYMBOL = "[symbol]"
_OFF = frozenset({"0", "false", "off"})
_HAT = "\u0302"
_PRIVATE = range(0xE000, 0xF900)
_SYMBOL_LETTERS = re.compile("[\uf000-\uf0ff]")
"""The private characters of symbol fonts."""
_RUN_PROPERTIES, _RUN_FONTS = qn("w:rPr"), qn("w:rFonts")
_ASCII, _HIGH_ANSI = qn("w:ascii"), qn("w:hAnsi")
_SHOWN_CODES = frozenset({"EQ", "AUTONUM", "AUTONUMLGL", "AUTONUMOUT", "LISTNUM", "ADVANCE"})
"""Fields that show something and never have a result."""
_BUTTON_WORDS = 2
"""The words before the text of a button: the field's name, and the macro or place."""


def symbol_text(element: BaseOxmlElement) -> str:
    """Return the character of a symbol (``w:sym``)."""
    try:
        code = int(element.get(qn("w:char"), ""), 16)
    except ValueError:
        return _OTHER_SYMBOL
    return _symbol(element.get(qn("w:font"), ""), code)


def emoji_text(element: BaseOxmlElement) -> str:
    """Return the character of an emoji (``w16se:symEx``)."""
    code = next((value for name, value in element.attrib.items() if name.endswith("}char")), "")
    return chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{2,5}", code) else _OTHER_SYMBOL


def letters_text(element: BaseOxmlElement) -> str:
    """Return letters as their font shows them; symbol fonts show others."""
    text = element.text or ""
    # A path with ".." would visit all children of the run several times.
    properties = element.getparent().iterchildren(_RUN_PROPERTIES)
    fonts = next((fonts for entry in properties if (fonts := entry.find(_RUN_FONTS)) is not None), None)
    font = "" if fonts is None else fonts.get(_ASCII) or fonts.get(_HIGH_ANSI) or ""
    if font.casefold() in _FONTS:
        return "".join(letter if letter.isspace() else _symbol(font, ord(letter)) for letter in text)
    return text if text.isascii() else _SYMBOL_LETTERS.sub(_OTHER_SYMBOL, text)


def _symbol(font: str, code: int) -> str:
    if 0xF000 <= code <= 0xF0FF:  # the private characters of symbol fonts
        code -= 0xF000
    elif code > 0xFF:
        return _OTHER_SYMBOL if code in _PRIVATE or code > 0x10FFFF else chr(code)
    return _FONTS.get(font.casefold(), {}).get(code, _OTHER_SYMBOL)


def field_text(code: str) -> str:
    """Return the text of a field that has no result."""
    words = code.split()
    name = words[0].upper() if words else ""
    if name in {"MACROBUTTON", "GOTOBUTTON"}:
        return " ".join(words[_BUTTON_WORDS:])
    if name == "SYMBOL" and len(words) > 1:
        font = re.search(r'\\f\s+(?:"([^"]*)"|(\S+))', code, re.IGNORECASE)
        number = re.fullmatch("(0x[0-9a-f]{1,4})|[0-9]{1,5}", words[1], re.IGNORECASE)
        return _symbol((font[1] or font[2]) if font else "", int(words[1], 0)) if number else _OTHER_SYMBOL
    return f"[{' '.join(words)}]" if name in _SHOWN_CODES else ""


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
    form = _FORMS.get(name)
    return "".join(map(equation_text, _children(element))) if form is None else form(element, parts)


def _fraction(element: BaseOxmlElement, parts: _Parts) -> str:
    above, below = parts.get("num", ""), parts.get("den", "")
    return (
        f"({above} over {below})"
        if _property(element, "type") == "noBar"
        else f"{_parenthesize(above)}/{_parenthesize(below)}"
    )


def _with_scripts(_: BaseOxmlElement, parts: _Parts) -> str:
    return f"{_parenthesize(parts.get('e', ''))}{_scripts(parts)}"


def _root(_: BaseOxmlElement, parts: _Parts) -> str:
    return f"{_parenthesize(parts.get('deg', ''))}√({parts.get('e', '')})"


def _sum(element: BaseOxmlElement, parts: _Parts) -> str:
    return f"{_property(element, 'chr') or '∫'}{_scripts(parts)} {parts.get('e', '')}"


def _brackets(element: BaseOxmlElement, _: _Parts) -> str:
    inner = _property(element, "sepChr", "|").join(_all(element, "e"))
    return f"{_property(element, 'begChr', '(')}{inner}{_property(element, 'endChr', ')')}"


def _matrix(element: BaseOxmlElement, _: _Parts) -> str:
    return f"[{'; '.join(_all(element, 'mr') or _all(element, 'e'))}]"


def _limit(element: BaseOxmlElement, parts: _Parts) -> str:
    mark = "_" if str(element.tag).endswith("limLow") else "^"
    return f"{parts.get('e', '')}{_script(mark, parts.get('lim', ''))} "


def _accent(element: BaseOxmlElement, parts: _Parts) -> str:
    inner = parts.get("e", "")
    return f"{inner if len(inner) <= 1 else f'({inner})'}{_property(element, 'chr', _HAT)}"


def _bar(element: BaseOxmlElement, parts: _Parts) -> str:
    return f"{'over' if _property(element, 'pos') == 'top' else 'under'}line({parts.get('e', '')})"


_FORMS: dict[str, Callable[[BaseOxmlElement, _Parts], str]] = {
    "f": _fraction,
    **dict.fromkeys(("sSup", "sSub", "sSubSup"), _with_scripts),
    "sPre": lambda _, parts: f"{_scripts(parts)}{_parenthesize(parts.get('e', ''))}",
    "rad": _root,
    "nary": _sum,
    "d": _brackets,
    "m": _matrix,
    "eqArr": _matrix,
    "mr": lambda element, _: ", ".join(_all(element, "e")),
    "func": lambda _, parts: f"{parts.get('fName', '')}({parts.get('e', '')})",
    "limLow": _limit,
    "limUpp": _limit,
    "acc": _accent,
    "bar": _bar,
    "oMathPara": lambda element, _: "; ".join(_all(element, "oMath")),
}
"""The forms of equations, by their elements; any other is the texts of its parts."""


def _children(element: BaseOxmlElement) -> Iterator[BaseOxmlElement]:
    return (child for child in element.iterchildren() if not str(child.tag).endswith(("Pr", "}del", "}moveFrom")))


def _all(element: BaseOxmlElement, name: str) -> list[str]:
    return [equation_text(child) for child in element.iterchildren(f"{_MATH}{name}")]


def _property(element: BaseOxmlElement, name: str, default: str = "") -> str:
    """Return a property; one without a value is empty."""
    sign = element.find(f"{_MATH}{str(element.tag).removeprefix(_MATH)}Pr/{_MATH}{name}")
    return default if sign is None else sign.get(f"{_MATH}val", "")


def _parenthesize(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _script(mark: str, text: str) -> str:
    return f"{mark}{_parenthesize(text)}" if text else ""


def _scripts(parts: _Parts) -> str:
    return _script("_", parts.get("sub", "")) + _script("^", parts.get("sup", ""))
