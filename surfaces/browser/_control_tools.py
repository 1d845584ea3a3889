"""Tools that act on controls of a page, and answer dialogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces import current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.browser._page_actions import (
    ACTION_MS,
    BOTH,
    DRAG_MOVES,
    Answer,
    ControlId,
    TabId,
    check_judged,
    check_origin,
    commit,
    edit,
    element,
    note_pointer,
    pointed,
    press,
    put,
)
from callboard.surfaces.browser._page_addresses import origin_of
from callboard.surfaces.browser._page_snapshot import BUTTONS, DIALOG, FIELDS

if TYPE_CHECKING:
    from callboard.surfaces.browser._page_actions import Tabs
    from callboard.surfaces.browser._page_snapshot import PageNode

Keys = Annotated[str, Field(min_length=1, max_length=50, description="Enter, Tab, Escape, ArrowDown, ctrl+a …")]
_KEYS = {
    "alt": "Alt",
    "backspace": "Backspace",
    "ctrl": "Control",
    "control": "Control",
    "del": "Delete",
    "delete": "Delete",
    "down": "ArrowDown",
    "end": "End",
    "enter": "Enter",
    "esc": "Escape",
    "escape": "Escape",
    "home": "Home",
    "left": "ArrowLeft",
    "meta": "Meta",
    "page_down": "PageDown",
    "page_up": "PageUp",
    "pagedown": "PageDown",
    "pageup": "PageUp",
    "return": "Enter",
    "right": "ArrowRight",
    "shift": "Shift",
    "space": "Space",
    "tab": "Tab",
    "up": "ArrowUp",
}
_PRESSING = frozenset({"Enter", "NumpadEnter", "Space"})
"""The keys that press the focused control."""
_LETTERS_MS = 5
"""The time between two typed letters, in milliseconds, so that suggestions of a page keep up."""
MOST_LETTERS = 10_000


def key_names(keys: str) -> str:
    """Return keys in the browser's spelling.

    >>> key_names("ctrl+a")
    'Control+a'
    """
    head, plus, last = keys.rpartition("+")
    names = [*(head.split("+") if head else []), last or "+"] if plus else [keys]
    return "+".join(_KEYS.get(name.casefold(), name) for name in names)


def presses(keys: str) -> bool:
    """Return whether keys press the focused control."""
    return key_names(keys).rpartition("+")[2] in _PRESSING


def pressed_by(focused: PageNode | None, keys: str) -> tuple[PageNode | None, bool]:
    """Return the part that keys press, and whether as a field.

    Enter in a field submits its form.
    """
    if focused is None or not presses(keys):
        return None, False
    is_enter = key_names(keys).endswith("Enter")
    if focused.role in FIELDS or focused.role in {"checkbox", "radio", "slider"}:
        return (focused, True) if is_enter else (None, False)
    return (focused, False) if focused.role in BUTTONS or focused.is_clickable else (None, False)


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
        await commit(opened, lambda: target.handle.hover(timeout=ACTION_MS), target, once=False)
        await note_pointer(opened, target)
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=FIELDS)
    async def fill(self, tab: TabId, control_id: ControlId, text: Annotated[str, Field(max_length=100_000)]) -> Answer:
        """Replace the text of a field."""
        alone = current_call().is_for_origins
        await edit(
            await self._tabs(tab),
            control_id,
            lambda handle: put(handle, text) if alone else handle.fill(text, timeout=ACTION_MS),
        )
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
        await check_origin(target.handle)
        if current_call().is_for_origins:
            await commit(opened, lambda: put(target.handle, text, adds=True), target)
            return {}
        await opened.run(target.handle.focus())
        await opened.run(target.handle.press("End"))
        await commit(opened, lambda: opened.page.keyboard.type(text, delay=_LETTERS_MS), target)
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=("combobox", "listbox"))
    async def select(
        self,
        tab: TabId,
        control_id: ControlId,
        options: Annotated[list[str], Field(min_length=1, max_length=100, description="Their labels.")],
    ) -> Answer:
        """Choose options of a list."""
        await edit(
            await self._tabs(tab), control_id, lambda handle: handle.select_option(label=options, timeout=ACTION_MS)
        )
        return {}

    @tool(effect=Effect.IDEMPOTENT, controls=("checkbox", "radio", "switch"))
    async def check(self, tab: TabId, control_id: ControlId, *, checked: bool = True) -> Answer:
        """Check or clear a box, or choose a radio button."""
        await press(
            await self._tabs(tab),
            control_id,
            lambda handle: handle.set_checked(checked, timeout=ACTION_MS, no_wait_after=True),
            once=False,
        )
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
        start, end = (opened.page.locator(f"aria-ref={part.node.ref}") for part in (source, goal))
        await opened.run(start.drag_to(end, trial=True, timeout=ACTION_MS))
        await check_judged(opened, source.node)
        await commit(opened, lambda: start.drag_to(end, steps=DRAG_MOVES, timeout=ACTION_MS), source)
        await note_pointer(opened, goal)
        return {}

    @tool(effect=Effect.ONCE, agents=BOTH, controls=(DIALOG,))
    async def accept_dialog(
        self, tab: TabId, text: Annotated[str | None, Field(description="The answer, if it asks for a text.")] = None
    ) -> Answer:
        """Answer the page's dialog with OK."""
        opened = await self._tabs(tab)
        current_call().check_origin(origin_of(opened.page.url))
        await commit(
            opened,
            lambda: opened.answer_dialog(accept=True, text=text),
            answers=True,
        )
        return {}

    @tool(effect=Effect.ONCE, agents=BOTH, controls=(DIALOG,))
    async def dismiss_dialog(self, tab: TabId) -> Answer:
        """Answer the page's dialog with Cancel, or close it."""
        opened = await self._tabs(tab)
        await commit(opened, lambda: opened.answer_dialog(accept=False), answers=True)
        return {}
