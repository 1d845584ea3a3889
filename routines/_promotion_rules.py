"""Rules for the parts that a promoted repair may bring or drop."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.messages import RoutineLoop

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from callboard.messages import Routine, RoutineAction, RoutineStep

_SECRET = re.compile(r"\$\{secret:([A-Za-z0-9_.-]{1,100})(?::\w+)?\}")
_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_-]*)")
"""A reference, with its first part: a parameter, or the kind of the earlier value."""
_LONGEST = 80
_MOST = 20
"""The number of reasons of each kind."""


def refusals(old: Routine, new: Routine) -> list[str]:
    """List the reasons against a repair, which is never promoted then.

    It may not bring a target, a tool, a hazard, or a secret at another place, and not drop a guard or a check. A person
    may edit the routine by hand for that.
    """
    before, after = _Facts.of(old), _Facts.of(new)
    tables = [table for table in before.columns if table not in after.columns and table in after.controls]
    reasons = [
        *(f"it adds the {kind} target {target!r}" for kind, target in _added(after.targets, before.targets)),
        *(f"it adds the tool {tool} of {kind} agents" for kind, tool in _added(after.tools, before.tools)),
        *(f"it adds the hazard that {tool} {hazard}" for _, tool, hazard in _added(after.hazards, before.hazards)),
        *(f"it puts the secret {name!r} into {place}" for _, place, name in _added(after.secrets, before.secrets)),
        *(f"it calls {tool} without {guard}" for _, tool, guard in _added(after.unguarded, before.unguarded)),
        *(f"it uses the {kind} {name!r} without its columns" for kind, name in tables),
        *(f"it calls {tool} without the fact {name}" for _, tool, name in _dropped(before.facts, after.facts)),
        *(f"it drops the check {_short(check)}" for check in old.checks if check not in new.checks),
    ]
    return [*reasons, "it drops the HostAgent's steps"] if old.host and not new.host else reasons


def concerns(old: Routine, new: Routine) -> list[str]:
    """List the parts that a person has to look at first.

    No repair with them is promoted automatically.
    A hostile page or document may have made the model write a text, a path, an address or a recipient of its own.
    """
    before, after = _Facts.of(old), _Facts.of(new)
    guarded = before.windows.keys() != {""}
    windows = _added(after.windows, before.windows) if guarded else []  # without a guard, any window is as before
    changed = [name for name, parameter in new.parameters.items() if parameter != old.parameters.get(name)]
    return [
        *(f"{place}: {_short(value)} is a new value" for value, place in after.new_literals(before)),
        *(f"it takes {place} from {root}" for _, place, root in _added(after.sources, before.sources)),
        *(f"it makes fewer calls of {tool}" for _, tool in _dropped_calls(before, after)),
        *(f"it repeats steps for each of {path}" for path in _added(after.loops, before.loops)),
        *(f"it works in another window: {window!r}" for window in windows),
        *(f"it goes on behind the dialog {dialog!r}" for dialog in _added(after.dialogs, before.dialogs)),
        *(f"it uses the {state} {kind} {name!r}" for kind, name, state in _added(after.weak, before.weak)),
        *(f"it calls {tool} where {name} is {value}" for tool, name, value in _changed(before.facts, after.facts)),
        *(f"it changes the parameter {name}" for name in changed),
    ]


@dataclass
class _Facts:
    """The facts of a routine that count for its promotion."""

    targets: dict[Any, None] = field(default_factory=dict)
    tools: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of calls, by kind and tool; those of a loop count once."""
    hazards: dict[Any, None] = field(default_factory=dict)
    secrets: dict[Any, None] = field(default_factory=dict)
    unguarded: dict[Any, None] = field(default_factory=dict)
    columns: dict[Any, None] = field(default_factory=dict)
    controls: dict[Any, None] = field(default_factory=dict)
    windows: dict[Any, None] = field(default_factory=dict)
    dialogs: dict[Any, None] = field(default_factory=dict)
    weak: dict[Any, None] = field(default_factory=dict)
    sources: dict[Any, None] = field(default_factory=dict)
    loops: dict[Any, None] = field(default_factory=dict)
    literals: dict[str, tuple[Any, str]] = field(default_factory=dict)
    facts: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    """The facts before and after each call, by kind, tool and arguments."""

    @classmethod
    def of(cls, routine: Routine) -> _Facts:
        facts = cls()
        facts._add_secrets("", "the request", routine.request)
        facts._add_literals("request", routine.request)
        lists = (routine.host, *(subtask.steps for subtask in routine.subtasks))
        facts.loops |= dict.fromkeys(entry.each for steps in lists for entry in steps if isinstance(entry, RoutineLoop))
        for number, subtask in enumerate(routine.subtasks, 1):
            facts.targets[subtask.kind, subtask.target] = None
            facts._add_secrets(subtask.kind, "the request", subtask.request)
            facts._add_literals(f"subtasks.{number}.request", subtask.request)
        for place, kind, step in routine.placed_steps():
            facts._add_step(kind, place, step)
        return facts

    def _add_step(self, kind: str, place: str, step: RoutineStep) -> None:
        self.windows[step.window] = None
        self.dialogs |= dict.fromkeys(step.dialogs)
        self._add_literals(f"{place}.result", step.result)
        self._add_secrets(kind, "the result", step.result)
        for control in step.controls:
            self.controls[control.kind, control.name] = None
            if control.columns is not None:
                self.columns[control.kind, control.name] = None
            states = [state for state in ("disabled", "hidden") if getattr(control, state)]
            self.weak |= dict.fromkeys((control.kind, control.name, state) for state in states)
        for number, action in enumerate(step.actions):
            self._add_action(kind, f"{place}.actions.{number}", step, action)

    def _add_action(self, kind: str, place: str, step: RoutineStep, action: RoutineAction) -> None:
        self.tools[kind, action.tool] += 1
        self.hazards |= dict.fromkeys((kind, action.tool, str(hazard)) for hazard in action.hazards)
        guards = {"a control": action.control, "an expected result": action.expect, "a window": step.window or None}
        guards["a change of the view"] = step.alters or None
        self.unguarded |= dict.fromkeys((kind, action.tool, name) for name, guard in guards.items() if guard is None)
        leaves = {} if action.expect is None else action.expect.leaves
        call = kind, action.tool, json.dumps(action.arguments, sort_keys=True)
        facts = self.facts.setdefault(call, {})
        facts |= {f"{name!r} before it": value for name, value in action.relies_on.items()}
        facts |= {f"{name!r} after it": value for name, value in leaves.items()}
        for key, value in action.arguments.items():
            self._add_literals(f"{place}.arguments.{key}", value)
            self._add_secrets(kind, f"{action.tool}, {key}", value)
            texts = (text for _, text in _leaves(key, value) if isinstance(text, str))
            roots = (root for text in texts for root in _REFERENCE.findall(text))
            self.sources |= dict.fromkeys((kind, f"{action.tool}, {key},", root) for root in roots)

    def _add_literals(self, place: str, value: Any) -> None:
        for where, part in _leaves(place, value):
            if part not in (None, "", True, False):
                self.literals.setdefault(json.dumps(part), (part, where))

    def _add_secrets(self, kind: str, place: str, value: Any) -> None:
        names = _SECRET.findall(json.dumps(value, ensure_ascii=False))
        self.secrets |= dict.fromkeys((kind, place, name) for name in names)

    def new_literals(self, before: _Facts) -> list[tuple[Any, str]]:
        """List the values that are new, and no references, with their places."""
        new = (pair for key, pair in self.literals.items() if key not in before.literals)
        return [(value, place) for value, place in new if not _is_reference(value)][:_MOST]


