"""An approval covers exactly the shown actions on the shown surface, and nothing later."""

from __future__ import annotations

import threading

import pytest

from callboard import EventName, Outcome, PlanStep, Task, tool
from callboard.messages import Effect, NotWaitingError, Target, TargetKind
from callboard.testing import MemoryServer
from support import FINISH, HELD, PATIENCE

APPROVE_APPENDS = [{"verdict": "approve", "tool": "append"}]
ALONE = {"request": "x", "target": "memo:one"}


def act(*texts, function="append", status="CONTINUE"):
    actions = [{"Function": function, "Args": {"control_id": "field-1", "text": text}} for text in texts]
    return {"Status": status, "Comment": "may I?", "Actions": actions}


class Paper(MemoryServer):
    """A surface that changes by calls alone, as a document does; one of its calls can be held up."""

    settles = False

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.hold = ""

    @tool(effect=Effect.ONCE)
    def stamp(self, target: str, control_id: str, text: str) -> str:
        """Stamp a text."""
        if text == self.hold:
            self.begun.set()
            assert self.let_go.wait(HELD)
        return self.append(target, control_id, text)

    def type(self, text):
        """Write as another program would."""
        self._controls["memo:one"]["field-1"] = text

    @property
    def texts(self):
        return [text for _, _, text in self.effects]


@pytest.fixture
def paper():
    surface = Paper()
    yield surface
    surface.let_go.set()


@pytest.fixture
def asked(until):
    """Wait for a task's first approval, and give it."""

    def wait(handle):
        until(handle, EventName.APPROVAL_REQUESTED)
        (request,) = handle.approvals()
        return request

    return wait


def asked_for(handle, number):
    """Wait until a task has asked for so many approvals or questions, and give the last one's event."""
    kinds = {EventName.APPROVAL_REQUESTED, EventName.QUESTION_ASKED}
    asked = [event for event in _until(handle, kinds, number) if event.name in kinds]
    return asked[number - 1]


def _until(handle, kinds, number):
    for event in handle.events():
        yield event
        number -= event.name in kinds
        if number == 0:
            return


# Ids


