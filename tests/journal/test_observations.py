"""Observations are kept once, later ones as the differences from an earlier one, and come back as they were."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.journal import JournalReader
from callboard.journal._observations import MARK, _expanded, _runs
from callboard.journal._pictures import picture_path
from callboard.messages import (
    Captured,
    Control,
    Decided,
    Decision,
    JournalDamagedError,
    JournalError,
    Observation,
    StepDone,
    StepRecord,
    Target,
    TargetKind,
)
from callboard.testing import Faults, disk_full

MANY = 300


def controls(count=MANY, **changed):
    return tuple(
        Control(id=f"c-{n}", name=f"Control {n}", kind="cell", detail={"text": changed.get(f"c{n}", "as it was")})
        for n in range(count)
    )


def seen(**changed):
    return Observation(controls=controls(**changed), fingerprint=repr(changed), window={"title": "book"})


def stored(place):
    with contextlib.closing(sqlite3.connect(place)) as reading:
        return reading.execute("SELECT name, base, length(body) FROM observations ORDER BY rowid").fetchall()


def kept(journal, task="t"):
    return [row.message.observation for row in journal.rows(task) if isinstance(row.message, Captured)]


def write(journal, a_row, *observations, task="t", run="t~1"):
    rows = [a_row(Captured(observation=each), task=task)._replace(run_id=run) for each in observations]
    journal.write(rows)
    journal.commit()


def test_an_observation_that_several_rows_have_is_kept_once(opened, place, a_row):
    journal, one = opened(), seen()
    decided = Decided(step=1, observation=one, decision=Decision(status="FINISH"), actions=())
    done = StepDone(
        record=StepRecord(step=1, status="CONTINUE", observation=one, decision=decided.decision, results=())
    )
    journal.write([a_row(message, task="t") for message in (decided, done, Captured(observation=seen()))])
    journal.commit()
    assert len(stored(place)) == 1
    messages = [row.message for row in journal.rows("t")]
    assert (messages[0], messages[1]) == (decided, done)
    assert messages[2].observation == one
    assert messages[0].observation is messages[2].observation  # read once, too


def test_later_observations_are_stored_as_changes_of_the_first(opened, place, a_row):
    journal = opened()
    steps = [seen(**{f"c{n}": "changed" for n in range(step, step + 3)}) for step in range(10)]
    write(journal, a_row, *steps)
    (first, *others) = stored(place)
    assert first[1] is None
    assert {base for _, base, _ in others} == {first[0]}
    assert max(size for *_, size in others) < first[2] / 20
    assert kept(journal) == steps
    journal.close()
    with JournalReader.open(place) as reader:
        assert [row.message.observation for row in reader.rows("t")] == steps


def test_very_different_observation_is_stored_whole_and_becomes_the_base(opened, place, a_row):
    journal = opened()
    other = Observation(controls=controls(200, **{f"c{n}": "other" for n in range(200)}))
    later = other.model_copy(update={"text": "later"})
    write(journal, a_row, seen(), other, later)
    names = [(name, base) for name, base, _ in stored(place)]
    assert [base for _, base in names] == [None, None, names[1][0]]
    assert kept(journal) == [seen(), other, later]


def test_drifting_observations_are_compared_with_a_later_base(opened, place, a_row):
    journal = opened()
    steps = [seen(**{f"c{n}": "changed" for n in range(3 * step)}) for step in range(30)]
    write(journal, a_row, *steps)
    sizes = [(size, base) for _, base, size in stored(place)]
    wholes = [size for size, base in sizes if base is None]
    changes = [size for size, base in sizes if base is not None]
    assert 1 < len(wholes) < 6
    assert sum(changes) < sum(wholes)  # each whole allows as much again
    assert kept(journal) == steps


def test_each_run_is_compared_with_its_own(opened, place, a_row):
    journal = opened()
    other = {f"c{n}": "other" for n in range(MANY)}
    write(journal, a_row, seen(), run="t~1")
    write(journal, a_row, seen(**other), run="t~2")
    write(journal, a_row, seen(c1="y"), run="t~1")
    (first, base), (second, none), (_, last) = ((name, base) for name, base, _ in stored(place))
    assert (base, none, last) == (None, None, first)
    assert kept(journal) == [seen(), seen(**other), seen(c1="y")]
    assert first != second


def test_a_run_that_begins_is_compared_with_the_latest_of_another(opened, place, a_row):
    journal = opened()
    write(journal, a_row, seen(), task="a", run="a~1")
    write(journal, a_row, seen(c1="x"), seen(c1="x", c2="x"), task="b", run="b~1")
    (first, *others) = stored(place)
    assert [base for _, base, _ in others] == [first[0], first[0]]
    assert kept(journal, "b") == [seen(c1="x"), seen(c1="x", c2="x")]


def test_no_observation_is_compared_with_one_kept_as_changes(opened, place, a_row):
    def state(step):
        return seen(**{f"c{n}": "x" for n in range(step)})

    journal = opened()
    for step in range(5):  # each task begins where the last one ended
        write(journal, a_row, state(step), state(step + 1), task=f"t{step}", run=f"t{step}~1")
    bases = {name: base for name, base, _ in stored(place)}
    assert {bases[base] for base in bases.values() if base is not None} == {None}
    assert [kept(journal, f"t{step}") for step in range(5)] == [[state(step), state(step + 1)] for step in range(5)]


def test_lists_of_targets_are_compared_too(opened, place, a_row):
    def listed(count):
        return tuple(
            Target(id=f"w-{n}", name=f"Window {n}", kind=TargetKind.WINDOW, address=f"app/memo/{n}", server="s")
            for n in range(count)
        )

    journal = opened()
    whole, more = Observation(targets=listed(50)), Observation(targets=listed(51))
    write(journal, a_row, whole, more, run="t")
    (first, second) = stored(place)
    assert (second[1], second[2] < first[2] / 5) == (first[0], True)
    assert kept(journal) == [whole, more]


def test_pictures_of_observations_come_back_and_are_kept_once(opened, place, a_row):
    journal = opened()
    one = seen().model_copy(update={"picture": b"clean", "annotated": b"labelled"})
    other = seen(c1="x").model_copy(update={"picture": b"clean", "annotated": b"labelled again"})
    write(journal, a_row, one, other, one)
    assert kept(journal) == [one, other, one]
    with contextlib.closing(sqlite3.connect(place)) as reading:
        assert reading.execute("SELECT count(*), sum(bytes) FROM pictures").fetchone() == (3, 5 + 8 + 14)


def test_pictures_are_read_from_their_files_each_time(opened, place, a_row):
    one = seen().model_copy(update={"picture": b"a picture"})
    journal = opened()
    write(journal, a_row, one)
    assert kept(journal) == [one]
    picture_path(place, b"a picture").unlink()  # none is held in memory: a journal may have thousands of them
    assert kept(journal) == [seen()]


def test_fingerprint_that_looks_like_a_stored_name_is_read_back_unchanged(opened, a_row):
    journal, forged = opened(), Observation(fingerprint=f"{MARK}{'0' * 64}")
    write(journal, a_row, forged)
    assert kept(journal) == [forged]


def test_rolled_back_observation_is_not_used_as_a_base(opened, place, a_row):
    journal = opened()
    with Faults() as faults:
        journal.write([a_row(Captured(observation=seen()), task="t")])
        faults.before("captured", disk_full, nth=2)
        with pytest.raises(JournalError):
            journal.write([a_row(Captured(observation=seen(c1="x")), task="t")])
        journal.rollback()
    write(journal, a_row, seen(c1="x"), run="")
    assert [base for _, base, _ in stored(place)] == [None]
    assert kept(journal) == [seen(c1="x")]


def test_an_observation_that_is_missing_is_damage_of_the_row(opened, place, a_row):
    journal = opened()
    write(journal, a_row, seen())
    journal.close()
    with contextlib.closing(sqlite3.connect(place)) as damaging:
        damaging.execute("DELETE FROM observations")
        damaging.commit()
    with (
        JournalReader.open(place) as reader,
        pytest.raises(JournalDamagedError, match=r"row 1 \(captured\) of task 't'"),
    ):
        list(reader.rows("t"))


def test_observation_too_deep_to_read_back_is_refused_and_not_written(opened, place, a_row):
    deep = []
    for _ in range(210):
        deep = [deep]
    journal = opened()
    with pytest.raises(ValueError, match="recursion limit"):
        journal.write([a_row(Captured(observation=Observation(window={"deep": deep})), task="t")])
    write(journal, a_row, seen())
    assert kept(journal) == [seen()]


def test_refused_observation_is_not_used_as_a_base(opened, a_row):
    journal, half = opened(), Observation(text="\ud800")
    with pytest.raises(ValueError, match="surrogate"):
        journal.write([a_row(Captured(observation=each)) for each in (seen(), half)])
    write(journal, a_row, seen(c1="x"), run="")
    assert kept(journal) == [seen(c1="x")]


def test_after_each_pruning_an_observation_is_kept_whole_again(opened, place, a_row):
    journal = opened()
    write(journal, a_row, seen())
    assert journal.prune(days=30, max_bytes=None) == 0  # so no later task needs an old observation for long
    write(journal, a_row, seen(c1="x"))
    assert [base for _, base, _ in stored(place)] == [None, None]


def test_pruned_observation_is_not_used_as_a_base(opened, place, a_row, a_task, a_result):
    journal = opened()
    journal.write([a_task("old"), a_row(Captured(observation=seen()), task="old"), a_result("old")])
    journal.commit()
    blocked = place.with_name(f"{place.name}.pictures") / "aa"
    (blocked / "folder.png").mkdir(parents=True)  # no file: it can't be deleted as one
    with pytest.raises(JournalError, match="pruned"):
        journal.prune(days=1, max_bytes=None)
    write(journal, a_row, seen(c1="x"), run="")
    assert kept(journal) == [seen(c1="x")]


class Literal:
    """Reads an item as it is written."""

    def validate_json(self, text):
        return [int(text.strip('[]"'))]


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=12))
def test_any_list_is_restored_from_its_changes(base, items):
    places = {f'"{item}"': place for place, item in enumerate(base)}
    written = json.loads(f"[{_runs([json.dumps(str(item)) for item in items], places)}]")
    assert list(_expanded(written, tuple(base), Literal())) == items


def test_a_list_that_is_the_same_object_is_not_written_again(opened, place, a_row, monkeypatch):
    journal, first = opened(), seen()
    write(journal, a_row, first)
    dumped = []
    dump = Control.model_dump_json
    monkeypatch.setattr(Control, "model_dump_json", lambda self: dumped.append(self.id) or dump(self))
    later = [first.model_copy(update={"text": text}) for text in ("a", "b")]
    write(journal, a_row, *later)
    assert dumped == []
    (name, _, whole), *others = stored(place)
    assert [base for _, base, _ in others] == [name, name]
    assert max(size for *_, size in others) < whole // 10
    assert kept(journal) == [first, *later]
