"""The root actor and its parts: tasks, leases, children, desk."""

from callboard.actors.root._actor import CloseIntake, GetStatus, Root, StopAgents, Submit

__all__ = ["CloseIntake", "GetStatus", "Root", "StopAgents", "Submit"]
