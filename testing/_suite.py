"""Tests that every surface should pass, including third parties'."""

from __future__ import annotations

import contextlib
import io
import time
import unittest
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callboard.actors.runtime import VirtualClock
from callboard.messages import (
    EventName,
    Look,
    LookBudget,
    Outcome,
    ResultStatus,
    Secret,
    as_json,
)
from callboard.testing._crashes import CrashTrials
from callboard.testing._left import Leftovers
from callboard.testing._stand import SECONDS, SurfaceCall, SurfaceCase, closes_unopened, opened, supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from callboard.actors.client import TaskHandle
    from callboard.messages import Box
    from callboard.testing._stand import Alone, Worker

_T = TypeVar("_T")
PASSWORDS = ("correct horse battery staple", "dpssfdu ipstf cbuufsz tubqmf")
"""Two secrets of one length that must not be visible anywhere."""
_LONGEST = 86_400.0
"""The longest time limit of a call under test, in seconds of a clock that the suite moves."""
_PNG = b"\x89PNG\r\n"
_HOUR = 3_600.0


def surface_suite(make: Callable[[Path], SurfaceCase]) -> type[SurfaceSuite]:
    """Make a class of tests of a surface, for pytest.

    ``TestLamps = surface_suite(lamps)`` is a whole test file, except for `lamps` itself. Each of the class's methods
    checks one promise of docs/surfaces.md. A test is skipped if the case lacks its facts, and the reason names them.
    Times are printed (``pytest -rP``), and compared with nothing but an hour.

    Args:
        make: Makes the case again for each test; it gets an empty folder.
    """
    return type("SurfaceSuite", (SurfaceSuite,), {"make": staticmethod(make)})


