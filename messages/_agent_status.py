"""The statuses of the shipped agents.

There is one enumeration for each machine, and one for code that serves them all.
"""

from __future__ import annotations

from enum import StrEnum


class _Status(StrEnum):
    """A status is the string that models answer with and journals keep."""

    __hash__ = str.__hash__  # an enumeration's own is a Python function: statuses are looked up several times a step


class AgentStatus(_Status):
    """All statuses that a shipped machine has."""

    CONTINUE = "CONTINUE"
    """Works, a step at a time."""
    SCREENSHOT = "SCREENSHOT"
    """Works on a fresh capture, in which only the named controls are annotated."""
    ASSIGN = "ASSIGN"
    """Waits for the ends of the subtasks that it assigned."""
    PENDING = "PENDING"
    """Waits for a person's answer."""
    CONFIRM = "CONFIRM"
    """Waits for a person's approval of its actions."""
    FAIL = "FAIL"
    """Cleans up: the work can't be done."""
    ERROR = "ERROR"
    """Cleans up: an exception ended the work."""
    FINISH = "FINISH"
    """The work is over; the outcome says how it ended."""


class HostAgentStatus(_Status):
    """The statuses of a HostAgent."""

    CONTINUE = AgentStatus.CONTINUE
    ASSIGN = AgentStatus.ASSIGN
    PENDING = AgentStatus.PENDING
    CONFIRM = AgentStatus.CONFIRM
    FAIL = AgentStatus.FAIL
    ERROR = AgentStatus.ERROR
    FINISH = AgentStatus.FINISH


class AppAgentStatus(_Status):
    """The statuses of an AppAgent, and of an operator."""

    CONTINUE = AgentStatus.CONTINUE
    SCREENSHOT = AgentStatus.SCREENSHOT
    PENDING = AgentStatus.PENDING
    CONFIRM = AgentStatus.CONFIRM
    FAIL = AgentStatus.FAIL
    ERROR = AgentStatus.ERROR
    FINISH = AgentStatus.FINISH


class MobileAgentStatus(_Status):
    """The statuses of a MobileAgent."""

    CONTINUE = AgentStatus.CONTINUE
    FAIL = AgentStatus.FAIL
    FINISH = AgentStatus.FINISH


class LinuxAgentStatus(_Status):
    """The statuses of a LinuxAgent."""

    CONTINUE = AgentStatus.CONTINUE
    FAIL = AgentStatus.FAIL
    FINISH = AgentStatus.FINISH
