"""Agents at work on a real desktop, under a supervisor."""

import io
import time

from PIL import Image

from callboard import FunctionModel, Outcome, Supervisor, Task
from callboard.messages import EventName, ResultStatus
from callboard.surfaces.desktop._processes import is_alive
from support import PATIENCE

TURNS = 2
"""The number of times that an agent types 50 keys."""
PAPER = (255, 255, 255)
SENTENCE = "Seen in pixels alone: äß€"


def paper(picture):
    """Find the middle of the white part of a picture, as a person does who looks for where to write."""
    with Image.open(io.BytesIO(picture)) as opened:
        image = opened.convert("RGB")
    white = [y for y in range(image.height) if image.getpixel((image.width // 2, y)) == PAPER]
    return {"x": image.width // 2, "y": white[len(white) // 2]}


def host(kind):
    """Open the editor, have it worked in by a kind of agent, and finish with the result."""

    def decide(request):
        if not request.memory:
            opened = {"function": "open_in_desktop", "arguments": {"application": "editor", "arguments": {}}}
            return {"Status": "CONTINUE", "Actions": [opened]}
        if not request.subtasks:
            window = request.memory[0].results[0].value["id"]
            return {"Status": "ASSIGN", "ControlText": f"{kind}{window}", "Current Sub-Task": "Write and save"}
        return {"Status": "FINISH", "Comment": request.subtasks[-1].outcome}

    return FunctionModel(decide)


def test_an_operator_writes_and_saves_by_the_picture_alone(desktop_settings, tmp_path):
    file = tmp_path / "seen.txt"
    shown = []

    def decide(request):
        shown.append(request.observation)
        steps = [
            {"action": "click_at", **paper(request.observation.picture)},
            {"action": "type_text", "text": SENTENCE},
            {"action": "press_keys", "keys": "ctrl+s"},
            {"action": "type_text", "text": str(file)},
            {"action": "press_keys", "keys": "Return"},
        ]
        done = len(request.memory)
        return {"Status": "CONTINUE", "Action": steps[done]} if done < len(steps) else {"Status": "FINISH"}

    models = {"host": host("operator:"), "operator": FunctionModel(decide)}
    with Supervisor.start(desktop_settings(), models=models) as supervisor:
        handle = supervisor.submit(Task(request="Write a sentence and save it"))
        result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert file.read_text(encoding="utf-8").strip() == SENTENCE
    ended = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert {each["status"] for each in ended} == {ResultStatus.SUCCESS.value}
    assert all(seen.picture for seen in shown)


def test_an_app_agent_does_the_same_by_its_controls(desktop_settings, tmp_path):
    file = tmp_path / "told.txt"
    steps = [
        {"Function": "type_text", "Args": {"text": SENTENCE}},
        {"Function": "choose_menu", "Args": {"path": ["File", "Save As"]}},
        {"ControlText": "Name:", "Function": "set_text", "Args": {"text": str(file)}},
        {"ControlText": "Save", "Function": "press"},
        {"Function": "wait_for", "Args": {"text": "told.txt"}},
    ]

    def decide(request):
        done = len(request.memory)
        return {"Status": "CONTINUE", **steps[done]} if done < len(steps) else {"Status": "FINISH"}

    models = {"host": host(""), "app": FunctionModel(decide)}
    with Supervisor.start(desktop_settings(), models=models) as supervisor:
        result = supervisor.submit(Task(request="Write a sentence and save it")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert file.read_text(encoding="utf-8").strip() == SENTENCE


def test_application_a_task_opened_is_closed_after_the_grace_time(desktop_settings):
    models = {"host": host(""), "app": FunctionModel(lambda _: {"Status": "FINISH"})}
    settings = desktop_settings()
    closing = settings.model_copy(update={"desktop": settings.desktop.model_copy(update={"grace": 0.5})})
    with Supervisor.start(closing, models=models) as supervisor:
        handle = supervisor.submit(Task(request="Open the editor"))
        result = handle.result(PATIENCE)
        (pid,) = {int(event.agent.rpartition("/")[2]) for event in handle.events() if event.agent.startswith("app/")}
        assert result.outcome is Outcome.FINISHED, result.causes
        end = time.monotonic() + PATIENCE
        while is_alive(pid):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_two_agents_type_into_two_windows_each_into_its_own(desktop_settings):
    def decide(request):
        letter = request.task_id[0]
        done = len(request.memory)
        if done < TURNS:
            one = {"function": "type_text", "arguments": {"text": letter * 10}}
            return {"Status": "CONTINUE", "Actions": [one] * 5}
        (text,) = [each.detail["text"] for each in request.observation.controls if each.kind == "text"]
        return {"Status": "FINISH", "Result": text}

    models = {"host": host(""), "app": FunctionModel(decide)}
    with Supervisor.start(desktop_settings(), models=models) as supervisor:
        handles = [supervisor.submit(Task(id=letter, request="Write")) for letter in "ab"]
        results = [handle.result(PATIENCE) for handle in handles]
    assert [result.outcome for result in results] == [Outcome.FINISHED] * 2, [result.causes for result in results]
    texts = [result.subtasks[-1].output for result in results]
    assert texts == [letter * 10 * 5 * TURNS for letter in "ab"]
