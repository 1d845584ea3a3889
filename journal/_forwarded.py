"""References to assignments and subtask results that are forwarded unchanged.

Such a message is recorded twice. A HostAgent's job returns an assignment, and the agent receives it with a lease. An
agent's job returns the result of its subtask, and the HostAgent receives it. The second row holds only a reference to
the first, by run and job, and the fencing token of the lease.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import msgspec

from callboard.messages import Assign, SubtaskEnding

if TYPE_CHECKING:
    from callboard.journal._row import Row
    from callboard.messages import Message

AGAIN = "again"
"""The kind of a row that refers to another row of its task."""

_KEPT = 10_000
"""The maximum number of messages waiting to be forwarded; those of stopped subtasks never are."""


class _Reference(msgspec.Struct, array_like=True):
    """The body of a row of the kind `again`."""

    run_id: str
    """The run whose job returned the message."""
    job: int
    """The number of that job."""
    token: int
    """The fencing token of the lease."""


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(_Reference).decode


class Forwarded:
    """The messages of one journal that may still be forwarded. Not thread-safe."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[Assign | SubtaskEnding, str, int]] = {}

    def reference(self, row: Row) -> bytes:
        """Encode a reference to the row that a row repeats.

        The result is empty if the row repeats none.

        A row of a job is remembered, as the target of a later reference.
        """
        message: Assign | SubtaskEnding = row.message  # type: ignore[assignment]  # the caller checked the type
        if row.job:
            self._sent[message.run_id] = message, row.run_id, row.job
            if len(self._sent) > _KEPT:
                del self._sent[next(iter(self._sent))]
            return b""
        first, run_id, job = self._sent.pop(message.run_id, (None, "", 0))
        if first is None or not _same(first, message):
            return b""
        return _ENCODE(_Reference(run_id, job, message.token))

    def forget(self) -> None:
        """Clear the cache, after a rollback or a deletion."""
        self._sent.clear()


def _same(first: Assign | SubtaskEnding, message: Assign | SubtaskEnding) -> bool:
    """Return whether all fields but the token are identical objects."""
    if type(first) is not type(message):
        return False
    expected_fields = {**first.__dict__, "token": message.token}
    return all(map(operator.is_, expected_fields.values(), message.__dict__.values()))


def resolved(body: str, sent: dict[tuple[str, int], Message]) -> Message:
    """Decode a reference to a message, with its own token.

    Args:
        body: The body of the row.
        sent: The earlier messages of the task's jobs that may be referred to, by run and job.

    Raises:
        LookupError: If the message is missing.
        ValueError: If the body can't be decoded.
    """
    reference = _DECODE(body)
    first = sent.get((reference.run_id, reference.job))
    if not isinstance(first, Assign | SubtaskEnding):
        msg = f"job {reference.job} of {reference.run_id} returned no message that can be forwarded"
        raise LookupError(msg)  # noqa: TRY004 - the row is wrong, not a type
    return first if first.token == reference.token else first.model_copy(update={"token": reference.token})
