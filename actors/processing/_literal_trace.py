"""Search an agent's calls and observations for literals."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.processing._request_literals import LiteralKind
from callboard.messages import Board, Outcome, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from callboard.actors.processing._request_literals import RequestLiteral
    from callboard.actors.states import Run
    from callboard.messages import Action, CommandResult, Decision, Observation

MOST_CHARACTERS = 1_000_000
"""The most text that is searched; with more of it, every literal counts as there."""

_DONE = frozenset({ResultStatus.SUCCESS, ResultStatus.DRY_RUN, ResultStatus.NONE})
_NUMERAL = re.compile(r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+)(?:[.,'\u2019]\d+)*(?P<percent>\s?%)?|\.\d+")
_WORD = re.compile(r"[^\W_]+")
_RANGE = re.compile(r"(?:.*!)?\$?([A-Z]{1,3})\$?(\d{1,7})(?::\$?([A-Z]{1,3})\$?(\d{1,7}))?")
_PLACE = re.compile(r"^(?:to|start|anchor|address)$|(?:cells?|range)$")
"""Parameters that name cells."""
_SHORT = 4
"""Texts with fewer letters must be whole words."""
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_WORD_NUMBERS = {word: float(number) for number, word in enumerate(_NUMBER_WORDS)}


@dataclass
class LiteralTrace:
    """The texts and cells in which literals are looked for."""

    texts: list[str] = field(default_factory=list)
    key_presses: list[str] = field(default_factory=list)
    """Single letters and digits that were typed or pressed, in order."""
    changed_ranges: list[tuple[int, int, int, int]] = field(default_factory=list)
    """The ranges that changing calls named: first and last column, first and last row."""
    is_cell_unknown: bool = False
    """Whether a changing call may have changed cells that its arguments do not name."""

    def missing(self, literals: Iterable[RequestLiteral]) -> tuple[RequestLiteral, ...]:
        """Return the literals that are nowhere."""
        if sum(map(len, self.texts)) > MOST_CHARACTERS:
            return ()
        text = "\n".join((*self.texts, "".join(self.key_presses)))
        words, letters = _words(text), _letters(text)
        amounts = {*_amounts(text), *(_WORD_NUMBERS[word] for word in words.split() if word in _WORD_NUMBERS)}
        cells = [literal for literal in literals if literal.kind is LiteralKind.CELL]
        missed_cells = () if not cells or self._touches(cells) else cells
        missing = []
        for literal in literals:
            match literal.kind:
                case LiteralKind.CELL:
                    there = literal not in missed_cells or f" {_words(literal.text).strip()} " in words
                case LiteralKind.NUMBER:
                    there = not amounts.isdisjoint(_alternatives(literal.text))
                case LiteralKind.FILE:
                    there = _contains(words, letters, re.split(r"[/\\]", literal.text)[-1])
                case LiteralKind.TEXT:
                    parts = re.split(r"[,;:|\t]", literal.text)
                    there = _contains(words, letters, literal.text) or all(
                        _contains(words, letters, part) for part in parts
                    )
            if not there:
                missing.append(literal)
        return tuple(missing)

    def _touches(self, cells: Iterable[RequestLiteral]) -> bool:
        """Return whether a changing call may have reached some cells."""
        if self.is_cell_unknown or not self.changed_ranges:
            return True
        ranges = [cell_range for cell in cells if (cell_range := _range(cell.text)) is not None]
        return any(
            left <= range_right and range_left <= right and top <= range_bottom and range_top <= bottom
            for left, right, top, bottom in self.changed_ranges
            for range_left, range_right, range_top, range_bottom in ranges
        )

    def add_call(self, action: Action | None, result: CommandResult) -> None:
        """Add a call that succeeded."""
        arguments = result.arguments if action is None else action.arguments
        leaves = list(_leaves(arguments))
        self.texts += [*leaves, *_leaves(result.value), *result.artifacts]
        names = [] if action is None or action.control is None else [action.control.name]
        self.texts += names
        self.key_presses += [text for text in (*names, *leaves) if len(text) == 1]
        if result.changed or result.status is ResultStatus.DRY_RUN:
            named = [value for name, value in arguments.items() if isinstance(value, str) and _PLACE.search(name)]
            ranges = [_extended(cell_range, arguments) for text in named if (cell_range := _range(text)) is not None]
            self.changed_ranges += ranges
            self.is_cell_unknown = self.is_cell_unknown or not ranges

    def add_observation(self, observation: Observation) -> None:
        """Add what an agent saw."""
        self.texts.append(observation.text)
        self.texts += _leaves(observation.window)
        for control in observation.controls:
            self.texts += [control.name, *control.states, *_leaves(control.detail)]
        for target in observation.targets:
            self.texts += [target.id, target.name]
        self.texts += [shared.text for shared in observation.shared if shared.board is not Board.REQUESTS]


def literal_trace(run: Run, observation: Observation, decision: Decision) -> LiteralTrace:
    """Collect the calls, observations and results of a run.

    For a HostAgent, the requests and results of the subtasks that finished count as well.
    """
    trace = LiteralTrace()
    actions = {action.call_id: action for record in run.memory for action in record.decision.actions}
    for record in run.records:
        trace.add_observation(record.observation)
        trace.texts += _leaves(record.decision.result)
        trace.texts += [question.text for question in record.decision.questions]
        for result in record.results:
            if result.status in _DONE:
                trace.add_call(actions.get(result.call_id), result)
    trace.add_observation(observation)
    trace.texts += _leaves(decision.result)
    if run.assign.target is not None:
        trace.texts += [run.assign.target.id, run.assign.target.name, run.assign.address]
    for subtask in run.subtasks:
        if subtask.outcome is Outcome.FINISHED:
            trace.texts += [subtask.target, subtask.address, *subtask.artifacts, *_leaves(subtask.output)]
            trace.texts += [] if run.assign.number else [subtask.request]
    return trace


def _leaves(value: JsonValue) -> Iterator[str]:
    """Return the texts and numbers of a value, keys included."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part
            waiting += reversed(part.values())
        elif isinstance(part, list | tuple):
            waiting += reversed(part)
        elif part is not None:
            yield f"{part:.15g}" if isinstance(part, float) and not isinstance(part, bool) else str(part)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words(text: str) -> str:
    """Return the words of a text, each between spaces."""
    return f" {' '.join(_WORD.findall(_folded(text)))} "


