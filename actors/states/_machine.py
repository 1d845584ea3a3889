"""The state interface, and the manager that holds a machine's table and its state classes."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod, update_abstractmethods
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

from callboard.messages import Address, AgentStatus, BrokenMachineError, IllegalMoveError, Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from callboard.actors.states._run import Run


class By(Flag):
    """Who causes a move."""

    MODEL = auto()
    """The agent's model, by the status of its answer."""
    USER = auto()
    """A person, by an answer, an approval or a rejection."""
    SYSTEM = auto()
    """We: an exception, a limit, a result that came back, a policy, a cleanup."""
    TIMEOUT = auto()
    """A deadline of a question or an approval."""

    @functools.cache
    def __str__(self) -> str:
        """Give the causes in lower case, joined by ``|``."""
        return "|".join(cause.name.lower() for cause in By if cause in self and cause.name)


_CAUSES = tuple(By)
"""Each cause by itself."""

Table = dict[str, dict[str, By]]
"""Source → target → who may cause it."""


class Move(NamedTuple):
    """A wish to change the status."""

    target: str
    by: By
    outcome: Outcome | None = None
    """What to record as the ending, where the move decides it."""
    reason: str = ""
    """Why, where the outcome is no success."""


class Processing(Protocol):
    """What a state may ask of its agent's level-2 layer. All of it runs in a job, on the event loop."""

    async def process(self, run: Run) -> Message:
        """Run the four phases: `StepDone`, or `StepFailed`."""
        ...

    async def process_resume(self, run: Run) -> Message:
        """Look again, then run exactly the held actions: `StepDone`, or `StepFailed`."""
        ...

    async def process_recovered(self, run: Run) -> Message:
        """Go on with a step that a crash broke off: `StepDone`, `StepFailed`, or a `Question` about a doubt."""
        ...

    async def process_confirmation(self, run: Run) -> Message:
        """Collect what the agent sees and ask: `ApprovalRequest`, or an `ApprovalAnswer` where nobody is asked."""
        ...

    async def process_asker(self, run: Run) -> Message:
        """Ask: `Question`, or an `Answer` where nobody is asked."""
        ...

    async def capture(self, run: Run) -> Message:
        """Look once more, for the record of a failure: `Captured`."""
        ...


