"""Types of tasks' outputs: answers are checked, results are typed, journals keep the schema."""

from __future__ import annotations

import json
from datetime import date

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from callboard import EventName, Outcome, Task
from callboard.messages import STORED, OutputTypeError, TaskRefusedError
from callboard.testing import MemoryServer, assert_replays
from support import ASK, ASSIGN, FINISH, PATIENCE, append, lone


class Line(BaseModel):
    name: str
    price: float = 1.0


class Invoice(BaseModel):
    number: int
    due: date
    lines: list[Line] = []

    @field_validator("number")
    @classmethod
    def _known(cls, value):
        if value == 13:
            msg = "there is no invoice 13"
            raise ValueError(msg)
        return value


GIVEN = {"number": 7, "due": "2026-12-24", "lines": [{"name": "tea"}]}
INVOICE = Invoice(number=7, due=date(2026, 12, 24), lines=[Line(name="tea")])


def finish(result):
    """Make an answer that ends the work with a result."""
    return {**FINISH, "Result": result}


class Host:
    """A model that gives results in order, and keeps the requests it gets."""

    def __init__(self, *results):
        self.results = results
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        return finish(self.results[request.call - 1])

    @property
    def reasons(self):
        return self.requests[-1].reasons


def test_the_result_has_an_instance_of_the_output_type(start):
    host = Host(GIVEN)
    result = start(host=host).submit(Task(request="x"), output_type=Invoice).result(PATIENCE)
    assert result.output == INVOICE
    assert host.requests[0].output_schema == Invoice.model_json_schema()
    assert '"due":"2026-12-24"' in result.model_dump_json()


def test_an_output_that_does_not_fit_is_sent_back_with_the_reason(start):
    host = Host({"number": "one", "lines": [{}]}, {**GIVEN, "number": 13}, GIVEN)
    result = start(host=host).submit(Task(request="x"), output_type=Invoice).result(PATIENCE)
    assert result.output == INVOICE
    assert result.usage.repairs == 2
    assert "Result.due: Field required" in host.reasons[0]
    assert "Result.lines.0.name: Field required" in host.reasons[0]
    assert "Result.number: Value error, there is no invoice 13" in host.reasons[1]


@pytest.mark.parametrize("result", [None, "done", []], ids=repr)
def test_a_task_never_finishes_with_another_output(start, result):
    host = start(host=lambda _: finish(result), limits={"repairs": 1})
    ended = host.submit(Task(request="x"), output_type=Invoice).result(PATIENCE)
    assert (ended.outcome, ended.output) == (Outcome.ERROR, None)
    assert "Result does not fit its schema" in ended.causes[0].reason


def test_value_of_an_action_is_not_an_output(start):
    app = [append("x", "FINISH"), {**append("y", "FINISH"), "Result": "z"}]
    result = start(app=app).submit(lone(), output_type=str).result(PATIENCE)
    assert (result.output, result.usage.repairs) == ("z", 1)
    surface = MemoryServer(MemoryServer.window())
    ended = start(app=lambda _: append("x", "FINISH"), servers=[surface]).submit(lone(), output_type=str)
    assert ended.result(PATIENCE).output is None
    assert surface.effects == []


@pytest.mark.parametrize(
    ("output_type", "given", "expected"),
    [
        (list[Line], [{"name": "a"}], [Line(name="a")]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int, 3, 3),
        (Line | None, None, None),
        (tuple[int, str], [1, "a"], (1, "a")),
    ],
    ids=str,
)
def test_any_type_that_pydantic_validates_will_do(start, output_type, given, expected):
    handle = start(host=lambda _: finish(given)).submit(Task(request="x"), output_type=output_type)
    assert handle.result(PATIENCE).output == expected


@pytest.mark.parametrize("wrong", [MemoryServer, open, "Invoice"], ids=repr)
def test_a_type_without_a_schema_is_refused(start, wrong):
    supervisor = start()
    with pytest.raises(TypeError, match=r"output_type: .* can't be used"):
        supervisor.submit(Task(request="x"), output_type=wrong)
    assert supervisor.pending() == ()


