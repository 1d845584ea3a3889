"""Entries and files of subtasks that are over: after a kill, and of work that was given up."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from callboard import EventName, Outcome, Task
from callboard.fleet import Bucket, MemoryEngine
from callboard.fleet._submitted_work import SubmittedWork
from callboard.fleet._sweep import SubtaskIds, Sweep
from callboard.fleet._work_messages import Claim, ClaimState, TaskSignals
from callboard.surface import Effect, committing, tool
from callboard.testing import MemoryServer
from support import ASK, FINISH, PATIENCE, call, lone, wait_for

REMOTE = "finance-3:memo:finance-3"


class Desk(MemoryServer):
    """A window whose tool makes a file."""

    def __init__(self, name, folder):
        super().__init__(self.window(name))
        self.folder = folder
        folder.mkdir(exist_ok=True)

    @tool(effect=Effect.IDEMPOTENT)
    def make(self, target: str) -> str:
        """Make a file, and return its path."""
        path = self.folder / "report.txt"
        with committing(path):
            path.write_text("42 pieces", encoding="utf-8")
        return str(path)


def maker(request):
    """Make a file."""
    return call("make") if request.step == 1 else FINISH


def kept(hub):
    """List what a hub keeps of tasks."""
    entries = dict(hub.entries).items()
    live = [(bucket, key) for (bucket, key), entry in entries if bucket is not Bucket.MACHINES and entry.value]
    return [*live, *hub.files]


def killed_before_deletions(monkeypatch):
    """Have submitters delete nothing, as if they were killed just before."""

    async def nothing(self, task):
        pass

    monkeypatch.setattr(SubmittedWork, "_delete", nothing)


@pytest.mark.parametrize("shares", [False, True])
def test_submitter_deletes_what_a_kill_has_left_when_it_is_back(fleet, tmp_path, monkeypatch, shares):
    share = tmp_path / "share"
    share.mkdir()
    settings = {"files": f"shared:{share}", "max_file_bytes": 3} if shares else {}
    fleet.machine("finance-3", surface=Desk("finance-3", tmp_path / "finance-3"), app=maker, fleet=settings)
    with monkeypatch.context() as patch:
        killed_before_deletions(patch)
        here = fleet.machine("desk", serves=False, fleet=settings)
        result = fleet.submit(here, lone(REMOTE, request="x" * 300_000)).result(PATIENCE)
        assert result.ok, result.causes
        here.stop()
    assert {bucket for bucket, *_ in kept(fleet.hub)} >= {Bucket.RESULTS, Bucket.SIGNALS}
    assert [path for path in share.rglob("*") if path.is_file()] if shares else fleet.hub.files
    fleet.machine("desk", serves=False, fleet=settings)
    wait_for(lambda: not kept(fleet.hub))
    wait_for(lambda: not [path for path in share.rglob("*") if path.is_file()])


def test_subtask_of_a_task_that_is_not_over_is_kept_after_a_restart(fleet, until):
    fleet.machine("finance-3", app=lambda request: ASK if request.step == 1 else FINISH)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE))
    until(handle, EventName.QUESTION_ASKED)
    here.stop()
    here = fleet.machine("desk", serves=False)
    again = here.handle(handle.task_id)
    assert fleet.submit(here, lone(REMOTE)).questions() == ()  # another one, meanwhile
    again.answer(wait_for(again.questions)[0].id, "the blue one")
    assert again.result(PATIENCE).ok


def test_work_that_was_given_up_leaves_nothing_once_it_has_ended(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    monkeypatch.setattr("callboard.fleet._machines.BEAT_SECONDS", 0.2)
    for module in ("_served_work", "_own_state"):
        monkeypatch.setattr(f"callboard.fleet.{module}.BEAT_SECONDS", 0.1)
    engine = MemoryEngine(fleet.hub, "finance-3")
    fleet.machine("finance-3", app=lambda _: FINISH, engine=engine)

    def host(request):
        if len(request.subtasks) == 2:
            return FINISH
        target = REMOTE if request.subtasks else "memo:desk"
        return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": "work"}

    here = fleet.machine(
        "desk",
        surface=Desk("desk", tmp_path / "desk"),
        host=host,
        app=maker,
        serves=False,
        fleet={"on_machine_loss": "fail"},
    )
    wait_for(lambda: "finance-3" in {target.machine for target in here.targets()})
    engine.cut(off=True)
    result = here.submit(Task(request="both")).result(PATIENCE)
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.FINISHED, Outcome.FAILED]
    assert fleet.hub.files  # for the machine, which was not there to read it
    engine.cut(off=False)
    wait_for(lambda: not kept(fleet.hub) and not fleet.hub.queues["finance-3"])


def test_earlier_files_of_large_requests_are_deleted(fleet, until):
    questions = iter([f"{number} {'x' * 300_000}" for number in range(3)])

    def there(request):
        text = next(questions, None)
        return FINISH if text is None else {**ASK, "Comment": text}

    fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE))
    for number in range(3):
        (question,) = wait_for(lambda begin=f"{number} ": [ask for ask in handle.questions() if _asks(ask, begin)])
        wait_for(lambda: len(fleet.hub.files) == 1)
        handle.answer(question.id, "yes")
    assert handle.result(PATIENCE).ok
    wait_for(lambda: not kept(fleet.hub))


def _asks(question, begin):
    return question.questions[0].text.startswith(begin)


class Place:
    """The name of a machine and its journal."""

    def __init__(self, identity):
        self.name, self.identity = "desk", identity


class Nothing:
    """Files and claims, none of them there."""

    async def discard(self, files):
        """Delete nothing."""
        assert not list(files)

    def drop(self, task_id, machine):
        """Forget nothing."""


async def swept(hub, entries, *, identity="a", known=(), unfinished=()):
    """Sweep some entries of one subtask; return the buckets of those that stay."""
    engine, ids = MemoryEngine(hub, "desk"), SubtaskIds(Place(identity))
    await engine.open()
    task_id = SubtaskIds(Place("a")).id_of("sales", "sales~1")
    for bucket, value in entries.items():
        key = f"finance-3.desk.{task_id}" if bucket is Bucket.SIGNALS else f"desk.finance-3.{task_id}"
        await engine.put(bucket, key, value)
    is_known = {SubtaskIds(Place("a")).id_of("sales", f"sales~{number}") for number in known}.__contains__
    sweep = Sweep(engine, "desk", ids, files=Nothing(), placements=Nothing(), is_known=is_known)
    looked = asyncio.Event()

    def begin():
        loop.call_soon_threadsafe(looked.set)
        return unfinished

    loop = asyncio.get_running_loop()
    sweeping = asyncio.ensure_future(sweep.run(begin))
    sweep.add(f"desk.finance-3.{task_id}")
    if identity == "a":
        await asyncio.wait_for(looked.wait(), PATIENCE)
        looked.clear()
        sweep.add(f"desk.office-1.{ids.id_of('other', 'other~1')}")  # the next look comes after this one
        await asyncio.wait_for(looked.wait(), PATIENCE)
    sweeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sweeping
    await engine.close()
    return {bucket for (bucket, _), entry in hub.entries.items() if entry.value}


SIGNALS = TaskSignals(cancel="given up").model_dump_json().encode()
WITHDRAWN = Claim(state=ClaimState.WITHDRAWN).model_dump_json().encode()
REFUSED = Claim(state=ClaimState.REFUSED).model_dump_json().encode()
STARTED = Claim(state=ClaimState.STARTED).model_dump_json().encode()


@pytest.mark.parametrize(
    "entries",
    [
        {Bucket.RESULTS: b"can't be read", Bucket.SIGNALS: SIGNALS, Bucket.REQUESTS: b"{}", Bucket.CLAIMS: STARTED},
        {Bucket.RESULTS: b"{}"},
        {Bucket.REQUESTS: b"{}"},
        {Bucket.RESULTS: b"{}", Bucket.CLAIMS: STARTED},
        {Bucket.CLAIMS: WITHDRAWN, Bucket.SIGNALS: SIGNALS},
        {Bucket.CLAIMS: REFUSED, Bucket.SIGNALS: SIGNALS},
    ],
)
async def test_entries_of_a_task_that_is_over_are_deleted(fleet, entries):
    assert await swept(fleet.hub, entries) == set()


@pytest.mark.parametrize(
    "entries",
    [
        {Bucket.REQUESTS: b"{}", Bucket.SIGNALS: SIGNALS},
        {Bucket.CLAIMS: STARTED, Bucket.SIGNALS: SIGNALS},
        {Bucket.CLAIMS: STARTED},
    ],
)
async def test_cancel_stays_until_its_machine_has_ended_the_work(fleet, entries):
    assert await swept(fleet.hub, entries) == set(entries)


@pytest.mark.parametrize("kept_by", [{"identity": "b"}, {"known": [1]}, {"unfinished": ["sales"]}])
async def test_entries_of_other_journals_and_open_tasks_stay(fleet, kept_by):
    entries = {Bucket.RESULTS: b"{}", Bucket.SIGNALS: SIGNALS}
    assert await swept(fleet.hub, entries, **kept_by) == set(entries)
