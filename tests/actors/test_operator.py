"""Operators see a picture and nothing else: they find a place in it, and point, click and type."""

from __future__ import annotations

import io
import threading

import pytest
from PIL import Image, ImageChops

from callboard import EventName, ModelAnswer, Server, Settings, Task, ToolError, tool
from callboard.messages import AgentKind, Box, Control, Effect, Observation, Target, TargetKind
from callboard.testing import SurfaceCall, SurfaceCase, assert_replays, surface_suite
from support import ASSIGN, FINISH, PATIENCE, action, lone

OPERATOR = (AgentKind.OPERATOR,)
PASSWORD = "correct horse battery"
PAPER, RED, GREEN, BLUE = (255, 255, 255), (220, 30, 30), (20, 160, 60), (30, 60, 220)
BLACK = (0, 0, 0)
FIELD, SEND, MORE = (
    Box(x=30, y=30, width=160, height=30),
    Box(x=40, y=120, width=70, height=30),
    Box(x=130, y=120, width=70, height=30),
)
COLOURS = {"field": RED, "send": GREEN, "more": BLUE}


class Pad(Server):
    """A field and two buttons, drawn by their colours. Only the point of a click tells its target."""

    name = "pads"
    pictures = True
    settles = False

    def __init__(self, factor=1, kinds=("app", "operator"), *, shown=True):
        self.factor, self.kinds, self.shown = factor, kinds, shown
        self.boxes = {"field": FIELD, "send": SEND, "more": MORE}
        self.focus, self.text, self.effects = "", "", []

    def targets(self):
        pad = Target(
            id="pad",
            name="Pad",
            kind=TargetKind.WINDOW,
            kinds=self.kinds,
            address="app/pads/pad",
            server=self.name,
            group="desktop:0",
        )
        return (pad,)

    def observe(self, target, look):
        controls = [
            Control(id=name, name=name, kind="part", box=box, states=("focused",) if name == self.focus else ())
            for name, box in self.placed().items()
        ]
        return Observation(
            controls=tuple(controls) if self.shown else (),
            text="words that no operator sees",
            window={"title": "Pad"},
            picture=self.drawn() if look.picture else None,
            fingerprint=self.mark(),
        )

    def fingerprint(self, target):
        return self.mark()

    def mark(self):
        return str((self.focus, self.text, len(self.effects), self.boxes))

    def placed(self):
        times = self.factor
        return {
            name: Box(x=box.x * times, y=box.y * times, width=box.width * times, height=box.height * times)
            for name, box in self.boxes.items()
        }

    def drawn(self):
        image = Image.new("RGB", (240 * self.factor, 180 * self.factor), PAPER)
        for name, box in self.placed().items():
            image.paste(COLOURS[name], (box.x, box.y, box.x + box.width, box.y + box.height))
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    def click_at(self, x: int, y: int, button: str = "left", count: int = 1) -> str:
        """Click a point."""
        hit = next((name for name, box in self.placed().items() if box.holds(x, y)), "nothing")
        self.focus = hit
        self.effects.append((f"{button} {count}", hit))
        return hit

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    def type_text(self, text: str) -> None:
        """Type into the control with the focus."""
        if self.focus == "field":
            self.text += text

    @tool(effect=Effect.IDEMPOTENT)
    def fill(self, text: str) -> None:
        """Fill the field, as an AppAgent does."""
        self.text = text
        self.effects.append(("fill", text))


def colour_at(picture, point):
    return Image.open(io.BytesIO(picture)).convert("RGB").getpixel(point)


def middle_of(picture, colour):
    """Find the middle of all pixels that have about a colour."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    parts = ImageChops.difference(image, Image.new("RGB", image.size, colour)).split()
    unlike = ImageChops.lighter(ImageChops.lighter(*parts[:2]), parts[2])
    left, upper, right, lower = unlike.point(lambda value: 255 if value < 10 else 0).getbbox()
    return (left + right) // 2, (upper + lower) // 2


def click(point, **more):
    return {"action": "click_at", "x": point[0], "y": point[1], **more}


def does(*actions, status="CONTINUE"):
    return {"Status": status, "Actions": list(actions)}


ON_FIELD, ON_SEND = (110, 45), (75, 135)


@pytest.fixture
def run(start):
    """Run a task on a pad; return the input of its operator's model, in order."""

    def begin(pad, *answers, task=None, **given):
        seen = []

        def model(request):
            seen.append(request)
            return ModelAnswer(content=[*answers, FINISH][request.call - 1], program=False)

        supervisor = start(operator=model, servers=[pad], **given)
        result = supervisor.submit(task or lone("operator:pad")).result(PATIENCE)
        assert result.ok, result.causes
        return seen

    return begin


