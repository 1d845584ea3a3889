"""Targets of assignments, and observations of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue, StringConstraints, ValidationInfo, field_validator

from callboard.messages._base import (
    ANY_MACHINE,
    LOCAL_POOL,
    REMOTE,
    Address,
    AgentKind,
    KindName,
    RunId,
    TaskId,
    Term,
    Value,
    agent_kind,
)
from callboard.messages._blackboard import Shared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_PNG = b"\x89PNG\r\n\x1a\n"


class TargetKind(Term):
    """The sort of a target; it decides which agent works on it."""

    WINDOW = "window"
    """An open document or window, for an AppAgent."""
    APPLICATION = "application"
    """An application that can be started; starting it makes a window."""
    DEVICE = "device"
    """An Android device, for a MobileAgent."""
    SHELL = "shell"
    """A shell, for a LinuxAgent."""


LabelText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
"""The name of a machine's label, or its value: letters, digits and ``_ . -``, at most 40."""


class Target(Value):
    """A unit of work for a subtask.

    It is a window, an application, a device or a shell. Surfaces offer targets; a model never invents one.
    """

    id: str = Field(min_length=1)
    """Unique among the targets of one observation; models use it."""
    name: str
    """The name for people: a window's title, a device's model."""
    kind: TargetKind
    kinds: tuple[KindName, ...] = ()
    """The kinds of agent that it is offered to; empty: the kind that its address begins with."""
    address: Address
    """The agent for it. An application's address names no process yet: ``app/<root>/*``."""
    server: str
    """The surface that offers it."""
    binds: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments that every tool call on this target gets; a model neither sees nor sets them."""
    start: str | None = None
    """For an application: the host tool that starts it; it gets ``name`` and answers with the window's target."""
    group: str = ""
    """The name of a shared lease: all windows of one desktop share its keyboard and focus. Empty: the lease covers this
    address alone."""
    owner: str = ""
    """The task that opened it, by its id: only this task and its follow-ups see and lease it. Empty: every task may."""
    machine: str = ""
    """The machine of the fleet that has it; empty for this one, `any` if each machine that has such a target may do
    the work."""
    pool: str = ""
    """The common name of targets of several machines: one of these machines is chosen for each subtask. Empty: the
    target names its machine."""
    copies: bool = False
    """Whether each subtask has an agent and a lease of its own, as for an application that a machine starts for it."""
    base: str = ""
    """The address at which its surface knows it, where it is offered to a further kind; its id is then
    ``<kind>:<id>``."""
    takes: dict[str, JsonValue] = Field(default_factory=dict)
    """For an application: the JSON Schema of the arguments that opening it takes, such as a file or an address."""

    @property
    def label(self) -> str:
        """Its name for people, with another machine in front."""
        return (
            f"{self.machine} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {self.name}" if self.machine else self.name
        )

    @property
    def lease_key(self) -> str:
        """The name of the lease: the group, or the address without one."""
        return self.group or self.address

    @property
    def native(self) -> Target:
        """The target as its surface knows it."""
        if not self.base:
            return self
        id_ = self.id.removeprefix(f"{agent_kind(self.address)}:")
        group = "" if self.group == self.base else self.group
        return self.model_copy(update={"id": id_, "address": self.base, "group": group, "base": ""})

    def needing(self, needs: Mapping[str, str]) -> Target:
        """Return the target for machines with all of the labels alone.

        Raises:
            ValueError: If it belongs to one machine.
        """
        if not needs:
            return self
        if self.machine != ANY_MACHINE:
            msg = f"`needs` chooses a machine, but {self.id!r} belongs to one: name a target of any machine ('any:…')"
            raise ValueError(msg)
        return self.model_copy(update={"binds": {**self.binds, "needs": {**needs}}})

    def of_run(self, run_id: RunId) -> Target:
        """Return the target at the address of a subtask's agent.

        Where each subtask has an agent of its own (`copies`), they run side by side.
        """
        if not self.copies or self.address.endswith(f"/{run_id}"):
            return self
        return self.model_copy(update={"address": f"{self.address}/{run_id}"})

    def offers(self, known: Collection[str], local: Collection[str] = ()) -> tuple[Target, ...]:
        """Return the targets that agents see, one for each known kind.

        All of them have one lease. `local` names the surfaces whose open targets other processes of this computer work
        on (`fleet.local`).
        """
        if self.server in local and self.kind is TargetKind.WINDOW and not self.owner:
            return (self._on_local_machine(),)
        own_kind = agent_kind(self.address)
        kinds = dict.fromkeys(self.kinds or (own_kind,))
        return tuple(self if kind == own_kind else self._for(kind) for kind in kinds if kind in known)

    def _on_local_machine(self) -> Target:
        address = f"{REMOTE}/{LOCAL_POOL}/{self.address}"
        return self.model_copy(
            update={
                "kinds": (REMOTE,),
                "address": address,
                "group": self.lease_key,
                "base": self.address,
                "pool": self.id,
            }
        )

    def _for(self, kind: str) -> Target:
        address = f"{kind}/{self.address.partition('/')[2]}"
        return self.model_copy(
            update={"id": f"{kind}:{self.id}", "address": address, "group": self.lease_key, "base": self.address}
        )

    def open_to(self, task_id: TaskId, session: TaskId | None = None) -> bool:
        """Return whether a task may see and lease it.

        `session` is the conversation that the task belongs to.
        """
        return self.owner in {"", task_id, session}

    @field_validator("address")  # a validator of the whole model would run again for each target of each observation
    @classmethod
    def _fits(cls, address: str, info: ValidationInfo) -> str:
        kind: TargetKind | None = info.data.get("kind")
        if kind is None:
            return address
        usual = {TargetKind.DEVICE: AgentKind.MOBILE, TargetKind.SHELL: AgentKind.LINUX}.get(kind, AgentKind.APP)
        if agent_kind(address) not in {usual, *info.data.get("kinds", ())}:
            msg = f"a {kind.value} is worked on by {usual} agents, and those that `kinds` names, not at {address}"
            raise ValueError(msg)
        return address


