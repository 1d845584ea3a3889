"""Files that tasks may change.

Only tasks name them, and their own writes are no versions to keep.
"""

from __future__ import annotations

import hashlib

import pytest

from callboard import Task
from callboard.actors.commands import MayChange
from callboard.messages import Foreseen

OLD, NEW = b"old", b"new"


@pytest.fixture
def known():
    known = MayChange()
    known.take(Task(id="t", request="x", may_change=["a.xlsx"]))
    known.take(Task(id="other", request="x"))
    return known


def foreseen(path="/w/a.xlsx", after=NEW):
    return Foreseen(call_id="t~1.1.0", path=path, after=hashlib.sha256(after).hexdigest())


def test_only_the_task_itself_may_change_its_files(known):
    assert known.names("t") == {"a.xlsx"}
    assert known.names("other") == known.names("unknown") == frozenset()


def test_only_named_files_are_kept(known):
    assert known.keeps("t", "a.xlsx", "/w/a.xlsx", OLD)
    assert not known.keeps("t", "b.xlsx", "/w/b.xlsx", OLD)
    assert not known.keeps("other", "a.xlsx", "/w/a.xlsx", OLD)


def test_version_written_by_the_task_is_not_kept(known):
    known.foresee("t", foreseen())
    assert not known.keeps("t", "a.xlsx", "/w/a.xlsx", NEW)
    assert known.keeps("t", "a.xlsx", "/w/a.xlsx", OLD)
    assert known.keeps("t", "a.xlsx", "/elsewhere/a.xlsx", NEW)


def test_a_task_that_is_over_has_no_names(known):
    known.foresee("t", foreseen())
    known.drop("t")
    assert known.names("t") == frozenset()
    known.take(Task(id="t", request="x", may_change="a.xlsx"))
    assert known.keeps("t", "a.xlsx", "/w/a.xlsx", NEW)
