"""The tests that every surface should pass: ours pass them, and a fault in one point fails in that point."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import io
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import ClassVar

import pytest
from docx import Document
from PIL import Image
from pydantic import SecretStr

from callboard import Server, tool
from callboard.messages import Box, Control, Effect, Look, Observation, Probe, Target, TargetKind
from callboard.surface import ToolError, committing, current_call
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import MemoryServer, SurfaceCall, SurfaceCase, SurfaceSuite, surface_suite
from callboard.testing._crashes import CrashTrials
from short_suite import short_suite
from support import HELD

POINTS = sorted(name for name, _ in inspect.getmembers(SurfaceSuite, inspect.isfunction) if name.startswith("test_"))
SLEEP = shutil.which("sleep")
FIELD = Box(x=20, y=20, width=80, height=20)


class World:
    """The state behind a surface, which outlives the surfaces that work on it."""

    def __init__(self):
        self.text, self.stamps, self.kind, self.clipboard = "", [], "field", "mine"
        self.started, self.go = threading.Event(), threading.Event()


class Pad(Server):
    """A surface that keeps all promises; its subclasses break one each."""

    name = "pads"
    pictures = True
    settles = False
    resource_kinds = ("pad",)

    def __init__(self, world):
        self.world = world

    def targets(self):
        pad = Target(id="pad", name="Pad", kind=TargetKind.WINDOW, address="app/pads/pad", server=self.name)
        return (pad,)

    def observe(self, target, look):
        world = self.world
        field = Control(id="field", name="Field", kind=world.kind, box=FIELD, detail={"text": world.text})
        return Observation(
            controls=(field,), picture=self.picture() if look.picture else None, fingerprint=self.fingerprint(target)
        )

    def fingerprint(self, target):
        return repr((self.world.text, self.world.kind, self.world.stamps))

    def picture(self):
        file = io.BytesIO()
        Image.new("RGB", (200, 100), "white").save(file, "PNG")
        return file.getvalue()

    @tool(effect=Effect.ONCE)
    def stamp(self) -> str:
        """Stamp the pad."""
        current_call().note(current_call().id)
        with committing():
            self.world.stamps.append(current_call().id)
        return "stamped"

    @tool(effect=Effect.ONCE)
    def stamp_slowly(self) -> None:
        """Stamp the pad in an hour."""
        self.world.started.set()
        self.world.go.wait(HELD)
        with committing():
            self.world.stamps.append(current_call().id)

    @tool(effect=Effect.IDEMPOTENT)
    def fill(self, control_id: str, text: SecretStr, sheet: str = "first") -> None:
        """Fill the field, on whichever sheet."""
        if control_id != "field":
            msg = f"there is no {control_id!r}"
            raise ToolError(msg)
        self.world.text = text.get_secret_value()

    def probe(self, target, intent, foreseen, fingerprint):
        return Probe.DONE if intent.call_id in self.world.stamps else Probe.NOT_DONE

    def resources(self, target, tool, arguments):
        return ("pad:field",)


def case_of(kind):
    def case(_folder):
        world = World()
        return SurfaceCase(
            server=lambda: kind(world),
            target="pad",
            change=lambda: world.stamps.append("somebody else"),
            control="field",
            replace=lambda: setattr(world, "kind", "button"),
            once=SurfaceCall("stamp"),
            done=lambda: len(world.stamps),
            slow=SurfaceCall("stamp_slowly"),
            started=world.started.is_set,
            release=world.go.set,
            secret=SurfaceCall("fill", {"control_id": "field", "text": "${secret:password}"}),
            same=(
                SurfaceCall("fill", {"control_id": "field", "text": "a"}),
                SurfaceCall("fill", {"control_id": "field", "text": "a", "sheet": "FIRST"}),
            ),
            lent=lambda: world.clipboard,
        )

    return case


TestPad = surface_suite(case_of(Pad))


class SlowMemory(MemoryServer):
    """Fields in memory, and a tool that takes an hour."""

    def __init__(self):
        super().__init__(self.window())
        self.started, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def append_slowly(self, target: str, control_id: str, text: str) -> str:
        """Add to a field's text, in an hour."""
        self.started.set()
        self.go.wait(HELD)
        return self.append(target, control_id, text)


