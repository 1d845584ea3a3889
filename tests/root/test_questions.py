"""Questions: an agent that can't go on asks, and goes on with a person's answer."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import EventName, FunctionModel, Outcome, Task
from callboard.messages import AnswerRefusedError, NotWaitingError, SupervisorStoppedError
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, HELD, PATIENCE, lone, told

COLOURS = {"Question": "which colour?", "choices": ["red", "green"]}


def ask(*questions):
    return {"Status": "PENDING", "Questions": list(questions or ["which file?"])}


@pytest.fixture
def asked(until):
    """Wait for a task's first question, and give it."""

    def wait(handle):
        until(handle, EventName.QUESTION_ASKED)
        (question,) = handle.questions()
        return question

    return wait


def events_of(handle, name):
    return [event for event in handle.events() if event.name is name]


def moves(handle, agent="app/memo/one"):
    changes = [event for event in events_of(handle, EventName.STATE_CHANGED) if event.agent == agent]
    return [(event.data["source"], event.data["target"], event.data["by"]) for event in changes]


def tried(act, *arguments):
    """Call something, and return the exception raised."""
    try:
        act(*arguments)
    except Exception as error:  # the test looks at it
        return error
    return None


# Questions and answers


def test_question_has_its_agent_text_choices_and_deadline(start, asked):
    clock = VirtualClock(1000.0)
    handle = start(app=[ask(COLOURS), FINISH], clock=clock, limits={"question_seconds": 30}).submit(lone())
    question = asked(handle)
    assert (question.task_id, question.address, question.deadline) == (handle.task_id, "app/memo/one", 1030.0)
    (only,) = question.questions
    assert (only.text, only.choices) == ("which colour?", ("red", "green"))


def test_a_question_is_an_event(start, asked, until):
    handle = start(app=[ask(), FINISH]).submit(lone())
    question = asked(handle)
    told = until(handle, EventName.QUESTION_ASKED).data["request"]
    assert (told["id"], told["questions"]) == (question.id, [{"text": "which file?"}])


def test_an_answer_in_free_text_reaches_the_model(start, asked):
    notes = []
    handle = start(app=told([ask(), FINISH], notes)).submit(lone())
    handle.answer(asked(handle).id, "sales.docx")
    assert handle.result(PATIENCE).ok
    assert notes[1] == ("asked 'which file?', a person answered 'sales.docx'",)
    assert moves(handle)[1:3] == [("CONTINUE", "PENDING", "model"), ("PENDING", "CONTINUE", "user")]


def test_any_text_is_an_answer_and_the_model_gets_exactly_that(start):
    notes, waiting = {}, threading.Semaphore(0)

    def app(request):
        notes[request.task_id] = request.observation.notes
        return FINISH if request.memory else ask()

    supervisor = start(app=app)
    supervisor.subscribe(lambda event: waiting.release() if event.name is EventName.QUESTION_ASKED else None)

    @given(st.text())
    def any_text(text):
        handle = supervisor.submit(lone())
        assert waiting.acquire(timeout=PATIENCE)
        handle.answer(handle.questions()[0].id, text)
        assert handle.result(PATIENCE).ok
        assert notes[handle.task_id] == (f"asked 'which file?', a person answered {text!r}",)

    any_text()


@pytest.mark.parametrize("text", ["go on", "stop"])
def test_the_words_of_the_budgets_question_are_nothing_special_elsewhere(start, asked, text):
    notes = []
    budget = {"task": {"steps": 2}}
    handle = start(app=told([ask("And now?"), {"Status": "CONTINUE"}, FINISH], notes), budget=budget).submit(lone())
    handle.answer(asked(handle).id, text)
    assert handle.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET
    assert notes[1] == (f"asked 'And now?', a person answered {text!r}",)


def test_a_choice_is_answered_with_one_of_its_choices(start, asked):
    notes = []
    handle = start(app=told([ask(COLOURS), FINISH], notes)).submit(lone())
    handle.answer(asked(handle).id, "green")
    assert handle.result(PATIENCE).ok
    assert notes[1] == ("asked 'which colour?', a person answered 'green'",)


