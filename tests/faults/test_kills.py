"""Killed at every boundary of the journal, and at any time, a program on real documents loses and repeats nothing."""

from __future__ import annotations

import itertools
import os
import random
import shutil

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are forked, and killed with SIGKILL")

DEADLINES = ("late", "slow")
FORMATS = ("grid", "item", "rows", "letter", "date", "page", "shot")
PRINTED = (*FORMATS, "paper")
SHORT = {"question_seconds": 0.3, "task_seconds": 12}
"""The second one leaves time for a step, and for a restart, on a busy machine; the trials wait for it at once."""

KINDS = {
    ("plan", "memo"): {
        "task": (2, 1),
        "assign": (1, 4),
        "answered": (3, 2),
        "decided": (2, 3),
        "intent": (3, 2),
        "foreseen": (2, 4),
        "effect": (5, 1),
        "command_result": (6, 2),
        "step_done": (6, 2),
        "subtask_finished": (1, 2),
        "round_ended": (1, 1),
        "task_result": (1, 1),
        "event": (40, 40),
    },
    ("note", "book"): {
        "question": (1, 1),
        "answer": (1, 1),
        "approval_request": (1, 1),
        "pause": (1, 1),
        "approval_answer": (1, 1),
        "resume": (1, 1),
    },
    ("gone", "turn", "held"): {
        "cancel": (1, 1),
        "captured": (1, 1),
        "subtask_failed": (1, 1),
        "pause": (1, 2),
        "answer": (1, 1),
        "resume": (1, 1),
        "round_ended": (2, 1),
    },
    ("side",): {
        "assign_group": (1, 1),
        "assign": (3, 2),
        "step_done": (2, 4),
        "subtask_finished": (2, 3),
    },
    DEADLINES: {
        "in_force": (1, 1),
        "request_expired": (1, 1),
        "cancel": (1, 1),
    },
}
"""Of tasks that are done at once, each kind of row: before which a first life ends, and after which a second one."""

ONE_AFTER_THE_OTHER = [
    (("plan", "memo"), [("before", "intent", 4), ("before", "recovered", 1)]),
    (("plan", "memo"), [("after", "effect", 2), ("after", "recovered", 2)]),
    (("plan", "memo"), [("after", "effect", 3), ("before", "command_result", 1)]),
    (("plan", "memo"), [("after", "effect", 5), ("after", "command_result", 1)]),
    (("plan", "memo"), [("before", "effect", 6), ("after", "intent", 1), ("after", "effect", 1)]),
    (("plan", "memo"), [("after", "subtask_finished", 2), ("after", "assign", 1)]),
    (("plan", "open"), [("after", "effect", 1), ("after", "effect", 1), ("after", "effect", 1)]),
    (("gone", "turn", "held"), [("after", "answer", 1), ("after", "recovered", 2), ("before", "cancel", 1)]),
    (("note", "book"), [("after", "effect", 5), ("after", "effect", 1), ("after", "effect", 2)]),
    (("note", "book"), [("after", "task", 2), ("after", "task_result", 1)]),
    (DEADLINES, [("after", "question", 1), ("before", "request_expired", 1), ("after", "cancel", 1)]),
    (FORMATS, [("after", "effect", 7), ("before", "effect", 8)]),
]
"""Places at which a program is killed, life after life."""

TRIALS = [
    (tasks, [("before", kind, first), ("after", kind, second)])
    for tasks, kinds in KINDS.items()
    for kind, (first, second) in kinds.items()
] + ONE_AFTER_THE_OTHER


def named(value):
    return ", ".join(" ".join(map(str, each)) if isinstance(each, tuple) else each for each in value)


def of(tasks):
    return {"tasks": tasks, "limits": SHORT if tasks == DEADLINES else {}}


@pytest.fixture(scope="module")
def begun(trials, request):
    """Begin all trials of this file that are to be run, those that wait for a deadline first; they go on beside."""
    mine = (item for item in request.session.items if item.module is request.module)
    chosen = [item.callspec.params for item in mine if "begun" in item.fixturenames]
    chosen.sort(key=lambda each: each["tasks"] != DEADLINES)
    return {
        (each["tasks"], *each["places"]): trials.begin(
            "at", [{"kills": [place]} for place in each["places"]], **of(each["tasks"])
        )
        for each in chosen
    }


@pytest.mark.parametrize(("tasks", "places"), TRIALS, ids=named)
def test_a_program_that_is_killed_at_boundaries_loses_and_repeats_nothing(begun, tasks, places, report):
    figures = begun[(tasks, *places)].result()
    report("at boundaries", figures)
    assert figures.problems == [], "\n".join(figures.problems)
    assert figures.kills == len(places)


def test_there_is_a_trial_for_each_kind_of_row(trials):
    passed = {kind for tasks in (None, DEADLINES) for _, kind in trials.passed(**of(tasks) if tasks else {})}
    assert passed == {kind for kinds in KINDS.values() for kind in kinds}


IN_STEP = ("answered", "decided", "intent", "foreseen", "effect", "command_result", "step_done")
"""The rows that a step leaves, but for questions."""


