"""A report of one task in one file of HTML or Markdown."""

from __future__ import annotations

import base64
import importlib.metadata
import itertools
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from callboard.config import current_language, speaking, text
from callboard.console._file_changes import file_changes
from callboard.console._task_view import UNREADABLE, task_view
from callboard.console._templates import shown, templates
from callboard.history import cut, history_of, plain
from callboard.journal import JournalReader, Versions
from callboard.messages import CallboardError, JournalError, UnknownTaskError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.config import Language
    from callboard.console._file_changes import FileChange
    from callboard.console._task_view import EntryView, TaskView
    from callboard.history import TaskHistory
    from callboard.messages import TaskResult

PICTURE_MEGABYTES = 10.0
"""The usual bound of a report's pictures together; they take a third more in the file."""
_MOST_TEXT = 10_000
"""The longest text of a report, in characters; of a longer one, the beginning is shown."""
_MOST_CHARACTERS = 5_000_000
"""The most characters of a report beside its pictures."""
_MOST_ENTRIES = (1000, 200, 40, 8, 1)
"""The most entries, subtasks, causes, checks and files; less, if their texts are too long together."""
_STYLE = Path(__file__).parent / "static" / "console.css"
_TICKS = re.compile("`+")


def report(
    journal: Path,
    task_id: str,
    *,
    markdown: bool = False,
    picture_megabytes: float = PICTURE_MEGABYTES,
    language: Language | None = None,
) -> str:
    """Make a report of a task for people without the journal.

    It runs no script and loads nothing. Secrets are redacted as in the journal.

    Args:
        journal: The journal; it may be in use.
        task_id: The task.
        markdown: Make Markdown, without pictures, instead of HTML.
        picture_megabytes: The most megabytes of pictures; of more, the latest are shown. 0 for none.
        language: The language of the report; None for English.

    Raises:
        UnknownTaskError: If the journal does not have the task.
        JournalError: If the journal can't be read, or has facts of the task that can't be shown.
    """
    try:
        with speaking(language or current_language()):
            return _report(journal, task_id, markdown=markdown, picture_megabytes=picture_megabytes)
    except CallboardError:
        raise
    except UNREADABLE as error:
        msg = f"has facts of {task_id} that can't be shown: {type(error).__name__}: {reason_of(error)}"
        raise JournalError(journal, msg) from error


def _report(journal: Path, task_id: str, *, markdown: bool, picture_megabytes: float) -> str:
    with JournalReader.open(journal, pictures=False) as reader:
        history = history_of(reader.rows(task_id))
        if history is None:
            raise UnknownTaskError(task_id)
        now, changes = time.time(), file_changes(history, Versions(reader.path))
        most_bytes = 0 if markdown else round(picture_megabytes * 1_000_000)
        for most in _MOST_ENTRIES:
            view = task_view(history, now, most=most)
            contents = _Contents(reader, history.result, view, most, most_bytes, markdown=markdown)
            written = _rendered(history, view, contents, changes, now, markdown=markdown)
            if len(written) - contents.picture_characters <= _MOST_CHARACTERS:
                break
    return written


def _rendered(
    history: TaskHistory,
    view: TaskView,
    contents: _Contents,
    changes: dict[str, FileChange],
    now: float,
    *,
    markdown: bool,
) -> str:
    environment = templates(_code_span if markdown else _cut_shown, markdown=markdown, report=contents)
    if markdown:
        environment.filters["fenced"] = _fenced
    return environment.get_template("report.md" if markdown else "report.html").render(
        history=history,
        changes=changes,
        view=view,
        task=history.task,
        result=contents.result,
        status=None,
        made=now,
        style="" if markdown else _STYLE.read_text(encoding="utf-8"),
        version=importlib.metadata.version("callboard"),
    )


class _Contents:
    """The result and the pictures of a report, and notes about omissions."""

    def __init__(
        self,
        reader: JournalReader,
        result: TaskResult | None,
        view: TaskView,
        most: int,
        most_bytes: int,
        *,
        markdown: bool,
    ) -> None:
        """Choose the latest pictures that fit, and cut the lists."""
        self._sources: dict[str, Markup] = {}
        self._numbers: dict[str, int] = {}
        digests = dict.fromkeys(itertools.chain.from_iterable(map(_digests, view.entries)))
        left_out = damaged = 0
        room = most_bytes
        for digest in reversed(digests):
            picture = reader.picture(bytes.fromhex(digest)) if room else b""
            if picture is None:
                damaged += 1
            elif room and len(picture) <= room:
                room -= len(picture)
                encoded = base64.b64encode(picture).decode()
                self._sources[digest] = Markup(f"data:image/png;base64,{encoded}")  # noqa: S704 - base64
            else:
                left_out += 1
        self.picture_characters = sum(map(len, self._sources.values()))
        subtasks = len(view.runs) - most
        parts = max(0, len(view.files) - most)
        del view.runs[most:], view.files[most:]
        self.result = result
        if result is not None:
            parts += sum(max(0, len(items) - most) for items in (result.causes, result.checks))
            cut_lists = {"causes": result.causes[:most], "checks": result.checks[:most]}
            self.result = result.model_copy(update=cut_lists)
        pictures_note = "pictures_elsewhere" if markdown else "pictures_left_out"
        self.notes = [
            Markup(text(name, count=number))  # noqa: S704 - a number, and a text of our own
            for name, number in (
                ("entries_left_out", view.earlier),
                ("subtasks_left_out", subtasks),
                ("parts_left_out", parts),
                (pictures_note, left_out),
                ("pictures_lost", damaged),
            )
            if number > 0
        ]

    def picture(self, digest: str) -> tuple[int, Markup]:
        """Return the number of a picture, and once its source.

        The number is 0 for one that is left out.
        """
        source = self._sources.get(digest)
        if source is None:
            return 0, Markup()
        if digest in self._numbers:
            return self._numbers[digest], Markup()
        self._numbers[digest] = len(self._numbers) + 1
        return self._numbers[digest], source


def _digests(entry: EntryView) -> Iterator[str]:
    """Yield the digests of an entry's pictures, in their order."""
    yield from filter(None, (entry.before, entry.after))
    yield from (digest for call in entry.calls for digest in call.pictures)


def _cut_shown(value: object) -> object:
    return shown(cut(value, _MOST_TEXT)) if type(value) is str else value


def _code_span(value: object) -> object:
    """Write a text of others for Markdown, as code on one line.

    Nothing in it is markup.
    """
    if type(value) is not str:
        return value
    code = plain(cut(value, _MOST_TEXT)).strip() or " "
    ticks = "`" * (_longest_ticks(code) + 1)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return Markup(f"{ticks}{space}{code}{space}{ticks}")  # noqa: S704 - nothing is markup in code


def _fenced(code: str, indent: int = 0) -> Markup:
    """Write a text of others for Markdown, as a block of code.

    It can't end its fence.
    """
    lines = [plain(line.expandtabs(4)) for line in cut(code, _MOST_TEXT).split("\n")]
    fence = "`" * max(3, _longest_ticks(code) + 1)
    return Markup("\n".join(f"{' ' * indent}{line}".rstrip() for line in (f"{fence}text", *lines, fence)))  # noqa: S704


def _longest_ticks(code: str) -> int:
    return max(map(len, _TICKS.findall(code)), default=0)
