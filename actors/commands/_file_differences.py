"""The difference of files before and after, in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from callboard.actors.commands._file_contents import FORMULA, Contents, chart_words, contents_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST = 24_000
"""The most characters of all differences."""
_LEAST = 1_000
"""The characters that each file may have in any case."""
_LONGEST = 300
"""The most characters of one value."""
_UNSEEN = "other contents, and what differs can't be put into words (a format, a header, or a file of another kind)"
_CELL = re.compile(r"([A-Z]+)(\d+)")


def differences_in_words(files: Sequence[tuple[str, bytes | None, bytes | None]]) -> str:
    """Describe how files differ, each with its bytes before and after.

    None stands for no file. Texts are written as JSON, so that none can pass for a line of this description. What is
    too long is left out, and counted.
    """
    room, summaries = _MOST, []
    for number, (name, old, new) in enumerate(files):
        share = max(_LEAST, room // (len(files) - number))
        lines = _bounded(list(_lines(old, new, name)), share)
        room -= sum(map(len, lines))
        summaries.append("\n".join((f"{_word(name)} {_headline(old, new)}", *(f"- {line}" for line in lines))))
    return "\n\n".join(summaries)


def _headline(old: bytes | None, new: bytes | None) -> str:
    return "was removed" if new is None else "is new:" if old is None else "was changed:"


def _bounded(lines: list[str], room: int) -> list[str]:
    kept_lines: list[str] = []
    for line in lines:
        room -= len(line) + 3
        if room < 0:
            return [*kept_lines, f"({len(lines) - len(kept_lines)} further differences of this file are left out here)"]
        kept_lines.append(line)
    return kept_lines


def _lines(old: bytes | None, new: bytes | None, name: str) -> Iterator[str]:
    if new is None:
        return
    new_contents = contents_in(name, new)
    old_contents = Contents() if old is None else contents_in(name, old)
    if old_contents is None or new_contents is None:
        yield _UNSEEN
        return
    parts = (_of_sheets, _of_cells, _of_texts, _of_parts)
    yield from [line for part in parts for line in part(old_contents, new_contents)] or [
        "it is empty" if not new else _UNSEEN
    ]


def _of_sheets(old_contents: Contents, new_contents: Contents) -> Iterator[str]:
    for key, title in new_contents.sheets.items():
        if key not in old_contents.sheets:
            yield f"new sheet {_word(title)}"
        elif old_contents.sheets[key] != title:
            yield f"sheet {_word(old_contents.sheets[key])} is called {_word(title)} now"
    yield from (
        f"sheet {_word(title)} removed" for key, title in old_contents.sheets.items() if key not in new_contents.sheets
    )


def _of_cells(old_contents: Contents, new_contents: Contents) -> Iterator[str]:
    for part, cell in sorted(old_contents.cells.keys() | new_contents.cells.keys(), key=_cell_order):
        old, new = (_cell(contents, (part, cell)) for contents in (old_contents, new_contents))
        if old != new:
            title = new_contents.titles.get(part) or old_contents.titles.get(part) or part
            yield f"{_word(f'{title}!{cell}')}: {old} -> {new}"


def _cell_order(key: tuple[str, str]) -> tuple[str, int, int, str]:
    """Return the sort key of a cell: sheet, row and column."""
    match = _CELL.fullmatch(key[1])
    return (key[0], int(match[2]), len(match[1]), match[1]) if match else (key[0], 0, 0, key[1])


def _cell(contents: Contents, key: tuple[str, str]) -> str:
    content = contents.cells.get(key, "")
    if not content:
        return "empty"
    if not content.startswith(FORMULA):
        return _word(content)
    text = "a formula" if content == FORMULA else _word(content)
    return f"{text} with the stored result {_word(contents.results[key])}" if key in contents.results else text


def _of_texts(old_contents: Contents, new_contents: Contents) -> Iterator[str]:
    for kind in dict.fromkeys((*old_contents.texts, *new_contents.texts)):
        old, new = old_contents.texts.get(kind, Counter()), new_contents.texts.get(kind, Counter())
        yield from _counted(f"{kind} removed", old - new)
        yield from _counted(f"{kind} added", new - old)
        if old == new and list(old) != list(new):
            yield f"the same {kind}s in another order"


def _counted(what: str, texts: Counter[str]) -> Iterable[str]:
    for text, times in texts.items():
        yield f"{what}: {_word(text)}{f', {times} times' if times > 1 else ''}"


def _of_parts(old_contents: Contents, new_contents: Contents) -> Iterator[str]:
    for kind in dict.fromkeys((*old_contents.parts, *new_contents.parts)):
        old, new = old_contents.parts.get(kind, Counter()), new_contents.parts.get(kind, Counter())
        for words, some in (("removed", old - new), ("new or changed", new - old)):
            for part, times in some.items():
                about = f" ({_word(chart_words(part))})" if kind == "chart" and isinstance(part, bytes) else ""
                yield f"{times} {kind}{'s' * (times > 1)} {words}{about}"


def _word(text: str) -> str:
    """Write a text as JSON, cut to a length."""
    excess = len(text) - _LONGEST
    if excess <= 0:
        return json.dumps(text, ensure_ascii=False)
    return f"{json.dumps(f'{text[:_LONGEST]}…', ensure_ascii=False)} and {excess} more characters"
