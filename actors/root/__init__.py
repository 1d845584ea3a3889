"""The root actor and its parts: tasks, leases, children, desk, recorder."""

from callboard.actors.root._actor import Root
from callboard.actors.root._handle import Line, TaskHandle
from callboard.actors.root._requests import CloseIntake, GetStatus, StopAgents, Submit

__all__ = ["CloseIntake", "GetStatus", "Line", "Root", "StopAgents", "Submit", "TaskHandle"]