class Unreadable(BaseModel):
    name: str = Field(pattern=r"^\p{L}+$")


class NoList(BaseModel):
    x: int = Field(json_schema_extra={"required": True})


class Referring(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"$ref": "#/foo"}]})


class Nowhere(BaseModel):
    x: dict[str, str] = {"$ref": "abc"}


@pytest.mark.parametrize("wrong", [Unreadable, NoList, Referring, Nowhere])
def test_a_type_whose_schema_no_task_may_have_is_refused(start, wrong):
    supervisor = start()
    with pytest.raises(TypeError, match=rf"output_type: {wrong.__name__} can't be used.*(JSON Schema|\$ref|abc)"):
        supervisor.submit(Task(request="x"), output_type=wrong)
    assert supervisor.pending() == ()


@pytest.mark.parametrize("wrong", [Unreadable, NoList, Referring])
def test_a_stored_schema_is_not_checked_again(wrong):
    body = json.dumps({"id": "t", "request": "x", "output_schema": wrong.model_json_schema()})
    assert Task.model_validate_json(body, context=STORED).output_schema == wrong.model_json_schema()
    with pytest.raises(ValueError, match="output_schema"):
        Task.model_validate_json(body)


@pytest.mark.parametrize(
    "schema",
    [
        {"$dynamicRef": "https://example.com/none"},
        {"properties": {"a": {"$id": "https://example.com/x", "$ref": "#/$defs/k"}}, "$defs": {"k": {}}},
        {"$defs": {"n": {"$ref": "#/$defs/n"}}, "$ref": "#/$defs/n"},
    ],
    ids=["dynamic", "behind an id", "circle"],
)
def test_an_output_whose_schema_is_broken_is_sent_back(start, schema):
    supervisor = start(host=lambda _: finish({"a": 1}), limits={"repairs": 1})
    ended = supervisor.submit(Task(request="x", output_schema=schema)).result(PATIENCE)
    assert (ended.outcome, ended.usage.repairs) == (Outcome.ERROR, 1)
    assert "Result: can't be checked" in ended.causes[0].reason


def test_only_the_last_round_of_a_plan_has_the_output(start):
    host = Host("any", "thing", GIVEN)
    task = Task(plan=["first", "second"])
    result = start(host=host).submit(task, output_type=Invoice).result(PATIENCE)
    assert result.output == INVOICE
    assert [request.output_schema is not None for request in host.requests] == [False, True, True]


def test_the_agent_of_a_last_step_has_the_output(start):
    app = Host("nothing", GIVEN)
    task = Task(plan=[{"request": "read it", "target": "memo:one"}])
    assert start(app=app).submit(task, output_type=Invoice).result(PATIENCE).output == INVOICE
    assert "Result.number" not in app.reasons[0]
    assert "should be an object" in app.reasons[0]


def test_a_result_that_comes_with_an_assignment_is_no_output(start):
    host = [{**ASSIGN, "Result": "soon"}]
    task = Task(plan=["read it"])
    assert start(host=host, app=Host(GIVEN)).submit(task, output_type=Invoice).result(PATIENCE).output == INVOICE


def test_agents_of_subtasks_have_no_output_type(start):
    app = Host("some text")
    result = start(host=[ASSIGN, finish(GIVEN)], app=app).submit(Task(request="x"), output_type=Invoice)
    assert result.result(PATIENCE).output == INVOICE
    assert app.requests[0].output_schema is None


def test_a_task_that_did_not_finish_has_no_output(start):
    host = [{"Status": "FAIL", "Comment": "no", "Result": "partly"}]
    result = start(host=host).submit(Task(request="x"), output_type=Invoice).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FAILED, None)


