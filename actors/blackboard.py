"""The blackboard: shared entries of agents and people, derived from journal rows."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.runtime import ScheduledActor
from callboard.messages import (
    AgentCrashedError,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    BlackboardEntry,
    BlackboardQuery,
    BlackboardView,
    Board,
    Note,
    Question,
    RequestExpired,
    Shared,
    SharedEntry,
    SharedQuery,
    StepDone,
    SubtaskEnding,
    SubtaskErrored,
    SubtaskFailed,
    SubtaskFinished,
    Task,
    TaskResult,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pydantic import JsonValue

    from callboard.actors.runtime import Scheduler
    from callboard.config import BlackboardSettings
    from callboard.journal import Row

SHOWN = frozenset(
    {
        Task,
        Assign,
        StepDone,
        Question,
        ApprovalRequest,
        Answer,
        ApprovalAnswer,
        RequestExpired,
        Note,
        SubtaskFinished,
        SubtaskFailed,
        SubtaskErrored,
        TaskResult,
    }
)
"""The classes of messages that the blackboard reads."""


@dataclass
class _Page:
    rows: collections.deque[tuple[Board, str, Row]] = field(default_factory=collections.deque)
    """The board, author and row of each entry; its content is built when it is read."""
    dropped: int = 0
    open: set[str] = field(default_factory=set)
    """The unfinished tasks of the conversation."""
    tasks: set[str] = field(default_factory=set)
    """All tasks of the conversation."""
    entry_keys: set[tuple[str, int | str]] = field(default_factory=set)
    """The keys of requests, subtask results and notes that have an entry: after a crash they are sent again."""
    open_requests: dict[str, Question | ApprovalRequest] = field(default_factory=dict)
    """The open questions and approvals."""
    assigns: dict[str, Assign] = field(default_factory=dict)
    """The work of the runs, without results of others."""
    shared: list[SharedEntry] = field(default_factory=list)
    """The entries that agents are shown; those of a group in the order of its numbers."""


@dataclass(frozen=True)
class RowsKept:
    """Rows that are safe in the journal."""

    rows: Sequence[Row]


@dataclass(frozen=True)
class Read:
    """A query for a page, and the callback for its answer."""

    query: BlackboardQuery
    answer: Callable[[BlackboardView], None]


@dataclass(frozen=True)
class ReadShared:
    """A query for the shared entries, and the callback for its answer."""

    query: SharedQuery
    answer: Callable[[tuple[SharedEntry, ...]], None]


@dataclass(frozen=True)
class Filled:
    """The end of the rows for a rebuilt blackboard, and a callback."""

    callback: Callable[[], None]


class Blackboard(ScheduledActor):
    """One bounded page for each conversation.

    The oldest entries of a page are dropped first, and the pages of the conversations that ended first. The blackboard
    can be rebuilt from the journal at any time. Runs on the event loop's thread, and never blocks.
    """

    def __init__(
        self,
        settings: BlackboardSettings,
        crashed: Callable[[BaseException], None],
        scheduler: Scheduler,
        shared: dict[str, tuple[SharedEntry, ...]],
    ) -> None:
        """Create it; `shared` takes the entries shown to agents, by conversation."""
        super().__init__(scheduler)
        self._shared_by_session = shared
        self._settings = settings
        self._crashed = crashed
        self._pages: dict[str, _Page] = {}
        self._ended_sessions: dict[str, None] = {}  # the conversations that are over, in the order of their ends
        self._sessions: dict[str, str] = {}

    def on_receive(self, message: RowsKept | Filled | Read | ReadShared) -> None:
        """Handle one message; every error becomes an `AgentCrashedError`.

        Otherwise Pykka would answer a `SystemExit` by stopping every actor of the process.
        """
        try:
            self.receive(message)
        except BaseException as error:
            where = "blackboard"
            raise AgentCrashedError(where) from error

    def receive(self, message: RowsKept | Filled | Read | ReadShared) -> None:
        """Add rows, or read a page."""
        match message:
            case RowsKept():
                self._take(message.rows)
            case Filled():
                message.callback()
            case Read():
                session = self._sessions.get(message.query.task_id, message.query.task_id)
                page = self._pages.get(session, _Page())
                rows = {
                    board.value: tuple(_entry(at, row) for on, at, row in page.rows if on is board) for board in Board
                }
                message.answer(BlackboardView(task_id=session, dropped=page.dropped, **rows))
            case ReadShared():
                session = self._sessions.get(message.query.task_id, message.query.task_id)
                message.answer(tuple(self._pages[session].shared) if session in self._pages else ())

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Report the crash to the root, which rebuilds the blackboard."""
        self._crashed(exception_value or AgentCrashedError("blackboard"))

    def _take(self, rows: Sequence[Row]) -> None:
        """Add rows, but none of a task that is fed again.

        Such rows begin with a `Task` that is known.
        """
        repeated_tasks: set[str] = set()
        for row in rows:
            if type(row.message) is Task and row.task_id in self._sessions:
                repeated_tasks.add(row.task_id)
            if row.task_id not in repeated_tasks:
                self._keep(row)

    def _keep(self, row: Row) -> None:  # noqa: C901 - one match, a case a message
        message = row.message
        if isinstance(message, Task):
            self._sessions[row.task_id] = message.session or message.id
        page = self._page(row.task_id)
        match message:
            case Task():
                page.open.add(row.task_id)
                page.tasks.add(row.task_id)
                self._ended_sessions.pop(self._sessions[row.task_id], None)
            case TaskResult():
                self._end(row.task_id)
            case Assign(token=token) if token:
                page.assigns[message.run_id] = message.lean()
                if message.host is None and not self._has_entry(page, (message.run_id, message.round)):
                    self._add(page, Board.REQUESTS, "user", row)
                    self._share(row, Board.REQUESTS, "the user", message.request)
            case StepDone():
                by = page.assigns.get(row.run_id)
                self._add(page, Board.TRAJECTORIES, "" if by is None else by.address, row)
            case SubtaskEnding(result=result) if not self._has_entry(page, (result.run_id, 0)):
                self._add(page, Board.SUBTASKS, result.address, row)
            case Question() | ApprovalRequest():
                page.open_requests[message.id] = message
                self._add(page, Board.QUESTIONS, message.address, row)
            case Answer(nobody=False) | ApprovalAnswer(unattended=False):
                self._add(page, Board.QUESTIONS, message.by or "supervisor", row)
                self._share(
                    row,
                    Board.QUESTIONS,
                    message.by or "a person",
                    _answer(page.open_requests.pop(message.id, None), message),
                )
            case RequestExpired():
                self._add(page, Board.QUESTIONS, "supervisor", row)
                page.open_requests.pop(message.id, None)
            case Note(call_id=call_id, author=author, text=text):
                if not (call_id and self._has_entry(page, (call_id, text))):
                    self._add(page, Board.NOTES, author, row)
                    self._share(row._replace(run_id=message.run_id), Board.NOTES, author, text)

    def _page(self, task_id: str) -> _Page:
        session = self._sessions.get(task_id, task_id)
        if session not in self._pages:
            self._pages[session] = _Page()
            self._ended_sessions[session] = None  # until its task comes: a late row must not keep a page for good
        return self._pages[session]

    def _has_entry(self, page: _Page, key: tuple[str, int | str]) -> bool:
        """Return whether a key has an entry, and note it."""
        is_present = key in page.entry_keys
        page.entry_keys.add(key)
        return is_present

    def _share(self, row: Row, board: Board, author: str, text: str) -> None:
        """Show the conversation's agents a text, from their next step on."""
        if not (text and self._settings.shown):
            return
        session = self._sessions.get(row.task_id, row.task_id)
        page = self._pages[session]
        entry = SharedEntry(Shared(board=board, author=author, text=shown(text)), page.assigns.get(row.run_id))
        page.shared.insert(_position(page.shared, entry.by), entry)
        # No agent is shown more, and an agent that sees one entry of a run sees all of its entries.
        of_run = [index for index, other in enumerate(page.shared) if other.run_id == entry.run_id]
        if len(of_run) > self._settings.shown:
            del page.shared[of_run[0]]
        if len(page.shared) > self._settings.rows + self._settings.shown:
            del page.shared[0]
        self._shared_by_session[session] = tuple(page.shared)

    def _add(self, page: _Page, board: Board, author: str, row: Row) -> None:
        page.rows.append((board, author, row))
        while len(page.rows) > self._settings.rows:
            page.rows.popleft()
            page.dropped += 1

    def _end(self, task_id: str) -> None:
        session = self._sessions.get(task_id, task_id)
        page = self._pages[session]
        page.open.discard(task_id)
        self._ended_sessions.pop(session, None)
        if not page.open:
            page.open_requests.clear()  # the withdrawn requests
            self._ended_sessions[session] = None
        while len(self._ended_sessions) > self._settings.tasks:
            key = next(iter(self._ended_sessions))
            del self._ended_sessions[key]
            self._shared_by_session.pop(key, None)
            for task in self._pages.pop(key).tasks:
                self._sessions.pop(task, None)


