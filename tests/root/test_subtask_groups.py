"""Subtasks that are assigned together: their order, their outcomes, and what each of them sees."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard import FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.messages import PlanStep, SubtaskResult, numbers_before, open_failures
from callboard.testing import MemoryServer, assert_replays
from support import PATIENCE

MOST = 6
WINDOWS = tuple(f"w{number}" for number in range(1, MOST + 1))


@dataclass(frozen=True)
class Member:
    """A subtask of a random graph, with its predecessors and its outcome."""

    after: frozenset[int] = frozenset()
    after_any: frozenset[int] = frozenset()
    finishes: bool = True
    pauses: int = 0
    """Turns of the event loop that its model takes."""
    waits_for: int = 0
    """A place whose model its own waits for; 0 for none."""


@st.composite
def graphs(draw):
    """Draw graphs of subtasks; each may come after earlier ones."""
    graph = []
    for place in range(1, draw(st.integers(2, MOST)) + 1):
        earlier = st.frozensets(st.sampled_from(range(1, place)), max_size=2) if place > 1 else st.just(frozenset())
        after, after_any = draw(earlier), draw(earlier)
        graph.append(Member(after, after_any - after, draw(st.integers(0, 3)) > 0, draw(st.integers(0, 4))))
    return graph


def outcomes_of(graph):
    """Work out the outcomes: one that comes after a failure never begins."""
    finished = []
    for member in graph:
        begins = all(finished[place - 1] is Outcome.FINISHED for place in member.after)
        finished.append((Outcome.FINISHED if member.finishes else Outcome.FAILED) if begins else Outcome.CANCELLED)
    return finished


def ancestors_of(graph):
    """Work out the places that each comes after, directly or not."""
    ancestors = []
    for member in graph:
        before = member.after | member.after_any
        ancestors.append(before.union(*(ancestors[place - 1] for place in before)))
    return ancestors


@dataclass
class Recorder:
    """The models, and what they saw."""

    graph: list[Member] = field(default_factory=list)
    stops: bool = False
    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    seen: dict[int, list[int]] = field(default_factory=dict)
    ended_before: dict[int, set[int]] = field(default_factory=dict)
    events: dict[int, asyncio.Event] = field(default_factory=dict)
    width: int = 0

    def plan(self, request):
        if request.subtasks:
            return {"Status": "FINISH"}
        subtasks = [
            {
                "Current Sub-Task": str(place),
                "ControlText": f"memo:w{place}",
                "After": sorted(member.after),
                "AfterAny": sorted(member.after_any),
            }
            for place, member in enumerate(self.graph, 1)
        ]
        return {"Status": "ASSIGN", "Sub-Tasks": subtasks, "StopAtFailure": self.stops}

    async def work(self, request):
        place = int(request.request)
        member = self.graph[place - 1]
        self.begun.append(place)
        self.width = max(self.width, len(self.begun) - len(self.ended))
        self.seen[place] = [result.number for result in request.subtasks]
        self.ended_before[place] = set(self.ended)
        for _ in range(member.pauses):
            await asyncio.sleep(0)
        if member.waits_for:
            await self.events.setdefault(member.waits_for, asyncio.Event()).wait()
        self.ended.append(place)
        self.events.setdefault(place, asyncio.Event()).set()
        return {"Status": "FINISH" if member.finishes else "FAIL", "Result": place}

    def models(self):
        return {"host": FunctionModel(self.plan), "app": FunctionModel(self.work)}


def run(recorder, width, tmp_path=None):
    journal = {} if tmp_path is None else {"journal": {"path": tmp_path / "journal.db"}}
    options = Settings.load(
        log={"stream": "off"}, limits={"parallel_subtasks": width, "subtask_retries": 99}, **journal
    )
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    with Supervisor.start(options, models=recorder.models(), servers=[windows]) as supervisor:
        return supervisor.submit(Task(request="all")).result(PATIENCE)


SKIPPED_EARLY = [
    Member(finishes=False),
    Member(after_any=frozenset({1}), pauses=50),
    Member(after=frozenset({1, 2})),
    Member(after_any=frozenset({3})),
]
"""The third can't begin once the first has failed; the fourth must see the second, which still works."""


