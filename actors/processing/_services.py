"""The services of all steps, shared by the agents of one supervisor."""

from __future__ import annotations

import asyncio
import hashlib
import operator
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from callboard.actors.commands import OutputTypes, TaskPolicies
from callboard.actors.processing._asking import PeopleLine
from callboard.actors.runtime import Awaited, WaitingRequests
from callboard.messages import SharedQuery, ToolTimeoutError
from callboard.models import by_picture
from callboard.routines import TaskRoutines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from callboard.actors.commands import Approved, Dispatcher, MayChange, OwnFiles, Policy, Secrets, Toolbox
    from callboard.actors.processing._check_inputs import CheckInputs
    from callboard.actors.processing._remote_pipeline import RemoteWork
    from callboard.actors.runtime import Budgets, Clock, EventStream, Lanes
    from callboard.actors.states import AgentStateManager, Run
    from callboard.config import Settings, Skill
    from callboard.journal import Journal
    from callboard.messages import SharedEntry, Target, Task
    from callboard.models import AgentResponse, Model, TaskModels

    Answered = Callable[[tuple[SharedEntry, ...]], None]

TRIES, SECONDS = 3, 10.0
"""Attempts and their timeout: a blackboard restarted after a crash has lost pending queries."""


class SharedNotes:
    """Access of steps to the blackboard's actor.

    The starter of the actor sets `ask`.
    """

    def __init__(self) -> None:
        self.ask: Callable[[SharedQuery, Answered], bool] | None = None
        """Send a query and the callback for its answer; return whether the actor exists."""
        self.pages: Mapping[str, tuple[SharedEntry, ...]] | None = None
        """The entries by conversation, kept up to date by the actor.

        None while the actor restarts: then it has to be asked. The actor runs on the thread of the steps, so a step
        sees all entries that were kept before it began.
        """

    async def read(self, run: Run) -> tuple[SharedEntry, ...]:
        """Ask the actor for a conversation's shared entries; empty without a blackboard.

        Raises:
            ToolTimeoutError: If the actor does not answer.
        """
        if self.ask is None:
            return ()
        query = SharedQuery(task_id=run.assign.task_id)
        for _ in range(TRIES):
            awaited_entries = Awaited[tuple["SharedEntry", ...]]()
            self.ask(query, awaited_entries.settle)
            try:
                async with asyncio.timeout(SECONDS):
                    return await awaited_entries
            except TimeoutError:
                continue
        msg = f"the blackboard did not answer within {TRIES * SECONDS:g} s"
        raise ToolTimeoutError(msg)


def digest(*what: object) -> str:
    """Return a hash of the values' representations."""
    return hashlib.sha256(repr(what).encode()).hexdigest()


@dataclass
class ListedTargets:
    """Cache of all surfaces' targets as agents see them.

    It is recomputed if a surface's list changes.
    """

    lists: Sequence[Sequence[Target]] = ()
    offered: tuple[Target, ...] = ()
    owned: bool = False
    """Whether some targets are open to only one task."""
    digest: str = ""
    """A digest of the ids."""

    def update(self, lists: Sequence[Sequence[Target]], offers: Callable[[Target], tuple[Target, ...]]) -> None:
        """Update the cache.

        `offers` returns the targets that agents see for one of a surface.
        """
        if len(lists) == len(self.lists) and all(map(operator.is_, lists, self.lists)):
            return
        self.offered = tuple(variant for targets in lists for target in targets for variant in offers(target))
        self.owned = any(target.owner for target in self.offered)
        self.digest = digest([target.id for target in self.offered])
        self.lists = lists if all(isinstance(targets, tuple) for targets in lists) else ()  # others may change in place


class AgentTraits(Protocol):
    """The part of an `AgentSpec` that steps and actors use."""

    @property
    def name(self) -> str:
        """The name of the kind."""
        ...

    @property
    def machine(self) -> type[AgentStateManager]:
        """The state machine."""
        ...

    @property
    def has_model(self) -> bool:
        """False for the kind whose work another machine does."""
        ...

    @property
    def response(self) -> type[AgentResponse]:
        """The type that its model's answers are parsed into."""
        ...


@dataclass(frozen=True)
class Services:
    """Services shared by all strategies; one instance per supervisor."""

    settings: Settings
    models: Mapping[str, Model]
    toolbox: Toolbox
    dispatcher: Dispatcher
    policy: Policy
    approved: Approved
    may_change: MayChange
    own_files: OwnFiles
    check_inputs: CheckInputs
    secrets: Secrets
    budgets: Budgets
    lanes: Lanes
    stream: EventStream
    journal: Journal
    clock: Clock
    task_models: TaskModels
    prompts: Mapping[str, str]
    skills: tuple[Skill, ...] = field(default=(), kw_only=True)
    agents: Mapping[str, AgentTraits]
    """The kinds of agents, by name."""
    remote: RemoteWork | None = None
    """The other machines of the fleet; None without one."""
    routines: TaskRoutines = field(default_factory=TaskRoutines)
    shared: SharedNotes = field(default_factory=SharedNotes)
    waiting: WaitingRequests = field(default_factory=WaitingRequests)
    people: PeopleLine = field(default_factory=PeopleLine)
    task_policies: TaskPolicies = field(default_factory=TaskPolicies)
    confirmed: set[str] = field(default_factory=set)
    """The tasks of an earlier process whose submitting machine was asked whether it still wants them."""
    output_types: OutputTypes = field(default_factory=OutputTypes)
    listed: defaultdict[bool, ListedTargets] = field(default_factory=partial(defaultdict, ListedTargets))
    """By whether the task has a model of its own."""

    def take(self, task: Task) -> None:
        """Take a task's own budget, rules, model, routine and files to change.

        Its secrets are taken apart: a recovered task has none until its caller gives them again.
        """
        self.budgets.take(task)
        self.task_policies.take(task)
        self.task_models.take(task)
        self.routines.take(task)
        self.may_change.take(task)

    def drop(self, task_id: str) -> None:
        """Forget everything that belongs to a task, with its approvals."""
        self.secrets.drop(task_id)
        self.budgets.drop(task_id)
        self.task_policies.drop(task_id)
        self.task_models.drop(task_id)
        self.routines.drop(task_id)
        self.output_types.drop(task_id)
        self.confirmed.discard(task_id)
        self.may_change.drop(task_id)
        self.own_files.drop(task_id)
        self.approved.drop(task_id)
        self.check_inputs.drop(task_id)

    @cached_property
    def picture_kinds(self) -> frozenset[str]:
        """The kinds of agents that see only their target's picture."""
        return frozenset(kind for kind, spec in self.agents.items() if by_picture(kind, spec.response))
