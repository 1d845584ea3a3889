"""Retention: whole tasks that ended go, the oldest end first; nothing else does."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.journal import JournalReader
from callboard.journal._observed_time import Mark, _between
from callboard.messages import Captured, Control, Foreseen, InForce, JournalError, Observation, Recovered

DAY = 86_400.0


@pytest.fixture
def days_ago():
    now = time.time()
    return lambda days: now - days * DAY


@pytest.fixture
def later(monkeypatch):
    """Let days pass for the open journals of this process."""
    passed, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(passed))
    return lambda days: passed.append(days * DAY)


@pytest.fixture
def journal(opened, a_task, a_result, an_event, days_ago, later):
    """A journal with the tasks `older`, `old`, `young`, which ended, and `open`, which did not."""
    journal = opened()
    for seq, (task, ago, after) in enumerate((("older", 50, 10), ("old", 40, 38), ("young", 2, 2)), 1):
        at = days_ago(ago)
        journal.write_events([an_event(seq, task=task)], pytest.fail)
        journal.write([a_task(task, at=at, key=f"key of {task}"), a_result(task, at=at)])
        later(after)
    journal.write([a_task("open", at=days_ago(90))])
    journal.commit()
    return journal


def tasks(place):
    with JournalReader.open(place) as reader:
        return [task.id for task in reader.tasks()]


def test_tasks_that_ended_long_ago_are_dropped_with_their_rows(journal, place):
    assert journal.prune(days=30, max_bytes=None) == 2
    assert tasks(place) == ["young", "open"]
    assert list(journal.rows("old", events=True)) == []
    assert (journal.find("old"), journal.find("", "key of old"), journal.result("old")) == (None, None, None)


def test_without_bounds_nothing_is_dropped(journal, place):
    assert journal.prune(days=None, max_bytes=None) == 0
    assert len(tasks(place)) == 4


def test_unfinished_tasks_are_kept_regardless_of_size(journal, place):
    assert journal.prune(days=None, max_bytes=1) == 3
    assert tasks(place) == ["open"]


def test_a_journal_that_is_too_large_drops_the_oldest_ends_until_it_is_not(journal, place, a_row, days_ago):
    big = {task: Captured(observation=Observation(text=task + "x" * 300_000)) for task in ("young", "old", "older")}
    journal.write([a_row(message, task=task) for task, message in big.items()])
    journal.commit()
    assert journal.prune(days=None, max_bytes=750_000) == 1
    assert tasks(place) == ["old", "young", "open"]


@pytest.mark.parametrize("bounds", [{"days": 1, "max_bytes": None}, {"days": None, "max_bytes": 1}])
def test_tasks_that_ended_since_a_time_are_kept(journal, place, days_ago, bounds):
    assert journal.prune(**bounds, kept_since=days_ago(45)) == 1
    assert tasks(place) == ["old", "young", "open"]


def test_an_observation_stays_as_long_as_one_of_its_tasks(journal, place, a_row):
    shared, own = Observation(text="s" * 3_000), Observation(text="o" * 3_000)
    rows = {"older": (shared, own), "young": (shared,)}
    journal.write([a_row(Captured(observation=each), task=task) for task, seen in rows.items() for each in seen])
    journal.commit()
    assert journal.prune(days=30, max_bytes=None) == 2
    (row,) = [row for row in journal.rows("young") if isinstance(row.message, Captured)]
    assert row.message.observation == shared
    with contextlib.closing(sqlite3.connect(place)) as reading:
        assert reading.execute("SELECT count(*) FROM observations").fetchone() == (1,)
        assert reading.execute("SELECT task FROM observed").fetchall() == [("young",)]


def test_pruning_keeps_base_observations_of_other_tasks_readable(journal, place, a_row):
    def saw(task, *changed):
        cells = (Control(id=f"{n}", name=f"Cell {n}", kind="cell", enabled=n not in changed) for n in range(50))
        return a_row(Captured(observation=Observation(controls=tuple(cells))), task=task)._replace(run_id=f"{task}~1")

    # "young" begins where "older" was left: with an observation that is kept as changes of one that only "older" has
    rows = {"older": [saw("older"), saw("older", 1)], "young": [saw("young", 1), saw("young", 1, 2)]}
    for written in rows.values():
        for row in written:
            journal.write([row])
            journal.commit()
    assert journal.prune(days=30, max_bytes=None) == 2
    journal.close()
    with JournalReader.open(place) as reader:
        found = [row for row in reader.rows("young") if isinstance(row.message, Captured)]
    assert [row.message for row in found] == [row.message for row in rows["young"]]


def test_pictures_count_and_those_that_another_task_shares_stay(journal, place, a_row):
    def saw(task, picture):
        return a_row(Captured(observation=Observation(picture=picture)), task=task)

    shared, own = b"s" * 500_000, b"o" * 500_000
    journal.write([saw("older", shared), saw("older", own), saw("young", shared), saw("old", b"small")])
    journal.commit()
    assert journal.prune(days=None, max_bytes=750_000) == 1
    assert tasks(place) == ["old", "young", "open"]
    sizes = sorted(path.stat().st_size for path in place.with_name(f"{place.name}.pictures").rglob("*.png"))
    assert sizes == [5, 500_000]


def test_the_file_gets_smaller(journal, place, a_row, a_result, days_ago):
    journal.write([a_row(Captured(observation=Observation(text="x" * 1_000_000)), task="old")])
    journal.commit()
    journal.prune(days=30, max_bytes=None)
    journal.close()
    assert place.stat().st_size < 200_000


def test_the_file_gets_smaller_while_it_is_in_use(journal, place, a_row):
    journal.write([a_row(Captured(observation=Observation(text="x" * 1_000_000)), task="old")])
    journal.commit()
    journal.prune(days=None, max_bytes=None)
    assert place.stat().st_size > 1_000_000
    journal.prune(days=30, max_bytes=None)
    assert place.stat().st_size < 200_000


def test_events_keep_their_numbers_after_the_last_one_was_dropped(journal, opened, an_event, days_ago):
    journal.write_events([an_event(9, task="old")], pytest.fail)
    journal.prune(days=1, max_bytes=None)
    assert (journal.events(0, 10), journal.last_seq) == ([], 9)
    journal.close()
    assert opened().last_seq == 9


def test_old_rows_without_a_task_are_pruned_by_age(journal, an_event, later):
    for seq, after in ((10, 2), (11, 29)):
        journal.write_events([an_event(seq, task="")], pytest.fail)
        journal.prune(days=None, max_bytes=None)  # as every hour
        later(after)
    journal.prune(days=30, max_bytes=None)
    assert [event.seq for event in journal.events(9, 10)] == [11]


def test_pruning_commits_rows_written_before(journal, opened, a_task):
    journal.write([a_task("new")])
    journal.prune(days=30, max_bytes=None)
    journal.close()
    assert opened().unfinished() == ("open", "new")


def test_failed_pruning_drops_nothing_and_the_journal_stays_usable(journal, place, a_task):
    place.with_name(f"{place.name}.lock").unlink()
    with pytest.raises(JournalError, match="was deleted or replaced"):
        journal.prune(days=30, max_bytes=None)
    assert (journal.find("old"), journal.last_seq) == ("old", 3)


def test_settings_stay_while_a_task_is_kept_that_ran_under_them(opened, a_row, a_task, a_result, place, later):
    def start(number):
        return a_row(InForce(sections={"limits": {"steps": number}}), task="")

    def lives(task):
        with JournalReader.open(place) as reader:
            return [life.sections["limits"]["steps"] for life in reader.in_force(task)]

    journal = opened()
    journal.write([start(1), a_task("gone"), a_result("gone"), start(2)])
    journal.prune(days=None, max_bytes=None)  # as every hour
    journal.write([start(3), a_task("open"), start(4)])
    journal.write([a_row(Recovered(task_id="open"), task="open"), start(5)])
    journal.prune(days=None, max_bytes=None)  # as every hour
    later(50)
    assert journal.prune(days=30, max_bytes=None) == 1
    assert lives("open") == [3, 4]
    assert settings_in(journal) == [3, 4, 5]
    journal.write([a_result("open")])
    journal.prune(days=None, max_bytes=None)
    later(40)
    assert journal.prune(days=30, max_bytes=None) == 1
    assert settings_in(journal) == [5]
    journal.write([a_task("young")])
    journal.commit()
    assert lives("young") == [5]


def settings_in(journal):
    return [row.message.sections["limits"]["steps"] for row in journal.rows("")]


def test_old_rows_without_a_task_are_dropped_first_over_the_size_limit(opened, place, a_row, a_task, a_result):
    big, journal = Foreseen(call_id="c", path="x" * 800_000, after=""), opened()
    journal.write([a_row(big, task=""), a_task("over"), a_result("over"), a_row(big, task="")])
    journal.commit()
    assert journal.prune(days=None, max_bytes=1_200_000) == 0
    assert tasks(place) == ["over"]
    reading = sqlite3.connect(place)
    assert reading.execute("SELECT count(*) FROM rows WHERE task = '' AND kind = 'foreseen'").fetchone() == (1,)
    reading.close()


class Lives:
    """Processes one after the other on one journal, each with a wall clock of its own, in days."""

    def __init__(self, opened, monkeypatch, a_row, a_task, a_result):
        self._opened, self._monkeypatch = opened, monkeypatch
        self._row, self._task, self._result = a_row, a_task, a_result

    def live(self, day, task=None):
        """Start, prune, do a task, stop; say which tasks are kept then."""
        now = 1.8e9 + day * DAY
        with self._monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: now)
            journal = self._opened(durability="process")
            journal.prune(days=30, max_bytes=None)
            journal.write([self._row(InForce(sections={}), task="", at=now)])
            if task is not None:
                journal.write([self._task(task, at=now), self._result(task, at=now)])
            journal.prune(days=30, max_bytes=None)  # an hour later
            kept = [each for each in "abcdefgh" if journal.find(each)]
            journal.close()
        return kept


@pytest.fixture
def lives(opened, monkeypatch, a_row, a_task, a_result):
    return Lives(opened, monkeypatch, a_row, a_task, a_result).live


@pytest.mark.parametrize("wrong", [60, 4000, -20_000])
def test_a_start_with_a_wrong_clock_forgets_nothing(lives, wrong):
    assert lives(0, "a") == ["a"]
    assert lives(wrong) == ["a"]
    assert lives(wrong, "b") == ["a", "b"]
    assert lives(wrong + 0.1, "c") == ["a", "b", "c"]
    assert lives(1, "d") == ["a", "b", "c", "d"]
    assert lives(2) == ["a", "b", "c", "d"]


def test_tasks_that_ended_under_or_before_a_wrong_clock_expire_too(lives):
    for day, task in (0, "a"), (-20_000, "b"), (1, "c"), (60, "d"), (2, "e"):
        lives(day, task)
    kept = [lives(day + 0.7) for day in range(3, 40)]
    assert kept[0] == ["a", "b", "c", "d", "e"]
    assert kept[-1] == []
    assert sum("e" in each for each in kept) == 35  # the days that "c" and "d" let count are not counted again


@pytest.mark.parametrize("far", [-400, -31, -20, -8, 8, 31, 400])
def test_a_clock_that_swings_counts_its_way_once(lives, far):
    assert lives(0, "a") == ["a"]
    for swing in range(6):
        assert lives(far + swing / 1000) == ["a"], swing
        assert lives(0.01 + swing / 1000) == ["a"], swing


@pytest.mark.parametrize("far", [-400, 400])
def test_after_a_swing_tasks_expire_again(lives, far):
    for day, task in (0, "a"), (far, "b"), (1, "c"):
        lives(day, task)
    kept = [lives(day) for day in range(2, 60, 3)]
    assert kept[0] == ["a", "b", "c"]
    assert all(set(after) <= set(before) for before, after in itertools.pairwise(kept))
    assert kept[-5] == []


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(0, 3)), max_size=12))
def test_no_clock_makes_time_go_faster_than_its_own_way(swings):
    """Each process has a wall clock of its own, and works for some days."""
    worked, highest, mark = 0.0, 0.0, Mark(1, 0.0, 0.0, 0.0)
    for wall, days in swings:
        counted = _between(mark, wall, 7.5)
        assert 0 <= counted <= max(0.0, min(7.5, wall - mark.wall))
        worked, highest = worked + days, max(highest, wall + days)
        mark = Mark(1, mark.observed + counted + days, wall + days, highest)
        assert mark.observed <= highest + worked + 1e-6


def test_a_process_that_is_killed_leaves_the_time_that_it_saw(opened, a_task, a_result, later, place):
    journal = opened()
    journal.prune(days=30, max_bytes=None)
    journal.write([a_task("old"), a_result("old")])
    later(20)
    journal.prune(days=30, max_bytes=None)
    shutil.copytree(place.parent, place.parent.with_name("killed"))
    after = opened(place.parent.with_name("killed") / place.name)
    later(10.1)
    assert after.prune(days=30, max_bytes=None) == 1


@pytest.mark.parametrize(("wall", "behind"), [(-3_600, 3_600), (0, 0), (60, 0)])
def test_a_clock_behind_the_last_entry_is_noticed(opened, a_task, monkeypatch, wall, behind):
    now = time.time()
    journal = opened()
    journal.write([a_task("t", at=now)])
    journal.commit()
    journal.close()
    monkeypatch.setattr(time, "time", lambda: now + wall)
    assert opened().behind == pytest.approx(behind, abs=1)


def test_time_between_processes_counts_at_most_a_quarter_of_the_days(lives):
    assert lives(0, "a") == ["a"]
    assert lives(7, "b") == ["a", "b"]
    assert lives(100) == ["a", "b"]
    assert [lives(100 + day) for day in (5, 10, 15, 16)] == [["a", "b"], ["a", "b"], ["a", "b"], ["b"]]
    assert lives(123) == []
