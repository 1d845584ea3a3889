"""Tools that act on controls of a page, and answer dialogs."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces import current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.browser._key_names import key_names, pressed_by
from callboard.surfaces.browser._page_actions import (
    ACTION_MS,
    BOTH,
    DRAG_MOVES,
    Answer,
    ControlId,
    TabId,
    check_judged,
    commit,
    edit,
    element,
    hover_over,
    note_pointer,
    pointed,
    press,
    put,
    ready,
)
from callboard.surfaces.browser._page_addresses import origin_of
from callboard.surfaces.browser._page_looks import LOOK_SECONDS
from callboard.surfaces.browser._page_snapshot import BUTTONS, DIALOG, FIELDS
from callboard.surfaces.browser._tab import DialogOpenError

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Keyboard

    from callboard.surfaces.browser._page_actions import Tabs

Keys = Annotated[str, Field(min_length=1, max_length=50, description="Enter, Tab, Escape, ArrowDown, ctrl+a …")]
_HAS_FOCUS = """part => {
    const active = part.getRootNode().activeElement;
    return active === part || !!active?.isContentEditable && active.contains(part);
}"""
_TO_END = """part => {
    if (!part.isContentEditable) {
        if (part instanceof HTMLTextAreaElement) part.setSelectionRange(part.value.length, part.value.length);
        return false;
    }
    let editor = part;
    while (editor.parentElement?.isContentEditable) editor = editor.parentElement;
    editor.focus();
    const selection = part.getRootNode().getSelection();
    selection.selectAllChildren(part);
    selection.collapseToEnd();
    return true;
}"""
"""Move the cursor to the end of a part of an editor, or of a text area; return whether it is the first."""
_LETTERS_MS = 5
"""The time between two typed letters, in milliseconds, so that suggestions of a page keep up."""
MOST_LETTERS = 10_000
_TEXT_FORMS = {
    "date": "2026-12-31",
    "datetime-local": "2026-12-31T23:59",
    "month": "2026-12",
    "time": "23:59",
    "week": "2026-W53",
    "color": "#aabbcc",
    "number": "1.5",
}
"""Examples of the texts that fields of some types take. Source: HTML, "Input types"."""
_MOST_NAMED = 50


def check_no_secret() -> None:
    """Check that the keys are no secret for some origins.

    Raises:
        ToolError: If they are: keys go to whatever has the focus.
    """
    if current_call().is_for_origins:
        msg = "a secret is no key: put it into a field"
        raise ToolError(msg)


async def _takes_text(handle: ElementHandle) -> bool:
    """Return whether an element is a field or can be edited otherwise."""
    from playwright.async_api import Error

    try:
        return await handle.is_editable()
    except Error as error:
        if "not an <input>" in str(error):
            return False
        raise


async def _type(keyboard: Keyboard, handle: ElementHandle, text: str) -> None:
    """Type a text at the end of an element's own one.

    End alone goes to the end of the line, and Ctrl+End to that of a whole editor.

    If the page gives another part the focus meanwhile, spaces are put in without their key, which presses a button.
    """
    if not await handle.evaluate(_TO_END):
        await handle.press("End")
    for part in re.split("( )", text):
        if part == " " and not await handle.evaluate(_HAS_FOCUS):
            await keyboard.insert_text(part)
        else:
            await keyboard.type(part, delay=_LETTERS_MS)


async def _set_checked(handle: ElementHandle, *, checked: bool) -> None:
    """Set a box, whose page may replace it or go on."""
    from playwright.async_api import Error

    try:
        await handle.set_checked(checked, timeout=ACTION_MS, no_wait_after=True)
    except Error as error:
        if not ("not attached" in error.message and "click action done" in error.message):
            raise


class ControlTools:
    """Tools for single controls.

    Args:
        tabs: Returns a tab, by its id.
    """

    def __init__(self, tabs: Tabs) -> None:
        self._tabs = tabs

    @tool(effect=Effect.ONCE)
    async def click(
        self,
        tab: TabId,
        control_id: ControlId,
        *,
        button: Literal["left", "right", "middle"] = "left",
        double: bool = False,
    ) -> Answer:
        """Click on a control."""
        opened, count = await self._tabs(tab), 2 if double else 1
        await press(
            opened,
            control_id,
            lambda handle: handle.click(button=button, click_count=count, timeout=ACTION_MS, no_wait_after=True),
        )
        return {}

    @tool(effect=Effect.IDEMPOTENT, takes_disabled=True)
    async def hover(self, tab: TabId, control_id: ControlId) -> Answer:
        """Move the pointer over a control, for menus that open then."""
        opened = await self._tabs(tab)
        target = await pointed(opened, control_id, may_be_disabled=True)
        await hover_over(opened, target)
        await commit(opened, lambda: target.handle.hover(timeout=ACTION_MS), target, once=False)
        await note_pointer(opened, target)
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=FIELDS)
    async def fill(self, tab: TabId, control_id: ControlId, text: Annotated[str, Field(max_length=100_000)]) -> Answer:
        """Replace the text of a field."""
        alone, opened = current_call().is_for_origins, await self._tabs(tab)
        target = await element(opened, control_id)
        await edit(opened, target, lambda handle: put(handle, text) if alone else handle.fill(text, timeout=ACTION_MS))
        with contextlib.suppress(DialogOpenError):
            kind = await opened.run(target.handle.get_attribute("type"), LOOK_SECONDS) or ""
            if text and kind in _TEXT_FORMS and not await opened.run(target.handle.input_value(), LOOK_SECONDS):
                msg = f"{target.title} takes texts such as {_TEXT_FORMS[kind]} only, and is empty now"
                raise ToolError(msg)
        return {}

    @tool(effect=Effect.ONCE, controls=FIELDS)
    async def type(
        self, tab: TabId, control_id: ControlId, text: Annotated[str, Field(max_length=MOST_LETTERS)]
    ) -> Answer:
        """Type at the end of a field that suggests something, without Enter."""
        if not text.isprintable():
            msg = "type has no line breaks or tabs: press Enter or Tab, or fill the field"
            raise ToolError(msg)
        opened = await self._tabs(tab)
        target = await element(opened, control_id)
        if current_call().is_for_origins:
            await edit(opened, target, lambda handle: put(handle, text, adds=True), once=True)
            return {}
        if target.node.role in BUTTONS or not await opened.run(_takes_text(target.handle), LOOK_SECONDS):
            msg = f"{target.title} is no field for text"
            raise ToolError(msg)
        await commit(opened, lambda: _type(opened.page.keyboard, target.handle, text), target)
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=("combobox", "listbox"))
    async def select(
        self,
        tab: TabId,
        control_id: ControlId,
        options: Annotated[list[str], Field(min_length=1, max_length=100, description="Their labels.")],
    ) -> Answer:
        """Choose options of a list."""
        opened = await self._tabs(tab)
        target = await element(opened, control_id)
        names = [part.name for part in target.node.below() if part.role == "option"]
        if names and (unknown := [option for option in options if option not in names]):
            msg = f"there is no option {unknown[0]!r}; there are: {', '.join(names[:_MOST_NAMED])}"
            raise ToolError(msg)
        await edit(opened, target, lambda handle: handle.select_option(label=options, timeout=ACTION_MS))
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=("checkbox", "radio", "switch"))
    async def check(self, tab: TabId, control_id: ControlId, *, checked: bool = True) -> Answer:
        """Check or clear a box, or choose a radio button."""
        opened = await self._tabs(tab)
        repeats = opened.judged_call in opened.forms.stopped
        target = await ready(opened, control_id)
        if repeats and checked == (target.node.marks.get("checked") == ""):
            msg = f"{target.title} is so already, so the page sends nothing: set it otherwise, and then so again"
            raise ToolError(msg)
        await commit(opened, lambda: _set_checked(target.handle, checked=checked), target, once=False)
        return {}

    @tool(effect=Effect.ONCE)
    async def press(
        self,
        tab: TabId,
        keys: Keys,
        control_id: Annotated[str, Field(description="The control that gets them; empty: the focused one.")] = "",
    ) -> Answer:
        """Press a key, or several together."""
        opened, names = await self._tabs(tab), key_names(keys)
        check_no_secret()
        if control_id:
            target = await element(opened, control_id)
            node, enters = pressed_by(target.node, keys)
            await check_judged(opened, node, enters=enters)
            await commit(opened, lambda: target.handle.press(names, timeout=ACTION_MS, no_wait_after=True), target)
        else:
            node, enters = pressed_by((await opened.snapshot()).focused, keys)
            await check_judged(opened, node, enters=enters)
            await commit(opened, lambda: opened.page.keyboard.press(names))
        return {}

    @tool(effect=Effect.ONCE)
    async def drag(
        self, tab: TabId, control_id: ControlId, to: Annotated[str, Field(description="The control to drop it on.")]
    ) -> Answer:
        """Drag a control onto another one."""
        opened = await self._tabs(tab)
        source, goal = await pointed(opened, control_id), await element(opened, to)
        for part in (goal, source):
            await hover_over(opened, part)
        await check_judged(opened, source.node)
        start, end = (opened.page.locator(f"aria-ref={part.node.ref}") for part in (source, goal))
        await commit(opened, lambda: start.drag_to(end, steps=DRAG_MOVES, timeout=ACTION_MS), source)
        await note_pointer(opened, goal)
        return {}

    @tool(effect=Effect.ONCE, agents=BOTH, controls=(DIALOG,))
    async def accept_dialog(
        self, tab: TabId, text: Annotated[str | None, Field(description="The answer, if it asks for a text.")] = None
    ) -> Answer:
        """Answer the page's dialog with OK."""
        opened = await self._tabs(tab)
        current_call().check_origin(origin_of(opened.dialog_url))
        await commit(opened, lambda: opened.answer_dialog(accept=True, text=text), answers=True)
        return {}

    @tool(effect=Effect.ONCE, agents=BOTH, controls=(DIALOG,))
    async def dismiss_dialog(self, tab: TabId) -> Answer:
        """Answer the page's dialog with Cancel, or close it."""
        opened = await self._tabs(tab)
        await commit(opened, lambda: opened.answer_dialog(accept=False), answers=True)
        return {}
