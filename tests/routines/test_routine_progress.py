"""Progress of an agent in a routine, beside a plain walk through all of its steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import CommandResult, Decision, Observation, ResultStatus, StepRecord
from callboard.routines._routine_progress import RoutineProgress


@st.composite
def steps(draw):
    """Draw the steps of a routine.

    Some are tried again, asked about, or resumed after an approval.
    """
    place, records = 1, []
    for number in range(draw(st.integers(0, 12))):
        asks = draw(st.booleans()) and bool(records)
        tools = draw(st.lists(st.sampled_from(["write", "press"]), max_size=2))
        results = tuple(
            CommandResult(call_id=f"{number}.{n}", tool=tool, status=ResultStatus.SUCCESS, value=number)
            for n, tool in enumerate(() if asks else tools)
        )
        decision = Decision(status="PENDING" if asks else "CONTINUE", routine_step=place)
        resumed = draw(st.booleans()) and not asks
        look = Observation()
        records.append(
            StepRecord(
                step=number + 1,
                status="CONTINUE",
                observation=look,
                decision=decision,
                results=results,
                resumed=resumed,
            )
        )
        place += draw(st.integers(0, 2))
    return records


def results_by_place(records):
    results = {}
    for record in records:
        if record.resumed:
            results.setdefault(record.decision.routine_step, []).extend(record.results)
        elif record.decision.status != "PENDING":
            results[record.decision.routine_step] = list(record.results)
    return results


@given(steps())
def test_results_are_those_of_a_walk_through_all_steps(records):
    progress, expected = RoutineProgress(records, ()), results_by_place(records)
    places = [record.decision.routine_step for record in records]
    for place in range(1, max(places, default=0) + 2):
        assert progress.results_of(place) == expected.get(place)
        assert list(progress.records_of(place)) == [r for r in records if r.decision.routine_step == place]


@given(steps())
def test_next_place_is_that_after_the_last_step_unless_it_asked(records):
    progress = RoutineProgress(records, ())
    last = max((record.decision.routine_step for record in records), default=0)
    assert progress.place == (last if progress.asked else last + 1)
