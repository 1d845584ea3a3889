"""The journal: an ordered log of messages, in memory or in SQLite.

A process that starts after a crash reads it to resume unfinished tasks.
"""

from callboard.journal._artifacts import Artifacts, artifacts_of, safe_name
from callboard.journal._file import JournalFile
from callboard.journal._file_journal import FileJournal
from callboard.journal._journal import Journal, settle
from callboard.journal._lock import JournalHolder
from callboard.journal._memory_journal import MemoryJournal
from callboard.journal._pictures import without_pictures
from callboard.journal._reader import JournalReader
from callboard.journal._routine_runs import RoutineRun
from callboard.journal._row import Row
from callboard.journal._task_list import TaskCount, TaskFilter, TaskLine, TaskPage
from callboard.journal._undo_versions import Versions

__all__ = [
    "Artifacts",
    "FileJournal",
    "Journal",
    "JournalFile",
    "JournalHolder",
    "JournalReader",
    "MemoryJournal",
    "RoutineRun",
    "Row",
    "TaskCount",
    "TaskFilter",
    "TaskLine",
    "TaskPage",
    "Versions",
    "artifacts_of",
    "safe_name",
    "settle",
    "without_pictures",
]
