"""A secret in all that a person, a model, a tool or a surface can fill is in nothing that is kept, shown or asked."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard import EventName, Task, tool
from callboard.actors.runtime import committing, post_note
from callboard.actors.servers import ToolError
from callboard.messages import Control, Effect, PlanStep
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
            said = {"text": f"it is {secret}", "window": {"title": secret, secret: {"in": secret}}}
            return seen.model_copy(update={"controls": (*seen.controls, shown, hidden), **said})

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
