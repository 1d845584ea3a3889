"""The state interface, and the registry of a machine's table and states."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod, update_abstractmethods
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, overload

from callboard.actors.states._move import By, Move
from callboard.messages import Address, AgentStatus, BrokenMachineError, IllegalMoveError, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from callboard.actors.states._move import Table
    from callboard.actors.states._run import Run


_CAUSES = tuple(By)
"""The single causes."""


class Processing(Protocol):
    """The agent's level-2 layer, as states see it.

    Every method runs in a job on the event loop.
    """

    async def process(self, run: Run) -> Message:
        """Run the four phases; return `StepDone` or `StepFailure`."""
        ...

    async def process_resume(self, run: Run) -> Message:
        """Observe again, then run exactly the held actions; return `StepDone` or `StepFailure`."""
        ...

    async def process_recovered(self, run: Run) -> Message:
        """Resume a step that a crash interrupted.

        Return `StepDone`, `StepFailure`, or a `Question` about an action in doubt.
        """
        ...

    async def process_confirmation(self, run: Run) -> Message:
        """Observe and return an `ApprovalRequest`, or an `ApprovalAnswer` if approvals are off."""
        ...

    async def process_asker(self, run: Run) -> Message:
        """Return a `Question`, or an `Answer` if questions are off."""
        ...

    async def capture(self, run: Run) -> Message:
        """Take a last observation for the record of a failure; return `Captured`."""
        ...


class AgentState(ABC):
    """One state of a machine.

    A state has no attributes: all agents of a kind share one instance, also between threads.
    """

    __slots__ = ()

    manager: ClassVar[type[AgentStateManager]]
    """The machine that the class is registered with."""
    only_decides: ClassVar[bool] = False
    """Whether `handle` awaits nothing. It then runs on the agent's own thread instead of in a job. A subclass that
    overrides `handle` does not inherit the value."""
    takes_steps: ClassVar[bool] = False
    """Whether `handle` takes a step of the work, as `WorkingState` does. The start of a step is published as an event.
    """

    def __init_subclass__(cls) -> None:
        """Reset `only_decides` for a class that overrides `handle` without setting it."""
        super().__init_subclass__()
        if "handle" in vars(cls) and "only_decides" not in vars(cls):
            cls.only_decides = False

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: states are shared; an assignment's data belongs in its `Run`."""
        msg = f"{type(self).__name__} has no attributes: {name!r} belongs in the run"
        raise AttributeError(msg)

    @abstractmethod
    async def handle(self, agent: Processing, context: Run) -> Message:
        """Do the state's work and return the resulting message. Changes nothing itself.

        It runs in a job on the event loop, or on the agent's thread if the state `only_decides`.
        """

    @abstractmethod
    def decide(self, run: Run) -> Move | None:
        """Return the move after the run's last message; None to stay. Pure."""

    def next_state(self, run: Run) -> AgentState:
        """Return the next state; this one while it waits. Pure."""
        move = self.decide(run)
        return self if move is None else self.manager.get_state(move.target)

    def next_agent(self, run: Run) -> Address:
        """Return the address of the agent that acts next. Pure."""
        return run.assign.address

    def is_round_end(self) -> bool:
        """Report whether this state ends the round."""
        return False

    def is_subtask_end(self) -> bool:
        """Report whether this state ends the subtask."""
        return False

    @classmethod
    def agent_class(cls) -> type[Any]:
        """Return the agent class registered with this state's machine.

        Raises:
            LookupError: If no agent class is registered yet.
        """
        return cls.manager.agent_class()

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """Return the status that this state implements."""


_S = TypeVar("_S", bound=type[AgentState])
_A = TypeVar("_A", bound=type[Any])


