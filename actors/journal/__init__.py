"""The journal: an ordered log of messages, in memory or in SQLite.

A process that starts after a crash reads it to resume unfinished tasks.
"""

from callboard.actors.journal._artifacts import Artifacts
from callboard.actors.journal._file import JournalFile
from callboard.actors.journal._file_journal import FileJournal
from callboard.actors.journal._journal import Journal, settle
from callboard.actors.journal._lock import JournalHolder
from callboard.actors.journal._memory_journal import MemoryJournal
from callboard.actors.journal._pictures import without_pictures
from callboard.actors.journal._reader import JournalReader, TaskLine
from callboard.actors.journal._row import Row
from callboard.actors.journal._undo_versions import Versions

__all__ = [
    "Artifacts",
    "FileJournal",
    "Journal",
    "JournalFile",
    "JournalHolder",
    "JournalReader",
    "MemoryJournal",
    "Row",
    "TaskLine",
    "Versions",
    "settle",
    "without_pictures",
]
