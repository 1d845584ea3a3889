"""HostAgents on a desktop: observations, and opening and closing of windows."""

from __future__ import annotations

import io
import threading

import pytest
from PIL import Image

from callboard import EventName, Server, Task, tool
from callboard.messages import Box, Control, Effect, Observation, Outcome, Probe, ResultStatus, Target, TargetKind
from callboard.surface import ToolError, current_call
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, HELD, PATIENCE, action, actions, call

NO_APPROVAL = {"policy": [{"verdict": "allow", "hazards": ["launches"]}]}
TAKES = {"properties": {"file": {"type": "string", "description": "a file's path"}}}


class Desktop(Server):
    """A desktop with one application, which opens windows, and one window of the user's."""

    name = "desk"
    settles = False

    def __init__(self):
        self.windows = {"mail": ""}
        self.opened = []
        self.typed = []
        self.capture = Observation(text="two windows")
        self.looks = []

    def targets(self):
        editor = Target(
            id="editor",
            name="Editor",
            kind=TargetKind.APPLICATION,
            address="app/editor/*",
            server=self.name,
            group="desk",
            takes=TAKES,
        )
        return (editor, *(self.window(name, owner) for name, owner in self.windows.items()))

    kinds = ()

    def window(self, name, owner):
        return Target(
            id=name,
            name=name,
            kind=TargetKind.WINDOW,
            address=f"app/editor/{name}",
            kinds=self.kinds,
            server=self.name,
            group="desk",
            owner=owner,
        )

    def desktop(self, look):
        self.looks.append(look)
        return self.capture

    def start(self, target, arguments):
        self.opened.append((target.id, arguments))
        name = arguments.get("file", f"untitled-{len(self.opened)}")
        self.windows[name] = current_call().session
        return self.window(name, self.windows[name])

    def stop(self, target):
        del self.windows[target.id]

    def observe(self, target, look):
        return Observation(controls=(Control(id="page", name="Page", kind="text"),), fingerprint=str(self.typed))

    @tool(effect=Effect.ONCE)
    def type_in(self, control_id: str, text: str) -> None:
        """Type."""
        self.typed.append(text)


class OnLoop(Desktop):
    """The same, in coroutine functions."""

    blocks = False

    async def desktop(self, look):
        return super().desktop(look)

    async def start(self, target, arguments):
        return super().start(target, arguments)

    async def stop(self, target):
        super().stop(target)


def assign(target="editor", **more):
    return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": "write", **more}


def run(start, desktop, *answers, app=FINISH, **given):
    seen = []

    def host(request):
        seen.append(request)
        return [*answers, FINISH][request.call - 1]

    supervisor = start(host=host, app=lambda _: app, servers=[desktop], **{**NO_APPROVAL, **given})
    handle = supervisor.submit(Task(request="write a letter", id="t"))
    return handle.result(PATIENCE), seen, handle


@pytest.mark.parametrize("kind", [Desktop, OnLoop])
def test_a_host_agent_opens_with_a_file_and_closes_what_it_opened(start, kind):
    desktop = kind()
    opens = call("open_in_desk", application="editor", arguments={"file": "a.txt"})
    closes = call("close_in_desk", window="a.txt")
    result, seen, _ = run(start, desktop, opens, assign("a.txt"), closes)
    assert result.ok, result.causes
    assert desktop.opened == [("editor", {"file": "a.txt"})]
    assert [target.id for target in seen[1].observation.targets] == ["editor", "mail", "a.txt"]
    assert {*desktop.windows} == {"mail"}
    assert (result.changed, result.actions) == ((), 0)  # opening and closing a window change nothing by themselves


@pytest.mark.parametrize("kind", [Desktop, OnLoop])
def test_an_application_that_is_assigned_to_is_opened_for_the_task(start, kind):
    desktop = kind()
    result, _, handle = run(start, desktop, assign())
    assert result.ok, result.causes
    assert (desktop.opened, desktop.windows["untitled-1"]) == ([("editor", {})], "t")
    assert "app/editor/untitled-1" in {event.agent for event in handle.events()}
    assert [done.target for done in result.subtasks] == [desktop.targets()[-1].name]