def _answer(request: Question | ApprovalRequest | None, reply: Answer | ApprovalAnswer) -> str:
    """Describe a person's answer to all agents.

    It is empty for questions about an action in doubt, a limit or a machine, which concern one agent only.
    """
    match request, reply:
        case Question(in_doubt="", machine_away="", limit=None, questions=questions), Answer(texts=texts):
            return "; ".join(
                f"to {question.text!r}: {text!r}" for question, text in zip(questions, texts, strict=False)
            )
        case ApprovalRequest(actions=actions), ApprovalAnswer(approved=approved, reason=reason):
            tools = ", ".join(action.tool for action in actions)
            return f"{'approved' if approved else 'rejected'} {tools}{f': {reason}' if reason else ''}"
        case _:
            return ""


def _position(entries: Sequence[SharedEntry], by: Assign | None) -> int:
    """Return the position of a new entry.

    It is the end, but before those of later members of its group, which work beside it: so the order does not depend on
    which was faster.
    """
    if by is None:
        return len(entries)
    later = (position for position, other in enumerate(entries) if other.number_in_group(by) > by.number)
    return next(later, len(entries))


def _entry(author: str, row: Row) -> BlackboardEntry:
    return BlackboardEntry(at=row.at, author=author, content=_content(row))


def _content(row: Row) -> JsonValue:
    match row.message:
        case Assign() as assign:
            return assign.request
        case StepDone(record=record):
            return record.model_dump(mode="json", exclude={"observation"}, exclude_defaults=True)
        case SubtaskEnding(result=result):
            return result.model_dump(mode="json")
        case RequestExpired() as expired:
            return {"id": expired.id, "expired": True, "then": expired.at_deadline.value}
        case Note(text=text):
            return text
        case message:
            return message.model_dump(mode="json", exclude={"observation", "token"}, exclude_defaults=True)
