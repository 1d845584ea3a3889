"""The root actor and its parts: tasks, leases, children, desk, recorder."""

from callboard.actors.root._actor import Root
from callboard.actors.root._handle import TaskHandle
from callboard.actors.root._requests import CloseIntake, GetStatus, StopAgents, Submit

__all__ = ["CloseIntake", "GetStatus", "Root", "StopAgents", "Submit", "TaskHandle"]
