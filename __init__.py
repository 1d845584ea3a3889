"""Embed agents that drive desktops, documents, shells and devices."""

import signal
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

# The command line, until its `main` runs: Ctrl-C ends the process at once, without a traceback of the imports.
# Programs that import this package keep their handlers.
if (
    (sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] == "callboard")
    or (sys.argv and PurePath(sys.argv[0]).name == "callboard")
) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.actors.client import TaskHandle
    from callboard.config import Settings
    from callboard.messages import CallboardError, Event, EventName, Outcome, PlanStep, Task, TaskResult
    from callboard.models import Expected, FunctionModel, Model, ModelAnswer, ModelRequest, ScriptedModel
    from callboard.supervisor import Supervisor
    from callboard.surfaces import Server, ToolError, run_process, tool

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

_HOMES = {
    "callboard.actors.client": ("TaskHandle",),
    "callboard.config": ("Settings",),
    "callboard.messages": ("CallboardError", "Event", "EventName", "Outcome", "PlanStep", "Task", "TaskResult"),
    "callboard.models": ("Expected", "FunctionModel", "Model", "ModelAnswer", "ModelRequest", "ScriptedModel"),
    "callboard.supervisor": ("Supervisor",),
    "callboard.surfaces": ("Server", "ToolError", "run_process", "tool"),
}
"""The public names by the module that has them."""
_MODULES = (
    "actors",
    "answers",
    "config",
    "errors",
    "events",
    "journal",
    "kinds",
    "messages",
    "models",
    "observe",
    "supervisor",
    "surface",
    "surfaces",
)
"""The modules that are attributes of the package without an import of their own."""

if not TYPE_CHECKING:  # a type checker would take any name for one of this module's
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, _MODULES)
