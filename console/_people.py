"""Approvals and questions in the terminal. Enter alone is always the safe answer."""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from enum import Enum
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.console._text import plain
from callboard.messages import AnswerRefusedError, ApprovalRequest, EventName, NotWaitingError, Question

if TYPE_CHECKING:
    from rich.console import Console

    from callboard.actors.root import TaskHandle
    from callboard.messages import Event, Observation

_SHOWN_CONTROLS = 12
_ASKED = {EventName.APPROVAL_REQUESTED, EventName.QUESTION_ASKED}
_SETTLED = {EventName.APPROVAL_ANSWERED, EventName.QUESTION_ANSWERED}
_YES = {"y", "yes"}


class Attendance(Enum):
    """Who answers on the command line."""

    PERSON = "person"
    """Somebody at the terminal."""
    YES = "--yes"
    """Everything that asks for approval is approved."""
    NOBODY = "--no-input"
    """Everything that asks for approval is rejected."""


def attendance(*, yes: bool, no_input: bool) -> Attendance:
    """Say who answers; without a terminal nobody does."""
    if yes:
        return Attendance.YES
    return Attendance.NOBODY if no_input or not sys.stdin.isatty() else Attendance.PERSON


class People:
    """Puts what a task asks before whoever is there, one thing after the other, and hands in the answers."""

    def __init__(self, handle: TaskHandle, console: Console, attendance: Attendance) -> None:
        self._handle = handle
        self._console = console
        self._attendance = attendance
        self._open: dict[str, ApprovalRequest | Question] = {}
        self._shown = ""
        self._texts: list[str] = []
        self._keyboard: _Keyboard | None = None

    @property
    def asking(self) -> bool:
        """Whether something waits for an answer, so that nothing else may be drawn."""
        return bool(self._open)

    def see(self, event: Event) -> None:
        """Take note of what is asked, and of what is settled, by whomever."""
        if event.name in _ASKED:
            waiting: list[ApprovalRequest | Question] = [*self._handle.approvals(), *self._handle.questions()]
            for ask in waiting:
                self._open.setdefault(ask.id, ask)
        elif event.name in _SETTLED or event.name in {EventName.TASK_CANCELLING, EventName.TASK_ENDED}:
            answer = event.data.get("answer")
            gone = {str(answer.get("id"))} if isinstance(answer, dict) else set(self._open)
            for request_id in gone & self._open.keys():
                del self._open[request_id]
                if request_id == self._shown:
                    self._shown, self._texts = "", []

    def poll(self) -> None:
        """Show what is asked next, or hand in what was typed. Never blocks."""
        if not self._open:
            return
        ask = next(iter(self._open.values()))
        if self._attendance is not Attendance.PERSON:
            self._answer_unattended(ask)
            return
        if self._shown != ask.id:
            self._shown, self._texts = ask.id, []
            self._show(ask)
            if self._keyboard is None:
                self._keyboard = _Keyboard()
            self._keyboard.drop()
            self._prompt(ask)
        line = self._keyboard.line() if self._keyboard is not None else None
        if line is not None:
            self._typed(ask, line.strip())

    def _answer_unattended(self, ask: ApprovalRequest | Question) -> None:
        how = self._attendance.value
        del self._open[ask.id]
        self._show(ask)
        with contextlib.suppress(NotWaitingError):  # its deadline was faster
            if isinstance(ask, Question):
                self._handle.cancel(f"nobody is here to answer ({how}): {asked(ask)}")
            elif self._attendance is Attendance.YES:
                self._handle.approve(ask.id, by=how)
            else:
                self._handle.reject(ask.id, "nobody is here to approve it", by=how)
        self._console.print(Text(f"answered by {how}", style="dim"))

    def _show(self, ask: ApprovalRequest | Question) -> None:
        if isinstance(ask, Question):
            self._console.print(Text(f"\n{plain(ask.address)} asks: {plain(asked(ask))}", style="bold yellow"))
            return
        self._console.print(Text(f"\n{plain(ask.address)} wants an approval: {plain(ask.reason)}", style="bold yellow"))
        for action in ask.actions:
            call = f"  {action.tool} {json.dumps(action.arguments, ensure_ascii=False)}"
            self._console.print(Text(plain(call)))
        for line in seen(ask.observation):
            self._console.print(Text(f"  {plain(line)}", style="dim"))

    def _prompt(self, ask: ApprovalRequest | Question) -> None:
        if isinstance(ask, ApprovalRequest):
            text = "Run it? y: yes, a: yes, and the same again in this task, Enter: no > "
        else:
            number = len(self._texts)
            which = f"Answer {number + 1} of {len(ask.questions)}" if len(ask.questions) > 1 else "Your answer"
            text = f"{which}; Enter: cancel the task > "
        self._console.print(Text(text), end="")

    def _typed(self, ask: ApprovalRequest | Question, line: str) -> None:
        try:
            if isinstance(ask, ApprovalRequest):
                if line.lower() in {*_YES, "a"}:
                    self._handle.approve(ask.id, by="the terminal", remember=line.lower() == "a")
                else:
                    self._handle.reject(ask.id, line if line.lower() not in {"", "n", "no"} else "", by="the terminal")
            elif not line:
                self._handle.cancel("a question was not answered at the terminal")
            else:
                self._texts.append(line)
                if len(self._texts) < len(ask.questions):
                    self._prompt(ask)
                    return
                self._handle.answer(ask.id, *self._texts, by="the terminal")
        except AnswerRefusedError as error:
            self._console.print(Text(plain(str(error)), style="red"))
            self._texts = []
            self._prompt(ask)
            return
        except NotWaitingError:
            self._console.print(Text("too late: it is not open any more", style="red"))
        self._open.pop(ask.id, None)
        self._shown, self._texts = "", []


def asked(ask: Question) -> str:
    """Say in one line what an agent wants to know."""
    parts = (part.text + (f" ({' / '.join(part.choices)})" if part.choices else "") for part in ask.questions)
    return "; ".join(parts)


def seen(observation: Observation) -> list[str]:
    """Say in a few lines what an agent sees."""
    lines = [f"{key}: {value}" for key, value in observation.window.items() if isinstance(value, str | int | float)]
    controls = [f"{control.id} {control.kind} {control.name!r}" for control in observation.controls[:_SHOWN_CONTROLS]]
    if len(observation.controls) > _SHOWN_CONTROLS:
        controls.append(f"… and {len(observation.controls) - _SHOWN_CONTROLS} more")
    return [*lines, *controls, *observation.text.splitlines()[:_SHOWN_CONTROLS]]


class _Keyboard:
    """Reads lines on a thread of its own, so that Ctrl-C, deadlines and answers of others get through meanwhile."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._main, name="callboard-keyboard", daemon=True).start()

    def _main(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put("")  # the end of the input is the safe answer

    def line(self) -> str | None:
        """Give the next line, None while there is none."""
        return None if self._lines.empty() else self._lines.get()

    def drop(self) -> None:
        """Forget what was typed before anything was asked."""
        while not self._lines.empty():
            self._lines.get()
