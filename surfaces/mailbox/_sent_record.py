"""A record of the messages that were sent, or may have been."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from callboard.surfaces import ToolError, read_file, replace_file, spare_file

if TYPE_CHECKING:
    from pathlib import Path

_MOST = 1_000
"""The most messages that are remembered; the oldest are forgotten first."""


class SendState(StrEnum):
    """The state of a message that a call sends."""

    BEGUN = "begun"
    """The server may have it."""
    SENT = "sent"
    """The server has it."""
    REFUSED = "refused"
    """The server has refused it, or did not get its end."""


class SentRecord:
    """The messages of one mailbox, by their ids.

    Each change is on the disk when its method returns.
    """

    def __init__(self, path: Path) -> None:
        """Read the record.

        Raises:
            OSError: If it can't be read.
            ValueError: If it is damaged.
        """
        self._path = path
        self._messages: dict[str, dict[str, Any]] = json.loads(read_file(path)) if path.exists() else {}

    def state(self, message_id: str) -> SendState | None:
        """Return the state of a message; None if it is unknown."""
        message = self._messages.get(message_id)
        return SendState(message["state"]) if message is not None else None

    def begin(self, message_id: str, digest: str, task_id: str) -> None:
        """Record that a message is about to be sent."""
        self._messages.pop(message_id, None)
        facts = {"state": SendState.BEGUN, "digest": digest, "task": task_id, "time": time.time()}
        self._messages[message_id] = facts
        while len(self._messages) > _MOST:
            del self._messages[next(iter(self._messages))]
        self._write()

    def settle(self, message_id: str, state: SendState) -> None:
        """Record the outcome."""
        self._messages[message_id]["state"] = state
        self._write()

    def check_new(self, message_id: str, digest: str, task_id: str) -> None:
        """Refuse an equal message of another call of the same task.

        A model that is told that a call is in doubt, or that has forgotten it, may try the same again. Calls without a
        task are those of a person's program.

        Raises:
            ToolError: If an equal one was sent, or may have been.
        """
        for other_id, message in self._messages.items() if task_id else ():
            is_equal = message["digest"] == digest and message["task"] == task_id
            if is_equal and other_id != message_id and message["state"] != SendState.REFUSED:
                was = "was sent" if message["state"] == SendState.SENT else "may have been sent"
                msg = f"nothing was sent: an equal message {was} in this task before ({other_id})"
                raise ToolError(msg)

    def _write(self) -> None:
        data = json.dumps(self._messages).encode()
        with spare_file(self._path, data, 0o600) as spare:
            replace_file(spare, self._path)
