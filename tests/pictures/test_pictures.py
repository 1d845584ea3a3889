"""Pictures: labels where they are wanted, and no secrets, for models, people and the journal."""

from __future__ import annotations

import io
import itertools
import sys
import threading
from pathlib import Path

import pytest
from PIL import Image
from pydantic import SecretStr

from callboard import EventName, ModelAnswer, Server, Settings, Task, tool
from callboard.messages import Box, Control, Effect, LookBudget, Observation, SettingsError, Target, TargetKind
from callboard.testing import assert_replays
from support import FINISH, HELD, PATIENCE, action, actions, call, command_line, lone

PASSWORD = "correct horse battery"
SECRET = {"pw": {"value": PASSWORD, "parameters": ["text"]}}
PAPER, SHOWN, BLACK = (255, 255, 255), (10, 200, 30), (0, 0, 0)
BOXES = {name: Box(x=40, y=40 + 60 * row, width=120, height=30) for row, name in enumerate(("user", "key", "send"))}


class Form(Server):
    """A form with a picture: each field is a coloured rectangle, hidden for a secret."""

    name = "forms"
    pictures = True

    def __init__(self, **changes):
        self.changes = changes
        self.texts = dict.fromkeys(BOXES, "")
        self.looks = []
        self.more = {}
        self.clicks = 0

    def targets(self):
        form = Target(id="form", name="Form", kind=TargetKind.WINDOW, address="app/forms/form", server=self.name)
        return (form,)

    def observe(self, target, look):
        self.looks.append(look)
        controls = [
            Control(id=name, name=name, kind="field", box=box).model_copy(update=self.changes.get(name, {}))
            for name, box in BOXES.items()
        ]
        picture = self.drawn() if look.picture else None
        return Observation(
            controls=tuple(controls), picture=picture, fingerprint=str((self.texts, self.clicks))
        ).model_copy(update=self.more)

    def drawn(self):
        image = Image.new("RGB", (300, 300), PAPER)
        for box in BOXES.values():
            image.paste(SHOWN, (box.x, box.y, box.x + box.width, box.y + box.height))
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    @tool(effect=Effect.IDEMPOTENT)
    def fill(self, control_id: str, text: str) -> None:
        """Fill a field."""
        self.texts[control_id] = text

    @tool(effect=Effect.IDEMPOTENT)
    def log_in(self, control_id: str, key: SecretStr) -> None:
        """Fill a field with a secret."""
        self.texts[control_id] = key.get_secret_value()

    @tool(effect=Effect.ONCE)
    def type_keys(self, text: str) -> None:
        """Type into the field that has the focus."""
        self.texts["key"] += text

    @tool(effect=Effect.ONCE)
    def click(self, control_id: str) -> None:
        """Click."""
        self.clicks += 1


