"""Restarts after crashes: their delays and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.runtime import Restarts, VirtualClock
from callboard.actors.runtime._restart_backoff import JITTER
from callboard.config import SupervisionSettings

SETTINGS = {"intensity": 3, "period": 60, "backoff": 1, "max_backoff": 10}


def made(clock, chance=0.0, **changes):
    """Make restarts, without jitter unless there is a chance of it."""
    return Restarts(clock, SupervisionSettings(**SETTINGS | changes), lambda: chance)


@pytest.fixture
def restarts(clock):
    return made(clock)


def crash_in_a_row(restarts, clock, times, child="app/memo"):
    """Crash as soon as the child is back, again and again; gives the delays."""
    delays = []
    for _ in range(times):
        delays.append(restarts.crashed(child, RuntimeError("crash")))
        clock.advance(delays[-1] or 0)
    return delays


def test_a_child_that_crashed_is_restarted_after_the_backoff(restarts):
    assert restarts.crashed("app/memo", RuntimeError()) == 1


@pytest.mark.parametrize("intensity", [0, 1, 2, 5])
def test_one_crash_more_than_the_intensity_within_the_period_is_the_end(clock, intensity):
    delays = crash_in_a_row(made(clock, intensity=intensity), clock, intensity + 1)
    assert [delay is None for delay in delays] == [False] * intensity + [True]


def test_a_child_that_was_given_up_stays_so_while_its_crashes_are_recent(restarts, clock):
    crash_in_a_row(restarts, clock, 4)
    assert crash_in_a_row(restarts, clock, 5) == [None] * 5


def test_crashes_that_are_longer_ago_than_the_period_no_longer_count(restarts, clock):
    for _ in range(20):
        assert restarts.crashed("app/memo", RuntimeError()) is not None
        clock.advance(31)


def test_a_crash_exactly_a_period_ago_still_counts(clock):
    restarts = made(clock, intensity=1, backoff=0)
    restarts.crashed("app/memo", RuntimeError())
    clock.advance(60)
    assert restarts.crashed("app/memo", RuntimeError()) is None


def test_each_delay_is_twice_the_last_one_up_to_the_longest(clock):
    assert crash_in_a_row(made(clock, intensity=6), clock, 6) == [1, 2, 4, 8, 10, 10]


def test_without_a_backoff_every_restart_is_at_once(clock):
    assert crash_in_a_row(made(clock, backoff=0), clock, 3) == [0, 0, 0]


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 1.0), (0.5, 1.1), (1.0, 1.2)])
def test_jitter_makes_a_delay_longer_by_chance(clock, chance, delay):
    assert made(clock, chance).crashed("app/memo", RuntimeError()) == delay


def test_jitter_does_not_pile_up_from_delay_to_delay(clock):
    delays = crash_in_a_row(made(clock, 1.0, intensity=6), clock, 6)
    assert delays == pytest.approx([1.2, 2.4, 4.8, 9.6, 12, 12])


def test_a_quiet_period_makes_the_next_crash_a_first_one(restarts, clock):
    crash_in_a_row(restarts, clock, 3)
    clock.advance(60.1)
    assert crash_in_a_row(restarts, clock, 4) == [1, 2, 4, None]


def test_a_quiet_period_begins_when_the_child_is_back_not_when_it_crashed(clock):
    restarts = made(clock, backoff=100, max_backoff=100)
    restarts.crashed("app/memo", RuntimeError("first"))
    clock.advance(100)
    restarts.crashed("app/memo", RuntimeError("second"))
    assert [str(error) for error in restarts.causes("app/memo")] == ["first", "second"]


def test_delays_over_the_period_do_not_hide_a_child_that_only_crashes(clock):
    delays = crash_in_a_row(made(clock, backoff=100, max_backoff=1000), clock, 4)
    assert delays == [100, 200, 400, None]


def test_a_child_that_crashes_before_its_delay_is_over_has_lived_no_time(restarts, clock):
    for _ in range(3):
        assert restarts.crashed("app/memo", RuntimeError()) is not None
        clock.advance(0.1)
    assert restarts.crashed("app/memo", RuntimeError()) is None


def test_a_crash_before_the_delay_is_over_makes_no_later_one_count_longer(clock):
    restarts = made(clock, backoff=100, max_backoff=1000)
    delays = []
    for pause in (0, 1, 200 + 50, 400 + 50):  # at once, early, and twice after 50 seconds of life
        clock.advance(pause)
        delays.append(restarts.crashed("app/memo", RuntimeError()))
    assert delays == [100, 200, 400, 800]


def test_children_are_counted_each_for_itself(restarts, clock):
    assert crash_in_a_row(restarts, clock, 4)[-1] is None
    assert crash_in_a_row(restarts, clock, 3, child="app/other") == [1, 2, 4]


def test_the_errors_of_the_crashes_are_kept_in_their_order(restarts):
    errors = tuple(RuntimeError(str(number)) for number in range(4))
    for error in errors:
        restarts.crashed("app/memo", error)
    assert restarts.causes("app/memo") == errors


def test_only_the_last_ten_errors_are_kept(clock):
    restarts = made(clock, intensity=100)
    errors = tuple(RuntimeError(str(number)) for number in range(25))
    for error in errors:
        restarts.crashed("app/memo", error)
    assert restarts.causes("app/memo") == errors[-10:]


def test_a_child_that_never_crashed_has_no_errors(restarts):
    assert restarts.causes("app/memo") == ()


def test_forgotten_child_restarts_its_count(restarts, clock):
    crash_in_a_row(restarts, clock, 4)
    restarts.forget("app/memo")
    assert restarts.causes("app/memo") == ()
    assert crash_in_a_row(restarts, clock, 4) == [1, 2, 4, None]


def test_forgetting_a_child_that_never_crashed_changes_nothing(restarts, clock):
    crash_in_a_row(restarts, clock, 3)
    restarts.forget("app/other")
    assert crash_in_a_row(restarts, clock, 1) == [None]


def test_children_that_are_sound_again_are_not_kept(restarts, clock):
    for number in range(1000):
        restarts.crashed(f"host/{number}", RuntimeError())
        clock.advance(10)
    assert len(restarts._children) <= 7


@given(
    intensity=st.integers(0, 6),
    lives=st.lists(st.floats(0, 100), max_size=40),
    chance=st.floats(0, 1),
)
def test_a_child_is_given_up_exactly_when_crashes_exceed_the_intensity(intensity, lives, chance):
    clock = VirtualClock()
    restarts = made(clock, chance, intensity=intensity)
    lived, crashes = 0.0, []
    for life in lives:
        clock.advance(life)
        lived += life
        crashes.append(lived)
        recent = [crash for crash in crashes if lived - crash < 60 - 1e-6]
        doubtful = [crash for crash in crashes if lived - crash <= 60 + 1e-6]
        delay = restarts.crashed("app/memo", RuntimeError())
        if len(recent) > intensity:
            assert delay is None
        elif len(doubtful) <= intensity:
            assert 1 <= delay <= 10 * (1 + JITTER)
        clock.advance(delay or 0)
        assert len(restarts._children["app/memo"].crashes) <= intensity + 1
