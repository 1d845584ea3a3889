"""Lists of a Word document: bullets, numbers, and their definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from docx.oxml import OxmlElement
from docx.oxml.ns import nsdecls, qn
from docx.oxml.parser import parse_xml

from callboard.surfaces.documents.word._paragraph_styles import style_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents.word._document import WordFile

ListType: TypeAlias = Literal["bullet", "number", "none"]

_LEVELS = 9
_BULLETS = ("•", "◦", "▪")
_NUMBERS = ("decimal", "lowerLetter", "lowerRoman")
_INDENT, _HANGING = 720, 360
"""In twentieths of a point."""
_NUMBERING = f"{qn('w:pPr')}/{qn('w:numPr')}"
_IGNORED = frozenset(qn(f"w:{name}") for name in ("bookmarkStart", "bookmarkEnd", "proofErr", "permStart", "permEnd"))


def set_list(file: WordFile, paragraph: CT_P, kind: ListType, level: int) -> None:
    """Make a paragraph a list item, or an ordinary paragraph.

    It joins a list of the same kind right before or after it; otherwise it begins a new one, which counts from 1.

    Args:
        file: The document of the paragraph.
        paragraph: The paragraph; its text and font stay.
        kind: The kind of list; ``none`` takes it out.
        level: The depth, from 1 to 9.
    """
    look = paragraph.get_or_add_pPr()
    if kind == "none":
        look._remove_numPr()  # python-docx has no public name for it
        if file.styles.numbering(style_of(paragraph)) is not None:
            _number(paragraph, "0", 0)  # overrides the list of the style
        return
    if file.styles.is_default(style_of(paragraph)) and (style := file.styles.has("paragraph", "List Paragraph")):
        look.style = style
    joined = (num for num in _neighbours(file, paragraph) if _kind_of(file, num, level - 1) == kind)
    _number(paragraph, next(joined, "") or _new_list(file, kind), level - 1)


def count_numbers(file: WordFile) -> int:
    """Count the paragraphs that a list numbers; bullets are none."""
    kinds: dict[tuple[str, int], ListType | None] = {}
    numbered = 0
    for paragraph in file.body.iter(qn("w:p")):
        if num := _num_of(file, paragraph):
            level = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}/{qn('w:ilvl')}")
            key = num, int(level.get(qn("w:val"), "0")) if level is not None else 0
            if key not in kinds:
                kinds[key] = _kind_of(file, *key)
            numbered += kinds[key] == "number"
    return numbered


def _number(paragraph: CT_P, num: str, level: int) -> None:
    numbering = paragraph.get_or_add_pPr().get_or_add_numPr()
    numbering.get_or_add_ilvl().set(qn("w:val"), str(level))
    numbering.get_or_add_numId().set(qn("w:val"), num)


def _neighbours(file: WordFile, paragraph: BaseOxmlElement) -> Iterator[str]:
    """Yield the list ids of adjacent items.

    Those before the paragraph come first, the nearest one first.
    """
    for preceding in (True, False):
        for sibling in paragraph.itersiblings(preceding=preceding):
            if sibling.tag in _IGNORED:
                continue
            num = _num_of(file, sibling) if sibling.tag == qn("w:p") else ""
            if not num:
                break
            yield num


def _num_of(file: WordFile, paragraph: BaseOxmlElement) -> str:
    """Return the id of a paragraph's list; empty if it has none."""
    numbering = paragraph.find(_NUMBERING)
    if numbering is None:
        numbering = file.styles.numbering(style_of(paragraph))
    num = numbering.find(qn("w:numId")) if numbering is not None else None
    value = num.get(qn("w:val"), "") if num is not None else ""
    return "" if value == "0" else value


def _kind_of(file: WordFile, num: str, level: int) -> ListType | None:
    """Return a list's kind on a level; None for an undefined level."""
    root = next(iter(file.package.beside("numbering")), "")
    if not root:
        return None
    entries = file.package.tree(root)
    definitions = (entry for entry in entries.iterchildren(qn("w:num")) if entry.get(qn("w:numId")) == num)
    link = next((entry.find(qn("w:abstractNumId")) for entry in definitions), None)
    abstract_id = link.get(qn("w:val")) if link is not None else None
    for entry in entries.iterchildren(qn("w:abstractNum")):
        if entry.get(qn("w:abstractNumId")) == abstract_id:
            for level_element in entry.iterchildren(qn("w:lvl")):
                form = level_element.find(qn("w:numFmt"))
                if level_element.get(qn("w:ilvl")) == str(level):
                    return "bullet" if form is not None and form.get(qn("w:val")) == "bullet" else "number"
    return None


def _new_list(file: WordFile, kind: ListType) -> str:
    """Define a list, and return its id."""
    parts = file.package.beside("numbering")
    root = file.package.tree(parts[0]) if parts else file.package.add_beside("numbering", OxmlElement("w:numbering"))
    abstract, num = _unused_id(root, "w:abstractNum", "w:abstractNumId"), _unused_id(root, "w:num", "w:numId")
    definition = parse_xml(
        f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{abstract}">'
        f'<w:multiLevelType w:val="hybridMultilevel"/>{"".join(_level_xml(kind, n) for n in range(_LEVELS))}'
        f"</w:abstractNum>"
    )
    entry = parse_xml(f'<w:num {nsdecls("w")} w:numId="{num}"><w:abstractNumId w:val="{abstract}"/></w:num>')
    entries = list(root.iterchildren(qn("w:num")))
    cleanup = root.find(qn("w:numIdMacAtCleanup"))
    if entries:
        entries[0].addprevious(definition)
        entries[-1].addnext(entry)
    elif cleanup is not None:
        cleanup.addprevious(definition)
        cleanup.addprevious(entry)
    else:
        root.extend((definition, entry))
    return num


def _unused_id(root: BaseOxmlElement, tag: str, key: str) -> str:
    ids = (entry.get(qn(key), "") for entry in root.iterchildren(qn(tag)))
    return str(max((int(value) for value in ids if value.isdigit()), default=0) + 1)


def _level_xml(kind: ListType, level: int) -> str:
    form = "bullet" if kind == "bullet" else _NUMBERS[level % len(_NUMBERS)]
    text = _BULLETS[level % len(_BULLETS)] if kind == "bullet" else f"%{level + 1}."
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
        f'<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="{_INDENT * (level + 1)}" w:hanging="{_HANGING}"/></w:pPr>'
        f"</w:lvl>"
    )