class AgentStateManager:
    """One machine: its transition table and its states.

    Every status has a state, since `none_state` stands for unknown ones; only moves in the table are legal. Each
    subclass is a registry. Instances hold no data, so the class and its instances are interchangeable. A subclass of a
    machine inherits the state classes for the rows that its own table keeps, and registers the rest; the machine that
    it extends is not changed.
    """

    initial: ClassVar[str]
    final: ClassVar[str] = AgentStatus.FINISH
    transitions: ClassVar[Table]
    none_state: ClassVar[AgentState]
    """The state that `get_state` returns for an unknown status."""

    _classes: ClassVar[dict[str, type[AgentState]]]
    _states: ClassVar[dict[str, AgentState]]
    _agent: ClassVar[type[Any] | None]

    def __init_subclass__(cls) -> None:
        """Check the table of a new machine.

        Raises:
            BrokenMachineError: If a status has no row, is unreachable, or can't reach the final status.
        """
        super().__init_subclass__()
        if not hasattr(cls, "transitions") or not hasattr(cls, "initial"):
            msg = f"{cls.__name__} needs `transitions` and `initial`"
            raise BrokenMachineError(msg)
        cls.initial, cls.final = _plain(cls.initial), _plain(cls.final)
        cls.transitions = {_plain(a): {_plain(b): by for b, by in row.items()} for a, row in cls.transitions.items()}
        cls._classes, cls._states, cls._agent = {}, {}, None
        _check_table(cls.__name__, cls.transitions, cls.initial, cls.final)
        if hasattr(cls, "none_state"):
            cls.none_state = cls._own(type(cls.none_state))()

    @overload
    @classmethod
    def register(cls, state_class: _S) -> _S: ...

    @overload
    @classmethod
    def register(cls, state_class: str) -> Callable[[_S], _S]: ...

    @classmethod
    def register(cls, state_class: _S | str) -> _S | Callable[[_S], _S]:
        """Register a state class for a status. Use it as a decorator.

        With the status as its argument, as in ``@Manager.register("REVIEW")``, the class needs no `name` method.

        Raises:
            BrokenMachineError: If the table has no such status, the status is taken, or the class's name is missing or
                a different one.
        """
        if isinstance(state_class, str):
            return functools.partial(cls._register, name=_plain(state_class))
        if "name" in state_class.__abstractmethods__:
            msg = f'{state_class.__name__} has no name: register it as @{cls.__name__}.register("STATUS")'
            raise BrokenMachineError(msg)
        return cls._register(state_class, state_class.name())

    @classmethod
    def _register(cls, state_class: _S, name: str) -> _S:
        if "name" in state_class.__abstractmethods__:
            state_class.name = classmethod(lambda _cls: name)  # type: ignore[method-assign, assignment]
            update_abstractmethods(state_class)
        if _plain(state_class.name()) != name:
            msg = f"{state_class.__name__}: its name is {state_class.name()!r}, not {name!r}"
            raise BrokenMachineError(msg)
        if name not in cls.transitions:
            msg = f"{state_class.__name__}: {cls.__name__} has no row {name!r}"
            raise BrokenMachineError(msg)
        if name in cls._classes:
            msg = f"{state_class.__name__}: {name!r} is taken by {cls._classes[name].__name__}"
            raise BrokenMachineError(msg)
        cls._classes[name] = cls._own(state_class)
        return state_class

    @classmethod
    def register_none(cls, state_class: _S) -> _S:
        """Register the state for unknown statuses. Use it as a decorator."""
        cls.none_state = cls._own(state_class)()
        return state_class

    @classmethod
    def _own(cls, state_class: type[AgentState]) -> type[AgentState]:
        """Bind a state class to this machine.

        A class that belongs to another machine stays bound to that one; a subclass of it is bound instead.
        """
        if "manager" in state_class.__dict__ and state_class.manager is not cls:
            members = {"__slots__": (), "__module__": state_class.__module__, "__doc__": state_class.__doc__}
            state_class = type(state_class.__name__, (state_class,), members)
        state_class.manager = cls
        return state_class

    @classmethod
    def _class_of(cls, status: str) -> type[AgentState] | None:
        """Find the state class for a row, extended machines included."""
        if status not in cls._classes and status in cls.transitions:
            above = next((base for base in cls.__mro__[1:] if status in base.__dict__.get("_classes", ())), None)
            if above is not None:
                return cls._classes.setdefault(status, cls._own(above.__dict__["_classes"][status]))
        return cls._classes.get(status)

    @classmethod
    def register_agent(cls, agent: _A) -> _A:
        """Register the agent class that uses this machine; a decorator.

        Raises:
            BrokenMachineError: If a row of the table has no state class, or `none_state` is missing.
        """
        cls.check_complete()
        cls._agent = agent
        return agent

    @classmethod
    def check_complete(cls) -> None:
        """Check that each row of the table has a state class.

        Raises:
            BrokenMachineError: If a row has none, or `none_state` is missing.
        """
        missing = [status for status in cls.transitions if cls._class_of(status) is None]
        if missing or not hasattr(cls, "none_state"):
            msg = f"{cls.__name__} is not complete: no state class for {', '.join(missing) or 'an unknown status'}"
            raise BrokenMachineError(msg)

    @classmethod
    def agent_class(cls) -> type[Any]:
        """Return the agent class registered here or with an extended machine.

        Raises:
            LookupError: If none is registered yet.
        """
        for machine in cls.__mro__:
            agent: type[Any] | None = machine.__dict__.get("_agent")
            if agent is not None:
                return agent
        msg = f"no agent class is registered with {cls.__name__}"
        raise LookupError(msg)

    @classmethod
    def get_state(cls, status: str) -> AgentState:
        """Return the state for a status; `none_state` if unknown. Thread-safe.

        There is one instance for a status, created on first use.
        """
        state = cls._states.get(status)
        if state is not None:
            return state
        state_class = cls._class_of(status)
        if state_class is None:
            return cls.none_state  # not cached: the status may be registered later
        return cls._states.setdefault(status, state_class())

    @classmethod
    def decide(cls, run: Run) -> Move | None:
        """Return the move that the run's state decides on.

        Its target is a plain text, also where the state names it by a member of an enumeration.
        """
        move = cls.get_state(run.status).decide(run)
        return move if move is None or type(move.target) is str else move._replace(target=_plain(move.target))

    @classmethod
    def add_state(cls, status: str, state: AgentState) -> None:
        """Replace the state for a status, for programs that extend a machine.

        Raises:
            BrokenMachineError: If the table has no such status.
        """
        if status not in cls.transitions:
            msg = f"{cls.__name__} has no row {status!r}"
            raise BrokenMachineError(msg)
        cls._states[status] = state

    @property
    def state_map(self) -> Mapping[str, AgentState]:
        """A copy of the states created so far, by status."""
        return dict(self._states)

    @classmethod
    def check(cls, source: str, target: str, by: By) -> None:
        """Check a move against the table.

        Raises:
            IllegalMoveError: If the table does not allow it, or ``by`` is not exactly one cause.
        """
        allowed = cls.transitions.get(source, {}).get(target)
        if allowed is None or by not in _CAUSES or by not in allowed:
            raise IllegalMoveError(source, target, str(by))

    @classmethod
    @functools.cache  # called several times a step, and a table never changes
    def offered(cls, source: str) -> tuple[str, ...]:
        """Return the statuses that the model may choose, in the table's order."""
        return tuple(target for target, by in cls.transitions.get(source, {}).items() if By.MODEL in by)


