"""Screen of an X display: its windows, their focus, and their pictures."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Iterator  # noqa: TC003 - contextlib asks for it
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PIL import Image
from Xlib import X, display, error
from Xlib.ext import composite, res
from Xlib.protocol import event, rq

from callboard.messages import Box
from callboard.surfaces._console_windows import refuse_console
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterable

_FOCUS_SECONDS = 5.0
_DIALOG_SECONDS = 0.5
"""The time after which another window of the process may keep the focus: a modal dialog does."""
_POLL_SECONDS = 0.02
_FROM_PAGER = 2
"""The source indication of a request to a window manager on behalf of a user."""
_GONE = (error.BadWindow, error.BadDrawable, error.BadMatch)


@dataclass(frozen=True)
class XWindow:
    """One window on the screen, with its frame."""

    id: int
    """The program's own window."""
    frame: int
    """The child of the root window: its frame, or itself."""
    pid: int
    """The process that created it; 0 if not known."""
    title: str
    box: Box
    """Its place on the screen, with its frame."""
    content: Box
    """The place of its content, without its frame."""
    popup: bool
    """True for a menu, a tooltip or a list, which the window manager leaves alone."""


class XScreen:
    """One screen of an X display.

    Args:
        name: The display's name, such as ``:0``.

    Raises:
        ConnectionError: If it can't be opened, or lacks an extension; the text gives the reason.
    """

    def __init__(self, name: str) -> None:
        try:
            self.display = display.Display(name)
        except (error.DisplayError, OSError) as problem:
            msg = f"the display {name} can't be opened: {problem}"
            raise ConnectionError(msg) from problem
        self.lock = threading.RLock()
        """Held during requests that belong together."""
        self.display.set_error_handler(lambda *_: None)  # windows may be gone; the default writes to stderr
        missing = [
            extension for extension in ("XTEST", "Composite", "X-Resource") if not self.display.has_extension(extension)
        ]
        self.root = self.display.screen().root
        if missing or self.display.screen().root_depth < 24:  # pictures need a byte for each colour
            self.display.close()
            lack = f"lacks {', '.join(missing)}" if missing else "has fewer than 24 bits of colour"
            msg = f"the display {name} can't be used: it {lack}"
            raise ConnectionError(msg)
        composite.query_version(self.display)
        composite.redirect_subwindows(self.root, composite.RedirectAutomatic)  # so that covered windows have pictures
        self.display.sync()
        self._atoms: dict[str, int] = {}

    def close(self) -> None:
        """Close the connection to the display."""
        with self.lock, contextlib.suppress(error.ConnectionClosedError):
            self.display.close()

    @property
    def size(self) -> tuple[int, int]:
        """Its width and height in pixels."""
        with self._asking():
            geometry = self.root.get_geometry()
            return geometry.width, geometry.height

    def windows(self) -> list[XWindow]:
        """List all visible windows, the lowest first.

        Raises:
            ToolError: If the display is gone.
        """
        with self._asking():
            clients = {self._frame_of(client): client for client in self._clients()}
            visible_windows = []
            for frame in self.root.query_tree().children:
                with contextlib.suppress(*_GONE):
                    window = self._window(frame, clients)
                    if window is not None:
                        visible_windows.append(window)
            return visible_windows

    def of_process(self, pid: int) -> list[XWindow]:
        """List the visible windows of one process, the lowest first.

        Raises:
            ToolError: If one of them shows the console.
        """
        windows = [window for window in self.windows() if window.pid == pid]
        refuse_console(window.title for window in windows)
        return windows

    def processes(self) -> dict[int, list[str]]:
        """Return the titles of windows by process, including iconified windows.

        The display may still list the windows of a process that has ended. They are left out.
        """
        with self._asking():
            titles: dict[int, list[str]] = {}
            for client in self._clients():
                with contextlib.suppress(*_GONE):
                    pid = self._pid(client)
                    if pid and is_alive(pid):
                        titles.setdefault(pid, []).append(self._title(client))
            return titles

    def clients_of(self, pid: int) -> list[int]:
        """List a process's managed windows, including iconified ones, the lowest first."""
        with self._asking():
            clients = []
            for client in self._clients():
                with contextlib.suppress(*_GONE):
                    clients += [client] if self._pid(client) == pid else []
            return clients

    def active(self) -> tuple[int, int]:
        """Return the focused window and its process; zeros if there is none."""
        with self._asking():
            window = self._active_window()
            with contextlib.suppress(*_GONE):
                return (window, self._pid(window)) if window else (0, 0)
            return (0, 0)

    def activate(self, window: int) -> int:
        """Raise and focus a window, and wait for the focus.

        Returns:
            The window that got the focus, which may be a modal dialog of the requested one.

        Raises:
            ToolError: If no window of its process gets the focus.
        """
        with self._asking():
            pid = self._pid(window)
            if self._active_window() == window:
                return window
            data = (32, [_FROM_PAGER, X.CurrentTime, 0, 0, 0])
            message = event.ClientMessage(
                window=self._object(window), client_type=self._atom("_NET_ACTIVE_WINDOW"), data=data
            )
            self.root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
            self.display.flush()
        begin = time.monotonic()
        while (active := self.active())[0] != window:
            waited = time.monotonic() - begin
            if active[1] == pid and waited > _DIALOG_SECONDS:
                break
            if waited > _FOCUS_SECONDS:
                msg = f"the window did not get the focus within {_FOCUS_SECONDS:g} s; another window keeps it"
                raise ToolError(msg)
            time.sleep(_POLL_SECONDS)
        return active[0]

    def close_window(self, window: int) -> None:
        """Ask a window to close, like the close button in its frame."""
        with self._asking():
            data = (32, [X.CurrentTime, _FROM_PAGER, 0, 0, 0])
            message = event.ClientMessage(
                window=self._object(window), client_type=self._atom("_NET_CLOSE_WINDOW"), data=data
            )
            self.root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
            self.display.flush()

    def window_at(self, x: int, y: int) -> XWindow | None:
        """Return the topmost window at a point of the screen."""
        for window in reversed(self.windows()):
            if window.box.holds(x, y):
                return window
        return None

    def pointed(self) -> tuple[tuple[int, int], XWindow | None]:
        """Return the pointer's place, and the window that gets its clicks.

        A window without an input region, such as some tooltips, gets none.
        """
        with self._asking():
            answer = self.root.query_pointer()
            frame = answer.child.id if answer.child else 0
        return (answer.root_x, answer.root_y), next(
            (window for window in self.windows() if window.frame == frame), None
        )

    def picture(self, windows: Iterable[XWindow], area: Box) -> bytes:
        """Draw some windows as a PNG, without other windows that cover them.

        Args:
            windows: The windows, the lowest first.
            area: The area of the screen that the picture shows.

        Raises:
            ToolError: If the display is gone.
        """
        image = Image.new("RGB", (area.width, area.height))
        with self._asking():
            for window in windows:
                with contextlib.suppress(*_GONE):
                    drawn = self._read_picture(window)
                    image.paste(drawn, (window.box.x - area.x, window.box.y - area.y))
        out = io.BytesIO()
        image.save(out, "PNG", compress_level=1)
        return out.getvalue()

    def _read_picture(self, window: XWindow) -> Image.Image:
        pixmap = composite.name_window_pixmap(self._object(window.frame))
        try:
            geometry = pixmap.get_geometry()
            raw = pixmap.get_image(0, 0, geometry.width, geometry.height, X.ZPixmap, 0xFFFFFFFF)
        finally:
            pixmap.free()
        return Image.frombytes("RGB", (geometry.width, geometry.height), raw.data, "raw", "BGRX")

    def _window(self, frame: Any, clients: dict[int, int]) -> XWindow | None:
        attributes = frame.get_attributes()
        if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
            return None
        geometry = frame.get_geometry()
        box = Box(x=geometry.x, y=geometry.y, width=geometry.width, height=geometry.height)
        client = clients.get(frame.id, frame.id)
        origin = self._object(client).translate_coords(self.root, 0, 0)
        popup = frame.id not in clients
        inner = geometry if client == frame.id else self._object(client).get_geometry()
        # `translate_coords` returns the root's corner in the window's coordinates
        content = Box(x=-origin.x, y=-origin.y, width=inner.width, height=inner.height)
        return XWindow(client, frame.id, self._pid(client), self._title(client), box, content, popup)

    def _frame_of(self, client: int) -> int:
        """Return the child of the root window that contains a client."""
        window = self._object(client)
        with contextlib.suppress(*_GONE):
            while (parent := window.query_tree().parent) not in {0, self.root}:
                window = parent
        return int(window.id)

    def _clients(self) -> list[int]:
        return self._property(self.root, "_NET_CLIENT_LIST_STACKING") or self._property(self.root, "_NET_CLIENT_LIST")

    def _active_window(self) -> int:
        return next(iter(self._property(self.root, "_NET_ACTIVE_WINDOW")), 0)

    def _property(self, window: Any, name: str) -> list[int]:
        answer = window.get_full_property(self._atom(name), X.AnyPropertyType)
        return [int(number) for number in answer.value] if answer is not None else []

    def _title(self, window: int) -> str:
        for name in ("_NET_WM_NAME", "WM_NAME"):
            answer = self._object(window).get_full_property(self._atom(name), X.AnyPropertyType)
            if answer is not None and answer.value:
                text = answer.value
                return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        return ""

    def _pid(self, window: int) -> int:
        """Return a window's process from the X server.

        The window's own property may contain a process id of another machine.
        """
        answer = self.display.res_query_client_ids([{"client": window, "mask": res.LocalClientPIDMask}])
        return next((int(client_id.value[0]) for client_id in answer.ids if client_id.value), 0)

    def _object(self, window: int) -> Any:
        return self.display.create_resource_object("window", window)

    def _atom(self, name: str) -> int:
        if name not in self._atoms:
            self._atoms[name] = self.display.intern_atom(name)
        return self._atoms[name]

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with self.lock:
                yield
                while self.display.pending_events():  # notifications of changed key mappings, which are not needed
                    self.display.next_event()
        except (error.ConnectionClosedError, rq.BadDataError) as problem:
            msg = f"the display is gone: {problem}"
            raise ToolError(msg) from problem


def around(windows: Iterable[XWindow], screen: tuple[int, int]) -> Box | None:
    """Return the visible area around some windows; None if there is none."""
    boxes = [window.box for window in windows]
    if not boxes:
        return None
    left, top = max(0, min(box.x for box in boxes)), max(0, min(box.y for box in boxes))
    right = min(screen[0], max(box.x + box.width for box in boxes))
    bottom = min(screen[1], max(box.y + box.height for box in boxes))
    if right <= left or bottom <= top:
        return None
    return Box(x=left, y=top, width=right - left, height=bottom - top)
