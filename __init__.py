"""Embed agents that drive desktops, documents, shells and devices."""

from callboard.actors.client import TaskHandle
from callboard.actors.models import Expected, FunctionModel, Model, ModelAnswer, ModelRequest, ScriptedModel
from callboard.actors.runtime import run_process
from callboard.actors.servers import Server, ToolError, tool
from callboard.config import Settings
from callboard.messages import CallboardError, Event, EventName, Outcome, PlanStep, Task, TaskResult
from callboard.supervisor import Supervisor

__all__ = [
    "CallboardError",
    "Event",
    "EventName",
    "Expected",
    "FunctionModel",
    "Model",
    "ModelAnswer",
    "ModelRequest",
    "Outcome",
    "PlanStep",
    "ScriptedModel",
    "Server",
    "Settings",
    "Supervisor",
    "Task",
    "TaskHandle",
    "TaskResult",
    "ToolError",
    "run_process",
    "tool",
]
