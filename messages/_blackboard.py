"""The blackboard: shared facts of a task.

Its agents and the host program share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, TaskId, Term, Timestamp, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from callboard.messages._handoff import Assign

HOST_PROGRAM = "the host program"


class Board(Term):
    """The parts of a task's blackboard."""

    REQUESTS = "requests"
    """The user's requests, one row a round."""
    QUESTIONS = "questions"
    """Questions, approvals and their answers."""
    TRAJECTORIES = "trajectories"
    """One row a step: agent, state, thought, actions, results."""
    SUBTASKS = "subtasks"
    """Results of subtasks."""
    NOTES = "notes"
    """Notes of tools and of the host program."""


class BlackboardEntry(Value):
    """One row of a blackboard."""

    at: Timestamp
    author: str
    """The agent's address, a person, ``user``, ``supervisor``, a tool, or the host program."""
    content: JsonValue


class Note(Message):
    """A fact for all agents of a conversation.

    It comes from a tool or the host program.
    """

    kind: Literal["note"] = "note"
    task_id: TaskId
    text: str = Field(min_length=1, max_length=4_000)
    author: str = HOST_PROGRAM
    """The tool, or the host program."""
    call_id: str = ""
    """The tool call that posted it. A call that is repeated after a crash posts the note again; it counts once."""

    @property
    def run_id(self) -> str:
        """The run of that call; empty for the host program."""
        return self.call_id.rsplit(".", 2)[0]


MOST_CHARACTERS = 500
"""The longest text of one entry that agents see, in characters."""


def shown(text: str) -> str:
    """Cut a text to the length that agents see."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"


class Shared(Value):
    """An entry of the blackboard that agents see.

    It is a request, an answered question or a note.
    """

    board: Board
    author: str
    """The source: a person, the user, a tool, the host program."""
    text: str


@dataclass(frozen=True)
class SharedEntry:
    """An entry that agents see, and the work that made it."""

    shared: Shared
    by: Assign | None
    """None for an entry of the host program."""

    @property
    def run_id(self) -> str:
        """The id of that work; empty without any."""
        return "" if self.by is None else self.by.run_id

    def number_in_group(self, assign: Assign) -> int:
        """Return that work's number if its group is the same; else 0."""
        by = self.by
        beside = by is not None and by.group and (by.task_id, by.group) == (assign.task_id, assign.group)
        return by.number if by is not None and beside else 0


def entries_for(assign: Assign, entries: Iterable[SharedEntry]) -> Iterator[Shared]:
    """Select the entries that an agent may see at its work.

    A member of a group sees those of the members that it comes after, as it sees their results, and none of others of
    its group: they may come sooner or later.
    """
    visible = {0, assign.number, *(() if assign.member is None else assign.member.sees)}
    for entry in entries:
        if entry.number_in_group(assign) in visible:
            yield entry.shared


class SharedQuery(Message):
    """Read the part of a task's blackboard that agents see.

    DATA_COLLECTION does so. The reply is a tuple of `SharedEntry`.
    """

    kind: Literal["shared_query"] = "shared_query"
    task_id: TaskId


class BlackboardQuery(Message):
    """Read a task's blackboard."""

    kind: Literal["blackboard_query"] = "blackboard_query"
    task_id: TaskId


class BlackboardView(Message):
    """A task's blackboard at one moment."""

    kind: Literal["blackboard_view"] = "blackboard_view"
    task_id: TaskId
    requests: tuple[BlackboardEntry, ...] = ()
    questions: tuple[BlackboardEntry, ...] = ()
    trajectories: tuple[BlackboardEntry, ...] = ()
    subtasks: tuple[BlackboardEntry, ...] = ()
    notes: tuple[BlackboardEntry, ...] = ()
    dropped: int = Field(default=0, ge=0)
    """The number of rows that were dropped, the oldest first, because the blackboard was full."""
