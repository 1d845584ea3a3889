"""Guard of a routine's step, which finds its recorded controls again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import RecordedControl, RoutineMissError
from callboard.routines._screen import dialogs_of, window_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic import JsonValue

    from callboard.messages import Control, Observation, RoutineStep, Target

_TABLES = frozenset(
    {"chart", "chartsheet", "document spreadsheet", "grid", "range", "sheet", "table", "tree", "tree table", "treegrid"}
)
_CONTENT = frozenset(
    {
        "attachment",
        "event",
        "heading",
        "item",
        "list item",
        "listitem",
        "option",
        "paragraph",
        "row",
        "slide",
        "table cell",
        "tree item",
        "treeitem",
    }
)
"""The kinds of entries, whose name is what they hold."""
_TEXTS = frozenset({"image", "label", "progress bar", "section", "static", "status bar", "tool tip"})
"""The kinds of controls that are only read."""
_DATA = _TABLES | _CONTENT
"""The kinds whose name says which data they are: another name means other data."""
_LONGEST_NEIGHBOUR = 80
_LONGEST_QUOTE = 120
_MOST_NAMES = 5
"""The limits of names in reasons."""


@dataclass(frozen=True)
class PlacedControl:
    """A control with its neighbours in its place."""

    control: Control
    name: str
    before: str
    after: str


def recorded_control(control: Control, seen: Observation) -> RecordedControl:
    """Describe a control so that it can be found again.

    Raises:
        LookupError: If the observation has no such control.
    """
    controls = placed_controls(seen.controls)
    placed = next((other for other in controls if other.control.id == control.id), None)
    if placed is None:
        msg = f"the observation has no control {control.id!r}"
        raise LookupError(msg)
    control = placed.control
    namesakes = [other for other in controls if (other.control.kind, other.name) == (control.kind, placed.name)]
    alike = sum(other.control.place == control.place for other in namesakes)
    return RecordedControl(
        kind=control.kind,
        name=placed.name,
        id=control.id,
        place=control.place,
        before=placed.before,
        after=placed.after,
        columns=_columns(control),
        alike=alike if alike > 1 else 0,
        elsewhere=len(namesakes) - alike,
        disabled=not control.enabled,
        hidden=not control.visible,
    )


def held_controls(
    step: RoutineStep, now: Observation, target: Target | None = None, *, once: Collection[int] = ()
) -> tuple[Control, ...]:
    """Find the controls that a step relies on, in its order.

    Args:
        step: The step, with its parameters filled in.
        now: The present observation.
        target: The target of the observation; None for a HostAgent.
        once: The indexes of the controls that are acted on by calls that must not be repeated.

    Raises:
        RoutineMissError: If the guard does not hold: there is another window or a new dialog, or a control is gone,
            ambiguous, disabled or hidden, or has other columns.
    """
    _check_screen(step, now, target)
    controls = placed_controls(now.controls)
    return tuple(_held(recorded, controls, relabels=n not in once) for n, recorded in enumerate(step.controls))


def _check_screen(step: RoutineStep, now: Observation, target: Target | None) -> None:
    """Compare the dialogs and the window with the recorded ones.

    Raises:
        RoutineMissError: If there is a new dialog, or another window.
    """
    new_dialogs = Counter(dialogs_of(now)) - Counter(step.dialogs)
    if new_dialogs:
        expected = f"{' and '.join(map(_quoted, step.dialogs)) or 'no dialog'} in front"
        raise RoutineMissError(expected, f"the dialog {_quoted(next(iter(new_dialogs)))}")
    window = window_of(now, target)
    if step.window and window != step.window:
        expected = f"{_quoted(step.window)} in front"
        raise RoutineMissError(expected, _quoted(window) if window else "an unknown window")


def placed_controls(controls: Sequence[Control]) -> list[PlacedControl]:
    """Give each control its neighbours in its place.

    These are the controls before and after it. Texts are left out, and so are entries except beside other entries: they
    come and go with the data.
    """
    names = list(map(_name, controls))
    before = _neighbours(controls, names, range(len(controls)))
    after = _neighbours(controls, names, range(len(controls) - 1, -1, -1))
    return [PlacedControl(control, names[n], before[n], after[n]) for n, control in enumerate(controls)]


def _neighbours(controls: Sequence[Control], names: Sequence[str], order: range) -> dict[int, str]:
    """Return each control's preceding neighbour in an order, by index."""
    neighbours = dict[int, str]()
    last_entries: dict[str, str] = {}
    last_others: dict[str, str] = {}
    for index in order:
        control, name = controls[index], names[index][:_LONGEST_NEIGHBOUR]
        is_entry = control.kind in _CONTENT
        neighbours[index] = (last_entries if is_entry else last_others).get(control.place, "")
        if control.kind not in _TEXTS:
            last_entries[control.place] = name
            if not is_entry:
                last_others[control.place] = name
    return neighbours


