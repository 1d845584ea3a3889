"""The terminal: display of tasks, questions, results and histories, and correctable mistakes."""

from __future__ import annotations

from callboard.terminal._board import TaskDisplay
from callboard.terminal._check_option import checks_of
from callboard.terminal._check_words import exit_code
from callboard.terminal._commands import (
    EXIT_CODES,
    INTERRUPTED,
    NOT_VERIFIED,
    USAGE,
    Commands,
    existing_path,
    fail,
    mistakes,
    models_of,
    warn,
)
from callboard.terminal._completion import COMPLETE, completion_script, task_ids
from callboard.terminal._doctor import examine
from callboard.terminal._eval import WORSE, Again, EvalChoices, run_set
from callboard.terminal._eval_set import EvalSet, LoadedSet
from callboard.terminal._journals import (
    list_tasks,
    named_journal,
    print_log,
    resume_command,
    settings_at,
    task_command,
    undo_command,
    undo_task,
)
from callboard.terminal._manual import page_list, page_names, print_page
from callboard.terminal._people import Attendance, attendance
from callboard.terminal._place import keep_inside, prepare
from callboard.terminal._prepared_run import prepared, started
from callboard.terminal._project import DEMO, demo_folder, demo_names, file_schemas, write_project
from callboard.terminal._results import print_head, print_result, print_verdicts, replay_task
from callboard.terminal._show import show_task
from callboard.terminal._takeover import take_over, with_resume_hint
from callboard.terminal._task_session import TaskSession, play, resume_tasks
from callboard.terminal._text import terminal
from callboard.terminal._tool_list import list_tools

__all__ = [
    "COMPLETE",
    "DEMO",
    "EXIT_CODES",
    "INTERRUPTED",
    "NOT_VERIFIED",
    "USAGE",
    "WORSE",
    "Again",
    "Attendance",
    "Commands",
    "EvalChoices",
    "EvalSet",
    "LoadedSet",
    "TaskDisplay",
    "TaskSession",
    "attendance",
    "checks_of",
    "completion_script",
    "demo_folder",
    "demo_names",
    "examine",
    "existing_path",
    "exit_code",
    "fail",
    "file_schemas",
    "keep_inside",
    "list_tasks",
    "list_tools",
    "mistakes",
    "models_of",
    "named_journal",
    "page_list",
    "page_names",
    "play",
    "prepare",
    "prepared",
    "print_head",
    "print_log",
    "print_page",
    "print_result",
    "print_verdicts",
    "replay_task",
    "resume_command",
    "resume_tasks",
    "run_set",
    "settings_at",
    "show_task",
    "started",
    "take_over",
    "task_command",
    "task_ids",
    "terminal",
    "undo_command",
    "undo_task",
    "warn",
    "with_resume_hint",
    "write_project",
]
