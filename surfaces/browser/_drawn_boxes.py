"""Check boxes that pages draw themselves, over an unseen input.

Their inputs have no area, are transparent or far off the page. A person clicks on the label, or on what is drawn in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces.browser._form_hazards import LABELED
from callboard.surfaces.browser._page_snapshot import BOX_INPUT, BOXES

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

    from callboard.surfaces.browser._page_snapshot import PageNode, PageSnapshot

_LABEL_AROUND = (
    f"xpath=self::*[local-name()='label' and count({BOX_INPUT}) = 1 and {LABELED} and "
    f"count({BOX_INPUT} | {LABELED}) = 1]"
)
"""A label with one box in it, which a press on it changes."""
_LABEL_OF_BOX = f"self::*[{LABELED} and count(self::* | {LABELED}) = 1]/ancestor::*[local-name()='label'][1]"
_LABEL_ELSEWHERE = (
    "self::*[count(self::* | id(@id)) = 1]/ancestor::node()[last()]/descendant::*[local-name()='label' and @for=\"{}\"]"
)
"""The labels that name a box, unless an earlier control has the same id."""
_OTHER = (
    "*[local-name()='a' or local-name()='button' or local-name()='select' or local-name()='textarea' or "
    "local-name()='summary' or local-name()='iframe' or @onclick or @role='button' or @role='link' or "
    "(local-name()='input' and not(@type='checkbox' or @type='radio'))]"
)
"""A part that a press is meant for, if it hits one."""
_CLEAN = f"[local-name()!='input' and not(ancestor-or-self::{_OTHER} or descendant::{_OTHER})]"
_MOST_PARTS, _MOST_BOXES = 20, 100


async def find_labels(page: Page, snapshot: PageSnapshot) -> None:
    """Give boxes without an area the place of the label around them."""
    for box in snapshot.boxes_without_area()[:_MOST_BOXES]:
        label = page.locator(f"aria-ref={box.parent.ref}") if box.parent is not None else None
        if label is not None and await label.locator(_LABEL_AROUND).count():
            snapshot.put_in_label(box)


async def drawn_part(page: Page, node: PageNode) -> ElementHandle | None:
    """Return the visible part that a person clicks to change a box.

    It is in the label of the box, and neither in a link or another control nor around one.
    """
    if node.role not in BOXES:
        return None
    box = page.locator(node.selector)
    control_id = await box.get_attribute("id") or ""
    labels = [_LABEL_OF_BOX]
    if control_id and '"' not in control_id:
        labels.append(_LABEL_ELSEWHERE.format(control_id))
    for label in labels:
        for axis in ("descendant", "self"):  # the input may be the first part of the label that has a place
            parts = await box.locator(f"xpath={label}/{axis}::*{_CLEAN}").element_handles()
            for part in parts[:_MOST_PARTS]:
                if await part.is_visible():
                    return part
    return None
