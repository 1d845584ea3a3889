"""The judge of a FINISH: a model that sees the evidence, and no word of an agent."""

from __future__ import annotations

import asyncio
import io
import threading

import pytest
from PIL import Image

from callboard import EventName, ModelAnswer, Outcome, PlanStep, Task
from callboard.messages import Judge, TaskRefusedError
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import MemoryServer, assert_replays
from support import ASSIGN, FINISH, PATIENCE, call

QUESTION = "Is the value of South 1?"
YES = {"Answers": [{"Reason": "The row is there.", "Answer": "yes"}]}
NO = {"Answers": [{"Reason": "There is no such row.", "Answer": "no"}]}
UNSURE = {"Answers": [{"Reason": "It is not shown.", "Answer": "unsure"}]}
FAIL = {"Status": "FAIL"}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in ("report.csv", "budget.csv"):
        (folder / name).write_text("name,value\nNorth,400\n", encoding="utf-8")
    return folder


@pytest.fixture
def submit(start, folder, tmp_path):
    """Submit a task on report.csv with a judge, whose model answers in order."""

    def run(*judged, do=None, answers=(FINISH, FINISH, FINISH), question=QUESTION, asked=None, settings=None, **fields):
        given, said = iter(judged), iter(answers)
        asked = [] if asked is None else asked

        def host(request):
            if request.evidence is None:
                return next(said)
            asked.append(request)
            return next(given)

        def app(request):
            if do is not None and request.step == 1:
                do(folder)
            return next(said)

        more = {"journal": {"path": tmp_path / "journal.db"}, **(settings or {})}
        run.supervisor = start(servers=[DocumentSurface(folder)], app=app, host=host, **more)
        task = {"request": "Add South", "target": "report.csv", "judge": Judge(question=question), **fields}
        return run.supervisor.submit(Task(**task))

    return run


def add(folder):
    (folder / "report.csv").write_text("name,value\nNorth,400\nSouth,1\n", encoding="utf-8")


def told(handle):
    return [event.data for event in handle.events() if event.name is EventName.JUDGE_ANSWERED]


def test_a_yes_lets_the_task_finish_and_never_verifies(submit):
    handle = submit(YES, do=add)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, None)
    assert [(each.question, each.answer, each.reason) for each in result.judged] == [
        (QUESTION, "yes", "The row is there.")
    ]
    assert result.subtasks[0].judged == result.judged
    (event,) = told(handle)
    assert event["answers"][0]["answer"] == "yes"


def test_judge_that_answers_no_refuses_the_finish_with_its_reason(start, folder):
    asked, given = [], iter([NO, YES])

    def app(request):
        asked.append(request)
        return FINISH

    supervisor = start(servers=[DocumentSurface(folder)], app=app, host=lambda _: next(given))
    handle = supervisor.submit(Task(request="x", target="report.csv", judge=Judge(question=QUESTION)))
    result = handle.result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["yes"])
    assert [each["answers"][0]["answer"] for each in told(handle)] == ["no", "yes"]
    notes = asked[1].observation.notes
    assert f"a judge of files and pictures says no to {QUESTION!r}: no, There is no such row." in notes
    assert [request.call for request in asked] == [1, 2]  # the judge's calls are none of the agent's


def test_an_agent_that_is_refused_too_often_fails_with_the_reason(submit):
    result = submit(NO, NO, NO).result(PATIENCE)
    assert (result.outcome, result.verified) == (Outcome.FAILED, None)
    (cause,) = result.causes
    assert cause.reason == f"the judge says no to {QUESTION!r}: no, There is no such row."


def test_an_unsure_is_only_shown(submit):
    result = submit(UNSURE).result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["unsure"])


def test_judge_sees_the_evidence_and_no_text_of_an_agent(submit):
    asked = []
    answers = ({**FINISH, "Comment": "SPOKEN", "Thought": "SPOKEN", "Result": "SPOKEN", "Plan": []},)
    submit(YES, do=add, answers=answers, asked=asked).result(PATIENCE)
    (request,) = asked
    evidence = request.evidence
    assert evidence.changes == '"report.csv" was changed:\n- line added: "South,1"'
    assert (evidence.request, evidence.questions) == ("Add South", (QUESTION,))
    assert "SPOKEN" not in repr(vars(request)) + repr(evidence)
    assert (request.memory, request.subtasks, request.tools) == ((), (), ())


def test_the_judge_is_asked_once_all_checks_hold(submit):
    checks = [{"text": "report.csv", "contains": "South"}]
    result = submit(YES, do=None, answers=(FINISH, FAIL), checks=checks).result(PATIENCE)
    assert (result.outcome, result.judged) == (Outcome.FAILED, ())


