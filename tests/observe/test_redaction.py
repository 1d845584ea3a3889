"""A secret in all that a person, a model, a tool or a surface can fill is in nothing that is kept, shown or asked."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import openpyxl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard import EventName, Task, tool
from callboard.messages import Control, Effect, PlanStep
from callboard.models.prompt import prompt_of
from callboard.surfaces import ToolError, committing, post_note
from callboard.testing import MemoryServer
from support import PATIENCE, command_line

WRITTEN = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=6, max_size=14)


def forms(secret):
    """Give the ways in which it could stand in a file or a terminal."""
    written = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    return written | {json.dumps(form, ensure_ascii=False)[1:-1] for form in written}


def surface_of(secret):
    """Make a surface and tools with the secret in all that they say."""

    class Leaky(MemoryServer):
        def observe(self, target):
            seen = super().observe(target)
            shown = Control(id="shown", name=f"to {secret}", kind="field", detail={secret: [secret]})
            hidden = Control(id=f"for-{secret}", name="x", kind="field")
            odd = Control(id="odd", name="x", kind=f"field {secret}")
            said = {"text": f"it is {secret}", "window": {"title": secret, secret: {"in": secret}}}
            return seen.model_copy(update={"controls": (*seen.controls, shown, hidden, odd), **said})

        def save(self, target: str) -> dict[str, list[str]]:
            post_note(f"saved {secret}")
            with committing(Path(tempfile.gettempdir(), f"{secret}.txt")):
                return {secret: [secret, f"in {secret}"]}

        @tool(effect=Effect.ONCE)
        def refuse(self, target: str) -> str:
            """Refuse."""
            msg = f"{secret} is wrong"
            raise ToolError(msg)

        @tool(effect=Effect.ONCE)
        def crash(self, target: str) -> str:
            """Crash."""
            raise RuntimeError(secret)

    Leaky.save.__doc__ = f"Save {secret}."
    Leaky.save = tool(effect=Effect.ONCE)(Leaky.save)
    window = MemoryServer.window().model_copy(update={"name": f"memo of {secret}"})
    other = MemoryServer.window(f"of-{secret}")
    return Leaky(window, other)


def models_of(secret, requests):
    """Make models that say the secret wherever they may say anything."""
    words = {"Observation": secret, "Thought": secret, "Comment": secret, "Plan": [secret, f"then {secret}"]}

    def say(status, function="", **more):
        return {**words, "Status": status, **({"Function": function} if function else {}), **more}

    def app(request):
        requests.append(request)
        asked = [{"text": f"is it {secret}?"}]
        answers = [
            say("CONTINUE", "save"),
            say("CONTINUE", "refuse"),
            say("CONTINUE", "crash"),
            say("CONTINUE", "write", Args={"control_id": "field-1", "text": secret}),
            say("PENDING", Questions=asked),
            say("FINISH", Result={secret: secret}),
        ]
        if request.call > len(answers):
            raise ValueError(secret)
        return answers[request.call - 1]

    def host(request):
        requests.append(request)
        if request.call == 1:
            return say("ASSIGN", ControlText="memo:one", **{"Current Sub-Task": f"write {secret}"})
        return say("FAIL", Result=secret) if len(request.subtasks) > 1 else say("ASSIGN", ControlText="memo:one")

    return {"host": host, "app": app}


def answer_all(handle, secret):
    """Answer and approve as a person who says the secret, too."""
    people = []
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            people += [request.model_dump_json() for request in handle.approvals()]
            handle.approve(handle.approvals()[0].id, by=secret)
        if event.name is EventName.QUESTION_ASKED:
            people += [question.model_dump_json() for question in handle.questions()]
            handle.answer(handle.questions()[0].id, secret, by=secret)
    return people


@settings(max_examples=12)
@given(st.builds("Zq{}".format, WRITTEN), st.sampled_from(["task", "settings"]))
@example("Zq\"quo'ted\\back", "task")
@example("Zq%41 &+=?pä", "settings")
def test_a_secret_is_in_no_sink(spans, start, secret, of):
    of_the_task = of == "task"
    requests, reason = [], "ask" if of_the_task else f"ask about {secret}"  # written down before there was a task
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder)
        supervisor = start(
            **models_of(secret, requests),
            servers=[surface_of(secret)],
            journal={"path": kept / "journal.db"},
            log={"file": kept / "events.log", "level": "debug"},
            models={"record": kept / "calls.jsonl"},
            observe={"traces": True, "metrics": True},
            policy=[{"verdict": "approve", "tool": "write", "reason": reason}],
            secrets={} if of_the_task else {"pw": secret},
        )
        task = Task(
            request=f"use {secret}",
            labels={secret: secret},
            key=f"key of {secret}",
            plan=[f"first {secret}", PlanStep(request=f"then {secret}", target="memo:one")],
            secrets={"pw": secret} if of_the_task else {},
        )
        handle = supervisor.submit(task)
        supervisor.post(task.id, f"note of {secret}")
        people = answer_all(handle, secret)
        result = handle.result(PATIENCE)
        told = {
            "people": people,
            "requests": list(map(repr, requests)),
            "events": [event.model_dump_json() for event in handle.events()],
            "result": result.model_dump_json(),
            "status": supervisor.status().model_dump_json(),
            "blackboard": supervisor.blackboard(task.id).model_dump_json(),
            "metrics": supervisor.metrics(),
        }
        supervisor.stop()
        told["show"] = command_line("show", task.id, kept / "journal.db").output
        told["list"] = command_line("list", kept / "journal.db").output
        told["replay"] = command_line("replay", task.id, kept / "journal.db").output
        told["spans"] = [span.to_json() for span in spans.all]
        told |= {path.name: path.read_bytes().decode(errors="replace") for path in kept.rglob("*") if path.is_file()}
    assert {"journal.db", "events.log", "calls.jsonl"} <= told.keys()
    assert result.actions >= 2
    assert [(where, form) for where, texts in told.items() for form in forms(secret) if form in str(texts)] == []


class Meter(MemoryServer):
    """A surface that shows and answers a number, in several types."""

    def __init__(self, number):
        super().__init__(self.window())
        self._number = number

    def observe(self, target):
        seen = super().observe(target)
        shown = Control(id="shown", name="meter", kind="field", detail={"value": self._number, "all": [[self._number]]})
        return seen.model_copy(update={"controls": (*seen.controls, shown), "window": {"reading": self._number}})

    @tool(effect=Effect.READ)
    def measure(self, target: str) -> dict[str, object]:
        """Measure."""
        return {"reading": self._number, "rows": [[self._number, {"deep": self._number}]], str(self._number): 1}


def sinks_of(start, folder, target, answers, **given):
    """Run a task whose model sees all that an agent sees, and return whatever kept or showed something."""
    seen = []

    def app(request):
        seen.append(" ".join(part for part in prompt_of(request).user if isinstance(part, str)))
        seen.append(repr((request.observation.model_dump(), [record.model_dump() for record in request.memory])))
        return answers[request.call - 1]

    log, record = {"file": folder / "events.log", "level": "debug"}, {"record": folder / "calls.jsonl"}
    supervisor = start(app=app, log=log, models=record, journal={"path": folder / "journal.db"}, **given)
    handle = supervisor.submit(Task(id="t", request="read it", target=target))
    result = handle.result(PATIENCE)
    texts = {"seen": "".join(seen), "events": repr(list(handle.events())), "result": repr(result)}
    supervisor.stop()
    files = {path.name: path.read_bytes().decode(errors="replace") for path in folder.glob("[jec]*") if path.is_file()}
    assert {"journal.db", "events.log", "calls.jsonl"} <= files.keys()
    assert "${secret:pin" in texts["seen"]
    return {**texts, **files, "show": command_line("show", "t", folder / "journal.db").output}


@pytest.mark.parametrize("number", [48151623, 48151623.0, -48151623, 48151623.5, 104815162399])
def test_a_secret_that_comes_back_as_a_number_is_in_no_sink(start, tmp_path, number):
    answers = [{"Status": "CONTINUE", "Function": "measure"}, {"Status": "FINISH", "Result": {"it": number}}]
    sinks = sinks_of(start, tmp_path, "memo:one", answers, servers=[Meter(number)], secrets={"pin": "48151623"})
    assert [name for name, text in sinks.items() if "48151623" in text] == []


def test_a_secret_in_a_numeric_cell_is_in_no_sink(start, tmp_path):
    book = openpyxl.Workbook()
    for cell, value in {"A1": "n", "A2": 48151623, "A3": 48151623.0, "A4": "48,151,623", "B1": "m", "B2": 1}.items():
        book.active[cell] = value
    (tmp_path / "workspace").mkdir()
    book.save(tmp_path / "workspace" / "a.xlsx")
    answers = [{"Status": "CONTINUE", "Function": "read_range", "Args": {"cells": "A1:B4"}}, {"Status": "FINISH"}]
    documents = {"servers": [], "documents": {"workspace": tmp_path / "workspace"}}
    sinks = sinks_of(start, tmp_path, "a.xlsx", answers, secrets={"pin": "48151623"}, **documents)
    assert [name for name, text in sinks.items() if "48151623" in text or "48,151,623" in text] == []
