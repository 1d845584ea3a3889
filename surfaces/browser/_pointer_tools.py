"""Tools for operators, which see only pixels of a page.

Points are counted from the upper left corner of the page's picture.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import operator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.messages import AgentKind, Effect
from callboard.surfaces import current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.browser._control_tools import MOST_LETTERS, check_no_secret
from callboard.surfaces.browser._form_hazards import PressFacts, of_press
from callboard.surfaces.browser._key_names import key_names, pressed_by
from callboard.surfaces.browser._page_actions import (
    DRAG_MOVES,
    Answer,
    TabId,
    check_facts,
    commit,
    edit,
    element,
    put,
    stir,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from pydantic import JsonValue

    from callboard.surfaces.browser._page_actions import Tabs
    from callboard.surfaces.browser._page_snapshot import PageNode, PageSnapshot
    from callboard.surfaces.browser._tab import Tab

OPERATOR = (AgentKind.OPERATOR,)
PRESSED_AT = frozenset({"click_at", "drag_at"})
KEYED = frozenset({"type_text", "press_keys"})
X = Annotated[int, Field(ge=0, description="Pixels from the left.")]
Y = Annotated[int, Field(ge=0, description="Pixels from the top.")]
Steps = Annotated[int, Field(ge=-100, le=100)]
Button = Literal["left", "middle", "right"]
Modifiers = Annotated[list[str], Field(max_length=4, description="Keys that are held, such as ctrl.")]
_STEP_PIXELS = 100
"""The distance of one step of the wheel."""


def pressed_at(snapshot: PageSnapshot, arguments: Mapping[str, JsonValue]) -> list[PageNode]:
    """Return the parts of a page that a call's points may reach.

    The parts on top are unknown, so all of them count.
    """
    pairs = [(arguments.get(f"{name}x"), arguments.get(f"{name}y")) for name in ("", "to_")]
    points = [(x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int)]

    def is_held(node: PageNode) -> bool:
        return node.box is not None and any(node.box.holds(x, y) for x, y in points)

    held_nodes = [node for node in snapshot.nodes if node.ref and is_held(node)]
    return [node for node in held_nodes if node.is_control or not any(map(is_held, node.below()))]


async def facts_at(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> PressFacts:
    """Return the facts of an operator's call.

    Raises:
        ToolError: If the page does not answer.
    """
    presses = await pressed_by_call(tab, tool, arguments)
    facts = [await of_press(tab.page, node, enters=enters) for node, enters in presses]
    return functools.reduce(operator.or_, facts, PressFacts())


async def pressed_by_call(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> list[tuple[PageNode, bool]]:
    """Return the parts that a call may press, each with `enters`.

    Raises:
        ToolError: If the page does not answer.
    """
    snapshot = await tab.snapshot(boxes=tool in PRESSED_AT)
    if tool in PRESSED_AT:
        return [(node, False) for node in pressed_at(snapshot, arguments)]
    text = str(arguments.get("text") or "")
    keys = str(arguments.get("keys") or ("Enter" if "\n" in text else "space" if " " in text else "x"))
    node, enters = pressed_by(snapshot.focused, keys)
    return [(node, enters)] if node is not None else []


class PointerTools:
    """Tools that point, click, drag, scroll and type without controls.

    Args:
        tabs: Returns a tab, by its id.
    """

    def __init__(self, tabs: Tabs) -> None:
        self._tabs = tabs

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    async def click_at(
        self,
        tab: TabId,
        x: X,
        y: Y,
        *,
        button: Button = "left",
        count: Annotated[int, Field(ge=1, le=3, description="2 for a double click.")] = 1,
        modifiers: Modifiers | None = None,
    ) -> Answer:
        """Click at a point."""

        async def press(mouse: Any) -> None:
            async with _held(opened, modifiers or ()):
                await mouse.click(x, y, button=button, click_count=count)

        opened = await self._tabs(tab)
        await _act(opened, "click_at", {"x": x, "y": y}, press)
        return {}

    @tool(effect=Effect.IDEMPOTENT, agents=OPERATOR)
    async def move_to(self, tab: TabId, x: X, y: Y) -> Answer:
        """Move the pointer to a point."""
        await _act(await self._tabs(tab), "move_to", {"x": x, "y": y}, lambda mouse: mouse.move(x, y), once=False)
        return {}

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    async def drag_at(self, tab: TabId, x: X, y: Y, to_x: X, to_y: Y, *, button: Button = "left") -> Answer:
        """Press a button at a point, and release it at another."""

        async def drag(mouse: Any) -> None:
            await mouse.move(x, y)
            await mouse.down(button=button)
            try:
                await mouse.move(to_x, to_y, steps=DRAG_MOVES)
            finally:
                await mouse.up(button=button)

        await _act(await self._tabs(tab), "drag_at", {"x": x, "y": y, "to_x": to_x, "to_y": to_y}, drag)
        return {}

    @tool(effect=Effect.IDEMPOTENT, agents=OPERATOR)
    async def scroll_at(self, tab: TabId, x: X, y: Y, *, dx: Steps = 0, dy: Steps = 0) -> Answer:
        """Turn the wheel at a point: positive `dy` down, positive `dx` right."""

        async def turn(mouse: Any) -> None:
            await mouse.move(x, y)
            await mouse.wheel(dx * _STEP_PIXELS, dy * _STEP_PIXELS)

        await _act(await self._tabs(tab), "scroll_at", {"x": x, "y": y}, turn, once=False)
        return {}

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    async def type_text(self, tab: TabId, text: Annotated[str, Field(max_length=MOST_LETTERS)]) -> Answer:
        """Type a text at the cursor; line breaks press Enter."""
        opened = await self._tabs(tab)
        if current_call().is_for_origins:
            await _type_secret(opened, text)
            return {}
        check_facts(opened, await facts_at(opened, "type_text", {"text": text}))
        await commit(opened, lambda: opened.page.keyboard.type(text))
        return {}

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    async def press_keys(
        self,
        tab: TabId,
        keys: Annotated[str, Field(min_length=1, max_length=50, description="Return, Escape, Tab, Down, ctrl+a …")],
    ) -> Answer:
        """Press one key or combination on the keyboard."""
        opened = await self._tabs(tab)
        check_no_secret()
        check_facts(opened, await facts_at(opened, "press_keys", {"keys": keys}))
        await commit(opened, lambda: opened.page.keyboard.press(key_names(keys)))
        return {}

    @tool(effect=Effect.READ, agents=OPERATOR)
    async def wait(self, tab: TabId, seconds: Annotated[float, Field(gt=0, le=55)]) -> Answer:
        """Wait."""
        await self._tabs(tab)
        await asyncio.sleep(seconds)
        return {}


async def _type_secret(tab: Tab, text: str) -> None:
    """Type a text with a secret into the focused field.

    Raises:
        ToolError: If no field of the secret's origins has the focus, or the text presses keys.
    """
    if not text.isprintable():
        msg = "a secret is typed without line breaks and tabs: press these keys after it"
        raise ToolError(msg)
    snapshot = await tab.snapshot()
    if snapshot.focused is None:
        msg = "no field has the focus: click on one"
        raise ToolError(msg)
    target = await element(tab, snapshot.id_of(snapshot.focused))
    await edit(tab, target, lambda handle: put(handle, text, adds=True), once=True)


async def _act(
    tab: Tab, tool: str, points: dict[str, int], do: Callable[[Any], Awaitable[None]], *, once: bool = True
) -> None:
    """Use the mouse at points of the page.

    Raises:
        ToolError: If a point is outside the page, or the press has a hazard that was not ruled on.
    """
    size: Any = tab.page.viewport_size or await tab.run(tab.page.evaluate("({width: innerWidth, height: innerHeight})"))
    for name in ("", "to_"):
        x, y = points.get(f"{name}x", 0), points.get(f"{name}y", 0)
        if x >= size["width"] or y >= size["height"]:
            msg = f"({x}, {y}) is outside the picture, which has {size['width']} by {size['height']} pixels"
            raise ToolError(msg)
    await stir(tab)
    if once:
        await tab.run(tab.page.mouse.move(points["x"], points["y"]))  # what it presses may change under the pointer
        check_facts(tab, await facts_at(tab, tool, dict(points)))
    tab.pointer = (points.get("to_x", points["x"]), points.get("to_y", points["y"]))
    await commit(tab, lambda: do(tab.page.mouse), once=once)


@contextlib.asynccontextmanager
async def _held(tab: Tab, modifiers: list[str] | tuple[str, ...]) -> AsyncIterator[None]:
    """Hold keys."""
    names = [key_names(name) for name in modifiers]
    for name in names:
        await tab.page.keyboard.down(name)
    try:
        yield
    finally:
        for name in names:
            await tab.page.keyboard.up(name)
