"""Restarts: who is started anew after a crash, how soon, and when it is enough."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.runtime import ChildSpec, Restart, Restarts, VirtualClock
from callboard.config import SupervisionSettings

SPEC = ChildSpec("agent", Restart.TRANSIENT, intensity=3, period=60, backoff=1, max_backoff=10, jitter=0)
RESTARTED = [Restart.PERMANENT, Restart.TRANSIENT]


def spec(**changes):
    return dataclasses.replace(SPEC, **changes)


@pytest.fixture
def restarts(clock):
    return Restarts(clock)


def crash_in_a_row(restarts, clock, times, given=SPEC, child="app/memo"):
    """Crash as soon as the child is back, again and again; gives the delays."""
    delays = []
    for _ in range(times):
        delays.append(restarts.crashed(child, given, RuntimeError("crash")))
        clock.advance(delays[-1] or 0)
    return delays


@pytest.mark.parametrize("restart", RESTARTED)
def test_a_child_that_crashed_is_restarted_after_the_backoff(restarts, restart):
    assert restarts.crashed("app/memo", spec(restart=restart), RuntimeError()) == 1


def test_a_temporary_child_is_never_restarted(restarts):
    assert restarts.crashed("app/memo", spec(restart=Restart.TEMPORARY), RuntimeError()) is None


@pytest.mark.parametrize("restart", RESTARTED)
@pytest.mark.parametrize("intensity", [0, 1, 2, 5])
def test_one_crash_more_than_the_intensity_within_the_period_is_the_end(restarts, clock, restart, intensity):
    delays = crash_in_a_row(restarts, clock, intensity + 1, spec(restart=restart, intensity=intensity))
    assert [delay is None for delay in delays] == [False] * intensity + [True]


def test_a_child_that_was_given_up_stays_so_while_its_crashes_are_recent(restarts, clock):
    crash_in_a_row(restarts, clock, 4)
    assert crash_in_a_row(restarts, clock, 5) == [None] * 5


def test_crashes_that_are_longer_ago_than_the_period_no_longer_count(restarts, clock):
    for _ in range(20):
        assert restarts.crashed("app/memo", SPEC, RuntimeError()) is not None
        clock.advance(31)


def test_a_crash_exactly_a_period_ago_still_counts(restarts, clock):
    once = spec(intensity=1, backoff=0)
    restarts.crashed("app/memo", once, RuntimeError())
    clock.advance(60)
    assert restarts.crashed("app/memo", once, RuntimeError()) is None


def test_each_delay_is_twice_the_last_one_up_to_the_longest(restarts, clock):
    assert crash_in_a_row(restarts, clock, 6, spec(intensity=6)) == [1, 2, 4, 8, 10, 10]


def test_without_a_backoff_every_restart_is_at_once(restarts, clock):
    assert crash_in_a_row(restarts, clock, 3, spec(backoff=0)) == [0, 0, 0]


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 1.0), (0.5, 1.25), (1.0, 1.5)])
def test_jitter_makes_a_delay_longer_by_chance(clock, chance, delay):
    restarts = Restarts(clock, lambda: chance)
    assert restarts.crashed("app/memo", spec(jitter=0.5), RuntimeError()) == delay


def test_jitter_does_not_pile_up_from_delay_to_delay(clock):
    restarts = Restarts(clock, lambda: 1.0)
    assert crash_in_a_row(restarts, clock, 6, spec(intensity=6, jitter=0.5)) == [1.5, 3, 6, 12, 15, 15]


def test_a_quiet_period_makes_the_next_crash_a_first_one(restarts, clock):
    crash_in_a_row(restarts, clock, 3)
    clock.advance(60.1)
    assert crash_in_a_row(restarts, clock, 4) == [1, 2, 4, None]


def test_a_quiet_period_begins_when_the_child_is_back_not_when_it_crashed(restarts, clock):
    slow = spec(backoff=100, max_backoff=100)
    restarts.crashed("app/memo", slow, RuntimeError("first"))
    clock.advance(100)
    restarts.crashed("app/memo", slow, RuntimeError("second"))
    assert [str(error) for error in restarts.causes("app/memo")] == ["first", "second"]


def test_delays_over_the_period_do_not_hide_a_child_that_only_crashes(restarts, clock):
    delays = crash_in_a_row(restarts, clock, 4, spec(backoff=100, max_backoff=1000))
    assert delays == [100, 200, 400, None]


def test_a_child_that_crashes_before_its_delay_is_over_has_lived_no_time(restarts, clock):
    for _ in range(3):
        assert restarts.crashed("app/memo", SPEC, RuntimeError()) is not None
        clock.advance(0.1)
    assert restarts.crashed("app/memo", SPEC, RuntimeError()) is None


def test_a_crash_before_the_delay_is_over_makes_no_later_one_count_longer(restarts, clock):
    slow = spec(backoff=100, max_backoff=1000)
    delays = []
    for pause in (0, 1, 200 + 50, 400 + 50):  # at once, early, and twice after 50 seconds of life
        clock.advance(pause)
        delays.append(restarts.crashed("app/memo", slow, RuntimeError()))
    assert delays == [100, 200, 400, 800]


def test_children_are_counted_each_for_itself(restarts, clock):
    assert crash_in_a_row(restarts, clock, 4)[-1] is None
    assert crash_in_a_row(restarts, clock, 3, child="app/other") == [1, 2, 4]


def test_the_errors_of_the_crashes_are_kept_in_their_order(restarts):
    errors = tuple(RuntimeError(str(number)) for number in range(4))
    for error in errors:
        restarts.crashed("app/memo", SPEC, error)
    assert restarts.causes("app/memo") == errors


def test_the_error_of_a_temporary_child_is_kept_too(restarts):
    error = SystemExit()
    restarts.crashed("app/memo", spec(restart=Restart.TEMPORARY), error)
    assert restarts.causes("app/memo") == (error,)


def test_only_the_last_ten_errors_are_kept(restarts):
    errors = tuple(RuntimeError(str(number)) for number in range(25))
    for error in errors:
        restarts.crashed("app/memo", spec(intensity=100), error)
    assert restarts.causes("app/memo") == errors[-10:]


def test_a_child_that_never_crashed_has_no_errors(restarts):
    assert restarts.causes("app/memo") == ()


def test_a_child_that_is_forgotten_begins_anew(restarts, clock):
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
        restarts.crashed(f"host/{number}", SPEC, RuntimeError())
        clock.advance(10)
    assert len(restarts._children) <= 7


@given(
    intensity=st.integers(0, 6),
    lives=st.lists(st.floats(0, 100), max_size=40),
    jitter=st.floats(0, 1),
    chance=st.floats(0, 1),
)
def test_a_child_is_given_up_exactly_when_crashes_exceed_the_intensity(intensity, lives, jitter, chance):
    clock = VirtualClock()
    restarts = Restarts(clock, lambda: chance)
    mine = spec(intensity=intensity, jitter=jitter, period=60)
    lived, crashes = 0.0, []
    for life in lives:
        clock.advance(life)
        lived += life
        crashes.append(lived)
        recent = [crash for crash in crashes if lived - crash < 60 - 1e-6]
        doubtful = [crash for crash in crashes if lived - crash <= 60 + 1e-6]
        delay = restarts.crashed("app/memo", mine, RuntimeError())
        if len(recent) > intensity:
            assert delay is None
        elif len(doubtful) <= intensity:
            assert 1 <= delay <= 10 * (1 + jitter)
        clock.advance(delay or 0)
        assert len(restarts._children["app/memo"].crashes) <= intensity + 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": ""}, "needs a name"),
        ({"restart": "sometimes"}, "restart is"),
        ({"intensity": -1}, "intensity is"),
        ({"intensity": 1.5}, "intensity is"),
        ({"period": 0}, "period is"),
        ({"period": -1}, "period is"),
        ({"period": math.inf}, "period is"),
        ({"period": math.nan}, "period is"),
        ({"backoff": -0.1}, "backoff is"),
        ({"backoff": math.nan}, "backoff is"),
        ({"backoff": 11}, "max_backoff is"),
        ({"max_backoff": math.inf}, "max_backoff is"),
        ({"max_backoff": math.nan}, "max_backoff is"),
        ({"jitter": -0.1}, "jitter is"),
        ({"jitter": 1.1}, "jitter is"),
        ({"jitter": math.nan}, "jitter is"),
    ],
)
def test_a_spec_that_can_not_be_followed_is_refused_when_it_is_made(changes, reason):
    with pytest.raises(ValueError, match=f"the child spec .*{reason}"):
        spec(**changes)


def test_a_spec_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SPEC.intensity = 5


SPANS = st.floats(0, 1e6)


@given(intensity=st.integers(0), period=SPANS.filter(bool), backoffs=st.tuples(SPANS, SPANS).map(sorted))
def test_whatever_the_settings_allow_makes_a_spec(intensity, period, backoffs):
    settings = SupervisionSettings(intensity=intensity, period=period, backoff=backoffs[0], max_backoff=backoffs[1])
    values = settings.model_dump(exclude={"hung_seconds"})
    made = ChildSpec("agent", Restart.TRANSIENT, **values)
    assert {name: getattr(made, name) for name in values} == values