@pytest.mark.parametrize("factor", [1, 6], ids=["as it is", "scaled down"])
def test_an_operator_finds_a_button_by_its_colour_and_clicks_it(start, factor):
    sizes = []

    def model(request):
        if request.memory:
            return FINISH
        sizes.append(request.observation.picture_size)
        field, send = (middle_of(request.observation.picture, colour) for colour in (RED, GREEN))
        typed = {"action": "type_text", "text": "hello"}
        return does(click(field), typed, click(send, count=2))

    pad = Pad(factor)
    handle = start(operator=model, servers=[pad]).submit(lone("operator:pad"))
    assert handle.result(PATIENCE).ok
    assert pad.text == "hello"
    assert pad.effects == [("left 1", "field"), ("left 2", "send")]
    width, height = sizes[0]
    assert (width, height) == (240, 180) if factor == 1 else width * height <= 1_150_000


def test_earlier_points_are_in_pixels_of_the_picture_that_is_shown(run):
    first, second = run(Pad(6), does(click((50, 60))))
    assert first.observation.picture_size == second.observation.picture_size == (1238, 928)
    (told,) = second.memory[0].decision.actions
    assert (told.arguments["x"], told.arguments["y"]) == (50, 60)


def test_operator_gets_no_controls_or_text_of_the_picture(run):
    for request in run(Pad(), does(click(ON_FIELD))):
        for seen in (request.observation, *(record.observation for record in request.memory)):
            assert (seen.controls, seen.text, seen.annotated) == ((), "", None)
            assert seen.window == {"title": "Pad"}
    assert sorted(each.name for each in request.tools) == ["click_at", "type_text"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (click((240, 10)), "the point 240, 10 is not in the picture, which has 240 x 180 pixels"),
        (click((10, -1)), "the point 10, -1 is not in the picture"),
        ({"action": "click_at", "x": 1}, "click_at: y: Field required"),
        ({"action": "click_at", "x": "left", "y": 1}, "click_at: x: Input should be a valid integer"),
        (click((1, 1), force=3), "click_at: force: Extra inputs are not permitted"),
        ({"action": "scroll_at", "x": 1, "y": 1, "dy": 2}, "there is no tool 'scroll_at'"),
        ({"action": "zoom"}, "there is no tool 'zoom'"),
    ],
)
def test_an_action_that_does_not_fit_goes_back_before_anything_is_done(start, wrong, why):
    pad, told = Pad(), []

    def model(request):
        told.extend(request.reasons)
        return FINISH if request.reasons else does(click(ON_SEND), wrong)

    assert start(operator=model, servers=[pad]).submit(lone("operator:pad")).result(PATIENCE).ok
    assert pad.effects == []
    assert why in told[0]


def test_without_a_picture_nothing_can_be_pointed_at(start):
    class Blind(Pad):
        def drawn(self):
            return b"GIF89a"

    told = []

    def model(request):
        told.append((request.observation.notes, request.reasons))
        return FINISH if request.reasons else does(click(ON_SEND))

    assert start(operator=model, servers=[Blind()]).submit(lone("operator:pad")).result(PATIENCE).ok
    assert "not a PNG, or is damaged" in told[0][0][0]
    assert told[1][1] == ("click_at: there is no picture now, so that nothing can be pointed at",)


def test_a_screenshot_is_one_more_look_and_looks_are_bounded(start):
    pad = Pad()
    look = does({"action": "screenshot"})
    handle = start(operator=lambda _: look, servers=[pad], limits={"repeats": 2}).submit(lone("operator:pad"))
    result = handle.result(PATIENCE)
    assert (result.outcome.value, pad.effects, result.actions) == ("failed", [], 0)
    assert result.usage.steps == 3


def test_field_filled_with_a_secret_is_black_in_the_next_picture(run):
    pad = Pad()
    secret = {"action": "type_text", "text": "${secret:pw}"}
    given = {"secrets": {"pw": {"value": PASSWORD, "parameters": ["text"]}}}
    before, clicked, after = run(pad, does(click(ON_FIELD)), does(secret), **given)
    assert pad.text == PASSWORD
    assert [colour_at(each.observation.picture, ON_FIELD) for each in (before, clicked, after)] == [RED, RED, BLACK]


def test_a_secret_is_black_where_the_same_list_had_moved_the_focus(run, tmp_path):
    pad, path = Pad(), tmp_path / "journal.db"
    secret = {"action": "type_text", "text": "${secret:pw}"}
    given = {"secrets": {"pw": {"value": PASSWORD, "parameters": ["text"]}}}
    _, after = run(pad, does(click(ON_FIELD), secret), journal={"path": path}, **given)
    assert pad.text == PASSWORD
    assert colour_at(after.observation.picture, ON_FIELD) == BLACK
    assert_replays(path, settings=Settings.load(**given))