def memory(_folder):
    surface = SlowMemory()
    return SurfaceCase(
        server=lambda: surface,
        target="memo:one",
        change=lambda: surface.write("memo:one", "field-1", "somebody else"),
        control="field-1",
        replace=lambda: surface.remove("memo:one", "field-1"),
        once=SurfaceCall("append", {"control_id": "field-1", "text": "x"}),
        done=lambda: len(surface.effects),
        slow=SurfaceCall("append_slowly", {"control_id": "field-1", "text": "x"}),
        started=surface.started.is_set,
        release=surface.go.set,
        secret=SurfaceCall("write", {"control_id": "field-1", "text": "${secret:password}"}),
    )


TestMemory = short_suite(memory)


class SlowDocuments(DocumentSurface):
    """Documents in which a heading takes an hour."""

    def __init__(self, folder, started, go):
        super().__init__(folder)
        self.started, self.go = started, go

    def tools(self):
        return tuple(self.slow(each) if each.name == "insert_heading" else each for each in super().tools())

    def slow(self, entry):
        def insert(**given):
            self.started.set()
            self.go.wait(HELD)
            return entry.tool.fn(**given)

        return dataclasses.replace(entry, tool=dataclasses.replace(entry.tool, fn=insert))


def documents(folder):
    started, go = threading.Event(), threading.Event()

    place = folder / "letter.docx"
    folder.mkdir(exist_ok=True)
    letter = Document()
    letter.add_paragraph("Dear reader")
    letter.save(str(place))

    def lines():
        return [paragraph.text for paragraph in Document(str(place)).paragraphs]

    def write(*texts):
        other = Document()
        for text in texts:
            other.add_paragraph(text)
        other.save(str(place))

    return SurfaceCase(
        server=lambda: SlowDocuments(folder, started, go),
        target="letter.docx",
        change=lambda: write("Dear reader", "somebody else"),
        control="paragraph-1",
        replace=lambda: write("Another letter"),
        once=SurfaceCall("insert_paragraph", {"text": "once"}),
        done=lambda: lines().count("once"),
        slow=SurfaceCall("insert_heading", {"text": "once"}),
        started=started.is_set,
        release=go.set,
        secret=SurfaceCall("edit_paragraph", {"control_id": "paragraph-1", "text": "${secret:password}"}),
        same=(
            SurfaceCall("edit_paragraph", {"control_id": "paragraph-1", "text": "a"}),
            SurfaceCall("insert_paragraph", {"text": "b"}),
        ),
    )


TestDocuments = short_suite(documents)


