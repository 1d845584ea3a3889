"""The inputs of checks: named functions, and files at submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from callboard.messages import EventName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from callboard.messages import Fact, Task


class LastReading(Protocol):
    """The surfaces that the last checks of a task read."""

    restless: set[str]
    """The ids of those that may change by themselves."""
    unmarked: set[str]
    """The ids of those whose changes can't be seen."""

    async def changed(self) -> list[str]:
        """Return the surfaces and files that changed since they were read."""
        ...


class CheckInputs:
    """The functions that checks may name, and tasks' files at submission.

    The root keeps and drops tasks, checks read on the event loop, and `see` runs on any thread.
    """

    def __init__(self, programs: Mapping[str, Callable[..., Any]]) -> None:
        self.programs = dict(programs)
        """The functions of the host program, by name."""
        self.last_readings: dict[str, LastReading] = {}
        """By task."""
        self._digests: dict[str, Mapping[str, str]] = {}
        self._contents: dict[str, Mapping[str, bytes]] = {}
        self._written: dict[str, set[str]] = {}

    def see(self, fact: Fact) -> None:
        """Note the files that a task has written, from any thread."""
        if fact.name is EventName.COMMAND_ENDED and self._digests and (paths := fact.data.get("artifacts")):
            for task_id, written in self._written.copy().items():
                if task_id != fact.task_id:
                    written.update(paths)

    def keep(self, task_id: str, digests: Mapping[str, str], contents: Mapping[str, bytes] | None = None) -> None:
        """Keep the digests of a task's files at its submission.

        Their contents, too, if its judge compares them and no journal in a file has them.
        """
        self._digests[task_id] = digests
        if contents:
            self._contents[task_id] = contents
        self._written[task_id] = set()

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._digests.pop(task_id, None)
        self._written.pop(task_id, None)
        self._contents.pop(task_id, None)
        self.last_readings.pop(task_id, None)

    def digests(self, task_id: str) -> Mapping[str, str]:
        """Return the digests of a task's files at its submission."""
        return self._digests.get(task_id, {})

    def contents(self, task_id: str, name: str) -> bytes | None:
        """Return a file's contents at a task's submission, if kept here."""
        return self._contents.get(task_id, {}).get(name)

    def written_by_others(self, task_id: str) -> Collection[str]:
        """Return the paths that other tasks have written since a task's submission."""
        return self._written.get(task_id, ())

    def lacking(self, task: Task) -> list[str]:
        """Name the functions that a task's checks need and this process lacks."""
        names = dict.fromkeys(check.program for check in task.all_checks if check.program is not None)
        existing_names = ", ".join(self.programs) or "none"
        return [
            f"no check program is called {name!r}; there are: {existing_names}"
            for name in names
            if name not in self.programs
        ]