_CallFacts = dict[tuple[str, str, str], dict[str, Any]]


def _dropped(old: _CallFacts, new: _CallFacts) -> list[tuple[str, str, str]]:
    """List the facts of calls that are still made, but without them."""
    dropped = [(*call[:2], name) for call, facts in old.items() for name in facts if name not in new.get(call, facts)]
    return dropped[:_MOST]


def _dropped_calls(before: _Facts, after: _Facts) -> list[tuple[str, str]]:
    """List the tools with fewer calls than before.

    The guards of the calls are gone with them.
    """
    return [call for call, number in before.tools.items() if after.tools[call] < number][:_MOST]


def _changed(old: _CallFacts, new: _CallFacts) -> list[tuple[str, str, Any]]:
    """List the facts of the same calls that are others now."""
    pairs = ((call, name, value) for call, facts in new.items() for name, value in facts.items())
    changed = [(call[1], name, value) for call, name, value in pairs if old.get(call, {}).get(name, value) != value]
    return changed[:_MOST]


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield all scalars and keys of a value, with their places."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield place, key
            yield from _leaves(f"{place}.{key}", part)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _leaves(f"{place}.{number}", part)
    else:
        yield place, value


def _added(new: Iterable[Any], old: Container[Any]) -> list[Any]:
    return [value for value in new if value not in old][:_MOST]


def _is_reference(value: Any) -> bool:
    """Return whether a value is one reference, without words of its own."""
    return isinstance(value, str) and re.fullmatch(r"\$\{[^{}]+\}", value) is not None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
