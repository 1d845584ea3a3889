"""Record of tabs: what the next process reads of it, and which tabs it opens again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from callboard.surfaces.browser._tab_record import TabRecord

FACTS = {"target": "T", "owner": "a task", "url": "http://a.example/", "documents": [1, 1]}


def tab(tab_id, **facts):
    """Make a tab as far as it is recorded."""
    page = SimpleNamespace(url=facts.get("url", "http://a.example/?q=1"))
    repeatable = facts.get("repeatable", True)
    return SimpleNamespace(
        id=tab_id, page=page, target=tab_id, owner="a task", documents=(1, 1), is_repeatable=repeatable
    )


@pytest.fixture
def record(tmp_path):
    return TabRecord(tmp_path / "tabs.json", is_written=True)


def test_tabs_are_read_as_they_were_written(record, tmp_path):
    record.write([tab("one"), tab("paid", repeatable=False)])
    later = TabRecord(tmp_path / "tabs.json", is_written=True)
    later.read()
    assert {tab_id: facts["url"] for tab_id, facts in later.earlier.items()} == {
        "one": "http://a.example/?q=1",
        "paid": "http://a.example/",
    }
    assert later.of_target("paid") == ("paid", later.earlier["paid"])
    assert later.of_target("other") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"one": {}}', json.dumps({"one": FACTS | {"url": 1}})])
def test_an_invalid_record_has_no_tabs(record, tmp_path, text):
    (tmp_path / "tabs.json").write_text(text)
    record.read()
    assert record.earlier == {}


def test_an_older_record_has_pages_that_may_be_opened_again(record, tmp_path):
    (tmp_path / "tabs.json").write_text(json.dumps({"one": FACTS}))
    record.read()
    assert record.earlier["one"]["repeatable"] is True


def test_tabs_that_closed_right_before_the_end_are_lost(record, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    record.note_closed(tab("long ago"))
    now[0] = 100.0
    record.note_closed(tab("with it"))
    record.note_end([tab("open")])
    record.note_lost({"open"})
    assert list(record.lost) == ["with it"]


def test_a_bounded_number_of_tabs_is_opened_again(record):
    record.note_end([tab(str(number)) for number in range(200)])
    record.note_lost(set())
    assert len(record.lost) == 50


def test_without_a_next_process_there_is_no_record(tmp_path):
    TabRecord(tmp_path / "tabs.json", is_written=False).write([tab("one")])
    assert list(tmp_path.iterdir()) == []
