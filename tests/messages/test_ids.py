"""Ids of tasks and runs: safe in URLs, and those of earlier journals stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from callboard import EventName, FunctionModel, Task
from callboard.messages import STORED, is_of_task, new_task_id
from support import ASSIGN, FINISH, PATIENCE, write

SAFE = ["a", "7", "sales-1", "Q3_report.v2", "x" * 100]
UNSAFE = [
    *("", ".", "..", ".hidden", "-x", "_x", "a.", "a:b", "a/b", "a\\b", "a b", "a~1", "a%2Fb", "a\0", "a\n", "å"),
    *("x" * 101, "../../etc/passwd", "a?b", "a#b", "a*"),
]


@pytest.mark.parametrize("name", SAFE)
def test_an_id_that_is_accepted_is_safe_in_urls_and_file_names(name, tmp_path):
    assert Task(id=name, request="x").id == name
    assert quote(name, safe="") == name
    (tmp_path / name).write_text("x", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_id_is_refused_with_the_rule(name):
    with pytest.raises(ValidationError, match=r"an id is 1 to 100 letters .* does not end with a dot"):
        Task(id=name, request="x")


def test_generated_ids_are_safe():
    assert [Task(id=new_task_id(), request="x").id for _ in range(100)]


def test_ids_of_runs_calls_and_requests_are_safe_in_urls(start):
    def host(request):
        return FINISH if request.subtasks else ASSIGN

    policy = [{"verdict": "approve", "tool": "write"}]
    handle = start(host=host, app=[write(), FINISH], policy=policy).submit(Task(id="a.b-1", request="x"))
    event = next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    [approval] = handle.approvals()
    handle.approve(approval.id)
    assert handle.result(PATIENCE).ok
    runs = {event.run_id for event in handle.events()} - {""}
    calls = {event.data["call"] for event in handle.events() if event.name is EventName.COMMAND_ENDED}
    assert (runs, event.run_id, calls) == ({"a.b-1~0", "a.b-1~1"}, "a.b-1~1", {"a.b-1~1.1.0"})
    assert [quote(name, safe="") for name in (*runs, *calls, approval.id)] == [*runs, *calls, approval.id]


@pytest.mark.parametrize(
    ("name", "is_its"),
    [
        ("t~0", True),
        ("t~1.1.0", True),
        ("t/1", True),
        ("t/1.1.0", True),
        ("t", False),
        ("t-2~1", False),
        ("u~1", False),
    ],
)
def test_ids_of_runs_and_calls_match_their_own_task_only(name, is_its):
    assert is_of_task(name, "t") is is_its


def test_a_stored_task_keeps_the_id_that_an_earlier_version_allowed():
    body = Task(id="a-b", request="x").model_dump_json().replace("a-b", "a:b.")
    assert Task.model_validate_json(body, context=STORED).id == "a:b."
    with pytest.raises(ValidationError):
        Task.model_validate_json(body)


def renamed(journal: Path, before: str, after: str) -> None:
    """Give a journaled task another id, in all its rows."""
    with closing(sqlite3.connect(journal)) as changed, changed:
        tables = [name for (name,) in changed.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, kind, *_ in changed.execute(f"PRAGMA table_info({table})").fetchall():
                if kind.upper() == "TEXT":
                    changed.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (before, after))  # noqa: S608


def test_a_task_with_an_earlier_id_is_resumed_and_followed_up(begin, until, tmp_path):
    def work(request):
        if not request.memory:
            return {"Status": "PENDING", "Questions": "Which?"}
        return {"Status": "FINISH"}

    model = FunctionModel(work)
    first = begin(host=model)
    handle = first.submit(Task(id="day-1", request="look around"))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    renamed(tmp_path / "journal.db", "day-1", "day:1")
    second = begin(host=model)
    (handle,) = second.pending()
    assert handle.task_id == "day:1"
    handle.answer(handle.questions()[0].id, "this one")
    assert handle.result(PATIENCE).ok
    later = handle.follow_up("once more")
    assert (later.session, later.task_id.startswith("task-")) == ("day:1", True)
    next(event for event in later.events() if event.name is EventName.QUESTION_ASKED or event.name == "task.ended")
