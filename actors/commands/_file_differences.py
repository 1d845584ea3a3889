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
    room, told = _MOST, []
    for number, (name, old, new) in enumerate(files):
        share = max(_LEAST, room // (len(files) - number))
        lines = _bounded(list(_lines(old, new, name)), share)
        room -= sum(map(len, lines))
        told.append("\n".join((f"{_word(name)} {_headline(old, new)}", *(f"- {line}" for line in lines))))
    return "\n\n".join(told)


def _headline(old: bytes | None, new: bytes | None) -> str:
    return "was removed" if new is None else "is new:" if old is None else "was changed:"


def _bounded(lines: list[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 3
        if room < 0:
            return [*kept, f"({len(lines) - len(kept)} further differences of this file are left out here)"]
        kept.append(line)
    return kept


def _lines(old: bytes | None, new: bytes | None, name: str) -> Iterator[str]:
    if new is None:
        return
    after = contents_in(name, new)
    before = Contents() if old is None else contents_in(name, old)
    if before is None or after is None:
        yield _UNSEEN
        return
    parts = (_of_sheets, _of_cells, _of_texts, _of_parts)
    yield from [line for part in parts for line in part(before, after)] or ["it is empty" if not new else _UNSEEN]


def _of_sheets(before: Contents, after: Contents) -> Iterator[str]:
    for key, title in after.sheets.items():
        if key not in before.sheets:
            yield f"new sheet {_word(title)}"
        elif before.sheets[key] != title:
            yield f"sheet {_word(before.sheets[key])} is called {_word(title)} now"
    yield from (f"sheet {_word(title)} removed" for key, title in before.sheets.items() if key not in after.sheets)


def _of_cells(before: Contents, after: Contents) -> Iterator[str]:
    for part, cell in sorted(before.cells.keys() | after.cells.keys(), key=_place):
        old, new = (_cell(contents, (part, cell)) for contents in (before, after))
        if old != new:
            title = after.titles.get(part) or before.titles.get(part) or part
            yield f"{_word(f'{title}!{cell}')}: {old} -> {new}"


def _place(key: tuple[str, str]) -> tuple[str, int, int, str]:
    """Return the sort key of a cell: sheet, row and column."""
    found = _CELL.fullmatch(key[1])
    return (key[0], int(found[2]), len(found[1]), found[1]) if found else (key[0], 0, 0, key[1])


def _cell(contents: Contents, place: tuple[str, str]) -> str:
    content = contents.cells.get(place, "")
    if not content:
        return "empty"
    if not content.startswith(FORMULA):
        return _word(content)
    shown = "a formula" if content == FORMULA else _word(content)
    return f"{shown} with the stored result {_word(contents.results[place])}" if place in contents.results else shown


def _of_texts(before: Contents, after: Contents) -> Iterator[str]:
    for kind in dict.fromkeys((*before.texts, *after.texts)):
        old, new = before.texts.get(kind, Counter()), after.texts.get(kind, Counter())
        yield from _counted(f"{kind} removed", old - new)
        yield from _counted(f"{kind} added", new - old)
        if old == new and list(old) != list(new):
            yield f"the same {kind}s in another order"


def _counted(what: str, texts: Counter[str]) -> Iterable[str]:
    for text, times in texts.items():
        yield f"{what}: {_word(text)}{f', {times} times' if times > 1 else ''}"


def _of_parts(before: Contents, after: Contents) -> Iterator[str]:
    for kind in dict.fromkeys((*before.parts, *after.parts)):
        old, new = before.parts.get(kind, Counter()), after.parts.get(kind, Counter())
        for words, some in (("removed", old - new), ("new or changed", new - old)):
            for part, times in some.items():
                about = f" ({_word(chart_words(part))})" if kind == "chart" and isinstance(part, bytes) else ""
                yield f"{times} {kind}{'s' * (times > 1)} {words}{about}"


def _word(text: str) -> str:
    """Write a text as JSON, cut to a length."""
    left = len(text) - _LONGEST
    if left <= 0:
        return json.dumps(text, ensure_ascii=False)
    return f"{json.dumps(f'{text[:_LONGEST]}…', ensure_ascii=False)} and {left} more characters"
