"""The visible text of HTML."""

from __future__ import annotations

import html.parser
import re

_WORD = re.compile(r"\w+")
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
    parser = _Texts()
    parser.feed(text)
    parser.close()
    lines = _lines_of("".join(parser.parts))
    tidied = ("\t".join(" ".join(cell.split()) for cell in line.split("\t")).rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(tidied)).strip()


def links_in(text: str) -> list[str]:
    """Return the links' words and targets.

    Links whose words are the target are left out.
    """
    parser = _Texts()
    parser.feed(text)
    parser.close()
    links = [(" ".join(words.split()), target.strip()) for words, target in parser.links]
    distinct_links = [
        (words, target) for words, target in links if target and target.removeprefix("mailto:") not in words
    ]
    return list(dict.fromkeys(f"{words}: {target}" for words, target in distinct_links if not target.startswith("#")))


def _lines_of(text: str) -> list[str]:
    """Split a text at the edges of its blocks.

    The edges of a cell's only block are none.
    """
    text = re.sub(rf"[ {_BLOCK}]*\t[ {_BLOCK}]*", "\t", text)
    edges = rf" *[{_BLOCK}{_ROW}{_TABLE}][ {_BLOCK}{_ROW}{_TABLE}]*"
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


class _Texts(html.parser.HTMLParser):
    """Collect the visible texts of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0
        self._verbatim = 0
        self._counts: list[int | None] = []  # the number of the last item of each open list; None for bullets
        self.links: list[tuple[str, str]] = []
        self._link: tuple[int, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = 0 if tag == "body" else self._hidden + (tag in _UNSEEN)  # the tag </head> may be left out
        self._verbatim += tag == "pre"
        if tag == "br":
            self.parts.append("\n")
        self._end_line(tag)
        if tag in {"ol", "ul"}:
            first = dict(attrs).get("start") or ""
            self._counts.append(None if tag == "ul" else int(first) - 1 if first.isdigit() else 0)
        if tag == "li" and self._counts and (count := self._counts[-1]) is not None:
            self._counts[-1] = count + 1
            self.parts.append(f"{count + 1}. ")
        if tag in _STRUCK:
            self.parts.append("~~")
        if tag == "input" and dict(attrs).get("type") in {"checkbox", "radio"}:
            self.parts.append("☒" if "checked" in dict(attrs) else "☐")
        if tag == "a":
            self._link = len(self.parts), dict(attrs).get("href") or ""
        if tag == "img" and (alternative := dict(attrs).get("alt")):
            self.parts.append(f"[picture: {' '.join(alternative.split())}]")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _UNSEEN))
        if tag in {"ol", "ul"}:
            self._counts = self._counts[:-1]
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

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"[\t\x1c-\x1f]" if self._verbatim else r"\s+", " ", data))