def _name(control: Control) -> str:
    """Return a control's name, without the cells of a used range.

    Their number differs from run to run.
    """
    cells = control.detail.get("cells")
    return control.name.removesuffix(f"!{cells}") if control.kind == "range" and cells else control.name


def _columns(control: Control) -> JsonValue:
    """Return a table's headers, or the number of its columns."""
    if control.columns:
        return list(control.columns)
    header = control.detail.get("header")
    if isinstance(header, dict):
        return list(header.values())
    return header or control.detail.get("columns")


def _held(recorded: RecordedControl, controls: Sequence[PlacedControl], *, relabels: bool) -> Control:
    """Find one recorded control.

    Raises:
        RoutineMissError: If there is not exactly one, or it can't be used as it was.
    """
    same_kind = [placed for placed in controls if placed.control.kind == recorded.kind]
    matches = [placed for placed in same_kind if (placed.name, placed.control.place) == (recorded.name, recorded.place)]
    expected = _described(recorded)
    relabelled = _relabelled(recorded, same_kind, controls) if relabels else None
    if relabelled is None and not matches:
        raise RoutineMissError(expected, _listed(same_kind))
    control = relabelled or _confirmed(recorded, matches, expected)
    columns = _columns(control)
    if recorded.columns is not None and columns != recorded.columns:
        expected += f" with the columns {_quoted(recorded.columns)}"
        raise RoutineMissError(expected, f"it with {_quoted(columns)}")
    unusable = "disabled" if not control.enabled and not recorded.disabled else ""
    unusable = unusable or ("hidden" if not control.visible and not recorded.hidden else "")
    if unusable:
        raise RoutineMissError(expected, f"it {unusable}")
    return control


def _confirmed(recorded: RecordedControl, matches: Sequence[PlacedControl], expected: str) -> Control:
    """Choose among the controls of the same kind, name and place.

    The only one must still have its id or both neighbours, unless it is data. One of several has to have all of these,
    and their number must be the same.

    Raises:
        RoutineMissError: If none or several remain.
    """
    if len(matches) != max(recorded.alike, 1):
        raise RoutineMissError(expected, f"{len(matches)} of them")
    same: Sequence[PlacedControl] = [placed for placed in matches if all(_kept(recorded, placed))]
    if not recorded.alike and _is_plausible(recorded, matches[0]):
        same = matches
    if len(same) != 1:
        others = " and ".join(
            _between(placed.control.id, placed.before, placed.after) for placed in matches[:_MOST_NAMES]
        )
        expected += f", {_between(recorded.id, recorded.before, recorded.after)}"
        raise RoutineMissError(expected, others)
    return same[0].control


def _is_plausible(recorded: RecordedControl, placed: PlacedControl) -> bool:
    """Return whether the only control of a name is the recorded one.

    A removed one may have made way for another.
    """
    named_only = not (recorded.id or recorded.before or recorded.after)
    same_id, same_before, same_after = _kept(recorded, placed)
    return recorded.kind in _DATA or named_only or same_id or (same_before and same_after)


def _relabelled(
    recorded: RecordedControl, same_kind: Sequence[PlacedControl], controls: Sequence[PlacedControl]
) -> Control | None:
    """Find the control that now has another name.

    Its id, place and neighbours are the same. Its new name must be new on the surface, and its old name must not have
    moved elsewhere.
    """
    number = max(recorded.alike, 1) + recorded.elsewhere - 1
    if recorded.kind in _DATA or sum(placed.name == recorded.name for placed in same_kind) > number:
        return None
    for placed in same_kind:
        if placed.name != recorded.name and placed.control.place == recorded.place and all(_kept(recorded, placed)):
            is_new = sum(other.name == placed.name for other in controls) == 1
            return placed.control if is_new else None
    return None


def _kept(recorded: RecordedControl, placed: PlacedControl) -> tuple[bool, bool, bool]:
    """Return whether the id, and each neighbour, is as recorded."""
    return recorded.id == placed.control.id, recorded.before == placed.before, recorded.after == placed.after


def _described(recorded: RecordedControl) -> str:
    place = f" in {_quoted(recorded.place)}" if recorded.place else ""
    number = f" (one of {recorded.alike})" if recorded.alike else ""
    return f"the {recorded.kind} {_quoted(recorded.name)}{place}{number}"


def _between(control_id: str, before: str, after: str) -> str:
    first, last = _quoted(before) if before else "the start", _quoted(after) if after else "the end"
    return f"{control_id!r} between {first} and {last}"


def _listed(same_kind: Sequence[PlacedControl]) -> str:
    """Name the controls of a kind that there are instead."""
    if not same_kind:
        return "no control of that kind"
    names = [
        _quoted(placed.name) + (f" in {_quoted(placed.control.place)}" if placed.control.place else "")
        for placed in same_kind[:_MOST_NAMES]
    ]
    more = len(same_kind) - len(names)
    return f"only {', '.join(names)}" + (f" and {more} more" if more else "")


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"
