"""Tool calls: what an agent wants done, and what came of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, RunId, Seconds, TaskId, Term, Token, Value
from callboard.messages._target import ControlRef


class Effect(Term):
    """What repeating a tool call does to the world; from MCP's annotations for servers that are trusted."""

    READ = "read"
    """Changes nothing (``readOnlyHint``)."""
    IDEMPOTENT = "idempotent"
    """A second call changes nothing more (``idempotentHint``)."""
    ONCE = "once"
    """Must not be repeated; also every tool of which nothing better is known."""


ESSENTIAL = "x-essential"
"""A keyword of our own for a parameter's JSON Schema: it may be left out, and without it a call may do something else
than what was meant, such as write at another place. So it is told to small models too."""


class Hazard(Term):
    """What makes an action one that a person may want to see first."""

    DELETES = "deletes"
    """Something is gone afterwards."""
    OVERWRITES = "overwrites"
    """Something that the task did not make is replaced."""
    SENDS = "sends"
    """Something leaves for somebody else: a mail, a message, an upload."""
    INSTALLS = "installs"
    """Software is added."""
    SPENDS = "spends"
    """Money is spent."""
    LAUNCHES = "launches"
    """A program is started; opening a document of the workspace is none."""
    CONFIGURES = "configures"
    """The system's configuration is changed."""
    LEAVES = "leaves"
    """Something outside the workspace is touched."""
    UNKNOWN = "unknown"
    """Nothing is known of the tool but that it must not be repeated."""


class Coverage(Term):
    """How much of a resource the pattern of a policy's rule stands for."""

    ALL = "all"
    """The whole resource: an `allow` may match."""
    PART = "part"
    """Some of it, or a server can't rule that out: an `approve` or a `deny` matches, an `allow` does not."""
    NONE = "none"
    """Nothing of it."""


class CommandType(Term):
    """What a command is for."""

    DATA_COLLECTION = "data_collection"
    """Sent by the system to see."""
    ACTION = "action"
    """Sent because a model decided so."""


class ResultStatus(Term):
    """How a command ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    """The tool said no, raised or took too long; ``error`` says what."""
    SKIPPED = "skipped"
    """Not run, because an earlier command of the same list failed."""
    NONE = "none"
    """There was nothing to do."""


POINTING = frozenset({"click_at", "move_to", "drag_at", "scroll_at"})
"""Tools whose arguments ``x`` and ``y``, and ``to_x`` and ``to_y``, are points of the target's picture."""


class Action(Value):
    """One tool call as a model decided it; not yet checked, allowed or run."""

    tool: str = Field(min_length=1)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    control: ControlRef | None = None
    """The control that is meant, where the tool acts on one."""
    call_id: str = ""
    """What its result is known by: ``<run>.<step>.<position>``, given by the step that decided on it, and kept while it
    is held. Empty before that."""
    program: bool = False
    """Whether a program decided on it, a script or a function: ``${secret:NAME}`` stands for a secret in all its
    arguments then. In a language model's it does so only where the secret was granted."""

    @property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The points of the target's picture that it is meant for, in pixels; empty unless its tool points."""
        if self.tool not in POINTING:
            return ()
        given = self.arguments
        pairs = ((given.get("x"), given.get("y")), (given.get("to_x"), given.get("to_y")))
        return tuple((x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int))


class Command(Message):
    """One tool call on its way to a server."""

    kind: Literal["command"] = "command"
    task_id: TaskId
    run_id: RunId
    token: Token
    """The lease under which it may act."""
    call_id: str
    """The action's."""
    state: str = ""
    """The agent's state, and its step below: for the record."""
    step: int | None = None
    type: CommandType = CommandType.ACTION
    tool: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    program: bool = False
    """Whether a program decided on it."""
    effect: Effect | None = None
    """What repeating this call does; None: what its tool says."""
    timeout: Seconds = Field(gt=0)


class CommandResult(Message):
    """What came of one command."""

    kind: Literal["command_result"] = "command_result"
    call_id: str
    tool: str
    status: ResultStatus
    effect: Effect | None = None
    """The tool's, if it ran; None if nothing ran, and from versions that did not keep it."""
    value: JsonValue = None
    """What the tool answered, as JSON."""
    pictures: tuple[bytes, ...] = ()
    """Pictures that the tool answered, as PNG."""
    error: str = ""
    """Why it failed or was skipped, in words for the model."""
    artifacts: tuple[str, ...] = ()
    """Files that the call wrote, as absolute paths."""
    made: tuple[str, ...] = ()
    """Those of them that were not there before."""
    in_doubt: bool = False
    """Whether nobody knows if it was done: it took too long, or was stopped while it ran."""
    broke: bool = False
    """Whether the tool raised something else than its own refusal: it may have done a part of it."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """Of a call whose step was broken off: its arguments, since no finished step tells them."""
    seconds: Seconds = Field(default=0.0, ge=0)

    @property
    def changed(self) -> bool:
        """Whether it changed something, or may have: it wrote a file, or did more than read, as far as is known."""
        acted = self.effect is not None and (self.status is ResultStatus.SUCCESS or self.broke)
        return bool(self.artifacts) or (self.effect is not Effect.READ and (acted or self.in_doubt))
