"""Shared text: all agents of a conversation see its answers, requests and notes."""

from __future__ import annotations

import threading

import pytest
from pydantic import ValidationError

from callboard import EventName, Task, tool
from callboard.messages import AgentKind, Effect, JournalError, LeaseVoidError, TaskRefusedError
from callboard.surfaces import post_note
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import ASSIGN, FINISH, HELD, PATIENCE, command_line, lone

ASK = {"Status": "PENDING", "Questions": ["which one?"]}
ANSWER = ("questions", "Ada", "to 'which one?': 'the left one'")


class Minutes(MemoryServer):
    """A surface with a tool that posts notes."""

    def __init__(self, *targets):
        super().__init__(*(targets or (self.window(),)))
        self.reached, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX))
    def minute(self, text: str) -> str:
        """Post a note."""
        post_note(text)
        return text

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP,))
    def late(self) -> str:
        """Post a note when it is too late."""
        self.reached.set()
        assert self.go.wait(HELD)
        try:
            post_note("too late")
        except LeaseVoidError:
            self.reached.clear()
            raise
        return "posted"


def minute(text, status="FINISH"):
    return {"Status": status, "Function": "minute", "Args": {"text": text}}


@pytest.fixture
def seen():
    """The shared texts of each request, as (kind of agent, task, texts)."""
    return []


@pytest.fixture
def noting(seen):
    def model(answer):
        def asked(request):
            shared = tuple((each.board.value, each.author, each.text) for each in request.observation.shared)
            seen.append((request.kind.value, request.task_id, shared))
            return answer(request)

        return asked

    return model


def answered(handle, until, *texts, by="Ada"):
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, *texts, by=by)


def host(request):
    own = [done for done in request.subtasks if done.run_id.startswith(f"{request.task_id}~")]
    return FINISH if own else ASSIGN


def by_kind(seen, kind, task="t"):
    return [shared for who, of, shared in seen if (who, of) == (kind, task)]


def test_an_answer_to_the_host_agent_reaches_its_app_agents(start, until, seen, noting):
    def asks_first(request):
        return ASK if request.call == 1 else host(request)

    supervisor = start(host=noting(asks_first), app=noting(lambda _: FINISH))
    handle = supervisor.submit(Task(id="t", request="do it"))
    answered(handle, until, "the left one")
    assert handle.result(PATIENCE).ok
    assert by_kind(seen, "app") == [(ANSWER,)]
    assert by_kind(seen, "host") == [(), (ANSWER,), (ANSWER,)]


def test_an_answer_to_an_app_agent_reaches_the_host_agent_and_follow_ups(start, until, seen, noting):
    def app(request):
        return ASK if request.task_id == "t" and request.call == 1 else FINISH

    supervisor = start(host=noting(host), app=noting(app))
    handle = supervisor.submit(Task(id="t", request="do it"))
    answered(handle, until, "the left one")
    assert handle.result(PATIENCE).ok
    assert by_kind(seen, "host") == [(), (ANSWER,)]
    supervisor.submit(Task(id="u", request="now the rest", session="t")).result(PATIENCE)
    before = (("requests", "the user", "do it"), ANSWER)
    assert {kind: by_kind(seen, kind, "u")[0] for kind in ("host", "app")} == {"host": before, "app": before}
    supervisor.submit(Task(id="v", request="something else")).result(PATIENCE)
    assert {shared for _, task, shared in seen if task == "v"} == {()}


@pytest.mark.parametrize("kind", ["app", "mobile", "linux"])
def test_every_kind_of_agent_gets_what_is_shared(start, until, seen, noting, kind):
    target = {"app": MemoryServer.window, "mobile": MemoryServer.device, "linux": MemoryServer.shell}[kind]()
    steps = [ASK, ASSIGN | {"ControlText": target.id}, FINISH]
    agents = {"host": lambda request: steps[request.call - 1], kind: noting(lambda _: FINISH)}
    handle = start(servers=[MemoryServer(target)], **agents).submit(Task(id="t", request="do it"))
    answered(handle, until, "the left one")
    assert handle.result(PATIENCE).ok
    assert by_kind(seen, kind) == [(ANSWER,)]


