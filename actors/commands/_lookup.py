"""Target lookup: a task's target must exist before the task is accepted."""

from __future__ import annotations

import functools
import inspect
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from callboard.actors.commands._file_digests import MOST_KEPT, compared_files, contents_within, digests_of, join_files
from callboard.actors.commands._toolbox import find_target
from callboard.actors.runtime import refuse_own_thread
from callboard.messages import (
    AgentKind,
    SettingsError,
    Target,
    TargetKind,
    TaskRefusedError,
    UnknownTargetError,
    did_you_mean,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from callboard.actors.runtime import EventLoop, Lanes
    from callboard.messages import Seconds, Task
    from callboard.surfaces import Server


_LISTED = 20
"""The most files that an error lists."""


class TargetLookup:
    """Lists the targets of all surfaces, each on its lane.

    Blocks; for the host program's threads.
    """

    def __init__(
        self,
        surfaces: Sequence[Server],
        lanes: Lanes,
        loop: EventLoop,
        seconds: Seconds,
        kinds: Collection[str] = tuple(AgentKind),
        *,
        local: Collection[str] = (),
    ) -> None:
        """Create it.

        `seconds` limits each surface, `kinds` are the agents that targets are offered to, and `local` names the
        surfaces whose targets other processes of this computer work on.
        """
        self._local = local
        self._kinds = kinds
        self._surfaces = surfaces
        self._lanes = lanes
        self._loop = loop
        self._seconds = seconds

    def targets(self, tasks: Sequence[Task]) -> list[Target | None]:
        """Find the targets of tasks that are not part of a plan.

        A plan's targets are looked up when their round begins, since an earlier step may create them.

        Raises:
            UnknownTargetError: If no surface offers a target.
            TaskRefusedError: If a target is an application, or can't be found while a surface can't list its targets;
                or if a task may change a file that does not exist.
        """
        if all(task.target is None and not task.may_change for task in tasks):
            return [None] * len(tasks)
        targets, down = self._listed()
        keeping = {surface.name for surface in self._surfaces if surface.keeps_versions}
        files = [target.id for target in targets if target.server in keeping and target.kind is TargetKind.WINDOW]
        for task in tasks:
            _check_files(task, files, down, self._no_target)
        return [
            None if task.target is None else _usable_target(task, task.target, targets, down, self._no_target)
            for task in tasks
        ]

    def files(self, tasks: Sequence[Task]) -> list[dict[str, str] | None]:
        """Return the digests of the files that each task compares.

        None for a task whose checks compare none.

        Raises:
            TaskRefusedError: If a check names a file as unchanged that does not exist, or files can't be read.
        """
        names_by_task = [compared_files(task) for task in tasks]
        if all(names == () for names in names_by_task):
            return [None] * len(tasks)
        refuse_own_thread("looking at files")
        try:
            paths = join_files(self._ask_surface(surface, surface.files) for surface in self._surfaces)
            names = (
                None if None in names_by_task else {name for task_names in names_by_task for name in task_names or ()}
            )
            digests = self._lanes.submit("digests of files", functools.partial(digests_of, paths, names)).result()
        except Exception as error:  # third-party code boundary: a surface of the host program
            msg = f"the files that the checks compare can't be read: {reason_of(error)}"
            raise TaskRefusedError(msg) from error
        for task in tasks:
            _check_unchanged(task, paths)
        digests_by_task = [
            digests if names is None else {name: digests[name] for name in names if name in digests}
            for names in names_by_task
        ]
        return [None if names == () else files for names, files in zip(names_by_task, digests_by_task, strict=True)]

    def contents(self, task: Task) -> dict[str, bytes] | None:
        """Return the contents of all files, for a task's judge.

        None for a task without one.

        Raises:
            TaskRefusedError: If they are too large to be kept, or can't be read.
        """
        if task.judge is None or task.dry_run:
            return None
        refuse_own_thread("looking at files")
        try:
            paths = join_files(self._ask_surface(surface, surface.files) for surface in self._surfaces)
            read = self._lanes.submit("contents of files", lambda: contents_within(paths, MOST_KEPT)).result()
        except Exception as error:  # third-party code boundary: a surface of the host program
            msg = f"the files that the judge compares can't be read: {reason_of(error)}"
            raise TaskRefusedError(msg) from error
        if isinstance(read, int):
            msg = (
                f"judge: the files of the workspace have {read:,} bytes or more, and at most {MOST_KEPT:,} are kept to "
                "be compared with those at the end: take a smaller workspace, or checks in place of a judge"
            )
            raise TaskRefusedError(msg)
        return read

    def _ask_surface(self, surface: Server, method: Callable[[], Any]) -> Any:
        """Call a method of a surface on its lane."""
        answer: Any = self._lanes.submit(surface.lane(None) or surface.name, method).result(self._seconds)
        if inspect.iscoroutine(answer):
            answer = self._loop.submit(answer).result(self._seconds)
        return answer

    def _no_target(self, name: str) -> str:
        """Ask the surfaces why a name can't be a target."""
        return next(filter(None, (surface.no_target(name) for surface in self._surfaces)), "")

    def listed(self) -> tuple[Target, ...]:
        """List the targets that can be assigned now."""
        return self._listed()[0]

    def refuse_shared_ids(self, owners: Collection[str]) -> None:
        """Refuse MCP servers whose target has the id of another surface's target.

        Raises:
            SettingsError: If two targets share an id: a task that names it would be ambiguous.
        """
        surfaces_by_target: dict[str, str] = {}
        for target in self.listed() if owners else ():
            first_surface = surfaces_by_target.setdefault(target.id, target.server)
            if first_surface != target.server and {first_surface, target.server} & set(owners):
                msg = (
                    f"mcpServers: {first_surface!r} and {target.server!r} both offer a target {target.id!r}; "
                    "give the MCP server another name, or `surface: false`"
                )
                raise SettingsError(msg)

    def _listed(self) -> tuple[tuple[Target, ...], BaseException | None]:
        """List all surfaces' targets, each within a time limit.

        Failed surfaces do not hide the others.
        """
        refuse_own_thread("looking for targets")
        answers = [
            (surface, self._lanes.submit(surface.lane(None) or surface.name, surface.targets))
            for surface in self._surfaces
        ]
        targets: list[Target] = []
        down: BaseException | None = None
        for surface, answer in answers:
            try:
                listed: Any = answer.result(self._seconds)
                if inspect.iscoroutine(listed):
                    listed = self._loop.submit(listed).result(self._seconds)
                for target in _checked(listed):
                    targets += Target.model_validate(target).offers(self._kinds, self._local)
            except Exception as error:  # third-party code boundary: a surface of the host program
                down = TaskRefusedError(f"the targets of {surface.name} can't be listed: {reason_of(error)}")
                down.__cause__ = error
        return tuple(targets), down


def _checked(listed: Any) -> Iterator[Any]:
    """Yield the targets that a surface of the host program lists.

    Raises:
        TypeError: If it gives anything else.
    """
    for target in (None,) if listed is None else listed:
        if not isinstance(target, Target | dict):
            msg = f"targets() must give Target objects, not {type(target).__name__}"
            raise TypeError(msg)
        yield target


def _check_files(task: Task, files: Sequence[str], down: BaseException | None, no_target: Callable[[str], str]) -> None:
    """Refuse a task whose `may_change` names no file, or two.

    Raises:
        TaskRefusedError: If it does; the message lists the files.
    """
    for name in task.may_change:
        if files.count(name) == 1:
            continue
        if down is not None:
            raise down  # the file may be one that could not be listed
        if name in files:
            msg = f"may_change: {name!r} is the name of {files.count(name)} files, of several surfaces"
            raise TaskRefusedError(msg)
        if reason := no_target(name):
            msg = f"may_change: {name!r} can't be changed: {reason}"
            raise TaskRefusedError(msg)
        same = [file for file in files if PurePath(file).name.casefold() == PurePath(name).name.casefold()]
        hint = did_you_mean(name, same or files, cutoff=0 if same else 0.6)
        listed = ", ".join(files[:_LISTED]) + (" …" if len(files) > _LISTED else "") or "none"
        msg = f"may_change: there is no file {name!r} that a task may change{hint or ';'} there are: {listed}"
        raise TaskRefusedError(msg)


def _check_unchanged(task: Task, files: Collection[str]) -> None:
    """Refuse a task that checks a file that is missing.

    Raises:
        TaskRefusedError: If it has one.
    """
    for name in (name for check in task.all_checks for name in check.unchanged or ()):
        if name not in files:
            msg = f"checks: {name!r} can't stay unchanged: there is no such file{did_you_mean(name, files)}"
            raise TaskRefusedError(msg)


def _usable_target(
    task: Task,
    reference: str,
    offered: Sequence[Target],
    down: BaseException | None,
    no_target: Callable[[str], str],
) -> Target:
    targets = [target for target in offered if target.open_to(task.id)]
    target = find_target(targets, reference)
    if target is None and down is not None:
        raise down  # the target may be one that could not be listed
    if target is None:
        raise UnknownTargetError(reference, tuple(candidate.id for candidate in targets), no_target(reference))
    if target.kind is TargetKind.APPLICATION:
        msg = f"{target.id!r} is an application: give one of its windows, or no target"
        raise TaskRefusedError(msg)
    try:
        return target.needing(task.needs)
    except ValueError as error:
        raise TaskRefusedError(str(error)) from error
