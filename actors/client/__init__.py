"""The caller's side of the root: client, submission, handles, undo, reports."""

from callboard.actors.client._client import RootClient
from callboard.actors.client._handle import TaskHandle
from callboard.actors.client._start_arguments import check_start_arguments
from callboard.actors.client._submission import Submission
from callboard.actors.client._task_reports import (
    NOTICE,
    PART_CHARACTERS,
    OtherTexts,
    RequestKind,
    ResultPart,
    TaskReport,
    kind_of_request,
    report_end,
    report_open,
    report_whole,
    shown_whole,
)
from callboard.actors.client._undo import undo

__all__ = [
    "NOTICE",
    "PART_CHARACTERS",
    "OtherTexts",
    "RequestKind",
    "ResultPart",
    "RootClient",
    "Submission",
    "TaskHandle",
    "TaskReport",
    "check_start_arguments",
    "kind_of_request",
    "report_end",
    "report_open",
    "report_whole",
    "shown_whole",
    "undo",
]
