"""Write a step, with references in place of earlier values."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.messages import RoutineAction, RoutineStep
from callboard.routines._control_guard import recorded_control
from callboard.routines._old_data import old_data
from callboard.routines._origins import Origin, is_trivial, key_of, parts
from callboard.routines._recorded_reason import recorded_reason
from callboard.routines._screen import folders_of
from callboard.routines._step_draft import KnownReference, position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import RecordedControl
    from callboard.routines._old_data import OldData
    from callboard.routines._origins import Origins
    from callboard.routines._parameter_values import ParameterValues
    from callboard.routines._step_draft import ActionDraft, StepDraft

_BY_NAME = "controls by name: "
"""The beginning of a candidate that names a control of the step."""


class DiffersError(Exception):
    """Steps differ in more than the items of a list."""


class LoopItem:
    """An item of a list, with the places of its values."""

    def __init__(self, item: JsonValue) -> None:
        self._places: dict[str, list[str]] = defaultdict(list)
        texts: dict[str, str] = {}
        for tail, value in parts("item", item):
            self._places[key_of(value)].append(tail)
            if isinstance(value, str) and len(value) > 1:
                texts.setdefault(value, tail)
        self._texts = texts
        edges = [rf"(?<!\w){re.escape(text)}(?!\w)" for text in sorted(texts, key=len, reverse=True)]
        self._any = re.compile("|".join(edges)) if edges else None

    def references(self, value: JsonValue) -> list[str]:
        """List the references to a value."""
        return self._places.get(key_of(value), [])

    def is_used(self, values: set[str], texts: list[str]) -> bool:
        """Return whether a step has values or texts of the item."""
        return not values.isdisjoint(self._places) or any(text in part for part in texts for text in self._texts)

    def template(self, text: str, written: Callable[[str], str]) -> str:
        """Replace the item's texts within another one, whose other parts are `written`."""
        if self._any is None:
            return written(text)
        end, pieces = 0, []
        for match in self._any.finditer(text):
            pieces += [written(text[end : match.start()]), f"${{{self._texts[match[0]]}}}"]
            end = match.end()
        return "".join([*pieces, written(text[end:])])


@dataclass
class StepRepeat:
    """One run of a step: the only one, or an item's."""

    draft: StepDraft
    numbers: dict[int, int]
    """The numbers in the routine of the steps that it may refer to, by their indexes."""
    item: LoopItem | None = None


@dataclass
class WrittenStep:
    """A written step, and the facts that hold once it is kept."""

    step: RoutineStep
    literals: set[str] = field(default_factory=set)
    varied: bool = False
    """Whether a value comes from the items of a list."""
    old_data: list[OldData] = field(default_factory=list)


@dataclass
class ValueSources:
    """The parameters and earlier results that values may have come from."""

    origins: Origins
    parameters: ParameterValues
    literals: set[str] = field(default_factory=set)
    """The texts that the agent wrote itself."""

    def candidates(self, value: JsonValue, key: str | None, repeat: StepRepeat, own: Origin | None) -> Iterator[str]:
        """Yield the references to a value, the best first, without ``${}``.

        A text that the agent itself wrote before is its own also where a result repeats it. A control's name counts in
        an argument that is called like the control's kind, and everywhere in a result, which has no `key`.
        """
        parameter = self.parameters.of(value)
        if parameter:
            yield parameter[2:-1]
        if own is not None:
            yield from self.numbered(own, repeat)
        if repeat.item is not None:
            yield from repeat.item.references(value)
        if isinstance(value, str) and value in self.literals:
            return
        for origin in self.origins.of(value, repeat.draft.visible):
            yield from self.numbered(origin, repeat)
        if isinstance(value, str) and not is_trivial(value):
            same = [control for control in repeat.draft.observation.controls if control.name == value]
            if len(same) == 1 and (key is None or same[0].kind in {key, *key.split("_")}):
                yield f"{_BY_NAME}{value}"

    @staticmethod
    def numbered(origin: Origin, repeat: StepRepeat) -> Iterator[str]:
        """Yield the reference to an origin that the step may name."""
        if origin.subtask or origin.step < 0:
            yield origin.path
        elif origin.step in repeat.numbers and origin.step < repeat.draft.index:
            yield f"steps.{repeat.numbers[origin.step]}.{origin.path}"


