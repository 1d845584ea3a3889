"""The state of a supervisor at one moment."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from callboard.messages._base import Address, Message, RunId, TaskId, Value
from callboard.messages._person import ApprovalRequest, Question


class RunStatus(Value):
    """One agent's work on a task that is not over."""

    run_id: RunId
    address: Address
    request: str
    leased: bool
    """Whether it has its target and works; otherwise it waits for the target, or for other subtasks."""


class TaskStatus(Value):
    """One task that is not over."""

    task_id: TaskId
    request: str
    round: int
    runs: tuple[RunStatus, ...] = ()
    ended_subtasks: int = 0
    cancelling: bool = False
    paused: bool = False
    lacks: str = ""
    """The resources that this process lacks, for which a task of another process is paused. Empty where a caller paused
    it."""


class TargetLease(Value):
    """A target in use, and the queue for it."""

    group: str
    """The address of the target's agent, or the name of targets that only one agent may use at once."""
    agent: Address
    """The agent that has it; empty while it is handed on."""
    waiting: tuple[Address, ...] = ()
    """The agents that wait for it, in their order."""


class CrashedAgent(Value):
    """An agent that crashed within `supervision.period`."""

    agent: Address
    crashes: int = Field(ge=1)
    """Its crashes; each is followed by a restart, until there are more than `supervision.intensity`."""
    error: str
    """The class of the last one's error; the event `agent.crashed` has its causes, redacted."""


class DailyUsage(Value):
    """The usage of a daily budget on the present day in UTC."""

    labels: dict[str, str] = Field(default_factory=dict)
    """The labels of the tasks that it counts; empty for all tasks."""
    limits: dict[str, float]
    """The limit of each limited kind, with the extensions that people granted."""
    used: dict[str, float]
    """The amount used or reserved of each limited kind."""


class SupervisorStatus(Message):
    """Running and waiting work, and unusable targets."""

    kind: Literal["supervisor_status"] = "supervisor_status"
    accepting: bool
    tasks: tuple[TaskStatus, ...] = ()
    agents: tuple[Address, ...] = ()
    """Agents that are alive, idle ones included."""
    abandoned: tuple[Address, ...] = ()
    """Targets with a call that can't be stopped; they are not leased."""
    approvals: tuple[ApprovalRequest, ...] = ()
    """Approvals that wait for a person."""
    questions: tuple[Question, ...] = ()
    leases: tuple[TargetLease, ...] = ()
    """The targets in use."""
    crashed_agents: tuple[CrashedAgent, ...] = ()
    ended_tasks: int = Field(default=0, ge=0)


class TaskProgress(Message):
    """The progress of a task at one moment."""

    kind: Literal["task_progress"] = "task_progress"
    task_id: TaskId
    over: bool = False
    """Whether the task is over; then its result has more."""
    rounds: int = Field(default=0, ge=0)
    """Rounds that have begun; a task for one target has one. Once the task is over, those that took a step."""
    planned_rounds: int | None = None
    """All rounds of a task with a plan; None without a plan."""
    ended_subtasks: int = Field(default=0, ge=0)
    """Subtasks that ended, with any outcome."""
    running_subtasks: int = Field(default=0, ge=0)
    """Subtasks whose agents have their targets."""
    waiting_subtasks: int = Field(default=0, ge=0)
    """Subtasks that wait for their targets, or for other subtasks."""
    steps: int = Field(default=0, ge=0)
    """Steps that agents have begun, HostAgents included."""
    planned_steps: int = Field(default=0, ge=0)
    """Entries of the latest plans of the agents at work: an estimate of the models, which may change with each step."""


class ServerHealth(Value):
    """The state of a surface, an MCP server or the fleet's connection."""

    name: str
    state: Literal["ready", "disconnected", "left_out"]
    """`disconnected`: the connection to an MCP server is lost, and the next use makes another; or that to the fleet is
    lost, and is made again. `left_out`: an optional MCP server could not start."""
    reason: str = ""


class SupervisorHealth(Message):
    """The health of a supervisor at one moment."""

    kind: Literal["supervisor_health"] = "supervisor_health"
    accepting: bool
    """Whether it accepts tasks."""
    journal: Literal["ok", "memory", "failed"]
    """`memory`: there is no file, so tasks do not outlive the process. `failed`: it can't be written."""
    journal_error: str = ""
    blocked_threads: tuple[str, ...] = ()
    """Threads that have not answered for `supervision.hung_seconds`."""
    abandoned: tuple[Address, ...] = ()
    """Targets with a call that can't be stopped; they are not leased."""
    servers: tuple[ServerHealth, ...] = ()
    tasks: int = Field(default=0, ge=0)
    """Tasks that are not over."""
    running: int = Field(default=0, ge=0)
    """Subtasks and rounds whose agents work."""
    queued: int = Field(default=0, ge=0)
    """Subtasks and rounds that wait for their targets."""
    requests: int = Field(default=0, ge=0)
    """Approvals and questions that wait for a person."""
    leases: tuple[TargetLease, ...] = ()
    """The targets in use."""
    crashed_agents: tuple[CrashedAgent, ...] = ()
    """The agents that crashed lately."""
    budgets: tuple[DailyUsage, ...] = ()
    """The daily budgets of the settings, in their order."""

    @property
    def ok(self) -> bool:
        """True if tasks are accepted, and no thread is blocked."""
        return self.accepting and self.journal != "failed" and not self.blocked_threads
