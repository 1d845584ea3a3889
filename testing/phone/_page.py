"""Builders of the pages and dialogs of the phone's applications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.testing.phone._painter import LINE, lines
from callboard.testing.phone._phone_screen import NAVIGATION, ROW, STATUS, TOP, Scroll, View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.testing.phone._phone import Phone
    from callboard.testing.phone._phone_screen import Box

    Act = Callable[[], None]
    Answer = tuple[str, str, Act]
    """A button of a dialog: its text, its id, and its action."""

_SIDE = 40
_DIALOG = 920


@dataclass(eq=False)
class Field:
    """A text field of an application, with its text.

    The phone keeps the focus and the caret.
    """

    id: str
    hint: str
    text: str = ""
    password: bool = False
    lines: int = 1
    """Its height; one that is higher than 1 takes line breaks."""
    done: Callable[[], None] | None = None
    """Handles the Enter of a field of one line that is the last one."""


class Page:
    """A page under construction.

    It has a bar with a title and buttons, and rows below. Rows that do not fit can be scrolled.

    Args:
        phone: The phone.
        title: The title in its bar.
        scroll: Its scroll position.
        rows: The id of the list that contains the rows; empty for none.
        up: Returns to the page before.
    """

    def __init__(self, phone: Phone, title: str, scroll: Scroll, rows: str = "", up: Act | None = None) -> None:
        self.phone = phone
        self._scroll = scroll
        self._rows = rows
        self._inside: list[View] = []
        self._y = 0
        self._bar = View("Toolbar", (0, STATUS, phone.width, TOP), id="toolbar")
        self._bar_end = phone.width - 20
        indent = 0
        if up is not None:
            indent = 130
            box = (0, STATUS, indent, TOP)
            self._bar.inside.append(View("ImageButton", box, text="", description="Navigate up", tap=up))
        self._bar.inside.append(View("TextView", (indent, STATUS, phone.width, TOP), title, "title"))
        self.fields: list[Field] = []

    def action(self, text: str, id_: str, tap: Act) -> None:
        """Add a button to the bar, left of those before."""
        right, self._bar_end = self._bar_end, self._bar_end - max(150, 25 * len(text) + 50)
        self._bar.inside.append(
            View("ImageButton", (self._bar_end, STATUS, right, TOP), id=id_, description=text, tap=tap)
        )

    def button(self, text: str, id_: str, tap: Act, *, enabled: bool = True) -> None:
        """Add a button."""
        left, top, right, bottom = self._next(ROW)
        self._inside.append(View("Button", (left + _SIDE, top, right - _SIDE, bottom), text, id_, tap=tap))
        self._inside[-1].enabled = enabled

    def keys(self, keys: Sequence[tuple[str, str, Act]], across: int = 3) -> None:
        """Add buttons side by side."""
        for start in range(0, len(keys), across):
            left, top, right, bottom = self._next(ROW)
            wide = (right - left) // across
            for column, (text, id_, tap) in enumerate(keys[start : start + across]):
                at = left + column * wide
                self._inside.append(View("Button", (at + 20, top, at + wide - 20, bottom), text, id_, tap=tap))

    def drop_down(self, name: str, id_: str, value: str, tap: Act) -> None:
        """Add a control that opens a list to choose from."""
        box = self._next(ROW)
        label = View("TextView", box, value, "android:id/text1")
        self._inside.append(View("Spinner", box, id=id_, description=name, tap=tap, inside=[label]))

    def slider(self, name: str, id_: str, share: float, slide: Callable[[float], None]) -> None:
        """Add a slider with its name above."""
        self.text(name, f"{id_}_name", height=90)
        view = View("SeekBar", self._next(ROW), f"{share * 100:.1f}", id_, description=name, slide=slide)
        view.share = share
        self._inside.append(view)

    def text(self, text: str, id_: str = "", height: int = 0) -> None:
        """Add a text, as high as it needs."""
        needed = len(lines(text, self.phone.width)) * LINE + ROW - LINE
        self._inside.append(View("TextView", self._next(height or needed), text, id_))

    def field(self, field: Field) -> None:
        """Add a text field."""
        line_count = max(field.lines, len(lines(field.text, self.phone.width)))
        view = View("EditText", self._next(ROW + (line_count - 1) * LINE), field.text, field.id, hint=field.hint)
        view.password, view.focused = field.password, self.phone.field is field
        view.caret = self.phone.cursor
        view.tap = lambda: self.phone.focus(field)
        self._inside.append(view)
        self.fields.append(field)

    def check(self, kind: str, text: str, id_: str, tap: Act, *, checked: bool) -> None:
        """Add a check box, a switch or a radio button."""
        self._inside.append(View(kind, self._next(ROW), text, id_, tap=tap, checked=checked))

    def entry(
        self, text: str, tap: Act | None, hold: Act | None = None, drop: Callable[[View], None] | None = None
    ) -> View:
        """Add an entry of a list."""
        box = self._next(ROW)
        label = View("TextView", box, text, "android:id/title")
        self._inside.append(View("LinearLayout", box, tap=tap, hold=hold, drop=drop, inside=[label]))
        return self._inside[-1]

    def views(self) -> list[View]:
        """Return the page, scrolled to a field with new focus."""
        bottom = self.phone.height - (self.phone.keyboard_height or NAVIGATION)
        height = max(bottom - TOP, 1)
        scroll = self._scroll
        scroll.most = max(0, self._y - height)
        focused = next((view for view in self._inside if view.focused), None)
        if focused is not None and self.phone.reveals:
            self.phone.reveals = False
            scroll.at = max(min(scroll.at, focused.box[1]), focused.box[3] - height)
        scroll.by(0)
        kind = "RecyclerView" if self._rows else "ScrollView"
        inside = [view.moved(0, TOP - scroll.at) for view in self._inside]
        rows = View(kind, (0, TOP, self.phone.width, bottom), id=self._rows, scroll=scroll, inside=inside)
        return [self._bar, rows]

    def _next(self, height: int) -> Box:
        top, self._y = self._y, self._y + height
        return (0, top, self.phone.width, top + height)


class Dialog:
    """A dialog under construction, in the middle of the screen.

    Args:
        phone: The phone.
        message: Its message; empty for none.
    """

    def __init__(self, phone: Phone, message: str = "") -> None:
        self._phone = phone
        self._width = min(_DIALOG, phone.width - 2 * _SIDE)
        self._inside: list[View] = []
        self._y = 30
        if message:
            self.message(message)

    def message(self, text: str, id_: str = "android:id/message") -> None:
        """Add a text."""
        height = len(lines(text, self._width)) * LINE + 60
        self._inside.append(View("TextView", self._next(height), text, id_))

    def choice(self, text: str, tap: Act, *, checked: bool) -> None:
        """Add a choice."""
        view = View("CheckedTextView", self._next(130), text, "android:id/text1", tap=tap, checked=checked)
        self._inside.append(view)

    def row(self, views: Sequence[View], height: int = 110) -> None:
        """Add views side by side; a blank one leaves its place empty."""
        left, top, right, bottom = self._next(height)
        wide = (right - left) // len(views)
        for column, view in enumerate(views):
            view.box = (left + column * wide, top, left + (column + 1) * wide, bottom)
        self._inside += [view for view in views if view.kind != "Space"]

    def answers(self, answers: Sequence[Answer]) -> Dialog:
        """Add the buttons, one below the other."""
        for text, id_, tap in answers:
            self._inside.append(View("Button", self._next(130), text, id_, tap=tap))
        return self

    def views(self) -> list[View]:
        """Return the dialog."""
        height = self._y + 30
        x, y = (self._phone.width - self._width) // 2, max(0, (self._phone.height - height) // 2)
        box = (0, 0, self._width, height)
        return [View("FrameLayout", box, id="dialog", inside=self._inside).moved(x, y)]

    def _next(self, height: int) -> Box:
        top, self._y = self._y, self._y + height
        return (20, top, self._width - 20, top + height)
