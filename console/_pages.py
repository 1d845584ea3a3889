"""The pages of the console, as parts of their frame."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from callboard.config import current_language, term, text
from callboard.console._file_changes import changed_files, file_changes, file_versions
from callboard.console._file_pages import FilePages, digest_of_page
from callboard.console._other_rules import other_rulings, rules_in
from callboard.console._replayed_task import replayed_task
from callboard.console._state_drawing import state_drawing
from callboard.console._task_view import digest_of, pretty, task_view
from callboard.console._templates import templates
from callboard.history import control_of, history_of
from callboard.journal import JournalReader, TaskFilter, Versions
from callboard.messages import ApprovalRequest, EventName, Outcome
from callboard.surfaces import ToolError
from callboard.surfaces.documents import MOST_COMPARED, PAGE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from callboard.console._sign_in import SignIn
    from callboard.history import TaskHistory
    from callboard.messages import ActionFacts, Question
    from callboard.supervisor import Supervisor

STATIC = Path(__file__).parent / "static"
SCRIPT_TEXTS = (
    "connected",
    "copied",
    "failed",
    "lost",
    "said_answer",
    "said_approve",
    "said_reject",
    "seconds",
    "sign_in_elsewhere",
    "sign_in_first",
    "title",
    "too_early",
)
"""The names of the texts that the script of the pages uses."""


@dataclass(frozen=True)
class Pages:
    """Makes the parts of the pages from a journal.

    With a supervisor they also show its state.

    All methods block; they are called on threads.
    """

    journal: Path
    supervisor: Supervisor | None

    @cached_property
    def _templates(self) -> Environment:
        environment = templates(live=self.supervisor is not None)
        environment.filters.update(
            control_of=control_of,
            facts=_facts_of,
            before=lambda ask: digest_of(ask.before),
            now=_picture_now,
            digest=digest_of_page,
        )
        environment.globals["command"] = self._command
        return environment

    def _command(self, verb: str, task_id: str) -> str:
        """Return a command about a task, to copy into a terminal."""
        return shlex.join(["callboard", verb, task_id, str(self.journal.resolve())])

    def render(self, template: str, **values: Any) -> str:
        """Render a template."""
        return self._templates.get_template(template).render(**values)

    @cached_property
    def version(self) -> str:
        """A digest of the files that browsers keep."""
        digest = hashlib.sha256()
        for file in sorted(STATIC.iterdir()):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:12]

    def frame(self, root: str, *, has_sign_in: bool) -> str:
        """Return the frame of all pages, which has no data."""
        texts = {name: current_language().pattern(name) for name in SCRIPT_TEXTS}
        return self.render(
            "frame.html", root=root, version=self.version, texts=json.dumps(texts), has_sign_in=has_sign_in
        )

    def history(self, task_id: str) -> TaskHistory:
        """Read a task.

        Raises:
            HTTPException: If the journal does not have it.
        """
        with JournalReader.open(self.journal, pictures=False) as reader:
            history = history_of(reader.rows(task_id))
        if history is None:
            raise HTTPException(404, text("not_found"))
        return history

    def tasks(self, query: Mapping[str, str]) -> str:
        """Return the page of the tasks that fit a filter."""
        tasks = _filter_of(query)
        before = number_in(query.get("before", ""))
        with JournalReader.open(self.journal) as reader:
            page, count, outcomes = reader.page(tasks, before=before), reader.count(tasks), reader.outcomes()
        names = [(outcome.value, outcomes.get(outcome, 0)) for outcome in Outcome if outcomes.get(outcome)]
        return self.render(
            "tasks.html",
            page=page,
            count=count,
            outcomes=[(_UNFINISHED, outcomes.get(None, 0)), *names],
            query={name: query.get(name, "") for name in ("q", "outcome", "label", "since", "until")},
            is_filtered=tasks != TaskFilter(),
            is_first=before is None,
        )

    def task(self, session: SignIn, task_id: str, query: Mapping[str, str]) -> str:
        """Return the page of a task."""
        history = self.history(task_id)
        view = task_view(history, time.time(), until=number_in(query.get("until", "")))
        return self.render(
            "task.html",
            view=view,
            history=history,
            changes=file_changes(history, Versions(self.journal.resolve())),
            task=history.task,
            result=history.result,
            status=self._status_of(task_id),
            session=session,
        )

    @cached_property
    def _file_pages(self) -> FilePages:
        return FilePages()

    def file_pages(self, task_id: str, number: int | None) -> str:
        """Return the pages of a changed file, before and after.

        Args:
            task_id: The task.
            number: The number of the file in the result, from 0; None for one that can't be.

        Raises:
            HTTPException: If the result has no such file.
        """
        history = self.history(task_id)
        names = changed_files(history)
        suffix = "" if number is None or number >= len(names) else Path(names[number]).suffix.lower()
        if number is None or suffix not in PAGE_SUFFIXES:
            raise HTTPException(404, text("not_found"))
        versions, compared, reason = file_versions(history, Versions(self.journal.resolve()), names[number]), None, ""
        if isinstance(versions, str):
            reason = versions
        else:
            try:
                compared = self._file_pages.compared(versions, suffix)
            except ToolError as error:
                reason = str(error)
        return self.render("pages.html", compared=compared, reason=reason, most_compared=MOST_COMPARED)

    def replay(self, task_id: str) -> str:
        """Replay a task, and return the first difference."""
        settings = None if self.supervisor is None else self.supervisor.settings
        replayed = replayed_task(self.journal, self.history(task_id), settings)
        return self.render("replay.html", replayed=replayed, task_id=task_id)

    def run(self, task_id: str, run_id: str) -> str:
        """Return the drawing of the machine of a run."""
        history = self.history(task_id)
        moves = [
            (str(event.data["source"]), str(event.data["target"]))
            for event in history.events
            if event.run_id == run_id and event.name is EventName.STATE_CHANGED
        ]
        address = history.agents.get(run_id)
        if address is None:
            raise HTTPException(404, text("not_found"))
        return self.render("machine.html", drawing=state_drawing(address, moves), address=address)

    def rulings(self, task_id: str, rules_text: str) -> str:
        """Return the verdicts of other rules on a task's actions.

        Raises:
            UnreadableRulesError: If the text has no rules.
        """
        rules = rules_in(rules_text)
        return self.render("rulings.html", rulings=other_rulings(self.history(task_id), rules))

    def waiting(self, session: SignIn) -> str:
        """Return the page of the requests that wait for a person."""
        asks, requests, more_tasks = self._open_requests()
        return self.render(
            "waiting.html",
            asks=asks,
            requests=requests,
            more_tasks=more_tasks,
            session=session,
            is_approval=_is_approval,
        )

    def _open_requests(self) -> tuple[list[ApprovalRequest | Question], dict[str, str], bool]:
        """Return the open requests to people, and the tasks' requests by id.

        The last value is True if there are more unfinished tasks than were read.
        """
        unfinished = TaskFilter(outcomes=frozenset({None}))
        asks: list[ApprovalRequest | Question]
        with JournalReader.open(self.journal, pictures=False) as reader:
            if self.supervisor is not None:
                status = self.supervisor.status()
                asks = [*status.approvals, *status.questions]
                page = reader.page(unfinished, limit=_MOST_REQUESTS)  # the supervisor has texts with their secrets
            else:
                page = reader.page(unfinished, limit=_MOST_READ)
                histories = [history_of(reader.rows(line.id)) for line in page.tasks]
                asks = [ask for history in histories if history is not None for ask in history.waiting]
        is_cut = self.supervisor is None and page.next is not None
        return asks, {line.id: line.request for line in page.tasks}, is_cut

    def health(self) -> str:
        """Return the page of the supervisor's health."""
        supervisor = self.supervisor
        if supervisor is None:
            with JournalReader.open(self.journal) as reader:
                return self.render("health.html", health=None, holder=reader.holder(), journal=str(self.journal))
        return self.render(
            "health.html",
            health=supervisor.health(),
            status=supervisor.status(),
            targets=supervisor.targets(),
            journal=str(self.journal),
        )

    def _status_of(self, task_id: str) -> object | None:
        """Return the status of a task that this process works on."""
        if self.supervisor is None:
            return None
        return next((task for task in self.supervisor.status().tasks if task.task_id == task_id), None)

    def picture(self, name: str) -> bytes:
        """Read a picture of the journal or a page by its digest.

        Raises:
            HTTPException: If the journal has none.
        """
        page = self._file_pages.picture(name)
        if page is not None:
            return page
        with JournalReader.open(self.journal, pictures=False) as reader:
            picture = reader.picture(bytes.fromhex(name))
        if picture is None:
            raise HTTPException(404, text("not_found"))
        return picture


