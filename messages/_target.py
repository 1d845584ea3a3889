"""What an agent can be assigned to, and what it sees there."""

from __future__ import annotations

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from callboard.messages._base import Address, AgentKind, Term, Value, agent_kind
from callboard.messages._blackboard import Shared


class TargetKind(Term):
    """What sort of thing a target is; it decides which agent works on it."""

    WINDOW = "window"
    """An open document or window, for an AppAgent."""
    APPLICATION = "application"
    """An application that can be started; starting it makes a window."""
    DEVICE = "device"
    """An Android device, for a MobileAgent."""
    SHELL = "shell"
    """A shell, for a LinuxAgent."""


class Target(Value):
    """Something that a HostAgent may assign a subtask to. Servers offer targets; a model never invents one."""

    id: str = Field(min_length=1)
    """Unique among the targets of one observation; what a model names."""
    name: str
    """What people call it: a window's title, a device's model."""
    kind: TargetKind
    address: Address
    """The agent for it. An application's address names no process yet: ``app/<root>/*``."""
    server: str
    """The server that offers it."""
    binds: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments that every tool call on this target gets; a model neither sees nor sets them."""
    start: str | None = None
    """For an application: the host tool that starts it; it gets ``name`` and answers with the window's target."""

    @field_validator("address")  # of the whole model it would run again for each target of each observation
    @classmethod
    def _fits(cls, address: str, info: ValidationInfo) -> str:
        kind: TargetKind | None = info.data.get("kind")
        if kind is None:
            return address
        wanted = {TargetKind.DEVICE: AgentKind.MOBILE, TargetKind.SHELL: AgentKind.LINUX}.get(kind, AgentKind.APP)
        if agent_kind(address) is not wanted:
            msg = f"a {kind.value} is worked on by {wanted.value} agents, not at {address}"
            raise ValueError(msg)
        return address


class Control(Value):
    """One thing on a surface that can be read or acted on."""

    id: str
    """Stable while the surface keeps its structure: ``table-1``, ``sheet-2``."""
    name: str
    """What a person would call it: a heading's text, a sheet's title."""
    kind: str
    """``heading``, ``table``, ``sheet``, ``button`` …"""
    enabled: bool = True
    visible: bool = True
    detail: dict[str, JsonValue] = Field(default_factory=dict)
    """What else is known: a table's size, a range's address, a parent's id."""


class ControlRef(Value):
    """A control as a model names it; the name may be missing, the id then decides alone."""

    id: str
    name: str = ""


class Observation(Value):
    """What an agent saw at the beginning of a step."""

    targets: tuple[Target, ...] = ()
    """For a HostAgent: what can be assigned."""
    controls: tuple[Control, ...] = ()
    """For the agent of one target: what is there."""
    window: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts about the window, document, device or shell."""
    text: str = ""
    """What a surface without controls shows."""
    picture: bytes | None = None
    """A PNG picture, where the surface has one."""
    fingerprint: str = ""
    """Equal for two observations of an unchanged surface, different after a change."""
    notes: tuple[str, ...] = ()
    """Remarks of the system to the model: a failed action, a missing target, nobody to answer."""
    shared: tuple[Shared, ...] = ()
    """What the blackboard had for this agent: earlier requests, answered questions and notes of the conversation."""

    def control(self, ref: ControlRef) -> Control | None:
        """Find a control by id, and by name where the reference has one."""
        for control in self.controls:
            if control.id == ref.id and ref.name in {"", control.name}:
                return control
        return None
