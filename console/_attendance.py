"""Who is there to answer what a task asks on the command line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import ApprovalRequest

if TYPE_CHECKING:
    from callboard.messages import Question, Task

NO_INPUT = "--no-input"


@dataclass(frozen=True)
class Attendance:
    """Who answers on the command line."""

    yes: bool = False
    """Whether everything that asks for approval is approved, without a look."""
    absent: str = ""
    """Why nobody is asked; empty when somebody is at the terminal."""

    @property
    def by(self) -> str:
        """What answers in a person's place, for the record; empty when a person does."""
        return "--yes" if self.yes else self.absent

    @property
    def remark(self) -> str:
        """What is to be said of it before the task starts; empty when everything is put to a person."""
        approvals = "everything that asks for approval is approved (--yes)" if self.yes else ""
        questions = f"nobody is asked, and the agents are told so ({self.absent})" if self.absent else ""
        return "; ".join(filter(None, (approvals, questions)))

    def leaves(self, ask: ApprovalRequest | Question) -> bool:
        """Say whether something is left to a person."""
        return not (self.absent or (self.yes and isinstance(ask, ApprovalRequest)))

    def gives_up(self, ask: ApprovalRequest | Question) -> bool:
        """Say whether something that another process asked would be declined here, and nobody said so."""
        declined = bool(self.absent) and not (self.yes and isinstance(ask, ApprovalRequest))
        return declined and self.absent != NO_INPUT

    def sign(self, task: Task) -> Task:
        """Label a task with what answers in a person's place."""
        return task.model_copy(update={"labels": {**task.labels, "attendance": self.by}}) if self.by else task


def attendance(*, yes: bool, no_input: bool, as_json: bool) -> Attendance:
    """Say who answers; without a terminal, or where a machine reads what is printed, nobody does."""
    if no_input:
        return Attendance(yes=yes, absent=NO_INPUT)
    if as_json:
        return Attendance(yes=yes, absent="--json")
    return Attendance(yes=yes, absent="" if sys.stdin.isatty() else "no terminal")