def _plain(status: str) -> str:
    """Make a plain text of a member of any enumeration of texts."""
    return str.__str__(status)


def _check_table(name: str, table: Table, initial: str, final: str) -> None:
    problem = next(_problems(table, initial, final), None)
    if problem is not None:
        msg = f"{name}: {problem}"
        raise BrokenMachineError(msg)


def _problems(table: Table, initial: str, final: str) -> Iterator[str]:
    yield from (f"no row {needed!r}" for needed in (initial, final) if needed not in table)
    for source, row in table.items():
        yield from (f"{source} leads to {target!r}, which has no row" for target in row if target not in table)
        yield from (f"{source} → {target} has no cause" for target, by in row.items() if not by)
    if table[final]:
        yield f"{final} is final and must have no moves"
    reachable = _reached(table, initial)
    yield from (f"{status} can't be reached from {initial}" for status in table if status not in reachable)
    yield from (
        f"{status} is a trap: it never reaches {final}" for status in table if final not in _reached(table, status)
    )


def _reached(table: Table, start: str) -> set[str]:
    reached_statuses, pending_statuses = {start}, [start]
    while pending_statuses:
        new = [target for target in table[pending_statuses.pop()] if target not in reached_statuses]
        reached_statuses.update(new)
        pending_statuses.extend(new)
    return reached_statuses


def mermaid(manager: type[AgentStateManager]) -> str:
    """Draw a machine as a Mermaid state diagram; causes label the arrows."""
    lines = ["stateDiagram-v2", f"    [*] --> {manager.initial}"]
    for source, row in manager.transitions.items():
        lines.extend(f"    {source} --> {target}: {by}" for target, by in row.items())
    lines.append(f"    {manager.final} --> [*]")
    return "\n".join(lines) + "\n"
