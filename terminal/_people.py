"""Approvals and questions in the terminal: permissions to answer, and typed input.

Enter alone is always the safe answer.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.actors.states import STOP
from callboard.history import asked, calls_of, cut, numbered, plain
from callboard.messages import (
    AnswerRefusedError,
    ApprovalRequest,
    AtDeadline,
    EventName,
    NotWaitingError,
    Question,
)
from callboard.terminal._line_reader import LineReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from callboard.actors.client import TaskHandle
    from callboard.messages import Event, Observation, Task
    from callboard.terminal._board import AgentRow, TaskDisplay


NO_INPUT = "--no-input"
_NO_TERMINAL = "no terminal"
_THIS_PROGRAM = "callboard"
"""The name that answers in place of a person, in the record."""


@dataclass(frozen=True)
class Attendance:
    """The source of answers on the command line."""

    yes: bool = False
    """Whether all approvals are given without asking."""
    absent: str = ""
    """The reason why no person is asked; empty when a person is at the terminal, or at the console."""
    elsewhere: bool = False
    """Whether people answer in the console alone."""

    @property
    def why_absent(self) -> str:
        """The reason why no person is asked, as a sentence."""
        return "there is no terminal" if self.absent == _NO_TERMINAL else f"{self.absent} was given"

    @property
    def by(self) -> str:
        """The name of the automatic answer, for the record.

        Empty when a person answers.
        """
        return "--yes" if self.yes else self.absent

    @property
    def remark(self) -> str:
        """The remark to print before the task starts.

        Empty when a person is asked everything.
        """
        approvals = "all requests for approval are approved (--yes)" if self.yes else ""
        unasked = "questions are not asked" if self.yes else "approvals are rejected, and questions are not asked"
        questions = f"{unasked}: {self.why_absent}" if self.absent else ""
        questions = "approvals and questions wait in the console" if self.elsewhere else questions
        return "; ".join(filter(None, (approvals, questions)))

    def leaves(self, ask: ApprovalRequest | Question) -> bool:
        """Return whether a person has to answer a request."""
        return not (self.absent or (self.yes and isinstance(ask, ApprovalRequest)))

    def gives_up(self, ask: ApprovalRequest | Question) -> bool:
        """Return whether another process's request would be declined by default here.

        By default means that no option of this call asks for it.
        """
        declined = bool(self.absent) and not (self.yes and isinstance(ask, ApprovalRequest))
        return declined and self.absent != NO_INPUT

    def sign(self, task: Task) -> Task:
        """Label a task with the name of its automatic answers."""
        return task.model_copy(update={"labels": {**task.labels, "attendance": self.by}}) if self.by else task


def attendance(*, yes: bool, no_input: bool, as_json: bool, has_console: bool = False) -> Attendance:
    """Return the source of answers.

    No person answers without a terminal, or when the output is for programs, unless there is a console.
    """
    if no_input:
        return Attendance(yes=yes, absent=NO_INPUT)
    if has_console and (as_json or not sys.stdin.isatty()):
        return Attendance(yes=yes, elsewhere=True)
    if as_json:
        return Attendance(yes=yes, absent="--json")
    return Attendance(yes=yes, absent="" if sys.stdin.isatty() else _NO_TERMINAL)


_SHOWN_CONTROLS = 12
_ASKED = {EventName.APPROVAL_REQUESTED, EventName.QUESTION_ASKED}
_SETTLED = {EventName.APPROVAL_ANSWERED, EventName.QUESTION_ANSWERED}
_YES, _NO = {"y", "yes"}, {"n", "no"}
_AT_TERMINAL = "the terminal"
_DAY = 86_400
_AT_DEADLINE = {
    AtDeadline.DENY: "it is rejected",
    AtDeadline.FAIL: "the work fails",
    AtDeadline.ALLOW: "it is approved, unless it must not be repeated",
}


class TerminalPeople:
    """Shows the requests of tasks to a person, and submits answers.

    Requests are shown one at a time, with the subtask that each belongs to; their agents wait, and others work on.
    """

    def __init__(
        self,
        handles: Sequence[TaskHandle],
        console: Console,
        attendance: Attendance,
        boards: Mapping[str, TaskDisplay] = MappingProxyType({}),
    ) -> None:
        """Create it; the tasks' `boards` know their subtasks."""
        self._handles = {handle.task_id: handle for handle in handles}
        self._boards = boards
        self._console = console
        self._attendance = attendance
        self._open: dict[str, ApprovalRequest | Question] = {}
        self._answered: set[str] = set()
        """Requests that were answered here; their events may come later, after a resume."""
        self._pictures: dict[str, str] = {}
        self._current_id = ""
        self._texts: list[str] = []
        self._keyboard: LineReader | None = None
        self._expired: list[str] = []
        """Requests whose deadlines passed while another one was shown."""

    @property
    def asking(self) -> bool:
        """True if a request is open.

        Nothing else may be drawn then.
        """
        return bool(self._open) and not self._attendance.elsewhere

    @property
    def prompting(self) -> bool:
        """True while a prompt waits for input."""
        return bool(self._current_id)

    def see(self, event: Event) -> None:
        """Record new requests, and remove answered ones, from any source."""
        if event.name in _ASKED:
            self.look(event.task_id)
            request = event.data.get("request")
            if isinstance(request, dict):
                self._pictures[str(request.get("id"))] = str(event.data.get("picture", ""))
        elif event.name in _SETTLED:
            answer = event.data.get("answer")
            if isinstance(answer, dict) and answer.get("id") in self._open:
                self._close(self._open[str(answer["id"])], _ended_by(answer), expired=bool(answer.get("expired")))
        elif event.name in {EventName.TASK_CANCELLING, EventName.TASK_ENDED}:
            reason = str(event.data.get("reason", "the task ended"))
            for ask in tuple(self._open.values()):
                if ask.task_id == event.task_id and event.run_id in {"", ask.run_id}:
                    self._close(ask, f"no longer asked: {reason}")

    def _close(self, ask: ApprovalRequest | Question, end: str, *, expired: bool = False) -> None:
        """Remove a request that was not answered here.

        If it is shown, or its deadline passed, the person is told.
        """
        del self._open[ask.id]
        notice = f"{self._whose(ask)}: {end}"
        if ask.id == self._current_id:
            self._current_id, self._texts = "", []
            self._console.print(Text(f"\n{notice}", style="yellow"))
        elif expired:
            self._expired.append(notice)

    def _whose(self, ask: ApprovalRequest | Question) -> str:
        """Name the subtask of a request, and its agent."""
        subtask = self._subtask(ask)
        return plain(ask.address) if subtask is None else f"subtask {subtask.number}, {plain(ask.address)}"

    def _subtask(self, ask: ApprovalRequest | Question) -> AgentRow | None:
        board = self._boards.get(ask.task_id)
        return None if board is None else board.subtask(ask.run_id)

    def look(self, task_id: str) -> None:
        """Load the requests that are open now."""
        handle = self._handles[task_id]
        waiting: list[ApprovalRequest | Question] = [*handle.approvals(), *handle.questions()]
        for ask in waiting:
            if ask.id not in self._answered:
                self._open.setdefault(ask.id, ask)

    def poll(self) -> None:
        """Show the next request, or submit the typed answer. Never blocks."""
        self._answer_unattended([ask for ask in self._open.values() if not self._attendance.leaves(ask)])
        if not self._current_id:
            self._tell_expired()
        if self._attendance.elsewhere:
            self._tell_of_console()
            return
        if not self._open:
            return
        ask = next(iter(self._open.values()))
        if self._current_id != ask.id:
            self._begin(ask)
        line = self._keyboard.line() if self._keyboard is not None else None
        if line is not None:
            if not line.endswith("\n"):
                self._console.print()  # at the end of the input no Enter ended the line of the prompt
            self._typed(ask, line.strip())

    def _tell_of_console(self) -> None:
        """Show the requests that wait in the console."""
        for ask in self._open.values():
            self._show(ask)
            self._console.print(Text("it waits in the console", style="dim"))
        self._answered.update(self._open)
        self._open.clear()

    def _tell_expired(self) -> None:
        for notice in self._expired:
            self._console.print(Text(notice, style="yellow"))
        self._expired = []

    def _begin(self, ask: ApprovalRequest | Question) -> None:
        """Show a request, and prompt for its answer."""
        self._current_id, self._texts = ask.id, []
        self._show(ask)
        if others := len(self._open) - 1:
            self._console.print(Text(f"{numbered(others, 'other request')} will be asked after it", style="dim"))
        if limit := until(ask):
            self._console.print(Text(limit, style="dim"))
        if self._keyboard is None:
            self._keyboard = LineReader()
        self._keyboard.drop()
        self._prompt(ask)

    def _answer_unattended(self, asks: Sequence[ApprovalRequest | Question]) -> None:
        """Answer requests that no person is asked.

        They do not wait for the answer to an open prompt.
        """
        for ask in asks:
            del self._open[ask.id]
            self._answered.add(ask.id)
            self._show(ask)
            with contextlib.suppress(NotWaitingError):  # its deadline came first
                if self._attendance.yes and isinstance(ask, ApprovalRequest):
                    self._handles[ask.task_id].approve(ask.id, by=self._attendance.by)
                    said = f"approved ({self._attendance.by})"
                else:
                    why = f"no person could be asked, because {self._attendance.why_absent}"
                    said = f"{self._decline(ask, _THIS_PROGRAM, why)}: {why}"
                self._console.print(Text(said, style="dim"))
        if asks and self._current_id:
            self._prompt(self._open[self._current_id])

    def _decline(self, ask: ApprovalRequest | Question, by: str, reason: str = "") -> str:
        """Submit the safe answer, and describe it."""
        if isinstance(ask, ApprovalRequest):
            self._handles[ask.task_id].reject(ask.id, reason, by=by)
            return "rejected"
        if ask.limit is not None:
            self._handles[ask.task_id].answer(ask.id, STOP, by=by)
            return f"answered with {STOP!r}"
        why = f", because {self._attendance.why_absent}" if self._attendance.absent else ""
        self._handles[ask.task_id].cancel(f"a question was not answered{why}: {asked(ask)}")
        return "not answered, so the task is cancelled"

    def _show(self, ask: ApprovalRequest | Question) -> None:
        words = f"asks: {plain(asked(ask))}" if isinstance(ask, Question) else f"asks for approval: {plain(ask.reason)}"
        self._console.print(Text(f"\n{plain(ask.address)} {words}", style="bold yellow"))
        if (subtask := self._subtask(ask)) is not None:
            self._console.print(Text(f"  subtask {subtask.number}: {cut(plain(subtask.subtask))}", style="dim"))
        if isinstance(ask, Question):
            self._show_picture(ask)
            return
        for line in calls_of(ask):
            self._console.print(Text(f"  {plain(line)}"))
        for line in seen(ask.observation):
            self._console.print(Text(f"  | {plain(line)}", style="dim"))
        self._show_picture(ask)

    def _show_picture(self, ask: ApprovalRequest | Question) -> None:
        """Print the file of the request's picture, if there is one."""
        if path := self._pictures.pop(ask.id, ""):
            self._console.print(Text(f"  picture: {plain(path)}", style="dim"))

    def _prompt(self, ask: ApprovalRequest | Question) -> None:
        if isinstance(ask, ApprovalRequest):
            text = "Run it? y = yes, a = yes to this same action for the rest of the task, Enter or a reason = no > "
        else:
            number = len(self._texts)
            which = f"Answer {number + 1} of {len(ask.questions)}" if len(ask.questions) > 1 else "Your answer"
            text = f"{which}; Enter: {'cancel the task' if ask.limit is None else STOP} > "
        self._console.print(Text(text), end="")

    def _typed(self, ask: ApprovalRequest | Question, line: str) -> None:
        typed = line.lower()
        try:
            if not line:
                self._decline(ask, _AT_TERMINAL)
            elif isinstance(ask, Question):
                self._texts.append(line)
                if len(self._texts) < len(ask.questions):
                    self._prompt(ask)
                    return
                self._handles[ask.task_id].answer(ask.id, *self._texts, by=_AT_TERMINAL)
            elif typed == "?":
                self._console.print(
                    Text("y runs it once; any other text rejects it, and the agent reads it as the reason")
                )
                self._prompt(ask)
                return
            elif typed in {*_YES, "a"}:
                self._handles[ask.task_id].approve(ask.id, by=_AT_TERMINAL, remember=typed == "a")
            else:
                self._decline(ask, _AT_TERMINAL, line if typed not in _NO else "")
        except AnswerRefusedError as error:
            self._console.print(Text(plain(str(error)), style="red"))
            self._texts = []
            self._prompt(ask)
            return
        except NotWaitingError:
            self._console.print(Text(f"too late: the request of {self._whose(ask)} is no longer open", style="red"))
        self._open.pop(ask.id, None)
        self._current_id, self._texts = "", []