def written_step(repeats: list[StepRepeat], sources: ValueSources) -> WrittenStep:
    """Write a step, once for all items of a list.

    Raises:
        DiffersError: If the steps for the items differ in more.
    """
    draft = repeats[0].draft
    values = _Values(repeats, sources)
    actions = tuple(values.action(number, action) for number, action in enumerate(draft.actions))
    result = None
    if draft.result is not None:
        results = [repeat.draft.result for repeat in repeats]
        result = values.write(results, None, [repeat.draft.own_result for repeat in repeats])
    step = RoutineStep(
        status=draft.status,
        window=sources.parameters.inside(draft.window),
        dialogs=draft.dialogs,
        controls=tuple(values.controls),
        actions=actions,
        alters=all(repeat.draft.alters for repeat in repeats),
        assign=draft.assign,
        stops_group=draft.stops_group,
        result=result,
    )
    knows = functools.partial(sources.origins.knows, before=draft.index)
    old = [
        data for n, action in enumerate(actions) for data in old_data(f"actions.{n}.arguments", action.arguments, knows)
    ]
    old += old_data("result", result, knows)
    reason = recorded_reason(sources.parameters.inside(draft.thought), step, draft.observation, sources.origins.texts)
    step = step.model_copy(update={"why": reason}) if reason else step
    return WrittenStep(step, values.literals, values.varied, old)


