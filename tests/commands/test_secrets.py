"""Secrets: only tools get the values: no model, event, blackboard, journal or result."""

from __future__ import annotations

import base64
import json

import docx
import pytest
from mcp_types import CallToolResult
from pydantic import SecretStr

from callboard import EventName, Outcome, Settings, Task, tool
from callboard.actors.commands import Secrets
from callboard.config import keys_of, output_redactor
from callboard.messages import Effect, Observation, TaskRefusedError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, PNG, lone

PASSWORD = "correct horse battery"
LOGIN = {
    "Status": "CONTINUE",
    "Function": "append",
    "Args": {"control_id": "field-1", "text": "${secret:password}"},
}


def task(**fields):
    return Task(request="log in", target="memo:one", secrets={"password": SecretStr(PASSWORD)}, **fields)


def test_a_tool_gets_the_value_and_everything_else_the_name(start, tmp_path):
    surface, asked = MemoryServer(MemoryServer.window()), []

    def app(request):
        asked.append(request)
        return LOGIN if request.call == 1 else FINISH

    log = tmp_path / "log.json"
    supervisor = start(
        app=app,
        servers=[surface],
        journal={"path": tmp_path / "journal.db"},
        log={"file": log, "level": "debug"},
    )
    handle = supervisor.submit(task(id="t"))
    result = handle.result(PATIENCE)
    assert result.ok, result.causes
    assert surface.effects == [("memo:one", "field-1", PASSWORD)]
    assert asked[0].secrets == ("password",)
    events = [event.model_dump_json() for event in handle.events()]
    board = supervisor.blackboard("t").model_dump_json()
    supervisor.stop()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for text in (repr(asked), *events, board, result.model_dump_json(), repr(kept), log.read_text()):
        assert PASSWORD not in text
    assert "${secret:password}" in json.dumps(asked[1].observation.model_dump(mode="json"))


def test_error_of_a_tool_is_reported_without_the_secret_value(start):
    class Strict(MemoryServer):
        @tool(effect=Effect.ONCE)
        def spell(self, target: str, text: str) -> str:
            """Refuse a text."""
            msg = f"no such word: {text}"
            raise ValueError(msg)

    answer = {"Status": "FINISH", "Function": "spell", "Args": {"text": "${secret:password}"}}
    notes = []

    def app(request):
        notes[:] = request.observation.notes
        return answer if request.call == 1 else {"Status": "FAIL"}

    start(app=app, servers=[Strict(MemoryServer.window())]).submit(task()).result(PATIENCE)
    assert any("no such word: ${secret:password}" in note for note in notes)
    assert PASSWORD not in str(notes)


def test_a_secret_of_the_settings_is_there_for_all_tasks(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=[LOGIN, FINISH], servers=[surface], secrets={"password": PASSWORD})
    assert supervisor.submit(Task(request="log in", target="memo:one")).result(PATIENCE).ok
    assert surface.effects[0][2] == PASSWORD
    assert PASSWORD not in repr(supervisor.settings)


def test_a_missing_secret_fails_the_action_and_names_the_known_ones(start):
    notes = []

    def app(request):
        notes[:] = request.observation.notes
        return LOGIN if request.call == 1 else {"Status": "FAIL"}

    handle = start(app=app).submit(lone(secrets={"pin": SecretStr("1234")}))
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert any("there is no secret 'password'; there are: pin" in note for note in notes)