def test_several_tasks_and_follow_ups_have_output_types(start):
    supervisor = start(host=lambda request: finish(GIVEN if request.output_schema else "x"))
    first, second = supervisor.submit_all([Task(request="a"), Task(request="b")], output_type=Invoice)
    assert [first.result(PATIENCE).output, second.result(PATIENCE).output] == [INVOICE, INVOICE]
    assert first.follow_up("again").result(PATIENCE).output == "x"
    assert first.follow_up("again", output_type=Invoice).result(PATIENCE).output == INVOICE


async def test_an_awaited_handle_has_the_output(start):
    handle = await start(host=Host(GIVEN)).submit_async(Task(request="x"), output_type=Invoice)
    assert (await handle).output == INVOICE


def test_the_handle_of_an_ended_task_takes_the_type_again(begin):
    supervisor = begin(host=Host(GIVEN))
    handle = supervisor.submit(Task(request="x", key="k"), output_type=Invoice)
    assert handle.result(PATIENCE).ok
    supervisor.stop()
    after = begin()
    assert after.handle(handle.task_id).result().output == GIVEN
    assert after.handle(handle.task_id, output_type=Invoice).result().output == INVOICE
    assert after.submit(Task(request="x", key="k"), output_type=Invoice).result().output == INVOICE
    with pytest.raises(OutputTypeError, match=r"is no Line: Result\.name: Field required"):
        after.handle(handle.task_id, output_type=Line).result()
    with pytest.raises(OutputTypeError, match=r"is no Line: Result\.name: Field required"):
        after.submit(Task(request="x", key="k"), output_type=Line).result()
    with pytest.raises(TaskRefusedError, match="the key 'k' was used before"):
        after.submit(Task(request="x", key="k", output_schema=Line.model_json_schema()))


class Documented(Invoice):
    """An invoice, described after it was first asked for."""


@pytest.mark.parametrize("name", ["id", "key"])
def test_a_task_submitted_again_may_have_a_type_with_a_new_schema(start, name):
    supervisor, task = start(host=Host(GIVEN)), Task.model_validate({"request": "x", name: "t"})
    first = supervisor.submit(task, output_type=Invoice)
    again = supervisor.submit(task, output_type=Documented)
    assert first.result(PATIENCE).output == INVOICE
    assert again.task_id == first.task_id
    assert again.result(PATIENCE).output == Documented(**GIVEN)
    assert supervisor.submit(task, output_type=Documented).result(PATIENCE).output == Documented(**GIVEN)


def resumed(begin, until, host):
    """Start again while a task with an output type waits for a person."""
    before = begin(host=lambda _: ASK)
    handle = before.submit(Task(request="x", id="t"), output_type=Invoice)
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    return begin(host=host)


def answer(handle):
    handle.answer(handle.questions()[0].id, "this one")


def test_after_a_restart_the_schema_decides(begin, until, tmp_path):
    host = Host(None, {"number": "7"}, {**GIVEN, "number": 13})
    after = resumed(begin, until, host)
    (handle,) = after.pending()
    answer(handle)
    assert handle.result(PATIENCE).output == {**GIVEN, "number": 13}  # only the class knows that there is none
    assert "'due' is a required property" in host.reasons[0]
    assert_replays(tmp_path / "journal.db", "t")


@pytest.mark.parametrize("again", ["handle", "submit"])
def test_after_a_restart_the_class_decides_once_it_is_given(begin, until, tmp_path, again):
    host = Host(None, {**GIVEN, "number": 13}, {**GIVEN, "number": "7"})
    after = resumed(begin, until, host)
    if again == "handle":
        handle = after.handle("t", output_type=Invoice)
    else:
        handle = after.submit(Task(request="x", id="t"), output_type=Invoice)
    answer(handle)
    assert handle.result(PATIENCE).output == INVOICE
    assert "there is no invoice 13" in host.reasons[0]
    assert_replays(tmp_path / "journal.db", "t")


