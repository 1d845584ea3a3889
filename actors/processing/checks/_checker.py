"""Run the checks of a FINISH, on what is saved."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.actors.commands import MOST_KEPT, differences_in_words
from callboard.actors.processing.checks._ask_judge import asked_judge
from callboard.actors.processing.checks._changed_files import changes_beside, effects_of
from callboard.actors.processing.checks._matchers import Missing, UnreadableError, difference, holds, value_at
from callboard.actors.processing.checks._readings import Reader, check_running
from callboard.config import fits
from callboard.messages import (
    AgentStatus,
    CallboardError,
    CheckResult,
    EventName,
    ResultStatus,
    SupervisorStoppedError,
    as_json,
    encodable,
    one_line,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import JsonValue

    from callboard.actors.processing._context import Context
    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run
    from callboard.messages import Check, JudgeResult

_PASSES = 3
"""The most times that all checks run because a surface changed between them."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_MOST_SHOWN = 2_000
"""The most characters of JSON of a value in a result."""
UNSTEADY = "it was changed while it was checked"


def finishes(run: Run, acted: Acted) -> bool:
    """Return whether a step is about to finish its work."""
    done = all(result.status in {ResultStatus.SUCCESS, ResultStatus.NONE} for result in acted.results)
    return acted.decision.status == AgentStatus.FINISH and not acted.held and done and not run.assign.dry_run


@dataclass(frozen=True)
class _CheckReading:
    """The value of a check's reading."""

    held: bool
    value: JsonValue | Missing = None
    second_value: JsonValue | Missing = None
    """The value of its second reading."""
    at: str = ""
    """A JSON pointer to the first part that is not as expected."""
    problem: str = ""


