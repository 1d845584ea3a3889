"""Routines: the places of steps, and the values of parameters."""

from __future__ import annotations

import pytest

from callboard.messages import Routine, RoutineLoop, RoutineStep, steps_of


def step(name):
    return {"status": "CONTINUE", "why": name}


@pytest.fixture
def routine() -> Routine:
    """Return a routine with a loop in the steps of each agent."""
    end = {"status": "FINISH", "why": "end"}
    opens = {"each": "rows", "steps": [step("opens")]}
    assigns = {"status": "ASSIGN", "why": "assigns", "assign": [{"subtask": 2}, {"subtask": 1}]}
    fills = {"each": "rows", "steps": [step("types"), step("enters")]}
    subtask = {"target": "t", "kind": "app", "request": "x"}
    return Routine.model_validate(
        {
            "routine": "r",
            "request": "x",
            "parameters": {"rows": {"value": [1]}, "month": {"value": "May"}, "year": {}},
            "host": [opens, assigns, end],
            "subtasks": [
                {**subtask, "steps": [step("clicks"), fills, end]},
                {**subtask, "kind": "mobile", "steps": [end]},
            ],
        }
    )


def test_steps_have_the_places_that_a_person_counts_in_the_file(routine):
    assert [(place, kind, step.why) for place, kind, step in routine.placed_steps()] == [
        ("host.1.steps.1", "host", "opens"),
        ("host.2", "host", "assigns"),
        ("host.3", "host", "end"),
        ("subtasks.1.steps.1", "app", "clicks"),
        ("subtasks.1.steps.2.steps.1", "app", "types"),
        ("subtasks.1.steps.2.steps.2", "app", "enters"),
        ("subtasks.1.steps.3", "app", "end"),
        ("subtasks.2.steps.1", "mobile", "end"),
    ]


def test_steps_of_a_loop_count_once():
    one, two = RoutineStep(status="CONTINUE", why="one"), RoutineStep(status="CONTINUE", why="two")
    assert steps_of(one) == (one,)
    assert steps_of(one, RoutineLoop(each="rows", steps=(two, one)), two) == (one, two, one, two)


def test_assigned_subtasks_are_in_the_order_of_their_hand_over(routine):
    assert routine.assigned == [2, 1]


def test_given_values_replace_the_usual_ones(routine):
    assert routine.values({"month": "June"}) == {"rows": [1], "month": "June", "year": None}
