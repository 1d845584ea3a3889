"""The caller's side of the root: its client, task submission, handles, and the undo of a task."""

from callboard.actors.client._client import RootClient
from callboard.actors.client._handle import TaskHandle
from callboard.actors.client._submission import Submission
from callboard.actors.client._undo import undo

__all__ = ["RootClient", "Submission", "TaskHandle", "undo"]