MCP = """
import json, sys, threading
from pathlib import Path

here, cancelled = Path(sys.argv[1]), threading.Event()


def stamp():
    with (here / "stamps").open("a") as file:
        file.write("x")
    return "stamped"


def stamp_slowly():
    (here / "started").touch()
    while not (here / "go").exists():
        if cancelled.wait(0.01):
            (here / "stopped").touch()
            return "cancelled"
    return stamp()


def fill(text):
    return f"it is {text} now"


def called(number, name, arguments):
    content = [{"type": "text", "text": globals()[name](**arguments)}]
    tell(number, {"content": content})


def tell(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCHEMAS = {"stamp": {"type": "object"}, "stamp_slowly": {"type": "object"}, "fill": TEXT}
TOOLS = [{"name": name, "description": name, "inputSchema": schema} for name, schema in SCHEMAS.items()]
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"], asked.get("params"):
        case "initialize", {"protocolVersion": version}:
            server = {"name": "stamps", "version": "1"}
            tell(asked["id"], {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        case "tools/list", _:
            tell(asked["id"], {"tools": TOOLS})
        case "tools/call", {"name": name, **given}:
            arguments = asked["id"], name, given.get("arguments", {})
            threading.Thread(target=called, args=arguments, daemon=True).start()
        case "notifications/cancelled", _:
            cancelled.set()
        case _ if "id" in asked:
            error = {"code": -32601, "message": "no such method"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""
"""A server without the SDK, whose import takes a second."""


def mcp_server(folder):
    program = folder / "server.py"
    program.write_text(MCP, encoding="utf-8")
    servers = {"stamps": {"command": sys.executable, "args": ["-IS", str(program), str(folder)]}}
    stamps = folder / "stamps"
    return SurfaceCase(
        target="stamps",
        settings={"mcp_servers": servers},
        once=SurfaceCall("stamps.stamp"),
        done=lambda: len(stamps.read_text()) if stamps.exists() else 0,
        slow=SurfaceCall("stamps.stamp_slowly"),
        started=(folder / "started").exists,
        release=(folder / "go").touch,
        stopped=(folder / "stopped").exists,
        secret=SurfaceCall("stamps.fill", {"text": "${secret:password}"}),
    )


class TestMcpServer(short_suite(mcp_server)):
    def test_after_a_crash_a_person_is_asked_whether_it_was_done(self, tmp_path):
        crashes = CrashTrials(mcp_server, SurfaceCall("stamps.stamp"), lambda case: case.done())
        assert crashes.tried(tmp_path / "crash", [("before", "command_result", 1)])


class Shuffled(Pad):
    count = itertools.count()

    def targets(self):
        (pad,) = super().targets()
        return (pad, pad.model_copy(update={"id": f"pad-{next(self.count)}", "address": "app/pads/other"}))


class Renumbered(Pad):
    """A surface whose targets are named by a counter, which differs with each instance."""

    count = itertools.count()

    def __init__(self, world):
        super().__init__(world)
        self.number = next(self.count)

    def targets(self):
        (pad,) = super().targets()
        return (pad, pad.model_copy(update={"id": f"pad-{self.number}", "address": "app/pads/other"}))


class Cut(Pad):
    """A surface that leaves out excess text without saying so."""

    def observe(self, target, look):
        return super().observe(target, look).model_copy(update={"text": "ab"[: look.budget.text]})


class Unpictured(Pad):
    def picture(self):
        return None


class Costly(Pad):
    """A surface that takes its fingerprint from a look with a picture."""

    def observe(self, target, look):
        mark = repr((self.world.text, self.world.kind, self.world.stamps))
        field = Control(id="field", name="Field", kind=self.world.kind, box=FIELD)
        return Observation(controls=(field,), picture=self.picture() if look.picture else None, fingerprint=mark)

    def fingerprint(self, target):
        return self.observe(target, Look()).fingerprint


class Endless(Pad):
    def observe(self, target, look):
        return super().observe(target, look).model_copy(update={"text": "x" * 300_000})


class Dear(Pad):
    def observe(self, target, look):
        return super().observe(target, look).model_copy(update={"picture": self.picture()})


class Ticking(Pad):
    count = itertools.count()

    def fingerprint(self, target):
        return f"{super().fingerprint(target)} {next(self.count)}"


class Blind(Pad):
    def fingerprint(self, target):
        return "always the same"


class Careless(Pad):
    def resolve(self, seen, control):
        return next((each for each in seen.controls if each.id == control.id), None)


class Uncommitted(Pad):
    @tool(effect=Effect.ONCE)
    def stamp_slowly(self) -> None:
        """Stamp the pad in an hour, whatever happened meanwhile."""
        self.world.started.set()
        self.world.go.wait(HELD)
        self.world.stamps.append("late")


class Leaving(Pad):
    """A surface whose program outlives the call that has started it."""

    @tool(effect=Effect.ONCE)
    async def stamp_slowly(self) -> None:
        """Stamp the pad in an hour, by a program."""
        Living.kept.append(subprocess.Popen([SLEEP, "600"], start_new_session=True))  # noqa: ASYNC220 - it is not awaited
        self.world.started.set()
        await asyncio.Event().wait()


class Obedient(Pad):
    """A good surface, whose tool ends with its call."""

    @tool(effect=Effect.ONCE)
    async def stamp_slowly(self) -> None:
        """Stamp the pad in an hour."""
        self.world.started.set()
        await asyncio.Event().wait()


class Patient(Pad):
    """A good surface that sets the time limit of a tool itself."""

    @tool(effect=Effect.ONCE, seconds=7200)
    def stamp_slowly(self) -> None:
        """Stamp the pad in an hour, for which it has two."""
        super().stamp_slowly()


class Guessing(Pad):
    settles = True

    def probe(self, target, intent, foreseen, fingerprint):
        return Probe.NOT_DONE


class Unmarked(Pad):
    """A surface that keeps no note of its call, so that nothing is written between the intent and the effect."""

    @tool(effect=Effect.ONCE)
    def stamp(self) -> str:
        """Stamp the pad."""
        with committing():
            self.world.stamps.append(current_call().id)
        return "stamped"


class Sure(Unmarked):
    def probe(self, target, intent, foreseen, fingerprint):
        return Probe.DONE


class Repeating(Unmarked):
    @tool(effect=Effect.IDEMPOTENT)
    def stamp(self) -> str:
        """Stamp the pad; it is marked as repeatable, and is not."""
        return super().stamp()


class Boxless(Pad):
    """A surface that does not tell where its field is, and draws the field's contents."""

    def observe(self, target, look):
        seen = super().observe(target, look)
        return seen.model_copy(
            update={"controls": tuple(each.model_copy(update={"box": None}) for each in seen.controls)}
        )