def test_a_window_for_another_kind_is_closed_by_the_id_that_is_seen(start):
    class Shells(Desktop):
        kinds = ("app", "linux")

    desktop = Shells()
    opens = call("open_in_desk", application="editor", arguments={"file": "a.txt"})
    result, seen, _ = run(start, desktop, opens, call("close_in_desk", window="linux:a.txt"), linux=[FINISH])
    assert "linux:a.txt" in {target.id for target in seen[1].observation.targets}
    assert {*desktop.windows} == {"mail"}
    assert result.ok


def failures(handle):
    return [
        event.data["error"]
        for event in handle.events()
        if event.name is EventName.COMMAND_ENDED and event.data["status"] == ResultStatus.FAILURE
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (call("open_in_desk", application="mail"), "'mail' is open already: assign a subtask to it"),
        (call("open_in_desk", application="paint"), "there is no 'paint'; there are: editor, mail"),
        (call("open_in_desk", application="editor", arguments={"file": 3}), "file: 3 is not of type 'string'"),
        (call("open_in_desk", application="editor", arguments={"url": "x"}), "there is no 'url'"),
        (call("close_in_desk", window="mail"), "'mail' was not opened by this task, so it is not closed by it"),
        (call("close_in_desk", window="editor"), "'editor' was not opened by this task"),
        (call("close_in_desk", window="none"), "there is no 'none'"),
    ],
)
def test_target_that_can_not_be_opened_or_closed_is_reported(start, answer, why):
    desktop = Desktop()
    _, _, handle = run(start, desktop, answer)
    (told,) = failures(handle)
    assert why in told
    assert (desktop.opened, {*desktop.windows}) == ([], {"mail"})


@pytest.mark.parametrize(
    "answer", [call("close_in_desk", window="theirs"), call("open_in_desk", application="theirs-too")]
)
def test_target_of_another_task_is_hidden_and_not_opened_or_closed(start, answer):
    class Owned(Desktop):
        def targets(self):
            editor, *listed = super().targets()
            return (editor, *listed, editor.model_copy(update={"id": "theirs-too", "owner": "another task"}))

    desktop = Owned()
    desktop.windows["theirs"] = "another task"
    _, seen, handle = run(start, desktop, answer)
    assert [target.id for target in seen[0].observation.targets] == ["editor", "mail"]
    assert failures(handle)[0].endswith("; there are: editor, mail")
    assert (desktop.opened, {*desktop.windows}) == ([], {"mail", "theirs"})


