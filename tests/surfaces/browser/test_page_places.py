"""Places of a page's controls, and the guard of a routine on changed pages."""

from __future__ import annotations

import pytest
from guard_changes import STOP, control_of, decision, recorded_step

from callboard.messages import Observation, Target, TargetKind
from callboard.surfaces.browser._page_snapshot import PageSnapshot

PAGE = """
- banner [ref=e1]:
  - navigation [ref=e2]:
    - link "Home" [ref=e3]
- main [ref=e4]:
  - heading "Orders" [level=1] [ref=e5]
  - button "Save" [ref=e6]
  - table "Open orders" [ref=e7]:
    - row "Customer Sum" [ref=e8]:
      - columnheader "Customer" [ref=e9]
      - columnheader "Sum" [ref=e10]
      - columnheader "" [ref=e11]
    - row "Ada 7" [ref=e12]:
      - cell "Ada" [ref=e13]
      - cell "7" [ref=e14]
      - cell [ref=e15]:
        - button "Delete" [ref=e16]
    - row "Grace 9" [ref=e17]:
      - cell "Grace" [ref=e18]
      - cell "9" [ref=e19]
      - cell [ref=e20]:
        - button "Delete" [ref=e21]
  - group "Billing" [ref=e22]:
    - textbox "Street" [ref=e23]: Old Road
    - button "Edit" [ref=e24]
  - list [ref=e25]:
    - listitem [ref=e26]:
      - text: Newsletter
      - checkbox "On" [ref=e27]
  - heading "Danger zone" [level=2] [ref=e28]
  - button "Close account" [ref=e29]
  - iframe "Payment" [ref=e30]:
    - button "Pay" [ref=f1e1]
- contentinfo [ref=e31]:
  - link "Imprint" [ref=e32]
"""
URL = "https://shop.example/orders?month=5"
TAB = Target(id="tab-1", name=URL, kind=TargetKind.WINDOW, address="app/browser/tab-1", server="browser")
ROW = """    - row "Alan 3" [ref=e41]:
      - cell "Alan" [ref=e42]
      - cell "3" [ref=e43]
      - cell [ref=e44]:
        - button "Delete" [ref=e45]
"""


def observed(text: str = PAGE, url: str = URL) -> Observation:
    snapshot = PageSnapshot(text, url)
    return Observation(controls=snapshot.controls(), window={"url": url}, fingerprint=snapshot.fingerprint())


def test_controls_name_their_row_heading_or_group():
    places = {(control.name, control.id): control.place for control in observed().controls}
    assert places == {
        ("Home", "e3"): "navigation",
        ("Save", "e6"): "Orders",
        ("Open orders", "e7"): "Orders",
        ("Delete", "e16"): "Ada",
        ("Delete", "e21"): "Grace",
        ("Street", "e23"): "Billing",
        ("Edit", "e24"): "Billing",
        ("On", "e27"): "Newsletter",
        ("Close account", "e29"): "Danger zone",
        ("Pay", "f1e1"): "Payment: Danger zone",
        ("Imprint", "e32"): "contentinfo",
    }


def test_a_link_that_names_its_row_is_in_the_section():
    row = '- heading "People" [ref=e1]\n- row "x" [ref=e2]:\n'
    row += '  - cell "Ada" [ref=e3]:\n    - link "Ada" [ref=e4]\n  - cell "7" [ref=e5]:\n    - button "Call" [ref=e6]\n'
    assert [(control.name, control.place) for control in observed(row).controls] == [("Ada", "People"), ("Call", "Ada")]


def test_a_long_place_is_cut():
    row = f'- row "x" [ref=e1]:\n  - cell "{"x" * 300}" [ref=e2]\n  - cell [ref=e3]:\n    - button "Go" [ref=e4]\n'
    assert len(observed(row).controls[0].place) == 80


def test_columns_of_a_table_are_its_headers():
    assert control_of(observed(), "Open orders", "table").columns == ("Customer", "Sum", "")
    plain = '- table "x" [ref=e1]:\n  - row "a" [ref=e2]:\n    - cell "a" [ref=e3]\n'
    assert observed(plain).controls[0].columns == ()


def test_places_are_no_part_of_the_fingerprint_and_of_the_detail():
    assert all(not control.detail.keys() & {"place", "columns"} for control in observed().controls)
    assert PageSnapshot(PAGE, URL).fingerprint() == PageSnapshot(PAGE, URL).fingerprint()


def renumbered(text: str) -> str:
    """Move all refs on, as an inserted part does."""
    for number in range(45, 0, -1):
        text = text.replace(f"ref=e{number}]", f"ref=e{number + 1}]")
    return text


CHANGES = {
    "unchanged": (PAGE, "e21"),
    "ids renumbered": (renumbered(PAGE), "e22"),
    "order": (PAGE.replace('    - row "Ada 7" [ref=e12]:', f'{ROW}    - row "Ada 7" [ref=e12]:'), "e21"),
    "label translated": (PAGE.replace('button "Delete" [ref=e21]', 'button "Löschen" [ref=e21]'), "e21"),
    "value": (PAGE.replace("Old Road", "New Road").replace('cell "9"', 'cell "10"'), "e21"),
    "extra row": (PAGE.replace('  - group "Billing"', f'{ROW}  - group "Billing"'), "e21"),
    "disabled": (PAGE.replace('button "Delete" [ref=e21]', 'button "Delete" [disabled] [ref=e21]'), STOP),
    "look-alike in the same row": (
        PAGE.replace('  - group "Billing"', '        - button "Delete" [ref=e50]\n  - group "Billing"'),
        STOP,
    ),
    "only the look-alikes remain": (PAGE.replace('cell "Grace"', 'cell "Alan"'), STOP),
    "dialog in front": (f'{PAGE}- dialog "Really?" [ref=e60]:\n  - button "Yes" [ref=e61]\n', STOP),
}


@pytest.mark.parametrize(("text", "right"), CHANGES.values(), ids=CHANGES)
def test_guard_on_a_changed_page(text, right):
    seen = observed()
    step = recorded_step(seen, TAB, control_of(seen, "Delete", "button", "Grace"))
    assert decision(step, observed(text), TAB) == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (renumbered(PAGE), "e8"),
        (PAGE.replace('  - group "Billing"', f'{ROW}  - group "Billing"'), "e7"),
        (PAGE.replace('table "Open orders"', 'table "Closed orders"'), STOP),
        (PAGE.replace('columnheader "Sum"', 'columnheader "Tax"'), STOP),
    ],
    ids=["ids renumbered", "extra row", "table renamed", "other columns"],
)
def test_guard_on_a_changed_table(text, right):
    seen = observed()
    step = recorded_step(seen, TAB, control_of(seen, "Open orders", "table"))
    assert decision(step, observed(text), TAB) == right


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("https://shop.example/orders?month=6", "e6"),
        ("https://shop.example/customers", STOP),
        ("https://shop.evil.example/orders", STOP),
        ("http://shop.example/orders", STOP),
    ],
)
def test_guard_on_another_address(url, right):
    seen = observed()
    step = recorded_step(seen, TAB, control_of(seen, "Save", "button"))
    assert decision(step, observed(url=url), TAB) == right


def test_guard_keeps_the_frame_of_a_control():
    seen = observed()
    step = recorded_step(seen, TAB, control_of(seen, "Pay", "button"))
    assert decision(step, observed(PAGE.replace('iframe "Payment"', 'iframe "Advertisement"')), TAB) == STOP
