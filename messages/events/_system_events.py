"""Events of the system: settings, MCP servers, journal, threads, the stream itself."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict

from callboard.messages._base import Seconds
from callboard.messages._event import EventName
from callboard.messages.events._typed_event import Datum, TypedEvent


class PolicyUnmatched(TypedEvent):
    """A rule of the operator's, or of a task, can't match anything.

    It has a mistyped name, for instance.
    """

    name: Literal[EventName.POLICY_UNMATCHED] = EventName.POLICY_UNMATCHED
    rule: Datum[int]
    """The number of the rule."""
    reason: Datum[str]
    """The mismatch."""


class ProviderUnused(TypedEvent):
    """No model of the settings is one of a provider's.

    Its name may be mistyped; then the address and the key that are meant for another provider are not used.
    """

    name: Literal[EventName.PROVIDER_UNUSED] = EventName.PROVIDER_UNUSED
    provider: Datum[str]
    """The provider's name."""
    reason: Datum[str]
    """The models that the settings name."""


class ServerLeftOut(TypedEvent):
    """An optional MCP server could not be started.

    Its tools are missing.
    """

    name: Literal[EventName.SERVER_LEFT_OUT] = EventName.SERVER_LEFT_OUT
    server: Datum[str]
    """The server's name."""
    reason: Datum[str]
    """The cause."""


class MachineAway(TypedEvent):
    """Another machine of the fleet gives no sign, or was stopped.

    Its work waits for it.
    """

    name: Literal[EventName.MACHINE_AWAY] = EventName.MACHINE_AWAY
    machine: Datum[str]
    """The machine's name."""
    waiting: Datum[tuple[str, ...]]
    """The subtasks that it does for this one, by their runs."""
    seconds: Datum[float]
    """The time since its last sign; 0 if it was stopped."""
    stopped: Datum[bool] = False
    """Whether it was stopped, and said so."""


class MachineBack(TypedEvent):
    """Another machine of the fleet gives signs again."""

    name: Literal[EventName.MACHINE_BACK] = EventName.MACHINE_BACK
    machine: Datum[str]
    """The machine's name."""
    waiting: Datum[tuple[str, ...]]
    """The subtasks that it does for this one, by their runs."""


class MachineChosen(TypedEvent):
    """A machine was chosen for work that any machine may do.

    It comes again if the machine does not begin, and another one is chosen.
    """

    name: Literal[EventName.MACHINE_CHOSEN] = EventName.MACHINE_CHOSEN
    machine: Datum[str]
    """The machine's name."""
    target: Datum[str]
    """The id of the target there; empty if its HostAgent chooses."""


class ServerSaid(TypedEvent):
    """An MCP server's program wrote a line to its standard error."""

    name: Literal[EventName.SERVER_SAID] = EventName.SERVER_SAID
    server: Datum[str]
    """The server's name."""
    text: Datum[str]
    """The line."""
    dropped: Datum[int] = 0
    """The number of lines before it that exceeded the limit."""


class ToolUnmatched(TypedEvent):
    """An MCP server's settings name a tool that it lacks."""

    name: Literal[EventName.TOOL_UNMATCHED] = EventName.TOOL_UNMATCHED
    server: Datum[str]
    """The server's name."""
    reason: Datum[str]
    """The tool's name, and the nearest existing one."""


class JournalFailed(TypedEvent):
    """The journal can't be written.

    No more tasks are accepted, and agents stop before their next action.
    """

    name: Literal[EventName.JOURNAL_FAILED] = EventName.JOURNAL_FAILED
    error: Datum[str]
    """Why."""


class ClockBehind(TypedEvent):
    """The wall clock is behind the journal's last entry at the start."""

    name: Literal[EventName.CLOCK_BEHIND] = EventName.CLOCK_BEHIND
    seconds: Datum[Seconds]
    """The time by which it is behind."""
    reason: Datum[str]
    """The consequences."""


class SkillLoaded(TypedEvent):
    """The agents have a skill that the settings name."""

    name: Literal[EventName.SKILL_LOADED] = EventName.SKILL_LOADED
    skill: Datum[str]
    """The skill's name."""
    folder: Datum[str]
    """Its folder."""
    files: Datum[int]
    """The number of its further files that agents can read."""
    digest: Datum[str]
    """The SHA-256 of all its texts, in hexadecimal."""


class ThreadBlocked(TypedEvent):
    """A thread that must not block is held up.

    It is the event loop's, where agents decide, the root's, or the journal's.
    """

    name: Literal[EventName.THREAD_BLOCKED] = EventName.THREAD_BLOCKED
    thread: Datum[str]
    """The thread's name."""
    stack: Datum[str]
    """The place where it hangs."""
    seconds: Datum[Seconds]
    """The time so far."""


class ThreadFreed(TypedEvent):
    """The blocked thread runs again."""

    name: Literal[EventName.THREAD_FREED] = EventName.THREAD_FREED
    thread: Datum[str]
    """The thread's name."""


class BlackboardRebuilt(TypedEvent):
    """The blackboard's actor died, and was rebuilt from the journal."""

    name: Literal[EventName.BLACKBOARD_REBUILT] = EventName.BLACKBOARD_REBUILT
    tasks: Datum[int]
    """The number of tasks on it."""


class EventsMissed(TypedEvent):
    """A slow subscriber lost events."""

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=False)  # it is made on the threads of subscribers

    name: Literal[EventName.EVENTS_MISSED] = EventName.EVENTS_MISSED
    count: Datum[int]
    """The number of lost events."""
