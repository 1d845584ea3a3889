"""Tool calls: an agent's actions, their commands, and the results."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._action_guard import ActionGuard, RoutineMiss
from callboard.messages._base import Message, RunId, Seconds, TaskId, Term, Token, Value
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._target import ControlRef


class Effect(Term):
    """The effect of repeating a tool call.

    It comes from MCP's annotations where the server is trusted.
    """

    READ = "read"
    """Changes nothing (``readOnlyHint``)."""
    IDEMPOTENT = "idempotent"
    """A second call changes nothing more (``idempotentHint``)."""
    ONCE = "once"
    """Must not be repeated. Also the default for a tool without better information."""


ESSENTIAL = "x-essential"
"""Our own keyword for a parameter's JSON Schema. The parameter is optional, but a call without it may do something else
than intended, such as write at another place. For that reason prompts for small models include it too."""


class Hazard(Term):
    """A reason to show an action to a person before it runs."""

    DELETES = "deletes"
    """Something no longer exists afterwards."""
    OVERWRITES = "overwrites"
    """Something that the task did not make is replaced."""
    SENDS = "sends"
    """Something is sent to other people: a mail, a message, an upload."""
    INSTALLS = "installs"
    """Software is added."""
    SPENDS = "spends"
    """Money is spent."""
    LAUNCHES = "launches"
    """A program is started. Opening a document of the workspace does not count."""
    CONFIGURES = "configures"
    """The system's configuration is changed."""
    DOWNLOADS = "downloads"
    """A file is fetched from another machine, and kept."""
    LOGS_IN = "logs_in"
    """A name and a password, or another proof of identity, are given to another program."""
    LEAVES = "leaves"
    """Something outside the workspace is touched."""
    UNKNOWN = "unknown"
    """Nothing is known of the tool except that it must not be repeated."""


class Coverage(Term):
    """The share of a resource that a policy rule's pattern covers."""

    ALL = "all"
    """The whole resource: an `allow` may match."""
    PART = "part"
    """Some of it, or a surface can't rule that out: an `approve` or a `deny` matches, an `allow` does not."""
    NONE = "none"
    """Nothing of it."""


class CommandType(Term):
    """The purpose of a command."""

    DATA_COLLECTION = "data_collection"
    """Sent by the system to look at a surface."""
    ACTION = "action"
    """Sent because a model decided on it."""


class ResultStatus(Term):
    """The status of a command's result."""

    SUCCESS = "success"
    FAILURE = "failure"
    """The tool refused, raised or took too long; ``error`` has the reason."""
    SKIPPED = "skipped"
    """Not run, because an earlier command of the same list failed."""
    NONE = "none"
    """There was nothing to do."""
    DRY_RUN = "dry_run"
    """Not executed, because its task is a dry run; ``error`` has what the policy would have done. It counts as done."""


POINTING = frozenset({"click_at", "move_to", "drag_at", "scroll_at"})
"""Tools whose arguments ``x`` and ``y``, and ``to_x`` and ``to_y``, are points of the target's picture."""


class ActionFacts(Value):
    """The facts about a held action that a person is asked about.

    An approval holds for no others.
    """

    hazards: tuple[Hazard, ...] = ()
    resources: tuple[str, ...] = ()
    """The resources that it touches; empty unless a rule names resources."""
    recipient: str = ""
    """The recipient of what it would send, as far as its surface can tell."""

    def covers(self, current: ActionFacts) -> bool:
        """Return whether an approval with these facts holds for the current ones."""
        return (
            set(current.hazards).issubset(self.hazards)
            and set(current.resources).issubset(self.resources)
            and (Hazard.SENDS not in current.hazards or current.recipient == self.recipient)
        )


