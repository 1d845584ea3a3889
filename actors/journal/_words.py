"""Assignments and endings of subtasks, which are told twice: their second row names the first.

A HostAgent says an assignment, and the agent gets it with its lease. An agent says how its subtask ended, and the
HostAgent hears it. The second row of each has nothing but where the first is, and the number of the lease.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import msgspec

from callboard.messages import Assign, SubtaskEnded

if TYPE_CHECKING:
    from callboard.actors.journal._row import Row
    from callboard.messages import Message

AGAIN = "again"
"""The kind of the rows that name another one of their task."""

_KEPT = 10_000
"""So many words are waited for to be told again; those of subtasks that were stopped before never are."""


class _Named(msgspec.Struct, array_like=True):
    """The contents of such a row."""

    run_id: str
    """The run whose job said it."""
    job: int
    token: int
    """The lease."""


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(_Named).decode


class Words:
    """The words of one journal that may be told again. One thread's, as the journal is."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[Assign | SubtaskEnded, str, int]] = {}

    def name(self, row: Row) -> bytes:
        """Give what is written in the place of an assignment or ending that is told again; empty if it is not."""
        message: Assign | SubtaskEnded = row.message  # type: ignore[assignment]  # the caller looked
        if row.job:
            self._said[message.run_id] = message, row.run_id, row.job
            if len(self._said) > _KEPT:
                del self._said[next(iter(self._said))]
            return b""
        said, run_id, job = self._said.pop(message.run_id, (None, "", 0))
        if said is None or not _same(said, message):
            return b""
        return _ENCODE(_Named(run_id, job, message.token))

    def forget(self) -> None:
        """Know nothing of what was written: it was rolled back."""
        self._said.clear()


def _same(said: Assign | SubtaskEnded, message: Assign | SubtaskEnded) -> bool:
    """Return whether two words are the same objects throughout, but for the lease."""
    if type(said) is not type(message):
        return False
    known = {**said.__dict__, "token": message.token}
    return all(map(operator.is_, known.values(), message.__dict__.values()))


def told_again(body: str, words: dict[tuple[str, int], Message]) -> Message:
    """Give the message that a row names, out of those that the jobs of its task said.

    Raises:
        LookupError: If it is not there.
        ValueError: If the row can't be read.
    """
    named = _DECODE(body)
    said = words.get((named.run_id, named.job))
    if not isinstance(said, Assign | SubtaskEnded):
        msg = f"job {named.job} of {named.run_id} said nothing that could be told again"
        raise LookupError(msg)  # noqa: TRY004 - the row is what is wrong
    return said if said.token == named.token else said.model_copy(update={"token": named.token})