def _letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(_WORD.findall(_folded(text)))


def _contains(words: str, letters: str, text: str) -> bool:
    own_letters = _letters(text)
    return _words(text) in words or (len(own_letters) >= _SHORT and own_letters in letters) or not own_letters


def _amounts(text: str) -> Iterator[float]:
    for match in _NUMERAL.finditer(text):
        numeral = match[0].removesuffix(match["percent"] or "")
        values = _values(numeral)
        yield from values
        if match["percent"]:
            yield from (_rounded(value / 100) for value in values)


def _alternatives(literal: str) -> set[float]:
    """Return the numbers for which a numeral may stand.

    The factors of a percentage are some of them.
    """
    numeral = literal.rstrip("% \u00a0").lstrip("+-")
    values = _values(numeral)
    if "%" in literal:
        return values | {
            _rounded(factor) for value in values for factor in (value / 100, 1 + value / 100, 1 - value / 100)
        }
    return values


def _values(numeral: str) -> set[float]:
    """Return the values of a numeral in all usual notations."""
    digits = re.sub(r"[ \u00a0\u202f'\u2019]", "", numeral)
    marks = [mark for mark in digits if mark in ".,"]
    texts = set[str]()
    if len({*marks}) == 2:
        decimal = marks[-1]
        texts.add(digits.replace("," if decimal == "." else ".", "").replace(decimal, "."))
    elif len(marks) == 1:
        whole, _, fraction = digits.partition(marks[0])
        texts.add(f"{whole}.{fraction}")
        if len(fraction) == 3:
            texts.add(whole + fraction)
    else:
        texts.add(re.sub(r"[.,]", "", digits))
    return {_rounded(float(text)) for text in texts if re.fullmatch(r"\d*\.?\d+", text)}


def _rounded(value: float) -> float:
    return float(f"{value:.12g}") if math.isfinite(value) else value


def _range(text: str) -> tuple[int, int, int, int] | None:
    """Return the first and last columns and rows of a range."""
    match = _RANGE.fullmatch(text.strip()[:200])
    if match is None:
        return None
    first_column, first_row, last_column, last_row = match.groups()
    columns = sorted(map(_column, (first_column, last_column or first_column)))
    rows = sorted(map(int, (first_row, last_row or first_row)))
    return columns[0], columns[1], rows[0], rows[1]


def _column(name: str) -> int:
    number = 0
    for letter in name.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _extended(cell_range: tuple[int, int, int, int], arguments: dict[str, JsonValue]) -> tuple[int, int, int, int]:
    """Extend a corner by the size of the written table."""
    left, right, top, bottom = cell_range
    for value in arguments.values():
        if isinstance(value, list) and value:
            rows = [row for row in value if isinstance(row, list)]
            width = max(map(len, rows), default=len(value))
            right, bottom = max(right, left + width - 1), max(bottom, top + len(value) - 1)
    return left, right, top, bottom