class Action(Value):
    """One tool call as a model decided it.

    It is not yet checked, allowed or run.
    """

    tool: str = Field(min_length=1)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    control: ControlRef | None = None
    """The control that the tool acts on, if it acts on one."""
    call_id: str = ""
    """The id that connects an action with its result: ``<run>.<step>.<position>``. The step that decided on the action
    assigns it, and a held action keeps it. Empty before that."""
    program: bool = False
    """Whether a program (a script or a function) decided on it. Then ``${secret:NAME}`` stands for a secret in all its
    arguments. In a language model's action it does so only where the secret was granted."""
    facts: ActionFacts | None = None
    """The facts of an action that is held for an approval. None for any other, and in journals of versions that kept
    none: such an approval holds for the tool and its arguments."""
    guard: ActionGuard | None = None
    """The guard of an action that repeats a routine's; None for any other."""

    @property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The points of the target's picture that the action addresses.

        In pixels; empty unless its tool points.
        """
        if self.tool not in POINTING:
            return ()
        values = self.arguments
        pairs = ((values.get("x"), values.get("y")), (values.get("to_x"), values.get("to_y")))
        return tuple((x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int))


class PlannedAction(DocumentedFields, Value):
    """An action that a dry run decided on, and did not execute."""

    tool: str
    """The tool's name."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """The arguments, as the tool would have received them; a secret is kept as its reference."""
    control: ControlRef | None = None
    """The control that the tool would have acted on, with its `id` and `name`, if it acts on one."""
    target: str = ""
    """The id of the target; empty for a HostAgent's own action."""
    note: str
    """A sentence with the verdict: the policy would have allowed the action, or a person would have been asked, and
    why."""


class Command(Message):
    """One tool call on its way to a surface."""

    kind: Literal["command"] = "command"
    task_id: TaskId
    run_id: RunId
    token: Token
    """The fencing token of the lease under which it may act."""
    call_id: str
    """The call id of its action."""
    state: str = ""
    """The agent's state, and below its step: for the record."""
    step: int | None = None
    type: CommandType = CommandType.ACTION
    tool: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    program: bool = False
    """Whether a program decided on it."""
    effect: Effect | None = None
    """The effect of repeating this call; None: the effect of its tool."""
    timeout: Seconds = Field(gt=0)


OPEN, CLOSE = "open_in_", "close_in_"
"""The beginnings of the names of a HostAgent's tools that open and close the windows of a surface."""


class CommandResult(Message):
    """The result of one command."""

    kind: Literal["command_result"] = "command_result"
    call_id: str
    tool: str
    status: ResultStatus
    effect: Effect | None = None
    """The tool's effect if it ran. None if nothing ran, and in journals of versions that did not keep it."""
    value: JsonValue = None
    """The tool's answer, as JSON."""
    pictures: tuple[bytes, ...] = ()
    """Pictures in the tool's answer, as PNG."""
    error: str = ""
    """The reason why it failed or was skipped, worded for the model."""
    artifacts: tuple[str, ...] = ()
    """Files that the call wrote, as absolute paths."""
    made: tuple[str, ...] = ()
    """Those of `artifacts` that did not exist before."""
    in_doubt: bool = False
    """Whether it is unknown if the action was done: it took too long, or was stopped while it ran."""
    broke: bool = False
    """Whether the tool raised an exception other than its own refusal: it may have done a part of the action."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """The arguments of a call whose step was interrupted, since no finished step records them."""
    relied_on: dict[str, JsonValue] = Field(default_factory=dict)
    """The facts that its surface told right before it, for a routine."""
    left: dict[str, JsonValue] = Field(default_factory=dict)
    """The facts that its surface told right after it."""
    missed: RoutineMiss | None = None
    """The reason why it was not run: a guard of its routine did not hold."""
    seconds: Seconds = Field(default=0.0, ge=0)

    @property
    def opens(self) -> bool:
        """True if a HostAgent's tool opened or closed a window."""
        return self.tool.startswith((OPEN, CLOSE))

    @property
    def changed(self) -> bool:
        """True if it changed something, or may have.

        It wrote a file, or may have done more than read.
        """
        acted = self.effect is not None and (self.status is ResultStatus.SUCCESS or self.broke)
        return bool(self.artifacts) or (self.effect is not Effect.READ and (acted or self.in_doubt))
