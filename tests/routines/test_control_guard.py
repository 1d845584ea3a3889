"""The guard finds a recorded control again, or tells the difference."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callboard.messages import Control, Observation, RecordedControl, RoutineMissError, RoutineStep, Target, TargetKind
from callboard.routines import dialogs_of, held_controls, recorded_control

Controls = list[Control]
Change = Callable[[Controls], Controls]
STOP = ""


def control(id_: str, name: str, kind: str, place: str, **more: object) -> Control:
    return Control(id=id_, name=name, kind=kind, place=place, **more)


def form() -> Controls:
    prices = {"header": {"A": "Item", "B": "Net", "C": "Tax"}, "rows": 9}
    return [
        control("list-1", "Contacts", "list", "window", detail={"rows": 3}),
        control("row-1", "Ada Lovelace", "row", "Contacts"),
        control("row-2", "Grace Hopper", "row", "Contacts"),
        control("field-1", "First name", "text field", "Personal"),
        control("field-2", "Last name", "text field", "Personal"),
        control("field-3", "Phone", "text field", "Personal", detail={"text": "555"}),
        control("button-1", "Clear", "button", "Personal"),
        control("button-2", "Save", "button", "Personal"),
        control("button-3", "Delete", "button", "Personal"),
        control("table-1", "Prices", "table", "Stock", detail=prices),
    ]


def updated(id_: str, **update: object) -> Change:
    return lambda controls: [other.model_copy(update=update) if other.id == id_ else other for other in controls]


def added(*new: Control) -> Change:
    return lambda controls: [*controls, *new]


def both(first: Change, second: Change) -> Change:
    return lambda controls: second(first(controls))


def unchanged(controls: Controls) -> Controls:
    return controls


def renumbered(controls: Controls) -> Controls:
    """Give each control the id of its neighbour, as an insertion does."""
    numbers = [other.id.rpartition("-") for other in controls]
    return [
        other.model_copy(update={"id": f"{kind}-{int(n) + 1}"})
        for other, (kind, _, n) in zip(controls, numbers, strict=True)
    ]


def swapped(controls: Controls) -> Controls:
    return [*controls[:6], controls[7], controls[6], *controls[8:]]


def translated(controls: Controls) -> Controls:
    words = {"Save": "Sichern", "Clear": "Leeren", "Delete": "Löschen", "First name": "Vorname", "Personal": "Person"}
    return [
        other.model_copy(
            update={"name": words.get(other.name, other.name), "place": words.get(other.place, other.place)}
        )
        for other in controls
    ]


OTHER_PLACE = control("button-9", "Save", "button", "Billing")
SAME_PLACE = control("button-9", "Save", "button", "Personal")
DIALOG = control("dialog-1", "Discard changes?", "dialog", "window")
ROW = control("row-3", "Alan Turing", "row", "Contacts")

MUTATIONS: list[tuple[str, str, Change, str]] = [
    ("unchanged", "button-2", unchanged, "button-2"),
    ("ids renumbered", "button-2", renumbered, "button-3"),
    ("order", "button-2", swapped, "button-2"),
    ("label", "button-2", updated("button-2", name="Sichern"), "button-2"),
    ("whole window translated", "button-2", translated, STOP),
    ("value elsewhere", "button-2", updated("field-3", detail={"text": "1"}), "button-2"),
    ("extra row", "button-2", added(ROW), "button-2"),
    ("disabled", "button-2", updated("button-2", enabled=False), STOP),
    ("look-alike in another place", "button-2", added(OTHER_PLACE), "button-2"),
    ("look-alike in the same place", "button-2", added(SAME_PLACE), STOP),
    ("only a look-alike remains", "button-2", lambda controls: [*controls[:7], *controls[8:], OTHER_PLACE], STOP),
    (
        "two names swapped",
        "button-2",
        both(updated("button-2", name="Delete"), updated("button-3", name="Save")),
        STOP,
    ),
    ("label and ids", "button-2", both(updated("button-2", name="Sichern"), renumbered), STOP),
    ("moved to another place", "button-2", updated("button-2", place="Footer"), STOP),
    ("dialog in front", "button-2", added(DIALOG), STOP),
    ("table renamed", "table-1", updated("table-1", name="Preise"), STOP),
    ("other columns", "table-1", updated("table-1", detail={"header": {"A": "Item", "B": "Gross"}}), STOP),
    ("hidden", "button-2", updated("button-2", visible=False), STOP),
]


def recorded_in(controls: Controls, id_: str) -> RecordedControl:
    return recorded_control(next(other for other in controls if other.id == id_), Observation(controls=tuple(controls)))


def find(recorded: RecordedControl, controls: Controls, *, dialogs: tuple[str, ...] = (), once: bool = False) -> str:
    step = RoutineStep(status="CONTINUE", controls=(recorded,), dialogs=dialogs)
    return held_controls(step, Observation(controls=tuple(controls)), once=(0,) if once else ())[0].id


def found_or_stop(recorded: RecordedControl, controls: Controls, *, once: bool = False) -> str:
    try:
        return find(recorded, controls, once=once)
    except RoutineMissError:
        return STOP


@pytest.mark.parametrize(
    ("id_", "change", "right"),
    [mutation[1:] for mutation in MUTATIONS],
    ids=[mutation[0] for mutation in MUTATIONS],
)
def test_guard_survives_or_stops_at_each_kind_of_change(id_, change, right):
    assert found_or_stop(recorded_in(form(), id_), change(form())) == right


def test_a_call_that_must_not_be_repeated_finds_no_relabelled_control():
    recorded, relabelled = recorded_in(form(), "button-2"), updated("button-2", name="Sichern")(form())
    assert found_or_stop(recorded, relabelled) == "button-2"
    assert found_or_stop(recorded, relabelled, once=True) == STOP


@pytest.mark.parametrize("kind", ["table", "sheet", "range", "grid", "list item", "row", "heading"])
def test_data_is_never_relabelled(kind):
    data = updated("button-2", kind=kind)(form())
    recorded = recorded_in(data, "button-2")
    assert found_or_stop(recorded, updated("button-2", name="2026")(data)) == STOP
    assert found_or_stop(recorded, renumbered(data)) == "button-3"


def test_a_relabelled_control_needs_a_new_name():
    recorded = recorded_in(form(), "button-2")
    assert found_or_stop(recorded, updated("button-2", name="Phone")(form())) == STOP


def test_a_control_whose_name_moved_elsewhere_is_not_relabelled():
    recorded = recorded_in(form(), "button-2")
    moved = both(updated("button-2", name="Send"), added(OTHER_PLACE))
    assert found_or_stop(recorded, moved(form())) == STOP


def test_a_control_of_the_same_name_needs_its_id_or_both_neighbours():
    recorded = recorded_in(form(), "button-2")
    alone = [*form()[:6], control("button-7", "Print", "button", "Personal"), SAME_PLACE]
    alone.append(control("button-8", "Send", "button", "Personal"))
    assert found_or_stop(recorded, alone) == STOP
    with pytest.raises(RoutineMissError) as miss:
        find(recorded, alone)
    assert miss.value.expected == "the button 'Save' in 'Personal', 'button-2' between 'Clear' and 'Delete'"
    assert miss.value.found == "'button-9' between 'Print' and 'Send'"


def test_a_control_without_recorded_neighbours_is_found_by_its_name():
    edited = RecordedControl(kind="button", name="Save", place="Personal")
    assert find(edited, renumbered(form())) == "button-3"


def test_look_alikes_differ_by_id_and_neighbours():
    twins = [*form()[:9], SAME_PLACE]
    recorded = recorded_in(twins, "button-2")
    assert (recorded.alike, recorded.elsewhere) == (2, 0)
    assert find(recorded, twins) == "button-2"
    assert found_or_stop(recorded, form()) == STOP
    assert found_or_stop(recorded, renumbered(twins)) == STOP
    assert found_or_stop(recorded, [*twins, SAME_PLACE.model_copy(update={"id": "button-8"})]) == STOP


def test_a_control_may_stay_disabled_and_hidden():
    hidden = updated("button-2", enabled=False, visible=False)(form())
    recorded = recorded_in(hidden, "button-2")
    assert (recorded.disabled, recorded.hidden) == (True, True)
    assert find(recorded, hidden) == find(recorded, form()) == "button-2"


def test_neighbours_are_no_texts_and_no_entries():
    window = [
        control("button-1", "Open", "button", "Files"),
        control("label-1", "3 files", "label", "Files"),
        control("item-1", "may.csv", "list item", "Files"),
        control("item-2", "june.csv", "list item", "Files"),
        control("label-2", "2 kB", "label", "Files"),
        control("button-2", "Delete", "button", "Files"),
    ]
    around = {other.id: (other.before, other.after) for other in (recorded_in(window, part.id) for part in window)}
    assert around["button-1"] == ("", "Delete")
    assert around["button-2"] == ("Open", "")
    assert around["item-1"] == ("Open", "june.csv")
    assert around["label-1"] == ("Open", "Delete")


def test_a_dialog_that_was_open_may_be_open_once_again():
    recorded, open_ = recorded_in(form(), "button-2"), added(DIALOG)(form())
    assert find(recorded, open_, dialogs=("Discard changes?",)) == "button-2"
    twice = added(DIALOG.model_copy(update={"id": "dialog-2"}))(open_)
    with pytest.raises(RoutineMissError, match="found the dialog 'Discard changes\\?'"):
        find(recorded, twice, dialogs=("Discard changes?",))


def test_another_window_stops():
    page = Target(id="t", name="t", kind=TargetKind.WINDOW, address="app/browser/t", server="browser")
    step = RoutineStep(status="CONTINUE", window="https://shop.example/cart")
    for url in ("https://shop.example/cart?id=7#top", "https://shop.example/cart"):
        assert held_controls(step, Observation(window={"url": url}), page) == ()
    with pytest.raises(RoutineMissError, match=r"found 'https://evil\.example/cart'"):
        held_controls(step, Observation(window={"url": "https://evil.example/cart"}), page)
    with pytest.raises(RoutineMissError, match="found an unknown window"):
        held_controls(step, Observation(), page)


def test_more_rows_in_a_used_range_do_not_count():
    def sheet(cells: str, *header: str) -> Controls:
        detail = {"cells": cells, "header": dict(zip("ABC", header, strict=False))}
        return [control("range-1", f"Sales!{cells}", "range", "Sales", detail=detail)]

    recorded = recorded_in(sheet("A1:B4", "Region", "Net"), "range-1")
    assert (recorded.name, recorded.columns) == ("Sales", ["Region", "Net"])
    assert find(recorded, sheet("A1:B9", "Region", "Net")) == "range-1"
    with pytest.raises(RoutineMissError, match=r"the columns \['Region', 'Net'\]; found it with \['Region', 'Gross'\]"):
        find(recorded, sheet("A1:B4", "Region", "Gross"))


def test_reasons_name_what_is_there_instead_and_stay_short():
    with pytest.raises(RoutineMissError) as miss:
        find(RecordedControl(kind="button", name="x" * 500, place="Personal"), form())
    assert miss.value.found == "only 'Clear' in 'Personal', 'Save' in 'Personal', 'Delete' in 'Personal'"
    assert len(miss.value.expected) < 200
    with pytest.raises(RoutineMissError, match="found no control of that kind"):
        find(RecordedControl(kind="slider", name="Volume"), form())


def test_a_control_of_another_observation_can_not_be_recorded():
    with pytest.raises(LookupError, match="no control 'button-9'"):
        recorded_control(OTHER_PLACE, Observation(controls=tuple(form())))


def test_dialogs_of_a_form():
    assert dialogs_of(Observation(controls=(*form(), DIALOG))) == ("Discard changes?",)