@settings(max_examples=120, deadline=None)
@example(graph=SKIPPED_EARLY, width=4)
@given(graph=graphs(), width=st.integers(1, 4))
def test_group_ends_as_a_plain_model_says(graph, width):
    recorder = Recorder(graph)
    result = run(recorder, width)
    assert [subtask.outcome for subtask in result.subtasks] == outcomes_of(graph)
    assert [subtask.number for subtask in result.subtasks] == list(range(1, len(graph) + 1))
    ancestors = ancestors_of(graph)
    for place in recorder.begun:
        assert recorder.seen[place] == sorted(ancestors[place - 1])
        skipped = {number for number, outcome in enumerate(outcomes_of(graph), 1) if outcome is Outcome.CANCELLED}
        assert ancestors[place - 1] - skipped <= recorder.ended_before[place]
    assert recorder.width <= width
    assert result.ok


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), width=st.integers(1, 4))
def test_failure_stops_a_group_that_is_to_stop(graph, width):
    recorder = Recorder(graph, stops=True)
    result = run(recorder, width)
    outcomes = [subtask.outcome for subtask in result.subtasks]
    assert len(outcomes) == len(graph)
    if all(member.finishes for member in graph):
        assert set(outcomes) == {Outcome.FINISHED}
        return
    for number, subtask in enumerate(result.subtasks, 1):
        if subtask.outcome is Outcome.CANCELLED:
            assert "stops its group" in subtask.causes[0].reason or "comes after" in subtask.causes[0].reason
        else:
            assert number in recorder.begun


def planned(after):
    """Make a task with a plan that has an order."""
    steps = [PlanStep(request=str(place), target=f"memo:w{place}", after=names) for place, names in enumerate(after, 1)]
    return Task(plan=steps)


def test_plan_with_an_order_runs_side_by_side_without_a_planning_model():
    recorder = Recorder([Member(waits_for=2), Member(), Member()])
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    models = {"app": FunctionModel(recorder.work)}
    with Supervisor.start(Settings.load(log={"stream": "off"}), models=models, servers=[windows]) as supervisor:
        result = supervisor.submit(planned([(), (), (1, 2)])).result(PATIENCE)
    assert result.ok
    assert recorder.begun[2] == 3
    assert recorder.seen == {1: [], 2: [], 3: [1, 2]}
    assert (result.rounds, [subtask.group for subtask in result.subtasks]) == (1, [1, 1, 1])


def test_plan_ends_with_its_first_failure_and_skips_what_comes_after():
    recorder = Recorder([Member(finishes=False), Member(), Member()])
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    models = {"app": FunctionModel(recorder.work)}
    with Supervisor.start(Settings.load(log={"stream": "off"}), models=models, servers=[windows]) as supervisor:
        result = supervisor.submit(planned([(), (), (1,)])).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.FAILED, Outcome.FINISHED, Outcome.CANCELLED]
    assert "it comes after subtask 1, which ended as failed" in result.subtasks[2].causes[0].reason


async def three_steps(request):
    if request.step < 3:
        return {"Status": "CONTINUE", "Function": "write", "Args": {"text": "x"}, "ControlText": "field-1"}
    return {"Status": "FINISH"}


def run_plan(model, after, tmp_path, **options):
    """Run a plan with an order, and replay it."""
    loaded = Settings.load(log={"stream": "off"}, journal={"path": tmp_path / "journal.db"}, **options)
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    with Supervisor.start(loaded, models={"app": FunctionModel(model)}, servers=[windows]) as supervisor:
        result = supervisor.submit(planned(after)).result(PATIENCE)
    assert_replays(tmp_path / "journal.db")
    return result


def test_subtasks_side_by_side_have_equal_shares_of_the_budget(tmp_path):
    options = {"budget": {"task": {"steps": 9}}, "system": {"ask_question": False}}
    result = run_plan(three_steps, [(), (), (), ()], tmp_path, **options)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert [subtask.usage.steps for subtask in result.subtasks] == [2, 2, 2, 2]


def test_rest_of_a_share_is_given_back(tmp_path):
    options = {"budget": {"task": {"steps": 14}}, "limits": {"parallel_subtasks": 1}, "system": {"ask_question": False}}
    result = run_plan(three_steps, [(), (), (), ()], tmp_path, **options)
    assert [subtask.usage.steps for subtask in result.subtasks] == [3, 3, 3, 3]
    assert result.ok


