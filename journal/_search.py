"""The index of a journal's tasks, by words, outcomes and labels.

It is a full-text index of SQLite (FTS5), filled by the journal's writer. All texts are split into words here, so that
SQLite splits them at spaces only: then a journal without the index is searched for the same words. An outcome and a
label are one word each, with a character that no text's word has.

A SQLite library without FTS5 can neither read nor write the index. Its writer removes the mark `searched`, and the
next writer that has FTS5 builds the index again.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from callboard.journal._words import words_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

TEXT_CHARACTERS = 2_000
"""The maximum length of a searched request, comment or output, or of all reasons."""

UNFINISHED = "\ue000unfinished"
"""The word of a task without an outcome."""

Alternatives = tuple[str, ...]
"""Words; a task must have one of them.

A word with a star at its end stands for all that begin with it.
"""

_CREATE = "CREATE VIRTUAL TABLE search USING fts5(words, tokenize = 'ascii', detail = 'none', columnsize = 0)"
_TABLES = {"search_data", "search_idx", "search_content", "search_config"}
"""The tables in which SQLite stores the index; their definitions depend on its version."""

_AVAILABLE = "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
_MARKED = "SELECT count(*) FROM marks WHERE name = 'searched'"
_FILL = "INSERT INTO search (rowid, words) VALUES (?, ?)"
_SUBMITTED = "INSERT INTO search (rowid, words) SELECT number, ? FROM tasks WHERE id = ?"
_ENDED = "UPDATE search SET words = replace(words, ?, ?) WHERE rowid = (SELECT number FROM tasks WHERE id = ?)"
_DROP = "DELETE FROM search WHERE rowid = (SELECT number FROM tasks WHERE id = ?)"

BODIES = """(
    SELECT body FROM rows WHERE task = tasks.id AND kind = 'task' ORDER BY rows.id LIMIT 1
), (
    SELECT body FROM rows WHERE task = tasks.id AND kind = 'task_result' ORDER BY rows.id LIMIT 1
)"""
"""The columns of a task's JSON and of its result's."""
_TASKS = f"SELECT number, outcome, {BODIES} FROM tasks ORDER BY number"  # noqa: S608 - of constants


class _Step(msgspec.Struct):
    request: str = ""


class _Submitted(msgspec.Struct):
    """The searched fields of a task."""

    request: str = ""
    plan: list[_Step] = []
    labels: dict[str, str] = {}


class _Reason(msgspec.Struct):
    reason: str = ""


class _Ended(msgspec.Struct):
    """The searched fields of a result."""

    outcome: str = ""
    comment: str = ""
    output: Any = None
    causes: list[_Reason] = []


_S = TypeVar("_S", _Submitted, _Ended)


class SearchIndex:
    """The writer's side of the index, in the open transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._usable = searchable(connection)

    def add(self, bodies: Iterable[tuple[str, str, str]]) -> None:
        """Add tasks and results.

        Each is the task's id, the message's kind, and its JSON. The table of tasks has the tasks already.
        """
        if not self._usable:
            return
        for task_id, kind, body in bodies:
            if kind == "task":
                self._connection.execute(_SUBMITTED, (_joined([*_words_of_task(body), UNFINISHED]), task_id))
            elif kind == "task_result":
                words = [outcome_word(_decoded(body, _Ended).outcome), *_words_of_result(body)]
                self._connection.execute(_ENDED, (UNFINISHED, _joined(words), task_id))

    def drop(self, task_id: str) -> None:
        """Delete a task that is still in the table of tasks."""
        if self._usable:
            self._connection.execute(_DROP, (task_id,))


def available(connection: sqlite3.Connection) -> bool:
    """Return whether this SQLite library has FTS5."""
    return bool(connection.execute(_AVAILABLE).fetchone()[0])


def searchable(connection: sqlite3.Connection) -> bool:
    """Return whether the index can be used, and has all tasks."""
    return _is_marked(connection) and available(connection)


def is_current(connection: sqlite3.Connection) -> bool:
    """Return whether `build` has nothing to do."""
    return _is_marked(connection) == available(connection)


def build(connection: sqlite3.Connection) -> None:
    """Build the index from the rows, in the open transaction.

    Without FTS5, an index of the journal is marked as out of date.
    """
    if not available(connection):
        connection.execute("DELETE FROM marks WHERE name = 'searched'")
        return
    connection.execute("DROP TABLE IF EXISTS search")
    connection.execute(_CREATE)
    tasks = connection.execute(_TASKS)
    connection.executemany(_FILL, ((number, _joined(words_in(*columns))) for number, *columns in tasks))
    connection.execute("INSERT OR REPLACE INTO marks VALUES ('searched', 1)")


def _is_marked(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_MARKED).fetchone()[0])


def is_part(kind: str, name: str, sql: str) -> bool:
    """Return whether a database object belongs to the index."""
    return kind == "table" and (name in _TABLES or (name == "search" and sql == _CREATE))


def words_in(outcome: str | None, task_body: str | None, result_body: str | None) -> list[str]:
    """List the words of a task, in any order."""
    words = [*_words_of_task(task_body or "{}"), outcome_word(outcome)]
    return words if result_body is None else [*words, *_words_of_result(result_body)]


def outcome_word(outcome: str | None) -> str:
    """Return the word of an outcome; None is that of unfinished tasks."""
    return f"\ue000{outcome.replace('_', '')}" if outcome else UNFINISHED


def label_word(name: str, value: str) -> str:
    """Return the word of a label."""
    text = f"{len(name)} {name} {value}".encode(errors="surrogatepass")
    return f"\ue001{hashlib.blake2b(text, digest_size=12).hexdigest()}"


def query_of(groups: Sequence[Alternatives]) -> str:
    """Write groups of alternatives as a query of FTS5.

    Every group must match. Each word is quoted, so that none is an operator.
    """
    return " AND ".join(f"({' OR '.join(map(_quoted, group))})" for group in groups)


def matches(groups: Sequence[Alternatives], words: Iterable[str]) -> bool:
    """Return whether words fulfil what `query_of` asks for."""
    known_words = set(words)
    return all(any(_is_in(word, known_words) for word in group) for group in groups)


def _quoted(word: str) -> str:
    return f'"{word[:-1]}"*' if word.endswith("*") else f'"{word}"'


def _is_in(word: str, known_words: set[str]) -> bool:
    if word.endswith("*"):
        return any(known.startswith(word[:-1]) for known in known_words)
    return word in known_words


def _joined(words: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(words))


def _words_of_task(body: str) -> Iterator[str]:
    task = _decoded(body, _Submitted)
    yield from words_of((task.request or " ".join(step.request for step in task.plan))[:TEXT_CHARACTERS])
    yield from itertools.starmap(label_word, task.labels.items())


def _words_of_result(body: str) -> Iterator[str]:
    result = _decoded(body, _Ended)
    output = " ".join(itertools.islice(_texts_in(result.output), TEXT_CHARACTERS))
    reasons = " ".join(cause.reason for cause in result.causes)
    for text in (result.comment, output, reasons):
        yield from words_of(text[:TEXT_CHARACTERS])


def _decoded(body: str, fields: type[_S]) -> _S:
    """Decode the searched fields; a damaged row has none."""
    try:
        return msgspec.json.decode(body, type=fields)
    except msgspec.DecodeError:
        return fields()


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts, numbers and keys within JSON."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _texts_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts_in(member)
    elif value is not None:
        yield str(value)