def test_notes_of_tools_and_of_the_host_program_are_shared(start, until, seen, noting):
    steps = [minute("the list is in cents", "CONTINUE"), ASK, FINISH]
    supervisor = start(servers=[Minutes()], app=noting(lambda request: steps[request.call - 1]))
    handle = supervisor.submit(lone(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    supervisor.post("t", "Bob is on leave")
    answered(handle, until, "the left one")
    assert handle.result(PATIENCE).ok
    note, posted = ("notes", "minute", "the list is in cents"), ("notes", "the host program", "Bob is on leave")
    assert by_kind(seen, "app") == [(), (note,), (note, posted, ANSWER)]
    assert [(row.author, row.content) for row in supervisor.blackboard("t").notes] == [note[1:], posted[1:]]
    with pytest.raises(TaskRefusedError, match="no task 't' that runs or waits"):
        supervisor.post("t", "too late")
    for text in ("", "x" * 4001):
        with pytest.raises(ValidationError):
            supervisor.post("t", text)


def test_a_note_comes_too_late_with_the_call_that_posts_it(start):
    surface = Minutes()
    supervisor = start(servers=[surface], app=[{"Status": "FINISH", "Function": "late"}])
    handle = supervisor.submit(lone(id="t"))
    assert surface.reached.wait(PATIENCE)
    handle.cancel()
    surface.go.set()
    handle.result(PATIENCE)
    supervisor.stop()
    assert not surface.reached.is_set()


@pytest.mark.parametrize("place", [("decided", 1), ("note", 1), ("command_result", 1), ("step_done", 2)])
def test_after_a_crash_the_same_is_shared_and_a_note_counts_once(begin, until, seen, noting, tmp_path, place):
    steps = [ASK, minute("once", "CONTINUE"), FINISH]
    surface = Minutes()
    app = noting(lambda request: steps[request.call - 1])
    kind, nth = place
    with Faults() as faults:
        faults.before(kind, disk_full, nth=nth)
        supervisor = begin(servers=[surface], app=app)
        handle = supervisor.submit(lone(id="t"))
        answered(handle, until, "the left one")
        with pytest.raises(JournalError):
            handle.result(PATIENCE)
        supervisor.stop()
    supervisor = begin(servers=[surface], app=app)
    assert supervisor.handle("t").result(PATIENCE).ok
    assert by_kind(seen, "app")[-1] == (ANSWER, ("notes", "minute", "once"))
    assert all(ANSWER in shared for shared in by_kind(seen, "app")[1:])
    supervisor.stop()
    assert_replays(tmp_path / "journal.db")


def test_the_latest_entries_are_shown_and_long_ones_are_cut(start, seen, noting):
    steps = [minute(f"{number}" * 600, "CONTINUE") for number in range(1, 5)]
    supervisor = start(
        servers=[Minutes()],
        blackboard={"shown": 2, "rows": 1},
        app=noting(lambda request: [*steps, FINISH][request.call - 1]),
    )
    supervisor.submit(lone(id="t")).result(PATIENCE)
    assert [text for _, _, text in by_kind(seen, "app")[-1]] == ["3" * 500 + " …", "4" * 500 + " …"]


def test_a_long_request_is_not_shown_to_those_who_have_it(start, seen, noting):
    supervisor = start(host=noting(host), app=noting(lambda _: FINISH))
    supervisor.submit(Task(id="t", request="do it " * 200)).result(PATIENCE)
    assert {shared for _, _, shared in seen} == {()}


def test_shared_notes_are_hidden_when_the_settings_show_none(start, seen, noting):
    steps = [minute("a", "CONTINUE"), FINISH]
    supervisor = start(
        servers=[Minutes()], blackboard={"shown": 0}, app=noting(lambda request: steps[request.call - 1])
    )
    supervisor.submit(lone(id="t")).result(PATIENCE)
    assert by_kind(seen, "app") == [(), ()]


def test_a_secret_in_a_note_is_redacted(start, seen, noting):
    steps = [minute("the word is hunter2-hunter2", "CONTINUE"), FINISH]
    supervisor = start(servers=[Minutes()], app=noting(lambda request: steps[request.call - 1]))
    supervisor.submit(lone(id="t", secrets={"WORD": "hunter2-hunter2"})).result(PATIENCE)
    ((_, _, text),) = by_kind(seen, "app")[-1]
    assert "hunter2" not in text


def test_a_journal_shows_the_notes(begin, tmp_path):
    supervisor = begin(servers=[Minutes()], app=[minute("the list is in cents")])
    supervisor.submit(lone(id="t")).result(PATIENCE)
    supervisor.stop()
    shown = command_line("show", "t", tmp_path / "journal.db")
    assert "minute notes: the list is in cents" in shown.output