@pytest.mark.parametrize("texts", [("blue",), ("",), ("RED",), (), ("red", "green")])
def test_an_invalid_answer_is_refused_and_the_question_stays_open(start, asked, texts):
    handle = start(app=[ask(COLOURS), FINISH]).submit(lone())
    question = asked(handle)
    with pytest.raises(AnswerRefusedError):
        handle.answer(question.id, *texts)
    assert handle.questions() == (question,)
    handle.answer(question.id, "red")
    assert handle.result(PATIENCE).ok


def test_a_refused_answer_names_the_choices(start, asked):
    handle = start(app=[ask(COLOURS), FINISH]).submit(lone())
    with pytest.raises(AnswerRefusedError, match="choose one of: red, green"):
        handle.answer(asked(handle).id, "blue")


def test_several_questions_at_once_are_answered_together_in_order(start, asked):
    notes = []
    handle = start(app=told([ask("which file?", COLOURS), FINISH], notes)).submit(lone())
    question = asked(handle)
    assert [each.text for each in question.questions] == ["which file?", "which colour?"]
    with pytest.raises(AnswerRefusedError, match="asks 2 questions, and got 1"):
        handle.answer(question.id, "sales.docx")
    handle.answer(question.id, "sales.docx", "red")
    assert handle.result(PATIENCE).ok
    assert notes[1] == (
        "asked 'which file?', a person answered 'sales.docx'",
        "asked 'which colour?', a person answered 'red'",
    )


def test_several_tasks_ask_at_once_and_are_answered_in_any_order(start, asked):
    windows = [MemoryServer.window(str(number)) for number in range(3)]
    app = FunctionModel(lambda request: FINISH if request.memory else ask(f"what about {request.target.id}?"))
    supervisor = start(app=app, servers=[MemoryServer(*windows)])
    handles = [supervisor.submit(lone(window.id)) for window in windows]
    questions = [asked(handle) for handle in handles]
    assert {open_.id for open_ in supervisor.status().questions} == {question.id for question in questions}
    for handle, question in reversed(list(zip(handles, questions, strict=True))):
        handle.answer(question.id, "yes")
        assert handle.result(PATIENCE).ok


def test_one_task_may_ask_again(start):
    notes = []
    handle = start(app=told([ask("one?"), ask("two?"), FINISH], notes)).submit(lone())
    for event in handle.events():
        if event.name is EventName.QUESTION_ASKED:
            handle.answer(event.data["request"]["id"], event.data["request"]["questions"][0]["text"].upper())
    assert handle.result(PATIENCE).ok
    assert notes[1:] == [("asked 'one?', a person answered 'ONE?'",), ("asked 'two?', a person answered 'TWO?'",)]


def test_a_question_without_words_asks_with_the_models_comment(start, asked):
    handle = start(app=[{"Status": "PENDING", "Comment": "no table found"}, FINISH]).submit(lone())
    assert asked(handle).questions[0].text == "no table found"


def test_a_host_agent_asks_too(start, asked):
    notes = []
    handle = start(host=told([ask(), FINISH], notes)).submit(Task(request="plan"))
    assert asked(handle).address == f"host/{handle.task_id}"
    handle.answer(asked(handle).id, "sales.docx")
    assert handle.result(PATIENCE).ok
    assert notes[1] == ("asked 'which file?', a person answered 'sales.docx'",)


def test_record_names_the_person_who_answered(start, asked):
    supervisor = start(app=[ask(), FINISH])
    handle = supervisor.submit(lone())
    handle.answer(asked(handle).id, "sales.docx", by="ada")
    assert handle.result(PATIENCE).ok
    (answered,) = events_of(handle, EventName.QUESTION_ANSWERED)
    assert (answered.data["answer"]["by"], answered.data["answer"]["texts"]) == ("ada", ["sales.docx"])
    assert [row.author for row in supervisor.blackboard(handle.task_id).questions] == ["app/memo/one", "ada"]


def test_an_answer_may_come_from_any_thread(start, asked):
    handle = start(app=[ask(), FINISH]).submit(lone())
    thread = threading.Thread(target=handle.answer, args=(asked(handle).id, "sales.docx"))
    thread.start()
    thread.join(PATIENCE)
    assert handle.result(PATIENCE).ok


# No answer


