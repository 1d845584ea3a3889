"""Clipboard whose content is restored after a copy or paste."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from Xlib import X, Xatom, display
from Xlib.ext import res
from Xlib.protocol import event, request

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 200_000
"""The most bytes of one format of the content: more does not fit into one request."""
_TEXT = "UTF8_STRING"
_TEXTS = (_TEXT, "text/plain;charset=utf-8", "TEXT", "STRING")
_NO_CONTENT = frozenset({"TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE"})
_ANSWER_SECONDS = 2.0
_LONGEST_SECONDS = 60.0
_POLL_SECONDS = 0.02


class Clipboard:
    """The clipboard of a display.

    Its own thread has the connection. While Callboard owns the clipboard, this thread answers the programs that request
    the content. All methods may be called on any other thread.

    Args:
        name: The display's name.
    """

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._display.set_error_handler(lambda *_: None)
        self._window = self._display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        self._selection = self._atom("CLIPBOARD")
        self._property = self._atom("CALLBOARD_CLIPBOARD")
        self._content: dict[int, bytes] = {}
        self._served: set[int] = set()
        """The processes that have requested the last offered text."""
        self._notified: Any = None
        self._borrowed = threading.Lock()
        self._jobs = queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]()
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="callboard-clipboard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Release the clipboard, and end the thread."""
        self._jobs.put(None)
        os.write(self._wake, b".")
        self._thread.join()
        self._display.close()
        os.close(self._wake)
        os.close(self._woken)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Restore the clipboard's content at the end of the context.

        Raises:
            ToolError: If the content is too large to restore, or its owner does not answer; nothing is changed then.
        """
        with self._borrowed:
            content = self._on_thread(self._everything)
            try:
                yield
            finally:
                self._on_thread(lambda: self._take_ownership(content))

    def offer(self, text: str) -> None:
        """Put a text into the clipboard.

        Raises:
            ToolError: If it is too long.
        """
        data = text.encode()
        if len(data) > MOST_BYTES:
            msg = f"a text of {len(data):,} bytes is too long for the clipboard; at most {MOST_BYTES:,} are possible"
            raise ToolError(msg)
        self._on_thread(lambda: self._take_ownership(dict.fromkeys(_TEXTS, data)))

    def clear(self) -> None:
        """Empty the clipboard."""
        self._on_thread(lambda: self._take_ownership({}))

    def was_taken_by(self, pid: int) -> bool:
        """Return whether a process has requested the offered text.

        A clipboard manager requests it, too.
        """
        return pid in self._served

    def is_empty(self) -> bool:
        """Return whether the clipboard has no owner."""
        return bool(self._on_thread(lambda: not self._has_owner()))

    def text(self) -> str:
        """Read the text in the clipboard; empty if there is none."""
        return str(self._on_thread(lambda: (self._read(_TEXT) or b"").decode(errors="replace")))

    # On the thread

    def _on_thread(self, job: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._jobs.put((job, future))
        os.write(self._wake, b".")
        return future.result(_LONGEST_SECONDS)

    def _serve(self) -> None:
        while True:
            self._handle_events()  # also events that were read together with answers to requests
            select.select([self._display.fileno(), self._woken], [], [])
            while select.select([self._woken], [], [], 0)[0]:
                os.read(self._woken, 1)
                entry = self._jobs.get()
                if entry is None:
                    return
                job, future = entry
                try:
                    future.set_result(job())
                except BaseException as problem:  # passed on to the caller
                    future.set_exception(problem)

    def _has_owner(self) -> bool:
        return bool(self._display.get_selection_owner(self._selection))

    def _everything(self) -> dict[str, bytes]:
        """Read the content in all formats."""
        listed = self._read("TARGETS") if self._has_owner() else None
        names = [str(self._display.get_atom_name(atom)) for atom in memoryview(listed).cast("I")] if listed else []
        contents = {name: self._read(name) for name in dict.fromkeys(names) if name not in _NO_CONTENT}
        return {name: data for name, data in contents.items() if data is not None}

    def _read(self, form: str) -> bytes | None:
        """Read one format of the content from its owner; None if missing.

        Raises:
            ToolError: If it is too large to restore, or its owner does not answer.
        """
        self._notified = None
        self._window.convert_selection(self._selection, self._atom(form), self._property, X.CurrentTime)
        self._display.flush()
        end = time.monotonic() + _ANSWER_SECONDS
        while self._notified is None and time.monotonic() < end:
            self._handle_events()
            select.select([self._display.fileno()], [], [], _POLL_SECONDS)
        if self._notified is None:
            msg = "the program that owns the clipboard does not answer: its content could not be restored"
            raise ToolError(msg)
        if not self._notified.property:
            return None
        got = self._window.get_full_property(self._property, X.AnyPropertyType)
        self._window.delete_property(self._property)
        if got is None:
            return None
        data = got.value.encode() if isinstance(got.value, str) else bytes(got.value)
        if got.property_type == self._atom("INCR") or len(data) > MOST_BYTES:
            msg = f"the clipboard's content ({form}) is too large to be restored: use set_text or type_text instead"
            raise ToolError(msg)
        return data

    def _take_ownership(self, content: Mapping[str, bytes]) -> None:
        """Own the clipboard with a content in some formats, or disown it."""
        self._served = set()
        self._content = {self._atom(name): data for name, data in content.items()}
        self._window.set_selection_owner(self._selection, X.CurrentTime)
        if not content:  # only the owner may disown it
            request.SetSelectionOwner(
                display=self._display.display,
                onerror=None,
                window=X.NONE,
                selection=self._selection,
                time=X.CurrentTime,
            )
        self._display.sync()

    def _handle_events(self) -> None:
        while self._display.pending_events():
            x_event = self._display.next_event()
            if x_event.type == X.SelectionRequest:
                self._hand_over(x_event)
            elif x_event.type == X.SelectionNotify:
                self._notified = x_event

    def _hand_over(self, request: Any) -> None:
        property_atom = request.property or request.target
        if request.target == self._atom("TARGETS"):
            request.requestor.change_property(property_atom, Xatom.ATOM, 32, [self._atom("TARGETS"), *self._content])
        elif request.target in self._content:
            request.requestor.change_property(property_atom, request.target, 8, self._content[request.target])
        else:
            property_atom = X.NONE
        notification = event.SelectionNotify(
            time=request.time,
            requestor=request.requestor,
            selection=request.selection,
            target=request.target,
            property=property_atom,
        )
        request.requestor.send_event(notification)
        self._display.flush()
        if property_atom and request.target in self._content:
            asker = self._display.res_query_client_ids(
                [{"client": request.requestor.id, "mask": res.LocalClientPIDMask}]
            )
            self._served |= {int(client_id.value[0]) for client_id in asker.ids if client_id.value}

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))
