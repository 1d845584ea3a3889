"""The caller's side of the root: its client, task submission, and handles."""

from callboard.actors.client._client import RootClient
from callboard.actors.client._handle import TaskHandle
from callboard.actors.client._submission import Submission

__all__ = ["RootClient", "Submission", "TaskHandle"]
