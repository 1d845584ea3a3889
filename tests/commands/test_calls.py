"""The current call of a tool: its id, files, notes and progress."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from callboard import EventName, Settings, Task, tool
from callboard.messages import AgentKind, Effect, Outcome, Probe, ResultStatus
from callboard.surface import committing, current_call
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, HELD, PATIENCE, PNG, action, actions, call, lone

DONE = {**call("work"), "Status": "FINISH"}


class Worker(MemoryServer):
    """A surface with one tool that runs a test's function with its call."""

    def __init__(self, work):
        super().__init__(self.window())
        self.work_ = work
        self.heard = []

    @tool(effect=Effect.ONCE)
    def work(self, target: str) -> str:
        """Do something."""
        self.heard.append(current_call())
        return str(self.work_(current_call()))

    @tool(effect=Effect.ONCE)
    async def work_on_loop(self, target: str) -> str:
        """Do something on the event loop."""
        self.heard.append(current_call())
        return str(await asyncio.to_thread(self.work_, current_call()))


def run(start, work, *, answer=DONE, task=None, **given):
    surface = Worker(work)
    handle = start(app=[answer, FINISH], servers=[surface], **given).submit(task or lone(id="t"))
    return handle.result(PATIENCE), handle, surface


@pytest.mark.parametrize("name", ["work", "work_on_loop"])
def test_a_tool_knows_its_call_and_task_and_when_it_is_given_up(start, name):
    before = time.monotonic()
    result, _, surface = run(start, lambda _: "", answer={**call(name), "Status": "FINISH"})
    assert result.ok, result.causes
    (known,) = surface.heard
    assert (known.id, known.task_id, known.session) == ("t~1.1.0", "t", "t")
    limit = Settings.load().limits.command_seconds
    assert before + limit <= known.deadline <= time.monotonic() + limit


@pytest.mark.parametrize("end", ["cancel", "stop"])
def test_a_waiting_tool_sees_that_its_call_is_given_up(start, end):
    began, over = threading.Event(), threading.Event()

    def wait(known):
        assert not known.given_up
        began.set()
        until = time.monotonic() + PATIENCE
        while not known.given_up and time.monotonic() < until:
            over.wait(0.01)
        over.set()

    supervisor = start(app=[DONE, FINISH], servers=[Worker(wait)])
    handle = supervisor.submit(lone(id="t"))
    assert began.wait(PATIENCE)
    (handle.cancel if end == "cancel" else supervisor.stop)()
    assert over.wait(PATIENCE)


def test_a_tool_without_an_agent_has_a_call_without_an_id(tmp_path):
    known = current_call()
    assert (known.id, known.task_id, known.deadline) == ("", "", float("inf"))
    known.progress("nobody hears it")
    known.note("nobody keeps it")
    file = tmp_path / "a.txt"
    file.write_text("x")
    assert known.artifact(file) == file
    with pytest.raises(ValueError, match="only a call of an agent can keep bytes as a file"):
        known.artifact(b"x")