class Box(Value):
    """A rectangle of a target's picture.

    In pixels from the picture's upper left corner.
    """

    x: int
    y: int
    width: int = Field(ge=0)
    height: int = Field(ge=0)

    def holds(self, x: int, y: int) -> bool:
        """Return whether a point lies in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


class Control(Value):
    """A part of a surface that can be read or acted on."""

    id: str
    """Stable while the surface keeps its structure: ``table-1``, ``sheet-2``."""
    name: str
    """The name that a person would use: a heading's text, a sheet's title."""
    kind: str
    """``heading``, ``table``, ``sheet``, ``button`` …"""
    enabled: bool = True
    visible: bool = True
    box: Box | None = None
    """Its place in the target's picture; None where it is not visible. No prompt shows the numbers."""
    states: tuple[str, ...] = ()
    """Its present states: ``focused``, ``checked``, ``expanded``. With ``password`` it is blacked out in pictures."""
    place: str = ""
    """The group, heading or row that it belongs to, in words that survive a change of ids; empty for none. No prompt
    shows it: with it, a routine tells apart controls of the same name."""
    columns: tuple[str, ...] = ()
    """The headers of a table's columns, where `detail` does not have them; for routines, in no prompt."""
    detail: dict[str, JsonValue] = Field(default_factory=dict)
    """Further facts: a table's size, a range's address, a parent's id."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Leave out a missing box, and missing states, place and columns.

        Fingerprints are made of this text, and those in journals of versions without these fields must stay equal.
        """
        optional_fields = (("box", self.box), ("states", self.states), ("place", self.place), ("columns", self.columns))
        absent = {name for name, value in optional_fields if not value}
        return [(name, value) for name, value in super().__repr_args__() if name not in absent]


class ControlRef(Value):
    """A model's reference to a control.

    Without a name the id alone decides.
    """

    id: str
    name: str = ""


class LookBudget(Value):
    """The upper bounds of an observation.

    The excess is left out, and the observation's notes mention it.
    """

    controls: int = Field(default=1_000, ge=1)
    text: int = Field(default=200_000, ge=1)
    """In characters."""
    picture: int = Field(default=20_000_000, ge=1)
    """In bytes of PNG."""


class Look(Value):
    """The purpose of an observation."""

    picture: bool = True
    """Whether a picture is wanted. A look without one is taken before each action, so it should be cheap."""
    shown: bool = True
    """Whether the agent decides on it. The looks between actions are compared with an earlier one and then dropped."""
    annotate: tuple[str, ...] = ()
    """The ids of the controls that get a label in the annotated picture; empty: all."""
    masked: tuple[str, ...] = ()
    """The ids of controls that hold secrets: they are blacked out before a picture leaves the surface."""
    budget: LookBudget = LookBudget()


class Observation(Value):
    """An agent's view of its surface at the beginning of a step."""

    targets: tuple[Target, ...] = ()
    """For a HostAgent: the targets that can be assigned."""
    controls: tuple[Control, ...] = ()
    """For the agent of one target: its controls."""
    window: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts about the window, document, device or shell."""
    text: str = ""
    """The content of a surface without controls."""
    picture: bytes | None = None
    """A PNG picture, where the surface has one."""
    annotated: bytes | None = None
    """The same picture with a label on each control, as PNG."""
    fingerprint: str = ""
    """Equal for two observations of an unchanged surface, different after a change of its structure or text. Pixels
    alone change nothing: a blinking cursor is no change."""
    notes: tuple[str, ...] = ()
    """The system's remarks to the model: a failed action, a missing target, no person to answer."""
    shared: tuple[Shared, ...] = ()
    """The blackboard's entries for this agent: earlier requests, answered questions and notes of the conversation."""

    @property
    def picture_size(self) -> tuple[int, int] | None:
        """The width and height of the picture in pixels.

        None without a valid PNG.
        """
        head = (self.picture or b"")[:24]
        if len(head) < 24 or not head.startswith(_PNG):  # a PNG's width and height end there
            return None
        width, height = struct.unpack(">II", head[16:])
        return width, height

    def at(self, x: int, y: int) -> Control | None:
        """Find the smallest visible control at a point of the picture.

        None if there is none.
        """
        area, smallest = 0, None
        for control in self.controls:
            box = control.box
            if box is None or not control.visible or not box.holds(x, y):
                continue
            if smallest is None or box.width * box.height <= area:  # of equal ones the last: it is inside the others
                area, smallest = box.width * box.height, control
        return smallest

    def control(self, ref: ControlRef) -> Control | None:
        """Find a control by id.

        Its name must match too, if the reference has one.
        """
        for control in self.controls:
            if control.id == ref.id and ref.name in {"", control.name}:
                return control
        return None