class SurfaceSuite:
    """The tests; see `surface_suite`."""

    make: Callable[[Path], SurfaceCase]

    def test_targets_are_stable(self, tmp_path: Path) -> None:
        """Two lists are equal, ids are unique, and the surface is named.

        The lists may come from two instances: a task that a crash interrupted resumes with the target of the same id,
        at a new instance of the surface.
        """
        case = self.make(tmp_path)
        with opened(case) as alone:
            first, second = alone.targets(), alone.targets()
            assert first == second, "`targets` lists something else each time it is asked, though nothing happened"
            ids = [target.id for target in first]
            assert len(ids) == len(set(ids)), f"two targets have one id: {sorted(ids)}"
            strangers = [target.id for target in first if target.server != alone.surface.name]
            assert not strangers, f"`Target.server` of {strangers[0]} is not {alone.surface.name!r}, the surface's name"
            alone.target(case.target)
        with opened(case) as alone:
            later = {(target.id, target.address) for target in alone.targets()}
        assert later == {(target.id, target.address) for target in first}, (
            "a new instance of the surface lists other targets, though nothing changed: "
            "derive ids and addresses from the targets"
        )

    def test_an_observation_is_bounded(self, tmp_path: Path) -> None:
        """It is within the budget of its look.

        It has a picture only on request.
        """
        case = self.make(tmp_path)
        with opened(case) as alone:
            target, budget = alone.target(case.target), LookBudget()
            observation = alone.look(target)
            sizes = {
                "controls": (len(observation.controls), budget.controls),
                "text": (len(observation.text), budget.text),
                "picture": (len(observation.picture or b""), budget.picture),
            }
            excesses = {name: size for name, size in sizes.items() if size[0] > size[1]}
            assert not excesses, (
                f"an observation is over its budget, `look.budget` (what it has, what it may have): {excesses}"
            )
            without = alone.look(target, Look(picture=False, shown=False))
            assert without.picture is None, "a look with `picture=False` has a picture; there is one before each action"
            assert without.annotated is None, (
                "a look with `picture=False` has a picture; there is one before each action"
            )
            if alone.surface.pictures:
                assert (observation.picture or b"").startswith(_PNG), (
                    "`pictures` is true, and an observation has no PNG picture"
                )
            else:
                assert observation.picture is None, "it has pictures: say `pictures = True`"
            small = alone.look(target, Look(picture=False, shown=False, budget=LookBudget(controls=1, text=1)))
            cut = len(small.controls) < len(without.controls) or len(small.text) < len(without.text)
            assert small.notes or not cut, "content beyond `look.budget` is left out without a note"

    def test_the_fingerprint_is_equal_while_nothing_changes(self, tmp_path: Path) -> None:
        """It equals that of an observation at the same moment.

        It stays equal until a change. It is cheap, so it takes no picture; its time is printed beside that of a look.
        """
        case = self.make(tmp_path)
        with opened(case) as alone:
            target = alone.target(case.target)
            begin = time.perf_counter()
            observation = alone.look(target)
            took = time.perf_counter() - begin
            with alone.pictured() as pictured:
                marks = [_mark(alone, case) for _ in range(2)]
            seconds = (time.perf_counter() - begin - took) / 2
            print(f"a fingerprint took {seconds:.4f} s, a look {took:.4f} s")  # noqa: T201 - a test's report
            assert not pictured, (
                "`fingerprint` looks with a picture; it is taken before each action, and until all is quiet"
            )
            assert marks[0] == marks[1], "`fingerprint` differs though nothing has changed"
            expected = observation.fingerprint or marks[0]
            assert marks[0] == expected, "`fingerprint` is not that of an observation made at the same moment"
            change = _needs(case.change, "change")
            change()
            assert _mark(alone, case) != marks[0], "`fingerprint` is the same after a change that is to be seen"

    def test_another_control_is_not_taken_for_the_same(self, tmp_path: Path) -> None:
        """`resolve` finds a control in a later look.

        Another control in its place is refused.
        """
        case = self.make(tmp_path)
        replace = _needs(case.replace, "replace")
        with opened(case) as alone:
            target = alone.target(case.target)
            control = next(
                (candidate for candidate in alone.look(target).controls if candidate.id == case.control), None
            )
            assert control is not None, f"the case names the control {case.control!r}, which is not observed"
            same_control = alone.ask(alone.surface.resolve, alone.look(target), control, target=target)
            assert same_control is not None, "`resolve` does not find a control that is still there"
            assert same_control.id == control.id, f"`resolve` gives {same_control.id!r} for {control.id!r}"
            replace()
            other_control = alone.ask(alone.surface.resolve, alone.look(target), control, target=target)
            assert other_control is None, f"`resolve` takes another control for {control.id!r}: {other_control}"

    def test_a_cancel_returns_at_once_and_nothing_happens_later(self, tmp_path: Path) -> None:
        """A call of an hour delays no cancel.

        It has no effect later.
        """
        with self._slow(tmp_path, limits={"command_seconds": 2 * _HOUR}) as (_, handle):
            begin = time.perf_counter()
            handle.cancel("the suite")
            result = handle.result(SECONDS)
            print(f"a cancel returned after {time.perf_counter() - begin:.3f} s")  # noqa: T201 - a test's report
            assert result.outcome is Outcome.CANCELLED, f"a task that was cancelled ended as {result.outcome}"

    def test_a_call_that_takes_too_long_is_in_doubt(self, tmp_path: Path) -> None:
        """A call's time limit ends the wait.

        The call is left in doubt. It has no effect later.
        """
        clock = VirtualClock()
        with self._slow(tmp_path, clock=clock, limits={"step_seconds": 2 * _LONGEST}) as (limit, handle):
            clock.advance(limit)
            handle.result(SECONDS)
            ended = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
            assert ended[0]["status"] == ResultStatus.FAILURE.value, "a call that timed out is reported as a success"
            assert "in doubt" in str(ended[0]["error"]), f"its error does not mention the doubt: {ended[0]['error']}"

    @contextlib.contextmanager
    def _slow(self, folder: Path, **sections: Any) -> Iterator[tuple[float, TaskHandle]]:
        """Start the call of an hour, and check its stop.

        Returns the call's time limit. After the stop it must have no effect.
        """
        case = self.make(folder)
        slow, started, done = (_needs(getattr(case, name), name) for name in ("slow", "started", "done"))
        release = case.release or (lambda: None)
        with Leftovers(folder / "temporary") as leftovers, supervised(case, slow, **sections) as worker:
            try:
                handle = worker.submit()
                _wait(lambda: started() or handle.done(), "`started` never reports that `slow` runs")
                assert started(), f"`slow` does not run: {handle.result(SECONDS).causes}"
                yield _limit(worker, slow), handle
                if case.stopped is not None:
                    begin = time.perf_counter()
                    _wait(case.stopped, "`slow` is not stopped when it is cancelled")
                    print(f"it was stopped after {time.perf_counter() - begin:.3f} s more")  # noqa: T201 - a test's report
            finally:
                release()
            assert worker.is_free(), (
                f"{slow.tool} goes on after it was stopped: make it a coroutine or a program that ends with its call, "
                "or tell with `release` how the hour of one that blocks a thread is ended"
            )
        assert done() == 0, "a stopped call took effect later: make changes inside `committing()`"
        running = [leak for leak in leftovers.found() if leak.startswith("the process")]
        assert not running, f"{', '.join(running)} runs on after its call was stopped"

    def test_after_a_crash_at_any_row_it_is_done_once(self, tmp_path: Path) -> None:
        """After an interruption anywhere, the next process does the rest, once.

        `probe` may answer that it can't tell, and then a person is asked; but its answer has to be true.
        """
        self._crashed(tmp_path)

    def _crashed(self, folder: Path, *, in_call: bool = False) -> None:
        """Crash at every row, or only at those of the call.

        Elsewhere all surfaces do the same.
        """
        case = self.make(folder)
        once = _needs(case.once, "once")
        _needs(case.done, "done")
        crashes = CrashTrials(self.make, once, lambda trial: _needs(trial.done, "done")())
        places = crashes.places(folder / "whole", in_call=in_call)
        question_count = sum(crashes.tried(folder / f"{number}", crash) for number, crash in enumerate(places))
        print(f"{len(places)} crashes: a person had to be asked {question_count} times")  # noqa: T201 - a test's report

    def test_a_secret_is_shown_nowhere(self, tmp_path: Path) -> None:
        """A control's secret is in no later output.

        It is in no text, picture or file of the journal. The test uses two secrets of one length. The visible results
        must be the same for both, so that a box in the wrong place, or a text that is computed from the secret, is
        noticed too.
        """
        first, second = (self._secret_put_in(tmp_path / str(number), secret) for number, secret in enumerate(PASSWORDS))
        differ = sorted(name for name in first if first[name] != second[name])
        assert not differ, (
            f"the output reveals which secret was inserted: {', '.join(differ)}. Give the control a `box` around all "
            "that is drawn of it, and compute no output from its text"
        )

    def _secret_put_in(self, folder: Path, secret: str) -> dict[str, str]:
        """Enter a secret, search for it, and return the model's view."""
        folder.mkdir()
        case = self.make(folder)
        call, journal = _needs(case.secret, "secret"), folder / "secret" / "journal.db"
        granted = Secret.model_validate({"value": secret, "parameters": list(call.arguments)})
        with supervised(case, call, journal=journal) as worker:
            result = worker.submit(secrets={"password": granted}).result(SECONDS)
            assert len(worker.observations) > 1, f"the secret could not be inserted: {result.causes}"
            observation = worker.observations[1]  # the second step sees the results of the first one
        control = next((candidate for candidate in observation.controls if candidate.id == case.control), None)
        if worker.observations[0].picture is not None:
            assert observation.picture is not None, f"no picture is shown with a secret: {'; '.join(observation.notes)}"
            assert control is not None, f"the case names the control {case.control!r}, which is not observed"
            assert control.box is not None, f"{case.control!r} has no `box`"
            assert _is_black(observation.picture, control.box), (
                f"the picture shows {case.control!r}, which holds a secret"
            )
        files = [path for path in journal.parent.rglob("*") if path.is_file()]
        holding = [path.name for path in files if secret.encode() in path.read_bytes()]
        assert not holding, f"the secret appears in {holding[0]}"
        comparable = {"annotated", "controls", "picture", "text"}  # `window` includes the time
        parts = observation.model_dump(include=comparable)
        return {name: repr(part).replace(str(folder), "") for name, part in parts.items()}

    def test_a_thing_has_one_name_for_rules(self, tmp_path: Path) -> None:
        """Calls that touch the same thing name the same resources.

        Each is ``<kind>:<name>``; asking changes nothing. The test asks as the policy does, with checked arguments and
        defaults, and then all calls are denied.
        """
        case = self.make(tmp_path)
        if len(case.same) < 2:  # a single call has nothing to differ from
            _needs(None, "same")
        count = case.done() if case.done else 0
        rules = {"rules": [{"verdict": "deny"}], "explain": True}
        named, kinds = list[list[str]](), set[str]()
        for call in case.same:
            with supervised(case, call, policy=rules) as worker:
                handle = worker.submit()
                handle.result(SECONDS)
                decisions = [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]
                assert decisions, f"no rule was asked about {call.tool}: {handle.result(SECONDS).causes}"
                named.append(sorted(cast("dict[str, Any]", decisions[0]["resources"])))
                kinds.update(worker.surface.resource_kinds)
        assert all(names == named[0] for names in named), f"one thing has several names for rules: {named}"
        unknown = {name.partition(":")[0] for name in named[0]} - kinds
        assert not unknown, f"`resource_kinds` lacks some of {sorted(unknown)}"
        assert case.done is None or case.done() == count, "asking for a call's resources had a side effect"

    def test_a_guard_of_a_routine_is_equal_while_nothing_changes(self, tmp_path: Path) -> None:
        """`form` and `relies_on` answer twice the same, in JSON.

        Asking changes nothing. A fact that differs by itself would stop each routine that is recorded from the call.
        """
        case = self.make(tmp_path)
        once = _needs(case.once, "once")
        count = case.done() if case.done else 0
        with opened(case) as alone:
            target = alone.target(case.target)
            for method in ("form", "relies_on"):
                answers = [alone.ask_about(method, once, target) for _ in range(2)]
                assert answers[0] == answers[1], f"`{method}` differs though nothing has changed: {answers}"
                as_json(answers[0])
        assert case.done is None or case.done() == count, "asking for the guard of a call had a side effect"

    def test_close_leaves_nothing(self, tmp_path: Path) -> None:
        """No process, thread, file or port is left after `close`.

        This includes those that were started to look and to act. `close` is also called after an `open` that failed, so
        it must not need the things that `open` makes.
        """
        with Leftovers(tmp_path / "temporary") as leftovers:
            case = self.make(tmp_path)
            with opened(case) as alone:
                alone.look(alone.target(case.target))
            if case.once is not None:
                with supervised(case, case.once) as worker:
                    _worked(worker)
            assert case.server is None or closes_unopened(case.server()), (
                "`close` raised where nothing was opened, as after a failed `open`"
            )
            del case
        leaks = leftovers.found()
        assert not leaks, f"after `close` there is still {', '.join(leaks)}"

    def test_what_was_borrowed_is_given_back(self, tmp_path: Path) -> None:
        """The focus and the clipboard are restored after an agent's work."""
        case = self.make(tmp_path)
        lent, once = _needs(case.lent, "lent"), _needs(case.once, "once")
        original = lent()
        with supervised(case, once) as worker:
            _worked(worker)
        assert lent() == original, f"{lent()!r} is not given back as it was borrowed: {original!r}"