def test_unanswered_question_fails_as_timed_out(start, asked):
    clock = VirtualClock()
    handle = start(app=[ask()], clock=clock, limits={"question_seconds": 30}).submit(lone())
    asked(handle)
    clock.advance(29)
    assert len(handle.questions()) == 1
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.causes[0].reason == "nobody answered the question in time"
    assert moves(handle)[2:] == [("PENDING", "FAIL", "timeout"), ("FAIL", "FINISH", "system")]


def test_host_agent_continues_after_a_question_of_its_agent_timed_out(start, asked):
    clock = VirtualClock()
    supervisor = start(host=[ASSIGN, FINISH], app=[ask()], clock=clock, limits={"question_seconds": 30})
    handle = supervisor.submit(Task(request="write"))
    asked(handle)
    clock.advance(30)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.subtasks[0].outcome) == (Outcome.FINISHED, Outcome.TIMED_OUT)


@pytest.mark.parametrize("kind", ["host", "app"])
def test_model_gets_a_note_that_no_answer_will_come_when_questions_are_off(start, kind):
    notes = []
    supervisor = start(**{kind: told([ask(), FINISH], notes)}, system={"ask_question": False})
    handle = supervisor.submit(lone() if kind == "app" else Task(request="plan"))
    assert handle.result(PATIENCE).ok
    assert notes[1] == ("nobody will answer questions: decide yourself, or say FAIL",)
    assert events_of(handle, EventName.QUESTION_ASKED) == []
    agent = "app/memo/one" if kind == "app" else f"host/{handle.task_id}"
    assert ("PENDING", "CONTINUE", "system") in moves(handle, agent)


def test_model_that_only_asks_is_stopped_when_questions_are_off(start):
    supervisor = start(app=lambda _: ask(), system={"ask_question": False})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "no progress" in result.causes[0].reason


# Races: the first word wins


def test_of_two_answers_the_first_wins_and_the_second_gets_a_clear_error(start, asked):
    notes = []
    handle = start(app=told([ask(), FINISH], notes)).submit(lone())
    question = asked(handle)
    handle.answer(question.id, "one")
    with pytest.raises(NotWaitingError, match="it was answered"):
        handle.answer(question.id, "two")
    assert handle.result(PATIENCE).ok
    assert notes[1] == ("asked 'which file?', a person answered 'one'",)


def test_of_many_answers_at_once_exactly_one_wins(start, asked):
    notes, said, barrier = [], [], threading.Barrier(10)
    handle = start(app=told([ask(), FINISH], notes)).submit(lone())
    question = asked(handle)

    def answer(number):
        barrier.wait(PATIENCE)
        said.append((number, tried(handle.answer, question.id, str(number))))

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    (winner,) = [number for number, error in said if error is None]
    assert {type(error) for number, error in said if number != winner} == {NotWaitingError}
    assert handle.result(PATIENCE).ok
    assert notes[1] == (f"asked 'which file?', a person answered '{winner}'",)


@pytest.mark.parametrize("_round", range(10))
def test_an_answer_at_the_deadline_is_either_in_time_or_refused(start, asked, _round):
    clock, barrier = VirtualClock(), threading.Barrier(2)
    handle = start(app=[ask(), FINISH], clock=clock, limits={"question_seconds": 30}).submit(lone())
    question = asked(handle)

    def pass_the_deadline():
        barrier.wait(PATIENCE)
        clock.advance(30)

    thread = threading.Thread(target=pass_the_deadline)
    thread.start()
    barrier.wait(PATIENCE)
    error = tried(handle.answer, question.id, "just in time")
    thread.join(PATIENCE)
    assert isinstance(error, NotWaitingError | None)
    assert handle.result(PATIENCE).outcome is (Outcome.FINISHED if error is None else Outcome.TIMED_OUT)
    assert len(events_of(handle, EventName.QUESTION_ANSWERED)) == 1


def test_an_answer_after_the_deadline_gets_a_clear_error(start, asked):
    clock = VirtualClock()
    handle = start(app=[ask()], clock=clock, limits={"question_seconds": 30}).submit(lone())
    question = asked(handle)
    clock.advance(30)
    with pytest.raises(NotWaitingError, match="reached its deadline"):
        handle.answer(question.id, "too late")
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_an_answer_after_a_cancel_gets_a_clear_error(start, asked):
    handle = start(app=[ask()]).submit(lone())
    question = asked(handle)
    handle.cancel()
    with pytest.raises(NotWaitingError, match="was cancelled"):
        handle.answer(question.id, "too late")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert handle.questions() == ()


