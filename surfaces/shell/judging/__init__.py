"""The analysis of commands: the files that they read and change."""

from callboard.surfaces.shell.judging._command_form import command_form
from callboard.surfaces.shell.judging._disk import Disk, LocalDisk, RemoteDisk, is_special
from callboard.surfaces.shell.judging._environment_variables import PATH
from callboard.surfaces.shell.judging._judge import UNSEEN, Judgement, judge
from callboard.surfaces.shell.judging._named_files import file_kind, named_files
from callboard.surfaces.shell.judging._privileged import privileged
from callboard.surfaces.shell.judging._word_expansion import UnclearError

__all__ = [
    "PATH",
    "UNSEEN",
    "Disk",
    "Judgement",
    "LocalDisk",
    "RemoteDisk",
    "UnclearError",
    "command_form",
    "file_kind",
    "is_special",
    "judge",
    "named_files",
    "privileged",
]
