"""The caller's side of the root: client, submission, handles, undo."""

from callboard.actors.client._client import RootClient
from callboard.actors.client._handle import TaskHandle
from callboard.actors.client._start_arguments import check_start_arguments
from callboard.actors.client._submission import Submission
from callboard.actors.client._undo import undo

__all__ = ["RootClient", "Submission", "TaskHandle", "check_start_arguments", "undo"]