def test_an_answer_that_is_not_valid_is_sent_back_then_unsure(submit):
    asked = []
    result = submit({"Answers": []}, YES, do=add, asked=asked).result(PATIENCE)
    assert [each.answer for each in result.judged] == ["yes"]
    assert "there are 0, and 1 question" in asked[1].reasons[0]


@pytest.mark.parametrize("answer", [{"Answers": []}, {"answers": [{"answer": "maybe"}]}, "Sure!", {"Status": "FINISH"}])
def test_without_a_valid_answer_each_question_is_unsure(submit, answer):
    result = submit(*[answer] * 9, do=add).result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["unsure"])
    assert "the judge's answer is invalid" in result.judged[0].problem


def test_a_judge_whose_model_fails_is_unsure(submit):
    result = submit(do=add).result(PATIENCE)
    assert [each.answer for each in result.judged] == ["unsure"]
    assert result.judged[0].problem
    assert result.outcome is Outcome.FINISHED


def test_several_questions_have_an_answer_each(submit):
    both = {"Answers": [*YES["Answers"], *NO["Answers"]]}
    result = submit(both, answers=(FINISH, FAIL), question=["one?", "two?"]).result(PATIENCE)
    assert [(each.question, each.answer) for each in result.judged] == [("one?", "yes"), ("two?", "no")]


def test_the_calls_of_the_judge_are_counted_and_no_calls_of_the_agent(submit):
    def paid(content):
        return ModelAnswer(content=content, input_tokens=100, output_tokens=10, cost=0.5)

    handle = submit(paid(NO), paid(YES))
    result = handle.result(PATIENCE)
    assert (result.usage.model_calls, result.usage.input_tokens, result.usage.cost) == (4, 200, 1.0)
    assert [event["cost"] for event in told(handle)] == [0.5, 0.5]


def test_a_budget_that_the_judge_exceeds_ends_the_task(submit):
    result = submit(YES, do=add, budget={"model_calls": 1}).result(PATIENCE)
    assert (result.outcome, result.judged) == (Outcome.OUT_OF_BUDGET, ())


def test_a_budget_that_the_judge_exceeded_is_replayed(submit, tmp_path):
    handle = submit(YES, do=add, budget={"model_calls": 1})
    handle.result(PATIENCE)
    submit.supervisor.stop()
    assert assert_replays(tmp_path / "journal.db", handle.task_id)


def test_a_judge_that_a_stop_interrupted_is_asked_again(start, folder, tmp_path):
    asked, journal = threading.Event(), {"path": tmp_path / "journal.db"}

    async def never(request):
        asked.set()
        await asyncio.Event().wait()

    write = call("append_rows", "FINISH", rows=[["South", "1"]])
    first = start(servers=[DocumentSurface(folder)], app=[write], host=never, journal=journal)
    handle = first.submit(Task(request="x", target="report.csv", judge=Judge(question=QUESTION)))
    assert asked.wait(PATIENCE)
    first.stop()
    second = start(servers=[DocumentSurface(folder)], app=[], host=lambda _: YES, journal=journal)
    result = second.handle(handle.task_id).result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["yes"])
    assert (folder / "report.csv").read_text(encoding="utf-8").count("South") == 1


def test_the_judges_answers_are_replayed_as_recorded(submit, tmp_path):
    handle = submit(NO, YES, do=add)
    handle.result(PATIENCE)
    submit.supervisor.stop()
    assert assert_replays(tmp_path / "journal.db", handle.task_id)


def test_the_contents_from_before_survive_a_restart(submit, start, folder, tmp_path, until):
    handle = submit(do=add, answers=({"Status": "PENDING", "Comment": "which?"},))
    until(handle, EventName.QUESTION_ASKED)
    submit.supervisor.stop()
    asked = []

    def host(request):
        asked.append(request)
        return YES

    second = start(
        servers=[DocumentSurface(folder)], app=lambda _: FINISH, host=host, journal={"path": tmp_path / "journal.db"}
    )
    again = second.handle(handle.task_id)
    again.answer(again.questions()[0].id, "this one")
    assert [each.answer for each in again.result(PATIENCE).judged] == ["yes"]
    assert 'line added: "South,1"' in asked[0].evidence.changes


def test_without_a_journal_in_a_file_the_contents_are_kept_in_memory(submit):
    asked = []
    submit(YES, do=add, asked=asked, settings={"journal": {}}).result(PATIENCE)
    assert 'line added: "South,1"' in asked[0].evidence.changes


def test_a_judge_without_a_model_is_refused(start, folder):
    supervisor = start(servers=[DocumentSurface(folder)], app=lambda _: FINISH)
    with pytest.raises(TaskRefusedError, match="no model is set for the judge"):
        supervisor.submit(Task(request="x", target="report.csv", judge=Judge(question="ok?")))