def _needs(fact: _T | None, name: str) -> _T:
    """Return a fact of the case, or skip the test without it."""
    if fact is None:
        msg = f"SurfaceCase has no `{name}`, so this promise is not checked"
        raise unittest.SkipTest(msg)
    return fact


def _worked(worker: Worker) -> None:
    """Run the work, and check that it had an effect.

    Otherwise the test proves nothing.
    """
    handle = worker.submit()
    result = handle.result(SECONDS)
    ended = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    failed = [command["error"] for command in ended if command["status"] != ResultStatus.SUCCESS.value]
    assert result.ok, f"`once` does not work: {[cause.reason for cause in result.causes]}"
    assert ended, "`once` was not called"
    assert not failed, f"`once` does not work: {failed}"


def _mark(alone: Alone, case: SurfaceCase) -> str:
    target = alone.target(case.target)
    mark: str = alone.ask(alone.surface.fingerprint, target, target=target)
    if mark:
        return mark
    observation = alone.look(target, Look(picture=False, shown=False))  # the library computes one from the observation
    return repr((observation.controls, observation.text, observation.window))


def _wait(until: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


def _limit(worker: Worker, slow: SurfaceCall) -> float:
    """Return the time limit of a call.

    It is the settings', or its tool's own.
    """
    limits = [tool.seconds for tool in worker.surface.tools() if tool.name == slow.tool and tool.seconds is not None]
    limit = max([worker.supervisor.settings.limits.command_seconds, *limits])
    assert limit <= _LONGEST, f"{slow.tool} may take {limit:g} s, which is more than a day: no time-out at all"
    return limit


def _is_black(picture: bytes, box: Box) -> bool:
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        area = image.convert("RGB").crop((box.x, box.y, box.x + box.width, box.y + box.height))
    return area.getcolors() == [(area.width * area.height, (0, 0, 0))]
