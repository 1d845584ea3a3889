"""Controls that delete, replace, send or spend are not pressed without an approval, however they are pressed."""

import io

import pytest
from PIL import Image

from callboard import EventName, FunctionModel, Outcome, Supervisor, Task, answers
from callboard.messages import Hazard
from callboard.surfaces import ToolError
from callboard.surfaces.desktop._desktop_applications import DesktopApplication
from support import PATIENCE

OPENS = {"verdict": "allow", "tool": "open_in_desktop"}
REFUSES = {"verdict": "deny", "hazards": ["overwrites"]}


def question(text, label, *more):
    return ["zenity", "--question", f"--text={text}", f"--ok-label={label}", "--cancel-label=Keep", *more]


APPLICATIONS = {"replace": question("The file exists.", "_Replace")}


def right_answer(seen):
    """Return the point of the right one of two buttons, which only the picture shows."""
    with Image.open(io.BytesIO(seen.picture)) as picture:
        return {"x": picture.width * 3 // 4, "y": picture.height - 25}


def named(observation, name):
    return next(control for control in observation.controls if control.name == name)


WAYS = {
    "app": [
        lambda seen: ("press", {"control_id": named(seen, "Replace").id}),
        lambda seen: ("click", {"control_id": named(seen, "Replace").id}),
        lambda seen: ("click", {"control_id": named(seen, "Replace").id, "count": 2}),
        lambda seen: ("drag", {"control_id": named(seen, "Replace").id, "to": named(seen, "Replace").id}),
        lambda seen: ("press_keys", {"keys": "Return"}),
        lambda seen: ("press_keys", {"keys": "KP_Enter"}),
        lambda seen: ("press_keys", {"keys": "space", "control_id": named(seen, "Replace").id}),
        lambda seen: ("press_keys", {"keys": "Return", "control_id": named(seen, "Replace").id}),
        lambda seen: ("press_keys", {"keys": "alt+r"}),
        lambda seen: ("type_text", {"text": "\n"}),
        lambda seen: ("type_text", {"text": "\t\t "}),
    ],
    "operator": [
        lambda seen: ("click_at", right_answer(seen)),
        lambda seen: ("click_at", {**right_answer(seen), "count": 2}),
        lambda seen: ("drag_at", {"x": 5, "y": 5, **{f"to_{axis}": at for axis, at in right_answer(seen).items()}}),
        lambda seen: ("press_keys", {"keys": "space"}),
    ],
}


@pytest.fixture
def work(desktop_settings):
    """Have an agent of a kind take steps in an application; return their results, and the approvals."""

    def do(application, steps, rules, kind="app"):
        results, asked, shown = [], [], []

        def host(request):
            if request.subtasks:
                return answers.finish("done")
            if not request.memory:
                return answers.act("open_in_desktop", {"application": application})
            window = request.memory[0].results[0].value["id"]
            wanted = f"operator:{window}" if kind == "operator" else window
            return answers.assign("answer it", wanted)

        def decide(request):
            results[:] = [result for record in request.memory for result in record.results]
            shown.append(request.observation)
            if len(results) >= len(steps):
                return answers.finish("done")
            tool, arguments = steps[len(results)](shown[0])
            return answers.act(tool, arguments)

        settings = desktop_settings(
            desktop={"display": "private", "applications": APPLICATIONS, "installed": False},
            policy=[*rules, OPENS],
            limits={"action_failures": 99},
        )
        models = {"host": FunctionModel(host), kind: FunctionModel(decide)}
        with Supervisor.start(settings, models=models) as supervisor:
            handle = supervisor.submit(Task(request="answer it"))
            for event in handle.events():
                if event.name == EventName.APPROVAL_REQUESTED:
                    for approval in handle.approvals():
                        asked.extend(action.tool for action in approval.actions)
                        handle.approve(approval.id, by="a person")
            assert handle.result(PATIENCE).outcome is Outcome.FINISHED
        return results, asked

    return do


def test_a_replacing_button_is_pressed_only_once_approved(work):
    results, asked = work("replace", [lambda seen: ("press", {"control_id": named(seen, "Replace").id})], [])
    assert asked == ["press"]
    assert results[-1].value["changed"]


@pytest.mark.parametrize("kind", WAYS)
def test_no_way_to_press_a_replacing_button_gets_past_a_rule(work, kind):
    results, _ = work("replace", WAYS[kind], [REFUSES], kind)
    assert [result.error.split(" (")[0] for result in results] == ["denied: rule 1 of the policy"] * len(WAYS[kind])


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (
            question("Do you want to overwrite the file?", "Yes"),
            {
                ("press", "Yes", ""): {Hazard.OVERWRITES},
                ("press", "Keep", ""): set(),
                ("press_keys", "", "Escape"): set(),
                ("press_keys", "", "Return"): {Hazard.OVERWRITES},
            },
        ),
        (question("Do you want tea?", "Yes"), {("press", "Yes", ""): set(), ("press_keys", "", "Return"): set()}),
        (
            question("Gone?", "Löschen", "--default-cancel"),
            {
                ("press_keys", "", "Return"): set(),
                ("press_keys", "", "alt+k"): set(),
                ("press_keys", "", "alt+l"): {Hazard.DELETES},
                ("press_keys", "Löschen", "space"): {Hazard.DELETES},
                ("type_text", "", "x"): set(),
                ("type_text", "", "\t "): {Hazard.DELETES},
            },
        ),
        (
            ["zenity", "--entry", "--text=Message:", "--ok-label=发送"],
            {
                ("type_text", "", "replace this text"): set(),
                ("type_text", "", "replace this text\n"): {Hazard.SENDS},
                ("press_keys", "", "ctrl+a"): set(),
                ("press", "发送", ""): {Hazard.SENDS},
            },
        ),
    ],
)
def test_hazards_are_those_of_the_pressed_control(surface, start, options, calls):
    surface._require_desktop().applications["it"] = DesktopApplication("it", "it", options)
    window = start("it")
    for (tool, control, keys), hazards in calls.items():
        arguments = {"control_id": window.control(control).id} if control else {}
        arguments |= {"text" if tool == "type_text" else "keys": keys} if keys else {}
        assert surface.hazards(window.target, tool, arguments, ()) == hazards, (tool, control, keys)


def test_keys_do_not_go_to_a_dialog_that_was_not_judged(surface, start):
    editor = start("editor")
    assert surface.hazards(editor.target, "press_keys", {"keys": "Return"}, ()) == set()
    editor.do("choose_menu", path=["Help", "About"])
    with pytest.raises(ToolError, match="another window of the program has come up"):
        editor.do("press_keys", keys="Return")
