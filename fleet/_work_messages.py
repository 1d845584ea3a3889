"""The values that machines of a fleet exchange."""

from __future__ import annotations

import asyncio
import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.fleet._engine import StoredFile
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Cause,
    LabelText,
    MachineName,
    Question,
    RequestExpired,
    Target,
    Task,
    TaskResult,
    Timestamp,
    Value,
)

if TYPE_CHECKING:
    from callboard.fleet._engine import FleetEngine

Request = Annotated[Question | ApprovalRequest, Field(discriminator="kind")]
Verdict = Annotated[Answer | ApprovalAnswer, Field(discriminator="kind")]
Settled = Annotated[Answer | ApprovalAnswer | RequestExpired, Field(discriminator="kind")]


class WorkOrder(Value):
    """A subtask for another machine."""

    version: Literal[1] = 1
    task: Task
    """The task that does it there; its origin is the subtask."""
    files: dict[str, StoredFile] = Field(default_factory=dict)
    """The files of earlier subtasks that it sees, by their paths on the submitter."""
    claim: int | None = None
    """The revision of the machine's claim to the work, if any machine may do it; None if the work names its machine."""


class ClaimState(StrEnum):
    """The state of a claim to work that any machine may do."""

    PLACED = "placed"
    """The work is in its queue. The submitter may take it back."""
    STARTED = "started"
    """The machine has begun it, and no other one does it."""
    REFUSED = "refused"
    """Nothing of it is done there: the machine refuses it, or its queue is full."""
    WITHDRAWN = "withdrawn"
    """The submitter has taken it back."""

    @property
    def is_open(self) -> bool:
        """True while the machine may do the work."""
        return self in {ClaimState.PLACED, ClaimState.STARTED}


class Claim(Value):
    """A machine's claim to work that any machine may do.

    Each change expects the revision of the one before: so the machine begins the work, or the submitter takes it back.
    """

    version: Literal[1] = 1
    state: ClaimState
    target: str = ""
    """The id of the target there; empty for the whole machine."""
    causes: tuple[Cause, ...] = ()
    """The reasons, if it is refused."""


class WorkResult(Value):
    """The end of a subtask on another machine."""

    version: Literal[1] = 1
    result: TaskResult
    files: dict[str, StoredFile] = Field(default_factory=dict)
    """The files that it made or changed, by their paths there."""
    settled: tuple[Settled, ...] = ()
    """As in `RequestsOfTask`."""


class ApprovalThere(Value):
    """An approval that only people of the working machine decide on."""

    id: str
    reason: str
    """The rule that requires it, or the model's words."""


class RequestsOfTask(Value):
    """The questions and approvals that a task waits for."""

    version: Literal[1] = 1
    requests: tuple[Request, ...] = ()
    """Those that the submitter answers."""
    approvals_there: tuple[ApprovalThere, ...] = ()
    """Those that it is only told of."""
    settled: tuple[Settled, ...] = ()
    """The last that were answered, or that expired: also by people of the working machine."""


class TaskSignals(Value):
    """All that the submitter has said to a task so far."""

    version: Literal[1] = 1
    cancel: str | None = None
    """The reason of a cancel; None if it goes on."""
    paused: bool | None = None
    """Whether it is paused; None if nothing was said about it."""
    verdicts: tuple[Verdict, ...] = ()
    """The answers to its requests, by the ids of the machine that does it."""


class MachineState(Value):
    """The state of a machine, which it repeats every `BEAT_SECONDS`."""

    version: Literal[1] = 1
    callboard: str
    """The version of Callboard there."""
    identity: str
    """The identity of its journal, which tells machines of one name apart."""
    since: Timestamp
    """The time from which it has its name."""
    beat: int = Field(ge=0)
    """A number that increases with each repetition."""
    at: Timestamp
    """The time there, in seconds since 1970."""
    running: int = Field(ge=0)
    """The tasks of other machines that are begun there."""
    slots: int = Field(ge=1)
    """The most tasks of other machines that are begun there at once."""
    draining: bool = False
    """Whether it begins no more tasks of other machines."""
    left: bool = False
    """Whether it was stopped: it is away until it is started again."""


class MachineTargets(Value):
    """The targets of a machine that other machines may give work."""

    version: Literal[1] = 1
    machine: MachineName
    targets: tuple[Target, ...] = ()
    labels: dict[LabelText, LabelText] = Field(default_factory=dict)
    takes_any: bool = True
    """Whether it takes work without a target, for the machine as a whole."""


BEAT_SECONDS = 2.0
"""The interval at which machines repeat their state."""

MOST_INLINE = 200_000
"""The largest value that is sent itself, in bytes; a larger one is stored as a file. Servers of NATS take 1 MiB."""

_AS_FILE = b"file:"


def submitter_of(task: Task) -> str:
    """Return the machine that sent a task; empty for none."""
    return "" if task.origin is None else task.origin.submitter


def told_key(submitter: str, machine: str, task_id: str) -> str:
    """Return the key of a machine's words and claim to a task."""
    return f"{submitter}.{machine}.{task_id}"


def signals_key(machine: str, submitter: str, task_id: str) -> str:
    """Return the key of a submitter's words to a task."""
    return f"{machine}.{submitter}.{task_id}"


async def pack(engine: FleetEngine, value: Value, owner: str, reader: str = "") -> bytes:
    """Encode a value for another machine, or for all.

    A large one is stored as a file, which is named.

    Raises:
        EngineAwayError: If it has to be stored, and the engine does not answer.
    """
    data = value.model_dump_json().encode()
    if len(data) <= MOST_INLINE:
        return data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "value.json"
        await asyncio.to_thread(path.write_bytes, data)
        return _AS_FILE + (await engine.store(path, owner, reader)).model_dump_json().encode()


async def unpack(engine: FleetEngine, body: bytes) -> bytes:
    """Return the encoded value that `pack` was given.

    Raises:
        DamagedFileError: If its file is missing or was changed.
        EngineAwayError: If it is stored, and the engine does not answer.
        ValueError: If it names no file.
    """
    if not body.startswith(_AS_FILE):
        return body
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "value.json"
        await engine.load(StoredFile.model_validate_json(body.removeprefix(_AS_FILE)), path)
        return await asyncio.to_thread(path.read_bytes)


def task_id_in(body: bytes) -> str:
    """Return the task's id in a packed order.

    Empty if it can't be told.
    """
    try:
        if body.startswith(_AS_FILE):
            return StoredFile.model_validate_json(body.removeprefix(_AS_FILE)).owner
        return str(json.loads(body)["task"]["id"])
    except (ValueError, LookupError, TypeError):
        return ""


async def discard_packed(engine: FleetEngine, body: bytes) -> None:
    """Delete the file of a value, if it has one."""
    if body.startswith(_AS_FILE):
        await engine.discard(StoredFile.model_validate_json(body.removeprefix(_AS_FILE)))
