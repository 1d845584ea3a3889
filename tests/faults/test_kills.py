"""Killed at every boundary of the journal, and at any time, a program on real documents loses and repeats nothing."""

from __future__ import annotations

import itertools
import os
import random

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are forked, and killed with SIGKILL")

KINDS = {
    ("plan", "memo"): {
        "task": (2, 1),
        "assign": (1, 4),
        "answered": (3, 2),
        "decided": (2, 3),
        "intent": (3, 2),
        "foreseen": (2, 4),
        "deed": (5, 1),
        "command_result": (6, 2),
        "step_done": (6, 2),
        "subtask_finished": (1, 2),
        "round_ended": (1, 1),
        "task_result": (1, 1),
        "event": (60, 60),
    },
    ("note", "book"): {
        "question": (1, 1),
        "answer": (1, 1),
        "approval_request": (1, 1),
        "pause": (1, 1),
        "approval_answer": (1, 1),
        "resume": (1, 1),
    },
    ("gone", "turn"): {
        "cancel": (1, 1),
        "captured": (1, 1),
        "subtask_failed": (1, 1),
        "round_ended": (2, 1),
    },
}
"""Of tasks that are done at once, each kind of row: before which a first life ends, and after which a second one."""

ONE_AFTER_THE_OTHER = [
    [("before", "intent", 4), ("before", "recovered", 1)],
    [("after", "deed", 2), ("after", "recovered", 2)],
    [("after", "deed", 3), ("before", "command_result", 1)],
    [("after", "deed", 5), ("after", "command_result", 1)],
    [("before", "deed", 6), ("after", "intent", 1), ("after", "deed", 1)],
    [("after", "subtask_finished", 2), ("after", "assign", 1)],
]
"""Places at which a program is killed, life after life."""

TRIALS = [
    (tasks, [("before", kind, first), ("after", kind, second)])
    for tasks, kinds in KINDS.items()
    for kind, (first, second) in kinds.items()
]
TRIALS += [(("plan", "memo"), places) for places in ONE_AFTER_THE_OTHER]


def named(value):
    return ", ".join(" ".join(map(str, each)) if isinstance(each, tuple) else each for each in value)


@pytest.fixture(scope="module")
def begun(trials, request):
    """Begin all trials of this file that are to be run; they go on beside the tests."""
    chosen = [item.callspec.params for item in request.session.items if "begun" in item.fixturenames]
    return {
        named(each["places"]): trials.begin("at", [{"kills": [place]} for place in each["places"]], tasks=each["tasks"])
        for each in chosen
    }


@pytest.mark.parametrize(("tasks", "places"), TRIALS, ids=named)
def test_a_program_that_is_killed_at_boundaries_loses_and_repeats_nothing(begun, tasks, places, report):
    figures = begun[named(places)].result()
    report("at boundaries", figures)
    assert figures.problems == []
    assert figures.kills == len(places)


def test_there_is_a_trial_for_each_kind_of_row(trials):
    passed = {kind for _, kind in trials.passed()}
    assert passed == {kind for kinds in KINDS.values() for kind in kinds}


class Chance:
    """Makes up how the lives of a program end: at the places that a life passes, in turns, or after some time."""

    def __init__(self, trials, seed):
        self._chance = random.Random(seed)  # noqa: S311 - no secret is made of it
        places = [(*place, nth) for place, count in trials.passed().items() for nth in range(1, count + 1)]
        self._chance.shuffle(places)
        self._turns = itertools.cycle(places)
        self._trials = trials

    def figures(self, kills, **order):
        """Run trials, each of up to four kills, until there were so many; gives the figures of each."""
        while kills > 0:
            lives = [[self._life() for _ in range(min(kills, self._chance.randint(1, 4)))] for _ in range(2)]
            for figures in self._trials.together(lives, durability=self._chance.choice(["full", "process"]), **order):
                kills -= figures.kills
                yield figures

    def _life(self):
        if self._chance.random() < 0.5:
            return {"kills": [next(self._turns)]}
        when = self._chance.uniform(0.0, self._chance.choice([0.05, 1.0]))
        return {"kill_after": when} if self._chance.random() < 0.8 else {"stop_after": when}


def test_a_program_that_is_killed_at_any_time_loses_and_repeats_nothing(trials, kills, report):
    problems = []
    for figures in Chance(trials, kills).figures(kills):
        report("at any time", figures)
        problems += figures.problems
    assert problems == []


def test_without_intents_the_same_program_repeats_actions_and_the_checker_says_so(trials, kills, report):
    lives = [[{"kills": [("after", "deed", 1)]}], [{"kills": [("after", "deed", 2)]}]]
    for figures in trials.together(lives, mutant=True, tasks=["note"]):
        report("without intents", figures)
        assert figures.repeated == 1
        assert any("was done 2 times" in problem for problem in figures.problems)
    for figures in Chance(trials, kills).figures(kills // 6, mutant=True):
        report("without intents", figures)
