"""The index of tasks: written with the rows, rebuilt, and absent where SQLite has no FTS5."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from callboard.journal import JournalFile, JournalReader, TaskFilter
from callboard.journal import _search as search
from callboard.messages import Cause, Outcome


@pytest.fixture
def without_fts5(monkeypatch):
    """Make SQLite look as if it had no FTS5, until `undo`."""
    with monkeypatch.context() as patch:
        patch.setattr(search, "available", lambda _: False)
        yield patch


def found(path, text="", **others):
    with JournalReader.open(path) as reader:
        return [task.id for task in reader.page(TaskFilter(text, **others)).tasks]


def words(path):
    with closing(sqlite3.connect(path)) as connection:
        return [text for (text,) in connection.execute("SELECT words FROM search")]


def test_words_of_requests_and_results_find_a_task(opened, place, a_task, a_result):
    journal = opened()
    journal.write([a_task("t", request="Sum the sales"), a_task("u", request="", plan=["Open it", "Close the window"])])
    output = {"Größte": ["Müller\nund Söhne", 42, None]}
    causes = (Cause(reason="the server died"), Cause(reason="no memory"))
    journal.write([a_result("t", outcome=Outcome.ERROR, comment="All done", output=output, causes=causes)])
    journal.commit()
    for text in ("sales", "SUM, the", "done", "grosste", "muller und", "sohne", "42", "server", "memory sum", "sa"):
        assert found(place, text) == ["t"], text
    assert found(place, "close open") == ["u"]
    assert found(place, "close sales") == found(place, "s") == found(place, "none") == []


def test_rolled_back_tasks_are_not_found(opened, place, a_task):
    journal = opened()
    journal.write([a_task("t", request="one")])
    journal.rollback()
    journal.write([a_task("u", request="two")])
    journal.commit()
    assert found(place, "one") == []
    assert found(place, "two") == ["u"]


def test_pruning_deletes_a_task_from_the_index(opened, place, a_task, a_result):
    journal = opened()
    journal.write([a_task("t", request="one"), a_result("t"), a_task("u", request="two")])
    assert journal.prune(days=None, max_bytes=1) == 1
    assert len(words(place)) == 1
    assert found(place, "one") == []
    assert found(place, "two") == ["u"]


def test_only_the_beginning_of_a_long_text_is_searched(opened, place, a_task):
    journal = opened()
    journal.write([a_task("t", request="near " + "x" * search.TEXT_CHARACTERS + " far")])
    journal.commit()
    assert found(place, "near") == ["t"]
    assert found(place, "far") == []


def test_an_index_that_is_built_again_has_the_words_that_were_written(place, a_task, a_result):
    with closing(JournalFile.open(place)) as journal:
        journal.write([a_task("t", labels={"month": "May"}), a_task("u"), a_result("t", comment="Fin", output=[1.5])])
        journal.commit()
    written = words(place)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("DELETE FROM marks WHERE name = 'searched'")
    JournalFile.open(place).close()
    assert [set(text.split()) for text in words(place)] == [set(text.split()) for text in written]


def test_a_damaged_row_does_not_keep_the_index_from_being_built(place, a_task):
    with closing(JournalFile.open(place)) as journal:
        journal.write([a_task("t"), a_task("u")])
        journal.commit()
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE rows SET body = 'damaged' WHERE task = 't'")
        connection.execute("DELETE FROM marks WHERE name = 'searched'")
    JournalFile.open(place).close()
    assert found(place, "do") == ["u"]
    assert found(place) == ["u", "t"]


def test_a_journal_works_without_fts5(without_fts5, place, a_task, a_result):
    with closing(JournalFile.open(place)) as journal:
        journal.write([a_task("t", request="one"), a_result("t")])
        journal.commit()
    assert found(place, "one") == ["t"]
    JournalFile.open(place).close()
    without_fts5.undo()
    assert found(place, "one") == ["t"]
    JournalFile.open(place).close()
    assert len(words(place)) == 1
    assert found(place, "one") == ["t"]


def test_tasks_written_without_fts5_are_indexed_later(place, a_task, monkeypatch):
    for number, available in enumerate((True, False, True)):
        with monkeypatch.context() as patch:
            if not available:
                patch.setattr(search, "available", lambda _: False)
            with closing(JournalFile.open(place)) as journal:
                journal.write([a_task(f"t{number}")])
                journal.commit()
            assert found(place, "do it") == [f"t{each}" for each in range(number, -1, -1)]
    assert len(words(place)) == 3
    with JournalReader.open(place) as reader:
        assert reader.page(TaskFilter("do it"), limit=3).complete