def _ended_by(answer: Mapping[str, object]) -> str:
    """Describe the end of a request that was not answered here."""
    if answer.get("expired"):
        return f"no answer in time, so {_AT_DEADLINE[AtDeadline(str(answer['then']))]}"
    if answer.get("withdrawn"):
        return "no longer asked"
    return f"answered by {plain(str(answer.get('by') or 'another program'))}"


def until(ask: ApprovalRequest | Question) -> str:
    """Describe the deadline of a request and its effect; empty without one."""
    if ask.deadline is None:
        return ""
    fallback = ask.at_deadline if isinstance(ask, ApprovalRequest) else AtDeadline.FAIL
    form = "%H:%M:%S" if ask.deadline - time.time() < _DAY else "%Y-%m-%d %H:%M:%S"
    return f"without an answer by {time.strftime(form, time.localtime(ask.deadline))} {_AT_DEADLINE[fallback]}"


def seen(observation: Observation) -> list[str]:
    """Describe an agent's observation in a few lines."""
    lines = [
        f"{key}: {value}" for key, value in observation.window.items() if value and isinstance(value, str | int | float)
    ]
    controls = [f"{control.id} {control.kind} {control.name!r}" for control in observation.controls[:_SHOWN_CONTROLS]]
    if len(observation.controls) > _SHOWN_CONTROLS:
        controls.append(f"… and {len(observation.controls) - _SHOWN_CONTROLS} more")
    return [*lines, *controls, *observation.text.splitlines()[:_SHOWN_CONTROLS]]
