"""For the tests of your own automations: a surface in memory, a clock that stands still, faults, runs replayed."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from unittest import mock

from pydantic import Field

from callboard.actors.journal import JournalFile, JournalReader
from callboard.actors.models import FunctionModel, ScriptedModel
from callboard.actors.replay import Replay, replay_journal
from callboard.actors.runtime import Deed, VirtualClock, committing
from callboard.actors.servers import Server, ToolError, tool
from callboard.config import Settings
from callboard.messages import AgentKind, Control, Effect, JournalError, Look, Observation, Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.journal import Row
    from callboard.actors.processing import AgentSpec

__all__ = [
    "Faults",
    "FunctionModel",
    "MemoryServer",
    "Replay",
    "ScriptedModel",
    "VirtualClock",
    "assert_replays",
    "disk_full",
    "kill_process",
    "replayed",
]

_WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)


class MemoryServer(Server):
    """A surface in memory: windows, devices and shells, each with named controls that hold text.

    Every change is kept in `deeds`, in order, so that a test can say what was really done.
    """

    def __init__(self, *targets: Target, controls: dict[str, str] | None = None, name: str = "memory") -> None:
        """Make a surface.

        Args:
            targets: What it offers; `window`, `device` and `shell` make them.
            controls: The controls of each of its targets, by id, with their text.
            name: The server's name; the targets must carry it.
        """
        self.name = name
        self._targets = {target.id: target for target in targets}
        self._controls = {target.id: dict(controls or {"field-1": ""}) for target in targets}
        self._lock = threading.Lock()
        self.deeds: list[tuple[str, str, str]] = []
        """What was done: target, control, text."""

    @staticmethod
    def window(process: str = "one", root: str = "memo", server: str = "memory") -> Target:
        """Make a window for the AppAgent ``app/<root>/<process>``."""
        return _target(f"{root}:{process}", TargetKind.WINDOW, f"app/{root}/{process}", server)

    @staticmethod
    def device(serial: str = "emulator", server: str = "memory") -> Target:
        """Make a device for the MobileAgent ``mobile/<serial>``."""
        return _target(serial, TargetKind.DEVICE, f"mobile/{serial}", server)

    @staticmethod
    def shell(host: str = "local", server: str = "memory") -> Target:
        """Make a shell for the LinuxAgent ``linux/<host>``."""
        return _target(host, TargetKind.SHELL, f"linux/{host}", server)

    def targets(self) -> tuple[Target, ...]:
        """List the targets."""
        with self._lock:
            return tuple(self._targets.values())

    def observe(self, target: Target, look: Look = Look()) -> Observation:  # noqa: ARG002 - it has no pictures
        """Show the target's controls; the fingerprint changes with them."""
        with self._lock:
            seen = _shown(self._controls_of(target.id))
        return Observation(controls=seen, fingerprint=repr(seen), window={"title": target.name})

    def expected(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Tell what a field will hold once a text is appended."""
        with self._lock:
            controls = dict(self._controls.get(target.id, {}))
        control = str(arguments.get("control_id"))
        if tool != "append" or control not in controls:
            return ""
        controls[control] += str(arguments.get("text"))
        return repr(_shown(controls))

    def remove(self, target_id: str, control_id: str | None = None) -> None:
        """Take a control away, or a whole target, as another program would."""
        with self._lock:
            if control_id is None:
                del self._targets[target_id]
            else:
                del self._controls[target_id][control_id]

    @tool(effect=Effect.READ, agents=_WORKERS)
    def read(self, target: str, control_id: Annotated[str, Field(description="The field to read.")]) -> str:
        """Read a field."""
        with self._lock:
            return self._text(target, control_id)

    @tool(effect=Effect.IDEMPOTENT, agents=_WORKERS)
    def write(
        self,
        target: str,
        control_id: Annotated[str, Field(description="The field to write into.")],
        text: Annotated[str, Field(description="Its new text.")],
    ) -> str:
        """Set a field's text."""
        with self._lock:
            self._text(target, control_id)
            with committing():
                self._controls[target][control_id] = text
                self.deeds.append((target, control_id, text))
        return text

    @tool(effect=Effect.ONCE, agents=_WORKERS)
    def append(
        self,
        target: str,
        control_id: Annotated[str, Field(description="The field to write into.")],
        text: Annotated[str, Field(description="What is added to its text.")],
    ) -> str:
        """Add to a field's text; twice adds twice."""
        with self._lock:
            whole = self._text(target, control_id) + text
            with committing():
                self._controls[target][control_id] = whole
                self.deeds.append((target, control_id, text))
        return whole

    def _text(self, target: str, control: str) -> str:
        controls = self._controls_of(target)
        if control not in controls:
            msg = f"{target} has no field {control!r}; it has: {', '.join(controls) or 'none'}"
            raise ToolError(msg)
        return controls[control]

    def _controls_of(self, target: str) -> dict[str, str]:
        if target not in self._targets:
            msg = f"{target} is gone"
            raise ToolError(msg)
        return self._controls[target]


def _shown(controls: Mapping[str, str]) -> tuple[Control, ...]:
    return tuple(Control(id=key, name=key, kind="field", detail={"text": text}) for key, text in controls.items())


def _target(key: str, kind: TargetKind, address: str, server: str) -> Target:
    binds: dict[str, Any] = {"target": key}
    return Target(id=key, name=key, kind=kind, address=address, server=server, binds=binds)


class Faults:
    """Lets something happen at chosen places of a task's way: a failure, a wait, or the end of the process.

    A place is before or after a row of a journal file, named by the tag of its message (``intent``, ``step_done``,
    ``task_result``, ``event`` …), or before or after a ``deed``: the moment in which a tool's change takes effect::

        with Faults() as faults:
            faults.after("deed", kill_process, nth=2)
            ...

    Before a row nothing is kept of it, nor of what is to be committed with it; after it, it is safe, and nobody was
    told. All supervisors of this process are concerned, as long as the ``with`` block lasts.
    """

    def __init__(self) -> None:
        self.passed: collections.Counter[tuple[str, str]] = collections.Counter()
        """How often each place was reached: ``passed["after", "intent"]``. What a run passes is what can be tried."""
        self._what: dict[tuple[str, str, int], Callable[[], object]] = {}
        self._written: dict[JournalFile, list[str]] = {}
        self._lock = threading.Lock()
        self._undo = ExitStack()

    def before(self, kind: str, do: Callable[[], object], *, nth: int = 1) -> None:
        """Call a function before the nth row of a kind, or deed; what it raises fails the write, or the deed."""
        self._what["before", kind, nth] = do

    def after(self, kind: str, do: Callable[[], object], *, nth: int = 1) -> None:
        """Call a function after the nth row of a kind is safe, or the nth deed is done; it must not raise."""
        self._what["after", kind, nth] = do

    def __enter__(self) -> Self:
        """Stand at the places."""
        write, commit, rollback, writing = JournalFile.write, JournalFile.commit, JournalFile.rollback, Deed.writing

        def written(file: JournalFile, rows: Sequence[Row]) -> None:
            kinds = [str(getattr(row.message, "kind", "")) for row in rows]
            try:
                for kind in kinds:
                    self._pass("before", kind)
            except OSError as error:
                problem = f"can't be written: {error.strerror or error}"
                raise JournalError(file.path, problem) from error
            write(file, rows)
            self._written.setdefault(file, []).extend(kinds)

        def committed(file: JournalFile) -> None:
            commit(file)
            for kind in self._written.pop(file, ()):
                self._pass("after", kind)

        def rolled_back(file: JournalFile) -> None:
            self._written.pop(file, None)
            rollback(file)

        @contextlib.contextmanager
        def done(deed: Deed, artifact: Path | None) -> Iterator[None]:
            with writing(deed, artifact):
                self._pass("before", "deed")
                yield
                self._pass("after", "deed")

        places = ((JournalFile, "write", written), (JournalFile, "commit", committed))
        for owner, name, place in (*places, (JournalFile, "rollback", rolled_back), (Deed, "writing", done)):
            self._undo.enter_context(mock.patch.object(owner, name, place))
        return self

    def __exit__(self, *_: object) -> None:
        """Let everything be as it was."""
        self._undo.close()

    def _pass(self, when: Literal["before", "after"], kind: str) -> None:
        with self._lock:
            self.passed[when, kind] += 1
            do = self._what.get((when, kind, self.passed[when, kind]))
        if do is not None:
            do()


def kill_process() -> None:
    """End this process at once, as ``kill -9`` does: nothing is tidied up."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def disk_full() -> None:
    """Fail as a full disk does.

    Raises:
        OSError: Always.
    """
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def assert_replays(
    journal: Path,
    task_id: str | None = None,
    settings: Settings | Path | None = None,
    *,
    agents: Sequence[AgentSpec] = (),
) -> tuple[Replay, ...]:
    """Run the tasks of a journal again, without a model and without a surface, and see that they go as recorded.

    Args:
        journal: The journal's file; the folder of its pictures lies beside it.
        task_id: One task; all of them by default.
        settings: Settings to run them with, or their file; by default those with which they ran, or the defaults and
            the environment's, if an older version ran them.
        agents: The kinds of agents of the program's own, as its supervisor had them.

    Raises:
        AssertionError: If one goes another way; it shows the first difference. Or if the journal has no task.
        UnknownTaskError: If it does not have the one that is named.
        JournalError: If the journal can't be read.
    """
    held = settings if settings is None or isinstance(settings, Settings) else Settings.load(settings)
    with JournalReader.open(journal) as reader:
        tasks = (task_id,) if task_id is not None else tuple(line.id for line in reader.tasks())
    if not tasks:  # a test that tries nothing must not pass
        msg = f"the journal {journal} has no task: if its process was killed, {journal.name}-wal belongs beside it"
        raise AssertionError(msg)
    replays = tuple(replay_journal(journal, task, held, agents=agents) for task in tasks)
    for replay in replays:
        if replay.difference is not None:
            msg = f"the task {replay.task.id} goes another way than recorded\n{replay.difference}"
            raise AssertionError(msg)
    return replays


with contextlib.suppress(ImportError):  # all else here works without pytest
    import pytest

    @pytest.fixture
    def replayed(request: pytest.FixtureRequest) -> Callable[..., tuple[Replay, ...]]:
        """Give `assert_replays`, with paths from the test's own folder: ``replayed("bug-17.db")`` is a whole test.

        Import it in a test or a conftest; it is not registered by itself.
        """

        def check(
            journal: str | Path, task_id: str | None = None, settings: Settings | str | Path | None = None
        ) -> tuple[Replay, ...]:
            here = request.path.parent
            held = here / settings if isinstance(settings, str | Path) else settings
            return assert_replays(here / journal, task_id, held)

        return check