class Chance:
    """Makes up how the lives of a program end: at the places that a life passes, in turns, or after some time."""

    def __init__(self, trials, seed, **order):
        self._chance = random.Random(seed)  # noqa: S311 - no secret is made of it
        places = [(*place, nth) for place, count in trials.passed(**order).items() for nth in range(1, count + 1)]
        self._chance.shuffle(places)
        self._turns = itertools.cycle(places)
        self._effects = trials.passed(**order)["after", "effect"]
        self._trials = trials
        self._order = order

    def figures(self, kills):
        """Run trials, each of up to four lives that end too early, until there were so many kills; gives the figures
        of each."""
        while kills > 0:
            lives = [[self._life(n) for n in range(min(kills, self._chance.randint(1, 4)))] for _ in range(2)]
            for figures in self._trials.together(
                lives, durability=self._chance.choice(["full", "process"]), **self._order
            ):
                kills -= figures.kills
                yield figures

    def _life(self, before):
        """At a place; a little after a change of a document; after some time; or it is stopped, or finds no room.

        One with lives before it often ends at the first rows of a step: in one that it goes on with after a crash.
        """
        chance = self._chance
        weights = {"again": 12 * (before > 0), "place": 8, "effect": 4, "time": 5, "stop": 2, "full": 1}
        match chance.choices([*weights], [*weights.values()])[0]:
            case "again":
                return {"kills": [(chance.choice(["before", "after"]), chance.choice(IN_STEP), chance.randint(1, 2))]}
            case "place":
                return {"kills": [next(self._turns)]}
            case "effect":
                return {"kills": [("after", "effect", chance.randint(1, self._effects), chance.uniform(0.0, 0.06))]}
            case "full":
                return {"file_size": chance.randint(60_000, 600_000)}
            case how:
                when = chance.uniform(0.0, chance.choice([0.05, 1.0]))
                return {"kill_after": when} if how == "time" else {"stop_after": when}


def test_a_program_that_is_killed_at_any_time_loses_and_repeats_nothing(trials, kills, report):
    problems = []
    for figures in Chance(trials, kills).figures(kills):
        report("at any time", figures)
        problems += figures.problems
    assert problems == [], "\n".join(problems)


def test_a_killed_program_repeats_each_step_of_a_routine_once(trials, kills, report):
    assert trials.passed(tasks=("again",))["after", "approval_request"] == 1
    problems = []
    for figures in Chance(trials, kills, tasks=("again",)).figures(kills):
        report("a routine", figures)
        problems += figures.problems
    assert problems == [], "\n".join(problems)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_documents_of_all_formats_hold_each_change_once(trials, report, request):
    kills = request.config.getoption("kills")
    tasks = PRINTED if shutil.which("soffice") else FORMATS
    problems = []
    for figures in Chance(trials, kills, tasks=tasks).figures(kills):
        report("all formats", figures)
        problems += figures.problems
    assert problems == [], "\n".join(problems)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_subtasks_that_work_side_by_side_lose_and_repeat_nothing(trials, report, request):
    kills, problems = request.config.getoption("kills"), []
    for figures in Chance(trials, kills, tasks=("side",)).figures(kills):
        report("side by side", figures)
        problems += figures.problems
    assert problems == [], "\n".join(problems)


@pytest.mark.parametrize("size", [60_000, 150_000, 300_000])
def test_a_program_out_of_space_resumes_and_loses_and_repeats_nothing(trials, size, report):
    figures = next(trials.together([[{"file_size": size}, {"kills": [("before", "task_result", 1)]}]]))
    report("no room", figures)
    assert figures.problems == [], "\n".join(figures.problems)
    assert (figures.full, figures.kills) == (1, 1)


REPEATABLE = {"note": "##~#", "memo": "###", "turn": "###"}
"""Tasks, and their actions in order: ``#`` is done twice if it is tried twice, ``~`` may be."""


def forgetful_lives(chance):
    """Make up lives that end after an unrepeatable action was done, and before that is written down."""
    task = chance.choice(list(REPEATABLE))
    lives, at = [], 0
    for _ in range(chance.randint(1, 3)):
        begun = at  # a life's first action is the last one of the life before
        at = chance.choice([n for n, kind in enumerate(REPEATABLE[task]) if kind == "#" and n >= begun])
        lives.append({"kills": [("after", "effect", at - begun + 1)]})
    return task, lives


def test_without_intents_actions_are_repeated_and_the_checker_reports_it(trials, kills, report):
    chance, left = random.Random(kills), max(3, kills // 6)  # noqa: S311 - no secret is made of it
    while left > 0:
        task, lives = forgetful_lives(chance)
        figures = trials.begin("forgetful", lives, tasks=[task], mutant="forgetful").result()
        report("without intents", figures)
        assert figures.kills == figures.repeated == len(lives)
        assert any("stands there" in problem for problem in figures.problems)
        left -= figures.kills


@pytest.mark.parametrize(("task", "effect"), [("plan", 1), ("plan", 3), ("memo", 3)])
def test_without_kept_answers_the_result_differs_as_the_checker_reports(trials, task, effect):
    figures = trials.begin("deaf", [{"kills": [("after", "effect", effect)]}], tasks=[task], mutant="deaf").result()
    assert (figures.kills, figures.done, figures.repeated) == (1, 1, 0)
    assert any("it was done before a crash" in problem for problem in figures.problems)