class Misplaced(Pad):
    """A surface that draws its field elsewhere than it says."""

    def picture(self):
        image = Image.new("RGB", (200, 100), "white")
        image.paste(sum(self.world.text.encode()), (120, 60, 180, 90))
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()


class Counting(Pad):
    """A surface that tells something about its field's contents."""

    def observe(self, target, look):
        return super().observe(target, look).model_copy(update={"text": f"{self.world.text.count('e')} times an e"})


class Leaking(Pad):
    """A surface that writes its input to a place that others read."""

    @tool(effect=Effect.IDEMPOTENT)
    def fill(self, control_id: str, text: SecretStr, sheet: str = "first") -> str:
        """Fill the field."""
        current_call().artifact(text.get_secret_value().encode())
        return "done"


class Synonyms(Pad):
    def resources(self, target, tool, arguments):
        return (f"pad:{arguments['sheet']}",)


class Hasty(Pad):
    """A surface that acts when it is only asked about an action."""

    def resources(self, target, tool, arguments):
        self.world.stamps.append("asked")
        return super().resources(target, tool, arguments)


class Unkind(Pad):
    resource_kinds = ()


class Living(Pad):
    """A surface that leaves the value of `leaves` behind."""

    kept: ClassVar[list] = []

    def open(self, stage):
        self.kept.append(self.leaves())


class Threaded(Living):
    def leaves(self):
        thread = threading.Thread(target=TO_END.wait, args=(HELD,), name="left")
        thread.start()
        return thread


class Processed(Living):
    def leaves(self):
        return subprocess.Popen([SLEEP, "600"], start_new_session=True)


class Orphaned(Living):
    """Its process has left its parent and its session."""

    def leaves(self):
        apart = "stdout=-3, stderr=-3, start_new_session=True"
        code = f"import subprocess as s; print(s.Popen([{SLEEP!r}, '600'], {apart}).pid)"
        return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


class Filed(Living):
    def leaves(self):
        return open(os.devnull)  # noqa: PTH123 - staying open is the tested fault


class Listening(Living):
    def leaves(self):
        return socket.create_server(("127.0.0.1", 0))


class Littering(Living):
    def leaves(self):
        number, path = tempfile.mkstemp()
        os.close(number)
        return Path(path)


class Presuming(Pad):
    """A surface that closes its stream even if it was never opened."""

    def open(self, stage):
        self.line = io.BytesIO()

    def close(self):
        self.line.close()


class Refusing(Pad):
    @tool(effect=Effect.ONCE)
    def stamp(self) -> str:
        """Do nothing, which changes no clipboard."""
        msg = "the ink is dry"
        raise ToolError(msg)


