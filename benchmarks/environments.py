"""The peers, each with an environment in a cache outside the repository."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = {
    "autogen-core": ("autogen-core==0.7.5",),
    "langgraph": ("langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"),
    "openai-agents": ("openai-agents==0.24.0",),
    "pydantic-ai": ("pydantic-ai-slim==2.68.0",),
    "agent-framework": ("agent-framework-core==1.23.0",),
}


@dataclass(frozen=True)
class Peer:
    """One way to run the job in another library."""

    title: str
    environment: str
    command: tuple[str, ...]


PEERS = {
    "autogen-rpc": Peer("autogen-core, two RPCs", "autogen-core", ("autogen_agents", "rpc")),
    "autogen-messages": Peer("autogen-core, one message per step", "autogen-core", ("autogen_agents", "messages")),
    "agent-framework": Peer("agent-framework", "agent-framework", ("agent_framework_workflow", "plain")),
    "agent-framework-checkpoint": Peer(
        "agent-framework, checkpoints in memory", "agent-framework", ("agent_framework_workflow", "checkpoint")
    ),
    "langgraph-memory": Peer("LangGraph, `InMemorySaver`", "langgraph", ("langgraph_graph", "memory")),
    "langgraph-sqlite": Peer("LangGraph, `AsyncSqliteSaver`", "langgraph", ("langgraph_graph", "sqlite")),
    "openai-agents": Peer("openai-agents", "openai-agents", ("openai_agents",)),
    "pydantic-ai": Peer("pydantic-ai", "pydantic-ai", ("pydantic_ai_agents",)),
}


def default_cache() -> Path:
    """Give the default folder of the environments."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "callboard-benchmarks"


def python_of(name: str, cache: Path) -> Path:
    """Give the path of an environment's interpreter, existing or not."""
    return cache / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_made(name: str, cache: Path) -> bool:
    """Check whether an environment exists with its requirements."""
    mark = cache / name / "holds.txt"
    return mark.is_file() and mark.read_text("utf-8") == _holds(name)


def make(name: str, cache: Path) -> Path:
    """Make an environment unless it exists, and return its interpreter.

    Raises:
        OSError: If the environment can't be made.
        subprocess.CalledProcessError: If a package can't be installed; its ``stderr`` has the reason.
    """
    python = python_of(name, cache)
    if not is_made(name, cache):
        venv.create(cache / name, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS[name]]
        subprocess.run(command, check=True, capture_output=True, text=True)  # our own list
        (cache / name / "holds.txt").write_text(_holds(name), "utf-8")
    return python


def _holds(name: str) -> str:
    return "\n".join((sys.executable, platform.python_version(), *REQUIREMENTS[name]))
