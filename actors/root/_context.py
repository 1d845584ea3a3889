"""The context of the root: its services and parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.actors.processing import AgentSpec
    from callboard.actors.root._agents import Children, Idle, Sessions
    from callboard.actors.root._clocks import Deadlines, Stopwatches
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._tasks import TaskBook
    from callboard.actors.runtime import Clock, Jobs
    from callboard.config import Limits
    from callboard.journal import Journal


@dataclass(frozen=True)
class RootContext:
    """The services and parts of one root, shared by the parts.

    Only the root's thread uses it.
    """

    post: Callable[[object], None]
    """Send a message to the root, from any thread."""
    limits: Limits
    clock: Clock
    journal: Journal
    jobs: Jobs
    outbox: Outbox
    tasks: TaskBook
    leases: LeaseBook
    children: Children
    recorder: Recorder
    clocks: Stopwatches
    deadlines: Deadlines
    people: PeopleClocks
    idle: Idle
    sessions: Sessions
    plans: dict[str, tuple[str, ...]]
    """The plan of each run's latest step; agents add to it."""
    agents: Mapping[str, AgentSpec]
    """The kinds of agents, by name."""
