"""Pages of tasks: as a plain model lists them, by index, and by a look at each task."""

from __future__ import annotations

import itertools
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.journal import JournalFile, JournalReader, TaskFilter
from callboard.journal import _search as search
from callboard.journal import _task_list as lists
from callboard.messages import Outcome

TEXTS = st.lists(
    st.sampled_from(
        [
            "Sales",
            "sal",
            "report",
            "Re",
            "Café",
            "cafe\u0301",
            "Straße",
            "привет",
            "AND",
            "NEAR(a b)",
            '"',
            "*",
            "-",
            "x:y",
        ]
    ),
    max_size=4,
).map(" ".join)
LABELS = st.dictionaries(st.sampled_from(["month", "who"]), st.sampled_from(["May", "may", ""]), max_size=2)
OUTCOMES = st.sampled_from([None, Outcome.FINISHED, Outcome.TIMED_OUT])
TASKS = st.lists(st.tuples(TEXTS, LABELS, OUTCOMES, TEXTS, st.integers(0, 5)), max_size=12)
TIMES = st.none() | st.integers(0, 6)
FILTERS = st.builds(TaskFilter, TEXTS | st.text(), st.frozensets(OUTCOMES), LABELS, TIMES, TIMES)


def indexed(path):
    """Leave the journal as it is."""


def version_12(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP INDEX tasks_routine; ALTER TABLE tasks DROP COLUMN routine;"
            "DROP TABLE search; DROP INDEX tasks_submitted; DROP INDEX tasks_outcome;"
            "DELETE FROM marks WHERE name = 'searched'; PRAGMA user_version = 12;"
        )


def plain_words(text):
    """Split a text of letters and punctuation."""
    letters = "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))
    return "".join(part if part.isalnum() else " " for part in letters.casefold()).split()


def expected(tasks, shown):
    """List the ids of tasks that a filter shows, newest first, without the index."""
    *whole, last = plain_words(shown.text) or [""]
    ids = []
    for number, (request, labels, outcome, comment, at) in enumerate(tasks):
        words = {*plain_words(request), *(plain_words(comment) if outcome else ())}
        fits = any(word.startswith(last) if len(last) > 1 else word == last for word in words) if last else True
        fits = fits and words.issuperset(whole) and shown.labels.items() <= labels.items()
        fits = fits and (not shown.outcomes or outcome in shown.outcomes)
        if fits and (shown.since is None or at >= shown.since) and (shown.until is None or at < shown.until):
            ids.insert(0, f"t{number}")
    return ids


def write(journal, rows, number, task):
    task_row, result_row = rows
    request, labels, outcome, comment, at = task
    journal.write([task_row(f"t{number}", at=float(at), request=request or "-", labels=labels)])
    if outcome is not None:
        journal.write([result_row(f"t{number}", outcome=outcome, comment=comment)])
    journal.commit()


def pages(reader, shown, limit):
    before = None
    while True:
        page = reader.page(shown, before=before, limit=limit)
        assert len(page.tasks) <= limit
        yield page
        before = page.next
        if before is None:
            return


@pytest.mark.parametrize("form", [indexed, version_12])
@given(
    tasks=TASKS, shown=FILTERS.filter(lambda shown: shown.text.isascii() or "é" in shown.text), limit=st.integers(1, 4)
)
def test_pages_joined_are_what_a_plain_model_lists(form, tmp_path_factory, a_task, a_result, tasks, shown, limit):
    path = tmp_path_factory.mktemp("pages") / "journal.db"
    with closing(JournalFile.open(path, durability="process")) as journal:
        for number, task in enumerate(tasks):
            write(journal, (a_task, a_result), number, task)
    form(path)
    with JournalReader.open(path) as reader, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "LOOKED_AT", 5)
        ids = [task.id for page in pages(reader, shown, limit) for task in page.tasks]
        assert ids == expected(tasks, shown)
        counted = reader.count(shown)
        assert counted.tasks == len(ids) or (counted.more and counted.tasks < len(ids)) or len(tasks) > 5
        assert sum(reader.outcomes().values()) == len(tasks)
        assert all(line.labels == tasks[int(line.id[1:])][1] for line in reader.tasks())


