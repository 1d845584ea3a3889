"""Tools for the keyboard and the clipboard."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import AgentKind, Effect, Probe
from callboard.surfaces import current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.desktop._calls import ANSWER_SECONDS, BusError, attribute, method, value
from callboard.surfaces.desktop._tree import ObjectState
from callboard.surfaces.desktop._window_actions import SHOWN_SECONDS, Answer, Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.messages import Intent
    from callboard.surfaces.desktop._tree import AccessibleNode
    from callboard.surfaces.desktop._window_actions import WindowActions

Focused = Annotated[str, Field(description="The control to type into; empty: the one that has the focus.")]
_KEPT_SECONDS = 1.0
"""The time after which LibreOffice has inserted handled keys into its text."""
BOTH = (AgentKind.APP, AgentKind.OPERATOR)


class KeyboardTools:
    """Tools that type, press keys, copy and paste.

    Keys go to the window that has the focus. This is checked for each key.

    Args:
        actions: Returns the window actions, once the desktop is open.
    """

    def __init__(self, actions: Callable[[], WindowActions]) -> None:
        self._actions = actions
        self._typed: dict[str, int] = {}
        """The numbers of characters of calls that were typed before a crash, according to `probe`."""

    @tool(effect=Effect.ONCE, agents=BOTH)
    def type_text(self, process: Process, text: str, *, control_id: Focused = "") -> Answer:
        """Type a text at the cursor; line breaks press Return, tabs Tab."""
        actions, call = self._actions(), current_call()
        window, node = self._focused(process, control_id)
        old_count = self._typed.pop(call.id, 0)
        cursor = self._cursor(process, node) if node is not None else None
        caret, length = cursor or (0, 0)
        note = (
            {"field": node.path, "at": caret - old_count, "length": length - old_count}
            if node is not None and cursor
            else {}
        )
        call.note(json.dumps(note))
        new_count = old_count + actions.type(window, text[old_count:])
        actions.desktop.has_taken_keys(process, SHOWN_SECONDS)  # otherwise the next call could overtake them
        if cursor is not None and node is not None:
            actions.desktop.wait(
                lambda: self._length(process, node.path) >= cursor[1] - old_count + new_count, SHOWN_SECONDS
            )
        return {"typed": new_count}

    @tool(effect=Effect.ONCE, agents=BOTH)
    def press_keys(
        self,
        process: Process,
        keys: Annotated[str, Field(description="One key or combination: Return, Escape, Tab, F2, Down, ctrl+s.")],
        *,
        control_id: Focused = "",
    ) -> Answer:
        """Press one key or combination on the keyboard."""
        actions = self._actions()
        actions.desktop.keyboard.symbols(keys)
        window, _ = self._focused(process, control_id)
        old_mark = actions.mark(process)
        actions.keys(window, keys)
        return actions.changed(process, old_mark)

    @tool(effect=Effect.ONCE)
    def copy(self, process: Process, *, control_id: Focused = "") -> Answer:
        """Copy the selection, and return its text. The clipboard is restored afterwards."""
        actions = self._actions()
        window, _ = self._focused(process, control_id)
        clipboard = actions.desktop.clipboard
        with clipboard.borrowed():
            clipboard.clear()
            actions.keys(window, "ctrl+c")
            if not actions.desktop.wait(lambda: not clipboard.is_empty(), SHOWN_SECONDS):
                msg = "nothing was copied: nothing is selected, or it can't be copied"
                raise ToolError(msg)
            return {"text": clipboard.text()}

    @tool(effect=Effect.ONCE)
    def paste(self, process: Process, text: str, *, control_id: Focused = "") -> Answer:
        """Paste a text at the cursor. The clipboard's content is restored afterwards."""
        actions = self._actions()
        window, _ = self._focused(process, control_id)
        old_mark, clipboard = actions.mark(process), actions.desktop.clipboard
        with clipboard.borrowed():
            clipboard.offer(text)
            actions.keys(window, "ctrl+v")
            if not actions.desktop.wait(lambda: clipboard.was_taken_by(process), SHOWN_SECONDS):
                msg = "the program did not take the text from the clipboard"
                raise ToolError(msg)
        return actions.changed(process, old_mark)

    def probe(self, process: int, intent: Intent) -> Probe | None:
        """Check whether a call of `type_text` was done; None for other tools.

        If a part of the text was typed, the call is repeated, and types the rest.
        """
        text = intent.arguments.get("text")
        if intent.tool != "type_text" or not isinstance(text, str):
            return None
        if not intent.noted:
            return Probe.NOT_DONE  # the note is written before the first key
        noted = json.loads(intent.noted[-1])
        if not noted or not self._has_taken(process, str(noted["field"])):
            return Probe.UNKNOWN  # keys that are not handled yet would be typed twice
        path, start = str(noted["field"]), int(noted["at"])
        typed = self._length(process, path) - int(noted["length"])
        answer = self._actions().program(process).ask([method(path, "Text", "GetText", "ii", start, start + typed)])[0]
        if isinstance(answer, BusError) or not 0 <= typed <= len(text) or answer[0] != text[:typed]:
            return Probe.UNKNOWN
        if typed == len(text):
            return Probe.DONE
        if typed:
            self._typed[intent.call_id] = typed
        return Probe.BEGUN if typed else Probe.NOT_DONE

    def _has_taken(self, process: int, path: str) -> bool:
        """Wait until all keys are in a field's text; False if unknown.

        LibreOffice inserts handled keys into its text a moment later.
        """
        desktop, lengths = self._actions().desktop, list[int]()
        while desktop.has_taken_keys(process, ANSWER_SECONDS):
            lengths.append(self._length(process, path))
            if not self._actions().program(process).draws_itself or lengths[-2:-1] == lengths[-1:]:
                return True
            desktop.wait(lambda: False, _KEPT_SECONDS)
        return False

    def _focused(self, process: int, control_id: str) -> tuple[int, AccessibleNode | None]:
        """Focus the control, or else the window; return both.

        Returns:
            The window, and the node that has the focus; None if it has no text.
        """
        actions = self._actions()
        judged = actions.judged.pop(process, None)
        actions.must_take_keys(process)
        node = actions.ready(process, control_id) if control_id else None
        window = actions.grab(process, node) if node is not None else actions.focus(process)
        if judged not in {None, window}:  # a dialog would be answered unseen
            msg = "another window of the program has come up: look again; no key was pressed"
            raise ToolError(msg)
        if node is not None:
            return window, node
        tree = actions.desktop.tree(process)
        nodes = tree.nodes if tree is not None else []
        return window, next(
            (candidate for candidate in nodes if candidate.has(ObjectState.FOCUSED) and candidate.text is not None),
            None,
        )

    def _cursor(self, process: int, node: AccessibleNode) -> tuple[int, int] | None:
        """Return the cursor's position and the text's length; None if inconclusive.

        They are inconclusive if text is selected, since it will be replaced; in a password field, which does not expose
        its text; and while earlier keys are not handled yet.
        """
        if not self._actions().desktop.has_taken_keys(process, SHOWN_SECONDS):
            return None
        program = self._actions().program(process)
        selected = program.ask([method(node.path, "Text", "GetNSelections")])[0]
        caret = value(program.ask([attribute(node.path, "Text", "CaretOffset")])[0])
        if isinstance(selected, BusError) or selected[0] or not isinstance(caret, int) or caret < 0:
            return None
        return None if node.role == "password text" else (caret, self._length(process, node.path))

    def _length(self, process: int, path: str) -> int:
        count = value(self._actions().program(process).ask([attribute(path, "Text", "CharacterCount")])[0])
        return count if isinstance(count, int) else 0