def test_last_step_of_a_plan_with_an_order_gives_the_output(tmp_path):
    async def numbered(request):
        return {"Status": "FINISH", "Result": {"n": request.request}}

    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    options = Settings.load(log={"stream": "off"}, journal={"path": tmp_path / "journal.db"})
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    with Supervisor.start(options, models={"app": FunctionModel(numbered)}, servers=[windows]) as supervisor:
        task = planned([(), ()]).model_copy(update={"output_schema": schema})
        assert supervisor.submit(task).result(PATIENCE).output == {"n": "2"}
    assert_replays(tmp_path / "journal.db")


def test_plan_may_have_more_steps_than_an_answer(tmp_path):
    async def finish(_request):
        return {"Status": "FINISH"}

    result = run_plan(finish, [(), (), ()], tmp_path, limits={"subtasks_per_assign": 2})
    assert len(result.subtasks) == 3
    assert result.ok


def test_member_that_waits_for_another_is_not_stalled():
    release = threading.Event()

    async def waits(request):
        while request.request == "1" and not release.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        return {"Status": "FINISH"}

    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    options = Settings.load(log={"stream": "off"}, supervision={"stall_seconds": 0.2})
    with Supervisor.start(options, models={"app": FunctionModel(waits)}, servers=[windows]) as supervisor:
        handle = supervisor.submit(planned([(), (1,)]))
        time.sleep(1.0)
        release.set()
        result = handle.result(PATIENCE)
    assert [subtask.number for subtask in result.subtasks] == [1, 2]
    assert result.ok


def test_failures_count_until_another_subtask_is_assigned():
    def ended(number, outcome, group=0):
        return SubtaskResult(
            run_id=f"t~{number}", number=number, group=group, request="x", address="app/a", outcome=outcome
        )

    failed = ended(1, Outcome.FAILED, 1)
    assert open_failures((failed, ended(2, Outcome.FINISHED, 1))) == (failed,)
    assert open_failures((failed, ended(2, Outcome.FINISHED, 1), ended(3, Outcome.FINISHED))) == ()
    assert open_failures((ended(1, Outcome.FAILED),)) == (ended(1, Outcome.FAILED),)


def test_cancel_of_a_task_ends_members_that_have_not_begun():
    begun = threading.Event()

    async def waits(_request):
        begun.set()
        await asyncio.Event().wait()

    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    options = Settings.load(log={"stream": "off"})
    with Supervisor.start(options, models={"app": FunctionModel(waits)}, servers=[windows]) as supervisor:
        handle = supervisor.submit(planned([(), (1,), (2,)]))
        assert begun.wait(PATIENCE)
        handle.cancel()
        result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.CANCELLED] * 3


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([{"request": "a", "after": []}], "needs a target"),
        ([{"request": "a", "target": "x", "after": [1]}], "1 is no earlier step"),
        ([{"request": "a", "target": "x", "after": ["b"]}], "'b' is no earlier step"),
        (
            [{"request": "a", "target": "x", "name": "n", "after": []}, {"request": "b", "target": "y", "name": "n"}],
            "'n' names step 1, too",
        ),
    ],
)
def test_plan_with_an_impossible_order_is_refused(steps, problem):
    with pytest.raises(ValueError, match=problem):
        Task(plan=[PlanStep(**step) for step in steps])


def test_steps_may_be_named():
    plan = [
        PlanStep(request="read", target="memo:w1", name="read"),
        PlanStep(request="write", target="memo:w2", after="read"),
    ]
    assert numbers_before(Task(plan=plan).plan) == ((), (1,))


def test_group_replays_whatever_the_order_of_its_ends(tmp_path):
    graph = [Member(waits_for=2), Member(), Member(after=frozenset({1, 2}), finishes=False)]
    graph.append(Member(after_any=frozenset({3})))
    recorder = Recorder(graph)
    result = run(recorder, 4, tmp_path)
    assert recorder.ended[:2] == [2, 1]
    assert_replays(tmp_path / "journal.db", result.task_id)