def test_opening_waits_for_an_approval_as_it_starts_a_program(start, until):
    desktop = Desktop()
    supervisor = start(host=[call("open_in_desk", application="editor"), FINISH], servers=[desktop])
    handle = supervisor.submit(Task(request="open it", id="t"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert (asked.actions[0].tool, desktop.opened) == ("open_in_desk", [])
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok
    assert len(desktop.opened) == 1


def test_waiting_open_is_dropped_after_a_cancel(start, until):
    class Slow(Desktop):
        typing, go = threading.Event(), threading.Event()

        @tool(effect=Effect.ONCE)
        def type_slowly(self, text: str) -> None:
            """Type, as long as it takes."""
            self.typing.set()
            self.go.wait(HELD)

    desktop = Slow()
    opens = [call("open_in_desk", application="editor"), FINISH]
    supervisor = start(host=opens, app=[call("type_slowly", text="x"), FINISH], servers=[desktop], **NO_APPROVAL)
    types = supervisor.submit(Task(request="type", target="mail"))
    assert desktop.typing.wait(PATIENCE)
    waits = supervisor.submit(Task(request="open", id="t"))
    until(waits, EventName.POLICY_DECIDED)
    waits.cancel("no more")
    assert waits.result(PATIENCE).outcome is Outcome.CANCELLED
    desktop.go.set()
    assert types.result(PATIENCE).ok
    supervisor.stop()
    assert desktop.opened == []


class Focused(Desktop):
    """A desktop whose keys go to the window that has the focus, which one that opens takes."""

    def __init__(self):
        super().__init__()
        self.focus = ""
        self.taken = threading.Event()

    def start(self, target, arguments):
        window = super().start(target, arguments)
        self.focus = window.id
        self.taken.set()
        return window

    @tool(effect=Effect.IDEMPOTENT)
    def go_to(self, window: str) -> None:
        """Give a window the focus."""
        self.focus = window

    @tool(effect=Effect.IDEMPOTENT)
    def press(self, key: str) -> None:
        """Press a key."""
        self.typed.append((key, self.focus))


def while_another_types(start, until, meanwhile):
    """Press two keys in a window, and have another task ask for a window between them; `meanwhile` gets its handle."""
    desktop, pressed, go = Focused(), threading.Event(), threading.Event()
    answers = [
        lambda: actions(action("go_to", window="mail"), action("press", key="a")),
        lambda: pressed.set() or (go.wait(HELD) and call("press", key="b")),
        lambda: FINISH,
    ]

    def app(request):
        return answers.pop(0)()

    opens = [call("open_in_desk", application="editor"), FINISH]
    supervisor = start(host=opens, app=app, servers=[desktop], **NO_APPROVAL)
    types = supervisor.submit(Task(request="type", target="mail"))
    assert pressed.wait(PATIENCE)
    other = supervisor.submit(Task(request="open", id="t"))
    until(other, EventName.POLICY_DECIDED)
    meanwhile(other)
    assert not desktop.taken.wait(0.1)
    go.set()
    assert types.result(PATIENCE).ok
    assert desktop.typed == [("a", "mail"), ("b", "mail")]
    return desktop, other


def test_desktop_opens_no_target_between_the_keys_of_an_agent(start, until):
    desktop, other = while_another_types(start, until, lambda _: None)
    assert other.result(PATIENCE).ok
    assert failures(other) == []
    assert desktop.opened == [("editor", {})]


def test_open_that_waits_for_a_desktop_can_be_cancelled(start, until):
    desktop, other = while_another_types(
        start, until, lambda handle: handle.cancel("no more") or handle.result(PATIENCE)
    )
    assert other.result(PATIENCE).outcome is Outcome.CANCELLED
    assert desktop.opened == []


def picture(size=(300, 200)):
    file = io.BytesIO()
    Image.new("RGB", size, "white").save(file, "PNG")
    return file.getvalue()


def corner(png, box):
    return Image.open(io.BytesIO(png)).convert("RGB").getpixel((box.x, box.y + box.height // 2))


MAIL = Box(x=20, y=30, width=120, height=80)


def windows(**boxes):
    return tuple(Control(id=name, name=name, kind="window", box=box) for name, box in boxes.items())


def test_a_host_agent_sees_the_desktop_with_labels_on_its_windows(start):
    desktop = Desktop()
    desktop.capture = Observation(
        controls=windows(mail=MAIL), picture=picture(), text="mail is in front", window={"screen": "300x200"}
    )
    _, seen, _ = run(start, desktop, assign("mail"))
    observation = seen[0].observation
    assert corner(observation.picture, MAIL) == (255, 255, 255)
    assert corner(observation.annotated, MAIL) != (255, 255, 255)
    assert observation.controls == ()
    assert (observation.text, observation.window) == ("mail is in front", {"screen": "300x200"})


def test_a_desktop_is_no_reason_to_think_that_the_targets_changed(start):
    desktop = Desktop()
    before = run(start, desktop, assign("mail"))[1][0].observation.fingerprint
    desktop.capture = Observation(text="the clock says 12:01", picture=picture())
    assert run(start, desktop, assign("mail"))[1][0].observation.fingerprint == before


@pytest.mark.parametrize("there", [True, False])
def test_a_window_with_a_secret_is_black_or_the_desktop_is_not_shown(start, there):
    desktop = Desktop()
    desktop.capture = Observation(controls=windows(mail=MAIL) if there else (), picture=picture())
    secret = {"pw": {"value": "correct horse", "parameters": ["text"]}}
    typed = {**call("type_in", control_id="page", text="${secret:pw}"), "Status": "FINISH"}
    _, seen, _ = run(start, desktop, assign("mail"), app=typed, secrets=secret)
    assert desktop.typed == ["correct horse"]
    assert [look.masked for look in desktop.looks] == [(), ("mail",)]
    after = seen[1].observation
    if there:
        assert corner(after.picture, MAIL) == (0, 0, 0)
    else:
        assert (after.picture, after.annotated) == (None, None)
        assert "where the control mail, which holds a secret" in after.notes[-1]


@pytest.mark.parametrize("there", [True, False])
def test_a_window_with_a_secret_of_another_task_is_black_too(start, until, there):
    desktop = Desktop()
    desktop.windows["bank"] = "other"  # the first task's own: the second one is not offered it
    desktop.capture = Observation(controls=windows(bank=MAIL) if there else (), picture=picture())
    asks = {"Status": "PENDING", "Questions": ["And now?"]}
    app = [call("type_in", control_id="page", text="${secret:pw}"), asks, FINISH]
    given = {"secrets": {"pw": {"value": "correct horse", "parameters": ["text"]}}, **NO_APPROVAL}
    seen = []

    def host(request):
        seen.append(request.observation)
        return FINISH

    supervisor = start(host=host, app=app, servers=[desktop], **given)
    other = supervisor.submit(Task(request="log in", id="other", target="bank"))
    until(other, EventName.QUESTION_ASKED)
    assert supervisor.submit(Task(request="look")).result(PATIENCE).ok
    assert [target.id for target in seen[0].targets] == ["editor", "mail"]
    assert (seen[0].picture is None) != there
    assert not there or corner(seen[0].picture, MAIL) == (0, 0, 0)
    other.answer(other.questions()[0].id, "stop")
    assert other.result(PATIENCE).ok


@pytest.mark.parametrize("error", [ToolError("no display"), ValueError("no display")])
def test_unreadable_desktop_gives_a_note_and_hides_only_itself(start, error):
    class Dark(Desktop):
        def desktop(self, look):
            raise error

    result, seen, _ = run(start, Dark(), assign("mail"))
    assert result.ok
    assert seen[0].observation.notes == (f"the desktop of desk can't be seen: {error}",)
    assert {target.id for target in seen[0].observation.targets} == {"editor", "mail"}


def test_invalid_observation_of_a_desktop_gives_a_note(start):
    desktop = Desktop()
    desktop.capture = "a picture"
    _, seen, _ = run(start, desktop, assign("mail"))
    assert "it observed a str, not an Observation" in seen[0].observation.notes[0]


def test_several_desktops_are_shown_together(start):
    class Second(Desktop):
        name = "wall"

        def targets(self):
            return ()

    one, other = Desktop(), Second()
    other.capture = Observation(text="a wall", picture=picture())
    _, seen, _ = run(lambda **given: start(**{**given, "servers": [one, other]}), one, assign("mail"))
    assert seen[0].observation.text == "two windows\na wall"
    assert seen[0].observation.picture is not None


class Media(MemoryServer):
    """A surface whose tools have the names of methods that open and close targets."""

    @tool(effect=Effect.ONCE)
    def start(self, target: str) -> str:
        """Start the music."""
        self.effects.append((target, "start", ""))
        return "it plays"

    @tool(effect=Effect.ONCE)
    def stop(self, target: str) -> str:
        """Stop the music."""
        return "it is quiet"


def test_tools_that_are_called_start_and_stop_are_tools(start):
    surface = Media(MemoryServer.window())
    supervisor = start(app=[call("start"), FINISH], servers=[surface])
    assert supervisor.submit(Task(request="play", target="memo:one")).result(PATIENCE).ok
    assert surface.effects == [("memo:one", "start", "")]


@pytest.mark.parametrize("done", [True, False])
def test_an_opening_that_a_crash_broke_off_is_looked_for(start, tmp_path, done):
    windows = {}

    class Held(Desktop):
        reached = threading.Event()

        def start(self, target, arguments):
            current_call().note("letter")
            if done:
                windows["letter"] = current_call().session
            self.reached.set()
            threading.Event().wait(HELD)

    class Restarted(Desktop):
        def start(self, target, arguments):
            windows["letter"] = current_call().session
            return super().start(target, {"file": "letter"})

        def probe(self, target, intent, foreseen, fingerprint):
            return Probe.DONE if intent.noted[-1] in windows else Probe.NOT_DONE

    given = {"journal": {"path": tmp_path / "journal.db"}, **NO_APPROVAL}
    answers = [call("open_in_desk", application="editor"), FINISH]
    held = Held()
    first = start(host=answers, servers=[held], **given)
    first.submit(Task(request="open", id="t"))
    assert held.reached.wait(PATIENCE)
    first.stop(timeout=0.1)
    second = Restarted()
    supervisor = start(host=answers, servers=[second], **given)
    assert supervisor.handle("t").result(PATIENCE).outcome is Outcome.FINISHED
    assert len(second.opened) == (not done)


def test_opening_and_closing_replay(start, tmp_path):
    path, desktop = tmp_path / "journal.db", Desktop()
    desktop.capture = Observation(controls=windows(mail=MAIL), picture=picture(), text="mail")
    _, _, _ = run(start, desktop, assign(), call("close_in_desk", window="untitled-1"), journal={"path": path})
    assert_replays(path)
