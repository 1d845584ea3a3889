"""Changes of a task's files in words, from the versions that the journal keeps."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest

from callboard import Outcome, TaskResult
from callboard.console import report
from callboard.console._file_changes import file_changes
from callboard.history import TaskHistory
from callboard.journal import JournalReader, Versions
from callboard.messages import Foreseen
from support import command_line, lone

OLD, MIDDLE, NEW = b"one\ntwo\n", b"one\nthree\n", b"one\nthree\nfour\n"
TASK = lone(id="t")


def digest(data):
    return hashlib.sha256(data).hexdigest() if data else ""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(NEW)
    return path


@pytest.fixture
def words(tmp_path, file):
    """Give the words for a file that a task wrote: ``words(OLD, NEW)``, its versions in order."""
    versions = Versions(tmp_path / "journal.db")

    def described(*contents, kept=True, result_files=(str(file),), lost=False, notes_before=()):
        history = TaskHistory(TASK, 0.0)
        history.result = TaskResult(task_id="t", outcome=Outcome.FINISHED, changed=result_files)
        history.foreseen += [note.model_copy(update={"path": str(file)}) for note in notes_before]
        for before, after in itertools.pairwise(contents):
            if before and kept:
                versions.keep("t", before)
            history.foreseen.append(
                Foreseen(call_id="c", path=str(file), before=digest(before), after=digest(after), kept=kept)
            )
        if lost:
            versions.path("t", digest(contents[0])).unlink()
        change = file_changes(history, versions).get(str(file))
        return None if change is None else change.words

    return described


def test_changes_are_counted_over_all_writes(words):
    assert words(OLD, MIDDLE, NEW) == "changed: 2 lines"


def test_new_file_is_counted_whole(words):
    assert words(b"", MIDDLE, NEW, kept=False) == "new: 3 lines"


def test_write_that_was_not_done_is_no_change_by_others(words):
    assert words(OLD, NEW, b"never") == "changed: 2 lines"


def test_changes_of_others_between_two_writes_are_told(words, tmp_path):
    Versions(tmp_path / "journal.db").keep("t", OLD)
    notes = [Foreseen(call_id="c", path="", before=digest(OLD), after=digest(MIDDLE), kept=True)]
    assert words(OLD, MIDDLE, NEW, notes_before=notes) == "changed: 2 lines"
    notes = [*notes, Foreseen(call_id="c", path="", before=digest(b"other"), after=digest(OLD), kept=True)]
    assert words(OLD, MIDDLE, NEW, notes_before=notes) == "changed: 2 lines, some of it by another program"


def test_file_without_a_kept_version_is_not_compared(words):
    assert words(OLD, NEW, kept=False) == "changed; its version before the task is not kept"
    assert words(OLD, NEW, lost=True) == "changed; its version before the task is not kept"


def test_file_that_another_program_changed_is_not_compared(words, file):
    file.write_bytes(b"mine\n")
    assert words(OLD, NEW).startswith("changed since the task by another program")


def test_file_that_was_brought_back_is_as_before(words, file):
    file.write_bytes(OLD)
    assert words(OLD, NEW) == "as before the task again"


def test_files_that_are_gone_or_links_are_not_opened(words, file, tmp_path):
    file.unlink()
    assert words(OLD, NEW) == "not there any more"
    (tmp_path / "other.txt").write_bytes(NEW)
    file.symlink_to(tmp_path / "other.txt")
    assert words(OLD, NEW) == "not there any more"


def test_files_outside_the_result_are_not_opened(words):
    assert words(OLD, NEW, result_files=()) is None


def test_large_files_and_late_ones_are_not_compared(words, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("callboard.console._file_changes._MOST_BYTES", len(NEW) - 1)
        assert words(OLD, NEW) == "changed; too large to compare here"
    monkeypatch.setattr("callboard.console._file_changes._MOST_SECONDS", -1.0)
    assert words(OLD, NEW) == "changed; too large to compare here"


def test_report_counts_the_cells_of_a_new_workbook(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "sales_report"
    assert command_line("run", example, "--output", tmp_path / "copy").exit_code == 0
    journal = tmp_path / "copy" / "journal.db"
    with JournalReader.open(journal) as reader:
        (task,) = reader.tasks()
    for markdown in (False, True):
        assert "new: 25 cells, 1 chart" in report(journal, task.id, markdown=markdown)