def test_a_late_second_approval_of_one_round_approves_nothing_in_the_next(start, tmp_path):
    def host(request):
        create = {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": request.request}}
        return create if request.step == 1 else FINISH

    supervisor = start(
        host=host,
        servers=[],
        documents={"workspace": tmp_path},
        policy=[{"verdict": "approve", "tool": "create_document"}],
    )
    handle = supervisor.submit(Task(plan=(PlanStep(request="good.docx"), PlanStep(request="evil.docx"))))
    first = asked_for(handle, 1).data["request"]["id"]
    handle.approve(first)
    second = asked_for(handle, 2).data["request"]["id"]
    with pytest.raises(NotWaitingError):
        handle.approve(first)
    assert [request.id for request in handle.approvals()] == [second]
    handle.reject(second)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert [path.name for path in tmp_path.iterdir()] == ["good.docx"]


def test_a_second_answer_to_one_rounds_question_is_refused_in_the_next(start):
    def host(request):
        asks = {"Status": "PENDING", "Questions": [f"may I do {request.request}?"]}
        return asks if request.step == 1 else FINISH

    handle = start(host=host).submit(Task(plan=(PlanStep(request="one"), PlanStep(request="two"))))
    first = asked_for(handle, 1).data["request"]["id"]
    handle.answer(first, "yes")
    second = asked_for(handle, 2).data["request"]["id"]
    with pytest.raises(NotWaitingError):
        handle.answer(first, "yes")
    handle.answer(second, "no")
    assert handle.result(PATIENCE).ok


# Changes by the agent itself


def test_an_agents_changes_after_an_approval_are_not_taken_for_others(start, until, asked, paper):
    called, let_go = threading.Event(), threading.Event()

    def app(request):
        if len(paper.effects) == 1:
            called.set()
            assert let_go.wait(HELD)
            return act("later", function="stamp")
        return FINISH if paper.effects else act("approved")

    handle = start(app=app, servers=[paper], policy=APPROVE_APPENDS).submit(Task(**ALONE))
    handle.approve(asked(handle).id)
    assert called.wait(PATIENCE)
    handle.pause()
    let_go.set()
    until(handle, EventName.STEP_ENDED, actions=["stamp"], results=[])
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert paper.texts == ["approved", "later"]


def test_the_rest_of_an_approved_list_runs_after_a_pause_in_the_middle(start, until, asked, paper):
    paper.hold = "b"
    handle = start(app=[act("a", "b", "c", function="stamp", status="CONFIRM"), FINISH], servers=[paper]).submit(
        Task(**ALONE)
    )
    handle.approve(asked(handle).id)
    assert paper.begun.wait(PATIENCE)
    handle.pause()
    paper.let_go.set()
    until(handle, EventName.STEP_ENDED, results=["success", "success"])
    assert paper.texts == ["a", "b"]
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert paper.texts == ["a", "b", "c"]
    assert [event.name for event in handle.events()].count(EventName.APPROVAL_REQUESTED) == 1


def test_an_action_approved_for_the_task_runs_again_without_a_question(start, asked, paper):
    again = act("x", status="CONFIRM")
    handle = start(app=[again, again, FINISH], servers=[paper]).submit(Task(**ALONE))
    handle.approve(asked(handle).id, remember=True)
    assert handle.result(PATIENCE).ok
    assert paper.texts == ["x", "x"]


def test_change_by_another_program_before_an_approval_stops_its_action(start, asked, paper):
    handle = start(app=[act("x"), FINISH], servers=[paper], policy=APPROVE_APPENDS).submit(Task(**ALONE))
    request = asked(handle)
    paper.type("somebody else was here")
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert paper.texts == []


# Another one than was shown


class Window(MemoryServer):
    """A window that may show something else under the same id, and sends its current content."""

    def __init__(self):
        super().__init__(self.window())
        self.facts = {"title": "Invoice A", "process": "books.exe", "url": "https://books.example/a"}

    def observe(self, target):
        return super().observe(target).model_copy(update={"window": dict(self.facts)})

    @tool(effect=Effect.ONCE)
    def send(self, target: str) -> str:
        """Send the window's content."""
        self.effects.append((target, "window", self.facts["title"]))
        return "sent"


@pytest.mark.parametrize("fact", ["title", "process", "url"])
def test_an_approval_for_one_window_does_not_cover_another_with_its_id(start, asked, fact):
    surface, notes = Window(), []

    def app(request):
        notes.extend(request.observation.notes)
        return {"Status": "CONTINUE", "Function": "send"} if not request.memory else FINISH

    policy = [{"verdict": "approve", "tool": "send"}]
    handle = start(app=app, servers=[surface], policy=policy).submit(Task(**ALONE))
    request = asked(handle)
    surface.facts[fact] = "another"
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == []
    assert any(f"its {fact} is 'another' now" in note for note in notes)


# A target that is gone


class Closing(MemoryServer):
    """A window that is closed, and may come back."""

    def __init__(self):
        super().__init__(self.window())

    def come_back(self):
        self._targets["memo:one"] = self.window()
        self._controls["memo:one"] = {"field-1": ""}


GONE = "it can't be seen any more: memo:one is gone"


def seen_by_app(answers, notes):
    def app(request):
        notes.append(request.observation.notes)
        return answers[request.call - 1]

    return app


def test_whose_target_is_gone_may_wait_for_it_to_come_back(start, asked, until):
    surface, notes = Closing(), []
    answers = [act("a"), {"Status": "CONTINUE", "Comment": "I wait"}, {"Status": "PENDING", "Comment": "open it"}]
    handle = start(
        app=seen_by_app([*answers, act("a"), FINISH], notes), servers=[surface], policy=APPROVE_APPENDS
    ).submit(Task(**ALONE))
    request = asked(handle)
    surface.remove("memo:one")
    handle.approve(request.id)
    until(handle, EventName.QUESTION_ASKED)
    surface.come_back()
    handle.answer(handle.questions()[0].id, "it is open")
    handle.approve(asked_for(handle, 3).data["request"]["id"])
    assert handle.result(PATIENCE).ok
    assert [GONE in seen for seen in notes] == [False, True, True, False, False]
    assert surface.effects == [("memo:one", "field-1", "a")]


def test_whose_target_stays_away_may_give_up(start, asked, until):
    surface, notes = Closing(), []
    answers = [act("a"), {"Status": "PENDING", "Comment": "open it"}, {"Status": "FAIL", "Comment": "it is gone"}]
    handle = start(app=seen_by_app(answers, notes), servers=[surface], policy=APPROVE_APPENDS).submit(Task(**ALONE))
    request = asked(handle)
    surface.remove("memo:one")
    handle.approve(request.id)
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "I can not")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[0].reason) == (Outcome.FAILED, "it is gone")
    assert [GONE in seen for seen in notes] == [False, True, True]