def test_a_schema_takes_the_place_of_a_class(start):
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"minimum": 3}}}
    host = Host({"n": 1}, {"n": 4})
    task = Task.model_validate_json(Task(request="x", output_schema=schema).model_dump_json())
    assert start(host=host).submit(task).result(PATIENCE).output == {"n": 4}
    assert host.reasons == ("Result does not fit its schema: Result.n: 1 is less than the minimum of 3",)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "objet"}, "is not a JSON Schema"),
        ({"$ref": "https://example.com/schema.json"}, "is no part of it"),
        ({"items": [{"$ref": "file:///etc/passwd"}], "prefixItems": []}, "is"),
        ({"anyOf": [{"$ref": "#/$defs/Missing"}]}, "is no part of it"),
        ({"$ref": "other.json#/$defs/x", "$defs": {"x": {}}}, "is no part of it"),
    ],
    ids=["no schema", "remote", "file", "missing", "other"],
)
def test_a_schema_that_refers_to_something_else_is_refused(schema, reason):
    with pytest.raises(ValueError, match=reason):
        Task(request="x", output_schema=schema)


def test_a_reference_behind_an_id_is_never_fetched(start):
    schema = {"$id": "http://127.0.0.1:9/x", "properties": {"$ref": {"$ref": "#/$defs/N"}}, "$defs": {"N": {}}}
    result = start(host=Host({"$ref": 1})).submit(Task(request="x", output_schema=schema)).result(PATIENCE)
    assert result.output == {"$ref": 1}


def test_a_task_has_one_schema_alone(start):
    with pytest.raises(ValueError, match="not that of Invoice: leave it out"):
        start().submit(Task(request="x", output_schema={"type": "object"}), output_type=Invoice)


def test_a_schema_that_quotes_a_secret_is_refused(start):
    supervisor = start(secrets={"password": "correct horse"})
    task = Task(request="x", output_schema={"description": "not correct horse"})
    with pytest.raises(ValueError, match="the schema of its output quotes a secret"):
        supervisor.submit(task)


def test_members_that_a_strict_mode_made_null_are_left_out(start):
    host = Host({**GIVEN, "lines": [{"name": "tea", "price": None}]})
    assert start(host=host).submit(Task(request="x"), output_type=Invoice).result(PATIENCE).output == INVOICE


class Code(BaseModel):
    code: str = Field(max_length=8)


def test_an_output_is_checked_with_its_secrets_redacted(start):
    host = Host({"code": "sesame"}, {"code": "none"})
    task = Task(request="x", secrets={"password": "sesame"})
    assert start(host=host).submit(task, output_type=Code).result(PATIENCE).output == Code(code="none")
    assert "at most 8 characters" in host.reasons[0]


def test_no_part_of_a_secret_is_in_the_reason_of_a_repair(start):
    password = "Zk9-" + "q7Wm2Xp4" * 5
    host = Host("x" * 270 + password, 1)
    task = Task(request="x", output_schema={"type": "integer"}, secrets={"password": password})
    handle = start(host=host).submit(task)
    assert handle.result(PATIENCE).output == 1
    (event,) = [event for event in handle.events() if event.name is EventName.MODEL_REPAIRED]
    assert "${secret:password}" in event.data["reason"]
    assert not [text for text in (event.data["reason"], *host.reasons) if "Zk9" in text]


class Rated(BaseModel):
    grade: str

    @field_validator("grade")
    @classmethod
    def _known(cls, value):
        return {"good": "A"}[value]


def test_error_of_a_validator_names_the_output_type(start):
    host = Host({"grade": "bad"}, {"grade": "good"})
    supervisor = start(host=host)
    handle = supervisor.submit(Task(request="x"), output_type=Rated)
    assert handle.result(PATIENCE).output == Rated.model_construct(grade="A")
    assert host.reasons[0].endswith("Result: the output_type Rated raised KeyError: 'bad'")
    other = supervisor.submit(Task(request="x", output_schema={}))
    with pytest.raises(OutputTypeError, match=r"is no Rated: .* raised KeyError: 'bad'"):
        supervisor.handle(other.task_id, output_type=Rated).result(PATIENCE)
