"""Embed agents that drive desktops, documents, shells and devices."""

import signal
import sys
from pathlib import PurePath

# The command line, until its `main` runs: Ctrl-C ends the process at once, without a traceback of the imports below.
# Programs that import this package keep their handlers.
if (
    (sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] == "callboard")
    or (sys.argv and PurePath(sys.argv[0]).name == "callboard")
) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

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
