"""A supervisor's place in a fleet."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import time
from typing import TYPE_CHECKING, Any

from callboard.config import HostLog, install_command
from callboard.fleet._engine import EngineAwayError
from callboard.fleet._machines import AWAY_SECONDS, Machine, Machines
from callboard.fleet._own_name import OwnName
from callboard.fleet._remote_targets import RemoteTargets
from callboard.fleet._served_work import ServedWork
from callboard.fleet._submitted_work import SubmittedWork
from callboard.fleet._task_files import TaskFiles
from callboard.messages import ANY_MACHINE, EventName, SettingsError, SupervisorStoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from callboard.actors.processing import AnsweredElsewhere
    from callboard.actors.runtime import EventLoop
    from callboard.config import Settings
    from callboard.fleet._engine import FleetEngine
    from callboard.fleet._local_machines import LocalMachines
    from callboard.fleet._obedience import Submitting
    from callboard.fleet._submitted_task import SubmittedTask
    from callboard.journal import Journal
    from callboard.messages import Fact, RequestExpired, Target

OPEN_SECONDS = 5.0
"""The longest that a start waits to know the other machines."""
LOCAL_SECONDS = 60.0
"""The longest that a start waits for the machines that it has started."""
_RETRY_SECONDS = 1.0

_log = HostLog()


def check_library() -> None:
    """Check that the library of NATS is installed.

    Raises:
        SettingsError: If it is missing.
    """
    if importlib.util.find_spec("nats") is None:
        command = install_command("fleet")
        msg = f"a fleet needs the library of NATS: {command}"
        raise SettingsError(msg, (command,))


class FleetLink:
    """A supervisor's connection to a fleet, with its work.

    Its methods may be called from any thread but the event loop's.
    """

    def __init__(
        self,
        engine: FleetEngine,
        settings: Settings,
        loop: EventLoop,
        journal: Journal,
        *,
        post: Callable[[RequestExpired | AnsweredElsewhere], None],
        emit: Callable[..., None],
        local: LocalMachines | None = None,
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            settings: The supervisor's settings.
            loop: Its event loop.
            journal: Its journal.
            post: Send the root a message.
            emit: Emit an event.
            local: The machines that this supervisor has started, if they are its fleet.
        """
        self._local = local
        self._engine = engine
        self._settings = settings
        self._loop = loop
        self._emit = emit
        self._own_name = OwnName(engine, settings.fleet.machine, journal.identity)
        self.machines = Machines(
            engine,
            settings.fleet.machine,
            self._tell_change,
            self._look_again,
            self._own_name.observe,
            local=local,
        )
        """The other machines."""
        self.targets = RemoteTargets(self.machines)
        """The surface that offers their targets."""
        self._files = TaskFiles(engine, settings, journal.artifacts)
        self.submitted = SubmittedWork(
            engine,
            self._own_name,
            self._files,
            self.machines,
            post=post,
            emit=emit,
            on_sent=self._tell_if_away,
            on_placed=self._tell_placed,
            is_away=self._is_away,
            is_of_other=self._is_of_other,
            on_machine_loss=settings.fleet.on_machine_loss,
        )
        """The subtasks that they do."""
        self._served: ServedWork | None = None
        self._works: list[concurrent.futures.Future[None]] = []

    @property
    def is_connected(self) -> bool:
        """True while the server answers."""
        return self._engine.is_connected

    def open(self) -> None:
        """Connect, and learn of the other machines.

        A server that does not answer is tried again: the work of this machine does not need it.

        Raises:
            SettingsError: If the server refuses the connection, or was not set up, or a machine of this computer can't
                start.
        """
        begin = time.monotonic()
        is_open = False
        with contextlib.suppress(EngineAwayError):
            is_open = self._ends(self._engine.open(), OPEN_SECONDS)
        if not is_open:
            _log.warning("the server of the fleet does not answer; it is tried again")
        self._start(self._keep_up)
        if is_open:
            self._ends(self.machines.known.wait(), max(0.0, begin + OPEN_SECONDS - time.monotonic()))
        if self._local is not None:
            self._wait_for(self._local)

    def _wait_for(self, local: LocalMachines) -> None:
        """Wait until the machines of this computer have told their targets.

        Raises:
            SettingsError: If they can't start.
        """
        telling = self._loop.submit(self.machines.wait_for_targets(local.names))
        futures: tuple[concurrent.futures.Future[Any], ...] = (telling, local.failure)
        concurrent.futures.wait(futures, LOCAL_SECONDS, concurrent.futures.FIRST_COMPLETED)
        if not telling.done():
            telling.cancel()
            late = f"the machines have not started within {LOCAL_SECONDS:g} s: see what they wrote above"
            msg = f"fleet.local: {local.failure.result() if local.failure.done() else late}"
            raise SettingsError(msg)

    def _ends(self, work: Coroutine[Any, Any, object], seconds: float | None) -> bool:
        """Run a coroutine on the loop; return whether it ended in time."""
        future = self._loop.submit(work)
        try:
            future.result(seconds)
        except TimeoutError:
            future.cancel()
            return False
        return True

    def abandon(self, task_id: str) -> None:
        """Do not wait for a cancelled task's subtasks elsewhere."""
        self._loop.call(lambda: self.submitted.abandon(task_id))

    def sweep(self, unfinished: Callable[[], Iterable[str]]) -> None:
        """Delete the leftovers of subtasks from now on.

        Args:
            unfinished: Returns the ids of the tasks here that are not over. It may block.
        """
        self._start(lambda: self._sweep(unfinished))

    async def _sweep(self, unfinished: Callable[[], Iterable[str]]) -> None:
        with contextlib.suppress(SupervisorStoppedError):
            await self.submitted.sweep(unfinished)
        await asyncio.Event().wait()  # it is stopped, and this is cancelled soon

    def serve(
        self,
        submitting: Submitting,
        targets: Callable[[], Iterable[Target]],
        add_sink: Callable[[Callable[[Fact], None]], None],
    ) -> None:
        """Do the work of other machines from now on.

        Args:
            submitting: The part of the supervisor that does the work.
            targets: Lists the targets that other machines may give work.
            add_sink: Have a function called with each event of the supervisor.

        Raises:
            SettingsError: If another machine has the name of this one.
        """
        if self._served is None:
            served = ServedWork(
                self._engine,
                self._own_name,
                submitting,
                targets,
                files=self._files,
                settings=self._settings,
                call=self._loop.call,
            )
            add_sink(served.see)
            self._ends(served.state.claim(), None)
            self._served = served
            self._start(served.run)

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no more work of other machines, and wait for the begun.

        Returns:
            Whether it ended in time.
        """
        return self._served is None or self._ends(self._served.drain(), timeout)

    def close(self, timeout: float) -> bool:
        """Leave the fleet; return whether that was told in time."""
        for work in self._works:
            work.cancel()
        return self._ends(self._leave(), timeout)

    async def _leave(self) -> None:
        if self._served is not None and self._engine.is_connected:
            await self._served.state.leave()
        if self._engine.is_open:
            await self._engine.close()

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._works.append(self._loop.submit(self._repeat(work)))

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat work that should not end, whatever ends it."""
        while True:
            try:
                await work()
            except SettingsError as error:  # the server was away at the start
                _log.error("the connection to the fleet: %s", error)
            except Exception:  # an edge: without it, this machine would silently be deaf
                _log.exception("the connection to the fleet failed; it is tried again")
            await asyncio.sleep(_RETRY_SECONDS)

    async def _keep_up(self) -> None:
        while not self._engine.is_open:
            try:
                await self._engine.open()
            except EngineAwayError:
                await asyncio.sleep(_RETRY_SECONDS)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.machines.watch())
            group.create_task(self.submitted.watch())

    def _tell_if_away(self, name: str) -> None:
        """Emit an event for work that was sent to an absent machine."""
        if name == ANY_MACHINE:
            self._tell(Machine(name, is_away=True))
        machine = self.machines.get(name)
        if machine is not None and machine.is_away:
            self._tell(machine)

    def _tell_placed(self, task: SubmittedTask) -> None:
        self._emit(
            EventName.MACHINE_CHOSEN,
            task_id=task.task_here,
            run_id=task.run_id,
            machine=task.machine,
            target=task.target_there,
        )

    def _is_away(self, name: str) -> bool:
        machine = self.machines.get(name)
        return machine is None or machine.is_away

    def _is_of_other(self, task_id: str) -> bool:
        return self._served is not None and task_id in self._served.task_ids

    def _look_again(self, name: str) -> None:
        """Look again at work that a machine with other targets may do."""
        self.submitted.machine_changed(name)

    def _tell_change(self, machine: Machine) -> None:
        self.submitted.machine_changed(machine.name)
        self._tell(machine)

    def _tell(self, machine: Machine) -> None:
        """Emit an event for a machine that is away or back.

        Each task with work that waits for it has its own; without one, the supervisor has it.
        """
        waiting: dict[str, list[str]] = {}
        for task in self.submitted.tasks:
            if task.machine == machine.name:
                waiting.setdefault(task.task_here, []).append(task.run_id)
        for task_id, runs in (waiting or {"": []}).items():
            if machine.is_away:
                is_stopped = machine.state is not None and machine.state.left
                self._emit(
                    EventName.MACHINE_AWAY,
                    task_id=task_id,
                    machine=machine.name,
                    waiting=runs,
                    seconds=0.0 if is_stopped else AWAY_SECONDS,
                    stopped=is_stopped,
                )
            else:
                self._emit(EventName.MACHINE_BACK, task_id=task_id, machine=machine.name, waiting=runs)
