"""The terminal: the display of tasks, their questions, their results and histories, and what a user can mend."""

from callboard.console._attendance import Attendance, attendance
from callboard.console._board import Board
from callboard.console._commands import Commands, there
from callboard.console._doctor import examine
from callboard.console._journals import SETTINGS_FILE, list_tasks, resume_command, settings_at
from callboard.console._logs import print_log
from callboard.console._mistakes import EXIT_CODES, INTERRUPTED, USAGE, fail, mistakes, warn
from callboard.console._models import models_of
from callboard.console._place import keep_inside, prepare, started
from callboard.console._play import Stage, go_on, play
from callboard.console._replayed import replay_task
from callboard.console._result import print_head, print_result, print_verdicts
from callboard.console._show import show_task
from callboard.console._takeover import kept, take_over
from callboard.console._text import terminal
from callboard.console._tools import list_tools

__all__ = [
    "EXIT_CODES",
    "INTERRUPTED",
    "SETTINGS_FILE",
    "USAGE",
    "Attendance",
    "Board",
    "Commands",
    "Stage",
    "attendance",
    "examine",
    "fail",
    "go_on",
    "keep_inside",
    "kept",
    "list_tasks",
    "list_tools",
    "mistakes",
    "models_of",
    "play",
    "prepare",
    "print_head",
    "print_log",
    "print_result",
    "print_verdicts",
    "replay_task",
    "resume_command",
    "settings_at",
    "show_task",
    "started",
    "take_over",
    "terminal",
    "there",
    "warn",
]
