"""Work that any machine may do, and that some of them refuse."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callboard import EventName, Outcome, PlanStep, Task
from callboard.actors.client import Submission
from callboard.fleet import Bucket, MemoryEngine, NatsEngine, set_up
from callboard.fleet._task_files import TaskFiles
from callboard.testing import MemoryServer
from support import PATIENCE, wait_for

NOT_DESK = {"accept": {"machines": ["boss"]}}
"""Settings of a machine that does no work of the machine ``desk``."""


def finish(request):
    """Say where the work was done."""
    return {"Status": "FINISH", "Result": request.target.name}


def plan(request):
    """Have the shell do the work."""
    if request.subtasks:
        return {"Status": "FINISH", "Result": request.subtasks[-1].output}
    return {"Status": "ASSIGN", "ControlText": "build", "Current Sub-Task": "Build it"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    monkeypatch.setattr("callboard.fleet._machines.BEAT_SECONDS", 0.2)
    for module in ("_served_work", "_own_state"):
        monkeypatch.setattr(f"callboard.fleet.{module}.BEAT_SECONDS", 0.1)


class Yard:
    """Machines with the shell ``build``, and one that submits."""

    def __init__(self, fleet, make_engine):
        self.fleet = fleet
        self.make_engine = make_engine
        self.done = []
        """The machines that did work."""

    def add(self, name, *, wait=None, **accept):
        """Start a machine; it waits before it says that it is done."""

        def work(request):
            self.done.append(name)
            assert wait is None or wait.wait(PATIENCE)
            return finish(request)

        fleet = {"labels": {"site": "berlin"}, **accept}
        surface = MemoryServer(MemoryServer.shell("build"))
        return self.fleet.machine(
            name, surface=surface, linux=work, host=plan, fleet=fleet, engine=self.make_engine(name)
        )

    def add_absent(self, name):
        """Have a machine tell its targets, and stop it."""
        machine = self.add(name)
        wait_for(lambda: self.fleet.hub.get(Bucket.MACHINES, f"{name}.targets"))
        self.fleet.supervisors.remove(machine)
        machine.stop()

    def desk(self, count):
        """Start the submitter, which knows a number of machines."""
        desk = self.fleet.machine("desk", serves=False, linux=finish, host=finish, engine=self.make_engine("desk"))
        wait_for(lambda: sum(target.machine not in {"", "any"} for target in desk.targets()) >= count)
        return desk


@pytest.fixture
def yard(fleet):
    """Give no machines yet, whose server is in memory."""
    return Yard(fleet, lambda name: MemoryEngine(fleet.hub, name))


@pytest.fixture(params=["memory", "nats"])
def both(request, fleet):
    """Give no machines yet, with each kind of server."""
    if request.param == "memory":
        return Yard(fleet, lambda name: MemoryEngine(fleet.hub, name))
    server = request.getfixturevalue("nats_server")
    asyncio.run(set_up(server.url))
    return Yard(fleet, lambda name: NatsEngine(server.url, name))


def build(**terms):
    """Make a task for the shell of any machine."""
    return Task(**{"request": "Build it", "target": "any:build", **terms})


def kept(hub):
    """List the entries of subtasks that the server keeps."""
    entries = dict(hub.entries).items()
    return [key for (bucket, key), entry in entries if bucket is not Bucket.MACHINES and entry.value is not None]


def chosen_by(desk):
    """Collect the machines that the submitter chooses."""
    machines = []
    desk.subscribe(
        lambda event: machines.append(event.data["machine"]) if event.name is EventName.MACHINE_CHOSEN else None
    )
    return machines


@pytest.mark.parametrize(
    "task",
    [
        build(),
        build(target="any:site=berlin"),
        Task(plan=[PlanStep(request="Build it", target="any:build", needs={"site": "berlin"})]),
    ],
    ids=["shell", "label", "step"],
)
def test_refused_work_is_done_by_another_machine(both, task):
    both.add("alpha", **NOT_DESK)
    both.add("beta")
    desk = both.desk(2)
    chosen = chosen_by(desk)
    result = desk.submit(task).result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "beta")
    assert chosen == ["alpha", "beta"]
    assert both.done == ["beta"]


def test_work_fails_once_all_machines_have_refused_it(both, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    both.add("alpha", **NOT_DESK)
    both.add("beta", accept={"models": ["openai:small"]})
    result = both.desk(2).submit(build(model="openai:large")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert both.done == []
    (subtask,) = result.subtasks
    first, *causes = subtask.causes
    assert first.reason == "no machine of the fleet takes the work for build: refused by alpha, beta"
    assert [cause.where for cause in causes] == ["alpha", "beta"]
    alpha, beta = (cause.reason for cause in causes)
    assert alpha == "alpha: the machine alpha does no work of desk (fleet.accept.machines there)"
    assert beta.startswith("beta: the task r-")
    assert "names the model openai:large, which this machine does not take" in beta
    assert subtask.machine == ""


def test_refusal_of_a_named_machine_ends_its_work(yard):
    yard.add("alpha", **NOT_DESK)
    yard.add("beta")
    result = yard.desk(2).submit(build(target="alpha:build")).result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FAILED, "alpha")
    assert "the machine alpha does no work of desk" in result.causes[0].reason
    assert yard.done == []


def test_machine_that_has_refused_work_gets_less_of_it(yard):
    yard.add("alpha", **NOT_DESK)
    yard.add("beta")
    desk = yard.desk(2)
    chosen = chosen_by(desk)
    for _ in range(3):
        assert desk.submit(build()).result(PATIENCE).outcome is Outcome.FINISHED
    assert chosen == ["alpha", "beta", "beta", "beta"]


def test_refusals_are_known_after_the_submitter_restarts(yard):
    """The only other machine is away: the work waits for it, and is not given to the first one again."""
    yard.add("alpha", **NOT_DESK)
    yard.add_absent("beta")
    desk = yard.desk(2)
    desk.submit(build(id="build-1"))
    wait_for(lambda: any(b'"refused"' in (entry.value or b"") for entry in dict(yard.fleet.hub.entries).values()))
    desk.stop()
    desk = yard.desk(2)
    chosen = chosen_by(desk)
    yard.add("beta")
    result = desk.handle("build-1").result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "beta")
    assert chosen == ["beta"]
    wait_for(lambda: not kept(yard.fleet.hub))


def test_refused_work_that_is_cancelled_was_done_by_no_machine(yard):
    yard.add("alpha", **NOT_DESK)
    yard.add_absent("beta")
    desk = yard.desk(2)
    away = []
    desk.subscribe(lambda event: away.append(event) if event.name is EventName.MACHINE_AWAY and event.task_id else None)
    handle = desk.submit(build())
    wait_for(lambda: away)
    handle.cancel("no longer")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.CANCELLED, "")
    wait_for(lambda: not kept(yard.fleet.hub))


def test_question_about_an_absent_machine_tells_of_the_others(yard):
    yard.add("alpha", **NOT_DESK)
    yard.add_absent("beta")
    desk = yard.fleet.machine(
        "desk", serves=False, linux=finish, engine=yard.make_engine("desk"), fleet={"on_machine_loss": "ask"}
    )
    handle = yard.fleet.submit(desk, build())
    (question,) = wait_for(handle.questions)
    assert "No machine that has build and has not refused the work is there" in question.questions[0].text
    handle.answer(question.id, "give up")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert [cause.where for cause in result.subtasks[0].causes][1:] == ["alpha"]


def test_full_disk_of_a_machine_has_another_one_do_the_work(yard, monkeypatch):
    yard.add("alpha")
    yard.add("beta")
    take_in, calls = TaskFiles.take_in, []

    async def full_at_first(self, files, task_id):
        calls.append(task_id)
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        return await take_in(self, files, task_id)

    monkeypatch.setattr(TaskFiles, "take_in", full_at_first)
    result = yard.desk(2).submit(build()).result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "beta")
    assert calls[0] == calls[1]


def test_submission_without_an_answer_is_repeated_and_not_refused(yard, monkeypatch):
    """The task may have been taken, so no other machine may do it."""
    submit, calls = Submission.submit, []

    def late_at_first(self, task, output_type=None):
        handle = submit(self, task, output_type)
        calls.append(handle.task_id)
        if calls.count(handle.task_id) == 1 and task.origin is not None:
            raise TimeoutError
        return handle

    monkeypatch.setattr(Submission, "submit", late_at_first)
    yard.add("alpha")
    yard.add("beta")
    result = yard.desk(2).submit(build()).result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "alpha")
    assert yard.done == ["alpha"]


def test_begun_work_is_kept_by_a_machine_with_other_settings(yard):
    """After a restart it would refuse what it has begun: another machine would do it once more."""
    release = threading.Event()
    first = yard.add("alpha", wait=release)
    desk = yard.desk(1)
    handle = desk.submit(build())
    wait_for(lambda: yard.done)
    release.set()
    yard.fleet.supervisors.remove(first)
    first.stop()
    yard.add("beta")
    yard.add("alpha", **NOT_DESK)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "alpha")
    assert set(yard.done) == {"alpha"}


def test_full_queue_has_the_next_machine_do_the_work(yard, monkeypatch):
    engines = {name: MemoryEngine(yard.fleet.hub, name) for name in ("alpha", "beta", "desk")}
    yard.make_engine = engines.get
    yard.add("alpha")
    yard.add("beta")
    desk = yard.desk(2)
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", PATIENCE)
    engines["alpha"].cut(off=True)
    blocker = desk.submit(build(target="alpha:build"))
    wait_for(lambda: yard.fleet.hub.queues["alpha"])
    yard.fleet.hub.most_work = 1
    result = desk.submit(build()).result(PATIENCE)
    assert (result.outcome, result.subtasks[0].machine) == (Outcome.FINISHED, "beta")
    engines["alpha"].cut(off=False)
    assert blocker.result(PATIENCE).outcome is Outcome.FINISHED
    assert sorted(yard.done) == ["alpha", "beta"]


def test_work_fails_if_all_queues_are_full(yard):
    yard.add("alpha")
    yard.add("beta")
    desk = yard.desk(2)
    yard.fleet.hub.most_work = 0
    result = desk.submit(build(request="x" * 300_000)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    _, *causes = result.subtasks[0].causes
    assert [cause.where for cause in causes] == ["alpha", "beta"]
    for cause in causes:
        assert f"the queue {cause.where!r} has 0 pieces of work, as many as it may: wait" in cause.reason
    wait_for(lambda: not kept(yard.fleet.hub))
    assert not yard.fleet.hub.files
