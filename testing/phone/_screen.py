"""One screen of the phone: a tree of views, told as the hierarchy of `uiautomator` and drawn as a picture."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PIL import ImageDraw

WIDTH, HEIGHT = 1080, 2400
ROW = 150
BAR = 200
KEYBOARD = 800
"""The height of the keyboard, in pixels."""
_BACKGROUND, _INK, _LINE, _ACCENT, _PALE = "#fafafa", "#1c1b1f", "#cac4d0", "#6750a4", "#ece6f0"
_SIZE = 44


@dataclass(eq=False)
class View:
    """Something on the screen. Its box is left, top, right and bottom, in pixels."""

    kind: str
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    text: str = ""
    id: str = ""
    description: str = ""
    tap: Callable[[], None] | None = None
    hold: Callable[[], None] | None = None
    checked: bool | None = None
    enabled: bool = True
    password: bool = False
    focused: bool = False
    hint: str = ""
    scrolls: bool = False
    inside: list[View] = field(default_factory=list)

    def all(self) -> Iterator[View]:
        """Give it and what is in it, as they are drawn."""
        yield self
        for each in self.inside:
            yield from each.all()


def hit(views: list[View], x: int, y: int) -> View | None:
    """Give what a touch of a point acts on: the last drawn thing there that reacts."""
    found = None
    for view in (each for top in views for each in top.all()):
        left, top_, right, bottom = view.box
        reacts = view.tap or view.hold or view.kind == "EditText"
        if reacts and left <= x < right and top_ <= y < bottom:
            found = view
    return found


def hierarchy(package: str, views: list[View], rotation: int) -> str:
    """Tell a screen as `uiautomator dump` of Android 16 does, the first one to tell hints."""
    size = (HEIGHT, WIDTH) if rotation % 2 else (WIDTH, HEIGHT)
    root = View("FrameLayout", (0, 0, *size), inside=views)
    told = "".join(_node(package, root, 0))
    return (
        f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"{rotation}\">{told}</hierarchy>"
    )


def _node(package: str, view: View, index: int) -> Iterator[str]:
    left, top, right, bottom = view.box
    clicks = view.tap is not None or view.kind == "EditText"
    values = {
        "index": str(index),
        "text": "•" * len(view.text) if view.password else view.text or view.hint,
        "resource-id": f"{package}:id/{view.id}" if view.id else "",
        "class": f"{'androidx.recyclerview' if view.kind == 'RecyclerView' else 'android'}.widget.{view.kind}",
        "package": package,
        "content-desc": view.description,
        "checkable": _told(view.checked is not None),
        "checked": _told(bool(view.checked)),
        "clickable": _told(clicks),
        "enabled": _told(view.enabled),
        "focusable": _told(clicks),
        "focused": _told(view.focused),
        "scrollable": _told(view.scrolls),
        "long-clickable": _told(view.hold is not None),
        "password": _told(view.password),
        "selected": "false",
        "bounds": f"[{left},{top}][{right},{bottom}]",
        "drawing-order": str(index),
        "hint": view.hint,
        "display-id": "0",
    }
    kept = {"\n": "&#10;", "\t": "&#9;"}  # a parser would make blanks of them
    attributes = " ".join(f"{name}={quoteattr(value, kept)}" for name, value in values.items())
    yield f"<node {attributes}>" if view.inside else f"<node {attributes} />"
    for place, each in enumerate(view.inside):
        yield from _node(package, each, place)
    if view.inside:
        yield "</node>"


def _told(value: bool) -> str:  # noqa: FBT001 - the one argument
    return "true" if value else "false"


def picture(views: list[View], rotation: int, *, keyboard: bool, awake: bool) -> bytes:
    """Draw a screen, as PNG."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - an extra

    size = (HEIGHT, WIDTH) if rotation % 2 else (WIDTH, HEIGHT)
    image = Image.new("RGB", size, _BACKGROUND if awake else "black")
    if awake:
        draw = ImageDraw.Draw(image)
        for view in (each for top in views for each in top.all()):
            _draw(draw, view)
        if keyboard:
            _draw_keyboard(draw, *size)
    written = io.BytesIO()
    image.save(written, "PNG", compress_level=1)
    return written.getvalue()


def _draw(draw: ImageDraw.ImageDraw, view: View) -> None:
    from PIL import ImageFont  # noqa: PLC0415 - an extra

    left, top, right, bottom = view.box
    font = ImageFont.load_default(_SIZE)
    ink = _INK if view.enabled else _LINE
    shown = "•" * len(view.text) if view.password else view.text
    if view.kind == "FrameLayout" and view.id == "dialog":
        draw.rounded_rectangle(view.box, 40, fill="white", outline=_LINE, width=4)
    elif view.kind in {"Button", "ImageButton"}:
        draw.rounded_rectangle(
            (left + 8, top + 12, right - 8, bottom - 12), 40, fill=_ACCENT if view.enabled else _PALE
        )
        label = shown or view.description
        draw.text(((left + right) / 2, (top + bottom) / 2), label, "white" if view.enabled else ink, font, anchor="mm")
    elif view.kind == "EditText":
        outline = _ACCENT if view.focused else _LINE
        draw.rounded_rectangle((left + 24, top + 12, right - 24, bottom - 12), 12, outline=outline, width=4)
        draw.multiline_text((left + 48, top + 48), shown or view.hint, ink if shown else _LINE, font)
    elif view.checked is not None:
        _draw_check(draw, view, ink)
        draw.text((left + 48, (top + bottom) / 2), shown, ink, font, anchor="lm")
    elif view.kind == "LinearLayout":
        draw.line((left, bottom, right, bottom), _LINE, 2)
    elif shown:
        draw.multiline_text((left + 48, top + 40), shown, ink, font)


def _draw_check(draw: ImageDraw.ImageDraw, view: View, ink: str) -> None:
    right, middle = view.box[2] - 48, (view.box[1] + view.box[3]) // 2
    box = (right - 60, middle - 30, right, middle + 30)
    if view.kind == "Switch":
        box = (right - 110, middle - 30, right, middle + 30)
        draw.rounded_rectangle(box, 30, fill=_ACCENT if view.checked else _LINE)
        knob = right - 30 if view.checked else right - 80
        draw.ellipse((knob - 24, middle - 24, knob + 24, middle + 24), fill="white")
    elif view.kind == "RadioButton":
        draw.ellipse(box, outline=ink, width=4)
        if view.checked:
            draw.ellipse((box[0] + 15, box[1] + 15, box[2] - 15, box[3] - 15), fill=_ACCENT)
    else:
        draw.rectangle(box, outline=ink, width=4, fill=_ACCENT if view.checked else None)


def _draw_keyboard(draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
    from PIL import ImageFont  # noqa: PLC0415 - an extra

    top, font = height - KEYBOARD, ImageFont.load_default(_SIZE)
    draw.rectangle((0, top, width, height), fill=_PALE)
    for row, letters in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm", " ")):
        step = width / max(len(letters), 1)
        for place, letter in enumerate(letters):
            box = (place * step + 8, top + row * 190 + 20, (place + 1) * step - 8, top + row * 190 + 180)
            draw.rounded_rectangle(box, 16, fill="white")
            draw.text(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), letter, _INK, font, anchor="mm")
