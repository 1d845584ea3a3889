"""The picture of the phone's screen."""

from __future__ import annotations

import contextlib
import functools
import io
import textwrap
from typing import TYPE_CHECKING

from callboard.config import install_command
from callboard.testing.phone._phone_screen import NAVIGATION, STATUS, TOP, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from PIL import ImageDraw, ImageFont

    from callboard.testing.phone._phone_screen import Box, PhoneScreen

SIZE = 44
LINE = 60
"""The height of a line of text, in pixels."""
MARGIN = 48
_LETTER = 26
_PAPER, _INK, _RULE, _ACCENT, _PALE, _GREY = "#fafafa", "#1c1b1f", "#cac4d0", "#6750a4", "#ece6f0", "#79747e"
_ICONS = ("#386a20", "#b3261e", "#6750a4", "#006a6a", "#825500", "#1a5fb4", "#984061")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", " ")
_DARK = 0.55
_FONTS = ("DejaVuSans.ttf", "Roboto-Regular.ttf", "NotoSans-Regular.ttf")
"""Fonts with more letters than Pillow's own, which is limited to ASCII; the first installed one is used."""


def lines(text: str, width: int) -> list[str]:
    """Split a text into the lines that fit a width, in pixels."""
    most = max(4, (width - 2 * MARGIN) // _LETTER)
    wrapped = list[str]()
    for line in text.split("\n"):
        wrapped += textwrap.wrap(line, most, drop_whitespace=False, replace_whitespace=False, expand_tabs=False) or [""]
    return wrapped


def paint(screen: PhoneScreen, size: tuple[int, int], keyboard: int, *, awake: bool) -> bytes:
    """Draw a screen, as PNG.

    Args:
        screen: The screen.
        size: The width and the height, in pixels.
        keyboard: The height of the keyboard; 0 for none.
        awake: False for a black picture.

    Raises:
        RuntimeError: If there is no Pillow.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        msg = f"the pictures of the phone need Pillow: {install_command('pictures')}"
        raise RuntimeError(msg) from error

    image = Image.new("RGB", size, _PAPER if awake else "black")
    if awake:
        if screen.behind:
            _Painter(ImageDraw.Draw(image)).all(screen.behind, size)
            image = Image.blend(image, Image.new("RGB", size, "black"), _DARK)
        painter = _Painter(ImageDraw.Draw(image))
        painter.all(screen.views, size)
        painter.bars(size, dark=bool(screen.behind))
        if keyboard:
            painter.keyboard(size, keyboard)
    written = io.BytesIO()
    image.save(written, "PNG", compress_level=1)
    return written.getvalue()


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    for name in _FONTS:
        with contextlib.suppress(OSError):
            return ImageFont.truetype(name, size)
    return ImageFont.load_default(size)


class _Painter:
    """Draws views.

    Args:
        draw: Draws on the picture.
    """

    def __init__(self, draw: ImageDraw.ImageDraw) -> None:
        self._draw = draw
        self._kinds: dict[str, Callable[[View, Box], None]] = {
            "Button": self._button,
            "ImageButton": self._button,
            "EditText": self._field,
            "CheckBox": self._check,
            "RadioButton": self._check,
            "Switch": self._check,
            "CheckedTextView": self._check,
            "SeekBar": self._slider,
            "Spinner": self._drop_down,
            "Toolbar": self._bar,
            "FrameLayout": self._sheet,
            "LinearLayout": self._row,
            "View": self._day,
        }

    def all(self, views: Iterable[View], size: tuple[int, int]) -> None:
        """Draw views; bars are last, since scrolled rows move below them."""
        for top in sorted(views, key=lambda view: view.kind == "Toolbar"):
            for view, _ in top.shown((0, 0, *size)):
                self._kinds.get(view.kind, self._label)(view, view.box)

    def bars(self, size: tuple[int, int], *, dark: bool) -> None:
        """Draw the system's bars."""
        ink = "white" if dark else _INK
        self._text((MARGIN, STATUS // 2), "12:00", ink, 36, "lm")
        self._draw.rounded_rectangle((size[0] - 110, 24, size[0] - 50, 56), 8, outline=ink, width=4)
        self._draw.rectangle((size[0] - 104, 30, size[0] - 66, 50), fill=ink)
        if not dark:
            self._draw.rectangle((0, size[1] - NAVIGATION, *size), fill=_PAPER)
        middle = size[0] // 2
        self._draw.rounded_rectangle((middle - 150, size[1] - 34, middle + 150, size[1] - 24), 5, fill=ink)

    def keyboard(self, size: tuple[int, int], height: int) -> None:
        """Draw the keyboard."""
        top, step = size[1] - height, (height - NAVIGATION) // len(_ROWS)
        self._draw.rectangle((0, top, *size), fill=_PALE)
        for row, letters in enumerate(_ROWS):
            wide = size[0] // 10 if letters.strip() else size[0] // 2
            start = (size[0] - wide * len(letters)) // 2
            for column, letter in enumerate(letters):
                x, y = start + column * wide, top + row * step
                self._draw.rounded_rectangle((x + 8, y + 14, x + wide - 8, y + step - 8), 16, fill="white")
                self._text((x + wide // 2, y + step // 2), letter, _INK, SIZE, "mm")

    def _text(self, at: tuple[float, float], text: str, ink: str, size: int, anchor: str) -> None:
        self._draw.text(at, text, ink, _font(size), anchor=anchor)

    def _label(self, view: View, box: Box) -> None:
        if view.id == "android:id/text1":
            return  # its container draws it
        left, top, right, bottom = box
        size = 56 if view.id == "title" else SIZE
        text_lines = lines(view.text, right - left)
        first = (top + bottom) // 2 - (len(text_lines) - 1) * LINE // 2
        ink = "#b3261e" if view.id == "error" else _ACCENT if view.id == "heading" else _INK
        for number, line in enumerate(text_lines):
            self._text((left + MARGIN, first + number * LINE), line, ink, size, "lm")

    def _button(self, view: View, box: Box) -> None:
        left, top, right, bottom = box
        label, middle = view.text or view.description, _middle(box)
        if view.id == "icon":
            colour = _ICONS[sum(map(ord, label)) % len(_ICONS)]
            self._draw.rounded_rectangle((middle[0] - 85, top + 10, middle[0] + 85, top + 180), 48, fill=colour)
            self._text((middle[0], top + 95), label[:1], "white", 96, "mm")
            self._text((middle[0], bottom - 36), label, _INK, SIZE, "mm")
            return
        if view.description == "Navigate up":
            x, y = middle
            self._draw.line((x + 22, y, x - 22, y, x, y - 22, x - 22, y, x, y + 22), _INK, 6)
            return
        flat = view.kind == "ImageButton" or view.id.startswith("android:id/button")
        fill = None if flat else _ACCENT if view.enabled else _PALE
        if fill:
            self._draw.rounded_rectangle((left + 8, top + 16, right - 8, bottom - 16), 56, fill=fill)
        self._text(middle, label, _ACCENT if flat else "white" if view.enabled else _GREY, SIZE, "mm")

    def _field(self, view: View, box: Box) -> None:
        left, top, right, bottom = box
        frame = (left + 24, top + 14, right - 24, bottom - 14)
        self._draw.rounded_rectangle(
            frame, 12, fill="white", outline=_ACCENT if view.focused else _GREY, width=6 if view.focused else 3
        )
        text = "*" * len(view.text) if view.password else view.text
        for number, line in enumerate(lines(text or view.hint, right - left)):
            self._text((left + MARGIN, top + 75 + number * LINE), line, _INK if text else _GREY, SIZE, "lm")
        if view.focused:
            lines_to_caret = lines(text[: view.caret], right - left)
            x = left + MARGIN + self._draw.textlength(lines_to_caret[-1], _font(SIZE))
            y = top + 75 + (len(lines_to_caret) - 1) * LINE
            self._draw.line((x, y - 28, x, y + 28), _ACCENT, 4)

    def _check(self, view: View, box: Box) -> None:
        left, top, right, bottom = box
        middle, ink = (top + bottom) // 2, _ACCENT if view.checked else _GREY
        self._text((left + MARGIN, middle), view.text, _INK if view.enabled else _RULE, SIZE, "lm")
        mark = (right - 108, middle - 30, right - 48, middle + 30)
        if view.kind == "Switch":
            self._draw.rounded_rectangle((right - 158, middle - 36, right - 48, middle + 36), 36, fill=ink)
            knob = right - 84 if view.checked else right - 122
            self._draw.ellipse((knob - 26, middle - 26, knob + 26, middle + 26), fill="white")
        elif view.kind in {"RadioButton", "CheckedTextView"}:
            self._draw.ellipse(mark, outline=ink, width=6)
            if view.checked:
                self._draw.ellipse((mark[0] + 15, mark[1] + 15, mark[2] - 15, mark[3] - 15), fill=ink)
        else:
            self._draw.rounded_rectangle(mark, 8, outline=ink, width=6, fill=ink if view.checked else None)
            if view.checked:
                x, y = mark[:2]
                self._draw.line((x + 12, y + 32, x + 26, y + 46, x + 50, y + 16), "white", 7)

    def _slider(self, view: View, box: Box) -> None:
        left, top, right, bottom = box
        middle, start, end = (top + bottom) // 2, left + MARGIN, right - MARGIN
        at = start + round(view.share * (end - start))
        self._draw.line((start, middle, end, middle), _RULE, 12)
        self._draw.line((start, middle, at, middle), _ACCENT, 12)
        self._draw.ellipse((at - 28, middle - 28, at + 28, middle + 28), fill=_ACCENT)

    def _drop_down(self, view: View, box: Box) -> None:
        left, top, right, bottom = box
        middle, x = (top + bottom) // 2, right - 90
        self._draw.rounded_rectangle((left + 24, top + 14, right - 24, bottom - 14), 12, outline=_GREY, width=3)
        label = f"{view.description}: {view.inside[0].text}" if view.inside else view.description
        self._text((left + MARGIN, middle), label, _INK, SIZE, "lm")
        self._draw.polygon(((x - 22, middle - 12), (x + 22, middle - 12), (x, middle + 16)), fill=_INK)

    def _bar(self, _view: View, box: Box) -> None:
        self._draw.rectangle((0, 0, box[2], box[3]), fill=_PALE if box[3] == TOP else _PAPER)

    def _sheet(self, view: View, box: Box) -> None:
        if view.id == "dialog":
            self._draw.rounded_rectangle(box, 56, fill="white")

    def _row(self, _view: View, box: Box) -> None:
        self._draw.line((box[0] + MARGIN, box[3] - 1, box[2] - MARGIN, box[3] - 1), _RULE, 2)

    def _day(self, view: View, box: Box) -> None:
        middle = _middle(box)
        if view.checked:
            half = min(46, (box[3] - box[1]) // 2)
            self._draw.ellipse((middle[0] - half, middle[1] - half, middle[0] + half, middle[1] + half), fill=_ACCENT)
        self._text(middle, view.text, "white" if view.checked else _INK, 38, "mm")


def _middle(box: Box) -> tuple[int, int]:
    left, top, right, bottom = box
    return (left + right) // 2, (top + bottom) // 2