@pytest.fixture
def asked(start, until):
    """Start a task with an action that waits for an approval."""

    def begin(pad, *answers, rule, **given):
        supervisor = start(operator=[*answers, FINISH], servers=[pad], policy=[rule], **given)
        handle = supervisor.submit(lone("operator:pad", id="t"))
        until(handle, EventName.APPROVAL_REQUESTED)
        return handle

    return begin


def marked(picture, point):
    """Say whether a ring with a cross is around a point, dark in light."""
    x, y = point
    ring = {colour_at(picture, (x + away, y + away)) for away in range(6, 16)}
    return {(200, 0, 60), PAPER} <= ring


def test_approval_of_a_click_shows_its_point_in_the_picture(asked):
    pad = Pad()
    handle = asked(pad, does(click(ON_SEND, button="right")), rule={"verdict": "approve", "tool": "click_at"})
    (request,) = handle.approvals()
    assert marked(request.observation.annotated, ON_SEND)
    assert not marked(request.observation.picture, ON_SEND)
    assert colour_at(request.observation.annotated, ON_SEND) == GREEN
    assert colour_at(request.observation.annotated, (FIELD.x, FIELD.y)) == RED  # no other control is labelled
    assert pad.effects == []
    handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert pad.effects == [("right 1", "send")]


def test_approval_that_a_model_asks_for_shows_its_point_too(asked):
    pad = Pad()
    handle = asked(pad, does(click(ON_SEND), status="CONFIRM"), rule={"verdict": "deny", "tool": "type_text"})
    (request,) = handle.approvals()
    assert marked(request.observation.annotated, ON_SEND)
    handle.reject(request.id)
    assert handle.result(PATIENCE).outcome.value == "rejected"
    assert pad.effects == []


@pytest.mark.parametrize("how", ["another", "gone"])
def test_approved_click_is_not_done_once_its_point_is_something_else(asked, tmp_path, how):
    class Failing(Pad):
        lost = False

        def fingerprint(self, target):
            if self.lost:
                msg = "the screen is off"
                raise ToolError(msg)
            return super().fingerprint(target)

    pad, rule, path = Failing(), {"verdict": "approve", "tool": "click_at"}, tmp_path / "journal.db"
    handle = asked(pad, does(click(ON_SEND)), rule=rule, journal={"path": path})
    if how == "another":
        pad.boxes["send"], pad.boxes["more"] = MORE, SEND
    pad.lost = how == "gone"
    handle.approve(handle.approvals()[0].id)
    handle.result(PATIENCE)
    assert pad.effects == []
    assert_replays(path, settings=Settings.load(policy=[rule]))


@pytest.mark.parametrize("same", [True, False], ids=["the same", "another"])
def test_an_approval_for_the_rest_of_the_task_is_for_what_is_there(asked, until, same):
    class Swapping(Pad):
        @tool(effect=Effect.ONCE, agents=OPERATOR)
        def click_at(self, x: int, y: int) -> None:
            """Click a point; the buttons may change places then."""
            super().click_at(x, y)
            if not same:
                self.boxes["send"], self.boxes["more"] = MORE, SEND

    pad, again = Swapping(), does(click(ON_SEND))
    handle = asked(pad, again, again, rule={"verdict": "approve", "tool": "click_at"})
    handle.approve(handle.approvals()[0].id, remember=True)
    if not same:
        events = handle.events()
        next(each for each in events if each.name is EventName.APPROVAL_ANSWERED)
        next(each for each in events if each.name is EventName.APPROVAL_REQUESTED)
        assert len(pad.effects) == 1
        handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert [hit for _, hit in pad.effects] == ["send", "send" if same else "more"]


def test_rules_name_operators_and_their_tools_and_arguments(run):
    pad = Pad()
    rule = {"verdict": "deny", "agent": "operator/*", "tool": "click_at", "arguments": {"button": "right"}}
    run(pad, does(click(ON_SEND, button="right")), does(click(ON_SEND)), policy=[rule])
    assert pad.effects == [("left 1", "send")]


def test_a_list_stops_where_something_else_has_come_to_its_point(run, tmp_path):
    class Moving(Pad):
        @tool(effect=Effect.ONCE, agents=OPERATOR)
        def click_at(self, x: int, y: int) -> str:
            """Click a point; then both buttons change places."""
            hit = super().click_at(x, y)
            self.boxes["send"], self.boxes["more"] = self.boxes["more"], self.boxes["send"]
            return hit

    pad = Moving()
    _, after = run(pad, does(click(ON_SEND), click(ON_SEND)), journal={"path": tmp_path / "journal.db"})
    assert [hit for _, hit in pad.effects] == ["send"]
    assert "something else is at its point by now" in after.memory[0].results[1].error
    assert_replays(tmp_path / "journal.db")


