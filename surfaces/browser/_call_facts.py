"""Hazards of a call on a tab, and its addresses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from callboard.messages import Hazard
from callboard.surfaces._hazard_words import of_answer
from callboard.surfaces.browser._form_hazards import PressFacts, of_press, of_words
from callboard.surfaces.browser._key_names import pressed_by
from callboard.surfaces.browser._page_addresses import base_url, frame_urls, resolved
from callboard.surfaces.browser._page_looks import LOOK_SECONDS
from callboard.surfaces.browser._playwright_errors import as_tool_error
from callboard.surfaces.browser._pointer_tools import KEYED, PRESSED_AT, facts_at, pressed_by_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.surfaces.browser._page_snapshot import PageNode
    from callboard.surfaces.browser._tab import Tab

_POINTED = frozenset({"click", "check", "drag", "download", "upload"})
_DECLARED = {"download": {Hazard.DOWNLOADS}, "upload": {Hazard.SENDS}}
"""The hazards that every call of a tool has."""


async def judge(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> PressFacts:
    """Look up the facts of a call that is ruled on.

    Raises:
        ToolError: If the tab does not answer.
    """
    tab.judged_call = None
    tab.judged = await _facts(tab, tool, arguments)
    tab.judged_call = _call_key(tool, arguments)
    return tab.judged


async def judged_facts(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> PressFacts:
    """Return the judged facts of a call, or look them up.

    Rules and people see the same facts then, also if the page changes in between.

    Raises:
        ToolError: If the tab does not answer.
    """
    if tab.judged is not None and tab.judged_call == _call_key(tool, arguments):
        return tab.judged
    return await _facts(tab, tool, arguments)


def _call_key(tool: str, arguments: Mapping[str, JsonValue]) -> tuple[str, str]:
    """Return a call's tool, and its arguments without the tab.

    Only rules name that.
    """
    return tool, json.dumps({name: value for name, value in arguments.items() if name != "tab"}, sort_keys=True)


async def _facts(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> PressFacts:
    facts = PressFacts(frozenset(_DECLARED.get(tool, ())))
    if tool == "accept_dialog" and tab.dialog is not None:
        return PressFacts(frozenset(of_answer("ok", [tab.dialog.message])))
    if tool in _POINTED or tool == "press":
        node, enters = await _part(tab, tool, arguments)
        if node is not None and not node.is_file:
            facts |= await tab.run(of_press(tab.page, node, enters=enters), LOOK_SECONDS)
    elif tool in PRESSED_AT | KEYED and tab.dialog is None:
        facts |= await facts_at(tab, tool, arguments)
    if tool == "drag":
        goal = (await tab.snapshot()).node(str(arguments["to"]))
        facts |= PressFacts(frozenset(of_words(goal) if goal is not None else ()))
    sent = tab.forms.stopped.get(_call_key(tool, arguments), frozenset())
    return facts | PressFacts(frozenset({Hazard.SENDS} if sent else ()), sent)


async def _part(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> tuple[PageNode | None, bool]:
    """Return the part that a call acts on, with `enters`."""
    snapshot = await tab.snapshot()
    control_id = str(arguments.get("control_id") or "")
    node = snapshot.node(control_id) if control_id else snapshot.focused
    return pressed_by(node, str(arguments["keys"])) if tool == "press" else (node, False)


async def touched_addresses(tab: Tab, tool: str, arguments: Mapping[str, JsonValue]) -> list[str]:
    """Return the addresses of the pages that a call touches.

    An address that is not certain is empty.

    Raises:
        ToolError: If the tab does not answer.
    """
    urls = [tab.page.url]
    if tab.dialog is not None:
        return [*urls, tab.dialog_url]
    nodes: list[PageNode | None] = []
    if tool in PRESSED_AT | KEYED:
        nodes = [node for node, _ in await pressed_by_call(tab, tool, arguments)]
    elif arguments.get("control_id") or tool == "press":
        nodes = [(await _part(tab, tool, arguments))[0]]
    if tool == "drag":
        nodes.append((await tab.snapshot()).node(str(arguments["to"])))
    for node in filter(None, nodes):
        urls += await tab.run(_addresses_of(tab, node), LOOK_SECONDS)
    return [*urls, *(await judged_facts(tab, tool, arguments)).addresses]


async def _addresses_of(tab: Tab, node: PageNode) -> list[str]:
    """Return the addresses of a part's frames and link."""
    with as_tool_error():
        handles = await tab.page.locator(node.selector).element_handles()
        frame = await handles[0].owner_frame() if handles else None
        if frame is None:
            return [""]
        links = [part.properties["url"] for part in (node, *node.ancestors()) if "url" in part.properties]
        base = await base_url(frame) if links else ""
    return [*frame_urls(frame), *(resolved(base, link) for link in links)]