# Denied by a later rule


def test_a_list_is_not_put_before_a_person_if_a_later_action_is_denied(start, paper):
    both = {"Status": "CONTINUE", "Actions": [*act("a")["Actions"], *act("b", function="write")["Actions"]]}
    notes = []
    policy = [*APPROVE_APPENDS, {"verdict": "deny", "tool": "write", "reason": "never"}]
    handle = start(app=seen_by_app([both, FINISH], notes), servers=[paper], policy=policy).submit(Task(**ALONE))
    assert handle.result(PATIENCE).ok
    assert EventName.APPROVAL_REQUESTED not in [event.name for event in handle.events()]
    assert paper.texts == []
    assert notes[1] == ("append was not run: skipped, because write is denied", "write failed: denied: never")


def test_an_approval_by_rule_lists_all_that_is_left_of_the_answer(start, asked, paper):
    both = {"Status": "CONTINUE", "Actions": [*act("a")["Actions"], *act("b", function="write")["Actions"]]}
    handle = start(app=[both, FINISH], servers=[paper], policy=APPROVE_APPENDS).submit(Task(**ALONE))
    request = asked(handle)
    assert [action.tool for action in request.actions] == ["append", "write"]
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert paper.texts == ["a", "b"]


# Remembered approvals, and those left by a pause, are for the window that a person saw


class Titled(MemoryServer):
    """Windows whose titles change, as those of a mail program do."""

    def __init__(self, *targets):
        super().__init__(*targets or (self.window(),))
        self.title = "Invoice A"
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.hold = ""

    def observe(self, target):
        return super().observe(target).model_copy(update={"window": {"title": self.title}})

    @tool(effect=Effect.ONCE)
    def pay(self, target: str, text: str) -> str:
        """Pay something."""
        if text == self.hold:
            self.begun.set()
            assert self.let_go.wait(HELD)
        self.effects.append((target, self.title, text))
        return text


PAY = {"Status": "CONTINUE", "Function": "pay", "Args": {"text": "1"}}
APPROVE_PAYMENTS = [{"verdict": "approve", "tool": "pay"}]


def test_an_approval_for_the_task_is_asked_for_again_in_another_window(start):
    fields = {"kind": TargetKind.WINDOW, "address": "app/memo/one", "server": "memory"}
    windows = [Target(id=key, name=key, binds={"target": key}, **fields) for key in ("w1", "w2")]
    surface, asked = Titled(*windows), []

    def host(request):
        wanted = {1: "w1", 2: "w2"}.get(request.call)
        return {"Status": "ASSIGN", "ControlText": wanted, "Current Sub-Task": wanted} if wanted else FINISH

    supervisor = start(
        host=host, app=lambda request: PAY if request.step == 1 else FINISH, servers=[surface], policy=APPROVE_PAYMENTS
    )
    handle = supervisor.submit(Task(request="x"))
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            (request,) = handle.approvals()
            asked.append(request.target.id)
            handle.approve(request.id, remember=True)
    assert handle.result(PATIENCE).ok
    assert asked == ["w1", "w2"]


def test_an_approval_for_the_task_is_asked_for_again_after_a_new_title(start, asked):
    surface = Titled()
    surface.hold = "1"
    handle = start(app=[PAY, PAY, FINISH], servers=[surface], policy=APPROVE_PAYMENTS).submit(Task(**ALONE))
    first = asked(handle)
    handle.approve(first.id, remember=True)
    assert surface.begun.wait(PATIENCE)
    surface.title = "Invoice B"
    surface.let_go.set()
    second = asked_for(handle, 2)
    assert second.name is EventName.APPROVAL_REQUESTED
    handle.reject(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED


def test_an_approved_list_does_not_resume_in_another_window_after_a_pause(start, asked, until):
    surface = Titled()
    surface.hold = "1"
    pay = {"Status": "FINISH", "Actions": [{"Function": "pay", "Args": {"text": text}} for text in "123"]}
    handle = start(app=[pay, FINISH], servers=[surface], policy=APPROVE_PAYMENTS).submit(Task(**ALONE))
    handle.approve(asked(handle).id)
    assert surface.begun.wait(PATIENCE)
    handle.pause()
    surface.let_go.set()
    until(handle, EventName.STEP_ENDED, results=["success"])
    surface.title = "Invoice B"
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("memo:one", "Invoice A", "1")]
