"""Drawing into pictures: blackened areas, and a label on each control."""

from __future__ import annotations

import io
import struct
import sys
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from callboard.actors.pictures import PictureError, draw, only_pixels, require_pillow
from callboard.actors.pictures._drawing import LARGEST
from callboard.messages import Box, SettingsError

WHITE = (255, 255, 255)
SIZES = [(60, 40), (320, 200), (1280, 800), (3840, 2160)]


def png(size, colour=WHITE):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def pixels(picture):
    return Image.open(io.BytesIO(picture)).convert("RGB")


def test_masked_box_is_black_and_the_rest_is_unchanged():
    box = Box(x=20, y=10, width=15, height=8)
    clean = pixels(draw(png((100, 50)), [box], {}).clean)
    black = {(x, y) for x in range(100) for y in range(50) if clean.getpixel((x, y)) != WHITE}
    assert black == {(x, y) for x in range(18, 37) for y in range(8, 20)}
    assert {clean.getpixel(each) for each in black} == {(0, 0, 0)}


@pytest.mark.parametrize("place", [(-500, 0), (0, 500), (99, 49), (-3, -3)], ids=str)
def test_masked_box_may_stick_out_of_the_picture(place):
    box = Box(x=place[0], y=place[1], width=4, height=4)
    assert pixels(draw(png((100, 50)), [box], {}).clean).size == (100, 50)


def test_labels_leave_the_clean_picture_as_it_is():
    picture = png((200, 100))
    drawn = draw(picture, [], {"a": Box(x=10, y=30, width=50, height=20)})
    assert drawn.clean == picture
    assert pixels(drawn.annotated).size == (200, 100)
    assert drawn.annotated != picture


def test_masked_box_stays_black_under_its_label():
    box = Box(x=100, y=100, width=200, height=60)
    drawn = draw(png((400, 300), (9, 9, 9)), [box], {"password": box})
    inside = (104, 104, 296, 156)
    assert pixels(drawn.annotated).crop(inside).getcolors() == [(192 * 52, (0, 0, 0))]


def test_picture_without_labels_has_no_annotated_picture():
    outside = Box(x=900, y=900, width=10, height=10)
    empty = Box(x=5, y=5, width=0, height=10)
    assert (
        draw(png((50, 50)), [], {"outside": outside, "empty": empty, "": Box(x=1, y=1, width=9, height=9)})[1] is None
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_label_is_as_tall_as_a_model_can_read_at_any_size(size):
    box = Box(x=size[0] // 2, y=size[1] // 2, width=size[0] // 4, height=size[1] // 4)
    drawn = pixels(draw(png(size), [], {"8": box}).annotated)
    rows = (
        {y for y in range(box.y) for x in range(box.x, size[0]) if drawn.getpixel((x, y)) != WHITE}
        if size[0] < 2000
        else None
    )
    if rows is None:  # the whole of a large picture takes a while: one column through the label is enough
        rows = {y for y in range(box.y) if drawn.getpixel((box.x + 1, y)) != WHITE}
    shown = len(rows) * min(1, 1568 / max(size))
    assert shown >= 12


@pytest.mark.parametrize("label", ["ä", "日本", "a\nb", "\x1b[31m", "x" * 500, "\u202eabc"])
def test_any_id_can_be_a_label(label):
    assert draw(png((200, 100)), [], {label: Box(x=10, y=30, width=50, height=20)}).annotated is not None


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(*sizes):
    """Make a small file that says it is a large picture."""
    headers = [chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)) for size in sizes]
    return b"\x89PNG\r\n\x1a\n" + b"".join(headers) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def with_more():
    """Make a picture that holds a word in a text, a colour profile, a second frame, and after its end."""
    text, frames = PngInfo(), [Image.new("RGB", (40, 40), colour) for colour in ("white", "red")]
    text.add_text("Title", "hidden")
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], pnginfo=text, icc_profile=b"hidden")
    return file.getvalue() + b"hidden"


@pytest.mark.parametrize("masked", [[], [Box(x=1, y=1, width=5, height=5)]], ids=["as it is", "drawn anew"])
def test_a_picture_keeps_nothing_but_the_pixels_of_its_first_frame(masked):
    for drawn in draw(with_more(), masked, {"a": Box(x=20, y=20, width=9, height=9)}):
        assert b"hidden" not in drawn
        assert pixels(drawn).info == {}
        assert Image.open(io.BytesIO(drawn)).n_frames == 1


def test_without_pillow_a_picture_is_reduced_to_its_pixels_too():
    assert only_pixels(with_more()) == png((40, 40))
    assert only_pixels(png((40, 40))) == png((40, 40))


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (b"", "not a PNG, or is damaged"),
        (b"\x89PNG\r\n\x1a\n", "not a PNG, or is damaged"),
        (png((40, 40))[:60], "not a PNG, or is damaged"),
        (b"GIF89a" + bytes(40), "not a PNG, or is damaged"),
        (bomb((10, 10)), "not a PNG, or is damaged"),
        (bomb((60_000, 60_000)), "60000 x 60000 pixels; at most"),
        (bomb((LARGEST, 2)), f"{LARGEST} x 2 pixels; at most 50,000,000 are taken"),
        (bomb((10, 10), (20_000, 20_000)), "not a PNG, or is damaged"),
    ],
    ids=["empty", "only its beginning", "cut", "a GIF", "no pixels", "billions of pixels", "too many", "two sizes"],
)
def test_invalid_or_too_large_picture_is_refused(picture, why):
    with pytest.raises(PictureError, match=why):
        draw(picture, [], {})


def test_missing_pillow_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(SettingsError, match=r"the desktop needs Pillow, which comes with callboard\[pictures\]"):
        require_pillow("the desktop")
