"""The visible text of HTML."""

from __future__ import annotations

import html.parser
import re

_WORD = re.compile(r"\w+")
_BLOCKS = frozenset({"br", "p", "div", "tr", "li", "h1", "h2", "h3", "table", "pre"})
_UNSEEN = frozenset({"script", "style", "head"})


def html_to_text(text: str) -> str:
    """Return the visible text: tabs between cells, alternative texts of pictures."""
    parser = _Texts()
    parser.feed(text)
    parser.close()
    lines = (
        "\t".join(" ".join(cell.split()) for cell in line.split("\t")).rstrip()
        for line in "".join(parser.parts).splitlines()
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _UNSEEN
        self._verbatim += tag == "pre"
        if tag in _BLOCKS:
            self.parts.append("\n")
        if tag == "img" and (alternative := dict(attrs).get("alt")):
            self.parts.append(f"[picture: {' '.join(alternative.split())}]")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _UNSEEN))
        self._verbatim = max(0, self._verbatim - (tag == "pre"))
        if tag in {"td", "th"}:
            self.parts.append("\t")
        if tag in {"table", "pre"}:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data.replace("\t", " ") if self._verbatim else re.sub(r"\s+", " ", data))