def test_a_task_names_the_model_of_its_judge(start, folder):
    supervisor = start(servers=[DocumentSurface(folder)], app=lambda _: FINISH, linux=lambda _: YES)
    judge = Judge(question="ok?", model="linux")
    result = supervisor.submit(Task(request="x", target="report.csv", judge=judge)).result(PATIENCE)
    assert [each.answer for each in result.judged] == ["yes"]
    with pytest.raises(TaskRefusedError, match="is not a known model"):
        supervisor.submit(Task(request="x", target="report.csv", judge=Judge(question="ok?", model="nobody")))


def test_a_secret_is_no_part_of_the_evidence(submit):
    asked = []
    secrets = {"portal": {"value": "swordfish-4711"}}

    def leak(folder):
        (folder / "report.csv").write_text("swordfish-4711\n", encoding="utf-8")

    handle = submit(YES, do=leak, asked=asked, settings={"secrets": secrets})
    handle.result(PATIENCE)
    assert "${secret:portal}" in asked[0].evidence.changes
    assert "swordfish" not in repr(asked[0].evidence)


@pytest.mark.parametrize("target", [None, "report.csv"])
def test_the_judge_of_a_plan_is_asked_at_its_end(submit, target):
    asked = []
    plan = [PlanStep(request="one"), PlanStep(request="two", target=target)]
    handle = submit(YES, answers=[FINISH] * 4, asked=asked, plan=plan, target=None, request="")
    result = handle.result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["yes"])
    assert [request.evidence.request for request in asked] == ["- one\n- two"]


class Screen(MemoryServer):
    """A window with a picture of one pixel, lighter in each look."""

    pictures, looks = True, 0

    def observe(self, target, look):
        """Show one pixel."""
        self.looks += 1
        picture = png(Image.new("L", (1, 1), self.looks)) if look.picture else None
        return super().observe(target, look).model_copy(update={"picture": picture})


def png(image):
    kept = io.BytesIO()
    image.save(kept, "PNG")
    return kept.getvalue()


def lightness(pictures):
    return Image.open(io.BytesIO(pictures[0])).convert("L").getpixel((0, 0))


def test_the_judge_sees_pictures_before_and_after(start):
    asked = []

    def host(request):
        asked.append(request.evidence)
        return YES

    written = call("write", control_id="field-1", text="Bob")
    surface = Screen(MemoryServer.window())
    supervisor = start(servers=[surface], app=[written, FINISH], host=host)
    judge = Judge(question="ok?")
    supervisor.submit(Task(request="x", target="memo:one", judge=judge)).result(PATIENCE)
    assert [(len(each.before), len(each.after)) for each in asked] == [(1, 1)]


def test_the_judge_of_a_host_agent_sees_the_windows_of_its_subtasks(start):
    asked, given = [], iter([ASSIGN, FINISH])

    def host(request):
        if request.evidence is None:
            return next(given)
        asked.append(request.evidence)
        return YES

    surface = Screen(MemoryServer.window())
    supervisor = start(servers=[surface], app=[call("write", "FINISH", control_id="field-1", text="Bob")], host=host)
    supervisor.submit(Task(request="x", judge=Judge(question="ok?"))).result(PATIENCE)
    assert [(len(each.before), len(each.after), each.unseen) for each in asked] == [(1, 1, ())]
    assert lightness(asked[0].before) < lightness(asked[0].after)


def test_judge_is_informed_of_a_missing_picture_from_before_the_work(start):
    asked, given = [], iter([ASSIGN, FINISH])

    def host(request):
        if request.evidence is None:
            return next(given)
        asked.append(request.evidence)
        return YES

    def app(request):
        surface.dark = False
        return call("write", "FINISH", control_id="field-1", text="Bob")

    class Dark(Screen):
        dark = True

        def observe(self, target, look):
            return super().observe(target, look.model_copy(update={"picture": look.picture and not self.dark}))

    surface = Dark(MemoryServer.window())
    supervisor = start(servers=[surface], app=app, host=host)
    supervisor.submit(Task(request="x", judge=Judge(question="ok?"))).result(PATIENCE)
    assert [(len(each.before), len(each.after)) for each in asked] == [(0, 1)]
    (remark,) = asked[0].unseen
    assert remark.endswith("from before the work")


def test_the_calls_of_a_judge_are_metrics(submit):
    handle = submit({"Answers": []}, YES, settings={"observe": {"metrics": True}})
    handle.result(PATIENCE)
    text = submit.supervisor.metrics()
    (line,) = [
        line for line in text.splitlines() if line.startswith("callboard_model_calls_total") and "judged" in line
    ]
    assert line.endswith(" 2.0")
