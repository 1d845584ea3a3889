"""Write a report of one task to a file."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.config import install_command
from callboard.history import plain
from callboard.journal import JournalReader, safe_name
from callboard.surfaces import publish_file, spare_file
from callboard.terminal._commands import fail
from callboard.terminal._journals import find_task, journal_at
from callboard.terminal._text import short

if TYPE_CHECKING:
    from rich.console import Console

_EXTRA = {"jinja2", "markupsafe"}
_MARKDOWN = {".md", ".markdown"}
_HTML = {".html", ".htm"}


def write_report(
    console: Console, task_id: str, path: Path | None, output: Path | None, *, markdown: bool, picture_megabytes: float
) -> None:
    """Write a report of a task, and print the file's name.

    The task is found by the beginning of its id. An existing file is refused. Only its user can read the new one.
    """
    if output is not None and not markdown:
        markdown = output.suffix.lower() in _MARKDOWN
        if not markdown and output.suffix.lower() not in _HTML:
            fail(f"{output}: a report is a file of HTML or Markdown: name it .html or .md, or use --markdown")
    journal = journal_at(path)
    with JournalReader.open(journal) as reader:
        full_id = find_task(reader, task_id)
    file = output or Path(f"{safe_name(full_id)}{'.md' if markdown else '.html'}")
    taken = f"{file}: already exists; give the report another name with --output, or delete the file"
    if os.path.lexists(file):
        fail(taken)
    if not file.parent.is_dir():
        fail(f"{file.parent}: there is no such folder; give the report another place with --output")
    text = _report(journal, full_id, markdown=markdown, picture_megabytes=picture_megabytes)
    with spare_file(file, text.encode(), 0o600) as spare:
        try:
            publish_file(spare, file)
        except FileExistsError:  # since the check
            fail(taken)
    console.print(Text("report  ", style="dim").append(plain(short(file.absolute())), "default"), soft_wrap=True)


def _report(journal: Path, task_id: str, *, markdown: bool, picture_megabytes: float) -> str:
    """Make the report, if the library for it is installed."""
    try:
        module = importlib.import_module("callboard.console")
        text: str = module.report(journal, task_id, markdown=markdown, picture_megabytes=picture_megabytes)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        fail(f"a report needs more packages: {install_command('console')}")
    return text