def test_where_no_control_has_a_place_points_are_used_as_they_are(run):
    pad = Pad(shown=False)
    run(pad, does(click(ON_SEND), click(ON_FIELD)))
    assert [hit for _, hit in pad.effects] == ["send", "field"]


@pytest.mark.parametrize("first", ["operator", "app"])
def test_an_operator_and_an_app_agent_never_act_at_once(start, until, first):
    class Held(Pad):
        def act(self, kind):
            self.effects.append(kind)
            if kind == first and len(self.effects) == 1:
                self.reached.set()
                assert self.go.wait(PATIENCE)

        @tool(effect=Effect.ONCE, agents=OPERATOR)
        def click_at(self, x: int, y: int) -> None:
            """Click a point."""
            self.act("operator")

        @tool(effect=Effect.ONCE)
        def fill(self) -> None:
            """Fill the field."""
            self.act("app")

    pad = Held()
    pad.reached, pad.go = threading.Event(), threading.Event()
    once = {"operator": click(ON_SEND), "app": action("fill")}
    models = {kind: [does(does_it, does_it), does(does_it), FINISH] for kind, does_it in once.items()}
    supervisor = start(servers=[pad], **models)
    targets = {"operator": "operator:pad", "app": "pad"}
    second = next(kind for kind in targets if kind != first)
    one = supervisor.submit(lone(targets[first]))
    assert pad.reached.wait(PATIENCE)
    two = supervisor.submit(lone(targets[second]))
    until(two, EventName.SUBTASK_QUEUED)
    assert pad.effects == [first]
    pad.go.set()
    assert one.result(PATIENCE).ok
    assert two.result(PATIENCE).ok
    assert pad.effects == [first] * 3 + [second] * 3


def test_a_host_agent_is_offered_an_operator_only_with_a_model_for_it(start):
    seen = []

    def host(request):
        seen.append([(target.id, target.address) for target in request.observation.targets])
        return FINISH

    start(host=host, app=[FINISH], servers=[Pad()]).submit(Task(request="x")).result(PATIENCE)
    start(host=host, app=[FINISH], operator=[FINISH], servers=[Pad()]).submit(Task(request="x")).result(PATIENCE)
    app = ("pad", "app/pads/pad")
    assert seen == [[app], [app, ("operator:pad", "operator/pads/pad")]]


def test_operator_work_without_a_model_names_the_missing_setting(start):
    result = start(app=[FINISH], servers=[Pad()]).submit(lone("operator:pad")).result(PATIENCE)
    assert "set models.operator" in result.causes[-1].reason


def test_a_host_agent_assigns_to_an_operator(start):
    pad = Pad()
    host = [{**ASSIGN, "ControlText": "operator:pad"}, FINISH]
    supervisor = start(host=host, operator=[does(click(ON_SEND)), FINISH], servers=[pad])
    result = supervisor.submit(Task(request="send it")).result(PATIENCE)
    assert result.ok, result.causes
    assert [done.address for done in result.subtasks] == ["operator/pads/pad"]
    assert pad.effects == [("left 1", "send")]


def test_the_work_of_an_operator_replays(start, until, tmp_path):
    path, rule = tmp_path / "journal.db", {"verdict": "approve", "tool": "type_text"}
    pad = Pad(6)
    answers = [does(click((500, 200)), {"action": "type_text", "text": "hello"}), FINISH]
    supervisor = start(operator=answers, servers=[pad], policy=[rule], journal={"path": path})
    handle = supervisor.submit(lone("operator:pad", id="t"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    supervisor.stop()
    assert (pad.focus, pad.text) == ("field", "hello")
    assert_replays(path, settings=Settings.load(policy=[rule]))


def test_a_question_shows_the_points_that_are_meant(start, until):
    asks = {**does(click(ON_SEND), status="PENDING"), "Questions": ["This one?"]}
    pad = Pad()
    handle = start(operator=[asks, FINISH], servers=[pad]).submit(lone("operator:pad"))
    until(handle, EventName.QUESTION_ASKED)
    (asked,) = handle.questions()
    assert marked(asked.picture, ON_SEND)
    handle.answer(asked.id, "yes")
    assert handle.result(PATIENCE).ok


def pads(_folder):
    pad = Pad()
    pad.settles = True
    return SurfaceCase(
        server=lambda: pad,
        target="operator:pad",
        change=lambda: pad.effects.append(("", "somebody else")),
        once=SurfaceCall("click_at", {"x": ON_SEND[0], "y": ON_SEND[1]}),
        done=lambda: sum(hit == "send" for _, hit in pad.effects),
    )


TestOperatorsPad = surface_suite(pads)
