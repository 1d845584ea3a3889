"""The visible text of HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset",
     "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "legend", "li",
     "main", "nav", "ol", "optgroup", "option", "p", "pre", "section", "summary", "table", "tr", "ul")
)  # fmt: skip
_BLOCK, _ROW, _TABLE = "\x1e", "\x1d", "\x1c"
"""The edges of blocks, of a table's rows and of tables, until the text is split into lines."""
_STRUCK = frozenset({"s", "strike", "del"})
_UNSEEN = frozenset({"script", "style", "head", "title", "template"})


def html_to_text(text: str) -> str:
    """Return the visible text: tabs between cells, alternative texts of pictures."""
    lines = _lines_of("".join(_read(text).parts))
    tidied = ("\t".join(" ".join(cell.split()) for cell in line.split("\t")).rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(tidied)).strip()


def links_in(text: str) -> list[str]:
    """Return the links' words and targets.

    Links whose words are the target are left out.
    """
    links = [(" ".join(words.split()), target.strip()) for words, target in _read(text).links]
    distinct_links = [
        (words, target) for words, target in links if target and target.removeprefix("mailto:") not in words
    ]
    return list(dict.fromkeys(f"{words}: {target}" for words, target in distinct_links if not target.startswith("#")))


def _read(text: str) -> _Texts:
    """Parse HTML by libxml2.

    The standard library's parser takes hours for some texts of a megabyte.
    """
    texts = _Texts()
    parser = etree.HTMLParser(target=texts, huge_tree=True)
    parser.feed(text)
    parser.close()
    return texts


def _lines_of(text: str) -> list[str]:
    """Split a text at the edges of its blocks.

    The edges of a cell's only block are none.
    """
    first, *cells = text.split("\t")
    if cells:
        inner_cells = (cell.strip(f" {_BLOCK}") for cell in cells[:-1])
        text = "\t".join((first.rstrip(f" {_BLOCK}"), *inner_cells, cells[-1].lstrip(f" {_BLOCK}")))
    edges = rf"(?<! ) *[{_BLOCK}{_ROW}{_TABLE}][ {_BLOCK}{_ROW}{_TABLE}]*"
    return re.sub(edges, lambda edge: "\n\n" if _TABLE in edge[0] else "\n", text).splitlines()


def merged_text(plain: str, formatted: str) -> str:
    """Join a plain text and a formatted one, without repeating either.

    Programs show the formatted text. The plain one may be a stub of it, or hold other words.
    """
    plain_words, formatted_words = (set(_WORD.findall(text.casefold())) for text in (plain, formatted))
    if formatted_words <= plain_words:
        return plain
    if plain_words <= formatted_words:
        return formatted
    return f"{plain.rstrip()}\n\n[formatted text]\n{formatted}"


class _Texts:
    """Collect the visible texts of HTML, as the target of a parser."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._hidden = 0
        self._verbatim = 0
        self._counts: list[int | None] = []  # the number of the last item of each open list; None for bullets
        self.links: list[tuple[str, str]] = []
        self._link: tuple[int, str] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        self._hidden = 0 if tag == "body" else self._hidden + (tag in _UNSEEN)  # the tag </head> may be left out
        self._verbatim += tag == "pre"
        if tag == "br":
            self.parts.append("\n")
        self._end_line(tag)
        if tag in {"ol", "ul"}:
            first = attributes.get("start", "")
            self._counts.append(None if tag == "ul" else int(first) - 1 if _NUMBER.fullmatch(first) else 0)
        if tag == "li" and self._counts and (count := self._counts[-1]) is not None:
            self._counts[-1] = count + 1
            self.parts.append(f"{count + 1}. ")
        if tag in _STRUCK:
            self.parts.append("~~")
        if tag == "input" and attributes.get("type") in {"checkbox", "radio"}:
            self.parts.append("☒" if "checked" in attributes else "☐")
        if tag == "a":
            self._link = len(self.parts), attributes.get("href", "")
        if tag == "img" and (alternative := attributes.get("alt")):
            self.parts.append(f"[picture: {' '.join(alternative.split())}]")

    def end(self, tag: str) -> None:
        """End an element."""
        self._hidden = max(0, self._hidden - (tag in _UNSEEN))
        if tag in {"ol", "ul"} and self._counts:
            self._counts.pop()
        if tag in _STRUCK:
            self.parts.append("~~")
        if tag == "a" and self._link is not None:
            start, target = self._link
            self.links.append(("".join(self.parts[start:]), target))
            self._link = None
        self._verbatim = max(0, self._verbatim - (tag == "pre"))
        if tag in {"td", "th"}:
            self.parts.append("\t")
        self._end_line(tag)

    def _end_line(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append({"tr": _ROW, "table": _TABLE}.get(tag, _BLOCK))

    def data(self, data: str) -> None:
        """Read a text."""
        if not self._hidden:
            self.parts.append(re.sub(r"[\t\x1c-\x1f]" if self._verbatim else r"\s+", " ", data))

    def close(self) -> None:
        """End the document."""