class Unclosed(Pad):
    def close(self):
        msg = "stuck"
        raise OSError(msg)


class Timed(Pad):
    ticks = itertools.count()

    def relies_on(self, target, tool, arguments):
        return {"time": next(self.ticks)}


class Marking(Pad):
    def form(self, target, tool, arguments):
        self.world.stamps.append("asked")
        return tool


class Borrowing(Pad):
    @tool(effect=Effect.ONCE)
    def stamp(self) -> str:
        """Stamp the pad by way of the clipboard."""
        self.world.clipboard = "a stamp"
        return super().stamp()


TO_END = threading.Event()
WRONG = [
    (Shuffled, "test_targets_are_stable", "lists something else each time"),
    (Renumbered, "test_targets_are_stable", "a new instance of the surface lists other targets"),
    (Cut, "test_an_observation_is_bounded", "left out without a note"),
    (Unpictured, "test_an_observation_is_bounded", "has no PNG picture"),
    (Costly, "test_the_fingerprint_is_equal_while_nothing_changes", "`fingerprint` looks with a picture"),
    (Endless, "test_an_observation_is_bounded", "over its budget"),
    (Dear, "test_an_observation_is_bounded", "`picture=False` has a picture"),
    (Ticking, "test_the_fingerprint_is_equal_while_nothing_changes", "differs though nothing has changed"),
    (Blind, "test_the_fingerprint_is_equal_while_nothing_changes", "the same after a change"),
    (Careless, "test_another_control_is_not_taken_for_the_same", "`resolve` takes another control"),
    (Uncommitted, "test_a_cancel_returns_at_once_and_nothing_happens_later", "took effect later"),
    (Uncommitted, "test_a_call_that_takes_too_long_is_in_doubt", "took effect later"),
    (Leaving, "test_a_cancel_returns_at_once_and_nothing_happens_later", "(sleep) runs on"),
    (Leaving, "test_a_call_that_takes_too_long_is_in_doubt", "(sleep) runs on"),
    (Guessing, "test_after_a_crash_at_any_row_it_is_done_once", "it was done, and `probe` said not_done"),
    (Sure, "test_after_a_crash_at_any_row_it_is_done_once", "after a crash after row .* it was not_done"),
    (Repeating, "test_after_a_crash_at_any_row_it_is_done_once", "it was done 2 times"),
    (Boxless, "test_a_secret_is_shown_nowhere", "no picture is shown with a secret: .* field, which holds a secret"),
    (Misplaced, "test_a_secret_is_shown_nowhere", "reveals which secret was inserted: annotated, picture"),
    (Counting, "test_a_secret_is_shown_nowhere", "reveals which secret was inserted: text"),
    (Leaking, "test_a_secret_is_shown_nowhere", "the secret appears in"),
    (Synonyms, "test_a_thing_has_one_name_for_rules", "several names for rules"),
    (Hasty, "test_a_thing_has_one_name_for_rules", "asking for a call's resources had a side effect"),
    (Unkind, "test_a_thing_has_one_name_for_rules", "`resource_kinds` lacks"),
    (Timed, "test_a_guard_of_a_routine_is_equal_while_nothing_changes", "`relies_on` differs"),
    (Marking, "test_a_guard_of_a_routine_is_equal_while_nothing_changes", "had a side effect"),
    (Threaded, "test_close_leaves_nothing", "the thread 'left'"),
    (Processed, "test_close_leaves_nothing", "(sleep)"),
    (Orphaned, "test_close_leaves_nothing", "(sleep)"),
    (Filed, "test_close_leaves_nothing", "the open file /dev/null"),
    (Listening, "test_close_leaves_nothing", "the port "),
    (Unclosed, "test_close_leaves_nothing", "after the supervisor's stop there is still the surface pads"),
    (Littering, "test_close_leaves_nothing", "the file "),
    (Presuming, "test_close_leaves_nothing", "`close` raised where nothing was opened"),
    (Refusing, "test_what_was_borrowed_is_given_back", "`once` does not work: .*the ink is dry"),
    (Borrowing, "test_what_was_borrowed_is_given_back", "'a stamp' is not given back as it was borrowed: 'mine'"),
]