def colours(picture):
    """Give the colour in the middle of each field."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    return {name: image.getpixel((box.x + box.width // 2, box.y + box.height - 6)) for name, box in BOXES.items()}


def black(picture):
    return {name for name, colour in colours(picture).items() if colour == BLACK}


def labelled(picture):
    """Name the fields that have a frame."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    return {
        name for name, box in BOXES.items() if image.getpixel((box.x, box.y + box.height // 2)) not in {SHOWN, BLACK}
    }


def run(start, form, *answers, task=None, **given):
    """Run a task on a form; return its model's input, in order."""
    seen = []

    def app(request):
        seen.append(request.observation)
        return ModelAnswer(content=[*answers, FINISH][request.call - 1], program=False, must_succeed=False)

    result = start(app=app, servers=[form], **given).submit(task or lone("form")).result(PATIENCE)
    assert result.ok, result.causes
    return seen


def test_all_controls_are_labelled_in_one_of_two_pictures(start):
    (seen,) = run(start, Form())
    assert (labelled(seen.picture), black(seen.picture)) == (set(), set())
    assert (labelled(seen.annotated), black(seen.annotated)) == ({*BOXES}, set())


def test_screenshot_labels_what_the_model_named_and_hides_nothing(start):
    form = Form()
    again = {"Status": "SCREENSHOT", "ControlReannotate": ["key"]}
    first, second, _ = run(start, form, again, call("click", control_id="send"))
    assert labelled(first.annotated) == {*BOXES}
    assert labelled(second.annotated) == {"key"}
    assert [control.id for control in second.controls] == [*BOXES]
    assert form.clicks == 1  # a control without a label can still be clicked
    assert [look.annotate for look in form.looks if look.picture] == [(), ("key",), ()]


@pytest.mark.parametrize(
    "changes",
    [
        {"states": ("focused", "password")},
        {"detail": {"value": f"it is {PASSWORD}"}},
        {"name": PASSWORD},
        {"id": f"key {PASSWORD}"},
    ],
    ids=["a password's field", "its value", "its name", "its id"],
)
def test_a_control_that_shows_a_secret_is_black(start, changes):
    (seen,) = run(start, Form(key=changes), task=lone("form", secrets={"pw": SecretStr(PASSWORD)}))
    assert black(seen.picture) == black(seen.annotated) == {"key"}


FILLS = {
    "a secret that was granted": call("fill", control_id="key", text="${secret:pw}"),
    "a parameter that is declared secret": call("log_in", control_id="key", key="plain"),
}


@pytest.mark.parametrize("filled", FILLS.values(), ids=FILLS)
def test_control_filled_with_a_secret_stays_black(start, filled):
    form = Form()
    before, after = run(start, form, filled, secrets=SECRET)
    assert black(before.picture) == set()
    assert black(after.picture) == black(after.annotated) == {"key"}
    assert [look.masked for look in form.looks if look.picture] == [(), ("key",)]


def test_the_control_that_has_the_focus_is_black_once_a_secret_is_typed(start):
    form = Form(key={"states": ("focused",)})
    before, after = run(start, form, call("type_keys", text="${secret:pw}"), secrets=SECRET)
    assert form.texts["key"] == PASSWORD
    assert (black(before.picture), black(after.picture)) == (set(), {"key"})


class Keyboard(Form):
    """A form whose keys go to the field that has the focus, and leave no trace of it."""

    focus = "user"

    def observe(self, target, look):
        self.changes = {self.focus: {"states": ("focused",)}}
        return super().observe(target, look)

    @tool(effect=Effect.IDEMPOTENT)
    def move(self, control_id: str) -> None:
        """Click into a field."""
        self.focus = control_id

    @tool(effect=Effect.IDEMPOTENT)
    def tab(self) -> None:
        """Go to the next field."""
        self.focus = {"user": "key", "key": "send"}[self.focus]

    @tool(effect=Effect.IDEMPOTENT)
    def type_keys(self, text: str) -> None:
        """Type into the field that has the focus, and go to the next one."""
        self.texts[self.focus] += text
        self.tab()


TYPED = action("type_keys", text="${secret:pw}")


@pytest.mark.parametrize("moved", [action("move", "key"), action("tab")], ids=["a click", "a key"])
def test_control_that_a_list_focuses_is_black_once_a_secret_is_typed(start, moved):
    form = Keyboard()
    _, after = run(start, form, actions(moved, TYPED), secrets=SECRET)
    assert (form.texts["key"], form.focus) == (PASSWORD, "send")
    assert "key" in black(after.picture)


def test_a_control_that_an_argument_names_is_black_once_it_holds_a_secret(start):
    form = Form()
    _, after = run(start, form, actions(action("fill", "user", control_id="key", text="${secret:pw}")), secrets=SECRET)
    assert form.texts["key"] == PASSWORD
    assert "key" in black(after.picture)


def test_control_filled_with_a_secret_is_black_for_the_next_subtask(start):
    seen = []

    def app(request):
        seen.append(request.observation)
        return {**FILLS["a secret that was granted"], **FINISH}

    def host(request):
        assign = {"Status": "ASSIGN", "ControlText": "form", "Current Sub-Task": f"part {request.call}"}
        return assign if request.call < 3 else FINISH

    result = start(app=app, host=host, servers=[Form()], secrets=SECRET).submit(Task(request="log in")).result(PATIENCE)
    assert result.ok, result.causes
    assert [black(each.picture) for each in seen] == [set(), {"key"}]


@pytest.mark.parametrize(
    ("changes", "more", "why"),
    [
        ({"states": ("password",), "box": None}, {}, "where the control key, which holds a secret, stands"),
        ({"states": ("password",), "box": Box(x=40, y=100, width=0, height=30)}, {}, "where the control key"),
        ({}, {"text": f"it is {PASSWORD}"}, "the surface shows a secret, and where is not known"),
        ({}, {"window": {"title": PASSWORD}}, "the surface shows a secret, and where is not known"),
        ({}, {"picture": None, "annotated": b"x"}, "labels of its own"),
        ({}, {"picture": b"GIF89a"}, "not a PNG, or is damaged"),
        ({}, {"picture": bytes(30_000_000)}, "30,000,000 bytes; at most 20,000,000"),
    ],
    ids=["no box", "an empty box", "text", "title", "the surface's own labels", "a GIF", "too large"],
)
def test_a_picture_that_may_show_a_secret_or_can_t_be_read_is_withheld(start, changes, more, why):
    form = Form(key=changes)
    form.more = more
    (seen,) = run(start, form, task=lone("form", secrets={"pw": SecretStr(PASSWORD)}))
    assert (seen.picture, seen.annotated) == (None, None)
    (note,) = seen.notes
    assert note.startswith("the picture is not shown: ")
    assert why in note


def test_a_control_that_is_not_visible_needs_no_place(start):
    (seen,) = run(start, Form(key={"states": ("password",), "box": None, "visible": False}))
    assert black(seen.picture) == set()


@pytest.mark.parametrize("states", [(), ("password",)])
def test_without_pillow_a_picture_is_shown_only_if_nothing_is_to_be_hidden(start, monkeypatch, states):
    form = Form(key={"states": states})
    form.more = {"picture": form.drawn()}
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (seen,) = run(start, form)
    assert (seen.picture is None) == bool(states)
    assert seen.annotated is None
    assert ["needs Pillow, which comes with callboard[pictures]" in note for note in seen.notes] == [True] * len(states)


def test_surface_with_pictures_does_not_start_without_pillow(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SettingsError, match="the surface forms: the package 'PIL' is missing: pip install "):
        start(servers=[Form()])


def test_no_file_of_the_journal_shows_what_is_black(start, tmp_path):
    run(start, Form(key={"states": ("password",)}), journal={"path": tmp_path / "journal.db"})
    kept = [path.read_bytes() for path in tmp_path.glob("journal.db.pictures/*/*.png")]
    assert [black(picture) for picture in kept] == [{"key"}] * 2


def test_approval_labels_its_control_and_its_event_names_the_picture_file(start, until, tmp_path):
    form = Form()
    given = {"policy": [{"verdict": "approve", "tool": "click"}], "journal": {"path": tmp_path / "journal.db"}}
    answers = [call("click", control_id="send"), FINISH]
    handle = start(app=answers, servers=[form], **given).submit(lone("form", id="t"))
    told = until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert labelled(asked.observation.annotated) == {"send"}
    assert asked.before is None  # nothing has changed
    assert Path(told.data["picture"]).read_bytes() == asked.observation.annotated
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok


def test_a_question_shows_what_is_meant(start, until):
    asks = {**call("click", "PENDING", control_id="user"), "Questions": ["Is it this one?"]}
    handle = start(app=[asks, FINISH], servers=[Form()]).submit(lone("form"))
    until(handle, EventName.QUESTION_ASKED)
    (asked,) = handle.questions()
    assert labelled(asked.picture) == {"user"}
    handle.answer(asked.id, "yes")
    assert handle.result(PATIENCE).ok


class Changing(Form):
    """A form that looks another way each time."""

    drawings = itertools.count()

    def drawn(self):
        image = Image.open(io.BytesIO(super().drawn()))
        image.putpixel((next(self.drawings), 299), BLACK)
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()


def test_approval_shows_pictures_before_and_now_where_they_differ(start, until):
    given = {"policy": [{"verdict": "approve", "tool": "click"}]}
    handle = start(app=[call("click", control_id="send"), FINISH], servers=[Changing()], **given).submit(lone("form"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert labelled(asked.before) == labelled(asked.observation.annotated) == {"send"}
    assert asked.before != asked.observation.annotated
    handle.reject(asked.id)
    assert not handle.result(PATIENCE).ok


def test_the_question_about_a_doubt_shows_the_control(start, until, tmp_path):
    class Held(Changing):
        reached, go = threading.Event(), threading.Event()

        @tool(effect=Effect.ONCE)
        def click(self, control_id: str) -> None:
            """Click, and hang."""
            self.reached.set()
            self.go.wait(HELD)

    given = {"journal": {"path": tmp_path / "journal.db"}}
    answers = [call("click", control_id="send"), FINISH]
    first = start(app=answers, servers=[Held()], **given)
    first.submit(lone("form", id="t"))
    assert Held.reached.wait(PATIENCE)
    first.stop(timeout=0.1)
    handle = start(app=answers, servers=[Changing()], **given).handle("t")
    until(handle, EventName.QUESTION_ASKED)
    (asked,) = handle.questions()
    assert labelled(asked.picture) == labelled(asked.before) == {"send"}
    Held.go.set()
    handle.answer(asked.id, "it was done")
    assert handle.result(PATIENCE).ok


@pytest.mark.parametrize("changes", [{}, {"states": ("password",), "box": None}], ids=["shown", "withheld"])
def test_work_with_pictures_replays(start, until, tmp_path, monkeypatch, changes):
    path, given = tmp_path / "journal.db", {"policy": [{"verdict": "approve", "tool": "click"}]}
    answers = [{"Status": "SCREENSHOT", "ControlReannotate": ["key"]}, call("click", control_id="send"), FINISH]
    supervisor = start(app=answers, servers=[Form(key=changes)], journal={"path": path}, **given)
    handle = supervisor.submit(lone("form", id="t"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    supervisor.stop()
    monkeypatch.setitem(sys.modules, "PIL.Image", None)  # readers of a journal need not have it
    assert_replays(path, settings=Settings.load(**given))
    shown = command_line("show", "t", path, "--json")
    assert shown.exit_code == 0, shown.output


class Large(Form):
    def observe(self, target, look):
        seen = super().observe(target, look)
        many = tuple(Control(id=f"c-{number}", name=f"c-{number}", kind="cell") for number in range(1_500))
        return seen.model_copy(update={"controls": (*seen.controls, *many), "text": "x" * 300_000})


def test_no_picture_is_shown_where_a_surface_left_out_what_holds_a_secret(start):
    class Cut(Large):
        def observe(self, target, look):
            seen = super().observe(target, look)
            controls = reversed(seen.controls) if self.texts["key"] else seen.controls
            return seen.model_copy(update={"controls": tuple(controls)[: look.budget.controls]})

    before, after = run(start, Cut(), FILLS["a secret that was granted"], secrets=SECRET)
    assert before.picture is not None
    assert (after.picture, after.annotated) == (None, None)
    assert "the control key, which holds a secret, may be one of those that the surface left out" in after.notes[0]


def test_observation_is_cut_at_its_budget_with_a_note(start):
    (seen,) = run(start, Large(), limits={"observation_tokens": 1_000_000})
    budget = LookBudget()
    assert (len(seen.controls), len(seen.text)) == (budget.controls, budget.text)
    assert seen.notes == ("503 more controls are not shown", "100000 more characters of text are not shown")
