"""The terminal: display of tasks, questions, results and histories, and correctable mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.terminal._board import TaskDisplay
    from callboard.terminal._check_option import checks_of
    from callboard.terminal._command_line import app
    from callboard.terminal._commands import (
        COMPLETE,
        DEMO,
        EXIT_CODES,
        INTERRUPTED,
        NOT_VERIFIED,
        USAGE,
        WORSE,
        Again,
        Commands,
        existing_path,
        exit_code,
        fail,
        mistakes,
        models_of,
        warn,
    )
    from callboard.terminal._completion import completion_script
    from callboard.terminal._console_command import console_of, open_console, print_new_link
    from callboard.terminal._doctor import examine
    from callboard.terminal._eval import EvalChoices, run_set
    from callboard.terminal._eval_set import EvalSet, LoadedSet
    from callboard.terminal._fleet_machines import print_machines
    from callboard.terminal._fleet_serving import serve_fleet
    from callboard.terminal._fleet_setup import set_up_fleet
    from callboard.terminal._journals import (
        journal_in,
        list_tasks,
        named_journal,
        print_log,
        resume_command,
        settings_at,
        task_command,
        task_filter,
        task_ids,
    )
    from callboard.terminal._manual import page_list, page_names, print_page
    from callboard.terminal._mcp_command import mcp_settings, print_new_token, serve_mcp
    from callboard.terminal._people import Attendance, attendance
    from callboard.terminal._place import keep_inside, prepare
    from callboard.terminal._prepared_run import prepared, removed_if_refused, started
    from callboard.terminal._project import demo_folder, demo_names, file_schemas, write_project
    from callboard.terminal._report_command import write_report
    from callboard.terminal._results import print_head, print_result, print_verdicts, replay_task
    from callboard.terminal._routine_commands import save_routine
    from callboard.terminal._routine_repairs import keep_repair, print_difference, promote_change, propose_change
    from callboard.terminal._routine_reports import list_routines, print_stats, show_routine
    from callboard.terminal._show import show_task
    from callboard.terminal._takeover import take_over, with_resume_hint
    from callboard.terminal._task_session import TaskSession, play, resume_tasks
    from callboard.terminal._text import terminal
    from callboard.terminal._tool_list import folder_and_name, list_tools
    from callboard.terminal._undo_commands import undo_command, undo_task

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
    "app",
    "attendance",
    "checks_of",
    "completion_script",
    "console_of",
    "demo_folder",
    "demo_names",
    "examine",
    "existing_path",
    "exit_code",
    "fail",
    "file_schemas",
    "folder_and_name",
    "journal_in",
    "keep_inside",
    "keep_repair",
    "list_routines",
    "list_tasks",
    "list_tools",
    "mcp_settings",
    "mistakes",
    "models_of",
    "named_journal",
    "open_console",
    "page_list",
    "page_names",
    "play",
    "prepare",
    "prepared",
    "print_difference",
    "print_head",
    "print_log",
    "print_machines",
    "print_new_link",
    "print_new_token",
    "print_page",
    "print_result",
    "print_stats",
    "print_verdicts",
    "promote_change",
    "propose_change",
    "removed_if_refused",
    "replay_task",
    "resume_command",
    "resume_tasks",
    "run_set",
    "save_routine",
    "serve_fleet",
    "serve_mcp",
    "set_up_fleet",
    "settings_at",
    "show_routine",
    "show_task",
    "started",
    "take_over",
    "task_command",
    "task_filter",
    "task_ids",
    "terminal",
    "undo_command",
    "undo_task",
    "warn",
    "with_resume_hint",
    "write_project",
    "write_report",
]

_HOMES = {
    "callboard.terminal._board": ("TaskDisplay",),
    "callboard.terminal._check_option": ("checks_of",),
    "callboard.terminal._command_line": ("app",),
    "callboard.terminal._commands": (
        "COMPLETE",
        "DEMO",
        "EXIT_CODES",
        "INTERRUPTED",
        "NOT_VERIFIED",
        "USAGE",
        "WORSE",
        "Again",
        "Commands",
        "existing_path",
        "exit_code",
        "fail",
        "mistakes",
        "models_of",
        "warn",
    ),
    "callboard.terminal._completion": ("completion_script",),
    "callboard.terminal._console_command": ("console_of", "open_console", "print_new_link"),
    "callboard.terminal._doctor": ("examine",),
    "callboard.terminal._eval": ("EvalChoices", "run_set"),
    "callboard.terminal._eval_set": ("EvalSet", "LoadedSet"),
    "callboard.terminal._fleet_machines": ("print_machines",),
    "callboard.terminal._fleet_serving": ("serve_fleet",),
    "callboard.terminal._fleet_setup": ("set_up_fleet",),
    "callboard.terminal._journals": (
        "journal_in",
        "list_tasks",
        "named_journal",
        "print_log",
        "resume_command",
        "settings_at",
        "task_command",
        "task_filter",
        "task_ids",
    ),
    "callboard.terminal._manual": ("page_list", "page_names", "print_page"),
    "callboard.terminal._mcp_command": ("mcp_settings", "print_new_token", "serve_mcp"),
    "callboard.terminal._people": ("Attendance", "attendance"),
    "callboard.terminal._place": ("keep_inside", "prepare"),
    "callboard.terminal._prepared_run": ("prepared", "removed_if_refused", "started"),
    "callboard.terminal._project": ("demo_folder", "demo_names", "file_schemas", "write_project"),
    "callboard.terminal._report_command": ("write_report",),
    "callboard.terminal._results": ("print_head", "print_result", "print_verdicts", "replay_task"),
    "callboard.terminal._routine_commands": ("save_routine",),
    "callboard.terminal._routine_repairs": ("keep_repair", "print_difference", "promote_change", "propose_change"),
    "callboard.terminal._routine_reports": ("list_routines", "print_stats", "show_routine"),
    "callboard.terminal._show": ("show_task",),
    "callboard.terminal._takeover": ("take_over", "with_resume_hint"),
    "callboard.terminal._task_session": ("TaskSession", "play", "resume_tasks"),
    "callboard.terminal._text": ("terminal",),
    "callboard.terminal._undo_commands": ("undo_command", "undo_task"),
    "callboard.terminal._tool_list": ("folder_and_name", "list_tools"),
}
"""The names by the module that has them: a command imports only the parts that it runs."""

if not TYPE_CHECKING:  # a type checker would take any name for one of this module's
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