class Checker:
    """Runs checks and asks judges.

    It has no state; its methods run on the event loop.
    """

    async def run(self, context: Context, run: Run, acted: Acted) -> tuple[CheckResult, ...]:
        """Run all checks of a finishing step.

        Nothing may write in between: if a surface that was read is another one after the last check, all of them run
        again. Late effects are waited for. The time does not count for the limit of the step. Checks that a model
        proposed run before the task's own, and apart from them: they can't make one of those fail.

        Raises:
            SupervisorStoppedError: If the supervisor stops. The step stays unfinished then, and the next process
                resumes it at its checks.
        """
        checks = run.checks_of(acted.decision)
        own_checks, proposed = ([check for check in checks if check.source == source] for source in ("task", "model"))
        limit = context.meter.limit
        with contextlib.ExitStack() as held:
            if limit is not None:
                limit.hold()
                held.callback(limit.release)
            proposed_results = await self._until_held(context, run, acted, proposed)
            results = [*await self._until_held(context, run, acted, own_checks), *proposed_results]
        redacted = tuple(context.services.secrets.redact(run.assign.task_id, encodable(result)) for result in results)
        for result in redacted:
            name = EventName.CHECK_PASSED if result.held else EventName.CHECK_FAILED
            facts = result.model_dump(
                mode="json", include={"name", "reading", "expected", "found", "problem", "source"}
            )
            context.tell(name, run, check=facts, duration=result.seconds)
        return redacted

    async def outdated(self, context: Context, run: Run) -> bool:
        """Return whether anything has changed since a task's last checks."""
        check_running(context.lease)
        reader = context.services.check_inputs.last_readings.get(run.assign.task_id)
        return reader is not None and bool(reader.unmarked or reader.restless or await reader.changed())

    async def judge(self, context: Context, run: Run) -> tuple[tuple[JudgeResult, ...], int]:
        """Ask the judge of a finishing step.

        The time does not count for the limit of the step.

        Returns:
            Its answers, and the number of its model calls.

        Raises:
            OutOfBudgetError: If a budget is too small for a call.
            SupervisorStoppedError: As `run`.
        """
        check_running(context.lease)
        limit = context.meter.limit
        with contextlib.ExitStack() as held:
            if limit is not None:
                limit.hold()
                held.callback(limit.release)
            changes, unseen = await self._changes(context, run)
            return await asked_judge(context, run, changes, unseen)

    async def _changes(self, context: Context, run: Run) -> tuple[str, list[str]]:
        """Put into words how all files differ from those at submission.

        Files that another task wrote are left out. Remarks tell what is missing.
        """
        task_id, unseen = run.assign.task_id, list[str]()
        try:
            reader = Reader(context, run, program=True)
            files, new_digests = await reader.files(), await reader.digests(None)
        except Exception as error:  # third-party code boundary: surfaces of the host program
            return "", [f"the files can't be read: {reason_of(error)}"]
        inputs = context.services.check_inputs
        old_digests, written = inputs.digests(task_id), inputs.written_by_others(task_id)
        files_of_others = {name for name, path in files.items() if str(path) in written}
        differ = sorted(
            name for name in old_digests.keys() | new_digests.keys() if old_digests.get(name) != new_digests.get(name)
        )
        if shared_names := [name for name in differ if name in files_of_others]:
            unseen.append(f"another task wrote these files, which are left out: {', '.join(shared_names)}")

        def describe() -> str:
            differences: list[tuple[str, bytes | None, bytes | None]] = []
            for name in differ:
                old = self._version(context, task_id, name)
                if name in files_of_others:
                    continue
                if old is None and name in old_digests:
                    unseen.append(f"{name} has changed, and its contents from before are lost")
                    continue
                try:
                    size = files[name].stat().st_size if name in files else 0
                    if size > MOST_KEPT:
                        unseen.append(f"{name} has changed, and is too large to be compared: {size:,} bytes")
                        continue
                    differences.append((name, old, files[name].read_bytes() if name in files else None))
                except OSError as error:
                    unseen.append(f"{name} has changed, and can't be read: {error.strerror}")
            return differences_in_words(differences)

        return await context.services.lanes.run("differences of files", describe), unseen

    def _version(self, context: Context, task_id: str, name: str) -> bytes | None:
        """Return the contents of a file at submission; None without any."""
        inputs = context.services.check_inputs
        digest = inputs.digests(task_id).get(name)
        if digest is None:
            return None
        versions = context.services.journal.versions
        contents = inputs.contents(task_id, name)
        return contents if contents is not None or versions is None else versions.read(task_id, digest)

    async def _until_held(
        self, context: Context, run: Run, acted: Acted, pending_checks: Sequence[Check]
    ) -> list[CheckResult]:
        start, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            check_running(context.lease)
            results, restless = await self._steady(context, run, acted, pending_checks)
            check_running(context.lease)  # a reading may have failed because of the stop
            least = run.limits.settle_seconds if restless else 0.0
            checks = zip(pending_checks, results, strict=True)
            longest = max((max(check.within, least) for check, result in checks if not result.held), default=0.0)
            remaining_seconds = longest - (time.monotonic() - start)
            if remaining_seconds <= 0:
                return results
            await asyncio.sleep(min(pause, remaining_seconds))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _steady(
        self, context: Context, run: Run, acted: Acted, checks: Sequence[Check]
    ) -> tuple[list[CheckResult], bool]:
        """Run all checks on surfaces that stay the same meanwhile.

        A surface that may change by itself, such as a window with a clock, or that does not tell its changes, as a
        shell, stays the same if a second reading gives the same values. The second part of the answer tells whether one
        that may change by itself was read.
        """
        earlier_results: list[CheckResult] = []
        for _ in range(_PASSES):
            of_task = all(check.source == "task" for check in checks)
            reader = Reader(context, run, program=of_task)
            if of_task and checks:
                context.services.check_inputs.last_readings[run.assign.task_id] = reader
            results = [await self._result(reader, acted, check) for check in checks]
            moved = await reader.changed()
            volatile_surfaces = reader.restless | reader.unmarked
            if volatile_surfaces and _values(earlier_results) != _values(results):
                moved = [*moved, *volatile_surfaces]
            if not moved:
                return results, bool(reader.restless)
            earlier_results = results
        problem = f"{', '.join(sorted(moved))}: {UNSTEADY}"
        unsteady = [result.model_copy(update={"held": False, "problem": problem}) for result in results]
        return unsteady, bool(reader.restless)

    async def _result(self, reader: Reader, acted: Acted, check: Check) -> CheckResult:
        start, secrets, task_id = time.perf_counter(), reader.context.services.secrets, reader.run.assign.task_id

        def shown(value: JsonValue | Missing, path: str) -> JsonValue:
            """Show a part of a value, redacted before it is cut."""
            part: dict[str, JsonValue] = {"found": value_at_or_null(value, path)}
            return _cut(secrets.redact(task_id, part)["found"])

        try:
            check_reading = await self._check_reading(reader, acted, check)
        except SupervisorStoppedError:
            raise
        except CallboardError as error:
            check_reading = _CheckReading(held=False, problem=str(error))
        except Exception as error:  # third-party code boundary: surfaces and functions of the host program
            check_reading = _CheckReading(held=False, problem=f"{type(error).__name__}: {reason_of(error)}")
        expected: JsonValue = check.expected
        if check.same_as is not None and not check_reading.problem:
            expected = {"same_as": str(check.same_as), "value": shown(check_reading.second_value, check_reading.at)}
        value = shown(check_reading.value, check_reading.at)
        return CheckResult(
            name=check.title,
            reading=str(check),
            expected=expected,
            found={"at": check_reading.at, "value": value} if check_reading.at else value,
            held=check_reading.held,
            problem=one_line(secrets.redact(task_id, check_reading.problem), _MOST_SHOWN),
            show=check.show,
            source=check.source,
            seconds=time.perf_counter() - start,
        )

    async def _check_reading(self, reader: Reader, acted: Acted, check: Check) -> _CheckReading:
        match check.form:
            case "program":
                value = await self._called(reader, check)
                return _CheckReading(held=value is True, value=value)
            case "downloaded":
                return await self._downloaded(reader, acted, str(check.downloaded))
            case "file" | "only" | "unchanged":
                return await self._of_files(reader, acted, check)
            case _:
                return await self._read(reader, check)

    async def _read(self, reader: Reader, check: Check) -> _CheckReading:
        value, check = await reader.value(check), reader.expectation(check)
        second_value = None if check.same_as is None else await reader.value(check.same_as)
        if isinstance(second_value, Missing) and check.same_as is not None:
            msg = f"{check.same_as}: there is nothing at {check.same_as.path}"
            raise UnreadableError(msg)
        held = holds(check, value, second_value)
        wanted_value = (
            second_value if check.same_as is not None else check.equals if check.matcher == "equals" else value
        )
        return _CheckReading(
            held, value, second_value, "" if held else difference(value, wanted_value, check.tolerance)
        )

    async def _of_files(self, reader: Reader, acted: Acted, check: Check) -> _CheckReading:
        run, files, inputs = reader.run, await reader.files(), reader.context.services.check_inputs
        old_digests = inputs.digests(run.assign.task_id)
        if check.file is not None:
            new_digests = await reader.digests((check.file,))
            if check.file not in files:
                return _CheckReading(held=False, value="there is no such file")
            if await reader.is_document(check.file):
                await reader.part(check.file, "file")
            else:
                await reader.open(check.file)
            if check.changed is None:
                return _CheckReading(held=True, value="it exists")
            changed = new_digests.get(check.file) != old_digests.get(check.file)
            return _CheckReading(held=changed is check.changed, value="changed" if changed else "unchanged")
        new_digests = await reader.digests(check.unchanged)
        effects = effects_of(run, acted, files, await reader.windows())
        if check.unchanged is not None:
            beside = [name for name in check.unchanged if new_digests.get(name) != old_digests.get(name)]
        else:
            written = inputs.written_by_others(run.assign.task_id)
            files_of_others = {name for name, path in files.items() if str(path) in written}
            beside = changes_beside(check.only or (), effects, old_digests, new_digests, files_of_others)
        return _CheckReading(held=not beside, value={"changed": [*beside]})

    async def _downloaded(self, reader: Reader, acted: Acted, pattern: str) -> _CheckReading:
        """Find the results of a task with a name that fits."""
        new_paths = dict.fromkeys((*reader.run.made, *(path for result in acted.results for path in result.made)))
        paths = [Path(path) for path in new_paths if fits(pattern, Path(path).name)]

        def sizes() -> list[int]:
            return [path.stat().st_size for path in paths if path.is_file()]

        return _CheckReading(
            held=any(await reader.context.services.lanes.run("sizes of files", sizes)),
            value=[path.name for path in paths] or [Path(path).name for path in new_paths],
        )

    async def _called(self, reader: Reader, check: Check) -> JsonValue:
        """Call a function of the host program."""
        programs = reader.context.services.check_inputs.programs
        function = programs.get(check.program or "")
        if function is None:
            msg = f"no check program is called {check.program!r}; there are: {', '.join(programs) or 'none'}"
            raise UnreadableError(msg)
        arguments: dict[str, object] = {**reader.filled(check.args)}
        if _wants_files(function):
            arguments.setdefault("files", dict(await reader.files()))
        if inspect.iscoroutinefunction(function):
            work = function(**arguments)
        else:
            lane = f"check {check.program}"
            work = reader.context.services.lanes.run(lane, functools.partial(function, **arguments))
        value = await reader.in_time(work, f"the check program {check.program}")
        try:
            return as_json(value)
        except ValueError:
            return repr(value)


def _wants_files(function: Callable[..., Any]) -> bool:
    """Return whether a check program has the parameter for files."""
    try:
        return "files" in inspect.signature(function).parameters
    except ValueError:  # a function in C without one
        return False


def _values(results: list[CheckResult]) -> list[tuple[object, ...]]:
    return [(result.held, result.found, result.problem) for result in results]


def value_at_or_null(value: JsonValue | Missing, path: str) -> JsonValue:
    """Return the part of a value that a result shows."""
    part = value if isinstance(value, Missing) else value_at(value, path)
    return None if isinstance(part, Missing) else part


def _cut(value: JsonValue) -> JsonValue:
    """Cut a long value for a result."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
