"""Guards of routines by a program's own surface: `form`, `relies_on` and `leaves`."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time

import pytest

from callboard import Outcome, Task, tool
from callboard.journal import JournalReader
from callboard.messages import Control, Decided, Effect, Observation, Target, TargetKind
from callboard.routines import record
from callboard.surface import Server, ToolError
from callboard.testing import assert_replays
from support import PATIENCE


class Ledger(Server):
    """Books, and a small language of queries; none of it is in an observation."""

    name = "ledgers"
    settles = False

    def __init__(self, **books: str) -> None:
        self.books = books
        self.queries: list[str] = []
        self.rounding = "none"

    def targets(self):
        address = "app/ledger/main"
        return (Target(id="ledger", name="Ledger", kind=TargetKind.WINDOW, address=address, server=self.name),)

    def observe(self, target, look):
        return Observation(controls=(Control(id="q", name="Query", kind="field"),), fingerprint=str(len(self.queries)))

    @tool(effect=Effect.IDEMPOTENT)
    def query(self, text: str) -> dict[str, str]:
        """Run a query: `sum BOOK`."""
        self.queries.append(text)
        return {"rows": text}

    def form(self, target, tool, arguments):
        if "?" in arguments["text"]:
            msg = "a query has no ?"
            raise ToolError(msg)
        verb, *words = arguments["text"].split()
        return {verb: words}

    def relies_on(self, target, tool, arguments):
        names = re.findall(r"\w+", arguments["text"])
        return {name: f"a book of version {self.books[name]}" for name in names if name in self.books}

    def leaves(self, target, tool, arguments, answer):
        return {"rounding": self.rounding}


@pytest.fixture
def routine(start, tmp_path):
    def decide(request):
        if request.memory:
            return {"Status": "FINISH"}
        return {"Status": "CONTINUE", "Function": "query", "Args": {"text": "sum may2026"}}

    path = tmp_path / "journal.db"
    supervisor = start(servers=[Ledger(may2026="3")], app=decide, journal={"path": path})
    assert supervisor.submit(Task(id="t", request="Sum up", target="ledger")).result(PATIENCE).ok
    supervisor.stop()
    with JournalReader.open(path) as reader:
        return record(reader.rows("t", events=False), name="r", parameters={"book": "may2026"}).routine


def repeated(start, tmp_path, routine, surface, **parameters):
    """Repeat a routine without a model; return the reason why it stopped, or an empty text."""
    path = tmp_path / "second.db"
    supervisor = start(servers=[surface], journal={"path": path}, system={"ask_question": False})
    result = supervisor.submit(Task(id="t", routine=routine, parameters=parameters)).result(PATIENCE)
    supervisor.stop()
    assert assert_replays(path, "t")
    return "" if result.outcome is Outcome.FINISHED else result.causes[0].reason


def test_facts_of_a_surface_are_recorded(routine):
    (action,) = routine.subtasks[0].steps[0].actions
    assert action.relies_on == {"${book}": "a book of version 3"}
    assert action.expect.leaves == {"rounding": "none"}


def test_routine_repeats_while_the_facts_hold(start, tmp_path, routine):
    ledger = Ledger(june2026="3")
    assert repeated(start, tmp_path, routine, ledger, book="june2026") == ""
    assert ledger.queries == ["sum june2026"]


@pytest.mark.parametrize(("books", "found"), [({"june2026": "4"}, "a book of version 4"), ({}, "nothing known of it")])
def test_routine_stops_before_a_call_whose_facts_differ(start, tmp_path, routine, books, found):
    ledger = Ledger(**books)
    reason = repeated(start, tmp_path, routine, ledger, book="june2026")
    assert f"expected 'june2026' to be a book of version 3; found {found}" in reason
    assert ledger.queries == []


def test_routine_stops_after_a_call_that_leaves_other_facts(start, tmp_path, routine):
    ledger = Ledger(june2026="3")
    ledger.rounding = "up"
    reason = repeated(start, tmp_path, routine, ledger, book="june2026")
    assert "expected 'rounding' to be none; found up" in reason
    assert ledger.queries == ["sum june2026"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("may2026 april", "found another form"),
        ("may2026?", "found no form that can be told: a query has no ?"),
    ],
)
def test_value_that_changes_the_form_is_not_filled_in(start, tmp_path, routine, value, why):
    ledger = Ledger(may2026="3")
    assert why in repeated(start, tmp_path, routine, ledger, book=value)
    assert ledger.queries == []


def test_facts_of_no_surface_are_no_part_of_a_dry_run(start, tmp_path, routine):
    ledger = Ledger()
    supervisor = start(servers=[ledger], system={"ask_question": False})
    result = supervisor.submit(Task(routine=routine, dry_run=True)).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert ledger.queries == []


def test_model_goes_on_where_a_fact_differs(start, routine):
    ledger = Ledger(may2026="4")
    requests = []

    def decide(request):
        requests.append(request.observation.notes)
        return {"Status": "FINISH"}

    result = start(servers=[ledger], app=decide).submit(Task(routine=routine)).result(PATIENCE)
    assert result.ok
    assert "expected 'may2026' to be a book of version 3; found a book of version 4" in str(requests[0])
    assert ledger.queries == []


class Drafts(Ledger):
    """A ledger whose queries change the fact that they rely on, in their own time."""

    def __init__(self) -> None:
        super().__init__(may2026="3")
        self.changed, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.IDEMPOTENT)
    def query(self, text: str) -> dict[str, str]:
        """Run a query: `sum BOOK`."""
        self.books["may2026"] = "4"
        self.changed.set()
        self.go.wait(PATIENCE)
        return super().query(text)


def test_call_that_a_crash_interrupted_is_made_again_whatever_it_changed(start, tmp_path, routine):
    path, copy = tmp_path / "killed.db", tmp_path / "copy.db"
    ledger = Drafts()
    supervisor = start(servers=[ledger], journal={"path": path}, system={"ask_question": False})
    supervisor.submit(Task(id="t", routine=routine))
    assert ledger.changed.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:  # as a process leaves it that is killed now
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with JournalReader.open(copy) as reader:
            if any(isinstance(row.message, Decided) for row in reader.rows("t")):
                break
    ledger.go.set()
    supervisor.stop()
    successor = Ledger(**ledger.books)
    supervisor = start(servers=[successor], journal={"path": copy}, system={"ask_question": False})
    result = supervisor.handle("t").result(PATIENCE)
    assert (result.outcome, successor.queries) == (Outcome.FINISHED, ["sum may2026"]), result.causes
