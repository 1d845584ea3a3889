"""Fixtures of supervisors, models and surfaces in memory."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from adb_server import adb_at_home
from hypothesis import HealthCheck, settings

from callboard import Event, EventName, FunctionModel, Model, ModelRequest, Server, Settings, Supervisor, TaskHandle
from callboard.messages import AgentKind
from callboard.surfaces.android import find_adb
from callboard.testing import MemoryServer, VirtualClock
from local_provider import LocalProvider

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
"""``python -m pytest`` adds the root of the clone, where a library's ``import errors`` would import ours."""

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("random", UNHURRIED)
settings.register_profile("gate", UNHURRIED, derandomize=True, database=None)
settings.load_profile("random")  # `--hypothesis-profile=gate` overrides it: the same examples in each run

Answers = Model | Callable[[ModelRequest], Any] | Sequence[Mapping[str, Any]]
"""A model, a function in its place, or its answers within one task, in order."""


def model_of(answers: Answers) -> Model:
    """Make a model from its short form."""
    if isinstance(answers, Model):
        return answers
    if callable(answers):
        return FunctionModel(answers)
    return FunctionModel(lambda request: answers[request.call - 1])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the size of the long kill campaign."""
    parser.addoption("--kills", type=int, default=250, help="how often the slow campaign kills a program (default 250)")


def pytest_configure() -> None:
    """Keep options and ignored interrupts from programs that tests start.

    A shell starts the commands behind its ``&`` with SIGINT ignored, and their children inherit that.
    """
    os.environ.pop("PYTEST_ADDOPTS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection.

    They stay until the end. With them, and with the usual thresholds, collections take a tenth of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def start() -> Iterator[Callable[..., Supervisor]]:
    """Start supervisors on one window in memory, ``memo:one``, without a log.

    All of them are stopped after the test.

    ``host``, ``app``, ``mobile`` and ``linux`` are models (`Answers`); other keywords are sections of the settings.
    """
    with ExitStack() as running:

        def begin(
            *,
            servers: Sequence[Server] | None = None,
            checks: Mapping[str, Callable[..., Any]] | None = None,
            clock: VirtualClock | None = None,
            **given: Any,
        ) -> Supervisor:
            models = {kind.value: model_of(given.pop(kind.value)) for kind in AgentKind if kind.value in given}
            surfaces = [MemoryServer(MemoryServer.window())] if servers is None else servers
            given["routines"] = {"wait_seconds": 0, **given.get("routines", {})}  # windows in memory are never late
            settings = Settings.load(**given)
            return running.enter_context(
                Supervisor.start(settings, models=models, servers=surfaces, checks=checks, clock=clock)
            )

        yield begin


@pytest.fixture
def begin(start: Callable[..., Supervisor], tmp_path: Path) -> Callable[..., Supervisor]:
    """Start supervisors on one journal, by default with a shared window."""
    surface = MemoryServer(MemoryServer.window())

    def on_journal(**given: Any) -> Supervisor:
        journal = {"path": tmp_path / "journal.db", **given.pop("journal", {})}
        return start(**{"servers": [surface], "journal": journal, **given})

    return on_journal


@pytest.fixture
def until() -> Callable[..., Event]:
    """Wait for an event of a task: ``until(handle, EventName.STATE_CHANGED)``."""

    def wait(handle: TaskHandle, name: EventName, **data: Any) -> Event:
        for event in handle.events():
            if event.name is name and data.items() <= event.data.items():
                return event
        msg = f"{handle.task_id} ended without {name.value} {data}"
        raise AssertionError(msg)

    return wait


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Install distributions, each in its own folder, for one test.

    ``install("acme", "surfaces", {"lamps": "acme_lamps:Lamps"}, acme_lamps="class Lamps: ...")``
    """
    folders = itertools.count(1)

    def make(distribution: str, group: str, entries: Mapping[str, str], **modules: str) -> Path:
        place = tmp_path / f"installed-{next(folders)}"
        information = place / f"{distribution.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        written = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (information / "entry_points.txt").write_text(f"[callboard.{group}]\n{written}", encoding="utf-8")
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        (information / "METADATA").write_text(metadata, encoding="utf-8")
        for name, source in modules.items():
            (place / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(place)
        return place

    yield make
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{tmp_path}/installed-"):
            del sys.modules[name]


@pytest.fixture
def make_provider() -> Iterator[Callable[[], LocalProvider]]:
    """Start providers, which are stopped after the test."""
    with ExitStack() as running:

        def make() -> LocalProvider:
            provider = LocalProvider()
            thread = threading.Thread(target=provider.http.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            running.callback(thread.join)
            running.callback(provider.http.server_close)
            running.callback(provider.http.shutdown)
            running.callback(provider.release.set)
            return provider

        yield make


@pytest.fixture
def provider(make_provider: Callable[[], LocalProvider]) -> LocalProvider:
    """A provider on this machine."""
    return make_provider()


@pytest.fixture(scope="session")
def adb_program() -> Path:
    """Give the program adb; skip without it, or fail with ``REQUIRE_ADB``."""
    program = find_adb()
    if program is None and os.environ.get("REQUIRE_ADB"):
        pytest.fail("adb is missing")
    if program is None:
        pytest.skip("adb is missing")
    return program


@pytest.fixture(scope="session")
def adb_port(adb_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start an adb server for all tests."""
    adb = adb_at_home(adb_program, tmp_path_factory.mktemp("adb"))
    asyncio.run(adb.start())
    yield adb.port
    asyncio.run(adb.stop())