def number_in(digits: str) -> int | None:
    """Return the number in an address or a header.

    None if it is none that a journal could have.
    """
    return int(digits) if len(digits) <= _MOST_DIGITS and digits.isdecimal() else None


_MOST_DIGITS = 15
_UNFINISHED = "unfinished"
_MOST_REQUESTS = 2_000
"""The most unfinished tasks whose requests stand beside what waits; of others, the id does."""
_MOST_READ = 100
"""The most unfinished tasks whose requests are looked for in a journal."""


def _is_approval(ask: ApprovalRequest | Question) -> bool:
    return isinstance(ask, ApprovalRequest)


def _picture_now(ask: ApprovalRequest | Question) -> str:
    """Return the digest of the picture at the time of asking.

    Empty without one.
    """
    if isinstance(ask, ApprovalRequest):
        return digest_of(ask.observation.annotated or ask.observation.picture)
    return digest_of(ask.picture)


def _facts_of(facts: ActionFacts) -> list[tuple[str, str]]:
    """Return the facts of a held action that a person decides by."""
    values = facts.model_dump(mode="json")
    values["hazards"] = [term("hazard", hazard) for hazard in values["hazards"]]
    return [(term("fact", name), pretty(value)) for name, value in values.items() if value]


def _filter_of(query: Mapping[str, str]) -> TaskFilter:
    """Return the filter of a page's address.

    Parts that can't be read are left out.
    """
    outcome = query.get("outcome", "")
    outcomes: frozenset[Outcome | None] = frozenset()
    if outcome == _UNFINISHED:
        outcomes = frozenset({None})
    elif outcome in set(Outcome):
        outcomes = frozenset({Outcome(outcome)})
    name, _, value = query.get("label", "").partition("=")
    return TaskFilter(
        text=query.get("q", ""),
        outcomes=outcomes,
        labels={name.strip(): value.strip()} if name.strip() else {},
        since=_moment_of(query.get("since", "")),
        until=_moment_of(query.get("until", "")),
    )


def _moment_of(seconds: str) -> float | None:
    """Return a moment in seconds.

    The browser makes it from a day in the reader's zone.
    """
    try:
        moment = float(seconds)
    except ValueError:
        return None
    return moment if math.isfinite(moment) else None