def test_task_secrets_are_lost_with_the_process_and_the_model_sees_it(start, tmp_path, until):
    journal = {"path": tmp_path / "journal.db"}
    ask = {"Status": "PENDING", "Comment": "shall I?"}
    first = start(app=[ask], journal=journal)
    handle = first.submit(task(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    notes = []

    def app(request):
        notes[:] = request.observation.notes
        return LOGIN if request.call == 2 else {"Status": "FAIL"}

    handle = start(app=app, journal=journal).handle("t")
    assert handle.task.secrets == {"password": None}
    assert handle.resume()  # it waits for its secrets; it is to go on without
    handle.answer(handle.questions()[0].id, "yes")
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert any("are lost with the process" in note for note in notes)


def test_a_secrets_name_must_be_plain():
    with pytest.raises(ValueError, match="pattern"):
        Task(request="x", secrets={"my pass": SecretStr("x")})


def test_a_task_whose_secrets_were_lost_waits_until_they_are_given_again(start, tmp_path, until):
    journal, surface, seen = {"path": tmp_path / "journal.db"}, MemoryServer(MemoryServer.window()), []
    ask = {"Status": "PENDING", "Comment": "shall I?"}
    first = start(app=[LOGIN, ask], servers=[surface], journal=journal)
    handle = first.submit(task(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()

    def app(request):
        seen.append(request.observation.model_dump_json())
        return FINISH

    second = start(app=app, servers=[surface], journal=journal)
    handle = second.handle("t")
    assert second.status().tasks[0].paused
    handle.answer(handle.questions()[0].id, "yes")
    assert second.submit(task(id="t")).result(PATIENCE).ok
    assert PASSWORD not in "".join(seen)
    assert "${secret:password}" in seen[0]


def test_a_secret_in_an_error_or_a_persons_answer_is_not_recorded(start, tmp_path, until):
    log, path = tmp_path / "log.json", tmp_path / "journal.db"

    def app(request):
        if request.call == 1:
            return {"Status": "PENDING", "Comment": "what is it?"}
        msg = f"the provider says: {PASSWORD!r} is wrong"
        raise ValueError(msg)

    supervisor = start(app=app, journal={"path": path}, log={"file": log})
    handle = supervisor.submit(task(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, f"it is {PASSWORD}")
    result = handle.result(PATIENCE)
    assert "${secret:password}" in result.causes[-1].reason
    events = "".join(event.model_dump_json() for event in handle.events())
    supervisor.stop()
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert PASSWORD not in repr(kept) + events + log.read_text()


@pytest.mark.parametrize("secret", ['pass"word', "pässword", 'päss"word', "päss\\word\n"])
@pytest.mark.parametrize("write", [str, repr, json.dumps, lambda value: json.dumps(value, ensure_ascii=False)])
def test_a_secret_is_redacted_however_it_is_written_in_a_text(secret, write):
    secrets = Secrets({})
    secrets.keep(Task(id="t", request="x", secrets={"password": SecretStr(secret)}))
    written = write(secret)
    quote = "" if written == secret else written[0]
    seen = secrets.redact("t", Observation(text=f"it is {written}."))
    assert seen.text == f"it is {quote}${{secret:password}}{quote}."


@pytest.mark.parametrize("secret", ["1234", "step", "true", "finished", 'a "quoted"\nline', "iVBORw0K"])
def test_a_secret_of_any_form_is_redacted_and_does_not_stop_the_work(start, tmp_path, secret):
    class Pictured(MemoryServer):
        def observe(self, target):
            return super().observe(target).model_copy(update={"picture": PNG, "text": f"it is {secret}"})

    seen = []

    def app(request):
        seen.append(request.observation)
        call = {"control_id": "field-1", "text": "${secret:password}"}
        return {"Status": "FINISH", "Comment": f"it was {secret}", "Function": "append", "Args": call}

    surface = Pictured(MemoryServer.window())
    supervisor = start(app=app, servers=[surface], journal={"path": tmp_path / "journal.db"})
    given = Task(id="t-12345", request="x", target="memo:one", secrets={"password": SecretStr(secret)})
    result = supervisor.submit(given).result(PATIENCE)
    assert result.ok, result.causes
    assert surface.effects == [("memo:one", "field-1", secret)]
    assert seen[0].picture is None  # the secret's place in it is unknown
    assert seen[0].text == "it is ${secret:password}"
    assert result.comment == "it was ${secret:password}"


AGAIN = {
    "of the settings": ({"secrets": {"password": PASSWORD}}, {}),
    "of the task": ({}, {"secrets": {"password": SecretStr(PASSWORD)}}),
}


@pytest.mark.parametrize("kept", [True, False], ids=["file", "memory"])
@pytest.mark.parametrize(("settings", "fields"), AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("named", [{"id": "t"}, {"key": f"log in with {PASSWORD}"}], ids=["id", "key"])
def test_a_task_that_quotes_a_secret_submitted_again_is_the_same_task(start, tmp_path, settings, fields, named, kept):
    surface = MemoryServer(MemoryServer.window())
    journal = {"path": tmp_path / "journal.db" if kept else None}
    given = Task(request=f"log in with {PASSWORD}", target="memo:one", **named, **fields)
    ids = []
    for _ in range(2 if kept else 1):
        supervisor = start(app=[LOGIN, FINISH], servers=[surface], journal=journal, **settings)
        for _ in range(2):
            handle = supervisor.submit(given.model_copy(update={} if "id" in named else {"id": Task(request="x").id}))
            assert handle.result(PATIENCE).ok
            ids.append(handle.task_id)
        supervisor.stop()
    assert len(set(ids)) == 1
    assert len(surface.effects) == 1
    assert PASSWORD not in repr(b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()))


@pytest.mark.parametrize("kept", [True, False], ids=["file", "memory"])
def test_keys_that_differ_in_a_secret_alone_are_two_tasks(start, tmp_path, kept):
    surface = MemoryServer(MemoryServer.window())
    journal = {"path": tmp_path / "journal.db" if kept else None}
    supervisor = start(app=[LOGIN, FINISH], servers=[surface], journal=journal)
    accounts = ["DE4711", "DE9999", "DE4711"]
    ids = [
        supervisor.submit(
            Task(key=f"pay {account}", request="pay", target="memo:one", secrets={"password": SecretStr(account)})
        )
        .result(PATIENCE)
        .task_id
        for account in accounts
    ]
    assert ids[0] == ids[2] != ids[1]
    assert [text for _, _, text in surface.effects] == accounts[:2]


def test_a_long_key_that_quotes_a_secret_can_be_read_again(start, tmp_path):
    journal, secrets = {"path": tmp_path / "journal.db"}, {"a-name-that-is-longer-than-its-value": SecretStr("12345")}
    given = Task(key="12345" * 40, request="x", target="memo:one", secrets=secrets)
    first = start(app=[FINISH], journal=journal)
    assert first.submit(given).result(PATIENCE).ok
    first.stop()
    assert start(app=[FINISH], journal=journal).handle(given.id).result(PATIENCE).ok


def test_a_key_is_found_again_when_it_has_become_a_secret(start, tmp_path):
    journal, given = {"path": tmp_path / "journal.db"}, Task(key="order 47110815", request="x", target="memo:one")
    first = start(app=[FINISH], journal=journal)
    first.submit(given).result(PATIENCE)
    first.stop()
    second = start(app=[FINISH], journal=journal, secrets={"account": "47110815"})
    assert second.submit(given.model_copy(update={"id": Task(request="x").id})).task_id == given.id


def test_another_task_of_the_same_id_is_refused_despite_the_same_secret(start):
    supervisor = start(app=[FINISH])
    supervisor.submit(task(id="t")).result(PATIENCE)
    with pytest.raises(TaskRefusedError, match="for another task"):
        supervisor.submit(task(id="t", labels={"password": PASSWORD}))


def test_a_secret_within_another_or_within_its_name_is_fully_redacted():
    secrets = Secrets({})
    values = {"pin": "4711", "account": "DE4711-0815", "4711": "secret:account"}
    given = Task(id="t", request="x", secrets={name: SecretStr(value) for name, value in values.items()})
    secrets.keep(given)
    seen = secrets.redact("t", Observation(text="DE4711-0815 4711 secret:account ${secret:4711}"))
    assert seen.text == "${secret:account} ${secret:pin} ${secret:4711} ${secret:4711}"
    assert secrets.redact("t", seen) == seen


def test_a_secret_that_is_called_as_it_reads_can_be_read_again(start, tmp_path):
    for _ in range(2):
        supervisor = start(app=[FINISH], journal={"path": tmp_path / "journal.db"})
        given = Task(id="t", request="x", target="memo:one", secrets={"hunter22": SecretStr("hunter22")})
        assert supervisor.submit(given).result(PATIENCE).ok
        supervisor.stop()


def test_the_same_task_again_does_not_resume_what_a_person_paused(start, tmp_path, until):
    surface, journal = MemoryServer(MemoryServer.window()), {"path": tmp_path / "journal.db"}
    ask = {"Status": "PENDING", "Comment": "shall I?"}
    first = start(app=[ask], servers=[surface], journal=journal)
    handle = first.submit(task(id="t"))
    until(handle, EventName.QUESTION_ASKED)
    handle.pause()
    first.submit(task(id="t"))
    assert first.status().tasks[0].paused
    first.stop()
    second = start(app=[ask, LOGIN, FINISH], servers=[surface], journal=journal)
    again = second.submit(task(id="t"))
    assert second.status().tasks[0].paused
    again.answer(again.questions()[0].id, "yes")
    assert again.resume()
    assert again.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == [PASSWORD]


def test_secrets_given_again_let_a_task_resume_that_lacks_nothing_else(start, tmp_path, until):
    surface, journal = MemoryServer(MemoryServer.window()), {"path": tmp_path / "journal.db"}
    first = start(app=[{"Status": "PENDING", "Comment": "shall I?"}], servers=[surface], journal=journal)
    until(first.submit(task(id="t")), EventName.QUESTION_ASKED)
    first.stop()
    second = start(servers=[surface], journal=journal)
    assert second.status().tasks[0].lacks == (
        "its secrets were lost with their process; no model is set for app agents"
    )
    second.submit(task(id="t"))
    assert second.status().tasks[0].lacks == "no model is set for app agents"
    second.stop()
    third = start(app=[FINISH], servers=[surface], journal=journal)
    assert third.status().tasks[0].lacks == "its secrets were lost with their process"
    third.submit(task(id="t"))
    assert [(each.paused, each.lacks) for each in third.status().tasks] == [(False, "")]


@pytest.mark.parametrize(
    ("settings", "fields"),
    [({"secrets": {"account": "DE4711"}}, {}), ({}, {"secrets": {"account": SecretStr("DE4711")}})],
    ids=["of the settings", "of the task"],
)
def test_a_task_whose_id_holds_a_secret_is_refused_before_anything_is_done(start, tmp_path, settings, fields):
    log = tmp_path / "log.json"
    supervisor = start(app=[FINISH], journal={"path": tmp_path / "journal.db"}, log={"file": log}, **settings)
    given = Task(id="pay-DE4711", request="pay", target="memo:one", **fields)
    with pytest.raises(ValueError, match="its id contains the secret 'account'") as refused:
        supervisor.submit(given)
    assert "DE4711" not in str(refused.value)
    assert supervisor.submit(given.model_copy(update={"id": "pay-1"})).result(PATIENCE).ok
    supervisor.stop()
    assert "DE4711" not in repr(b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()))


SPELLED = [
    r"ab\/12XYZ9é",
    "ab%2F12XYZ9%C3%A9",
    "ab%2f12XYZ9%c3%a9",
    r"ab/12XYZ9\u00E9",
    r"ab\\/12XYZ9\\u00e9",
    "ab/12XYZ9%C3%A9",
]


@pytest.mark.parametrize("written", SPELLED)
def test_a_secret_is_found_as_json_and_addresses_may_write_it(written):
    secrets = Secrets({})
    secrets.keep(Task(id="t", request="x", secrets={"pw": "ab/12XYZ9é"}))
    assert secrets.redact("t", Observation(text=f"so {written}!")).text == "so ${secret:pw}!"


@pytest.mark.parametrize(
    "shown", ["hunter2-l…", "hunter2-long-pas … (99 characters)", "a hunt…, hunter2-long-password…"]
)
def test_the_beginning_of_a_secret_that_was_cut_is_redacted(shown):
    secrets = Secrets({})
    secrets.keep(Task(id="t", request="x", secrets={"pw": "hunter2-long-password"}))
    seen = secrets.redact("t", Observation(text=shown)).text
    assert "hunt" not in seen
    assert "${secret:pw}…" in seen.replace(" …", "…")


def test_a_document_that_shows_a_secrets_name_can_be_worked_on(start, tmp_path):
    document = docx.Document()
    for text in ("Use ${secret:nope} here", "Use ${secret:apikey} here"):
        document.add_paragraph(text)
    document.save(str(tmp_path / "letter.docx"))
    edits = [{"control_id": f"paragraph-{n}", "text": f"edited {n}"} for n in (1, 2)]
    answers = [{"Status": "CONTINUE", "Function": "edit_paragraph", "Args": each} for each in edits]
    given = {"documents": {"workspace": str(tmp_path)}, "secrets": {"apikey": "sk-0123456789"}}
    policy = [{"verdict": "allow"}]
    handle = start(app=[*answers, FINISH], servers=[], policy=policy, **given).submit(lone("letter.docx"))
    result = handle.result(PATIENCE)
    assert result.ok, result.causes
    texts = [paragraph.text for paragraph in docx.Document(str(tmp_path / "letter.docx")).paragraphs]
    assert texts == ["edited 1", "edited 2"]


def test_settings_key_in_the_text_of_a_program_is_written(start):
    surface, key = MemoryServer(MemoryServer.window()), "sk-0123456789"
    call = {"Status": "FINISH", "Function": "append", "Args": {"control_id": "field-1", "text": f"key {key}"}}
    supervisor = start(app=[call, FINISH], servers=[surface], providers={"openai": {"api_key": key}})
    handle = supervisor.submit(lone())
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", f"key {key}")]
    assert key not in "".join(event.model_dump_json() for event in handle.events())


def test_ordinary_text_of_an_address_is_redacted_only_in_the_log():
    settings = Settings(providers={"local": {"url": "http://127.0.0.1/v1?workspace=projects-2024"}})
    assert list(keys_of(settings)) == []
    assert output_redactor(settings).text("in projects-2024") == "in **********"


@pytest.mark.parametrize("depth", [0, 240], ids=["bytes", "too deep"])
def test_refused_answer_is_not_stored(start, tmp_path, depth):
    class Blob(MemoryServer):
        @tool(effect=Effect.ONCE)
        def blob(self, target: str) -> CallToolResult:
            """Answer with something that can't be written down."""
            answer = PASSWORD.encode()
            for _ in range(depth):
                answer = [answer]
            return CallToolResult(content=[], structured_content={"x": answer})

    seen = []

    def app(request):
        seen.extend(result for record in request.memory for result in record.results)
        return {"Status": "CONTINUE", "Function": "blob"} if request.call == 1 else FINISH

    supervisor = start(app=app, servers=[Blob(MemoryServer.window())], journal={"path": tmp_path / "journal.db"})
    result = supervisor.submit(task(id="t")).result(PATIENCE)
    supervisor.stop()
    assert result.ok, result.causes
    assert [(each.value, bool(each.error)) for each in seen] == [(None, True)]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept
    assert base64.b64encode(PASSWORD.encode())[:20] not in kept