class AgentState(ABC):
    """One state: when and what. Without attributes, shared by all agents of its kind and between threads."""

    __slots__ = ()

    manager: ClassVar[type[AgentStateManager]]
    """The machine that it was registered with."""
    only_decides: ClassVar[bool] = False
    """Whether `handle` awaits nothing: then it runs on the agent's own thread, and no job is started for it. It is not
    inherited by a state with another `handle`."""
    takes_steps: ClassVar[bool] = False
    """Whether `handle` takes a step of the work, as `WorkingState` does: its beginning is told."""

    def __init_subclass__(cls) -> None:
        """Let a state with a `handle` of its own await again, unless it says otherwise."""
        super().__init_subclass__()
        if "handle" in vars(cls) and "only_decides" not in vars(cls):
            cls.only_decides = False

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: what belongs to one piece of work is kept in its `Run`."""
        msg = f"{type(self).__name__} keeps nothing: {name!r} belongs into the run"
        raise AttributeError(msg)

    @abstractmethod
    async def handle(self, agent: Processing, context: Run) -> Message:
        """Do the state's work and return what came of it. Changes nothing itself.

        A job on the event loop, unless the state says that it `only_decides`.
        """

    @abstractmethod
    def decide(self, run: Run) -> Move | None:
        """Say where the machine goes after what was applied to the run last; None to stay and wait. Pure."""

    def next_state(self, run: Run) -> AgentState:
        """Give the state that follows, this one while it waits. Pure."""
        move = self.decide(run)
        return self if move is None else self.manager.get_state(move.target)

    def next_agent(self, run: Run) -> Address:
        """Give the address of the agent that has the next word. Pure."""
        return run.assign.address

    def is_round_end(self) -> bool:
        """Say whether the round ends here."""
        return False

    def is_subtask_end(self) -> bool:
        """Say whether the subtask ends here."""
        return False

    @classmethod
    def agent_class(cls) -> type[Any]:
        """Give the class of the agents that have this state, from their own registration.

        Raises:
            LookupError: If no agent class was registered with the manager yet.
        """
        return cls.manager.agent_class()

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """Give the status that stands for this state."""


_S = TypeVar("_S", bound=type[AgentState])
_A = TypeVar("_A", bound=type[Any])


class AgentStateManager:
    """One machine: its transition table and its states. Lookup is total, movement is partial.

    Subclasses are the registries; they are never instantiated with anything of their own, so that every instance is
    as good as the class. A subclass of a machine inherits the state classes for the rows that its own table keeps, and
    registers the others; the machine that it extends is not changed.
    """

    initial: ClassVar[str]
    final: ClassVar[str] = AgentStatus.FINISH
    transitions: ClassVar[Table]
    none_state: ClassVar[AgentState]
    """What `get_state` answers for a status that it does not know."""

    _classes: ClassVar[dict[str, type[AgentState]]]
    _states: ClassVar[dict[str, AgentState]]
    _agent: ClassVar[type[Any] | None]

    def __init_subclass__(cls) -> None:
        """Refuse a table that is not sound.

        Raises:
            BrokenMachineError: If a status has no row, can't be reached, or can't reach the final one.
        """
        super().__init_subclass__()
        if not hasattr(cls, "transitions") or not hasattr(cls, "initial"):
            msg = f"{cls.__name__} needs `transitions` and `initial`"
            raise BrokenMachineError(msg)
        cls.initial, cls.final = str(cls.initial), str(cls.final)  # members of an enumeration become plain strings
        cls.transitions = {str(a): {str(b): by for b, by in row.items()} for a, row in cls.transitions.items()}
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
        """Register a state class by its name; use it as a decorator, bare or with the name.

        With the name, as in ``@Manager.register("REVIEW")``, the class needs no method `name` of its own.

        Raises:
            BrokenMachineError: If the table has no such status, it is taken, or the class has another name or none.
        """
        if isinstance(state_class, str):
            return functools.partial(cls._register, name=str(state_class))
        if "name" in state_class.__abstractmethods__:
            msg = f'{state_class.__name__} has no name: register it as @{cls.__name__}.register("STATUS")'
            raise BrokenMachineError(msg)
        return cls._register(state_class, state_class.name())

    @classmethod
    def _register(cls, state_class: _S, name: str) -> _S:
        if "name" in state_class.__abstractmethods__:
            state_class.name = classmethod(lambda _cls: name)  # type: ignore[method-assign, assignment]
            update_abstractmethods(state_class)
        if state_class.name() != name:
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
        """Register the state that stands for every unknown status; use it as a decorator."""
        cls.none_state = cls._own(state_class)()
        return state_class

    @classmethod
    def _own(cls, state_class: type[AgentState]) -> type[AgentState]:
        """Bind a state class to this machine; one that belongs to another machine stays there, and is derived from."""
        if "manager" in state_class.__dict__ and state_class.manager is not cls:
            members = {"__slots__": (), "__module__": state_class.__module__, "__doc__": state_class.__doc__}
            state_class = type(state_class.__name__, (state_class,), members)
        state_class.manager = cls
        return state_class

    @classmethod
    def _class_of(cls, status: str) -> type[AgentState] | None:
        """Find the state class for a row of the table: a registered one, else that of the machine it extends."""
        if status not in cls._classes and status in cls.transitions:
            above = next((base for base in cls.__mro__[1:] if status in base.__dict__.get("_classes", ())), None)
            if above is not None:
                return cls._classes.setdefault(status, cls._own(above.__dict__["_classes"][status]))
        return cls._classes.get(status)

    @classmethod
    def register_agent(cls, agent: _A) -> _A:
        """Register the class of the agents that have this machine; use it as a decorator.

        Raises:
            BrokenMachineError: If a row of the table has no state class yet, or the none state is missing.
        """
        cls.check_complete()
        cls._agent = agent
        return agent

    @classmethod
    def check_complete(cls) -> None:
        """Check that each row of the table has a state class.

        Raises:
            BrokenMachineError: If one has none, or the none state is missing.
        """
        missing = [status for status in cls.transitions if cls._class_of(status) is None]
        if missing or not hasattr(cls, "none_state"):
            msg = f"{cls.__name__} is not complete: no state class for {', '.join(missing) or 'an unknown status'}"
            raise BrokenMachineError(msg)

    @classmethod
    def agent_class(cls) -> type[Any]:
        """Give the registered class of agents, or that of the machine that this one extends.

        Raises:
            LookupError: If there is none yet.
        """
        for machine in cls.__mro__:
            agent: type[Any] | None = machine.__dict__.get("_agent")
            if agent is not None:
                return agent
        msg = f"no agent class is registered with {cls.__name__}"
        raise LookupError(msg)

    @classmethod
    def get_state(cls, status: str) -> AgentState:
        """Give the one instance for a status, made on first use; `none_state` for an unknown one. Thread-safe."""
        state = cls._states.get(status)
        if state is not None:
            return state
        state_class = cls._class_of(status)
        if state_class is None:
            return cls.none_state  # not remembered: the name may be registered later
        return cls._states.setdefault(status, state_class())

    @classmethod
    def add_state(cls, status: str, state: AgentState) -> None:
        """Put a state in place of the registered one, for programs that extend a machine.

        Raises:
            BrokenMachineError: If the table has no such status.
        """
        if status not in cls.transitions:
            msg = f"{cls.__name__} has no row {status!r}"
            raise BrokenMachineError(msg)
        cls._states[status] = state

    @property
    def state_map(self) -> Mapping[str, AgentState]:
        """The states that were made so far, by status; a copy."""
        return dict(self._states)

    @classmethod
    def check(cls, source: str, target: str, by: By) -> None:
        """Ask the table whether a move is legal.

        Raises:
            IllegalMoveError: If it is not. ``by`` must name exactly one cause.
        """
        allowed = cls.transitions.get(source, {}).get(target)
        if allowed is None or by not in _CAUSES or by not in allowed:
            raise IllegalMoveError(source, target, str(by))

    @classmethod
    @functools.cache  # asked several times a step, and a table never changes
    def offered(cls, source: str) -> tuple[str, ...]:
        """List the statuses that the model may choose in a state, in the table's order."""
        return tuple(target for target, by in cls.transitions.get(source, {}).items() if By.MODEL in by)


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
        yield f"{final} is final and must lead nowhere"
    reachable = _reached(table, initial)
    yield from (f"{status} can't be reached from {initial}" for status in table if status not in reachable)
    yield from (
        f"{status} is a trap: it never reaches {final}" for status in table if final not in _reached(table, status)
    )


def _reached(table: Table, start: str) -> set[str]:
    found, ahead = {start}, [start]
    while ahead:
        new = [target for target in table[ahead.pop()] if target not in found]
        found.update(new)
        ahead.extend(new)
    return found


def mermaid(manager: type[AgentStateManager]) -> str:
    """Draw a machine as a Mermaid state diagram; the causes label the arrows."""
    lines = ["stateDiagram-v2", f"    [*] --> {manager.initial}"]
    for source, row in manager.transitions.items():
        lines.extend(f"    {source} --> {target}: {by}" for target, by in row.items())
    lines.append(f"    {manager.final} --> [*]")
    return "\n".join(lines) + "\n"
