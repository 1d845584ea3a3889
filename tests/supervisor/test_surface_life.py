"""Surfaces open side by side and close in reverse; their methods may be coroutine functions, or bound to a thread."""

from __future__ import annotations

import asyncio
import stat
import threading

import pytest

from callboard import Settings, Supervisor, tool
from callboard.messages import Effect, SettingsError
from callboard.testing import MemoryServer, VirtualClock
from support import FINISH, PATIENCE, call, lone


class Lived(MemoryServer):
    """A window that notes its surface's events."""

    def __init__(self, name, life, process="one"):
        super().__init__(self.window(process, server=name), name=name)
        self.life, self.stage = life, None

    def open(self, stage):
        self.stage = stage
        self.life.append(f"{self.name} opens")

    def close(self):
        self.life.append(f"{self.name} closes")


def started(*surfaces, **given):
    return Supervisor.start(Settings.load(**given), models={"app": lambda _: FINISH}, servers=surfaces)


def test_surfaces_are_closed_in_the_reverse_order_of_their_start():
    life = []
    with started(Lived("a", life), Lived("b", life, "two")):
        assert sorted(life) == ["a opens", "b opens"]
        life.clear()
    assert life == ["b closes", "a closes"]


def test_surface_gets_the_supervisors_clock():
    clock, surface = VirtualClock(), Lived("a", [])
    with Supervisor.start(Settings.load(), models={"app": lambda _: FINISH}, servers=[surface], clock=clock):
        before = surface.stage.elapsed()
        clock.advance(300)
        assert surface.stage.elapsed() - before == 300


def test_surfaces_are_opened_side_by_side():
    together = threading.Barrier(3, timeout=PATIENCE)

    class Waits(Lived):
        def open(self, stage):
            super().open(stage)
            together.wait()

    with started(*(Waits(name, [], name) for name in "abc")):
        assert not together.broken


def test_a_start_names_the_surfaces_that_do_not_open_and_closes_all():
    life = []

    class Broken(Lived):
        def open(self, stage):
            super().open(stage)
            msg = f"{self.name} needs a display"
            raise OSError(msg)

    before = set(threading.enumerate())
    with pytest.raises(SettingsError, match="b: b needs a display; c: c needs a display"):
        started(Lived("a", life), Broken("b", life, "two"), Broken("c", life, "three"))
    assert life[3:] == ["c closes", "b closes", "a closes"]
    assert set(threading.enumerate()) <= before


def test_a_surface_that_does_not_open_in_time_ends_the_start():
    go = threading.Event()

    class Slow(Lived):
        def open(self, stage):
            go.wait(PATIENCE)

        def close(self):
            go.set()

    surface = Slow("a", [])
    closer = threading.Timer(0.2, go.set)
    closer.start()
    with pytest.raises(SettingsError, match=r"a: it took longer than 0\.05 s"):
        started(surface, limits={"command_seconds": 0.05})
    closer.join()


def test_a_surface_that_does_not_close_is_named():
    class Stuck(Lived):
        def close(self):
            msg = "still in use"
            raise RuntimeError(msg)

    supervisor = started(Stuck("a", []))
    assert "the surface a" in supervisor.stop()


def test_a_surfaces_folder_lasts_with_a_journal_and_is_removed_without_one(tmp_path):
    kept, gone = Lived("a", []), Lived("b", [])
    with started(kept, journal={"path": tmp_path / "journal.db"}):
        assert kept.stage.lasting
        (kept.stage.folder / "note").write_text("x")
    with started(gone):
        assert not gone.stage.lasting
        folder = gone.stage.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()
    again = Lived("a", [])
    with started(again, journal={"path": tmp_path / "journal.db"}):
        assert (again.stage.folder / "note").read_text() == "x"


class OneThread(Lived):
    """A surface whose library works on the thread that opened it alone."""

    affine = True
    threads: set[str]

    def open(self, stage):
        super().open(stage)
        self.threads = {threading.current_thread()}

    def observe(self, target):
        self.threads.add(threading.current_thread())
        return super().observe(target)

    def targets(self):
        self.threads.add(threading.current_thread())
        return super().targets()

    def close(self):
        self.threads.add(threading.current_thread())

    @tool(effect=Effect.IDEMPOTENT)
    def touch(self, target: str) -> None:
        """Touch it."""
        self.threads.add(threading.current_thread())


def test_all_calls_of_an_affine_surface_are_made_on_one_thread(start):
    surface = OneThread("a", [])
    supervisor = start(app=[call("touch", "FINISH")], servers=[surface])
    for _ in range(2):
        assert supervisor.submit(lone()).result(PATIENCE).ok
    supervisor.stop()
    assert len(surface.threads) == 1


class OnTheLoop(Lived):
    """A surface whose methods are all coroutine functions."""

    async def open(self, stage):
        await asyncio.sleep(0)
        super().open(stage)

    async def close(self):
        await asyncio.sleep(0)
        super().close()

    async def targets(self):
        await asyncio.sleep(0)
        return super().targets()

    async def observe(self, target):
        await asyncio.sleep(0)
        return super().observe(target)

    async def fingerprint(self, target):
        return (await self.observe(target)).fingerprint

    async def busy(self, target):
        return False

    async def resolve(self, seen, control):
        return super().resolve(seen, control)

    async def hazards(self, target, tool, arguments, made):
        return super().hazards(target, tool, arguments, made)

    async def canonical(self, target, tool, arguments):
        return super().canonical(target, tool, arguments)

    async def resources(self, target, tool, arguments):
        return ("field:one",)

    async def expected(self, target, tool, arguments):
        return super().expected(target, tool, arguments)


@pytest.mark.parametrize("blocks", [True, False])
def test_all_methods_of_a_surface_may_be_coroutine_functions(start, blocks):
    life = []
    surface = OnTheLoop("a", life)
    surface.blocks = blocks
    answers = [{"Status": "FINISH", "Function": "append", "ControlLabel": "field-1", "Args": {"text": "x"}}]
    rules = [{"resource": "field:*", "verdict": "allow"}]
    supervisor = start(app=answers, servers=[surface], policy=rules)
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.ok, result.causes
    assert surface.effects == [("memo:one", "field-1", "x")]
    supervisor.stop()
    assert life == ["a opens", "a closes"]
