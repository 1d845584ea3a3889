"""The terminal: the display of a task, its questions, its result, and what a user can mend."""

from callboard.console._attendance import Attendance, attendance
from callboard.console._board import Board
from callboard.console._mistakes import EXIT_CODES, INTERRUPTED, USAGE, fail, mistakes
from callboard.console._place import SETTINGS_FILE, keep_inside, prepare
from callboard.console._play import Stage, play
from callboard.console._result import print_result, print_verdicts
from callboard.console._text import plain, short

__all__ = [
    "EXIT_CODES",
    "INTERRUPTED",
    "SETTINGS_FILE",
    "USAGE",
    "Attendance",
    "Board",
    "Stage",
    "attendance",
    "fail",
    "keep_inside",
    "mistakes",
    "plain",
    "play",
    "prepare",
    "print_result",
    "print_verdicts",
    "short",
]