def test_a_cancel_while_the_answer_is_on_its_way_ends_the_task(start, asked, until):
    held, go = threading.Event(), threading.Event()

    class Slow(MemoryServer):
        answered = False

        def observe(self, target):
            if self.answered:
                held.set()
                assert go.wait(HELD)
            return super().observe(target)

    app, surface = FunctionModel(lambda _: ask()), Slow(MemoryServer.window())
    handle = start(app=app, servers=[surface]).submit(lone())
    question = asked(handle)
    surface.answered = True
    handle.answer(question.id, "this one")
    assert held.wait(PATIENCE)
    handle.cancel()
    until(handle, EventName.STATE_CHANGED, target="FAIL")
    go.set()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert app.calls == 1


@pytest.mark.parametrize("act", ["approve", "reject"])
def test_a_question_is_not_decided_on_like_an_approval(start, asked, act):
    handle = start(app=[ask(), FINISH]).submit(lone())
    question = asked(handle)
    with pytest.raises(AnswerRefusedError, match="is a question"):
        getattr(handle, act)(question.id)
    handle.answer(question.id, "sales.docx")
    assert handle.result(PATIENCE).ok


def test_a_question_belongs_to_its_task(start, asked):
    windows = MemoryServer.window("one"), MemoryServer.window("two")
    supervisor = start(app=FunctionModel(lambda _: ask()), servers=[MemoryServer(*windows)])
    one, two = (supervisor.submit(lone(window.id)) for window in windows)
    question = asked(one)
    with pytest.raises(NotWaitingError):
        two.answer(question.id, "yes")
    assert one.questions() == (question,)


def test_an_answer_after_the_supervisor_stopped_gets_a_clear_error(start, asked):
    supervisor = start(app=[ask()])
    handle = supervisor.submit(lone())
    question = asked(handle)
    supervisor.stop()
    with pytest.raises(SupervisorStoppedError):
        handle.answer(question.id, "too late")


# Other work meanwhile


def test_a_subtask_that_waits_for_an_answer_keeps_its_target(start, asked, until):
    app = FunctionModel(lambda request: FINISH if request.memory or request.request == "second" else ask())
    supervisor = start(app=app)
    first = supervisor.submit(lone())
    question = asked(first)
    second = supervisor.submit(lone(request="second"))
    until(second, EventName.SUBTASK_QUEUED)
    assert not second.done()
    first.answer(question.id, "sales.docx")
    assert first.result(PATIENCE).ok
    assert second.result(PATIENCE).ok


def test_task_and_subtask_clocks_stand_still_while_a_person_is_asked(start, asked):
    clock = VirtualClock()
    limits = {"task_seconds": 60, "subtask_seconds": 60, "question_seconds": 10_000}
    handle = start(host=[ASSIGN, FINISH], app=[ask(), FINISH], clock=clock, limits=limits).submit(Task(request="x"))
    question = asked(handle)
    clock.advance(9_999)
    handle.answer(question.id, "sales.docx")
    assert handle.result(PATIENCE).ok


def test_an_answer_while_the_task_is_paused_is_used_after_the_pause(start, asked, until):
    app = FunctionModel(lambda request: FINISH if request.memory else ask())
    handle = start(app=app).submit(lone())
    question = asked(handle)
    handle.pause()
    handle.answer(question.id, "sales.docx")
    until(handle, EventName.STATE_CHANGED, source="PENDING")
    assert app.calls == 1
    handle.resume()
    assert handle.result(PATIENCE).ok


def test_an_answer_is_written_down_before_the_agent_hears_of_it(start, asked):
    handle = start(app=[ask(), FINISH]).submit(lone())
    handle.answer(asked(handle).id, "sales.docx")
    assert handle.result(PATIENCE).ok
    (answered,) = events_of(handle, EventName.QUESTION_ANSWERED)
    heard = next(e for e in events_of(handle, EventName.STATE_CHANGED) if e.data["source"] == "PENDING")
    assert answered.seq < heard.seq