@given(tasks=TASKS, shown=st.builds(TaskFilter, TEXTS, labels=LABELS), limit=st.integers(1, 3))
def test_tasks_written_between_two_pages_change_no_later_page(tmp_path_factory, a_task, a_result, tasks, shown, limit):
    path = tmp_path_factory.mktemp("pages") / "journal.db"
    with closing(JournalFile.open(path, durability="process")) as journal:
        for number, task in enumerate(tasks):
            write(journal, (a_task, a_result), number, task)
        numbers, ids = itertools.count(len(tasks)), []
        with JournalReader.open(path) as reader:
            for page in pages(reader, shown, limit):
                ids += [task.id for task in page.tasks]
                write(journal, (a_task, a_result), next(numbers), ("sales report", {"month": "May"}, None, "", 1))
        assert ids == expected(tasks, shown)


@pytest.mark.parametrize("statement", [lists._PAGE, lists._PAGE_FOUND, lists._COUNT, lists._COUNT_FOUND])
def test_no_filter_scans_or_sorts_a_table(opened, place, statement):
    opened()
    bounds = {"before": 9, "first": 0, "last": 9, "since": 0, "until": 9, "limit": 51, "query": '"a"'}
    with closing(sqlite3.connect(place)) as connection:
        plan = [line[3] for line in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bounds)]
    assert not [line for line in plan if line.startswith(("SCAN tasks", "SCAN rows", "USE TEMP"))]


@pytest.mark.parametrize(
    ("statement", "index"),
    [(lists._FIRST, "tasks_submitted"), (lists._LAST, "tasks_submitted"), (lists._OUTCOMES, "tasks_outcome")],
)
def test_times_and_outcomes_are_read_from_an_index_alone(opened, place, statement, index):
    opened()
    with closing(sqlite3.connect(place)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (1,) * statement.count("?")).fetchall()
    assert f"USING COVERING INDEX {index}" in plan[0][3]


def test_outcomes_and_tasks_are_counted(opened, place, a_task, a_result, monkeypatch):
    journal = opened()
    journal.write([a_task(f"t{number}") for number in range(5)])
    journal.write([a_result("t1"), a_result("t2", outcome=Outcome.REJECTED)])
    journal.commit()
    monkeypatch.setattr(lists, "COUNTED", 3)
    with JournalReader.open(place) as reader:
        assert reader.outcomes() == {None: 3, Outcome.FINISHED: 1, Outcome.REJECTED: 1}
        assert (reader.count().tasks, reader.count().more) == (3, True)
        assert (reader.count(TaskFilter("do")).tasks, reader.count(TaskFilter("do")).more) == (3, True)
        unfinished = reader.count(TaskFilter(outcomes=frozenset({None})))
        assert (unfinished.tasks, unfinished.more) == (3, False)


def test_a_page_without_the_index_tells_that_it_is_incomplete(opened, place, a_task, monkeypatch):
    journal = opened()
    journal.write([a_task(f"t{number}", request="old" if number < 2 else "new") for number in range(7)])
    journal.commit()
    monkeypatch.setattr(search, "available", lambda _: False)
    monkeypatch.setattr(lists, "LOOKED_AT", 3)
    with JournalReader.open(place) as reader:
        first, second, third = pages(reader, TaskFilter("old"), 9)
        assert [(len(page.tasks), page.complete) for page in (first, second, third)] == [
            (0, False),
            (1, False),
            (1, True),
        ]
        assert (reader.count(TaskFilter("old")).tasks, reader.count(TaskFilter("old")).more) == (0, True)


@pytest.mark.parametrize(
    ("beginning", "ids"),
    [
        ("", ("ta", "T", "t", "t_b")),
        ("t", ("ta", "t", "t_b")),
        ("t_", ("t_b",)),
        ("t_b", ("t_b",)),
        ("t%", ()),
        ("ü", ()),
    ],
)
def test_ids_are_listed_by_their_beginning_as_submitted(opened, place, a_task, beginning, ids):
    journal = opened()
    journal.write([a_task(task_id) for task_id in ("ta", "T", "t", "t_b")])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert reader.ids(beginning) == ids


def test_ids_of_unfinished_tasks_are_read_by_their_index(opened, place, a_task, a_result):
    journal = opened()
    journal.write([a_task(task_id) for task_id in ("c", "b", "a")])
    journal.write([a_result("b")])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert reader.unfinished_ids() == ("c", "a")
    with closing(sqlite3.connect(place)) as connection:
        plans = [
            connection.execute(f"EXPLAIN QUERY PLAN {statement}", bounds).fetchone()[3]
            for statement, bounds in ((lists._UNFINISHED_IDS, ()), (lists._IDS, {"first": "t", "last": "u"}))
        ]
    assert "tasks_open" in plans[0]
    assert "id>? AND id<?" in plans[1]