def test_bytes_become_a_file_beside_the_journal_that_the_result_names(start, tmp_path):
    path = tmp_path / "journal.db"
    result, _, _ = run(start, lambda known: known.artifact(b"much", "text/plain"), journal={"path": path})
    (named,) = map(Path, result.artifacts)
    assert named.read_bytes() == b"much"
    assert (named.suffix, named.parent.parent) == (".txt", tmp_path / "journal.db.artifacts")
    assert (named.stat().st_mode & 0o777, named.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert result.output is None or str(named) in str(result.output)


def test_a_file_that_the_tool_wrote_can_be_named_if_it_is_there(start, tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("1")
    result, _, _ = run(start, lambda known: known.artifact(file))
    assert result.artifacts == (str(file),)
    result, _, _ = run(start, lambda known: known.artifact(tmp_path / "nothing"))
    assert not result.artifacts


def test_a_file_that_a_hostagent_replaces_is_changed_and_a_new_one_made(start, tmp_path):
    (tmp_path / "old").write_text("1")

    class Writer(MemoryServer):
        @tool(effect=Effect.ONCE, agents=(AgentKind.HOST,))
        def save(self, name: str) -> None:
            """Write a file."""
            with committing(tmp_path / name):
                (tmp_path / name).write_text("2")

    script = [actions(action("save", name="old"), action("save", name="new")), FINISH]
    result = start(host=script, servers=[Writer(MemoryServer.window())]).submit(Task(request="x")).result(PATIENCE)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    assert (result.outcome, result.artifacts, result.made) == (Outcome.FINISHED, (old, new), (new,))


def test_without_a_journal_artifacts_are_gone_with_the_supervisor(start):
    supervisor = start(app=[DONE], servers=[Worker(lambda known: (known.artifact(b"1"), known.artifact(b"2")))])
    one, two = map(Path, supervisor.submit(lone()).result(PATIENCE).artifacts)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    supervisor.stop()
    assert not one.parent.parent.exists()


def test_the_artifacts_of_a_task_that_the_journal_drops_are_deleted(start, tmp_path):
    path = tmp_path / "journal.db"
    supervisor = start(app=[DONE], servers=[Worker(lambda known: known.artifact(b"x"))], journal={"path": path})
    assert supervisor.submit(lone(id="old")).result(PATIENCE).ok
    supervisor.stop()
    assert len([*tmp_path.glob("journal.db.artifacts/*/*")]) == 1
    later = start(app=[FINISH], journal={"path": path, "max_bytes": 1})
    later.stop()
    assert [*tmp_path.glob("journal.db.artifacts/*")] == []


def test_progress_is_redacted_and_reported_at_most_ten_times_a_second(start):
    def work(known):
        for number in range(200):
            known.progress(f"row {number}, hunter22", number / 200)
        return ""

    _, handle, _ = run(start, work, task=lone(id="t", secrets={"pw": SecretStr("hunter22")}))
    told = [event.data for event in handle.events() if event.name is EventName.TOOL_PROGRESS]
    assert told[0] == {"call": "t~1.1.0", "tool": "work", "text": "row 0, ${secret:pw}", "share": 0.0}
    assert len(told) < 100


def test_a_call_that_was_cancelled_tells_no_more_progress(start):
    begun, go, late, heard = threading.Event(), threading.Event(), threading.Event(), []

    def work(known):
        begun.set()
        assert go.wait(HELD)
        known.progress("on and on")
        return ""

    def hear(event):
        heard.append(event.name)
        if event.name is EventName.COMMAND_LATE:
            late.set()

    supervisor = start(app=[DONE, FINISH], servers=[Worker(work)])
    supervisor.subscribe(hear)
    handle = supervisor.submit(lone(id="t"))
    assert begun.wait(PATIENCE)
    handle.cancel("enough")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    go.set()
    assert late.wait(PATIENCE)
    assert EventName.TOOL_PROGRESS not in heard


def test_timed_out_call_can_record_no_more(start, until):
    go, kept = threading.Event(), []

    def work(known):
        assert go.wait(HELD)
        for late in (lambda: known.note("x"), lambda: known.artifact(b"x"), lambda: committing().__enter__()):
            try:
                late()
            except Exception as error:  # its type is checked below
                kept.append(type(error).__name__)
        done.set()
        return ""

    done = threading.Event()
    result, handle, _ = run(start, work, limits={"command_seconds": 0.05})
    go.set()
    assert done.wait(PATIENCE)
    assert kept == ["LeaseVoidError"] * 3
    (ended,) = [event for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert ended.data["status"] == ResultStatus.FAILURE
    assert not result.artifacts


@pytest.mark.parametrize("text", ["", "x" * 4_001])
def test_a_note_that_is_empty_or_too_long_is_refused(text):
    with pytest.raises(ValueError, match="a note has 1 to 4,000 characters"):
        current_call().note(text)


def test_a_tool_can_answer_with_pictures_that_the_model_is_shown(start):
    seen = []

    def app(request):
        seen.append([result.pictures for record in request.memory for result in record.results])
        return [call("work"), FINISH][request.call - 1]

    surface = Worker(lambda known: known.picture(PNG))
    assert start(app=app, servers=[surface]).submit(lone()).result(PATIENCE).ok
    assert seen == [[], [(PNG,)]]


@pytest.mark.parametrize("pictures", [[b"GIF89a"], [PNG + bytes(3_500_000)], [PNG] * 5], ids=["GIF", "large", "many"])
def test_pictures_unfit_for_a_model_are_refused(start, pictures):
    def work(known):
        for picture in pictures:
            known.picture(picture)

    _, handle, _ = run(start, work)
    (ended,) = [event for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert "at most 4 pictures, each a PNG of at most 3,500,000 bytes" in ended.data["error"]


class Printer(MemoryServer):
    """A surface that shows nothing of its effects, but knows the numbers of its jobs."""

    def __init__(self, jobs, *, held=None):
        super().__init__(self.window())
        self.jobs, self.held = jobs, held
        self.reached = threading.Event()
        self.noted = []

    @tool(effect=Effect.ONCE)
    def print_it(self, target: str) -> str:
        """Print."""
        number = f"job {len(self.jobs) + 1}"
        current_call().note("hello")
        current_call().note(number)
        if self.held != "before":
            self.jobs.append(number)
        self.reached.set()
        if self.held:
            time.sleep(HELD)
        return number

    def probe(self, target, intent, foreseen, fingerprint):
        self.noted.append(intent.noted)
        return Probe.DONE if intent.noted[-1] in self.jobs else Probe.NOT_DONE


@pytest.mark.parametrize("held", ["before", "after"])
def test_notes_of_a_tool_settle_after_a_crash_whether_it_was_done(start, tmp_path, held):
    jobs, path = [], tmp_path / "journal.db"
    answers = [call("print_it"), FINISH]
    surface = Printer(jobs, held=held)
    first = start(app=answers, servers=[surface], journal={"path": path})
    first.submit(lone(id="t"))
    assert surface.reached.wait(PATIENCE)
    first.stop(timeout=0.1)
    second = Printer(jobs)
    supervisor = start(app=answers, servers=[second], journal={"path": path})
    assert supervisor.handle("t").result(PATIENCE).outcome is Outcome.FINISHED
    assert jobs == ["job 1"]
    assert second.noted == [("hello", "job 1")]
    supervisor.stop()
    assert_replays(path)


def test_notes_of_actions_that_may_be_repeated_are_kept_and_change_nothing(start, tmp_path):
    class Reader(Worker):
        @tool(effect=Effect.IDEMPOTENT)
        def repeat(self, target: str) -> str:
            """Do something that may be repeated."""
            current_call().note("seen")
            return "ok"

    path = tmp_path / "journal.db"
    answers = [actions(action("repeat"), action("repeat"), status="FINISH")]
    supervisor = start(app=answers, servers=[Reader(None)], journal={"path": path})
    assert supervisor.submit(lone(id="t")).result(PATIENCE).ok
    supervisor.stop()
    assert_replays(path)