class _Values:
    """Writes a step's values, once for all items of a list."""

    def __init__(self, repeats: list[StepRepeat], sources: ValueSources) -> None:
        self._repeats = repeats
        self._sources = sources
        self.literals: set[str] = set()
        self.varied = False
        drafts = [repeat.draft for repeat in repeats]
        folders, *others = [folders_of(draft.observation).items() for draft in drafts]
        common = {name: path for name, path in folders if all((name, path) in items for items in others)}
        self._fixed = sources.parameters.beside({f"window.{name}": path for name, path in common.items()})
        all_controls = zip(*(draft.controls for draft in drafts), strict=True)
        self.controls = [self._control(controls) for controls in all_controls]
        self._near_results: set[str] = set()
        """The results that the other arguments of an action come from."""

    def action(self, number: int, draft: ActionDraft) -> RoutineAction:
        """Write an action."""
        drafts = [repeat.draft.actions[number] for repeat in self._repeats]
        values = {key: [action.arguments[key] for action in drafts] for key in draft.arguments}
        own = {key: [action.own.get(key) for action in drafts] for key in draft.arguments}
        for key in draft.arguments:
            results = {_source(reference) for reference in self._common(values[key], key, own[key])}
            self._near_results |= results if len(results) == 1 else set()
        arguments = {key: self.write(values[key], key, own[key]) for key in draft.arguments}
        self._near_results = set()
        hazards = tuple(sorted({hazard for action in drafts for hazard in action.hazards}))
        expects = [action.expect for action in drafts if action.expect is not None]
        return RoutineAction(
            tool=draft.tool,
            arguments=arguments,
            control=draft.control,
            expect=expects[0].model_copy(update={"leaves": self._facts([expect.leaves for expect in expects])})
            if expects
            else None,
            relies_on=self._facts([action.relies_on for action in drafts]),
            hazards=hazards,
        )

    def _facts(self, facts: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
        """Write the facts of a surface that are common to all items.

        Each has the name of what it is about, into which references are put as into arguments.
        """
        written: dict[str, JsonValue] = {}
        if len({len(own) for own in facts}) > 1:
            return written
        for pairs in zip(*(own.items() for own in facts), strict=True):
            names, values = [name for name, _ in pairs], [value for _, value in pairs]
            if len(set(map(key_of, values))) == 1:
                with contextlib.suppress(DiffersError):
                    name = self._fixed.inside(names[0]) if len(set(names)) == 1 else self._template(names)
                    written[name] = self._fixed.throughout(values[0])
        return written

    def _control(self, controls: tuple[RecordedControl, ...]) -> RecordedControl:
        """Write a control, whose name or place may come from an item."""
        own = {name: value for name, value in controls[0].model_dump().items() if isinstance(value, str)}
        texts = {name: self._sources.parameters.inside(value) for name, value in own.items()}
        for name in ("name", "place"):
            values = [getattr(control, name) for control in controls]
            if len(set(values)) > 1:
                texts[name] = self._template(values)
        return controls[0].model_copy(update=texts)

    def write(self, values: list[Any], key: str | None, own: Sequence[Origin | None] | None = None) -> JsonValue:
        """Write a value, as a reference common to all items if possible.

        Raises:
            DiffersError: If the values differ, and no reference is common to them.
        """
        first = values[0]
        equal = len({key_of(value) for value in values}) == 1
        if any(isinstance(value, KnownReference) for value in values):
            if not equal:
                raise DiffersError
            return str(first)
        references = self._common(values, key, own)
        if references:
            near = [reference for reference in references if _source(reference) in self._near_results]
            reference = (near or references)[0]
            self.varied |= not equal and reference.startswith("item")
            return f"${{{self._named(reference, first)}}}"
        if all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
            return {
                name: self.write([value[name] for value in values], None if key is None else name) for name in first
            }
        if all(isinstance(value, list) and len(value) == len(first) for value in values):
            return [self.write(list(items), key) for items in zip(*values, strict=True)]
        if equal:
            return self._literal(first)
        return self._template(values)

    def _literal(self, value: JsonValue) -> JsonValue:
        if not isinstance(value, str):
            return value
        self.literals.add(value)
        return self._fixed.inside(value)

    def _common(self, values: list[Any], key: str | None, own: Sequence[Origin | None] | None) -> list[str]:
        """List the references that hold for all items, the best first."""
        found = [
            list(self._sources.candidates(value, key, repeat, None if own is None else own[number]))
            for number, (value, repeat) in enumerate(zip(values, self._repeats, strict=True))
        ]
        common = [reference for reference in found[0] if all(reference in others for others in found[1:])]
        if is_trivial(values[0]) and all(key_of(value) == key_of(values[0]) for value in values):
            common = [reference for reference in common if not reference.startswith("item")]
        return common

    def _named(self, reference: str, value: Any) -> str:
        """Return a reference.

        A control that it names is added to those of the step.
        """
        if not reference.startswith(_BY_NAME):
            return reference
        observation = self._repeats[0].draft.observation
        control = next(control for control in observation.controls if control.name == value)
        return f"controls.{position(self.controls, self._control((recorded_control(control, observation),)))}.name"

    def _template(self, values: list[Any]) -> str:
        """Write a text around the texts of an item."""
        items = [repeat.item for repeat in self._repeats]
        if not all(isinstance(value, str) for value in values) or None in items:
            raise DiffersError
        common = [item.references(value) for item, value in zip(items, values, strict=True) if item is not None]
        whole = next((path for path in common[0] if all(path in paths for paths in common)), None)
        if whole is not None:
            self.varied = True
            return f"${{{whole}}}"
        written = self._fixed.inside
        templates = {
            item.template(value, written) for item, value in zip(items, values, strict=True) if item is not None
        }
        if len(templates) > 1:
            raise DiffersError
        self.varied = True
        return templates.pop()


def _source(reference: str) -> str:
    """Return the result that a reference leads into."""
    return ".".join(reference.split(".")[: 4 if reference.startswith("steps.") else 2])