@pytest.fixture
def left():
    """End the processes and files that surfaces have left."""
    yield
    for each in Living.kept:
        if isinstance(each, subprocess.Popen):
            each.kill()
            each.wait()
        elif isinstance(each, int):
            os.kill(each, 9)
        elif isinstance(each, threading.Thread):
            TO_END.set()
            each.join()
        elif isinstance(each, Path):
            each.unlink()
        else:
            each.close()
    Living.kept.clear()


@pytest.mark.parametrize(("kind", "point", "why"), WRONG, ids=[kind.__name__ for kind, _, _ in WRONG])
@pytest.mark.usefixtures("left")
def test_surface_with_one_fault_fails_in_that_point(tmp_path, kind, point, why, monkeypatch):
    monkeypatch.setattr("callboard.testing._left._SECONDS", 0)
    with pytest.raises(AssertionError, match=why.replace("(", r"\(").replace(")", r"\)")):
        getattr(surface_suite(case_of(kind))(), point)(tmp_path)


def test_a_time_limit_of_the_tool_s_own_is_waited_for(tmp_path):
    surface_suite(case_of(Patient))().test_a_call_that_takes_too_long_is_in_doubt(tmp_path)


_STOPPED = {each for each in POINTS if "cancel" in each or "too_long" in each}
_CRASH = "test_after_a_crash_at_any_row_it_is_done_once"
ALSO = {
    Ticking: {_CRASH},
    Processed: _STOPPED,
    Orphaned: _STOPPED,
    Unclosed: {*POINTS},  # each closes its surface at its end
    Refusing: {_CRASH, "test_close_leaves_nothing"},
}
"""The other points that a surface fails because of its fault: one that never does `once` can't be tried further."""


@pytest.mark.slow  # the short form is the test above it: that point fails
@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _, _ in WRONG), ids=lambda kind: kind.__name__)
@pytest.mark.usefixtures("left")
def test_surface_with_one_fault_passes_in_all_other_points(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("callboard.testing._left._SECONDS", 0.5)
    failed = set()
    for point in POINTS:
        (tmp_path / point).mkdir()
        try:
            getattr(surface_suite(case_of(kind))(), point)(tmp_path / point)
        except AssertionError:
            failed.add(point)
    assert failed == {point for each, point, _ in WRONG if each is kind} | ALSO.get(kind, set())


@pytest.mark.parametrize("point", [each for each in POINTS if "cancel" in each or "too_long" in each])
def test_a_call_that_ends_when_it_is_stopped_needs_no_release(tmp_path, point):
    suite = surface_suite(lambda folder: dataclasses.replace(case_of(Obedient)(folder), release=None))()
    getattr(suite, point)(tmp_path)


def test_each_point_has_a_surface_that_is_wrong_in_it():
    assert {point for _, point, _ in WRONG} == {*POINTS}


def test_incomplete_case_skips_points_and_names_the_missing_field(tmp_path):
    surface = MemoryServer(MemoryServer.window())
    suite = surface_suite(lambda _folder: SurfaceCase(server=lambda: surface, target="memo:one"))()
    told = []
    for index, point in enumerate(POINTS):
        folder = tmp_path / str(index)
        folder.mkdir()
        try:
            getattr(suite, point)(folder)
        except unittest.SkipTest as skipped:
            told.append(str(skipped))
    assert sorted(told) == [
        f"SurfaceCase has no `{name}`, so this promise is not checked"
        for name in ("change", "lent", "once", "once", "replace", "same", "secret", "slow", "slow")
    ]


def test_case_with_a_missing_target_names_the_present_ones(tmp_path):
    suite = surface_suite(lambda _folder: SurfaceCase(server=lambda: Pad(World()), target="paper"))()
    with pytest.raises(AssertionError, match="the case names the target 'paper'; there are: pad"):
        suite.test_targets_are_stable(tmp_path)
