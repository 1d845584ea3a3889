"""Actions on parts of a page: found, checked, and committed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import AgentKind
from callboard.surfaces import committing, current_call
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.browser._drawn_boxes import drawn_part
from callboard.surfaces.browser._form_hazards import PressFacts, has_card_field, of_press
from callboard.surfaces.browser._page_addresses import document_url, origin_of
from callboard.surfaces.browser._page_looks import LOOK_SECONDS
from callboard.surfaces.browser._playwright_errors import as_tool_error
from callboard.surfaces.browser._tab import DialogOpenError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import ElementHandle

    from callboard.messages import Box
    from callboard.surfaces.browser._page_snapshot import PageNode
    from callboard.surfaces.browser._tab import Tab

    Tabs = Callable[[str], Awaitable[Tab]]
    """A function that returns a tab, by its id."""

TabId = Annotated[str, Field(description="The tab.")]
ControlId = Annotated[str, Field(description="The control.")]
Answer = dict[str, Any]
BOTH = (AgentKind.APP, AgentKind.OPERATOR)
"""The agents that are offered tools for dialogs and addresses: no picture shows either."""
_CHECK_MS = 1_000
"""The time in which a control has to become ready, in milliseconds."""
ACTION_MS = 5_000
"""The time limit for an action on a control that is ready, in milliseconds."""
DRAG_MOVES = 10
"""The moves of a drag: a page follows the pointer from place to place."""
BEGUN = "begun"
"""The note of a call right before its side effect. Without it the call was not done."""
_OUTSIDE = (-1, -1)
"""A point outside the page."""
_COVERED = "is covered by another part of the page"
_REASONS = {
    "intercepts pointer events": _COVERED,
    "outside of the viewport": "is off the screen, and can't be scrolled to",
    "not enabled": "is disabled",
    "not stable": "keeps moving",
    "not visible": "is hidden",
    "not editable": "can't be edited",
    "not attached": "is gone, or was replaced by another one",
    "not a <select>": "is no list of options: click it, and then the option",
    "not a checkbox": "is neither a check box nor a radio button: click it",
    "not an <input>": "is no field for text",
    "did not find some options": "has no such option",
}
"""The reasons of Playwright for not acting, and ours. Source: its page "Auto-waiting"."""


_ENDINGS = ("has been closed", "crashed", "Connection closed", "browser has disconnected")
"""Errors of Playwright after the end of a page or a browser."""


_PUT = """(field, [text, adds]) => {
    const kind = [HTMLInputElement, HTMLTextAreaElement].find(kind => field instanceof kind);
    if (!kind) throw new Error('not an <input>');
    const value = Object.getOwnPropertyDescriptor(kind.prototype, 'value');
    value.set.call(field, (adds ? value.get.call(field) : '') + text);
    for (const name of ['input', 'change'])  // those of a browser differ in this, too
        field.dispatchEvent(new Event(name, {bubbles: true, composed: name === 'input'}));
}"""


class Element:
    """A part of a page that is acted on."""

    def __init__(self, control_id: str, node: PageNode, handle: ElementHandle) -> None:
        self.id = control_id
        self.node = node
        self.handle = handle
        """The element itself: one that replaces it has another."""

    @property
    def title(self) -> str:
        """Its role and name, for messages."""
        return f"{self.node.role} {self.node.name!r}"


async def element(tab: Tab, control_id: str, *, may_be_disabled: bool = False) -> Element:
    """Find a control on a page.

    Args:
        tab: The tab.
        control_id: The control.
        may_be_disabled: Whether a disabled control will do: the action changes none.

    Raises:
        ToolError: If it is gone, was replaced, or is disabled.
    """
    snapshot = await tab.snapshot(boxes=tab.boxes is not None)
    node = snapshot.node(control_id)
    if node is None:
        msg = f"the control {control_id!r} is gone, or was replaced by another one: look again"
        raise ToolError(msg)
    target = Element(control_id, node, await _handle(tab, node))
    if "disabled" in node.marks and not may_be_disabled:
        msg = f"{target.title} is disabled; nothing was done"
        raise ToolError(msg)
    before = (tab.boxes or {}).get(control_id)
    if before is not None and node.box is not None and not _overlaps(before, node.box):
        msg = f"{target.title} has moved since the look; nothing was done: look again"
        raise ToolError(msg)
    return target


async def pointed(tab: Tab, control_id: str, *, may_be_disabled: bool = False) -> Element:
    """Find a control that the pointer moves to next.

    Raises:
        ToolError: As `element`.
    """
    target, _ = await asyncio.gather(  # a move takes a frame
        element(tab, control_id, may_be_disabled=may_be_disabled), stir(tab)
    )
    return target


async def stir(tab: Tab) -> None:
    """Begin to move the pointer at the point where it rests.

    A hand does so on its way to another point. Playwright's pointer jumps there, and widgets mistake its first move for
    one in the part that came up below the resting pointer: the autocompletion of jQuery UI chooses that part then.
    """
    if tab.pointer is not None:
        x, y = tab.pointer
        await tab.run(tab.page.mouse.move(x + 1, y), LOOK_SECONDS)


async def note_pointer(tab: Tab, target: Element) -> None:
    """Note that the pointer rests in the middle of a control."""
    tab.pointer = None
    with contextlib.suppress(ToolError):  # the page may be gone
        if (box := await tab.run(target.handle.bounding_box(), LOOK_SECONDS)) is not None:
            tab.pointer = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


async def _handle(tab: Tab, node: PageNode) -> ElementHandle:
    handles = await tab.run(tab.page.locator(node.selector).element_handles())
    if not handles:
        msg = f"{node.role} {node.name!r} is gone, or was replaced by another one: look again"
        raise ToolError(msg)
    return handles[0]


def _overlaps(first: Box, second: Box) -> bool:
    """Return whether the middle of one box is in the other one."""
    return second.holds(first.x + first.width // 2, first.y + first.height // 2)


async def press(tab: Tab, control_id: str, do: Callable[[ElementHandle], Awaitable[Any]], *, once: bool = True) -> None:
    """Press a control with the pointer.

    Raises:
        ToolError: If it can't be pressed; the text gives the reason, and nothing was done.
    """
    target = await ready(tab, control_id)
    await commit(tab, lambda: do(target.handle), target, once=once)


async def ready(tab: Tab, control_id: str) -> Element:
    """Find a control to press, and move the pointer over it.

    Playwright checks first that it is visible, at rest, on the screen, and not covered. The page may change once the
    pointer is over the control, as for a tooltip. So that element is looked up again, and a press must have no hazards
    then but those ruled on. (Playwright also has trial clicks, but listeners of the window get them.)

    Of a box that the page draws itself, the drawn part is pressed.

    Raises:
        ToolError: If it can't be pressed; the text gives the reason.
    """
    target = await pointed(tab, control_id)
    part = await _hovered_part(tab, target)
    tab.boxes = None  # it may have been scrolled into view
    if part is not None or target.node.is_in_label:
        target = await element(tab, control_id)
        await check_judged(tab, target.node)
        return target if part is None else Element(control_id, target.node, part)
    node = await tab.part(target.node)
    if node is None or node.role != target.node.role:
        msg = f"{target.title} is gone, or was replaced by another one: look again"
        raise ToolError(msg)
    target = Element(control_id, node, target.handle)
    if "disabled" in node.marks:
        msg = f"{target.title} is disabled; nothing was done"
        raise ToolError(msg)
    await check_judged(tab, node)
    return target


async def _hovered_part(tab: Tab, target: Element) -> ElementHandle | None:
    """Move the pointer over a control.

    Over the drawn part of a box instead, which is returned, if the box itself can't be pressed.

    Raises:
        ToolError: If neither can be pressed; the text gives the reason.
    """
    failure: ToolError | None = None
    if not target.node.is_in_label:
        try:
            await hover_over(tab, target)
        except DialogOpenError:
            raise
        except ToolError as error:
            failure = error
        else:
            return None
    part = await tab.run(drawn_part(tab.page, target.node), LOOK_SECONDS)
    if part is None and failure is not None:
        raise failure
    await hover_over(tab, target if part is None else Element(target.id, target.node, part))
    return part


async def hover_over(tab: Tab, target: Element) -> None:
    """Move the pointer over a control that can be pressed there.

    A menu that the first move has opened may cover it. So the pointer leaves the page then, and comes again. A browser
    that is too busy to tell whether the control is ready gets more time.

    Raises:
        ToolError: If it can't; the text gives the reason.
    """
    milliseconds = _CHECK_MS
    for is_first in (True, False):
        try:
            await tab.run(target.handle.hover(timeout=milliseconds))
        except DialogOpenError:
            raise
        except ToolError as error:
            reason, is_busy = _explained(target, error), not _reason_of(error)
            is_covered = tab.pointer is not None and _COVERED in str(reason)
            if not is_first or not (is_covered or is_busy):
                raise reason from error
            if is_busy:
                milliseconds = ACTION_MS
            else:
                await tab.run(tab.page.mouse.move(*_OUTSIDE), LOOK_SECONDS)
        else:
            break
    await note_pointer(tab, target)


async def edit(tab: Tab, target: Element, do: Callable[[ElementHandle], Awaitable[Any]], *, once: bool = False) -> None:
    """Change a control's value, if the call's secrets may go there.

    Raises:
        ToolError: If it can't be changed; the text gives the reason.
    """
    await check_origin(target.handle)
    await commit(tab, lambda: do(target.handle), target, once=once)


async def check_judged(tab: Tab, node: PageNode | None, *, enters: bool = False) -> None:
    """Check that a press has no hazards but those ruled on.

    Raises:
        ToolError: If it has, because the page has changed since.
    """
    if node is not None:
        check_facts(tab, await tab.run(of_press(tab.page, node, enters=enters), LOOK_SECONDS))


def check_facts(tab: Tab, facts: PressFacts) -> None:
    """Check that an action's hazards and form origins were ruled on.

    Raises:
        ToolError: If not, because the page has changed since.
    """
    ruled = tab.ruled
    if ruled is None:
        return
    news = [*map(str, facts.hazards - ruled.hazards)]
    news += [f"sends to {origin or 'an unknown address'}" for origin in facts.origins - ruled.origins]
    if news:
        names = ", ".join(sorted(news))
        msg = f"the page has changed since the policy ruled on this, and now it {names}; nothing was done: look again"
        raise ToolError(msg)


async def commit(
    tab: Tab,
    do: Callable[[], Awaitable[Any]],
    target: Element | None = None,
    *,
    once: bool = True,
    may_send: bool = True,
    answers: bool = False,
) -> None:
    """Do an action, unless its call was stopped.

    Args:
        tab: The tab.
        do: The action.
        target: The control that it is about, for messages.
        once: Whether it must not be repeated: it is noted before, for a recovery.
        may_send: Whether the page may send the forms that the policy has ruled on.
        answers: Whether it answers the page's dialog; any other action has to wait for that.

    Raises:
        DialogOpenError: If the page waits for the answer to a dialog; nothing was done.
        LeaseVoidError: If the call was stopped.
        ToolError: If it fails; the text gives the reason.
    """
    if not answers:
        tab.check_no_dialog()
        pays = may_send and await tab.run(has_card_field(tab.page), LOOK_SECONDS)
        tab.begin(may_send=may_send, pays=pays)
    call = current_call()
    if once and call.id:
        await asyncio.to_thread(call.note, BEGUN)

    async def done() -> None:
        with committing():  # no await lies between this and the message to the browser
            pass
        await do()

    tab.boxes = None
    try:
        await tab.run(done())
    except DialogOpenError:
        return  # it was done, and the page asks something
    except ToolError as error:
        if once and _may_be_done(str(error.__cause__ or error)):
            msg = f"the page did not answer any more: whether it was done is in doubt ({error})"
            raise InDoubtError(msg) from error
        raise (error if target is None else _explained(target, error)) from error


def _may_be_done(log: str) -> bool:
    """Return whether an action that failed may have been done.

    Playwright's log tells how far it came.
    """
    last_line = log.strip().splitlines()[-1].strip(" -")
    return last_line.startswith("performing") or any(words in log for words in _ENDINGS)


async def put(handle: ElementHandle, text: str, *, adds: bool = False) -> None:
    """Put a text into a field without the keyboard.

    Keys go to the part with the focus, which a frame of another origin may take while a secret is typed.

    Args:
        handle: The field.
        text: The text.
        adds: Whether the field's own text stays before it.
    """
    await handle.wait_for_element_state("editable", timeout=ACTION_MS)
    await handle.evaluate(_PUT, [text, adds])


async def check_origin(handle: ElementHandle) -> None:
    """Check that the call's secrets may be put into an element.

    Raises:
        ToolError: If one of them may not.
    """
    with as_tool_error():
        frame = await handle.owner_frame()
    current_call().check_origin("" if frame is None else origin_of(document_url(frame)))


def _explained(target: Element, error: ToolError) -> ToolError:
    """Build the error that says why a control was not acted on.

    Playwright logs the reason of each try.
    """
    reason, log = _reason_of(error), str(error.__cause__ or error)
    if not reason:
        return ToolError(f"{target.title}: {error}")
    cover = next((line.strip(" -") for line in reversed(log.splitlines()) if "intercepts pointer events" in line), "")
    shown = f" ({cover.partition(' intercepts')[0][:200]})" if "covered" in reason else ""
    return ToolError(f"{target.title} {reason}{shown}; nothing was done")


def _reason_of(error: ToolError) -> str:
    """Return the last reason in Playwright's log; empty without one."""
    log = str(error.__cause__ or error)
    places = {log.rfind(words): reason for words, reason in _REASONS.items() if words in log}
    return places[max(places)] if places else ""
