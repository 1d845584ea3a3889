"""Check that the references of a routine can lead somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from callboard.messages import RoutineLoop, did_you_mean, steps_of
from callboard.routines._screen import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from callboard.messages import Routine, RoutineStep

REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
"""A reference in a text. ``$${`` stands for a plain ``${``, and is none."""
_RESULT = re.compile(
    r"steps\.([1-9]\d{0,8})\.results\.(\d{1,9})\.value(?:\..+)?|steps\.([1-9]\d{0,8})\.output(?:\..+)?"
)
_OUTPUT = re.compile(r"subtasks\.([1-9]\d{0,8})\.output(?:\..+)?")
_CONTROL = re.compile(r"controls\.(\d{1,9})\.(?:id|name|kind)")
_ITEM = re.compile(r"item(?:\..+)?")
_SECRET = re.compile(r"secret:[A-Za-z0-9_.-]{1,100}")


def check_references(routine: Routine) -> Iterator[str]:
    """Yield each invalid reference, with its place and the reason."""
    alone = _Scope(routine.parameters, 0)
    yield from alone.problems("request", routine.request)
    yield from alone.problems("checks", [dict(check) for check in routine.checks], first=1)
    opened = alone.at(len(steps_of(*routine.host)), 0)
    yield from _of_steps("host", routine.host, _Scope(routine.parameters, len(routine.subtasks), in_step=True))
    for number, subtask in enumerate(routine.subtasks, 1):
        yield from opened.problems(f"subtasks.{number}.target", subtask.target)
        yield from alone.problems(f"subtasks.{number}.request", subtask.request)
        inner = _Scope(routine.parameters, number - 1, in_step=True)
        yield from _of_steps(f"subtasks.{number}.steps", subtask.steps, inner)


def _of_steps(place: str, entries: tuple[RoutineStep | RoutineLoop, ...], scope: _Scope) -> Iterator[str]:
    before = 0
    for index, entry in enumerate(entries, 1):
        if not isinstance(entry, RoutineLoop):
            yield from _of_step(f"{place}.{index}", entry, scope.at(before, len(entry.controls)))
            before += 1
            continue
        yield from scope.at(before, 0).problems(f"{place}.{index}.each", f"${{{entry.each}}}")
        for number, step in enumerate(entry.steps, 1):
            inner = scope.at(before, len(step.controls), in_loop=True)
            yield from _of_step(f"{place}.{index}.steps.{number}", step, inner)
            before += 1


def _of_step(place: str, step: RoutineStep, scope: _Scope) -> Iterator[str]:
    yield from scope.problems(f"{place}.window", step.window)
    for number, control in enumerate(step.controls):
        yield from scope.problems(f"{place}.controls.{number}", control.model_dump(exclude={"columns"}))
    for number, action in enumerate(step.actions):
        inside = f"{place}.actions.{number}"
        yield from scope.problems(f"{inside}.arguments", action.arguments)
        leaves = {} if action.expect is None else action.expect.leaves
        for part, facts in (("relies_on", action.relies_on), ("expect.leaves", leaves)):
            yield from scope.problems(f"{inside}.{part}", [*facts, *facts.values()])
    yield from scope.problems(f"{place}.result", step.result)


class _Scope:
    """The references that are possible at a place."""

    def __init__(
        self,
        parameters: Collection[str],
        subtasks: int,
        steps: int = 0,
        controls: int = 0,
        *,
        in_step: bool = False,
        in_loop: bool = False,
    ) -> None:
        self._parameters = parameters
        self._subtasks = subtasks
        self._steps = steps
        self._controls = controls
        self._in_step = in_step
        self._in_loop = in_loop

    def at(self, steps: int, controls: int, *, in_loop: bool = False) -> _Scope:
        """Return the scope of a step after others."""
        return _Scope(self._parameters, self._subtasks, steps, controls, in_step=self._in_step, in_loop=in_loop)

    def problems(self, place: str, value: Any, first: int = 0) -> Iterator[str]:
        """Yield the problems of all texts in a value.

        Items of the value itself are counted from `first`.
        """
        if isinstance(value, str):
            for match in REFERENCE.finditer(value):
                if match[1] is not None and (reason := self._reason(match[1])):
                    yield f"{place}: ${{{match[1]}}} {reason}"
        elif isinstance(value, list):
            for number, item in enumerate(value, first):
                yield from self.problems(f"{place}.{number}", item)
        elif isinstance(value, dict):
            yield from self._of_members(place, value)

    def _of_members(self, place: str, value: Mapping[str, Any]) -> Iterator[str]:
        for key, item in value.items():
            yield from self.problems(f"{place}.{key}", item)

    def _reason(self, name: str) -> str:
        if name in self._parameters or _SECRET.fullmatch(name):
            return ""
        head = re.split(r"[.:]", name, maxsplit=1)[0]
        if head == "steps" and (match := _RESULT.fullmatch(name)):
            return self._numbered(int(match[1] or match[3]), self._steps, "step before it")
        if head == "subtasks" and (match := _OUTPUT.fullmatch(name)):
            return self._numbered(int(match[1]), self._subtasks, "subtask before it")
        if head == "controls" and (match := _CONTROL.fullmatch(name)):
            return self._numbered(int(match[1]) + 1, self._controls, "of the step's controls")
        if head == "item" and _ITEM.fullmatch(name):
            return "" if self._in_loop else "has a meaning in the steps of a loop (`each`) only"
        if head == "window" and name.removeprefix("window.") in FOLDERS:
            return "" if self._in_step else "has a meaning in steps only"
        forms = {
            "steps": "${steps.1.results.0.value}",
            "subtasks": "${subtasks.1.output}",
            "controls": "${controls.0.id}",
            "secret": "${secret:NAME}",
            "window": " or ".join(f"${{window.{fact}}}" for fact in FOLDERS),
        }
        if head in forms:
            return f"has another form than {forms[head]}"
        known = ", ".join(self._parameters)
        there = f"there are: {known}" if known else "there is none: add it to `parameters`"
        plain = "; a plain ${ is written $${"
        return f"is no parameter{did_you_mean(name, self._parameters, there)}{plain}"

    @staticmethod
    def _numbered(number: int, most: int, of: str) -> str:
        return "" if number <= most else f"leads nowhere: there is no such {of}" if most else f"leads nowhere: no {of}"
